'use strict'

/** @typedef {import('./memory-reader').Breakdown} Breakdown */
/**
 * @typedef {Pick<typeof import('../primordials'), 'measureCpu'> & { now: () => number }} Clock now:
 *   seconds
 */

/**
 * If anonymous memory changes by more than this share, the parts of a scan describe different
 * moments.
 */
const MOVED_SHARE = 0.02

/**
 * One scan of the memory map, in pieces or in one go. It measures its time, and the bounds of
 * anonymous memory meanwhile.
 */
class MemoryScan {
  #pieces
  #anonBytes
  #now
  #measureCpu
  #leastBytes = Infinity
  #mostBytes = 0
  /** @type {Breakdown | undefined} */
  #result

  /**
   * @param {Generator<void, Breakdown>} pieces
   * @param {Clock & { anonBytes: () => number, wastedSeconds?: number }} options anonBytes: of the
   *   process; wastedSeconds: CPU time of earlier, wasted scans
   */
  constructor (pieces, { anonBytes, now, measureCpu, wastedSeconds = 0 }) {
    this.#pieces = pieces
    this.#anonBytes = anonBytes
    this.#now = now
    this.#measureCpu = measureCpu
    this.beganSeconds = now()
    /** CPU time of this scan and of the wasted scans before it. */
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
    const cpuSeconds = this.#measureCpu()
    this.#noteAnonBytes()
    let isComplete = false
    while (!isComplete && this.#now() - from < seconds) isComplete = this.#step()
    this.#noteAnonBytes()
    this.tookSeconds += cpuSeconds()
    return isComplete
  }

  /** Scans the rest without a pause. @throws as runFor */
  runToEnd () {
    const cpuSeconds = this.#measureCpu()
    while (!this.#step());
    this.#noteAnonBytes()
    this.tookSeconds += cpuSeconds()
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
