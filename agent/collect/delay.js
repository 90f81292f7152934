'use strict'

const { clearTimeout, nowMs: readNowMs, setTimeout } = require('../primordials')
const { getHeapStatistics } = require('../v8-functions')
const { DELAY_BOUNDS_SECONDS } = require('../protocol/frame')
const { Buckets } = require('../protocol/buckets')
const { LoopActivity } = require('./loop-activity')

/**
 * Intervals in a busy loop: after a late tick, and later. Ticks every 50 or 100 ms would stay in
 * step with work every 100 ms.
 */
const CLOSE_MS = 55
const CALM_MS = 110
/** A late tick: users wait twice as long. */
const LATE_MS = 50
const LATE_FOR_MS = 10_000
/** Ticks stay close for so long after activity. Rarer ones may stay in step with blocks. */
const ACTIVE_FOR_MS = 60_000
const ACTIVE_MS = 100
/** Interval of ticks that also measure activity. */
const FULL_MS = 200
/** On time: Node rounds timers to milliseconds. */
const GRANULARITY_MS = 2
/** A frame takes two turns: its timer and its immediate. */
const FRAME_TURNS = 2
/** Most delays that one block adds. */
const MAX_CORRECTIONS = 5000

/**
 * States of the timer, by the loop's activity. After each tick `#next` chooses the state.
 *
 *   close    the loop is busy, or was within the last frame: a tick every 110 ms, or 55 ms for some
 *            time after a late tick; rarer ones would miss blocks
 *   slowing  the loop is idle: ticks get rarer, at most two CALM_MS apart after activity
 *   resting  ticks would be rarer than frames: the frame's own timer is the tick
 *
 * @typedef {'close' | 'slowing' | 'resting'} State
 */

/**
 * Event loop delay: lateness of a timer due at a random moment.
 *
 * In an idle loop the timer ticks ever more rarely, down to once a frame: it hardly wakes the app.
 * A block of length L would have delayed all timers due then,
 * by L, L - R, L - 2R ..., where R is the interval of the ticks. All these delays count
 * (HdrHistogram's correction of coordinated omission), so the sampling rate does not bias the
 * distribution. The loop's active time shows a block between rare ticks: loop-activity.js.
 *
 * Full ticks also record peaks of external memory. Delays exclude full GCs on command.
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
  #intervalMs = CLOSE_MS
  #dueMs = 0
  #closeUntilMs = 0
  #activeUntilMs = 0
  /** Until then ticks are close. */
  #lateUntilMs = LATE_FOR_MS
  #nextFullMs = 0
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
    if (this.#state === 'close' && nowMs < this.#nextFullMs) {
      this.#record(nowMs)
      this.#next(nowMs)
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
    this.#nextFullMs = nowMs + FULL_MS - GRANULARITY_MS
    this.#record(nowMs)
    // A block between close ticks delays one of them. Only rare ticks need the turns of the loop.
    const isBusy = this.#activity.measure(this.#state !== 'close')
    const { longestBlockSeconds } = this.#activity
    if (longestBlockSeconds > this.#buckets.longestSeconds) {
      this.#buckets.longestSeconds = longestBlockSeconds
    }
    if (isBusy) this.#closeUntilMs = nowMs + this.#frameMs
    if (this.#activity.activeMs >= ACTIVE_MS) this.#activeUntilMs = nowMs + ACTIVE_FOR_MS
    this.#next(nowMs)
    return isBusy
  }

  /** @param {number} nowMs */
  #next (nowMs) {
    const isClose = nowMs < this.#closeUntilMs
    const busyMs = nowMs < this.#lateUntilMs ? CLOSE_MS : CALM_MS
    // Fractions of a millisecond are random: ticks leave the step of blocks.
    const mostMs = nowMs < this.#activeUntilMs ? CALM_MS * (1 + nowMs % 1) : Infinity
    this.#intervalMs = isClose ? busyMs : Math.min(mostMs, this.#intervalMs * 2)
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
      this.#timer.refresh()
      return
    }
    this.#timerMs = this.#intervalMs
    this.#timer = setTimeout(this.#onTimer, this.#intervalMs)
  }

  /** @param {number} nowMs time of the tick */
  #record (nowMs) {
    const lateMs = Math.max(0, nowMs - this.#dueMs - (this.#ownGc.totalMs - this.#ownMsWhenSet))
    if (lateMs > LATE_MS) this.#lateUntilMs = nowMs + LATE_FOR_MS
    // Equal weight per time: close ticks must not bias the distribution.
    for (let n = 0; n < this.#intervalMs; n += CLOSE_MS) this.#add(lateMs)
  }

  /** @param {number} lateMs */
  #add (lateMs) {
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
