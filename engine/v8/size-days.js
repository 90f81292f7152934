'use strict'

const { quantile } = require('../statistics/quantile')

const MINUTE_SECONDS = 60
const DAY_SECONDS = 86_400
/**
 * The maximum of a day counts in the variation between days if this share of the day was observed.
 */
const LEAST_DAY_SHARE = 0.5

/**
 * Memory of one process, and of its container, at one moment.
 * @typedef {object} SizeReading
 * @property {number} unixSeconds
 * @property {number} ownBytes RSS of the process
 * @property {number} [othersBytes] other processes under the same limit; default: 0
 * @property {number} [besideBytes] resident memory of the process that is not its heap
 * @property {number} [heapUsedBytes] heap in use, with garbage
 * @property {number} [liveHeapBytes] live heap after the last major GC
 *
 * @typedef {'memoryBytes' | 'ownBytes' | 'besideBytes' | 'heapUsedBytes' | 'liveHeapBytes'} SizeName
 *   memoryBytes: all processes of the container
 *
 * Highest values of a day over all containers of the workload.
 * @typedef {Record<SizeName, number> & { seconds: number }} SizeDay -Infinity if never measured;
 *   seconds: observed time of the container that was observed longest
 */

/** @type {readonly SizeName[]} */
const NAMES = Object.freeze([
  'memoryBytes', 'ownBytes', 'besideBytes', 'heapUsedBytes', 'liveHeapBytes'
])

/**
 * Days of one workload: the highest values of each day (UTC), and the peak of each minute. Several
 * containers of the workload are treated as one container, with the values of the largest at each
 * moment.
 */
class SizeDays {
  #stepSeconds
  /** @type {Map<number, SizeDay>} */
  #days = new Map()
  /** Peak of each step of each container. @type {number[]} */
  #peaks = []
  /** @type {Map<string, { step: number, peakBytes: number, seconds: Map<number, number> }>} */
  #containers = new Map()

  /** @param {{ stepSeconds?: number }} [options] stepSeconds: time between two readings */
  constructor ({ stepSeconds = MINUTE_SECONDS } = {}) {
    this.#stepSeconds = Math.max(MINUTE_SECONDS, stepSeconds)
  }

  /**
   * @param {string} container key of the container, which is the same for all its processes
   * @param {SizeReading} reading reading; ascending in time for each container
   */
  add (container, { unixSeconds, ownBytes, othersBytes = 0, ...rest }) {
    const reading = { ...rest, ownBytes, memoryBytes: ownBytes + othersBytes }
    const step = Math.floor(unixSeconds / this.#stepSeconds)
    const day = Math.floor((step * this.#stepSeconds) / DAY_SECONDS)
    let of = this.#containers.get(container)
    if (!of) {
      of = { step: NaN, peakBytes: 0, seconds: new Map() }
      this.#containers.set(container, of)
    }
    if (step !== of.step) {
      this.#close(of)
      of.step = step
      of.seconds.set(day, (of.seconds.get(day) ?? 0) + this.#stepSeconds)
    }
    of.peakBytes = Math.max(of.peakBytes, reading.memoryBytes)
    const row = this.#day(day)
    row.seconds = Math.max(row.seconds, of.seconds.get(day) ?? 0)
    for (const name of NAMES) row[name] = Math.max(row[name], reading[name] ?? -Infinity)
  }

  /** @param {{ peakBytes: number }} container the container whose step ends */
  #close (container) {
    if (container.peakBytes > 0) this.#peaks.push(container.peakBytes)
    container.peakBytes = 0
  }

  /** @param {number} day */
  #day (day) {
    let row = this.#days.get(day)
    if (!row) {
      row = /** @type {SizeDay} */ ({
        seconds: 0, ...Object.fromEntries(NAMES.map(name => [name, -Infinity]))
      })
      this.#days.set(day, row)
    }
    return row
  }

  /** Number of observed containers. */
  get containers () {
    return this.#containers.size
  }

  /** Observed time in days. */
  get length () {
    return [...this.#days.values()].reduce((sum, { seconds }) => sum + seconds, 0) / DAY_SECONDS
  }

  /**
   * Highest value over all days.
   * @param {SizeName} name
   * @returns {number | null} bytes; null if it was never measured
   */
  highest (name) {
    const value = Math.max(...Array.from(this.#days.values(), day => day[name]))
    return Number.isFinite(value) ? value : null
  }

  /**
   * Highest values of the days that were observed for at least half of the day.
   * @param {SizeName} name
   * @returns {number[]} bytes
   */
  maxima (name) {
    return [...this.#days.values()]
      .filter(day => day.seconds >= LEAST_DAY_SHARE * DAY_SECONDS && Number.isFinite(day[name]))
      .map(day => day[name])
  }

  /**
   * Quantile of the peaks of all minutes of all containers.
   * @param {number} share 0–1
   * @returns {number | null} bytes; null without a reading
   */
  peakQuantile (share) {
    const peaks = [
      ...this.#peaks,
      ...[...this.#containers.values()].map(({ peakBytes }) => peakBytes).filter(peak => peak > 0)
    ]
    return peaks.length > 0 ? quantile(peaks, share) : null
  }
}

module.exports = { SizeDays, DAY_SECONDS }
