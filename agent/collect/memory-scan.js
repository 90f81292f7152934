'use strict'

/** @typedef {import('./memory-reader').Breakdown} Breakdown */

/** Beyond this move of anonymous memory, the parts of a scan describe different moments. */
const MOVED_SHARE = 0.02

/**
 * One scan of the memory map, in pieces or in one go. It measures its time, and the bounds of
 * anonymous memory meanwhile.
 */
class MemoryScan {
  #pieces
  #anonBytes
  #now
  #startCost
  #leastBytes = Infinity
  #mostBytes = 0
  /** @type {Breakdown | undefined} */
  #result

  /**
   * @param {Generator<void, Breakdown>} pieces
   * @param {object} options
   * @param {() => number} options.anonBytes anonymous memory of the process
   * @param {() => number} options.now seconds
   * @param {typeof import('../primordials').startCost} options.startCost
   * @param {number} [options.wastedSeconds] time of earlier, wasted scans
   */
  constructor (pieces, { anonBytes, now, startCost, wastedSeconds = 0 }) {
    this.#pieces = pieces
    this.#anonBytes = anonBytes
    this.#now = now
    this.#startCost = startCost
    this.beganSeconds = now()
    /** CPU time, with wasted scans. */
    this.tookSeconds = wastedSeconds
  }

  /** @returns {Breakdown} */
  get result () {
    return /** @type {Breakdown} */ (this.#result)
  }

  /**
   * Scans for about this time.
   * @param {number} seconds
   * @returns {boolean} true: complete
   * @throws /proc is unreadable, for now or forever: isTemporary of read-file.js
   */
  runFor (seconds) {
    const from = this.#now()
    const cost = this.#startCost()
    this.#noteAnonBytes()
    let isComplete = false
    while (!isComplete && this.#now() - from < seconds) isComplete = this.#step()
    this.#noteAnonBytes()
    this.tookSeconds += cost()
    return isComplete
  }

  /** Scans the rest without a pause. @throws as runFor */
  runToEnd () {
    const cost = this.#startCost()
    while (!this.#step());
    this.#noteAnonBytes()
    this.tookSeconds += cost()
  }

  /** Closes the files of an incomplete scan. */
  cancel () {
    this.#pieces.return(/** @type {any} */ (undefined))
  }

  /**
   * @param {number | undefined} anonBytes current value
   * @returns {boolean} true: the result mixes memory of different moments
   */
  isMixed (anonBytes) {
    if (!this.result.resident || anonBytes === undefined) return false
    const least = Math.min(this.#leastBytes, anonBytes)
    return Math.max(this.#mostBytes, anonBytes) - least > MOVED_SHARE * anonBytes
  }

  /** @returns {boolean} true: complete */
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
    } catch {} // an unknown value proves no mix
  }
}

module.exports = { MemoryScan, MOVED_SHARE }
