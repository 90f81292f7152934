'use strict'

// A matcher has its reference list in memory, which fills most of the heap limit, and compares jobs
// with it. The jobs have little room to allocate, so one major GC follows the other.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')
const { fillHeap } = require('../fill-heap')

/** Size that V8 chooses in a container of 512 MB. */
const CONTAINER_HEAP_BYTES = 259 * 2 ** 20
const run = appRun({ work: 'jobs', figures: () => ({ references: references.length }) })
const references = fillHeap(0.87, CONTAINER_HEAP_BYTES)
/** @type {object[][]} answers of the last jobs */
const recent = []

/** @param {number} number */
async function match (number) {
  const candidates = Array.from({ length: 1200 }, (_, i) => ({
    number,
    i,
    score: (number * 31 + i) % 997,
    reference: references[(number * i) % references.length]
  }))
  candidates.sort((a, b) => b.score - a.score)
  await wait(60) // Wait while the answer is sent.
  recent[number % 20] = candidates.slice(0, 300)
}

withJobs(run, { perSecond: 260, job: match })
