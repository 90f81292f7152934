'use strict'

/** @typedef {import('./memory-look').Look} Look */

/**
 * Anonymous memory may move by this share while it is scanned: by more, the parts that the scan
 * found are of different moments.
 */
const MOVED_SHARE = 0.02

/**
 * One scan of the memory map, taken in pieces or at once. It measures the time it took, and between
 * which bounds anonymous memory moved meanwhile.
 */
class MemoryScan {
  #pieces
  #anonBytes
  #now
  #leastBytes = Infinity
  #mostBytes = 0
  /** @type {Look | undefined} */
  #result

  /**
   * @param {Generator<void, Look>} pieces
   * @param {object} options
   * @param {() => number} options.anonBytes anonymous memory of the process
   * @param {() => number} options.now seconds
   * @param {number} [options.wastedSeconds] what scans before it took in vain
   */
  constructor (pieces, { anonBytes, now, wastedSeconds = 0 }) {
    this.#pieces = pieces
    this.#anonBytes = anonBytes
    this.#now = now
    this.beganSeconds = now()
    /** CPU of the app's thread, wasted scans included. */
    this.tookSeconds = wastedSeconds
  }

  /** What was found. @returns {Look} */
  get result () {
    return /** @type {Look} */ (this.#result)
  }

  /**
   * Scans for about so long.
   * @param {number} seconds
   * @returns {boolean} whether the scan is complete
   * @throws where /proc cannot be read, now or ever: see isTemporary of read-file.js
   */
  runFor (seconds) {
    const from = this.#now()
    this.#noteAnonBytes()
    let isComplete = false
    while (!isComplete && this.#now() - from < seconds) isComplete = this.#step()
    this.#noteAnonBytes()
    this.tookSeconds += this.#now() - from
    return isComplete
  }

  /** Scans all that is left, without a pause. @throws as runFor */
  runToEnd () {
    const from = this.#now()
    while (!this.#step());
    this.#noteAnonBytes()
    this.tookSeconds += this.#now() - from
  }

  /** Closes the files of a scan that is not complete. */
  cancel () {
    this.#pieces.return(/** @type {any} */ (undefined))
  }

  /**
   * @param {number | undefined} anonBytes as of now
   * @returns {boolean} whether the result mixes memory of different moments
   */
  isMixed (anonBytes) {
    if (!this.result.resident || anonBytes === undefined) return false
    const least = Math.min(this.#leastBytes, anonBytes)
    return Math.max(this.#mostBytes, anonBytes) - least > MOVED_SHARE * anonBytes
  }

  /** @returns {boolean} whether the scan is complete */
  #step () {
    const { done, value } = this.#pieces.next()
    if (!done) return false
    this.#result = value
    return true
  }

  #noteAnonBytes () {
    try {
      const bytes = this.#anonBytes()
      this.#leastBytes = Math.min(this.#leastBytes, bytes)
      this.#mostBytes = Math.max(this.#mostBytes, bytes)
    } catch {} // a scan without it is not known to be mixed
  }
}

module.exports = { MemoryScan, MOVED_SHARE }
