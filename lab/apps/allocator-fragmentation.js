'use strict'

// A document archive reads, packs and signs batches of documents of mixed sizes in the thread pool,
// and frees each complete batch. It keeps only a small receipt of each document for a few batches,
// on the same pages as the documents. Nothing leaks: after each batch the live heap and the Buffers
// have their former size. But glibc retains the free memory between the receipts and in its
// per-thread arenas, so RSS stays far above the memory in use. With an allocator that returns free
// pages (jemalloc with its background thread), RSS falls.
const { randomBytes, scrypt } = require('node:crypto')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const { promisify } = require('node:util')
const zlib = require('node:zlib')
const { appRun } = require('../app-run')

const KB = 1024
const BATCH = 2400
const AT_ONCE = 8
const RECEIPTS = 4 * BATCH
const QUIET_SECONDS = 10
const deflate = promisify(zlib.deflate)
const derive = /** @type {(password: string, salt: Buffer, length: number) => Promise<Buffer>} */ (promisify(scrypt))

/** The archive's index: a stable live heap of about 90 MB. */
const index = Array.from({ length: 90_000 }, (_, id) => ({
  id, title: `document ${id}`, words: Array.from({ length: 24 }, (_, i) => `w${id % 997}-${i}`)
}))
/** @type {Buffer[]} receipts in a ring: the newest replaces the oldest */
const receipts = []
let archived = 0

const run = appRun({ work: 'documents', figures: () => ({ receipts: receipts.length }) })
const file = path.join(os.tmpdir(), `memwatch-lab-${process.pid}`)
fs.writeFileSync(file, randomBytes(256 * KB))
const inbox = fs.promises.open(file)
run.onEnd(() => fs.rmSync(file, { force: true }))

/** Reads one document of 1 to 120 KB, mostly small, and archives it. */
async function archive () {
  const bytes = Math.floor((1 + 119 * Math.random() ** 2) * KB)
  const content = Buffer.allocUnsafeSlow(bytes)
  await (await inbox).read(content, 0, bytes, Math.floor(Math.random() * 128 * KB))
  const receipt = Buffer.allocUnsafeSlow(64 + Math.floor(Math.random() * 960))
  content.copy(receipt)
  receipts[archived++ % RECEIPTS] = receipt
  run.served()
  if (archived % 4 === 0) return [content, await deflate(content, { level: 1 })]
  if (archived % 50 === 0) return [content, await derive('signing key', receipt, 64)]
  return [content]
}

async function batch () {
  /** @type {Buffer[][]} */
  const documents = [] // A batch is freed completely or not at all.
  async function lane () {
    while (documents.length < BATCH) documents.push(await archive())
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

/** Work between batches: single documents, and searches with results retained for a second. */
async function quiet () {
  /** @type {unknown[]} */
  const results = []
  for (let i = 0; i < QUIET_SECONDS * 20; i++) {
    await archive()
    results[i % 20] = JSON.parse(JSON.stringify(index.slice(i * 500, i * 500 + 500)))
    await wait(50)
  }
}

async function main () {
  for (;;) {
    await batch()
    await quiet()
  }
}

main()
