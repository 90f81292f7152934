'use strict'

const fs = require('node:fs')
const { finished, pipeline } = require('node:stream/promises')
const { createGzip, constants } = require('node:zlib')
const { RECORDING_VERSION, isCompressed } = require('@memwatch/engine/recording/format')

/**
 * Longest interval between two writes of compressed data: a killed exporter loses at most the data
 * of this time.
 */
const FLUSH_MS = 10_000

/**
 * Writes a recording. A full disk ends the recording, not the exporter; `failed` contains the
 * reason.
 */
class Recorder {
  /**
   * Stream that receives the text: the file, or its compressor.
   * @type {import('node:stream').Writable}
   */
  #sink
  /** Resolves when the file is closed. @type {Promise<void>} */
  #done
  #isStopped = false
  #sessions = 0
  /** @type {NodeJS.Timeout | undefined} */
  #flush
  /** @type {Error | undefined} */
  failed

  /**
   * @param {string} path
   * @param {{ command?: string[], onError?: (error: Error) => void }} [options]
   * @throws {Error} if the file cannot be opened
   */
  constructor (path, { command, onError = () => {} } = {}) {
    const fd = fs.openSync(path, 'w', 0o600)
    const file = fs.createWriteStream(path, { fd })
    if (isCompressed(path)) {
      const gzip = createGzip()
      this.#sink = gzip
      this.#done = pipeline(gzip, file)
      this.#flush = setInterval(() => gzip.flush(constants.Z_SYNC_FLUSH), FLUSH_MS)
      this.#flush.unref()
    } else {
      this.#sink = file
      this.#done = finished(file)
    }
    this.#done = this.#done.catch(error => {
      this.failed = error
      clearInterval(this.#flush)
      onError(error)
    })
    this.#write({ memwatch: 'recording', version: RECORDING_VERSION, command })
  }

  /**
   * Starts the session of a connection.
   * @param {string} hello line of the hello
   * @returns {{ line: (line: string) => void, closed: () => void }}
   */
  session (hello) {
    const session = ++this.#sessions
    const line = (/** @type {string} */ text) =>
      this.#writeText(`{"session":${session},"line":${text}}\n`)
    line(hello)
    return { line, closed: () => this.#write({ session, closed: true }) }
  }

  /**
   * @param {import('@memwatch/engine/recording/format').End} [end]
   * @returns {Promise<void>} resolves when all data is on disk, or the recording has failed
   */
  async stop (end) {
    if (end) this.#write({ end })
    // Connections that close from now on must not write: an ended stream would fail.
    this.#isStopped = true
    clearInterval(this.#flush)
    this.#sink.end()
    await this.#done
  }

  /** @param {object} item */
  #write (item) {
    this.#writeText(JSON.stringify(item) + '\n')
  }

  /** @param {string} text */
  #writeText (text) {
    if (!this.failed && !this.#isStopped) this.#sink.write(text)
  }
}

module.exports = { Recorder }
