'use strict'

const { RATE_SECONDS } = require('../history/window')
const { readPredicted } = require('./outcome')
const { MOST_READINGS } = require('./follow-up')

/**
 * Readings of one process for follow-ups: values of the predicted signals and the work done at the
 * time, for the last ten minutes.
 */
class FollowUpReadings {
  /** @type {import('./follow-up').LoadedReading[]} */
  all = []
  /** Counts of allocated bytes in the window of the signals. @type {{ at: number, bytes: number }[]} */
  #allocated = []
  #settleSeconds

  /**
   * @param {object} [options]
   * @param {number} [options.settleSeconds] a reading counts if the start phase ended this long
   *   ago, the length of the signals' window
   */
  constructor ({ settleSeconds = RATE_SECONDS } = {}) {
    this.#settleSeconds = settleSeconds
  }

  /**
   * @param {import('../history/target').Target} target
   * @param {readonly import('./outcome').Predicted[]} predicted
   */
  add (target, predicted) {
    const window = target.window()
    if (!window) return
    const { nowSeconds, values: { heapAllocatedBytes } } = window
    const allocatedPerSecond = heapAllocatedBytes === undefined
      ? null
      : this.#rateOf(nowSeconds, heapAllocatedBytes)
    if (window.settledSeconds(this.#settleSeconds) < this.#settleSeconds) return
    this.all.push({
      values: readPredicted(target, predicted, RATE_SECONDS),
      workRatio: window.rate('workSeconds'),
      allocatedPerSecond
    })
    if (this.all.length > MOST_READINGS) this.all.shift()
  }

  /**
   * @param {number} at uptime
   * @param {number} bytes allocated since the start
   * @returns {number | null} bytes per second
   */
  #rateOf (at, bytes) {
    this.#allocated = this.#allocated.filter(point => at - point.at <= RATE_SECONDS)
    const [first] = this.#allocated
    this.#allocated.push({ at, bytes })
    return first && at > first.at ? (bytes - first.bytes) / (at - first.at) : null
  }
}

module.exports = { FollowUpReadings }
