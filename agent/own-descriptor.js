'use strict'

const { closeSync, fstatSync, readSync, writeSync } = require('./primordials')

/** Error: the app closed a descriptor of the agent. */
class LostDescriptor extends Error {}

/**
 * A descriptor that stays open across turns of the app. An app may close descriptors that are not
 * its own, and the kernel gives the number to the next file: device and inode identify the file.
 * One `fstat` takes about 1 µs.
 */
class OwnDescriptor {
  #fd
  #dev
  #ino

  /**
   * @param {number} fd
   * @throws error of fstat
   */
  constructor (fd) {
    const { dev, ino } = fstatSync(fd)
    this.#fd = fd
    this.#dev = dev
    this.#ino = ino
  }

  /** @returns {boolean} false: the number is closed, or belongs to another file */
  isOwn () {
    try {
      const { dev, ino } = fstatSync(this.#fd)
      return ino === this.#ino && dev === this.#dev
    } catch {
      return false
    }
  }

  /**
   * @param {Buffer} buffer filled from its start
   * @param {number} length bytes
   * @param {number | null} position in the file; null: end of the last read
   * @returns {number} bytes
   * @throws {LostDescriptor | NodeJS.ErrnoException}
   */
  read (buffer, length, position) {
    if (!this.isOwn()) throw new LostDescriptor()
    return readSync(this.#fd, buffer, 0, length, position)
  }

  /**
   * @template {string | Buffer} Content
   * @param {Content} content
   * @param {Content extends Buffer ? number : never} [offset]
   * @param {Content extends Buffer ? number : never} [length]
   * @returns {number} bytes
   * @throws {LostDescriptor | NodeJS.ErrnoException}
   */
  write (content, offset, length) {
    if (!this.isOwn()) throw new LostDescriptor()
    return typeof content === 'string'
      ? writeSync(this.#fd, content)
      : writeSync(this.#fd, content, offset, length)
  }

  close () {
    if (this.isOwn()) closeSync(this.#fd)
  }
}

/**
 * @param {import('node:net').Socket | undefined} socket
 * @returns {OwnDescriptor | undefined} undefined: a Windows pipe, or not yet open
 */
function findDescriptor (socket) {
  const fd = /** @type {{ _handle?: { fd?: number } } | undefined} */ (/** @type {unknown} */ (socket))?._handle?.fd
  return fd !== undefined && fd >= 0 ? new OwnDescriptor(fd) : undefined
}

module.exports = { OwnDescriptor, LostDescriptor, findDescriptor }
