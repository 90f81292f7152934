'use strict'

const { isOwnGc } = require('@memwatch/agent/protocol/frame')
const { trend } = require('../statistics/trend')

/** Spans a trend is looked for in, each as long as one tier of the history. */
const SPANS_SECONDS = [600, 7200, 86_400]
/** What lasting.js judges over hours and days. @type {readonly TrackName[]} */
const LASTING_TRACKS = ['liveHeapBytes', 'outsideHeapBytes']
const QUICK_SPANS_SECONDS = [600, 7200]
/** The first part of a life is warm-up: modules load, caches and pools fill, code is compiled. */
const WARM_UP_SHARE = 0.2
const WARM_UP_MOST_SECONDS = 300
/** What a rise must be above all before it, over the rise. */
const NEW_SHARE = 0.3
/** Readings after majors from which on the others are not needed. */
const ENOUGH_READINGS = 7
/**
 * Readings after majors replace the others once they cover this share of their span: an app whose
 * majors have just begun, one a second, gave seven readings over six seconds of a minute's growth.
 */
const MAJORS_SPAN_SHARE = 0.5
/** What has grown for less than this may be a pool that fills. */
const LEAST_SECONDS = 30
/**
 * Mann–Kendall score from which a rise is no accident: one chance in a thousand that a flat series
 * looks like it.
 */
const CERTAIN_SCORE = 3

/**
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 * @typedef {import('../statistics/trends').Found} Found
 */

/**
 * How a track grows: of all spans, the one in which it rose most like a line – a leak that began
 * yesterday is no line over the whole life.
 *
 * @param {Window} window
 * @param {TrackName} track
 * @param {{ afterMajors?: boolean }} [options] afterMajors: the readings that follow a major GC say
 *   most, as what lies between them may be garbage that waits; where majors are rare all readings
 *   are taken, and the judge asks for majors at all
 * @returns {Found} trend: y in the track's unit, x in seconds; readings: since the warm-up
 */
function growthOf (window, track, { afterMajors = false } = {}) {
  return window.once(afterMajors ? `${track} after majors` : track, () => {
    if (!afterMajors) return growth(window, track, false)
    const found = growth(window, track, true)
    if (found.readings < ENOUGH_READINGS) return growth(window, track, false)
    // All readings span no more than the settled life: their own trend is rarely needed.
    const spanSeconds = found.trend?.spanX ?? 0
    const settledSeconds = window.nowSeconds - warmUpSeconds(window.nowSeconds)
    if (spanSeconds >= MAJORS_SPAN_SHARE * settledSeconds) return found
    const all = growth(window, track, false)
    return spanSeconds >= MAJORS_SPAN_SHARE * (all.trend?.spanX ?? 0) ? found : all
  })
}

/**
 * @param {number} ageSeconds of the isolate
 * @returns {number} the first part of its life, which no trend includes
 */
const warmUpSeconds = ageSeconds => Math.min(ageSeconds * WARM_UP_SHARE, WARM_UP_MOST_SECONDS)

/**
 * @param {Window} window
 * @param {TrackName} track
 * @param {boolean} afterMajors
 * @returns {Found}
 */
function growth (window, track, afterMajors) {
  const warmUp = warmUpSeconds(window.nowSeconds)
  /** @type {Found} */
  let best = { trend: null, readings: 0 }
  let readings = 0
  for (const span of LASTING_TRACKS.includes(track) ? QUICK_SPANS_SECONDS : SPANS_SECONDS) {
    const seconds = Math.min(span, window.nowSeconds - warmUp)
    const found = window.trend(`${track}/${span}/${afterMajors}`, seconds, () => {
      const { times, values } = afterMajors
        ? pointsAfterMajors(window, track, seconds)
        : window.points(track, seconds)
      const line = trend(times, values)
      return {
        trend: line,
        readings: times.length,
        isNew: line === null || isNew(window, track, line, values[values.length - 1])
      }
    })
    const better =
      found.trend &&
      (!best.trend ||
        !best.isNew ||
        found.trend.z * found.trend.fit > best.trend.z * best.trend.fit)
    if (better) best = found
    readings = Math.max(readings, found.readings)
    if (window.nowSeconds <= span) break
  }
  return { ...best, readings }
}

/**
 * Whether a rise leads above what was there before it: what comes back each morning does not.
 * @param {Window} window
 * @param {TrackName} track
 * @param {import('../statistics/trend').Trend} line
 * @param {number} last value
 */
function isNew (window, track, line, last) {
  const longest = SPANS_SECONDS[SPANS_SECONDS.length - 1]
  if (line.rise <= 0 || line.spanX > longest / 2) return true
  const { times, values } = window.points(track, window.settledSeconds(longest))
  let highest = -Infinity
  for (let i = 0; i < times.length && times[i] < window.nowSeconds - line.spanX; i++) {
    if (values[i] > highest) highest = values[i]
  }
  return last - highest >= NEW_SHARE * line.rise
}

/**
 * Readings of a track that follow a major GC each, oldest first.
 * @param {Window} window
 * @param {TrackName} track
 * @param {number} seconds
 */
function pointsAfterMajors (window, track, seconds) {
  const majors = window.points('liveHeapMajors', seconds)
  const all = window.points(track, seconds)
  /** @type {{ times: number[], values: number[] }} */
  const kept = { times: [], values: [] }
  let at = 0
  for (let i = 0; i < majors.times.length; i++) {
    // The same count of majors is the same reading, sent again.
    if (i > 0 && majors.values[i] === majors.values[i - 1]) continue
    while (all.times[at] < majors.times[i]) at++
    if (all.times[at] !== majors.times[i]) continue
    kept.times.push(all.times[at])
    kept.values.push(all.values[at])
  }
  return kept
}

/**
 * Readings after full GCs that memwatch asked for.
 * @param {Window} window
 * @param {number} seconds
 * @returns {number}
 */
function countForcedReadings (window, seconds) {
  // Most processes are never asked for one.
  if (!Object.keys(window.values.gc ?? {}).some(isOwnGc)) return 0
  const { values } = window.points('forcedMajors', seconds)
  return values.filter((count, i) => i > 0 && count > values[i - 1]).length
}

/**
 * How much a rise looks like one that goes on: 0 where it may be chance or does not rise, else r²
 * of the line times the slower of the late slopes over the whole one, 1 at most. A leak measures
 * 0.7–1; what fills up falls towards 0.
 * @param {Found} found
 * @returns {number | null} null with too few readings, or over too short a time
 */
function steadiness ({ trend: found }) {
  if (!found || found.spanX < LEAST_SECONDS) return null
  if (found.z < CERTAIN_SCORE || found.slope <= 0) return 0
  const late = found.lastThirdSlope / found.slope
  const halves = found.earlySlope > 0 ? found.lateSlope / found.earlySlope : 1
  return found.fit * Math.max(0, Math.min(1, late, halves))
}

/**
 * The live heap across major GCs: it is read after each, and only then.
 * @param {Window} window
 * @returns {Found}
 */
const liveHeapTrend = window =>
  window.once('live heap', () => growth(window, 'liveHeapBytes', true))

module.exports = {
  countForcedReadings,
  growthOf,
  liveHeapTrend,
  pointsAfterMajors,
  steadiness,
  warmUpSeconds,
  ENOUGH_READINGS
}
