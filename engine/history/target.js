'use strict'

const { NO_VALUES } = require('@memwatch/agent/protocol/frame')
const { History } = require('./history')
const { RecentDelay } = require('./recent-delay')
const { Window } = require('./window')
const { Trends } = require('../statistics/trends')
const { scanOf } = require('../memory/scan')
const { Flight } = require('./flight')
const { restoreInto } = require('./restore')
const { DOWN_INTERVALS, countIntervals } = require('./silence')
const { NO_NEIGHBOURS, NO_WORKERS } = require('./tracks')

/**
 * Largest plausible step from one frame to the next: eleven days of lost frames at one a second, or
 * an uptime one week ahead of the exporter's clock. A larger step is not from this process, and
 * would make all its later frames look old.
 */
const MOST_SEQUENCE_STEP = 1_000_000
const MOST_SECONDS_AHEAD = 604_800

/**
 * Tracks of the last minutes before an end.
 * @typedef {object} LastMinutes
 * @property {number[]} secondsBefore time from each row to the last frame, oldest first
 * @property {Record<string, (number | null)[]>} tracks at those times; null if a track was absent
 */

/**
 * One watched isolate of one process, from its hello to its end: its identity, newest values and
 * history. Its verdicts belong to its case: verdicts/case.js.
 */
class Target {
  #history = new History()
  #trends = new Trends()
  #lastSequence = 0
  #firstUptimeSeconds = NaN

  /**
   * @param {object} identity
   * @param {import('@memwatch/agent/protocol/frame').Hello} identity.hello
   * @param {string} identity.name unique among the living processes: the app's name, with a number
   *   if two processes share the name
   * @param {string} identity.thread `main` or `worker-N`
   */
  constructor ({ hello, name, thread }) {
    this.hello = hello
    this.name = name
    this.thread = thread
    /** @type {import('@memwatch/agent/protocol/frame').Frame | undefined} the newest */
    this.frame = undefined
    /**
     * Newest value of every field. A field that is read every few seconds keeps its value in
     * between.
     * @type {import('@memwatch/agent/protocol/frame').Frame['values']}
     */
    this.values = { ...NO_VALUES }
    /** Arrival of the newest frame, or of the hello, by the exporter's monotonic clock. */
    this.seenAtUnixMs = 0
    this.connected = true
    /** True for a senior target: the exporter reads all of its frames under any load. */
    this.isSenior = false
    /**
     * Connection of this target. Lines of other connections cannot change it.
     * @type {import('./targets').Session | undefined}
     */
    this.session = undefined
    /** Arrival of the last line of this connection, of any kind. */
    this.heardAtUnixMs = 0
    /**
     * Sends a line to the agent while it is connected.
     * @type {((line: string) => void) | undefined}
     */
    this.send = undefined
    /** @type {number | undefined} exit code from its bye; undefined for a target that vanished */
    this.exitCode = undefined
    /** Memory of the other threads of the process. */
    this.workers = NO_WORKERS
    /** Memory of other processes under the same container limit. */
    this.neighbours = NO_NEIGHBOURS
    /** Newest scan of the memory map. @type {import('../memory/scan').Scan | undefined} */
    this.scan = undefined
    /**
     * Container limit in the first frame with the container's fields; null if there was no limit.
     */
    this.firstLimitBytes = /** @type {number | null | undefined} */ (undefined)
    this.framesLost = 0
    this.recentDelay = new RecentDelay()
    /** Tracks of this target over hours and days. */
    this.flight = new Flight()
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Frame} frame rebuilt, so it contains only
   *   values of the contract
   * @param {number} nowUnixMs
   * @param {import('./tracks').Workers} [workers] memory of the other threads
   * @param {import('./tracks').Neighbours} [neighbours] memory of other processes in the container
   * @returns {boolean} false if the frame is not newer than the last one, or implausibly new
   */
  take (frame, nowUnixMs, workers = NO_WORKERS, neighbours = NO_NEIGHBOURS) {
    if (!this.#follows(frame, nowUnixMs)) return false
    if (this.#lastSequence > 0) this.framesLost += frame.sequence - this.#lastSequence - 1
    this.#lastSequence = frame.sequence
    if (Number.isNaN(this.#firstUptimeSeconds)) this.#firstUptimeSeconds = frame.uptimeSeconds
    this.frame = frame
    /** @type {Record<string, unknown>} */
    const newest = frame.values
    /** @type {Record<string, unknown>} */
    const kept = this.values
    for (const name in newest) {
      const value = newest[name]
      if (value !== undefined) kept[name] = value
    }
    // A frame with the container's fields, but without a limit, shows that the limit was removed.
    // Its old value must then be deleted.
    if (frame.values.containerUsageBytes !== undefined) {
      this.values.containerLimitBytes = frame.values.containerLimitBytes
      if (this.firstLimitBytes === undefined) {
        this.firstLimitBytes = frame.values.containerLimitBytes ?? null
      }
    }
    this.seenAtUnixMs = nowUnixMs
    this.workers = workers
    this.neighbours = neighbours
    if (frame.values.residentBytes) {
      // Statistics of malloc are valid only at the moment of their query. Other rarely read fields
      // hardly change.
      this.scan = scanOf(
        { ...this.values, allocatorBytes: frame.values.allocatorBytes },
        this.hello,
        workers,
        this.scan
      )
    }
    this.recentDelay.append(frame.values.eventLoopDelay)
    const moment = { values: this.values, workers, neighbours, scan: this.scan }
    const { uptimeSeconds } = frame
    this.flight.append(uptimeSeconds, this.#history.append(uptimeSeconds, moment))
    return true
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Frame} frame
   * @param {number} nowUnixMs
   */
  #follows ({ sequence, uptimeSeconds }, nowUnixMs) {
    const step = sequence - this.#lastSequence
    if (step <= 0 || (this.#lastSequence > 0 && step > MOST_SEQUENCE_STEP)) return false
    if (!this.frame) return true
    const stepSeconds = uptimeSeconds - this.frame.uptimeSeconds
    return (
      stepSeconds >= 0 && stepSeconds <= MOST_SECONDS_AHEAD + (nowUnixMs - this.seenAtUnixMs) / 1000
    )
  }

  /**
   * Continues from the history that a previous exporter saved, oldest first.
   * @param {object} kept
   * @param {import('./flight').SealedBlock[]} kept.blocks
   * @param {{ time: number, row: Float64Array }[]} kept.seconds rows of the tracks
   * @param {number} kept.lastSequence
   * @param {number} kept.firstUptimeSeconds
   */
  restore ({ blocks, seconds, lastSequence, firstUptimeSeconds }) {
    restoreInto({ history: this.#history, flight: this.flight, blocks, seconds })
    this.#lastSequence = lastSequence
    this.#firstUptimeSeconds = firstUptimeSeconds
  }

  /** Rows of the longest tier: see History.lasting. */
  get lastingHistory () {
    return this.#history.lasting()
  }

  /** Uptime at the newest row of the history; 0 before the first. */
  get lastSeconds () {
    return this.#history.lastSeconds
  }

  /**
   * State from which a later exporter continues the target: see restore.
   * @param {number} sinceSeconds uptime
   */
  kept (sinceSeconds) {
    return {
      seconds: this.#history.rows(sinceSeconds),
      lastSequence: this.#lastSequence,
      firstUptimeSeconds: this.#firstUptimeSeconds
    }
  }

  /** Seconds from the first to the newest frame. */
  get watchedSeconds () {
    return this.frame ? this.frame.uptimeSeconds - this.#firstUptimeSeconds : 0
  }

  /**
   * History up to the last frame.
   * @param {number} seconds
   * @returns {LastMinutes}
   */
  lastMinutes (seconds) {
    const end = this.lastSeconds
    const { times, tracks } = this.#history.rows(end - seconds)
    return { secondsBefore: times.map(time => Math.round(1000 * (end - time)) / 1000), tracks }
  }

  /**
   * Tracks of the last ten minutes, second by second.
   * @param {readonly import('./tracks').TrackName[]} names
   * @param {{ sinceSeconds: number, untilSeconds: number }} options uptime
   * @returns {import('./flight').Series} only the last value of each second
   */
  secondBySecond (names, { sinceSeconds, untilSeconds }) {
    const { times, tracks } = this.#history.rows(sinceSeconds, names)
    const end = times.findLastIndex(time => time <= untilSeconds) + 1
    return {
      times: times.slice(0, end),
      tracks: Object.fromEntries(
        names.map(name => [name, { last: tracks[name].slice(0, end).map(value => value ?? NaN) }])
      )
    }
  }

  /** @param {number} nowUnixMs */
  isUp (nowUnixMs) {
    const silentSeconds = (nowUnixMs - this.seenAtUnixMs) / 1000
    return this.connected && countIntervals(silentSeconds, this.hello) < DOWN_INTERVALS
  }

  /** @returns {Window | null} null before the first frame */
  window () {
    if (!this.frame) return null
    const { hello, frame, values, workers, neighbours, scan, watchedSeconds } = this
    const { firstLimitBytes } = this
    return new Window({
      hello,
      frame,
      values,
      workers,
      neighbours,
      scan,
      watchedSeconds,
      firstLimitBytes,
      history: this.#history,
      trends: this.#trends
    })
  }
}

module.exports = { Target }
