'use strict'

const { RATE_SECONDS } = require('../history/window')

/**
 * Upper bound of the live heap's growth while no major GC runs. Surviving objects are in the old
 * spaces or still in the young ones, so the growth of the old spaces plus the size of the young
 * spaces is the bound.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 *
 * @typedef {object} Bound
 * @property {number} bytes upper bound of the growth
 * @property {number} oldBytes part of it in the old spaces
 * @property {number} seconds length of the window
 */

/** Longest window. Slower growth is measured over hours: lasting.js. */
const SPAN_SECONDS = 7200
/** Spaces that objects are promoted to. @type {readonly import('../history/tracks').TrackName[]} */
const OLD_SPACES = ['oldSpaceBytes', 'largeObjectSpaceBytes', 'codeSpaceBytes']
/** Spaces of young objects. */
const YOUNG_SPACES = ['new_space', 'new_large_object_space']

/**
 * @param {Window} window
 * @returns {Bound | null} null if GCs are not observed, a major GC ran, or the start phase is not
 *   over
 */
const findBound = window => window.once('bound of the live heap', () => {
  const { values, nowSeconds } = window
  const { spaces, heapUsedBytes, gc, gcObserverStopped } = values
  const seconds = window.settledSeconds(SPAN_SECONDS)
  if (!spaces || !gc || gcObserverStopped || heapUsedBytes === undefined || seconds <= 0) {
    return null
  }
  // The young generation is smallest right after a scavenge: use the lowest of the last readings.
  const used = Math.min(
    heapUsedBytes, ...window.points('heapUsedBytes', Math.min(seconds, RATE_SECONDS)).values
  )
  if (hadMajor(window, seconds)) return null
  const young = YOUNG_SPACES.reduce((sum, space) => sum + (spaces[space]?.[0] ?? 0), 0)
  let oldBytes = 0
  let fromSeconds = nowSeconds
  for (const track of OLD_SPACES) {
    const { times, values: sizes } = window.points(track, seconds)
    if (times.length === 0) continue
    oldBytes += sizes[sizes.length - 1] - sizes[0]
    fromSeconds = Math.min(fromSeconds, times[0])
  }
  const youngBytes = Math.max(0, used - (heapUsedBytes - young))
  return {
    bytes: Math.max(0, oldBytes) + youngBytes,
    oldBytes: Math.max(0, oldBytes),
    seconds: nowSeconds - fromSeconds
  }
})

/**
 * @param {Window} window
 * @param {number} seconds
 */
function hadMajor (window, seconds) {
  const { times } = window.pointsOnChange('liveHeapMajors', 'liveHeapMajors', seconds)
  return times.length > 1 ||
    (times.length > 0 && window.points('oldSpaceBytes', seconds).times[0] < times[0])
}

module.exports = {
  liveHeapBoundBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "Upper bound of the live heap's growth within two hours without a major GC: promoted " +
      'plus young objects.',
    compute: window => findBound(window)?.bytes ?? null
  }),
  liveHeapBoundOldBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Part of liveHeapBoundBytes in the old spaces.',
    compute: window => findBound(window)?.oldBytes ?? null
  }),
  liveHeapBoundSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Length of the window of liveHeapBoundBytes.',
    compute: window => findBound(window)?.seconds ?? null
  })
}
