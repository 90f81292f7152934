'use strict'

const primordials = require('../primordials')
const { getHeapSpaceStatistics } = require('../v8-functions')
const { GC_KINDS, GC_CAUSES, ORDINARY_CAUSE, GC_PAUSE_BOUNDS_SECONDS } = require('../protocol/frame')
const { Buckets } = require('../protocol/buckets')
const { GcWatchdog } = require('./gc-watchdog')

/** The live heap is read at most this often: V8 may run dozens of majors a second. */
const LIVE_HEAP_EVERY_MS = 50
/** V8's GC flags are bits below this. */
const FLAGS_END = 2 ** 16

/**
 * @param {{ kind?: number, flags?: number }} detail of a PerformanceEntry of type gc
 * @returns {string} kind/cause, the key on the wire
 */
function keyOf ({ kind = 0, flags = 0 }) {
  const name = GC_KINDS[/** @type {keyof typeof GC_KINDS} */ (kind)] ?? `kind_${kind}`
  const cause = GC_CAUSES.find(({ flag }) => (flags & flag) !== 0)?.cause ?? ORDINARY_CAUSE
  return `${name}/${cause}`
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

/**
 * Every GC pause, counted by kind and cause, and the live heap after majors. Entries come in
 * batches, and since Node 20 only when the loop has something else to do: what is pending is taken
 * at each frame.
 * @param {ReturnType<typeof import('./gc-observer').gcObserver>} observer
 * @param {(what: string, work: (...args: any[]) => void) => (...args: any[]) => void} guarded
 * @returns {import('./collector').Collector & { majors: () => number, gcs: () => number }} how many
 *   major ones, and all, were seen so far
 */
function gc (observer, guarded) {
  /** @type {Map<string, Buckets>} */
  const pauses = new Map()
  /**
   * The same by what V8 says, `kind` and `flags` in one number: there may be thousands a second.
   * @type {Map<number, { buckets: Buckets, major: boolean }>}
   */
  const known = new Map()
  /** @param {{ kind?: number, flags?: number }} detail */
  const pausesOf = detail => {
    const key = keyOf(detail)
    let buckets = pauses.get(key)
    if (!buckets) pauses.set(key, buckets = new Buckets(GC_PAUSE_BOUNDS_SECONDS))
    return { buckets, major: key.startsWith('major/') }
  }
  let majors = 0
  const liveHeap = new LiveHeap()

  /** @param {import('node:perf_hooks').PerformanceEntry[]} entries */
  const take = entries => {
    let sawMajor = false
    for (const entry of entries) {
      const detail = /** @type {{ kind?: number, flags?: number }} */ (/** @type {{ detail?: object }} */ (entry).detail ?? entry)
      const code = (detail.kind ?? 0) * FLAGS_END + (detail.flags ?? 0)
      let pause = known.get(code)
      if (!pause) known.set(code, pause = pausesOf(detail))
      pause.buckets.add(entry.duration / 1000)
      if (pause.major) {
        majors++
        sawMajor = true
      }
    }
    if (sawMajor) liveHeap.read(majors)
  }

  observer.handTo(guarded('gc', take))
  const watchdog = new GcWatchdog(observer)
  return {
    fields: ['gc', 'gcObserverStopped', 'gcUnobservedSeconds', 'liveHeapBytes', 'liveHeapMajors'],
    majors: () => majors,
    gcs: () => [...pauses.values()].reduce((sum, { count }) => sum + count, 0),
    read (values) {
      take(observer.takeRecords())
      /** @type {Record<string, import('../protocol/frame').PauseRow>} */
      const rows = {}
      let scavenges = 0
      let unasked = majors
      for (const [key, { row, count }] of pauses) {
        rows[key] = row
        if (key.startsWith('minor')) scavenges += count
        else if (key === 'major/forced') unasked -= count
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
      for (const buckets of pauses.values()) buckets.longestSeconds = 0
    }
  }
}

module.exports = { gc, keyOf }
