'use strict'

// The line of growth of the live heap, and what its judges share.

const { findTakenBytes } = require('./js-heap-leak-evidence')
const { ruleOutKnownRise } = require('./lasting-growth')
const { formatBytes, formatSeconds, formatValue } = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */

/**
 * Line through the readings of the live heap after major GCs.
 * @typedef {Record<'rise' | 'growth' | 'seconds' | 'fit' | 'score' | 'late' | 'lateAtMost' |
 *   'lateRise' | 'share' | 'runway' | 'room', number>} Line rise, runway and room: bytes; growth:
 *   bytes per second; room: runway, and what other memory took of it; share: part of the way
 *   through the room; late: growth at the end as a share of the mean growth, the lesser of two
 *   estimates; lateAtMost: the greater estimate; lateRise: rise in the last third
 */

/** Parts of a trend, the last of which is its late growth. */
const THIRDS = 3

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {NonNullable<Signals['liveHeapTrend']>} trend
 * @param {number} runway bytes
 * @returns {Line}
 */
function lineOf (signals, limits, trend, runway) {
  const { rise, slope: growth, seconds, fit, score, lateRatio, halvesRatio } = trend
  const room = runway + findTakenBytes(signals, limits, trend, runway)
  const late = Math.min(lateRatio ?? 0, halvesRatio ?? 1)
  const lateAtMost = Math.max(lateRatio ?? 0, halvesRatio ?? 0)
  return {
    rise,
    growth,
    seconds,
    fit,
    score,
    late,
    lateAtMost,
    lateRise: rise * (lateRatio ?? 0) / THIRDS,
    share: rise / (rise + room),
    runway,
    room
  }
}

/**
 * @param {number} rise bytes
 * @param {number} seconds
 */
const sayRose = (rise, seconds) =>
  `the live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}`

/**
 * @param {number} rise bytes
 * @param {number} share of the way to the limit
 * @param {Limits} limits
 */
const isWorthSuspicion = (rise, share, limits) =>
  share >= limits.suspectedRunwayShareRatio || rise >= limits.suspectedRiseBytes

/**
 * Does the load explain the rise, or was the live heap as large before?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ rise: number, seconds: number }} line
 */
const ruleOutKnown = (signals, limits, { rise, seconds }) =>
  ruleOutKnownRise(limits, rise, {
    grew: sayRose(rise, seconds),
    load: 'its load',
    level: signals.liveHeapBytes,
    earlierHigh: signals.liveHeapEarlierHighBytes,
    loadShare: signals.liveHeapLoadShareRatio
  })

/**
 * Time from now until the heap reaches its limit. The live heap was measured at the last major GC,
 * some time ago. Growth that may have ended has no time. If the limit is less than a minute away,
 * the rate of the last readings counts. heap-limit-thrash uses the same rate, so both diagnoses
 * report the same time.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway room left at the last major GC, in bytes
 * @param {number} growth mean, in bytes a second
 * @param {number} late growth at the end as a share of the mean: growth that became faster reaches
 *   the limit sooner
 * @returns {number} Infinity if it has paused
 */
function secondsToFill (signals, limits, runway, growth, late) {
  const { liveHeapAgeSeconds, heapLimitSecondsLeft: left } = signals
  if (pauses(signals, limits)) return Infinity
  const fillsIn = Math.max(0, runway / (growth * Math.max(1, late)) - (liveHeapAgeSeconds ?? 0))
  if (left !== null && left <= limits.lastMinuteSeconds) return Math.min(fillsIn, left)
  // A process that outlives its predicted end did not grow on.
  return runway > 0 && fillsIn === 0 ? Infinity : fillsIn
}

/**
 * Did the live heap hardly grow up to its last reading? Near its limit any growth slows down.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const pauses = ({ liveHeapLatelyRatio: lately, liveHeapShareRatio: share }, limits) =>
  (lately ?? 1) < limits.pausesRatio && (share ?? 0) < limits.nearLimitRatio

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} growth bytes a second
 * @returns {string} the beginning of a summary
 */
function sayGrows (signals, limits, growth) {
  const rate = formatValue(growth, 'bytesPerSecond')
  return pauses(signals, limits)
    ? `The live heap grew by ${rate}, but hardly at its last reading`
    : `The live heap grows by ${rate}`
}

module.exports = {
  THIRDS, isWorthSuspicion, lineOf, ruleOutKnown, sayGrows, sayRose, secondsToFill
}
