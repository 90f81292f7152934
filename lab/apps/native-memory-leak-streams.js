'use strict'

// A relay reads faster than its receiver, and queues the chunks in an array instead of waiting for
// drain: Buffers pile up, because the array references them. `--fixed` drops the excess.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const CHUNK_BYTES = 48 * 1024
/** @type {Buffer[]} */
const outbox = []
const run = appRun({ work: 'chunks', figures: () => ({ queued: outbox.length }) })

/** @param {number} number */
function receive (number) {
  const chunk = Buffer.alloc(CHUNK_BYTES, number % 200)
  const header = Array.from({ length: 300 }, (_, i) => ({ number, i, name: `field-${i}` }))
  if (!run.fixed || outbox.length < 50) outbox.push(chunk)
  return header.length
}

async function deliver () {
  for (;;) {
    outbox.splice(0, 2) // The consumer is slow.
    await wait(100)
  }
}

deliver()
withJobs(run, { perSecond: 90, job: receive })
