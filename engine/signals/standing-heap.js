'use strict'

const { pointsAfterMajors } = require('./growth')

/**
 * A level that stands: how long memory has been at its highest level, and how long its rise to this
 * level took.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 * @typedef {'liveHeapBytes' | 'outsideHeapBytes'} Level
 */

/** Longest time that is looked at. */
const SPAN_SECONDS = 7200
/** Share of the highest reading from which a reading is at its level. */
const LEVEL_SHARE = 0.97
/** Share of the highest reading that the timed part of the rise covers. */
const RISE_SHARE = 0.5

/**
 * @param {Window} window
 * @param {Level} level
 * @returns {{ sinceSeconds: number, standsSeconds: number, roseSeconds: number } | null}
 *   sinceSeconds: uptime; null while the memory is below its highest level
 */
const findStanding = (window, level) => window.once(`standing ${level}`, () => {
  const { times, values } = level === 'liveHeapBytes'
    ? pointsAfterMajors(window, level, SPAN_SECONDS)
    : window.points(level, SPAN_SECONDS)
  let highest = -Infinity
  for (const value of values) highest = Math.max(highest, value)
  const below = values.findLastIndex(value => value < LEVEL_SHARE * highest)
  if (values.length === 0 || below === values.length - 1) return null
  const since = times[below + 1]
  const half = values.findLastIndex((value, i) => i <= below && value <= RISE_SHARE * highest)
  // There was no memory at the start of the process.
  const from = half < 0 ? 0 : times[half]
  return {
    sinceSeconds: since,
    standsSeconds: times[times.length - 1] - since,
    roseSeconds: since - from
  }
})

/**
 * @param {Window} window
 * @param {Level} level
 * @returns {number | null}
 */
function standLoad (window, level) {
  const found = findStanding(window, level)
  if (!found) return null
  const { sinceSeconds, roseSeconds } = found
  const work = (/** @type {number} */ seconds) =>
    window.increase('workSeconds', seconds)?.increase ?? NaN
  const stood = window.nowSeconds - sinceSeconds
  const since = work(stood)
  const rising = (work(stood + roseSeconds) - since) / roseSeconds
  return rising > 0 && since >= 0 ? since / stood / rising : null
}

/**
 * @param {string} what memory, such as: the live heap
 * @param {Level} level
 * @returns {Record<'stands' | 'rose' | 'load', Signal>}
 */
const standing = (what, level) => {
  const when = {
    expected: `while ${what} is at its highest level`, afterEvent: /** @type {const} */ (true)
  }
  return {
    stands: {
      unit: 'seconds',
      ...when,
      help: `Time between the first and the last of the newest readings of ${what} that are all ` +
        'within 3 % of its highest reading in two hours.',
      compute: window => findStanding(window, level)?.standsSeconds ?? null
    },
    rose: {
      unit: 'seconds',
      ...when,
      help: `Time that ${what} took to rise from half of its highest level to this level, or ` +
        'from the start of the process, if no reading was that low.',
      compute: window => findStanding(window, level)?.roseSeconds ?? null
    },
    load: {
      unit: 'ratio',
      ...when,
      help: `CPU time per second without GC since ${what} is at its highest level, divided by ` +
        'the CPU time per second during the rise.',
      compute: window => standLoad(window, level)
    }
  }
}

const heap = standing('the live heap', 'liveHeapBytes')
const outside = standing('the memory outside the heap', 'outsideHeapBytes')

module.exports = {
  liveHeapStandsSeconds: heap.stands,
  liveHeapRoseSeconds: heap.rose,
  liveHeapStandLoadRatio: heap.load,
  outsideHeapStandsSeconds: outside.stands,
  outsideHeapRoseSeconds: outside.rose,
  outsideHeapStandLoadRatio: outside.load
}
