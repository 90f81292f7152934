'use strict'

const { isOwnGc } = require('@memwatch/agent/protocol/frame')
const { trend } = require('../statistics/trend')

/** Windows in which a trend is sought, each as long as one tier of the history. */
const SPANS_SECONDS = [600, 7200, 86_400]
/** Tracks whose growth over hours and days lasting.js computes. @type {readonly TrackName[]} */
const LASTING_TRACKS = ['liveHeapBytes', 'outsideHeapBytes']
const QUICK_SPANS_SECONDS = [600, 7200]
/**
 * Warm-up, the first part of a process's life: modules load, caches and pools fill, code is
 * compiled.
 */
const WARM_UP_SHARE = 0.2
const WARM_UP_MOST_SECONDS = 300
/** A rise is new if at least this part of it exceeds all earlier values. */
const NEW_SHARE = 0.3
/** With this many readings after major GCs other readings are not needed. */
const ENOUGH_READINGS = 7
/**
 * The same for memory outside the heap, which is no exact measurement: seven readings show
 * significant growth only if each of them exceeds all earlier ones.
 */
const ENOUGH_OUTSIDE_READINGS = 10
/**
 * Readings after major GCs replace all readings if they cover this share of the span of all
 * readings. In one app, the first major GCs came once a second: seven readings covered only six
 * seconds of a minute's growth.
 */
const MAJORS_SPAN_SHARE = 0.5
/** Growth over a shorter time may be a pool that fills. */
const LEAST_SECONDS = 30
/**
 * Mann–Kendall score of significant growth: a flat series reaches it once in a thousand times.
 */
const CERTAIN_SCORE = 3

/**
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 * @typedef {import('../statistics/trends').Found} Found
 */

/**
 * Readings of a track in which a trend is sought. The names of the trends are made once, not at
 * each evaluation.
 * @typedef {object} Readings
 * @property {TrackName} track
 * @property {boolean} afterMajors true: only the readings right after major GCs
 * @property {{ seconds: number, name: string }[]} spans windows, with the names of their trends
 *
 * @param {TrackName} track
 * @param {boolean} afterMajors
 * @returns {Readings}
 */
const readingsOf = (track, afterMajors) => ({
  track,
  afterMajors,
  spans: (LASTING_TRACKS.includes(track) ? QUICK_SPANS_SECONDS : SPANS_SECONDS)
    .map(seconds => ({ seconds, name: `${track}/${seconds}/${afterMajors}` }))
})

/**
 * Growth of a track, in the window over which its rise is closest to a line. A leak that began
 * yesterday is not a line over the whole life of the process.
 *
 * @param {TrackName} track
 * @returns {(window: Window) => Found} trend: y in the track's unit, x in seconds; readings: their
 *   number since the warm-up
 */
function growthOf (track) {
  const readings = readingsOf(track, false)
  return window => window.once(track, () => growth(window, readings))
}

/**
 * Growth of a track by its readings right after major GCs, because memory between them may be
 * garbage. If major GCs are rare, all readings are used, and the judge waits for a major GC.
 *
 * @param {TrackName} track a long track
 * @returns {(window: Window) => Found}
 */
function growthAfterMajors (track) {
  const [settled, all] = [readingsOf(track, true), readingsOf(track, false)]
  const name = `${track} after majors`
  const enough = track === 'outsideHeapBytes' ? ENOUGH_OUTSIDE_READINGS : ENOUGH_READINGS
  return window => window.once(name, () => {
    const found = growth(window, settled)
    if (found.readings < enough) return growth(window, all)
    // The trend of all readings spans at most the time since the warm-up. If the trend after major
    // GCs spans most of that time, the trend of all readings is not computed.
    const spanSeconds = found.trend?.spanX ?? 0
    const settledSeconds = window.nowSeconds - warmUpSeconds(window.nowSeconds)
    if (spanSeconds >= MAJORS_SPAN_SHARE * settledSeconds) return found
    const other = growth(window, all)
    return spanSeconds >= MAJORS_SPAN_SHARE * (other.trend?.spanX ?? 0) ? found : other
  })
}

/**
 * @param {number} ageSeconds age of the isolate
 * @returns {number} length of the warm-up, which no trend includes
 */
const warmUpSeconds = ageSeconds => Math.min(ageSeconds * WARM_UP_SHARE, WARM_UP_MOST_SECONDS)

/**
 * @param {Window} window
 * @param {Readings} of
 * @returns {Found}
 */
function growth (window, { track, afterMajors, spans }) {
  const warmUp = warmUpSeconds(window.nowSeconds)
  /** @type {Found} */
  let best = { trend: null, readings: 0 }
  let readings = 0
  for (const span of spans) {
    const seconds = Math.min(span.seconds, window.nowSeconds - warmUp)
    const found = window.overSpan(span.name, seconds, () => {
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
    if (window.nowSeconds <= span.seconds) break
  }
  return { ...best, readings }
}

/**
 * True if a rise exceeds all earlier values. A level that returns each morning does not.
 * @param {Window} window
 * @param {TrackName} track
 * @param {import('../statistics/trend').Trend} line
 * @param {number} last newest value
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
 * Readings of a track right after major GCs, oldest first. A row with the same count of major GCs
 * repeats the last reading.
 * @param {Window} window
 * @param {TrackName} track
 * @param {number} seconds
 */
const pointsAfterMajors = (window, track, seconds) =>
  window.pointsOnChange(track, 'liveHeapMajors', seconds)

/**
 * Readings after major GCs without memory that was in use only briefly. Allocating memory outside
 * the heap can trigger a major GC; while a block is copied to a larger one, a reading contains
 * both. So each value is capped at the next reading. The live heap needs no cap.
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
 * Number of readings after full GCs that memwatch requested.
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
 * Steadiness of a rise: 0 if it is insignificant, otherwise r² of the line, times the lower of two
 * ratios, at most 1. One is the slope of the last third relative to the whole slope, the other the
 * slope of the second half relative to that of the first. Leaks measure 0.7–1; growth that levels
 * off falls towards 0.
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
 * @param {number} seconds length of a trend
 * @returns {number} seconds until it is long enough for its steadiness, as its warm-up grows, too
 */
const secondsUntilSteady = seconds => Math.max(0, LEAST_SECONDS - seconds) / (1 - WARM_UP_SHARE)

/** Time before a line in which readings on it are sought. */
const BEFORE_SECONDS = 900
/** Distance from the line, as a share of its rise, within which a reading is on it. */
const ON_LINE_SHARE = 0.1

/**
 * Length of a rising line with the earlier readings that already lay on it. A trend excludes the
 * warm-up of the process, but a leak that begins with the process grows through it.
 * @param {Window} window
 * @param {TrackName} track
 * @param {Found} found
 * @param {boolean} [afterMajors] true: only the readings right after major GCs
 * @returns {number | null} seconds, at least the span of the trend; null without a rise
 */
function lineSeconds (window, track, { trend: line }, afterMajors = false) {
  if (!line || line.slope <= 0) return null
  const { startX, spanX, slope, intercept, rise } = line
  const seconds = window.nowSeconds - startX + BEFORE_SECONDS
  const { times, values } = afterMajors
    ? pointsAfterMajors(window, track, seconds)
    : window.points(track, seconds)
  let earliest = startX
  for (let i = times.length - 1; i >= 0; i--) {
    if (times[i] >= startX) continue
    if (Math.abs(values[i] - intercept - slope * times[i]) > ON_LINE_SHARE * rise) break
    earliest = times[i]
  }
  return spanX + startX - earliest
}

const LIVE_HEAP = readingsOf('liveHeapBytes', true)

/**
 * Trend of the live heap, with a reading right after each major GC.
 * @param {Window} window
 * @returns {Found}
 */
const liveHeapTrend = window => window.once('live heap', () => growth(window, LIVE_HEAP))

module.exports = {
  countForcedReadings,
  growthAfterMajors,
  growthOf,
  lineSeconds,
  liveHeapTrend,
  pointsAfterMajors,
  secondsUntilSteady,
  steadiness,
  warmUpSeconds,
  ENOUGH_READINGS
}
