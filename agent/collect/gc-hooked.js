'use strict'

const { nowMs } = require('../primordials')
const { getHeapSpaceStatistics } = require('../v8-functions')
const { GC_PAUSE_BOUNDS_SECONDS } = require('../protocol/frame')
const { GcCheck } = require('./gc-check')
const { readDetail, gcObserver } = require('./gc-observer')
const { isLiveSpace, readLiveBytes } = require('./gc-pauses')

/** Columns of the addon's `take`: these columns come first, then the rows. */
const HEADER = Object.freeze({ rows: 0, majors: 1, liveBytes: 2, liveMajors: 3, firstRow: 4 })
/** Columns of a row. From `counted` on they are a row of the wire contract. */
const ROW = Object.freeze({ kind: 0, flags: 1, counted: 2 })
/** Length of a row: kind and flags, count, sum and longest, then the buckets. */
const ROW_LENGTH = ROW.counted + 3 + GC_PAUSE_BOUNDS_SECONDS.length + 1
/** Attempts at equal readings: they differ if a GC or the sweeper ran in between. */
const MOST_TRIES = 5

/**
 * Counts GCs by the addon, in V8's own callbacks. A GC takes less than 1 µs of CPU time there, and
 * 40 to 100 µs with an observer. Two comparisons verify the addon: its reading of the heap with
 * V8's statistics, and its counts with an observer's, until both agree.
 */
class HookedGcs {
  /** @type {'hooks'} */
  counter = 'hooks'
  #hooks
  #pauses
  #counts
  /** @type {ReturnType<typeof gcObserver> | undefined} */
  #observer
  /** @type {GcCheck | undefined} */
  #check
  #isObserverConnected = false
  /** GCs before this time do not count. V8 also delivers them if another observer exists. */
  #sinceMs = 0
  /** @type {(observer: ReturnType<typeof gcObserver>) => void} */
  #onDisagreement = () => {}

  /**
   * @param {import('@memwatch/allocator').GcHooks} hooks
   * @param {import('./gc-pauses').GcPauses} pauses
   */
  constructor (hooks, pauses) {
    this.#hooks = hooks
    this.#pauses = pauses
    this.#counts = new Float64Array(hooks.takenLength)
  }

  /**
   * @param {import('../guard').Guard['wrap']} guarded
   * @param {(observer: ReturnType<typeof gcObserver>) => void} onDisagreement called at most once,
   *   after the addon has stopped, with a connected observer
   */
  verify (guarded, onDisagreement) {
    this.#onDisagreement = onDisagreement
    const fits = (this.#counts.length - HEADER.firstRow) % ROW_LENGTH === 0
    if (fits) {
      this.countPending()
      if (this.#pauses.majors > 0) this.#pauses.readLive()
    }
    this.#check = new GcCheck()
    this.#sinceMs = nowMs()
    this.#observer = gcObserver()
    if (!fits || !this.#readsLiveHeap()) return this.#disagree()
    this.countPending()
    this.#isObserverConnected = true
    this.#observer.deliverTo(guarded('gc', entries => this.#compare(entries, false)))
  }

  /** Counts the app's GCs since the last call. */
  countPending () {
    this.#count(false)
  }

  /** Counts the GCs since countPending as the agent's own. */
  countOwn () {
    this.#count(true)
  }

  afterFrame () {
    if (this.#observer) this.#compare(this.#observer.takeRecords(), true)
  }

  stop () {
    this.#hooks.stop()
    this.#observer?.disconnect()
  }

  /** @param {boolean} isOwn */
  #count (isOwn) {
    const counts = this.#counts
    const pauses = this.#pauses
    this.#hooks.take(counts)
    for (let i = 0; i < counts[HEADER.rows]; i++) {
      const at = HEADER.firstRow + i * ROW_LENGTH
      const count = counts[at + ROW.counted]
      if (count === 0) continue
      const kind = counts[at + ROW.kind]
      const flags = counts[at + ROW.flags]
      pauses.find(kind, flags, isOwn).buckets.addCounted(counts, at + ROW.counted)
      this.#check?.addCounted(kind, flags, count, this.#isObserverConnected)
    }
    pauses.majors = counts[HEADER.majors]
    if (counts[HEADER.liveMajors] > pauses.liveMajors) {
      pauses.liveBytes = counts[HEADER.liveBytes]
      pauses.liveMajors = counts[HEADER.liveMajors]
    }
  }

  /**
   * Makes V8's callback read the live heap at the end of each major GC. The callback calls V8's
   * function for the statistics of a space, as Node.js' GCProfiler does there.
   * @returns {boolean} true if both agree
   */
  #readsLiveHeap () {
    let spaces = 0
    getHeapSpaceStatistics().forEach(({ space_name: name }, i) => {
      if (isLiveSpace(name)) spaces |= 1 << i
    })
    for (let tried = 0; tried < MOST_TRIES; tried++) {
      const before = readLiveBytes()
      const bytes = this.#hooks.readLiveHeap(spaces) ?? NaN
      if (before <= bytes && bytes <= readLiveBytes()) return true
    }
    return false
  }

  /**
   * @param {import('node:perf_hooks').PerformanceEntry[]} entries
   * @param {boolean} isFrame
   */
  #compare (entries, isFrame) {
    const check = this.#check
    if (!check) return
    for (const entry of entries) {
      if (entry.startTime < this.#sinceMs) continue
      const { kind = 0, flags = 0 } = readDetail(entry)
      check.addObserved(kind, flags)
    }
    this.countPending()
    const agrees = check.compare(isFrame)
    if (agrees === undefined) return
    if (!agrees) return this.#disagree()
    this.#observer?.disconnect()
    this.#check = this.#observer = undefined
  }

  #disagree () {
    const observer = /** @type {ReturnType<typeof gcObserver>} */ (this.#observer)
    this.#check = this.#observer = undefined
    this.#hooks.stop()
    this.#onDisagreement(observer)
  }
}

module.exports = { HookedGcs, ROW_LENGTH, HEADER }
