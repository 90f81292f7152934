'use strict'

const { theilSen, theilSenSlope } = require('./theil-sen')
const { mannKendall } = require('./mann-kendall')
const { quantileInPlace, roomFor } = require('./quantile')

/**
 * Upper bound of points. The number of pairs grows with the square, so more points are merged
 * first.
 */
const MAX_POINTS = 40
/**
 * Deviation from the line, as a multiple of the median deviation, above which a value is a peak.
 * This is about seven standard deviations of a normal distribution.
 */
const PEAK_DEVIATIONS = 10
/** Largest share of peaks. With more peaks the line would not follow the other values. */
const MOST_PEAKS_SHARE = 0.4

/**
 * @typedef {object} Trend
 * @property {number} points number of readings before merging
 * @property {number} spanX last x less first x
 * @property {number} startX first x
 * @property {number} intercept y of the line at x = 0
 * @property {number} slope Theil–Sen, units of y per unit of x
 * @property {number} rise growth of y over spanX, along the line
 * @property {number} fit r² of that line, 0–1: 1 is a straight line
 * @property {number} z Mann–Kendall standard score, positive when rising
 * @property {number} earlySlope slope of the first half (by x); like the next two, it shows whether
 *   a rise continues, and is 0 unless y rises
 * @property {number} lateSlope slope of the second half (by x)
 * @property {number} lastThirdSlope slope of the last third (by x)
 */

/** Trend of a constant. */
const LEVEL = Object.freeze({
  slope: 0, rise: 0, fit: 0, z: 0, earlySlope: 0, lateSlope: 0, lastThirdSlope: 0
})

/**
 * Merges neighbouring points so that at most `limit` remain: each group is replaced by its point
 * with the lowest y. The series measure a lower bound: values above it are garbage that is not
 * collected yet.
 * @param {number[]} x
 * @param {number[]} y
 * @param {number} limit
 */
function thin (x, y, limit) {
  if (x.length <= limit) return { x, y }
  const size = Math.ceil(x.length / limit)
  const thinX = []
  const thinY = []
  for (let i = 0; i < x.length; i += size) {
    let lowest = i
    for (let j = i + 1; j < Math.min(i + size, x.length); j++) if (y[j] < y[lowest]) lowest = j
    thinX.push(x[lowest])
    thinY.push(y[lowest])
  }
  return { x: thinX, y: thinY }
}

/**
 * Points without single peaks. A value that is far above the line, between two values that are not,
 * is no retained memory: a major GC ran while a request held much memory.
 * @param {number[]} x
 * @param {number[]} y
 * @param {{ slope: number, intercept: number }} line Theil–Sen
 * @returns {{ x: number[], y: number[] } | null} null if there are none
 */
function withoutPeaks (x, y, { slope, intercept }) {
  const distances = roomFor(y.length)
  let highest = -Infinity
  for (let i = 0; i < y.length; i++) {
    const above = y[i] - intercept - slope * x[i]
    distances[i] = Math.abs(above)
    if (above > highest) highest = above
  }
  const least = PEAK_DEVIATIONS * quantileInPlace(distances, y.length, 0.5)
  if (highest <= least) return null
  const isPeak = y.map((value, i) => value - intercept - slope * x[i] > least)
  const peaks = isPeak.filter(Boolean).length
  const isSingle = isPeak.every((is, i) => !is ||
    (i > 0 && i < y.length - 1 && !isPeak[i - 1] && !isPeak[i + 1]))
  if (peaks > MOST_PEAKS_SHARE * y.length || !isSingle) return null
  return { x: x.filter((_, i) => !isPeak[i]), y: y.filter((_, i) => !isPeak[i]) }
}

/**
 * Trend of a noisy floor, with the slopes of its parts.
 * @param {number[]} allX ascending
 * @param {number[]} allY
 * @returns {Trend | null} null with fewer than 6 points or no span
 */
function trend (allX, allY) {
  if (allX.length < 6) return null
  const floor = thin(allX, allY, MAX_POINTS)
  const spanX = floor.x[floor.x.length - 1] - floor.x[0]
  if (spanX <= 0) return null
  // Shortcut for constant series, as most counts of most apps are. It gives the same result as the
  // code below in a tenth of the time.
  const startX = floor.x[0]
  if (isConstant(floor.y)) {
    return { points: allX.length, spanX, startX, intercept: floor.y[0], ...LEVEL }
  }
  const withPeaks = theilSen(floor.x, floor.y)
  if (!withPeaks) return null
  const kept = withoutPeaks(floor.x, floor.y, withPeaks)
  const { x, y } = kept ?? floor
  const line = (kept && theilSen(x, y)) ?? withPeaks
  const rises = line.slope > 0
  const middle = x[0] + spanX / 2
  const last = x[x.length - 1]
  const fit = rSquared(x, y, line)
  return {
    points: allX.length,
    spanX,
    startX,
    intercept: line.intercept,
    slope: line.slope,
    rise: withinRange(line.slope * spanX, y),
    fit: Number.isFinite(fit) ? Math.max(0, fit) : 0,
    z: mannKendall(y).z,
    earlySlope: rises ? slopeBetween(x, y, x[0], middle) : 0,
    lateSlope: rises ? slopeBetween(x, y, middle, last) : 0,
    lastThirdSlope: rises ? slopeBetween(x, y, x[0] + spanX * 2 / 3, last) : 0
  }
}

/** @param {number[]} values at least one */
function isConstant (values) {
  for (let i = 1; i < values.length; i++) if (values[i] !== values[0]) return false
  return true
}

/**
 * Slope of a span. Readings may become ever rarer: if the span contains only one, the nearest
 * neighbour is added. A single reading has no slope, and callers would take its absence for a
 * growth that stopped.
 * @param {number[]} x
 * @param {number[]} y
 * @param {number} from
 * @param {number} to
 */
function slopeBetween (x, y, from, to) {
  let first = 0
  let end = x.length
  while (first < end && x[first] < from) first++
  while (end > first && x[end - 1] > to) end--
  if (end - first < 2 && first > 0) first--
  if (end - first < 2 && end < x.length) end++
  return theilSenSlope(x, y, first, end) ?? 0
}

/**
 * Caps a rise at the range of the readings. A slope between clustered readings, extrapolated over
 * the whole span, may exceed the range: in one app a burst of 13 MiB became a rise of 35 MiB.
 * @param {number} rise rise along the line
 * @param {number[]} y
 */
function withinRange (rise, y) {
  let lowest = Infinity
  let highest = -Infinity
  for (const value of y) {
    if (value < lowest) lowest = value
    if (value > highest) highest = value
  }
  return Math.max(lowest - highest, Math.min(highest - lowest, rise))
}

/**
 * Share of the variance that a line explains.
 * @param {number[]} x
 * @param {number[]} y
 * @param {{ slope: number, intercept: number }} line
 * @returns {number} 1: all of it; below 0: a constant would explain more; NaN: y does not vary
 */
function rSquared (x, y, { slope, intercept }) {
  let sum = 0
  for (const value of y) sum += value
  const average = sum / y.length
  let squares = 0
  let errors = 0
  for (let i = 0; i < y.length; i++) {
    squares += (average - y[i]) ** 2
    errors += (y[i] - (intercept + slope * x[i])) ** 2
  }
  return 1 - errors / squares
}

module.exports = { trend, rSquared, MAX_POINTS }
