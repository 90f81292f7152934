'use strict'

/** @typedef {{ burst: number, perSecond: number }} Rate */

/**
 * A rate limit: requests use up tokens, which refill with time.
 * https://en.wikipedia.org/wiki/Token_bucket
 */
class TokenBucket {
  #rate
  #tokens
  #atMs

  /**
   * @param {Rate} rate
   * @param {number} nowMs monotonic
   */
  constructor (rate, nowMs) {
    this.#rate = rate
    this.#tokens = rate.burst
    this.#atMs = nowMs
  }

  /**
   * @param {number} nowMs
   * @returns {boolean} true if a token was left
   */
  take (nowMs) {
    if (this.#left(nowMs) < 1) return false
    this.#tokens--
    return true
  }

  /**
   * Charges tokens even if too few are left; the debt is at most one burst.
   * @param {number} tokens
   */
  charge (tokens) {
    this.#tokens = Math.max(this.#tokens - tokens, -this.#rate.burst)
  }

  /** @param {number} nowMs */
  isFull (nowMs) {
    return this.#left(nowMs) === this.#rate.burst
  }

  /** @param {number} nowMs */
  #left (nowMs) {
    const { burst, perSecond } = this.#rate
    this.#tokens = Math.min(burst, this.#tokens + (nowMs - this.#atMs) / 1000 * perSecond)
    this.#atMs = nowMs
    return this.#tokens
  }
}

module.exports = { TokenBucket }
