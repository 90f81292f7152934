'use strict'

// An image-and-archive worker: batches of documents of mixed sizes are read from disk, packed, hashed and encrypted in
// the thread pool, then all freed. Small digests of each live on for a few batches and pin the pages between. Nothing
// leaks: live memory returns to the same level after every batch. But glibc keeps the freed holes, and RSS stays far
// above need. An allocator that returns them (jemalloc with a background thread) does not.
const { randomBytes } = require('node:crypto')
const fs = require('node:fs/promises')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const { promisify } = require('node:util')
const zlib = require('node:zlib')
const { appRun } = require('../app-run')

const deflate = promisify(zlib.deflate)
const KB = 1024
const BATCH = 2500
const LANES = 8
const KEPT_BATCHES = 6
const QUIET_MS = 6000

/** @type {{ id: number, title: string, words: string[] }[]} the catalogue: a stable live heap of about 100 MB */
const catalogue = Array.from({ length: 90_000 }, (_, id) => ({
  id, title: `document ${id}`, words: Array.from({ length: 24 }, (_, i) => `w${id % 997}-${i}`)
}))
/** @type {Buffer[][]} digests of the last batches: oldest out, so their number is bounded */
const kept = []
let batches = 0

const run = appRun({ work: 'documents', figures: () => ({ batches, catalogue: catalogue.length }) })
const file = path.join(os.tmpdir(), `memwatch-lab-${process.pid}`)
run.onEnd(() => require('node:fs').rmSync(file, { force: true }))

/** @returns {number} bytes, 1 to 120 KB, mostly small */
function documentBytes () {
  return Math.floor((1 + 119 * Math.random() ** 2) * KB)
}

/** @param {import('node:fs/promises').FileHandle} handle */
async function readDocument (handle) {
  const document = Buffer.allocUnsafeSlow(documentBytes())
  await handle.read(document, 0, document.length, Math.floor(Math.random() * 100) * KB)
  return document
}

async function batch () {
  const handle = await fs.open(file, 'r')
  /** @type {Buffer[]} */
  const documents = []
  /** @type {Buffer[]} */
  const digests = []
  async function lane () {
    for (let i = 0; i < BATCH / LANES; i++) {
      const document = await readDocument(handle)
      documents.push(document)
      const digest = Buffer.allocUnsafeSlow(64 + Math.floor(Math.random() * 960))
      digests.push(document.copy(digest) ? digest : digest)
      if (i % 10 === 0) documents.push(await deflate(document, { level: 1 }))
      run.served()
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  await handle.close()
  kept.push(digests)
  if (kept.length > KEPT_BATCHES) kept.shift()
  batches++
}

async function main () {
  await fs.writeFile(file, randomBytes(256 * KB))
  for (;;) {
    await batch()
    await wait(QUIET_MS)
  }
}

main()
