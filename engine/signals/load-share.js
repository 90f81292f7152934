'use strict'

const { unexplainedGrowth } = require('../statistics/unexplained-growth')

/**
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 */

/** Default window: the longest window of a trend over minutes. */
const QUICK_SECONDS = 7200
/**
 * Shortest time in which load and retained memory can be distinguished: both rise when the process
 * starts.
 */
const LEAST_SECONDS = 1800
/** Steps in which a rise is compared with the load. */
const STEPS = 60

/**
 * Share of a rise that is explained by a load that rose at the same time.
 * @param {Window} window
 * @param {TrackName} level
 * @param {number} [spanSeconds] window of the rise
 * @returns {number | null}
 */
const loadShare = (window, level, spanSeconds = QUICK_SECONDS) =>
  weigh(window, level, spanSeconds)?.share ?? null

/**
 * Upper bound of the share of a rise that the load explains. Over hours, the effect of a load that
 * rises in the morning resembles retained memory.
 * @param {Window} window
 * @param {TrackName} level
 * @param {number} spanSeconds window of the rise
 * @returns {number | null}
 */
const mostLoadShare = (window, level, spanSeconds) =>
  weigh(window, level, spanSeconds)?.mostShare ?? null

/**
 * @param {Window} window
 * @param {TrackName} level
 * @param {number} spanSeconds
 */
function weigh (window, level, spanSeconds) {
  if (window.settledSeconds(spanSeconds) < LEAST_SECONDS) return null
  const name = `load of ${level} in ${spanSeconds}`
  return window.overSpan(name, spanSeconds, () => explain(window, level, spanSeconds))
}

/**
 * @param {Window} window
 * @param {TrackName} level
 * @param {number} spanSeconds
 * @returns {import('../statistics/trends').Found}
 */
function explain (window, level, spanSeconds) {
  const from = window.nowSeconds - window.settledSeconds(spanSeconds)
  const stepSeconds = (window.nowSeconds - from) / STEPS
  const times = Array.from({ length: STEPS }, (_, i) => from + (i + 0.5) * stepSeconds)
  const growth = unexplainedGrowth({
    times,
    level: inSteps(level).map(({ last }) => last),
    loads: [inSteps('workSeconds'), inSteps('scavenges')].map(ends => ends.map(perSecond)),
    daily: false
  })
  const rise = growth ? growth.loadRise + growth.slope * growth.seconds : 0
  const share = growth && rise > 0 ? Math.max(0, growth.loadRise / rise) : null
  const mostShare = growth && Math.max(share ?? 0, 1 - growth.leastRatio)
  return { trend: null, readings: 0, share, mostShare }

  /** First and last reading of each step. @param {TrackName} track */
  function inSteps (track) {
    const ends = times.map(() => ({ first: NaN, last: NaN, from: 0, to: 0 }))
    const points = window.points(track, spanSeconds)
    points.times.forEach((time, i) => {
      const step = ends[Math.floor((time - from) / stepSeconds)]
      if (!step) return
      if (Number.isNaN(step.first)) Object.assign(step, { first: points.values[i], from: time })
      Object.assign(step, { last: points.values[i], to: time })
    })
    return ends
  }
}

/** @param {{ first: number, last: number, from: number, to: number }} step */
const perSecond = ({ first, last, from, to }) => to > from ? (last - first) / (to - from) : NaN

module.exports = { QUICK_SECONDS, loadShare, mostLoadShare }
