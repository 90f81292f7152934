'use strict'

const { pointsAfterMajors } = require('./growth')

/**
 * A live heap that stands: how long it has been at its highest level, and how long its rise to this
 * level took.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 */

/** Longest time that is looked at. */
const SPAN_SECONDS = 7200
/** Share of the highest reading from which a reading is at its level. */
const LEVEL_SHARE = 0.97
/** Share of the highest reading that the timed part of the rise covers. */
const RISE_SHARE = 0.5

/**
 * @param {Window} window
 * @returns {{ standsSeconds: number, roseSeconds: number } | null} null while the live heap is
 *   below its level
 */
const findStanding = window => window.once('standingHeap', () => {
  const { times, values } = pointsAfterMajors(window, 'liveHeapBytes', SPAN_SECONDS)
  const highest = Math.max(...values)
  const below = values.findLastIndex(value => value < LEVEL_SHARE * highest)
  if (values.length === 0 || below === values.length - 1) return null
  const since = times[below + 1]
  const half = values.findLastIndex((value, i) => i <= below && value <= RISE_SHARE * highest)
  // The heap was empty at the start of the process.
  const from = half < 0 ? 0 : times[half]
  return { standsSeconds: times[times.length - 1] - since, roseSeconds: since - from }
})

module.exports = {
  liveHeapStandsSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    expected: 'while the live heap is at its highest level',
    afterEvent: true,
    help: 'Time between the first and the last of the newest readings of the live heap that are ' +
      'all within 3 % of its highest reading in two hours.',
    compute: window => findStanding(window)?.standsSeconds ?? null
  }),
  liveHeapRoseSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    expected: 'while the live heap is at its highest level',
    afterEvent: true,
    help: 'Time that the live heap took to rise from half of its highest level to this level, or ' +
      'from the start of the process, if no reading was that low.',
    compute: window => findStanding(window)?.roseSeconds ?? null
  })
}
