'use strict'

const fs = require('node:fs')
const { pipeline, Readable } = require('node:stream')
const { createGunzip } = require('node:zlib')
const { SourceError } = require('./define-source')

/**
 * Number of searched bytes after which a file is not recognised. It is large, because an app may
 * print much before its first GC.
 */
const MOST_HEAD_BYTES = 2 ** 23
const CHUNK_BYTES = 2 ** 16
const GZIP = [0x1f, 0x8b]
/** A path by which a shell passes another command's output: <(command). */
const OWN_DESCRIPTOR = /^\/(dev|proc\/(self|\d+))\/(fd\/\d+|stdin)$/

/**
 * @typedef {object} Opened
 * @property {string} name
 * @property {string} head the first characters, unpacked: as many as `enough` needs
 * @property {() => AsyncGenerator<Buffer>} bytes the whole file, unpacked; readable once
 * @property {boolean} cut true if the compressed data is incomplete; known once all bytes are read
 */

/**
 * Opens a file, or stdin under the name -. Compressed input is unpacked, whatever its name.
 *
 * @param {string} name
 * @param {object} [options]
 * @param {(head: string) => boolean} [options.enough] true if the head is long enough to show the
 *   kind
 * @param {(share: number) => void} [options.onProgress] called with the share of the file that was
 *   read; not for stdin, which has no length
 * @returns {Promise<Opened>}
 * @throws {SourceError} if it is unreadable, with the reason
 */
async function openInput (name, { enough = () => true, onProgress = () => {} } = {}) {
  /** @type {Opened} */
  const opened = { name, head: '', bytes: () => whole(), cut: false }
  const unpacked = unpack(raw(name, onProgress), opened)
  /** @type {Buffer[]} */
  const first = []
  let bytes = 0
  let triedBytes = 0
  for (;;) {
    const { done, value } = await unpacked.next()
    if (!done) {
      first.push(value)
      bytes += value.length
      // The head is examined each time its length has doubled, so that a long one is not examined a
      // thousand times.
      if (bytes < 2 * triedBytes) continue
    }
    triedBytes = bytes
    opened.head = Buffer.concat(first).toString('utf8')
    if (done || enough(opened.head) || bytes >= MOST_HEAD_BYTES) break
  }
  return opened

  async function * whole () {
    yield * first.splice(0)
    yield * unpacked
  }
}

/**
 * @param {string} name
 * @param {(share: number) => void} onProgress
 * @returns {AsyncGenerator<Buffer>}
 */
async function * raw (name, onProgress) {
  if (name === '-') return yield * stdin()
  let size = 0
  try {
    const stat = fs.statSync(name)
    if (!stat.isFile() && !OWN_DESCRIPTOR.test(name)) {
      throw new SourceError(`cannot read ${name}: ${whatIs(stat)}`)
    }
    size = stat.size
    let read = 0
    for await (const chunk of fs.createReadStream(name, { highWaterMark: CHUNK_BYTES })) {
      yield chunk
      onProgress(Math.min(1, (read += chunk.length) / size))
    }
  } catch (error) {
    if (error instanceof SourceError) throw error
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    throw new SourceError(`cannot read ${name}: ${code === 'ENOENT' ? 'no such file' : message}`)
  }
}

/** @param {fs.Stats} stat stat of anything but a regular file */
function whatIs (stat) {
  if (stat.isDirectory()) return 'it is a folder'
  if (stat.isFIFO()) {
    return 'it is a named pipe, and reading it could wait forever; use - to ' +
    'read stdin'
  }
  return 'it is a device or socket'
}

/**
 * Reads piped input until its end, or until Ctrl-C, which ends the reading but keeps the data.
 * @returns {AsyncGenerator<Buffer>}
 */
async function * stdin () {
  let interrupted = false
  const interrupt = () => {
    interrupted = true
    process.stdin.destroy()
  }
  process.once('SIGINT', interrupt)
  try {
    yield * process.stdin
  } catch (error) {
    if (!interrupted) throw error
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/**
 * @param {AsyncGenerator<Buffer>} chunks
 * @param {Opened} opened
 * @returns {AsyncGenerator<Buffer>}
 */
async function * unpack (chunks, opened) {
  const { done, value: first } = await chunks.next()
  if (done) return
  if (first[0] !== GZIP[0] || (first.length > 1 && first[1] !== GZIP[1])) {
    yield first
    return yield * chunks
  }
  // pipe() would leave gunzip waiting forever after a read error.
  const gunzip = pipeline(Readable.from(chained(first, chunks)), createGunzip(), () => {})
  try {
    yield * gunzip
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    if (error instanceof SourceError) throw error
    if (code !== 'Z_BUF_ERROR') {
      throw new SourceError(
        `cannot read ${opened.name}: expected gzip, got a damaged or uncompressed file (${message})`
      )
    }
    opened.cut = true
  }
}

/**
 * @param {Buffer} first
 * @param {AsyncIterable<Buffer>} rest
 * @returns {AsyncGenerator<Buffer>}
 */
async function * chained (first, rest) {
  yield first
  yield * rest
}

module.exports = { openInput }
