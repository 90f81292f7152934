'use strict'

const { clearTimeout, nowMs: readNowMs, setTimeout } = require('../primordials')
const { getHeapStatistics } = require('../v8-functions')
const { DELAY_BOUNDS_SECONDS } = require('../protocol/frame')
const { Buckets } = require('../protocol/buckets')
const { LoopActivity } = require('./loop-activity')

/** Interval of the timer while the loop is busy. */
const BUSY_MS = 50
/**
 * Interval of ticks that measure activity and peaks, which takes several times as long as reading
 * the clock.
 */
const FULL_EVERY_TICKS = 4
/** Node rounds timers to whole milliseconds: a timer this late is on time. */
const GRANULARITY_MS = 2
/** A frame takes two turns of the loop: its timer and its immediate. */
const FRAME_TURNS = 2
/** Limit of delays that one long block adds. */
const MAX_CORRECTIONS = 5000

/**
 * States of the timer, by the loop's activity. After each full tick `#next` chooses the state.
 *
 *   close    the loop is busy, or was within the last frame: a tick every 50 ms, as rare ticks
 *            would miss occasional blocks
 *   slowing  the loop is idle: each tick waits twice as long as the one before
 *   resting  ticks would be rarer than frames: the frame's own timer is the tick
 *
 * @typedef {'close' | 'slowing' | 'resting'} State
 */

/**
 * Event loop delay: lateness of a timer due at a random moment.
 *
 * The agent's own timer ticks every 50 ms while the loop is busy. While the loop is idle, the timer
 * ticks ever more rarely, down to once a frame, so that it hardly wakes an idle app. A block of
 * length L would have delayed all timers due meanwhile, by L, L - R, L - 2R ..., where R is the
 * interval of the ticks. All these delays count (HdrHistogram's correction of coordinated
 * omission), so the sampling rate does not bias the distribution. The loop's active time shows a
 * block between two rare ticks: loop-activity.js.
 *
 * Full ticks also record peaks of external memory between frames.
 *
 * Delays exclude full GCs on command, which block the app for memwatch's sake.
 */
class EventLoopDelay {
  /** @type {readonly (keyof import('./collector').Values)[]} */
  fields = ['eventLoopDelay', 'externalPeakBytes']

  /** @type {State} */
  #state = 'resting'
  #frameMs
  #onTimer
  #buckets = new Buckets(DELAY_BOUNDS_SECONDS)
  #activity
  #ownGc
  /** Total pause of GCs on command when the timer was set. */
  #ownMsWhenSet = 0
  /** Time between two ticks, and due time of the next one. */
  #intervalMs = BUSY_MS
  #dueMs = 0
  #closeUntilMs = 0
  /** Ticks since the last full one. */
  #ticks = 0
  #externalPeakBytes = 0
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  #timerMs = 0

  /**
   * @param {number} frameMs
   * @param {(what: string, work: () => void) => () => void} guarded
   * @param {Pick<import('./gc').OwnGc, 'totalMs'>} [ownGc]
   */
  constructor (frameMs, guarded, ownGc = { totalMs: 0 }) {
    this.#ownGc = ownGc
    this.#activity = new LoopActivity(ownGc)
    this.#frameMs = frameMs
    this.#onTimer = guarded('delay', () => this.#tick(readNowMs()))
  }

  start () {
    this.#state = 'close'
    this.#schedule(readNowMs())
  }

  /**
   * @param {import('./collector').Values} values
   * @param {import('./collector').Tick} tick
   */
  read (values, { nowSeconds }) {
    this.#activity.addOwnTurns(FRAME_TURNS)
    if (this.#state === 'resting') this.#tickByFrame(nowSeconds * 1000)
    values.eventLoopDelay = this.#buckets.row
    values.externalPeakBytes = Math.max(this.#externalPeakBytes, values.externalBytes ?? 0)
  }

  sent () {
    this.#buckets.longestSeconds = 0
    this.#externalPeakBytes = 0
  }

  stop () {
    clearTimeout(this.#timer)
  }

  /** @param {number} nowMs time of the tick */
  #tick (nowMs) {
    this.#activity.addOwnTurns(1)
    if (this.#state === 'close' && ++this.#ticks < FULL_EVERY_TICKS) {
      this.#record(nowMs - this.#dueMs)
      this.#schedule(nowMs)
    } else if (this.#fullTick(nowMs)) {
      this.#notePeak()
    }
  }

  /** @param {number} nowMs due time of the frame, one frame after the last */
  #tickByFrame (nowMs) {
    this.#intervalMs = this.#frameMs
    this.#dueMs = this.#dueMs > 0 ? Math.min(nowMs, this.#dueMs + this.#frameMs) : nowMs
    this.#fullTick(nowMs)
    if (this.#state === 'resting') {
      this.#dueMs = nowMs
      this.#ownMsWhenSet = this.#ownGc.totalMs
    }
  }

  /**
   * @param {number} nowMs
   * @returns {boolean} true: the loop is busy
   */
  #fullTick (nowMs) {
    this.#ticks = 0
    this.#record(nowMs - this.#dueMs)
    // A block between close ticks delays one of them. So only rare ticks need the turns of the
    // loop.
    const isBusy = this.#activity.measure(this.#state !== 'close')
    const { longestBlockSeconds } = this.#activity
    if (longestBlockSeconds > this.#buckets.longestSeconds) {
      this.#buckets.longestSeconds = longestBlockSeconds
    }
    if (isBusy) this.#closeUntilMs = nowMs + this.#frameMs
    this.#next(nowMs)
    return isBusy
  }

  /** @param {number} nowMs */
  #next (nowMs) {
    const isClose = nowMs < this.#closeUntilMs
    this.#intervalMs = isClose ? BUSY_MS : this.#intervalMs * 2
    if (this.#intervalMs >= this.#frameMs) {
      this.#state = 'resting'
      this.#timer = undefined
      return
    }
    this.#state = isClose ? 'close' : 'slowing'
    this.#schedule(nowMs)
  }

  /** @param {number} nowMs */
  #schedule (nowMs) {
    this.#dueMs = nowMs + this.#intervalMs
    this.#ownMsWhenSet = this.#ownGc.totalMs
    if (this.#timer && this.#timerMs === this.#intervalMs) {
      this.#timer.refresh() // saves twenty timers a second
      return
    }
    this.#timerMs = this.#intervalMs
    this.#timer = setTimeout(this.#onTimer, this.#intervalMs)
  }

  /** @param {number} afterMs lateness of the tick */
  #record (afterMs) {
    const lateMs = Math.max(0, afterMs - (this.#ownGc.totalMs - this.#ownMsWhenSet))
    const intervalMs = this.#intervalMs
    const buckets = this.#buckets
    buckets.add(lateMs <= GRANULARITY_MS ? 0 : lateMs / 1000)
    for (
      let missed = lateMs - intervalMs, n = 0;
      missed > GRANULARITY_MS && n < MAX_CORRECTIONS;
      missed -= intervalMs, n++
    ) {
      buckets.add(missed / 1000)
    }
  }

  #notePeak () {
    const { external_memory: external } = /** @type {{ external_memory?: number }} */ (getHeapStatistics())
    if (external === undefined || external > Number.MAX_SAFE_INTEGER) return
    if (external > this.#externalPeakBytes) this.#externalPeakBytes = external
  }
}

module.exports = { EventLoopDelay }
