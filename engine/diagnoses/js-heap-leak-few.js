'use strict'

// Growth of the live heap before its trend has enough readings.

const { ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const { MAY_FILL, sayDeath, sayReaches } = require('./filling')
const { severityByTime } = require('./severity')
const { formatPerHour, sayStanding, timeLeft } = require('./lasting-growth')
const {
  isWorthSuspicion, ruleOutKnown, sayGrows, sayRose, secondsToFill
} = require('./js-heap-leak-line')
const {
  findGrowing, findTakenBytes, nameLimit, sayForced, shareRoom, showSharers
} = require('./js-heap-leak-evidence')
const { formatBytes, formatSeconds } = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */
/** @typedef {import('./js-heap-leak').Judgement} Judgement */
/** @typedef {import('./define-diagnosis').Dismissal} Dismissal */

/**
 * Judges growth before a trend has enough readings. Under a limit of gigabytes V8 runs major GCs so
 * rarely that enough readings take many minutes.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} ownRunway bytes
 * @returns {Judgement | null} null if too few objects survived, or the growth is not a straight
 *   line
 */
function judgeFewReadings (signals, limits, ownRunway) {
  const { promotedKeptRatio: kept, keptTrend } = signals
  if (kept === null || keptTrend === null) return null
  const { rise, slope: growth, seconds, fit, lateRatio: late, isLine } = keptTrend
  const room = ownRunway + findTakenBytes(signals, limits, keptTrend, ownRunway)
  const isKept =
    kept >= limits.promotedKeptRatio &&
    isWorthSuspicion(rise, rise / (rise + room), limits) &&
    growth >= limits.slowestBytesPerSecond
  if (!isKept || late < limits.lateGrowthRatio || fit < limits.fit) return null
  // In many minutes a few readings in a row rise by chance.
  const areMany = Math.max(seconds, signals.liveHeapTrend?.seconds ?? 0) >= limits.keptManySeconds
  if (areMany && keptTrend.newRatio < limits.keptNewRatio) return null
  const known = ruleOutKnown(signals, limits, { rise, seconds })
  if (known) return known
  const runway = shareRoom(signals, limits, ownRunway, growth)
  const fillsInSeconds = secondsToFill(signals, limits, runway, growth, late)
  const { secondsLeft, inTime } = timeLeft(fillsInSeconds, seconds, limits)
  const isCertain = isLine && rise >= limits.certainRiseBytes
  const limitName = nameLimit(signals, limits, runway)
  return {
    seconds,
    standing: sayStanding('The live heap', rise, seconds),
    state: isCertain ? 'confirmed' : 'suspected',
    severity: severityByTime(runway / growth, limits),
    secondsLeft,
    summary: sayGrows(signals, limits, growth) +
      `${inTime && ` and ${sayReaches({ isCertain, limitName, inTime }, signals)}`}` +
      `${isCertain ? '' : `: ${MAY_FILL}`}.`,
    finding: { growthBytesPerSecond: growth, grows: findGrowing(signals) },
    evidence: listEvidence(
      showKept(signals, limits, kept, keptTrend),
      showSharers(signals, runway)
    ),
    impact: sayDeath({ room: `${formatBytes(runway)} below ${limitName}`, isCertain, inTime })
  }
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} kept ratio
 * @param {NonNullable<Signals['keptTrend']>} trend
 */
function showKept (signals, limits, kept, { rise, slope, seconds, fit, lateRatio }) {
  return [
    evidence('keptRiseBytes', rise, limits.certainRiseBytes, (value, limit) =>
      `The live heap rose by ${value} in ${formatSeconds(seconds)}. Most caches that fill stay ` +
      `below ${limit}${rise < limits.certainRiseBytes ? ': it may be one' : ''}.`),
    evidence('promotedKeptRatio', kept, limits.promotedKeptRatio, (value, limit) =>
      `Of the bytes promoted between two major GCs, ${value} survived the second one (threshold ` +
      `${limit}).`),
    evidence('keptGrowthFit', fit, limits.fit, (value, limit) =>
      `The growth is a straight line: r² ${value} (threshold ${limit}).`),
    evidence('keptLateGrowthRatio', lateRatio, limits.lateGrowthRatio, (value, limit) =>
      `The growth continues at ${value} of its rate. The rate of most caches that fill falls ` +
        `below ${limit} in time.`),
    evidence('liveHeapGrowthBytesPerSecond', slope, 0, value =>
      `More memory is in use after each major GC: ${value}${sayForced(signals)}.`)
  ]
}

/**
 * Withdraws a suspicion by few readings if the last ones no longer grow.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Dismissal | null}
 */
const judgeStopped = ({ keptTrend: line }, { endedRatio }) =>
  line?.isLine && line.lastRatio < endedRatio
    ? unknown(`${sayRose(line.rise, line.seconds)}, and not between the last major GCs`,
      { refutes: true })
    : null

/**
 * Rules out a leak in a quiet app with too few major GCs for readings. Its live heap cannot have
 * grown by more than the bytes of promoted and young objects. The leak is ruled out if this bound
 * is below the growth that minutes or hours of readings would report, and reaches no limit within a
 * working day.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null if more may have survived
 */
function judgeWithoutReadings (signals, limits) {
  const {
    liveHeapBoundBytes: most,
    liveHeapBoundOldBytes: promoted,
    liveHeapBoundSeconds: seconds,
    usedHeapRunwayBytes: runway
  } = signals
  if (most === null || promoted === null || seconds === null || runway === null) return null
  if (seconds < limits.boundSeconds) return null
  const growth = most / seconds
  const mayLeak =
    growth >= limits.slowestBytesPerSecond ||
    growth * limits.criticalSeconds >= runway ||
    promoted >= limits.lastingRiseBytes
  if (mayLeak) return null
  return ok(
    `promoted and young objects add up to at most ${formatBytes(most)} in ` +
      `${formatSeconds(seconds)}, so the live heap grew by at most ${formatPerHour(growth)}, ` +
      `with ${formatBytes(runway)} left. Slower growth becomes visible over hours`,
    { keeps: true }
  )
}

module.exports = { judgeFewReadings, judgeStopped, judgeWithoutReadings }
