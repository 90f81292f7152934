'use strict'

// A queue worker enriches events: each job parses a batch, waits for two lookups and joins them.
// The objects of jobs in flight do not fit into a semi-space of 1 MB: V8 promotes them, and they
// die in the old space.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const EVENTS = 420
const LOOKUP_MS = 40
const batches = Array.from({ length: 40 }, (_, batch) =>
  JSON.stringify(
    Array.from({ length: EVENTS }, (_, i) => ({
      id: batch * EVENTS + i,
      kind: `kind-${i % 12}`,
      at: 1_700_000_000 + i,
      tags: [i % 5, i % 7],
      position: { x: i % 90, y: i % 180 }
    }))
  )
)

/**
 * @param {string} text
 * @returns {Promise<any[]>}
 */
async function lookup (text) {
  await wait(LOOKUP_MS)
  return JSON.parse(text)
}

/** @param {number} number */
async function enrich (number) {
  const events = await lookup(batches[number % batches.length])
  const places = await lookup(batches[(number + 1) % batches.length])
  const byKind = new Map(places.map((place) => [place.kind, place]))
  const rows = events.map(event => ({
    ...event,
    place: byKind.get(event.kind),
    score: event.position.x * 2
  }))
  await wait(LOOKUP_MS)
  return rows.reduce((sum, row) => sum + row.score, 0)
}

withJobs(appRun({ work: 'jobs' }), { perSecond: 640, job: enrich, atOnce: 160 })
