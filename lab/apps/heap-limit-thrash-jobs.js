'use strict'

// A matcher that holds its reference list in memory, most of the heap limit, and compares jobs with it. What the jobs
// allocate has no room: full collections come one after the other. `--fixed` holds half.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')
const { fillHeap } = require('../fill-heap')

const run = appRun({ work: 'jobs', figures: () => ({ references: references.length }) })
const references = fillHeap(run.fixed ? 0.4 : 0.88)
/** @type {object[][]} the answers of the last jobs */
const recent = []

/** @param {number} number */
function match (number) {
  const candidates = Array.from({ length: 1200 }, (_, i) => ({ number, i, score: (number * 31 + i) % 997, reference: references[(number * i) % references.length] }))
  candidates.sort((a, b) => b.score - a.score)
  recent[number % 20] = candidates.slice(0, 300)
}

withJobs(run, { perSecond: 260, job: match })
