'use strict'

// retainers.js starts this side process, which analyses or redacts one heap snapshot. Its heap is
// bounded, and it ends with its parent.

const fs = require('node:fs')
const os = require('node:os')
const { createGunzip } = require('node:zlib')
const { findHolders } = require('@memwatch/engine/snapshot/findings')
const { HeapGraphReader } = require('@memwatch/engine/snapshot/heap-graph')
const { Redactor } = require('@memwatch/engine/snapshot/redact')
const { SnapshotIdsReader } = require('@memwatch/engine/snapshot/snapshot-ids')
const { openRegularFile, readBytes } = require('../data-folder/regular-file')

/** @typedef {import('./retainers').Job} Job */
/** @typedef {import('./retainers').Answer} Answer */

const PIECE_BYTES = 2 ** 20
const GZIP = Buffer.from([0x1f, 0x8b])
/**
 * Programs that serve requests run first. The lowest priority (19) would get 1 % of a busy core,
 * where an analysis of three seconds takes minutes.
 */
const { PRIORITY_BELOW_NORMAL } = os.constants.priority

const send = (/** @type {Answer} */ answer) =>
  new Promise(resolve => process.send?.(answer, undefined, {}, resolve))

/**
 * @template T
 * @param {string} file path of a snapshot, compressed by gzip or plain
 * @param {{ write (chunk: Buffer): void, end (): T }} reader
 * @returns {Promise<T>}
 */
async function feed (file, reader) {
  // A snapshot written by V8 is in a folder of the app, where a link may lead to any file.
  const { fd, bytes: size } = openRegularFile(file)
  const begin = readBytes(fd, GZIP.length)
  const bytes = fs.createReadStream('', { fd, start: 0, highWaterMark: PIECE_BYTES })
  const plain = begin.equals(GZIP) ? bytes.pipe(createGunzip()) : bytes
  bytes.on('error', error => plain.destroy(error))
  let percent = -1
  for await (const chunk of plain) {
    reader.write(chunk)
    const now = Math.floor((100 * bytes.bytesRead) / Math.max(1, size))
    if (now !== percent) send({ progress: `${percent = now} % of ${file}` })
  }
  return reader.end()
}

/**
 * @param {Job} job
 * @returns {Promise<Answer>}
 */
async function work ({ file, earlier, allowedBytes, agentFolder, redactTo }) {
  if (redactTo !== undefined) {
    // Only this user can read the copy: a person should check it before others get it.
    const to = fs.openSync(redactTo, 'wx', 0o600)
    const redactor = new Redactor(bytes => writeAll(to, bytes))
    try {
      await feed(file, redactor)
      return { redacted: redactor.redacted }
    } catch (error) {
      fs.rmSync(redactTo, { force: true })
      throw error
    } finally {
      fs.closeSync(to)
    }
  }
  const ids = earlier && await feed(earlier, new SnapshotIdsReader({ allowedBytes }))
  const graph = await feed(file, new HeapGraphReader({ allowedBytes }))
  const isNew = ids ? ids.compare(graph) : undefined
  const onProgress = (/** @type {string} */ what) => { send({ progress: what }) }
  const findings = findHolders(graph, { isNew, agentFolder, onProgress })
  return { findings, peakBytes: process.resourceUsage().maxRSS * 1024 }
}

/**
 * @param {number} descriptor
 * @param {Buffer} bytes
 */
function writeAll (descriptor, bytes) {
  for (let at = 0; at < bytes.length;) at += fs.writeSync(descriptor, bytes, at)
}

process.once('message', async job => {
  // A process may not raise its priority.
  if (os.getPriority() < PRIORITY_BELOW_NORMAL) os.setPriority(PRIORITY_BELOW_NORMAL)
  /** @type {Answer} */
  const answer = await work(/** @type {Job} */ (job)).catch(error => {
    const { code, message, predictedBytes, allowedBytes } = error
    return { failed: { code: String(code), message, predictedBytes, allowedBytes } }
  })
  await send(answer)
  process.disconnect()
})
process.on('disconnect', () => process.exit())
