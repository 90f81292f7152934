'use strict'

const primordials = require('../primordials')
const { getHeapSpaceStatistics } = require('../v8-functions')
const {
  GC_KINDS,
  GC_CAUSES,
  ORDINARY_CAUSE,
  OWN_CAUSE,
  GC_PAUSE_BOUNDS_SECONDS
} = require('../protocol/frame')
const { Buckets } = require('../protocol/buckets')
const { GcWatchdog } = require('./gc-watchdog')

/** The live heap is read at most this often: V8 may run dozens of majors a second. */
const LIVE_HEAP_EVERY_MS = 50
/** The clocks of the agent and of V8's reports agree to a few microseconds. */
const SAME_MOMENT_MS = 0.1
/** Majors that somebody asked for. */
const ASKED_FOR = new Set(['major/forced', `major/${OWN_CAUSE}`])
/** V8's GC flags are bits below this. */
const FLAGS_END = 2 ** 16

/**
 * The last full GC that the agent ran on command, in milliseconds since the isolate started.
 * @typedef {object} OwnGc
 * @property {number} beganMs Infinity before the first
 * @property {number} endedMs
 * @property {number} totalMs pauses of all of them
 */

/** @returns {OwnGc} */
const noOwnGc = () => ({ beganMs: Infinity, endedMs: -Infinity, totalMs: 0 })

/**
 * @param {{ kind?: number, flags?: number }} detail of a PerformanceEntry of type gc
 * @param {boolean} [isOwn] whether the agent ran it
 * @returns {string} kind/cause, the key on the wire
 */
function keyOf ({ kind = 0, flags = 0 }, isOwn = false) {
  const name = GC_KINDS[/** @type {keyof typeof GC_KINDS} */ (kind)] ?? `kind_${kind}`
  const cause = GC_CAUSES.find(({ flag }) => (flags & flag) !== 0)?.cause ?? ORDINARY_CAUSE
  return `${name}/${isOwn ? OWN_CAUSE : cause}`
}

/**
 * Used bytes of all spaces but the new ones: what a major GC left, plus what was promoted or made
 * old since.
 */
function oldBytes () {
  let bytes = 0
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics()) {
    if (!name.startsWith('new_')) bytes += used
  }
  return bytes
}

/** The live heap after the last major GC that was read. */
class LiveHeap {
  bytes = -1
  /** Major GCs up to then. */
  majors = 0
  #readAtMs = -Infinity

  /** A major GC ran. @param {number} majors so far */
  read (majors) {
    const nowMs = primordials.nowMs()
    if (nowMs - this.#readAtMs < LIVE_HEAP_EVERY_MS) return
    this.#readAtMs = nowMs
    this.bytes = oldBytes()
    this.majors = majors
  }
}

/** The pauses of each kind and cause. */
class Pauses {
  /** @type {Map<string, Buckets>} */
  byKey = new Map()
  /**
   * The same by what V8 says, `kind` and `flags` in one number: there may be thousands a second.
   * Negative where the agent ran it.
   * @type {Map<number, { buckets: Buckets, major: boolean }>}
   */
  #known = new Map()

  /**
   * @param {{ kind?: number, flags?: number }} detail
   * @param {boolean} isOwn
   */
  find (detail, isOwn) {
    const told = (detail.kind ?? 0) * FLAGS_END + (detail.flags ?? 0)
    const code = isOwn ? -told : told
    let pause = this.#known.get(code)
    if (!pause) this.#known.set(code, pause = this.#add(keyOf(detail, isOwn)))
    return pause
  }

  /** @param {string} key */
  #add (key) {
    let buckets = this.byKey.get(key)
    if (!buckets) this.byKey.set(key, buckets = new Buckets(GC_PAUSE_BOUNDS_SECONDS))
    return { buckets, major: key.startsWith('major/') }
  }
}

/**
 * Every GC pause, counted by kind and cause, and the live heap after majors. Entries come in
 * batches, and since Node 20 only when the loop has something else to do: what is pending is taken
 * at each frame.
 * @param {ReturnType<typeof import('./gc-observer').gcObserver>} observer
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} guarded
 * @param {OwnGc} [ownGc] V8 reports what it ran for the agent like what it ran for the app: the
 *   time tells them apart
 * @returns {import('./collector').Collector & { majors: () => number, gcs: () => number,
 *   takePending: () => void }} how many major ones, and all, were seen so far; takePending: counts
 *   what V8 has reported
 */
function gc (observer, guarded, ownGc = noOwnGc()) {
  const pauses = new Pauses()
  let majors = 0
  const liveHeap = new LiveHeap()

  /** @param {import('node:perf_hooks').PerformanceEntry[]} entries */
  const take = entries => {
    let sawMajor = false
    for (const entry of entries) {
      const detail = /** @type {{ kind?: number, flags?: number }} */ (/** @type {{ detail?: object }} */ (entry).detail ?? entry)
      const isOwn = entry.startTime > ownGc.beganMs - SAME_MOMENT_MS &&
        entry.startTime < ownGc.endedMs + SAME_MOMENT_MS
      const pause = pauses.find(detail, isOwn)
      pause.buckets.add(entry.duration / 1000)
      if (pause.major) {
        majors++
        sawMajor = true
      }
    }
    if (sawMajor) liveHeap.read(majors)
  }

  const takePending = () => take(observer.takeRecords())
  observer.handTo(guarded('gc', take))
  const watchdog = new GcWatchdog(observer)
  return {
    fields: ['gc', 'gcObserverStopped', 'gcUnobservedSeconds', 'liveHeapBytes', 'liveHeapMajors'],
    majors: () => majors,
    gcs: () => [...pauses.byKey.values()].reduce((sum, { count }) => sum + count, 0),
    takePending,
    read (values) {
      takePending()
      /** @type {Record<string, import('../protocol/frame').PauseRow>} */
      const rows = {}
      let scavenges = 0
      let unasked = majors
      for (const [key, { row, count }] of pauses.byKey) {
        rows[key] = row
        if (key.startsWith('minor')) scavenges += count
        else if (ASKED_FOR.has(key)) unasked -= count
      }
      values.gc = rows
      const wasOnBreak = watchdog.onBreak
      // This collector reads last: the frame holds what the heap's has read.
      const { heapUsedBytes, externalBytes } = values
      watchdog.look({ majors: unasked, scavenges, heapUsedBytes, externalBytes })
      if (watchdog.unobservedSeconds > 0) {
        values.gcObserverStopped = wasOnBreak ? 1 : 0
        values.gcUnobservedSeconds = watchdog.unobservedSeconds
      }
      if (liveHeap.bytes >= 0) {
        values.liveHeapBytes = liveHeap.bytes
        values.liveHeapMajors = liveHeap.majors
      }
    },
    sent () {
      for (const buckets of pauses.byKey.values()) buckets.longestSeconds = 0
    }
  }
}

module.exports = { gc, keyOf, noOwnGc }
