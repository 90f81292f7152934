'use strict'

// An indexer runs in a container of 256 MB, where V8 allows 256 MB for the heap alone. The index
// fills half of the heap and garbage the rest, so RSS rises to the limit. A lower heap limit makes
// V8 run GCs in time.
const { appRun } = require('../app-run')
const { withJobs } = require('../with-jobs')

const ENTRIES = 880_000
const run = appRun({ work: 'documents', figures: () => ({ entries: index.size }) })
/** @type {Map<number, { words: string[], at: number }>} */
const index = new Map()
let next = 0

function add () {
  for (let i = 0; i < 60; i++, next++) {
    index.set(next, { words: [`w${next % 5000}`, `v${next % 700}`], at: next })
    index.delete(next - ENTRIES)
  }
}
for (let i = 0; i < ENTRIES / 60; i++) add()

withJobs(run, { perSecond: 100, job: add })
