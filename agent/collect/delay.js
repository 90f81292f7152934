'use strict'

const {
  clearTimeout,
  eventLoopUtilization,
  nowMs: readNowMs,
  setTimeout
} = require('../primordials')
const { getHeapStatistics } = require('../v8-functions')
const { DELAY_BOUNDS_SECONDS } = require('../frame')
const { Buckets } = require('../buckets')
const { iterations } = require('./event-loop')

/** While the loop is busy a timer is set this often. */
const BUSY_MS = 50
/**
 * Only each so many of these ticks asks how busy the loop is, and for peaks: that takes several
 * times as long as to note the time.
 */
const LOOK_EVERY_TICKS = 4
/** A block of an idle loop is worth noting from here on. */
const BLOCK_MS = 20
/** Share of time the loop must be active to count as busy. */
const BUSY_RATIO = 0.1
/** Node's timers begin and end at whole milliseconds: one that fires within this is on time. */
const GRANULARITY_MS = 2
/** A frame takes two turns of the loop: that of its timer, and that of its immediate. */
const FRAME_TURNS = 2
/** One long block stands for at most so many timers. */
const MAX_CORRECTIONS = 5000

/**
 * Event loop delay: how late a timer fires that is due at a random moment.
 *
 * A timer of our own ticks every 50 ms while the loop is busy, and ever more rarely up to the frame
 * interval while it is idle: an idle app is not woken a hundred times a second. A block of length L
 * would have delayed all timers that fell due meanwhile, by L, L - R, L - 2R ...; they are counted
 * as well (the correction against coordinated omission that HdrHistogram calls recording with an
 * expected interval), so the distribution has no bias for how often we looked. A block between two
 * rare ticks of an idle loop is caught by its trace in the loop's active time: so many active
 * seconds in so few turns of the app bound the longest from below.
 *
 * Every few of the same ticks watch for peaks of external memory between frames.
 *
 * Full GCs that the agent runs on command are taken off: they block the app for memwatch's sake.
 *
 * @param {number} frameMs
 * @param {(what: string, work: () => void) => () => void} guarded
 * @param {Pick<import('./gc').OwnGc, 'totalMs'>} [ownGc]
 * @returns {import('./collector').Collector}
 */
function delay (frameMs, guarded, ownGc = { totalMs: 0 }) {
  const buckets = new Buckets(DELAY_BOUNDS_SECONDS)
  let intervalMs = BUSY_MS
  let dueMs = 0
  let busy = false
  let closeTicks = 0
  let busyUntilMs = 0
  let last = eventLoopUtilization()
  let lastOwnMs = 0
  /** Own pauses up to the last time that a timer was set. */
  let ownMsWhenSet = 0
  let lastTurns = iterations()
  let ownTurns = 0
  let externalPeakBytes = 0
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  let timerMs = 0

  const record = (/** @type {number} */ nowMs) => {
    const lateMs = Math.max(0, nowMs - dueMs - (ownGc.totalMs - ownMsWhenSet))
    buckets.add(lateMs <= GRANULARITY_MS ? 0 : lateMs / 1000)
    for (
      let missed = lateMs - intervalMs, n = 0;
      missed > GRANULARITY_MS && n < MAX_CORRECTIONS;
      missed -= intervalMs, n++
    ) {
      buckets.add(missed / 1000)
    }
  }

  const tick = (/** @type {number} */ nowMs) => {
    closeTicks = 0
    record(nowMs)

    const now = eventLoopUtilization()
    const activeMs = now.active - last.active - (ownGc.totalMs - lastOwnMs)
    lastOwnMs = ownGc.totalMs
    // A block between close ticks delays one of them: only rare ticks ask for turns.
    const turns = intervalMs > BUSY_MS ? iterations() : undefined
    if (turns !== undefined && lastTurns !== undefined && activeMs > BLOCK_MS) {
      buckets.longestSeconds = Math.max(
        buckets.longestSeconds,
        activeMs / Math.max(1, turns - lastTurns - ownTurns) / 1000
      )
    }
    busy = activeMs / Math.max(1, activeMs + now.idle - last.idle) >= BUSY_RATIO
    last = now
    lastTurns = turns
    ownTurns = 0
    // What was busy is looked at closely for a frame longer: blocks that come now and then would
    // fall between rare ticks. At rest the frame's own timer does the ticking.
    if (busy) busyUntilMs = nowMs + frameMs
    intervalMs = nowMs < busyUntilMs ? BUSY_MS : intervalMs * 2
    if (intervalMs < frameMs) schedule(nowMs)
    else timer = undefined
  }

  const ownTick = guarded('delay', () => {
    const nowMs = readNowMs()
    ownTurns++
    if (intervalMs === BUSY_MS && ++closeTicks < LOOK_EVERY_TICKS) {
      record(nowMs)
      schedule(nowMs)
      return
    }
    tick(nowMs)
    if (busy) peak()
  })

  const schedule = (/** @type {number} */ nowMs) => {
    dueMs = nowMs + intervalMs
    ownMsWhenSet = ownGc.totalMs
    if (timer && timerMs === intervalMs) {
      timer.refresh() // spares a timer, twenty times a second
      return
    }
    timerMs = intervalMs
    timer = setTimeout(ownTick, intervalMs)
  }

  const peak = () => {
    const { external_memory: external } = /** @type {{ external_memory?: number }} */ (getHeapStatistics())
    if (
      external !== undefined &&
      external > externalPeakBytes &&
      external <= Number.MAX_SAFE_INTEGER
    ) { externalPeakBytes = external }
  }

  return {
    fields: ['eventLoopDelay', 'externalPeakBytes'],
    start () {
      schedule(readNowMs())
    },
    read (values, { nowSeconds }) {
      ownTurns += FRAME_TURNS
      if (!timer) {
        // The frame is the tick: it was due one frame after the last.
        const nowMs = nowSeconds * 1000
        intervalMs = frameMs
        dueMs = dueMs > 0 ? Math.min(nowMs, dueMs + frameMs) : nowMs
        tick(nowMs)
        if (!timer) {
          dueMs = nowMs
          ownMsWhenSet = ownGc.totalMs
        }
      }
      values.eventLoopDelay = buckets.row
      values.externalPeakBytes = Math.max(externalPeakBytes, values.externalBytes ?? 0)
    },
    sent () {
      buckets.longestSeconds = 0
      externalPeakBytes = 0
    },
    stop () {
      clearTimeout(timer)
    }
  }
}

module.exports = { delay }
