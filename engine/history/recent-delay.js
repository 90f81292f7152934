'use strict'

const { PAUSE_ROW } = require('@memwatch/agent/protocol/frame')

/** Frames of event loop delay in the window: half a minute at one frame a second. */
const FRAMES = 30

/**
 * Event loop delay of the last half minute. The window moves with the agent's frames and is never
 * reset, so two scrapers read the same numbers.
 */
class RecentDelay {
  /** @type {import('@memwatch/agent/protocol/frame').PauseRow[]} */
  #rows = []

  /** @param {import('@memwatch/agent/protocol/frame').PauseRow | undefined} row */
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
    const [countBefore, sumBefore, , bucketsBefore] = this.#rows[0]
    const [countNow, sumNow, , bucketsNow] = this.#rows[this.#rows.length - 1]
    const count = countNow - countBefore
    let longestSeconds = 0
    for (let i = 1; i < this.#rows.length; i++) {
      longestSeconds = Math.max(longestSeconds, this.#rows[i][PAUSE_ROW.longestSeconds])
    }
    return {
      count,
      meanSeconds: count > 0 ? (sumNow - sumBefore) / count : 0,
      longestSeconds,
      buckets: bucketsNow.map((value, i) => value - bucketsBefore[i])
    }
  }
}

module.exports = { RecentDelay }
