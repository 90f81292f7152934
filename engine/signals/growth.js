'use strict'

const { isOwnGc } = require('@memwatch/agent/protocol/frame')
const { trend } = require('../statistics/trend')

/** Windows in which a trend is sought, each as long as one tier of the history. */
const SPANS_SECONDS = [600, 7200, 86_400]
/** Tracks that lasting.js judges over hours and days. @type {readonly TrackName[]} */
const LASTING_TRACKS = ['liveHeapBytes', 'outsideHeapBytes']
const QUICK_SPANS_SECONDS = [600, 7200]
/**
 * Warm-up, the first part of a process's life: modules load, caches and pools fill, code is
 * compiled.
 */
const WARM_UP_SHARE = 0.2
const WARM_UP_MOST_SECONDS = 300
/** Least part of a rise that exceeds all earlier values. */
const NEW_SHARE = 0.3
/** Number of readings after majors that makes other readings unnecessary. */
const ENOUGH_READINGS = 7
/**
 * Share of their span that readings after majors must cover to replace the others. An app whose
 * majors had just begun, one a second, gave seven readings over six seconds of a minute's growth.
 */
const MAJORS_SPAN_SHARE = 0.5
/** Growth that is younger than this may be a pool that fills. */
const LEAST_SECONDS = 30
/** Mann–Kendall score of significance: a flat series reaches it once in a thousand times. */
const CERTAIN_SCORE = 3

/**
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 * @typedef {import('../statistics/trends').Found} Found
 */

/**
 * Growth of a track in the window where its rise is most like a line: a leak that began yesterday
 * is no line over the whole life.
 *
 * @param {Window} window
 * @param {TrackName} track
 * @param {{ afterMajors?: boolean }} [options] afterMajors: prefer the readings right after major
 *   GCs, because memory between them may be garbage. Where majors are rare all readings count, and
 *   the judge asks for a major
 * @returns {Found} trend: y in the track's unit, x in seconds; readings: since the warm-up
 */
function growthOf (window, track, { afterMajors = false } = {}) {
  return window.once(afterMajors ? `${track} after majors` : track, () => {
    if (!afterMajors) return growth(window, track, false)
    const found = growth(window, track, true)
    if (found.readings < ENOUGH_READINGS) return growth(window, track, false)
    // The trend of all readings spans at most the time since the warm-up. If the trend of the
    // readings after major GCs spans most of that time, the other one is not computed.
    const spanSeconds = found.trend?.spanX ?? 0
    const settledSeconds = window.nowSeconds - warmUpSeconds(window.nowSeconds)
    if (spanSeconds >= MAJORS_SPAN_SHARE * settledSeconds) return found
    const all = growth(window, track, false)
    return spanSeconds >= MAJORS_SPAN_SHARE * (all.trend?.spanX ?? 0) ? found : all
  })
}

/**
 * @param {number} ageSeconds of the isolate
 * @returns {number} length of the warm-up, which no trend includes
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
        ? settledPoints(window, track, seconds)
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
 * True if a rise exceeds all earlier values. A level that returns each morning does not.
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
 * Readings of a track right after major GCs, oldest first.
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
    // A repeated count of majors is the same reading, sent again.
    if (i > 0 && majors.values[i] === majors.values[i - 1]) continue
    while (all.times[at] < majors.times[i]) at++
    if (all.times[at] !== majors.times[i]) continue
    kept.times.push(all.times[at])
    kept.values.push(all.values[at])
  }
  return kept
}

/**
 * Readings after major GCs without what was in use for a moment. V8 runs a major GC when memory
 * outside the heap is allocated: a block that grows by being copied stands twice in such a reading.
 * So a reading counts as far as the next one confirms it. The live heap has no such moment.
 * @param {Window} window
 * @param {TrackName} track
 * @param {number} seconds
 */
function settledPoints (window, track, seconds) {
  const { times, values } = pointsAfterMajors(window, track, seconds)
  if (track === 'liveHeapBytes') return { times, values }
  const now = window.last(track) ?? Infinity
  return { times, values: values.map((value, i) => Math.min(value, values[i + 1] ?? now)) }
}

/**
 * Readings after full GCs that memwatch requested.
 * @param {Window} window
 * @param {number} seconds
 * @returns {number}
 */
function countForcedReadings (window, seconds) {
  // Most processes never receive such a request.
  if (!Object.keys(window.values.gc ?? {}).some(isOwnGc)) return 0
  const { values } = window.points('forcedMajors', seconds)
  return values.filter((count, i) => i > 0 && count > values[i - 1]).length
}

/**
 * Steadiness of a rise: 0 if it is insignificant, else r² of the line times the slower of the late
 * slopes over the whole slope, capped at 1. Leaks measure 0.7–1; growth that levels off falls
 * towards 0.
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
 * Live heap across major GCs: a reading right after each.
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
