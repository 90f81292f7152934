'use strict'

// A backup: files are read in blocks of four megabytes, each checksummed and sent on. Every block is a new Buffer, needed
// for some milliseconds. `--fixed` fills the same block again.
const { createHash } = require('node:crypto')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const BLOCK_BYTES = 4 * 2 ** 20
const SPARSE = 64
const run = appRun({ work: 'blocks' })
const own = Buffer.alloc(BLOCK_BYTES)

/** Blocks of a file, at some thirty a second. */
async function * blocks () {
  for (let number = 0; ; number++) {
    const block = run.fixed ? own : Buffer.allocUnsafeSlow(BLOCK_BYTES)
    block.fill(number % 251)
    yield block
    await wait(30 / run.rate)
  }
}

const sink = new Writable({
  highWaterMark: 2 * BLOCK_BYTES,
  write (block, _, done) {
    createHash('md5').update(block.subarray(0, BLOCK_BYTES / SPARSE)).digest()
    run.served()
    setTimeout(done, 3)
  }
})
pipeline(Readable.from(blocks(), { highWaterMark: 1 }), sink)
