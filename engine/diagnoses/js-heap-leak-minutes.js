'use strict'

const { ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const {
  MAY_FILL, extendLine, findCertainBytes, isStraightSince, sayDeath, sayReaches
} = require('./filling')
const { severityByTime } = require('./severity')
const { sayStanding, timeLeft } = require('./lasting-growth')
const {
  judgeFewReadings, judgeStopped, judgeWithoutReadings
} = require('./js-heap-leak-few')
const {
  THIRDS, isWorthSuspicion, lineOf, ruleOutKnown, sayGrows, sayRose, secondsToFill
} = require('./js-heap-leak-line')
const {
  isNearLimit, judgeNearLimit, judgeSlower, ruleOutEnded, ruleOutFilling
} = require('./js-heap-leak-slowing')
const {
  findGrowing, nameLimit, sayForced, shareRoom, showGrownWith, showSharers
} = require('./js-heap-leak-evidence')
const {
  formatBytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */
/** @typedef {import('./js-heap-leak').Judgement} Judgement */
/** @typedef {import('./js-heap-leak-line').Line} Line */
/** @typedef {import('./define-diagnosis').Dismissal} Dismissal */
/** @typedef {(signals: Signals, limits: Limits, line: Line) => Judgement | null} Question */

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
          'needed; each major GC after the start of the process gives one' +
          (commands.includes('force_gc') ? '' : ', and MEMWATCH_FORCED_GC=allow causes some'),
        { waitSeconds: signals.liveHeapReadingsDueSeconds }
      )
  }
  const line = lineOf(signals, limits, trend, runway)
  const judged = ruleOutEnded(signals, limits, line) ??
    judgeFlat(signals, limits, line) ??
    ruleOutFilling(signals, limits, line) ??
    ruleOutKnown(signals, limits, line) ??
    judgeLine(signals, limits, line)
  const isFound = judged.state === 'suspected' || judged.state === 'confirmed'
  return isFound ? judged : withRelease(signals, limits, line, judged)
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
  const steady = fit * Math.max(0, Math.min(1, line.late))
  const { liveHeapBytes: level, lifeCpuSeconds: lifeSeconds } = signals
  const isStraight = isStraightSince(limits, { ...line, steady }, { level, lifeSeconds })
  if (rises && (isStraight || isWorthSuspicion(rise, share, limits))) return null
  // A young line is short: growth that would fill the room within a working day is not ruled out.
  const isMuch =
    rise >= limits.lastingLeastBytes || growth * limits.criticalSeconds >= runway
  const goesOn = lateAtMost >= limits.lateGrowthRatio
  if (rises && isMuch && goesOn) {
    return unknown(`${sayRose(rise, seconds)}, ${formatRatio(share)} of the way to its limit: ` +
      'too little to judge')
  }
  const filled = formatRatio(signals.liveHeapShareRatio ?? 0)
  const fills = `fills ${filled} of its limit, where growth is not visible`
  return judgeNearLimit(signals, limits, fills) ??
    // Growth that began recently is not a line over all readings yet.
    judgeFewReadings(signals, limits, runway) ??
    judgeYoung(limits, line, mayRise && goesOn) ??
    judgeDoubtful(signals, limits, line) ??
    judgeLate(limits, line) ??
    // A rise that has ended is no straight line either.
    (mayRise && lateAtMost < limits.levelsOffRatio
      ? judgeSlower(signals, limits, line, lateAtMost)
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
  const { rise, growth, seconds, fit, score, late, lateAtMost, share, runway } = line
  const areFew = signals.liveHeapReadings < limits.slowingReadings
  if (lateAtMost < (areFew ? 0 : limits.levelsOffRatio)) return null
  const isSlow = growth < limits.slowestBytesPerSecond
  if (!isSlow && score < limits.score && fit >= limits.suspectedFit &&
    isWorthSuspicion(rise, share, limits)) {
    return unknown(`${sayRose(rise, seconds)}: too few readings to judge`, { seconds, keeps: true })
  }
  const isNear = growth * limits.criticalSeconds >= runway
  const leastOfFast = areFew || isNear ? limits.lastingLeastBytes : limits.suspectedRiseBytes
  const least = isSlow ? limits.lastingRiseBytes : leastOfFast
  const isLikely = rise >= least && (areFew
    ? score >= limits.fewDoubtScore
    : score >= limits.doubtScore && late >= limits.levelsOffRatio)
  if (!isLikely || signals.liveHeapLastingTrend !== null) return null
  const lacks = areFew ? 'too few readings to judge' : 'too uncertain to judge'
  return ruleOutKnown(signals, limits, line) ?? unknown(
    `the live heap may have grown by ${formatBytes(rise)} in ${formatSeconds(seconds)}: ${lacks}`,
    { seconds }
  )
}

/**
 * Judges growth that goes on, and is no straight line over all readings yet.
 * @param {Limits} limits
 * @param {Line} line
 * @param {boolean} goesOn true for a rise that continues at its rate
 * @returns {Dismissal | null}
 */
function judgeYoung (limits, { rise, seconds, late }, goesOn) {
  if (!goesOn || rise < limits.lastingLeastBytes) return null
  const course = late > 1 ? 'lately faster than before' : 'in no straight line'
  return unknown(`${sayRose(rise, seconds)}, ${course}: too little to judge`, { seconds })
}

/**
 * Judges growth that began in the last third of the readings.
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Dismissal | null}
 */
function judgeLate (limits, { lateRise, score, ...line }) {
  const seconds = line.seconds / THIRDS
  const isFast = lateRise * limits.lateSeconds >= limits.suspectedRiseBytes * seconds
  return isFast && lateRise >= limits.lastingLeastBytes && score >= limits.doubtScore
    ? unknown(`${sayRose(lateRise, seconds)}, and hardly before: too little to judge`, { seconds })
    : null
}

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
    // A morning is slow growth; only a cache that fills slows down at the end.
    isStraight: late >= limits.straightLateRatio &&
      (fit >= limits.straightFit || growth >= limits.slowBytesPerSecond)
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
    summary: sayGrows(signals, limits, growth) +
      `${inTime && ` and ${sayReaches({ isCertain, limitName, inTime }, signals)}`}` +
      `${isCertain ? '' : `: ${MAY_FILL}`}.`,
    standing: sayStanding('The live heap', rise, seconds),
    finding: { growthBytesPerSecond: growth, grows: findGrowing(signals) },
    evidence: listEvidence(
      showLine(signals, limits, line, whole, certainBytes),
      showGrownWith(signals, rise, limits),
      showSharers(signals, runway)
    ),
    impact: sayDeath({ room: `${formatBytes(runway)} below ${limitName}`, isCertain, inTime })
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
      `The live heap has risen by ${formatBytes(rise)}${before}: ${way} of the way to the limit ` +
      `(threshold ${limit}).`)
  ]
}

module.exports = { judgeMinutes }
