'use strict'

/** Frames of event loop delay that are kept: half a minute at one a second. */
const FRAMES = 30

/**
 * @typedef {[count: number, sumSeconds: number, longestSeconds: number, buckets: number[]]}
 *   DelayRow as on the wire
 */

/**
 * The event loop delay of the last half minute. Windows are cut on the agent's frames and never
 * reset, so two scrapers read the same numbers.
 */
class RecentDelay {
  /** @type {DelayRow[]} */
  #rows = []

  /** @param {DelayRow | undefined} row */
  append (row) {
    if (!row) return
    this.#rows.push(row)
    if (this.#rows.length > FRAMES + 1) this.#rows.shift()
  }

  /**
   * @returns
   *   {{ count: number, meanSeconds: number, longestSeconds: number, buckets: number[] } | null}
   *   null before the second frame
   */
  get summary () {
    if (this.#rows.length < 2) return null
    const first = this.#rows[0]
    const last = this.#rows[this.#rows.length - 1]
    const count = last[0] - first[0]
    return {
      count,
      meanSeconds: count > 0 ? (last[1] - first[1]) / count : 0,
      longestSeconds: this.#rows.slice(1).reduce((longest, row) => Math.max(longest, row[2]), 0),
      buckets: last[3].map((value, i) => value - first[3][i])
    }
  }
}

module.exports = { RecentDelay }
