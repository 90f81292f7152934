'use strict'

// A backup reads files in blocks of eight megabytes. It checksums and sends each block, and retains
// it until the acknowledgement a fifth of a second later. Every block is a new Buffer that survives
// two scavenges and then waits for a major GC. `--fixed` reuses a few blocks.
const { createHash } = require('node:crypto')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')

const BLOCK_BYTES = 8 * 2 ** 20
const SPARSE = 256
const run = appRun({ work: 'blocks' })
const own = Array.from({ length: run.fixed ? 6 : 0 }, () => Buffer.alloc(BLOCK_BYTES))
/** @type {Set<Buffer>} blocks that are sent, and not yet acknowledged */
const unacknowledged = new Set()

/** Yields the blocks of a file, some twenty per second. */
async function * blocks () {
  for (let number = 0; ; number++) {
    const block = run.fixed ? own[number % own.length] : Buffer.allocUnsafeSlow(BLOCK_BYTES)
    block.fill(number % 251)
    yield block
    await wait(40 / run.rate)
  }
}

const sink = new Writable({
  highWaterMark: 2 * BLOCK_BYTES,
  write (block, _, done) {
    createHash('md5').update(block.subarray(0, BLOCK_BYTES / SPARSE)).digest()
    run.served()
    unacknowledged.add(block)
    setTimeout(() => unacknowledged.delete(block), 190)
    setTimeout(done, 3)
  }
})
pipeline(Readable.from(blocks(), { highWaterMark: 1 }), sink)
