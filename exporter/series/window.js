'use strict'

/** How far back a rate looks when nothing else is said: long enough for dozens of GCs, short enough to follow a load. */
const RATE_SECONDS = 30

/**
 * What signals may read: one target as it stands at one moment. It never reads a clock, so a replay sees what live saw.
 */
class Window {
  #history

  /**
   * @param {object} at
   * @param {import('./history').History} at.history
   * @param {import('memwatch/frame').Hello} at.hello
   * @param {import('memwatch/frame').Frame} at.frame the newest
   * @param {import('memwatch/frame').Frame['values']} at.values the newest value of every field
   */
  constructor ({ history, hello, frame, values }) {
    this.#history = history
    this.hello = hello
    this.nowSeconds = frame.uptimeSeconds
    this.values = values
  }

  /**
   * The points of the last `seconds`, oldest first.
   * @param {import('./tracks').TrackName} track @param {number} [seconds]
   */
  points (track, seconds = Infinity) {
    return this.#history.points(track, this.nowSeconds - seconds)
  }

  /** @param {import('./tracks').TrackName} track @returns {number | undefined} the newest value that is there */
  last (track) {
    return this.points(track, RATE_SECONDS).values.at(-1)
  }

  /**
   * Growth of a counter.
   * @param {import('./tracks').TrackName} track @param {number} [seconds]
   * @returns {{ increase: number, overSeconds: number } | null} null with fewer than two points or no time between them
   */
  increase (track, seconds = RATE_SECONDS) {
    const { times, values } = this.points(track, seconds)
    const overSeconds = (times.at(-1) ?? 0) - (times[0] ?? 0)
    if (overSeconds <= 0) return null
    return { increase: values[values.length - 1] - values[0], overSeconds }
  }

  /** @param {import('./tracks').TrackName} track @param {number} [seconds] @returns {number | null} per second */
  rate (track, seconds = RATE_SECONDS) {
    const grown = this.increase(track, seconds)
    return grown && grown.increase / grown.overSeconds
  }
}

module.exports = { Window, RATE_SECONDS }
