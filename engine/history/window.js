'use strict'

const { Trends } = require('../statistics/trends')
const { NO_NEIGHBOURS, NO_WORKERS, tracks } = require('./tracks')

/**
 * How far back a rate looks when nothing else is said: long enough for dozens of GCs, short enough
 * to follow a load.
 */
const RATE_SECONDS = 30
/** Share of a span that GCs must have been observed in: what is known of less says little of it. */
const LEAST_OBSERVED_SHARE = 0.5
/**
 * What counts as the start of a life: a share of it, and at least so many seconds in which the
 * thread did not wait for a CPU.
 */
const START_SHARE = 0.2
const START_LEAST_CPU_SECONDS = 10
const START_MOST_SECONDS = 300

/** @typedef {{ readonly times: number[], readonly values: number[] }} Points */

/**
 * What signals may read: one target as it stands at one moment. It never reads a clock, so a replay
 * sees what live saw.
 */
class Window {
  #history
  #trends
  /** @type {Map<string, any>} */
  #known = new Map()
  /**
   * Points that were read, by track: signals share tracks and spans.
   * @type {Map<import('./tracks').TrackName, { seconds: number, points: Points }[]>}
   */
  #read = new Map()

  /**
   * @param {object} at
   * @param {import('./history').History} at.history
   * @param {import('@memwatch/agent/protocol/frame').Hello} at.hello
   * @param {import('@memwatch/agent/protocol/frame').Frame} at.frame the newest
   * @param {import('@memwatch/agent/protocol/frame').Frame['values']} at.values the newest value of every field
   * @param {import('./tracks').Workers} [at.workers] what the other threads of the process hold
   * @param {import('./tracks').Neighbours} [at.neighbours] other processes of the container
   * @param {import('../memory/scan').Scan} [at.scan] the last look at where the memory lies
   * @param {number} [at.watchedSeconds] how long frames of it were seen
   * @param {import('../statistics/trends').Trends} [at.trends] those of this target that were
   *   computed before
   */
  constructor ({
    history, hello, frame, values, workers = NO_WORKERS, neighbours = NO_NEIGHBOURS, scan,
    watchedSeconds = 0,
    trends = new Trends()
  }) {
    this.#history = history
    this.#trends = trends
    this.hello = hello
    this.nowSeconds = frame.uptimeSeconds
    this.values = values
    this.workers = workers
    this.neighbours = neighbours
    this.scan = scan
    this.watchedSeconds = watchedSeconds
  }

  /**
   * The same moment, were some of its newest values others: of what is not known, and has bounds.
   * @param
   *   {{ values: import('@memwatch/agent/protocol/frame').Frame['values'], hello: import('@memwatch/agent/protocol/frame').Hello }}
   *   other
   * @returns {Window}
   */
  assuming ({ values, hello }) {
    return new Window({
      history: this.#history,
      hello,
      frame: { sequence: 0, atUnixMs: 0, uptimeSeconds: this.nowSeconds, values: {} },
      values: { ...this.values, ...values },
      workers: this.workers,
      neighbours: this.neighbours,
      scan: this.scan,
      watchedSeconds: this.watchedSeconds,
      trends: this.#trends
    })
  }

  /**
   * The points of the last `seconds`, oldest first.
   * @param {import('./tracks').TrackName} track
   * @param {number} [seconds]
   * @returns {Points} that others read, too
   */
  points (track, seconds = Infinity) {
    let spans = this.#read.get(track)
    if (spans === undefined) this.#read.set(track, spans = [])
    for (const known of spans) if (known.seconds === seconds) return known.points
    const points = this.#history.points(track, this.nowSeconds - seconds)
    spans.push({ seconds, points })
    return points
  }

  /**
   * The last `seconds`, or less: a process that starts frees much of what it took to start, which
   * is no sign of how it lives.
   * @param {number} seconds
   */
  settledSeconds (seconds) {
    const start = Math.min(
      Math.max(this.nowSeconds * START_SHARE, this.#leastStartSeconds()),
      START_MOST_SECONDS
    )
    return Math.min(seconds, this.nowSeconds - start)
  }

  /** With a tenth of a core a process loads for ten times as long. */
  #leastStartSeconds () {
    if (this.nowSeconds * START_SHARE >= START_MOST_SECONDS) return START_LEAST_CPU_SECONDS
    const { times, values: waited } = this.points(
      'runQueueWaitSeconds',
      START_MOST_SECONDS / START_SHARE
    )
    if (times.length === 0) return START_LEAST_CPU_SECONDS
    const over = times.findIndex((time, i) => time - waited[i] >= START_LEAST_CPU_SECONDS)
    return over < 0 ? this.nowSeconds : Math.max(START_LEAST_CPU_SECONDS, times[over])
  }

  /**
   * @param {import('./tracks').TrackName} track
   * @returns {number | undefined} the newest value that is there
   */
  last (track) {
    return this.#history.ends(track, this.nowSeconds - RATE_SECONDS)?.last
  }

  /**
   * Growth of a counter. Where it counts GCs, the time in which nobody did is left out.
   * @param {import('./tracks').TrackName} track
   * @param {number} [seconds]
   * @returns {{ increase: number, overSeconds: number } | null} null with fewer than two points, no
   *   time between them, or GCs that were not observed for most of the time
   */
  increase (track, seconds = RATE_SECONDS) {
    const ends = this.#history.ends(track, this.nowSeconds - seconds)
    if (!ends || ends.overSeconds <= 0) return null
    const overSeconds = tracks[track].observed
      ? this.#observedSeconds(ends, seconds)
      : ends.overSeconds
    return overSeconds > 0 ? { increase: ends.last - ends.first, overSeconds } : null
  }

  /**
   * Time of the last `seconds` in which GCs were observed.
   * @param {{ overSeconds: number }} ends of a track that counts them
   * @param {number} seconds
   * @returns {number} 0 where it was too little to tell
   */
  #observedSeconds ({ overSeconds }, seconds) {
    // Most agents never stop observing, and none says so before the first time.
    if (!this.values.gcUnobservedSeconds && !this.values.gcObserverStopped) return overSeconds
    const unobserved = this.#history.ends('gcUnobservedSeconds', this.nowSeconds - seconds)
    const observed = overSeconds - (unobserved ? unobserved.last - unobserved.first : 0)
    return observed < LEAST_OBSERVED_SHARE * Math.min(seconds, this.nowSeconds) ? 0 : observed
  }

  /**
   * What several signals of this moment share, computed once.
   * @template T
   * @param {string} name
   * @param {() => T} compute
   * @returns {T}
   */
  once (name, compute) {
    let known = this.#known.get(name)
    if (known === undefined) this.#known.set(name, known = compute())
    return known
  }

  /**
   * A trend, computed anew only when it can have changed: see Trends.
   * @param {string} name what it is a trend of
   * @param {number} spanSeconds how far back it looks
   * @param {() => import('../statistics/trends').Found} compute
   */
  trend (name, spanSeconds, compute) {
    return this.#trends.get(name, this.nowSeconds, Math.min(spanSeconds, this.nowSeconds), compute)
  }

  /**
   * Of what the longest reach holds, computed anew when it has one more row.
   * @template T
   * @param {string} name what is computed
   * @param {(lasting: ReturnType<import('./history').History['lasting']>) => T} compute
   * @returns {T}
   */
  lasting (name, compute) {
    return this.#trends.atVersion(name, this.#history.lastingRows, () =>
      compute(this.#history.lasting())
    )
  }

  /**
   * @param {import('./tracks').TrackName} track
   * @param {number} [seconds]
   * @returns {number | null} per second
   */
  rate (track, seconds = RATE_SECONDS) {
    const grown = this.increase(track, seconds)
    return grown && grown.increase / grown.overSeconds
  }
}

module.exports = { Window, RATE_SECONDS }
