'use strict'

// A worker runs one large import after its start and then waits for work. The import's memory is
// free, but V8 does not return it.
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const run = appRun({ work: 'rows' })

async function importAll () {
  const ends = performance.now() + 15_000
  /** @type {object[][]} window of the import */
  const window = []
  for (let chunk = 0; performance.now() < ends; chunk++) {
    window[chunk % 60] = Array.from({ length: 3000 }, (_, i) => ({
      chunk,
      i,
      name: `row ${i} of ${chunk}`,
      cells: [i, chunk]
    }))
    run.served(3000)
    await wait(8 / run.rate)
  }
}
importAll()
