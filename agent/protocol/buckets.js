'use strict'

/** Cumulative counts of durations in fixed buckets. */
class Buckets {
  #bounds
  /** One count per bound, and one for longer durations. */
  counts
  count = 0
  sumSeconds = 0
  longestSeconds = 0

  /** @param {readonly number[]} bounds upper bounds in seconds, ascending */
  constructor (bounds) {
    this.#bounds = bounds
    this.counts = new Array(bounds.length + 1).fill(0)
  }

  /** @param {number} seconds */
  add (seconds) {
    let i = 0
    while (i < this.#bounds.length && seconds > this.#bounds[i]) i++
    this.counts[i]++
    this.count++
    this.sumSeconds += seconds
    if (seconds > this.longestSeconds) this.longestSeconds = seconds
  }

  /**
   * Adds durations counted elsewhere, in buckets of the same bounds.
   * @param {ArrayLike<number>} counted a row of the wire contract, flat: count, sum, longest,
   *   buckets
   * @param {number} at its start
   */
  addCounted (counted, at) {
    this.count += counted[at]
    this.sumSeconds += counted[at + 1]
    if (counted[at + 2] > this.longestSeconds) this.longestSeconds = counted[at + 2]
    for (let i = 0; i < this.counts.length; i++) this.counts[i] += counted[at + 3 + i]
  }

  /** Row of the wire contract. @returns {import('./frame').PauseRow} */
  get row () {
    return [this.count, this.sumSeconds, this.longestSeconds, this.counts]
  }
}

module.exports = { Buckets }
