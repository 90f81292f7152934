'use strict'

// Growth of the live heap that slows down, or that is just below its limit.

const { ok, unknown } = require('./define-diagnosis')
const { hasStood, sayEnded } = require('./filling')
const { ruleOutKnown } = require('./js-heap-leak-line')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */
/** @typedef {import('./js-heap-leak-line').Line} Line */
/** @typedef {import('./define-diagnosis').Dismissal} Dismissal */

/**
 * Does the growth slow down, as it does in a cache that fills?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Dismissal | null}
 */
function ruleOutFilling (signals, limits, line) {
  const { rise, late, lateAtMost } = line
  if (late >= limits.lateGrowthRatio) return null
  const slows = 'slows down just under its limit, as any growth does'
  return judgeNearLimit(signals, limits, slows) ??
    (signals.liveHeapReadings < limits.slowingReadings && lateAtMost >= limits.lateGrowthRatio
      ? unknown(`the live heap grew by ${formatBytes(rise)}, and may be levelling off: by two ` +
        `estimates, it continues at ${formatRatio(late)} and at ${formatRatio(lateAtMost)} of ` +
        'the rate', { keeps: true, latest: 'it may be levelling off' })
      : judgeSlower(signals, limits, line, late))
}

/**
 * Judges growth that slows down. An app whose loop fills up serves fewer requests, so its leak
 * slows down as well.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Pick<Line, 'rise' | 'seconds'>} line
 * @param {number} late growth at the end as a share of the mean growth
 * @returns {Dismissal}
 */
function judgeSlower (signals, limits, line, late) {
  const { rise, seconds } = line
  const hasEnded = late < limits.endedRatio
  const busy = hasEnded ? 0 : signals.liveHeapFilledLoopRatio ?? 0
  const slows = sayLevelsOff(late)
  const grew = `the live heap grew by ${formatBytes(rise)} and ${slows}`
  const latest = `it ${slows}`
  if (busy >= limits.filledLoopRatio) {
    const filled = `, but the event loop is busy ${formatRatio(busy)} of the time now: a slower ` +
      'app also leaks more slowly'
    return unknown(grew + filled, { keeps: true, latest: latest + filled })
  }
  if (!hasEnded && signals.liveHeapReadings < limits.slowingReadings) {
    return ruleOutKnown(signals, limits, line) ??
      unknown(`${grew}: too few readings to judge`, { seconds, latest })
  }
  return ok(grew, { keeps: late >= limits.levelsOffRatio, latest })
}

/** @param {number} late growth at the end as a share of the mean growth */
const sayLevelsOff = late =>
  `is levelling off: it continues at ${formatRatio(Math.max(0, late))} of the rate`

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {string} does predicate of the live heap in the sentence, such as `slows down`
 * @returns {Dismissal | null} null if there is room to grow
 */
function judgeNearLimit (signals, limits, does) {
  if (!isNearLimit(signals, limits)) return null
  if (stands(signals, limits)) {
    const filled = formatRatio(signals.liveHeapShareRatio ?? 0)
    const seconds = formatSeconds(signals.liveHeapStandsSeconds ?? 0)
    return unknown(`the live heap has stayed at ${filled} of its limit for ${seconds}, and the ` +
      'earlier growth would have filled the rest: only a larger heap limit would show a slower ' +
      'leak', { openUntil: 'setting', refutes: true })
  }
  return unknown(`the live heap ${does}: only a larger heap limit would show a ` +
    'leak', { openUntil: 'setting' })
}

/**
 * Has growth far from the limit ended? An app whose GCs take most of the time only slows down.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Dismissal | null}
 */
function ruleOutEnded (signals, limits, { growth }) {
  if (isNearLimit(signals, limits) || isSlowedByGc(signals, limits)) return null
  const ended = sayEnded(limits, growth, standingOf(signals))
  const seconds = signals.liveHeapStandsSeconds ?? 0
  return ended === null ? null : ok(`the live heap ${ended}`, { seconds, refutes: true })
}

/**
 * Has the live heap been just below its limit for a long time, and for much of the work that its
 * rise took? If that growth went on, the process would have died since: nearly half of the limit
 * was filled by that work. A lower load stops a leak, and GC that takes most of the time slows it
 * down.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function stands (signals, limits) {
  const { stoodSeconds: seconds, stoodWorkRatio: workRatio, loadedRatio } = limits
  return !isSlowedByGc(signals, limits) &&
    hasStood(standingOf(signals), { seconds, workRatio, loadedRatio })
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isSlowedByGc = ({ gcPauseRatio: pauses }, { slowedByGcRatio }) =>
  pauses === null || pauses >= slowedByGcRatio

/** @param {Signals} signals */
const standingOf = signals => ({
  level: signals.liveHeapBytes,
  stood: signals.liveHeapStandsSeconds,
  rose: signals.liveHeapRoseSeconds,
  load: signals.liveHeapStandLoadRatio
})

/**
 * Was the live heap near its limit within the last ten minutes? Single readings vary.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function isNearLimit (signals, { nearLimitRatio }) {
  const { liveHeapShareRatio: share, liveHeapBytes: live, liveHeapHighestBytes: highest } = signals
  return share !== null && live !== null &&
    share * ((highest ?? live) / live) >= nearLimitRatio
}

module.exports = { isNearLimit, judgeNearLimit, judgeSlower, ruleOutEnded, ruleOutFilling }
