'use strict'

const { OWN_CAUSE } = require('../protocol/frame')
const { readDetail } = require('./gc-observer')
const { GcWatchdog } = require('./gc-watchdog')

/** The clocks of the agent and of V8's reports agree to a few microseconds. */
const SAME_MOMENT_MS = 0.1
const ASKED_FOR = new Set(['major/forced', `major/${OWN_CAUSE}`])

/**
 * Counts GCs by a PerformanceObserver. Entries come in batches, since Node 20 only when the loop is
 * idle: each frame fetches pending entries.
 */
class ObservedGcs {
  /** @type {'observer'} */
  counter = 'observer'
  #observer
  #pauses
  #ownGc
  #watchdog

  /**
   * @param {ReturnType<typeof import('./gc-observer').gcObserver>} observer
   * @param {import('./gc-pauses').GcPauses} pauses
   * @param {import('../guard').Guard['wrap']} guarded
   * @param {import('./gc').OwnGc} ownGc V8 reports the agent's GCs like the app's: their time
   *   identifies them
   */
  constructor (observer, pauses, guarded, ownGc) {
    this.#observer = observer
    this.#pauses = pauses
    this.#ownGc = ownGc
    observer.deliverTo(guarded('gc', entries => this.#count(entries)))
    this.#watchdog = new GcWatchdog(observer)
  }

  /** Counts the GCs that V8 has reported. */
  countPending () {
    this.#count(this.#observer.takeRecords())
  }

  /** Does nothing: V8 reports the agent's GC in a later turn of the loop. */
  countOwn () {}

  stop () {
    this.#observer.disconnect()
  }

  /**
   * The watchdog needs the values that the heap's collector has read.
   * @param {import('./collector').Values} values
   */
  afterFrame (values) {
    const watchdog = this.#watchdog
    const wasOnBreak = watchdog.onBreak
    let scavenges = 0
    let majors = this.#pauses.majors
    for (const [key, { count }] of this.#pauses.byKey) {
      if (key.startsWith('minor')) scavenges += count
      else if (ASKED_FOR.has(key)) majors -= count
    }
    const { heapUsedBytes, externalBytes } = values
    watchdog.check({ majors, scavenges, heapUsedBytes, externalBytes })
    if (watchdog.unobservedSeconds > 0) {
      values.gcObserverStopped = wasOnBreak ? 1 : 0
      values.gcUnobservedSeconds = watchdog.unobservedSeconds
    }
  }

  /** @param {import('node:perf_hooks').PerformanceEntry[]} entries */
  #count (entries) {
    const pauses = this.#pauses
    const { beganMs, endedMs } = this.#ownGc
    let sawMajor = false
    for (const entry of entries) {
      const { kind = 0, flags = 0 } = readDetail(entry)
      const isOwn = entry.startTime > beganMs - SAME_MOMENT_MS &&
        entry.startTime < endedMs + SAME_MOMENT_MS
      const { buckets, isMajor } = pauses.find(kind, flags, isOwn)
      buckets.add(entry.duration / 1000)
      if (isMajor) {
        pauses.majors++
        sawMajor = true
      }
    }
    if (sawMajor) pauses.readLive()
  }
}

module.exports = { ObservedGcs }
