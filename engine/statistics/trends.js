'use strict'

const { MAX_POINTS } = require('./trend')

/** A trend is never older than this. */
const OLDEST_SECONDS = 300

/**
 * @typedef {object} Found
 * @property {import('./trend').Trend | null} trend
 * @property {number} readings that there were
 * @property {number | null} [share] of a rise that something explains
 * @property {number | null} [mostShare] of it that this may explain, within the error
 * @property {boolean} [isNew] whether it leads above what was before it
 */

/**
 * Trends that were computed, each kept until a further point is due. A trend over a span rests on
 * so many merged points, so one of them stands for that share of the span: sooner than that a new
 * one would say the same.
 */
class Trends {
  /** @type {Map<string, { atSeconds: number, found: Found }>} */
  #known = new Map()
  /** @type {Map<string, { version: number, result: any }>} */
  #versions = new Map()

  /**
   * @param {string} name
   * @param {number} nowSeconds
   * @param {number} spanSeconds
   * @param {() => Found} compute
   * @returns {Found}
   */
  get (name, nowSeconds, spanSeconds, compute) {
    const known = this.#known.get(name)
    if (
      known &&
      nowSeconds - known.atSeconds < Math.min(spanSeconds / MAX_POINTS, OLDEST_SECONDS)
    ) {
      return known.found
    }
    const found = compute()
    this.#known.set(name, { atSeconds: nowSeconds, found })
    return found
  }

  /**
   * What holds as long as nothing is added to that which it is computed from.
   * @template T
   * @param {string} name
   * @param {number} version
   * @param {() => T} compute
   * @returns {T}
   */
  atVersion (name, version, compute) {
    const known = this.#versions.get(name)
    if (known && known.version === version) return known.result
    const result = compute()
    this.#versions.set(name, { version, result })
    return result
  }
}

module.exports = { Trends }
