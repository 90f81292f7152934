'use strict'

const { ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const { MAY_FILL, extendLine, findCertainBytes } = require('./filling')
const { severityByTime } = require('./severity')
const { formatPerHour, ruleOutKnownRise, sayStanding, timeLeft } = require('./lasting-growth')
const {
  isNearLimit, judgeNearLimit, judgeSlower, ruleOutFilling
} = require('./js-heap-leak-slowing')
const {
  findGrowing, findTakenBytes, nameLimit, sayForced, shareRoom, showGrownWith, showSharers
} = require('./js-heap-leak-evidence')
const {
  formatBytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */
/** @typedef {import('./js-heap-leak').Judgement} Judgement */
/** @typedef {import('./define-diagnosis').Dismissal} Dismissal */

/**
 * Line through the readings of the live heap after major GCs.
 * @typedef {Record<'rise' | 'growth' | 'seconds' | 'fit' | 'score' | 'late' | 'lateAtMost' |
 *   'share' | 'runway' | 'room', number>} Line rise, runway and room: bytes; growth: bytes per
 *   second; room: runway, and what other memory took of it; share: part of the way through the
 *   room; late: growth at the end as a share of the mean growth, the lesser of two estimates;
 *   lateAtMost: the greater estimate
 * @typedef {(signals: Signals, limits: Limits, line: Line) => Judgement | null} Question
 */

/**
 * Judges growth within two hours, if it is faster than any growth that a day's load causes.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway bytes
 * @param {readonly string[]} [commands] commands that the agent carries out
 * @returns {Judgement}
 */
function judgeMinutes (signals, limits, runway, commands = []) {
  const { liveHeapReadings: readings, liveHeapTrend: trend } = signals
  if (readings < limits.readings || trend === null) {
    return judgeLastMinute(signals, limits, runway) ??
      judgeFewReadings(signals, limits, runway) ??
      judgeWithoutReadings(signals, limits) ??
      judgeStopped(signals, limits) ??
      unknown(
        `${formatNumber(readings)} of the ${limits.readings} readings of the live heap that are ` +
          "needed; each major GC after the first fifth of the process's life gives one" +
          (commands.includes('force_gc') ? '' : ', and MEMWATCH_FORCED_GC=allow causes some'),
        { waitSeconds: signals.liveHeapReadingsDueSeconds }
      )
  }
  const line = lineOf(signals, limits, trend, runway)
  const judged = judgeFlat(signals, limits, line) ??
    ruleOutFilling(signals, limits, line) ??
    ruleOutKnown(signals, limits, line) ??
    judgeLine(signals, limits, line)
  const isFound = judged.state === 'suspected' || judged.state === 'confirmed'
  return isFound ? judged : withRelease(signals, limits, line, judged)
}

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
    rise, growth, seconds, fit, score, late, lateAtMost, share: rise / (rise + room), runway, room
  }
}

/**
 * A heap that fills its limit within a minute is suspected before it has enough readings: its
 * process would die first.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway bytes
 * @returns {Judgement | null}
 */
function judgeLastMinute (signals, limits, runway) {
  const { liveHeapTrend: trend, heapLimitSecondsLeft: left } = signals
  if (trend === null || left === null || left > limits.lastMinuteSeconds) return null
  const line = lineOf(signals, limits, trend, runway)
  const isSteep = line.fit >= limits.fit && line.rise >= limits.suspectedRiseBytes &&
    line.late >= limits.lateGrowthRatio
  // Growth since the start is more evidence than a few readings.
  const mayBeCertain = sinceStart(signals, limits, line) !== line
  return isSteep ? judgeLine(signals, limits, line, mayBeCertain) : null
}

/**
 * Judgement of a heap that grew and fell. The app released what had grown, so the growth is no
 * longer suspected; what remains may still contain a leak.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @param {Judgement} judged without a finding
 * @returns {Judgement}
 */
function withRelease (signals, limits, { rise, seconds, score, share }, judged) {
  const grew = score >= limits.score && isWorthSuspicion(rise, share, limits)
  const fell = (signals.liveHeapFallRatio ?? 0) >= limits.fallShareRatio
  if (!grew || !fell || isNearLimit(signals, limits)) return judged
  return unknown(`${sayRose(rise, seconds)}, then fell, and is at ` +
    `${formatBytes(signals.liveHeapBytes ?? 0)} now: a new trend has to form`,
  { seconds, refutes: true })
}

/** Does the live heap rise by an amount worth a suspicion? @type {Question} */
function judgeFlat (signals, limits, line) {
  const { rise, growth, seconds, fit, score, lateAtMost, share, runway } = line
  const mayRise = score >= limits.score && growth >= limits.slowestBytesPerSecond
  const rises = mayRise && fit >= limits.suspectedFit
  if (rises && isWorthSuspicion(rise, share, limits)) return null
  // A young line is short: growth that would fill the room within a working day is not ruled out.
  const isMuch =
    rise >= limits.lastingLeastBytes || growth * limits.criticalSeconds >= runway
  const goesOn = lateAtMost >= limits.lateGrowthRatio
  if (rises && isMuch && goesOn) {
    return unknown(`${sayRose(rise, seconds)}, ${formatRatio(share)} of the way to its limit: too ` +
      'little to judge')
  }
  const filled = formatRatio(signals.liveHeapShareRatio ?? 0)
  const fills = `fills ${filled} of its limit, where growth is not visible`
  return judgeNearLimit(signals, limits, fills) ??
    // Growth that began recently is not a line over all readings yet.
    judgeFewReadings(signals, limits, runway) ??
    judgeYoung(limits, line, mayRise && goesOn) ??
    judgeDoubtful(signals, limits, line) ??
    // A rise that has ended is no straight line either.
    (mayRise && lateAtMost < limits.levelsOffRatio
      ? judgeSlower(signals, limits, rise, lateAtMost)
      : null) ??
    ok(`the live heap ${nameCourse(growth, rises, limits)}: ` +
      `${formatValue(growth, 'bytesPerSecond')} over ${formatSeconds(seconds)}` +
      sayForced(signals))
}

/**
 * Judges a rise that is no line yet, but is more than chance would explain. With few readings a
 * single one hides the line, such as that of a second full GC that memwatch ran right after the
 * first, or makes growth seem to level off. Once there are hours of readings, they decide.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Dismissal | null}
 */
function judgeDoubtful (signals, limits, line) {
  const { rise, growth, seconds, fit, score, lateAtMost, share } = line
  const areFew = signals.liveHeapReadings < limits.slowingReadings
  if (lateAtMost < limits.levelsOffRatio && !areFew) return null
  const isSlow = growth < limits.slowestBytesPerSecond
  if (!isSlow && score < limits.score && fit >= limits.suspectedFit &&
    isWorthSuspicion(rise, share, limits)) {
    return unknown(`${sayRose(rise, seconds)}: too few readings to judge`, { seconds, keeps: true })
  }
  const isLikely = signals.liveHeapLastingTrend === null &&
    score >= (areFew ? limits.fewDoubtScore : limits.doubtScore) &&
    rise >= (isSlow ? limits.lastingRiseBytes : limits.lastingLeastBytes)
  return isLikely
    ? unknown(`the live heap may have grown by ${formatBytes(rise)} in ` +
      `${formatSeconds(seconds)}: too few readings to judge`, { seconds })
    : null
}

/**
 * Judges growth that began late, and is no straight line over all readings yet.
 * @param {Limits} limits
 * @param {Line} line
 * @param {boolean} goesOn true for a rise that continues at its rate
 * @returns {Dismissal | null}
 */
const judgeYoung = (limits, { rise, seconds }, goesOn) =>
  goesOn && rise >= limits.lastingLeastBytes
    ? unknown(`${sayRose(rise, seconds)}, lately faster than before: too little to judge`,
      { seconds })
    : null

/**
 * @param {number} rise bytes
 * @param {number} seconds
 */
const sayRose = (rise, seconds) =>
  `the live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}`

/**
 * @param {number} growth bytes a second
 * @param {boolean} rises true for a rise in a line
 * @param {Limits} limits
 */
function nameCourse (growth, rises, limits) {
  if (Math.abs(growth) < limits.slowestBytesPerSecond) return 'is flat'
  if (growth < 0) return 'shrinks'
  return rises ? 'hardly grows' : 'does not grow in a straight line'
}

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
 * some time ago. If the limit is less than a minute away, the rate of the last readings counts.
 * heap-limit-thrash uses the same rate, so both diagnoses report the same time.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway room left at the last major GC, in bytes
 * @param {number} growth mean, in bytes a second
 * @param {number} late growth at the end as a share of the mean: growth that became faster reaches
 *   the limit sooner
 */
function secondsToFill (signals, limits, runway, growth, late) {
  const { liveHeapAgeSeconds, heapLimitSecondsLeft: left } = signals
  const fillsIn = Math.max(0, runway / (growth * Math.max(1, late)) - (liveHeapAgeSeconds ?? 0))
  return left !== null && left <= limits.lastMinuteSeconds ? Math.min(fillsIn, left) : fillsIn
}

/**
 * Judges certainty and urgency of growth along a line.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @param {boolean} [mayBeCertain]
 * @returns {Judgement}
 */
function judgeLine (signals, limits, line, mayBeCertain = true) {
  const { rise, growth, seconds, fit, late, room } = line
  const runway = shareRoom(signals, limits, line.runway, growth)
  const whole = wholeOf(signals, limits, line)
  const growing = {
    rise: whole.rise,
    seconds: whole.seconds,
    runway: room,
    // No load explains a live heap that grew from nothing at one rate.
    growth: whole.isSinceStart ? Infinity : growth,
    isStraight: fit >= limits.slowFit && late >= limits.slowLateRatio
  }
  const certainBytes = findCertainBytes(limits, growing)
  const isCertain = mayBeCertain && fit >= limits.fit && whole.rise >= certainBytes
  const fillsInSeconds = secondsToFill(signals, limits, runway, growth, late)
  const steadySeconds = late >= limits.tellsLateRatio ? seconds : 0
  const { secondsLeft, inTime } = timeLeft(fillsInSeconds, steadySeconds, limits)
  const limitName = nameLimit(signals, limits, runway)
  return {
    state: isCertain ? 'confirmed' : 'suspected',
    severity: severityByTime(runway / growth, limits),
    secondsLeft,
    seconds,
    summary: `The live heap grows by ${formatValue(growth, 'bytesPerSecond')}` +
      `${inTime && ` and reaches ${limitName} ${inTime}`}${isCertain ? '' : `: ${MAY_FILL}`}.`,
    standing: sayStanding('The live heap', rise, seconds),
    finding: { growthBytesPerSecond: growth, grows: findGrowing(signals) },
    evidence: listEvidence(
      showLine(signals, limits, line, whole, certainBytes),
      showGrownWith(signals, rise, limits),
      showSharers(signals, runway)
    ),
    impact: `There is room for ${formatBytes(runway)} below ${limitName}` +
      `${inTime && `: at this rate the process dies ${inTime}`}.`
  }
}

/**
 * Rise of the live heap since the start of the process, if memwatch watched only its end: growth at
 * the same rate since the start explains the whole live heap.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {{ rise: number, seconds: number }} the line, unless growth before it explains the live
 *   heap
 */
function sinceStart ({ unwatchedSeconds, liveHeapBytes }, limits, line) {
  const { growth, seconds } = line
  const unwatched = unwatchedSeconds ?? 0
  const age = unwatched + seconds
  const live = liveHeapBytes ?? 0
  const explained = growth * age / live
  const isExplained = unwatched >= limits.unwatchedSeconds &&
    unwatched >= limits.unwatchedShareRatio * seconds &&
    explained >= limits.explainedLeastRatio && explained <= limits.explainedMostRatio
  return isExplained ? { rise: Math.min(live, growth * age), seconds: age } : line
}

/**
 * All growth along a line: since the start of the process, or with the warm-up that the trend
 * excludes.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Whole}
 */
function wholeOf (signals, limits, line) {
  const unwatched = sinceStart(signals, limits, line)
  return unwatched === line
    ? extendLine(line, signals.liveHeapLineSeconds)
    : { ...unwatched, overSeconds: unwatched.seconds, isSinceStart: true }
}

/**
 * @typedef {{ rise: number, seconds: number, overSeconds: number, isSinceStart?: boolean }} Whole
 *   bytes; time that counts against a cache that fills; time of the rise
 */

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @param {Whole} whole all growth along the line
 * @param {number} certainBytes least rise for a confirmed finding
 */
function showLine (signals, limits, line, whole, certainBytes) {
  const { rise, growth, seconds, fit, late, room } = line
  const way = formatRatio(whole.rise / (whole.rise + room))
  const before = whole.overSeconds > seconds
    ? `, and at this rate by ${formatBytes(whole.rise)} ` +
      (whole.isSinceStart ? 'since the start' : `in ${formatSeconds(whole.overSeconds)}`)
    : ''
  return [
    evidence('liveHeapGrowthBytesPerSecond', growth, 0, value =>
      `More memory is in use after each major GC: ${value}, over ${formatSeconds(seconds)} and ` +
      `${formatNumber(signals.liveHeapReadings)} readings${sayForced(signals)}.`),
    evidence('liveHeapGrowthFit', fit, limits.fit, (value, limit) =>
      `The growth is ${fit >= limits.fit ? 'a straight line' : 'not yet a straight line'}: r² ` +
      `${value} (threshold ${limit}).`),
    evidence('liveHeapLateGrowthRatio', late, limits.lateGrowthRatio, (value, limit) =>
      `The growth does not level off: at the end it had ${value} of its mean rate. The rate of ` +
      `most caches that fill falls below ${limit} in time.`),
    evidence('liveHeapRiseBytes', whole.rise, certainBytes, (_, limit) =>
      `The live heap has risen by ${formatBytes(rise)}${before}: ${way} of the way to the limit (threshold ` +
      `${limit}).`)
  ]
}

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
  return {
    seconds,
    standing: sayStanding('The live heap', rise, seconds),
    state: isCertain ? 'confirmed' : 'suspected',
    severity: severityByTime(runway / growth, limits),
    secondsLeft,
    summary: `The live heap grows by ${formatValue(growth, 'bytesPerSecond')}` +
      `${inTime && ` and reaches its limit ${inTime}`}${isCertain ? '' : `: ${MAY_FILL}`}.`,
    finding: { growthBytesPerSecond: growth, grows: findGrowing(signals) },
    evidence: listEvidence(
      showKept(signals, limits, kept, keptTrend),
      showSharers(signals, runway)
    ),
    impact: `There is room for ${formatBytes(runway)}` +
      `${inTime && `: at this rate the process dies ${inTime}`}.`
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
      `below ${limit}.`),
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
      `${formatSeconds(seconds)}, so the live heap grew by at most ${formatPerHour(growth)}, with ` +
      `${formatBytes(runway)} left. Slower growth becomes visible over hours`,
    { keeps: true }
  )
}

module.exports = { judgeMinutes, judgeWithoutReadings }
