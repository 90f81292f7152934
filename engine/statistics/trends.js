'use strict'

const { MAX_POINTS } = require('./trend')

/** Upper bound of the age of a trend. */
const OLDEST_SECONDS = 300

/**
 * @typedef {object} Found
 * @property {import('./trend').Trend | null} trend
 * @property {number} readings number of readings
 * @property {number | null} [share] share of the rise that the load explains
 * @property {number | null} [mostShare] upper bound of that share, within the standard error
 * @property {boolean} [isNew] true if the rise exceeds all earlier values
 */

/**
 * Cached trends and other values over a span, each valid until the next merged point is due. A
 * trend uses a fixed number of merged points, so each point covers a fixed share of the span.
 * Recomputing it earlier would give nearly the same result.
 */
class Trends {
  /** @type {Map<string, { atSeconds: number, found: any }>} */
  #known = new Map()
  /** @type {Map<string, { version: number, result: any }>} */
  #versions = new Map()

  /**
   * @template T
   * @param {string} name
   * @param {number} nowSeconds
   * @param {number} spanSeconds
   * @param {() => T} compute
   * @returns {T}
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
   * Cached value, valid until its source gets a new row.
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
