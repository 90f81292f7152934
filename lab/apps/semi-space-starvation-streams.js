'use strict'

// The rows of an import flow through object-mode streams, which buffer thousands of rows during a
// slow lookup. The rows live a little longer than the time between scavenges, so a semi-space of 1
// MB promotes all of them.
const { Readable, Transform, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const CHUNK_ROWS = 500
const CHUNKS_BUFFERED = 16
const run = appRun({ work: 'chunks' })
let next = 0

/** Yields chunks of rows at a steady pace, as a database cursor does. */
async function * cursor () {
  for (;;) {
    yield Array.from({ length: CHUNK_ROWS }, () => ({
      id: next++,
      name: `row ${next}`,
      values: [next % 3, next % 5, next % 7],
      nested: { a: next, b: `b${next % 100}` }
    }))
    await wait(1 / run.rate)
  }
}

const lookup = new Transform({
  objectMode: true,
  highWaterMark: CHUNKS_BUFFERED,
  transform (rows, _, done) {
    const joined = rows.map((/** @type {any} */ row) => ({
      ...row,
      key: `${row.name}/${row.nested.b}`
    }))
    setTimeout(done, 1, null, joined)
  }
})

/** @type {any[][]} rows of the window being written, oldest first */
const window = []
const sink = new Writable({
  objectMode: true,
  highWaterMark: CHUNKS_BUFFERED,
  write (rows, _, done) {
    window.push(rows)
    if (window.length > 80) window.shift()
    run.served()
    done()
  }
})

pipeline(Readable.from(cursor(), { highWaterMark: CHUNKS_BUFFERED }), lookup, sink, () => {})
