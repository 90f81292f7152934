'use strict'

// A mirror copies everything once after its start, and then waits for rare changes. The copy made
// the new space grow; no GC makes it shrink.
const { Readable, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const COPY_MS = 15_000
const run = appRun({ work: 'records' })
/** @type {object[][]} items in flight to the other side */
const window = []

async function * records () {
  const ends = performance.now() + COPY_MS
  for (let number = 0; performance.now() < ends; number++) {
    yield Array.from({ length: 3000 }, (_, i) => ({
      number,
      i,
      key: `record ${i} of ${number}`,
      parts: [i, number]
    }))
    await wait(8 / run.rate)
  }
}
pipeline(
  Readable.from(records()),
  new Writable({
    objectMode: true,
    write (rows, _, done) {
      window[rows[0].number % 60] = rows
      run.served(rows.length)
      done()
    }
  }),
  () => {
    window.length = 0
  }
)
