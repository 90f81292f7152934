'use strict'

// A log archiver gzips many files at once, in rounds. Between rounds no file is in use, but the
// retained receipts lie between freed memory, and glibc returns little of it.
const { randomBytes } = require('node:crypto')
const { Readable, Writable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { setTimeout: wait } = require('node:timers/promises')
const zlib = require('node:zlib')
const { appRun } = require('../app-run')

const KB = 1024
const FILES = 260
const RECEIPTS = 20_000
const noise = randomBytes(512 * KB)
/** @type {Buffer[]} a ring */
const receipts = []
let count = 0
/** @type {object[]} */
let summary = []
const run = appRun({
  work: 'files',
  figures: () => ({ receipts: receipts.length, lines: summary.length })
})

/** Retains a packed file until its round is complete. @returns {Promise<Buffer[]>} */
async function archive () {
  const chunks = Array.from({ length: 14 }, () => {
    const from = Math.floor(Math.random() * 400 * KB)
    const chunk = Buffer.allocUnsafeSlow(Math.floor((4 + 60 * Math.random()) * KB))
    noise.copy(chunk, 0, from)
    const receipt = Buffer.allocUnsafeSlow(64 + Math.floor(Math.random() * 700))
    chunk.copy(receipt)
    receipts[count++ % RECEIPTS] = receipt
    return chunk
  })
  /** @type {Buffer[]} */
  const packed = []
  await pipeline(
    Readable.from(chunks),
    zlib.createGzip({ level: 1 }),
    new Writable({
      write (chunk, _, done) {
        packed.push(chunk)
        done()
      }
    })
  )
  run.served()
  return packed
}

/**
 * Does other work of the process, whose garbage causes the GCs that free the Buffers.
 * @param {number} number
 */
function summarize (number) {
  return Array.from({ length: 2500 }, (_, i) => ({
    number,
    i,
    line: `line ${i}`,
    parts: [i % 7, i % 11]
  }))
}

async function rounds () {
  for (;;) {
    const round = []
    for (let i = 0; i < FILES; i += 20) {
      round.push(...(await Promise.all(Array.from({ length: 20 }, archive))))
    }
    round.length = 0
    for (let i = 0; i < 250; i++) {
      summary = summarize(i)
      await wait(10)
    }
  }
}
rounds()
