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
 * @returns {{ sinceSeconds: number, standsSeconds: number, roseSeconds: number } | null}
 *   sinceSeconds: uptime; null while the live heap is below its level
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
  return {
    sinceSeconds: since,
    standsSeconds: times[times.length - 1] - since,
    roseSeconds: since - from
  }
})

/**
 * @param {Window} window
 * @returns {number | null}
 */
function standLoad (window) {
  const found = findStanding(window)
  if (!found) return null
  const { sinceSeconds, roseSeconds } = found
  const work = (/** @type {number} */ seconds) =>
    window.increase('workSeconds', seconds)?.increase ?? NaN
  const stood = window.nowSeconds - sinceSeconds
  const since = work(stood)
  const rising = (work(stood + roseSeconds) - since) / roseSeconds
  return rising > 0 && since >= 0 ? since / stood / rising : null
}

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
  }),
  liveHeapStandLoadRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'while the live heap is at its highest level',
    afterEvent: true,
    help: 'CPU time per second without GC since the live heap is at its highest level, divided ' +
      'by the CPU time per second during the rise.',
    compute: standLoad
  })
}
