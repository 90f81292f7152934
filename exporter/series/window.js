'use strict'

const { Trends } = require('../statistics/trends')
const { NO_WORKERS } = require('./tracks')

/** How far back a rate looks when nothing else is said: long enough for dozens of GCs, short enough to follow a load. */
const RATE_SECONDS = 30
/** What counts as the start of a life. */
const START_SHARE = 0.2
const START_LEAST_SECONDS = 10
const START_MOST_SECONDS = 300

/** @typedef {{ readonly times: number[], readonly values: number[] }} Points */

/**
 * What signals may read: one target as it stands at one moment. It never reads a clock, so a replay sees what live saw.
 */
class Window {
  #history
  #trends
  /** @type {Map<string, any>} */
  #known = new Map()
  /** What was read already: signals share tracks and spans. @type {{ track: import('./tracks').TrackName, seconds: number, points: Points }[]} */
  #read = []

  /**
   * @param {object} at
   * @param {import('./history').History} at.history
   * @param {import('memwatch/frame').Hello} at.hello
   * @param {import('memwatch/frame').Frame} at.frame the newest
   * @param {import('memwatch/frame').Frame['values']} at.values the newest value of every field
   * @param {import('./tracks').Workers} [at.workers] what the other threads of the process hold
   * @param {import('../anatomy/scan').Scan} [at.scan] the last look at where the memory lies
   * @param {import('../statistics/trends').Trends} [at.trends] those of this target that were computed before
   */
  constructor ({ history, hello, frame, values, workers = NO_WORKERS, scan, trends = new Trends() }) {
    this.#history = history
    this.#trends = trends
    this.hello = hello
    this.nowSeconds = frame.uptimeSeconds
    this.values = values
    this.workers = workers
    this.scan = scan
  }

  /**
   * The same moment, were some of its newest values others: of what is not known, and has bounds.
   * @param {{ values: import('memwatch/frame').Frame['values'], hello: import('memwatch/frame').Hello }} other
   * @returns {Window}
   */
  assuming ({ values, hello }) {
    return new Window({
      history: this.#history,
      hello,
      frame: { sequence: 0, atUnixMs: 0, uptimeSeconds: this.nowSeconds, values: {} },
      values: { ...this.values, ...values },
      workers: this.workers,
      scan: this.scan,
      trends: this.#trends
    })
  }

  /**
   * The points of the last `seconds`, oldest first.
   * @param {import('./tracks').TrackName} track @param {number} [seconds]
   * @returns {Points} that others read, too
   */
  points (track, seconds = Infinity) {
    for (const known of this.#read) if (known.track === track && known.seconds === seconds) return known.points
    const points = this.#history.points(track, this.nowSeconds - seconds)
    this.#read.push({ track, seconds, points })
    return points
  }

  /**
   * The last `seconds`, or less: a process that starts frees much of what it took to start, which is no sign of how it lives.
   * @param {number} seconds
   */
  settledSeconds (seconds) {
    const start = Math.min(Math.max(this.nowSeconds * START_SHARE, START_LEAST_SECONDS), START_MOST_SECONDS)
    return Math.min(seconds, this.nowSeconds - start)
  }

  /** @param {import('./tracks').TrackName} track @returns {number | undefined} the newest value that is there */
  last (track) {
    return this.#history.ends(track, this.nowSeconds - RATE_SECONDS)?.last
  }

  /**
   * Growth of a counter.
   * @param {import('./tracks').TrackName} track @param {number} [seconds]
   * @returns {{ increase: number, overSeconds: number } | null} null with fewer than two points or no time between them
   */
  increase (track, seconds = RATE_SECONDS) {
    const ends = this.#history.ends(track, this.nowSeconds - seconds)
    if (!ends || ends.overSeconds <= 0) return null
    return { increase: ends.last - ends.first, overSeconds: ends.overSeconds }
  }

  /**
   * What several signals of this moment share, computed once.
   * @template T
   * @param {string} name @param {() => T} compute @returns {T}
   */
  once (name, compute) {
    let known = this.#known.get(name)
    if (known === undefined) this.#known.set(name, known = compute())
    return known
  }

  /**
   * A trend, computed anew only when it can have changed: see Trends.
   * @param {string} name what it is a trend of @param {number} spanSeconds how far back it looks
   * @param {() => import('../statistics/trends').Found} compute
   */
  trend (name, spanSeconds, compute) {
    return this.#trends.get(name, this.nowSeconds, Math.min(spanSeconds, this.nowSeconds), compute)
  }

  /**
   * Of what the longest reach holds, computed anew when it has one more row.
   * @template T
   * @param {string} name what is computed
   * @param {(lasting: ReturnType<import('./history').History['lasting']>) => T} compute @returns {T}
   */
  lasting (name, compute) {
    return this.#trends.atVersion(name, this.#history.lastingRows, () => compute(this.#history.lasting()))
  }

  /** @param {import('./tracks').TrackName} track @param {number} [seconds] @returns {number | null} per second */
  rate (track, seconds = RATE_SECONDS) {
    const grown = this.increase(track, seconds)
    return grown && grown.increase / grown.overSeconds
  }
}

module.exports = { Window, RATE_SECONDS }
