'use strict'

/**
 * Memory that the heap of an app at rest did not need when a full GC of memwatch freed it. V8 runs
 * no GC in such an app, so it would have kept this memory.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 */

const SPAN_SECONDS = 600
/** An app at rest: its event loop is busy for less than this share of these seconds. */
const REST = Object.freeze({ seconds: 3, utilizationRatio: 0.05 })
/** After a full GC, V8 may run further ones for so long, to return memory. */
const FOLLOW_SECONDS = 15

/**
 * @param {{ times: number[], values: number[] }} points
 * @param {number} time
 * @returns {number} last value up to a time; NaN without one
 */
function valueAt ({ times, values }, time) {
  let i = times.length - 1
  while (i >= 0 && times[i] > time) i--
  return i < 0 ? NaN : values[i]
}

/**
 * @param {Window} window
 * @returns {number | null} bytes of the resident heap before a requested GC at rest, less the live
 *   heap after it, at most; null without such GCs, or if V8 ran a major GC of its own since
 */
function restFreedBytes (window) {
  const { times, values: forced } = window.points('forcedMajors', SPAN_SECONDS)
  if (!(forced[forced.length - 1] > 0)) return null
  const [held, live, active, own, external] = /** @type {const} */ ([
    'heapResidentBytes', 'liveHeapBytes', 'eventLoopActiveSeconds', 'ordinaryMajors',
    'externalMajors'
  ]).map(track => window.points(track, SPAN_SECONDS))
  const majorsAt = (/** @type {number} */ time) =>
    valueAt(own, time) + (valueAt(external, time) || 0)
  let freed = null
  for (let i = times.length - 1; i > 0; i--) {
    if (forced[i] === forced[i - 1]) continue
    if (majorsAt(times[i] + FOLLOW_SECONDS) !== majorsAt(window.nowSeconds)) break
    const before = times[i - 1]
    const busySeconds = valueAt(active, before) - valueAt(active, before - REST.seconds)
    if (!(busySeconds < REST.utilizationRatio * REST.seconds)) continue
    freed = Math.max(freed ?? 0, valueAt(held, before) - valueAt(live, times[i]))
  }
  return freed
}

module.exports = {
  REST,
  restFreedSignals: {
    restFreedBytes: /** @type {Signal} */ ({
      unit: 'bytes',
      expected: 'where memwatch runs full GCs',
      help: 'Resident heap before a full GC that memwatch requested from an app at rest, less ' +
        'the live heap after it: the most in the last ten minutes and since the last major GC of ' +
        `V8, not counting those of the next ${FOLLOW_SECONDS} s.`,
      compute: restFreedBytes
    })
  }
}
