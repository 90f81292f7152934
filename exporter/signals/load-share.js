'use strict'

const { unexplainedGrowth } = require('../statistics/unexplained-growth')

/** @typedef {import('../series/window').Window} Window */

/** How far a trend of minutes looks back. */
const QUICK_SECONDS = 7200
/** A load of less than this is noise. */
const QUICK_STEP_SECONDS = 120

/**
 * The share of a rise within two hours that the load explains, which rose with it.
 * @param {Window} window @param {import('../series/tracks').TrackName} level @returns {number | null}
 */
const quickLoadShare = (window, level) => window.trend(`load of ${level}`, QUICK_SECONDS, () => {
  const from = window.nowSeconds - window.settledSeconds(QUICK_SECONDS)
  const steps = Math.floor((window.nowSeconds - from) / QUICK_STEP_SECONDS)
  const times = Array.from({ length: steps }, (_, i) => from + (i + 0.5) * QUICK_STEP_SECONDS)
  const inSteps = (/** @type {import('../series/tracks').TrackName} */ track, /** @type {(first: number, last: number, seconds: number) => number} */ read) => {
    const points = window.points(track, QUICK_SECONDS)
    const ends = Array.from({ length: steps }, () => ({ first: NaN, last: NaN, from: 0, to: 0 }))
    points.times.forEach((time, i) => {
      const step = ends[Math.floor((time - from) / QUICK_STEP_SECONDS)]
      if (!step) return
      if (Number.isNaN(step.first)) Object.assign(step, { first: points.values[i], from: time })
      Object.assign(step, { last: points.values[i], to: time })
    })
    return ends.map(({ first, last, from, to }) => read(first, last, to - from))
  }
  const perSecond = (/** @type {number} */ first, /** @type {number} */ last, /** @type {number} */ seconds) => seconds > 0 ? (last - first) / seconds : NaN
  const growth = unexplainedGrowth({
    times,
    level: inSteps(level, (_, last) => last),
    loads: [inSteps('workSeconds', perSecond), inSteps('scavenges', perSecond)],
    daily: false
  })
  const rise = growth ? growth.loadRise + growth.slope * growth.seconds : 0
  return { trend: null, readings: 0, share: growth && rise > 0 ? Math.max(0, growth.loadRise / rise) : null }
}).share ?? null

module.exports = { QUICK_SECONDS, quickLoadShare }
