'use strict'

// A CSV importer runs on a large machine, with a young generation of 3 × 128 MB "for speed": rows
// are garbage after a moment, and hundreds of megabytes of them wait for each scavenge.
const { Readable, Transform, Writable, pipeline } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const run = appRun({ work: 'chunks' })
/** @type {object[][]} the last chunks, for the summary at the end */
const last = []

async function * chunks () {
  for (let number = 0; ; number++) {
    yield Array.from({ length: 1800 }, (_, i) => `${number},${i},name ${i},${(i * 7919) % 1000}`)
    await wait(6 / run.rate)
  }
}
const parse = new Transform({
  objectMode: true,
  transform (lines, _, done) {
    done(null, lines.map((/** @type {string} */ line) => ({ cells: line.split(','), line })))
  }
})
let written = 0
const sink = new Writable({
  objectMode: true,
  write (rows, _, done) {
    last[written++ % 40] = rows.slice(0, 50)
    run.served()
    done()
  }
})
pipeline(Readable.from(chunks()), parse, sink, () => {})
