'use strict'

const fs = require('node:fs')
const { promisify } = require('node:util')

const fsync = promisify(fs.fdatasync)
const truncate = promisify(fs.ftruncate)

/** The file to which records of a family are appended at present. */
class Segment {
  #fd
  bytes = 0

  /**
   * @param {string} file a new file
   * @param {number} openedMs
   * @throws {Error} of the file system
   */
  constructor (file, openedMs) {
    this.file = file
    this.openedMs = openedMs
    this.#fd = fs.openSync(file, 'wx', 0o600)
  }

  /**
   * @param {Buffer} bytes
   * @throws {Error} error of the file system; the caller must call takeBack then
   */
  async append (bytes) {
    for (let written = 0; written < bytes.length;) {
      written += await /** @type {Promise<number>} */ (new Promise((resolve, reject) => {
        fs.write(
          this.#fd,
          bytes,
          written,
          bytes.length - written,
          this.bytes + written,
          (error, more) => (error ? reject(error) : resolve(more))
        )
      }))
    }
    this.bytes += bytes.length
  }

  /**
   * Removes a partial append, after which no record could be found.
   * @returns {Promise<boolean>} true if more can be appended; false if the file was closed
   */
  async takeBack () {
    try {
      await truncate(this.#fd, this.bytes)
      if (this.bytes > 0) return true
      fs.rmSync(this.file)
    } catch {}
    await this.close()
    return false
  }

  /** True if somebody removed the file or its folder; data written to it is lost then. */
  get isRemoved () {
    return fs.fstatSync(this.#fd).nlink === 0
  }

  /**
   * Flushes the data to disk, so that it survives a power failure.
   * @throws {Error} of the file system
   */
  sync () {
    return fsync(this.#fd)
  }

  async close () {
    await this.sync().catch(() => {})
    fs.closeSync(this.#fd)
  }
}

module.exports = { Segment }
