'use strict'

const { Trends } = require('../statistics/trends')
const { NO_NEIGHBOURS, NO_WORKERS, tracks } = require('./tracks')

/** Default window of a rate: long enough for dozens of GCs, short enough to follow a load. */
const RATE_SECONDS = 30
/**
 * Frames are rare if the agent's interval is long, or if long GCs keep the event loop blocked. Then
 * a short window may contain one frame only, and a rate is that since the frame before, if it is at
 * most this old.
 */
const LONGEST_GAP_SECONDS = 120
/** A rate is representative if GCs were observed in this share of its span. */
const LEAST_OBSERVED_SHARE = 0.5
/**
 * Start phase of a process: this share of its age, but at least this many seconds in which the
 * thread did not wait for a CPU, and at most START_MOST_SECONDS.
 */
const START_SHARE = 0.2
const START_LEAST_CPU_SECONDS = 10
const START_MOST_SECONDS = 300

/** @typedef {{ readonly times: number[], readonly values: number[] }} Points */

/**
 * The input of all signals: one target at one moment. It never reads a clock, so a replay computes
 * the same values as live evaluation.
 */
class Window {
  #history
  #trends
  /** @type {Map<string, any>} */
  #known = new Map()
  /**
   * Cached points by track, because signals share tracks and spans.
   * @type {Map<import('./tracks').TrackName, { seconds: number, points: Points }[]>}
   */
  #read = new Map()
  /** Length of the start phase, once it is known. @type {number | undefined} */
  #start

  /**
   * @param {object} at
   * @param {import('./history').History} at.history
   * @param {import('@memwatch/agent/protocol/frame').Hello} at.hello
   * @param {import('@memwatch/agent/protocol/frame').Frame} at.frame newest frame
   * @param {import('@memwatch/agent/protocol/frame').Frame['values']} at.values newest value of
   *   every field
   * @param {import('./tracks').Workers} [at.workers] memory of the other threads of the process
   * @param {import('./tracks').Neighbours} [at.neighbours] other processes of the container
   * @param {import('../memory/scan').Scan} [at.scan] newest scan of the memory map
   * @param {number} [at.watchedSeconds] seconds from the first to the newest frame
   * @param {number | null} [at.firstLimitBytes] container limit in the first frame; null: no limit
   * @param {import('../statistics/trends').Trends} [at.trends] cached trends of this target
   */
  constructor ({
    history, hello, frame, values, workers = NO_WORKERS, neighbours = NO_NEIGHBOURS, scan,
    watchedSeconds = 0,
    firstLimitBytes,
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
    this.firstLimitBytes = firstLimitBytes
  }

  /**
   * The same moment with some values replaced, to compute the bounds of an unknown value.
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
      firstLimitBytes: this.firstLimitBytes,
      trends: this.#trends
    })
  }

  /**
   * Points of the last `seconds`, oldest first.
   * @param {import('./tracks').TrackName} track
   * @param {number} [seconds]
   * @returns {Points} shared with other callers
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
   * Points of a track at the changes of a counter: see History.
   * @param {import('./tracks').TrackName} track a long track
   * @param {import('./tracks').TrackName} counter a long track
   * @param {number} seconds
   * @returns {{ times: number[], values: number[] }} new arrays for each caller
   */
  pointsOnChange (track, counter, seconds) {
    return this.#history.pointsOnChange(track, counter, this.nowSeconds - seconds)
  }

  /**
   * Length of the window of the last `seconds`, without the start phase. A starting process frees
   * much of its memory, and a running process does not.
   * @param {number} seconds
   */
  settledSeconds (seconds) {
    this.#start ??= Math.min(
      Math.max(this.nowSeconds * START_SHARE, this.#leastStartSeconds()),
      START_MOST_SECONDS
    )
    return Math.min(seconds, this.nowSeconds - this.#start)
  }

  /**
   * Shortest start phase, measured in CPU time: with a tenth of a core a process takes ten times as
   * long to load.
   */
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
   * @returns {number | undefined} newest value present
   */
  last (track) {
    return this.#history.ends(track, this.nowSeconds - RATE_SECONDS)?.last
  }

  /**
   * @param {import('./tracks').TrackName} track
   * @param {number} seconds
   * @returns {number} largest fall from a value to a later one
   */
  largestFall (track, seconds) {
    let highest = -Infinity
    let fall = 0
    for (const value of this.points(track, seconds).values) {
      highest = Math.max(highest, value)
      fall = Math.max(fall, highest - value)
    }
    return fall
  }

  /**
   * Growth of a counter. For counters of GCs, the time in which GCs were not observed is excluded.
   * @param {import('./tracks').TrackName} track
   * @param {number} [seconds] length of the window; if it contains one point only, the point before
   *   belongs to it
   * @returns {{ increase: number, overSeconds: number } | null} null if there are fewer than two
   *   points, if no time lies between them, or if GCs were not observed for most of the time
   */
  increase (track, seconds = RATE_SECONDS) {
    const since = this.nowSeconds - seconds
    const ends =
      this.#history.ends(track, since, Math.min(since, this.nowSeconds - LONGEST_GAP_SECONDS))
    if (!ends || ends.overSeconds <= 0) return null
    const overSeconds = tracks[track].observed
      ? this.#observedSeconds(ends, seconds)
      : ends.overSeconds
    return overSeconds > 0 ? { increase: ends.last - ends.first, overSeconds } : null
  }

  /**
   * Seconds of a span in which GCs were observed.
   * @param {{ overSeconds: number }} ends first and last point of a track that counts GCs
   * @param {number} seconds
   * @returns {number} 0 if the share is too small
   */
  #observedSeconds ({ overSeconds }, seconds) {
    // Most agents never stop observing, and report the unobserved time only after the first stop.
    if (!this.values.gcUnobservedSeconds && !this.values.gcObserverStopped) return overSeconds
    const since = this.nowSeconds - Math.max(seconds, overSeconds)
    const unobserved = this.#history.ends('gcUnobservedSeconds', since)
    const observed = overSeconds - (unobserved ? unobserved.last - unobserved.first : 0)
    return observed < LEAST_OBSERVED_SHARE * Math.min(seconds, this.nowSeconds) ? 0 : observed
  }

  /**
   * Value shared by several signals of this moment, computed once.
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
   * A trend, or another value over a span, recomputed only when its points changed: see Trends.
   * @template T
   * @param {string} name of the value
   * @param {number} spanSeconds length of its window
   * @param {() => T} compute
   * @returns {T}
   */
  overSpan (name, spanSeconds, compute) {
    return this.#trends.get(name, this.nowSeconds, Math.min(spanSeconds, this.nowSeconds), compute)
  }

  /**
   * Value computed from the longest tier, and recomputed when the tier has a new row.
   * @template T
   * @param {string} name of the value
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
   * @returns {number | null} growth per second
   */
  rate (track, seconds = RATE_SECONDS) {
    const grown = this.increase(track, seconds)
    return grown && grown.increase / grown.overSeconds
  }
}

module.exports = { Window, RATE_SECONDS }
