'use strict'

const { growthAfterMajors, steadiness } = require('./growth')

/**
 * A trend is one signal: judges read its line, its straightness and its recent slope from one
 * object. A number of a trend that is used as evidence, predicted or exposed has a name and a unit
 * of its own. The name is the trend's name with another suffix than `Trend`: `liveHeapRiseBytes`
 * belongs to `liveHeapTrend`. FIGURES holds the suffixes.
 *
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 * @typedef {import('./index').SignalUnit} SignalUnit
 *
 * @typedef {object} Trend
 * @property {number} rise growth along the line over the length of the span
 * @property {number} slope of the line per second (Theil–Sen)
 * @property {number} seconds its span
 * @property {number} fit r² of the line, 0–1: 1 is a straight line
 * @property {number} score Mann–Kendall standard score: significant above 3
 * @property {number | null} lateRatio slope of the last third relative to the whole slope: 1: the
 *   growth continues; 0: it has stopped; null without a rise
 * @property {number | null} halvesRatio slope of the second half relative to the slope of the
 *   first, lower for a pool that fills; null if the first half did not rise
 * @property {number | null} steadinessRatio likelihood of continued growth, 0–1; null over too
 *   short a time
 * @property {number} [risingSeconds] time in which a count rose, at most the span; only for counts
 *   of handles
 * @property {number | null} [loadGrowth] load in the last third of the span, divided by the load in
 *   its first third; null if unknown; only for counts of handles
 */

/**
 * Figures: the numbers of a trend that have names of their own.
 * @typedef {object} Figure
 * @property {string} of property of the trend
 * @property {SignalUnit} unit
 * @property {(what: string) => string} help
 */
const FIGURES = Object.freeze({
  RiseBytes: figure('rise', 'bytes', what => `Total growth of ${what} along the line of the ` +
    'trend.'),
  Rise: figure('rise', 'count', what => `Total growth of ${what} along the line of the trend.`),
  GrowthBytesPerSecond: figure('slope', 'bytesPerSecond', what => `Slope of ${what} (Theil–Sen).`),
  PerSecond: figure('slope', 'perSecond', what => `Slope of ${what} (Theil–Sen).`),
  GrowthFit: figure('fit', 'ratio', what => `Straightness of the growth of ${what}: r² of its ` +
    'line.'),
  Score: figure('score', 'score', what => `Growth of ${what} divided by its standard error.`),
  LateGrowthRatio: figure('lateRatio', 'ratio', what =>
    `Slope of ${what} in the last third, divided by the slope of the whole: 1 if the growth ` +
      'continues, 0 if it has stopped.'),
  LateRatio: figure('lateRatio', 'ratio', what =>
    `Growth rate of ${what} in the last third, divided by the rate of the whole, at the upper ` +
      'end of its error.'),
  SteadinessRatio: figure('steadinessRatio', 'ratio', what =>
    `Likelihood that the growth of ${what} continues, 0–1.`)
})
/** @typedef {keyof typeof FIGURES} Suffix */

/**
 * @param {string} of
 * @param {SignalUnit} unit
 * @param {Figure['help']} help
 * @returns {Figure}
 */
function figure (of, unit, help) {
  return { of, unit, help }
}

const BYTES = Object.freeze(/** @type {const} */ ([
  'RiseBytes', 'GrowthBytesPerSecond', 'GrowthFit', 'LateGrowthRatio', 'SteadinessRatio'
]))
const COUNTS = Object.freeze(/** @type {const} */ (['Rise', 'PerSecond', 'SteadinessRatio']))

/**
 * @template {Suffix} [Of=Suffix]
 * @template {object} [Value=object]
 * @typedef {object} TrendSignal
 * @property {SignalUnit} unit of the growing value
 * @property {string} what name of the growing value, as in a sentence
 * @property {string} help one sentence
 * @property {readonly Of[]} figures suffixes of the figures
 * @property {(window: Window) => Value | null} compute null without enough data
 */

/**
 * Trend of a number of bytes.
 * @param {string} what
 * @param {(window: Window) => Trend | null} compute
 * @returns {TrendSignal<typeof BYTES[number], Trend>}
 */
const bytesTrend = (what, compute) => ({
  unit: 'bytes', what, help: helpOf(what), figures: BYTES, compute
})

/**
 * Trend of a count.
 * @param {string} what
 * @param {(window: Window) => Trend | null} compute
 * @returns {TrendSignal<typeof COUNTS[number], Trend>}
 */
const countTrend = (what, compute) => ({
  unit: 'count', what, help: helpOf(what), figures: COUNTS, compute
})

/** @param {string} what */
const helpOf = what => `Trend of ${what}: slope, straightness and recent rate.`

/**
 * @param {import('../statistics/trends').Found} found
 * @param {number | null} [steadinessRatio]
 * @returns {Trend | null}
 */
function trendOf (found, steadinessRatio = steadiness(found)) {
  const line = found.trend
  return line && {
    rise: line.rise,
    slope: line.slope,
    seconds: line.spanX,
    fit: line.fit,
    score: line.z,
    lateRatio: line.slope > 0 ? line.lastThirdSlope / line.slope : null,
    halvesRatio: line.earlySlope > 0 ? line.lateSlope / line.earlySlope : null,
    steadinessRatio
  }
}

/**
 * Trend of a track by its readings after major GCs: values between them may include garbage.
 * @param {TrackName} track
 * @returns {(window: Window) => Trend | null}
 */
function acrossMajors (track) {
  const growth = growthAfterMajors(track)
  return window => trendOf(growth(window))
}

module.exports = { FIGURES, acrossMajors, bytesTrend, countTrend, trendOf }
