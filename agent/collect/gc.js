'use strict'

const { GcPauses } = require('./gc-pauses')

/**
 * Last full GC on command, in milliseconds since the isolate started.
 * @typedef {object} OwnGc
 * @property {number} beganMs Infinity before the first
 * @property {number} endedMs
 * @property {number} totalMs sum of the pauses of all GCs on command
 */

/** @returns {OwnGc} */
const noOwnGc = () => ({ beganMs: Infinity, endedMs: -Infinity, totalMs: 0 })

/**
 * GC pauses, and the live heap after major GCs: by V8's callbacks where the addon reaches them,
 * else by an observer.
 * @param {import('./gc-start').StartedGcs} started
 * @param {import('../guard').Guard['wrap']} guarded
 * @param {OwnGc} [ownGc] GCs that the agent runs on command
 * @param {() => void} [onNewCounter] called when the result of `counter` changes
 * @returns {import('./collector').Collector & { majors: () => number, gcs: () => number,
 *   countPending: () => void, countOwn: () => void, counter: () => GcCounter }} majors, gcs: count
 *   so far; countPending: counts reported GCs; countOwn: counts GCs since then as the agent's own
 */
function gc (started, guarded, ownGc = noOwnGc(), onNewCounter = () => {}) {
  const pauses = new GcPauses()
  /** @type {GcCounter['gcHooksMissing']} */
  let gcHooksMissing = started.hooksMissing
  const observe = (/** @type {Observer} */ observer) =>
    new (require('./gc-observed').ObservedGcs)(observer, pauses, guarded, ownGc)
  const countByHooks = (/** @type {import('@memwatch/allocator').GcHooks} */ hooks) =>
    new (require('./gc-hooked').HookedGcs)(hooks, pauses)
  let source = started.hooks
    ? countByHooks(started.hooks)
    : observe(/** @type {Observer} */ (started.observer))
  if ('verify' in source) {
    source.verify(guarded, observer => {
      gcHooksMissing = 'disagreed'
      source = observe(observer)
      onNewCounter()
    })
  }
  const countPending = () => source.countPending()
  return {
    fields: ['gc', 'gcObserverStopped', 'gcUnobservedSeconds', 'liveHeapBytes', 'liveHeapMajors'],
    majors: () => {
      countPending()
      return pauses.majors
    },
    gcs: () => {
      countPending()
      return pauses.count
    },
    countPending,
    countOwn: () => source.countOwn(),
    counter: () => ({ gcCounter: source.counter, ...(gcHooksMissing && { gcHooksMissing }) }),
    read (values) {
      countPending()
      /** @type {Record<string, import('../protocol/frame').PauseRow>} */
      const rows = {}
      for (const [key, { row }] of pauses.byKey) rows[key] = row
      values.gc = rows
      // This collector reads last: the frame already holds the values of the heap's collector.
      source.afterFrame(values)
      if (pauses.liveBytes >= 0) {
        values.liveHeapBytes = pauses.liveBytes
        values.liveHeapMajors = pauses.liveMajors
      }
    },
    sent () {
      for (const buckets of pauses.byKey.values()) buckets.longestSeconds = 0
    },
    stop: () => source.stop()
  }
}

/**
 * @typedef {ReturnType<typeof import('./gc-observer').gcObserver>} Observer
 * @typedef {Pick<import('../protocol/frame').Hello, 'gcCounter' | 'gcHooksMissing'>} GcCounter
 */

module.exports = { gc, noOwnGc }
