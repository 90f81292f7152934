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
 * Steps from one frame to the next that an agent can take. Eleven days of frames lost at one a
 * second, and an uptime that runs a week ahead of the exporter's clock, are more than any does; a
 * larger step is another's, or would make all later frames look old.
 */
const MOST_SEQUENCE_STEP = 1_000_000
const MOST_SECONDS_AHEAD = 604_800

/**
 * The minutes before an end.
 * @typedef {object} LastMinutes
 * @property {number[]} secondsBefore the last frame, oldest first
 * @property {Record<string, (number | null)[]>} tracks at those times; null where there was none
 */

/**
 * One watched isolate of one process, from its hello to its end: who it is, its newest values and
 * its history. What is found on it is its case: verdicts/case.js.
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
   *   where two share it
   * @param {string} identity.thread main, or worker-N
   */
  constructor ({ hello, name, thread }) {
    this.hello = hello
    this.name = name
    this.thread = thread
    /** @type {import('@memwatch/agent/protocol/frame').Frame | undefined} the newest */
    this.frame = undefined
    /**
     * The newest value of every field; a field that is read every few seconds stays here in
     * between.
     * @type {import('@memwatch/agent/protocol/frame').Frame['values']}
     */
    this.values = { ...NO_VALUES }
    /** When the newest line arrived, by the exporter's steady clock. */
    this.seenAtUnixMs = 0
    this.connected = true
    /** Whether all of its frames are read, however great the load. */
    this.isSenior = false
    /**
     * The connection that it belongs to: nobody else speaks for it.
     * @type {import('./targets').Session | undefined}
     */
    this.session = undefined
    /** When that connection said something, whatever it was. */
    this.heardAtUnixMs = 0
    /** To the agent, while it is connected. @type {((line: string) => void) | undefined} */
    this.send = undefined
    /** @type {number | undefined} what its bye said; a target that vanished said nothing */
    this.exitCode = undefined
    /** What the other threads of the process hold. */
    this.workers = NO_WORKERS
    /** What other processes hold that share the container's memory limit. */
    this.neighbours = NO_NEIGHBOURS
    /** Where the memory lay at the last look. @type {import('../memory/scan').Scan | undefined} */
    this.scan = undefined
    this.framesLost = 0
    this.recentDelay = new RecentDelay()
    /** What its tracks did over hours and days. */
    this.flight = new Flight()
  }

  /**
   * @param {import('@memwatch/agent/protocol/frame').Frame} frame with values of the contract only: those
   *   that the process sent were rebuilt from it
   * @param {number} nowUnixMs
   * @param {import('./tracks').Workers} [workers] what the other threads of the process hold
   * @param {import('./tracks').Neighbours} [neighbours] what other processes of the container hold
   * @returns {boolean} false when the frame is not newer than the last one, or newer than it can be
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
    // A limit that is lifted disappears from the frames that carry the container's fields; do not
    // keep the old one.
    if (frame.values.containerUsageBytes !== undefined) {
      this.values.containerLimitBytes = frame.values.containerLimitBytes
    }
    this.seenAtUnixMs = nowUnixMs
    this.workers = workers
    this.neighbours = neighbours
    if (frame.values.residentBytes) {
      // An answer of malloc is of its moment only; what else is read rarely hardly changes.
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
   * Go on where an exporter before this one stood: with what it kept, oldest first.
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

  /** The longest reach of its history: see History. */
  get lastingHistory () {
    return this.#history.lasting()
  }

  /** Uptime at the newest row of its history; 0 before the first. */
  get lastSeconds () {
    return this.#history.lastSeconds
  }

  /**
   * What an exporter after this one would need to go on: see restore.
   * @param {number} sinceSeconds uptime
   */
  kept (sinceSeconds) {
    return {
      seconds: this.#history.rows(sinceSeconds),
      lastSequence: this.#lastSequence,
      firstUptimeSeconds: this.#firstUptimeSeconds
    }
  }

  /** Seconds of history that were seen. */
  get watchedSeconds () {
    return this.frame ? this.frame.uptimeSeconds - this.#firstUptimeSeconds : 0
  }

  /**
   * Its history up to the last frame.
   * @param {number} seconds
   * @returns {LastMinutes}
   */
  lastMinutes (seconds) {
    const end = this.lastSeconds
    const { times, tracks } = this.#history.rows(end - seconds)
    return { secondsBefore: times.map(time => Math.round(1000 * (end - time)) / 1000), tracks }
  }

  /**
   * What tracks did, second by second, in the last ten minutes.
   * @param {readonly import('./tracks').TrackName[]} names
   * @param {{ sinceSeconds: number, untilSeconds: number }} options uptime
   * @returns {import('./flight').Series} only the last of each
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
    const at = { hello, frame, values, workers, neighbours, scan, watchedSeconds }
    return new Window({ ...at, history: this.#history, trends: this.#trends })
  }
}

module.exports = { Target }
