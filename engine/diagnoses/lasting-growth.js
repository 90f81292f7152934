'use strict'

const { ok } = require('./define-diagnosis')
const { DAY_SECONDS } = require('../statistics/unexplained-growth')
const {
  formatBytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('../text/format')

const SECONDS_PER_HOUR = 3600

/**
 * Limits of growth over hours and days. The diagnoses of the live heap and of the memory outside it
 * share these limits.
 */
const LASTING_LIMITS = Object.freeze({
  // Least growth that is judged within minutes. Slower growth may follow a load that rises in the
  // morning: 300 MiB between night and noon are up to 39 MiB an hour. Such growth is judged over
  // hours, against the load and the hour of the day.
  slowestBytesPerSecond: 48 * 2 ** 20 / SECONDS_PER_HOUR,
  // Least growth for a suspicion, in standard errors. Services whose memory follows their load
  // measured below 4 from the second day on, leaks above 9.
  lastingScore: 4,
  // Growth of this many standard errors, on the last day as well, keeps a finding for this time: a
  // cache that filled on the first day hides a leak of 2 MiB an hour until then. Without new
  // evidence most findings end six hours later, when two days are known.
  lastingDoubtScore: 2,
  doubtSeconds: 42 * SECONDS_PER_HOUR,
  // Least growth for a confirmed finding, in standard errors.
  lastingCertainScore: 6,
  // Growth that is worth a suspicion, however far the limit is: a leak of 2 MiB an hour reaches it
  // within a day.
  lastingRiseBytes: 28 * 2 ** 20,
  // Growth that is worth a suspicion near the limit: this share of the way, and at least these
  // bytes.
  lastingShareRatio: 0.05,
  lastingLeastBytes: 6 * 2 ** 20,
  // A leak continues at its rate. The last third of growth that fills a cache falls below this
  // share of the rate.
  lastingLateRatio: 0.6,
  // A finding stands until the last third of the growth falls below this share of the rate: memory
  // retained per request grows more slowly at a weekend.
  lastingLevelsOffRatio: 0.3,
  // Largest deviation of a third's slope from the whole slope, relative to it, in a straight line.
  // A daily wave deviates more within six hours.
  lastingBendRatio: 0.15,
  // Growth is certainly a leak, however far the limit is, if each of the last `certainDays` days
  // rose like the whole growth, and the whole growth has at least this duration and this rise.
  certainDays: 2,
  certainDaysSeconds: 60 * SECONDS_PER_HOUR,
  certainDaysRiseBytes: 64 * 2 ** 20,
  // Before two days are known, the load must be ruled out as the cause. Growth must be straight for
  // `movedSeconds` if the load moved by this ratio. If it moved less, or is unknown, growth must be
  // straight for `unseenSeconds`, because no daily load looks straight for so long: memory may
  // follow something that CPU time does not show, such as clients that stay connected. Beside a
  // steady load, `steadySeconds` are enough if the limit would be reached before.
  loadMovesRatio: 0.25,
  // Length of history that distinguishes a daily wave from a line. A suspicion stands until then: a
  // quiet evening does not refute growth in the morning.
  dayTellsSeconds: 30 * SECONDS_PER_HOUR,
  movedSeconds: 2 * SECONDS_PER_HOUR,
  steadySeconds: 4 * SECONDS_PER_HOUR,
  unseenSeconds: 9 * SECONDS_PER_HOUR,
  // Least share of the growth that the load must leave unexplained, whichever load explains most of
  // it.
  leastRatio: 0.5,
  // A time to the limit is reported only if the standard error of the rate is at most this share of
  // the rate.
  rateErrorRatio: 0.15,
  // Largest deviation of a third's slope from the whole slope, for a time to be reported: memory
  // leaked per request grows more slowly at a weekend.
  rateBendRatio: 0.25,
  // The room must be larger than this multiple of the standard deviation of a reading.
  roomNoises: 3,
  // Until two days are known, the time is also reported only if the load leaves this share of the
  // growth unexplained.
  rateLeastRatio: 0.7,
  // Growth predicts nothing beyond this multiple of the observed time: by then a cache is full, or
  // the load of another week is different.
  tellsAheadRatio: 4,
  // The same for growth over days, whose memory has peaks that no day has had yet.
  tellsDaysAheadRatio: 2,
  // Growth whose last third falls below this share of the rate may be a cache that fills, and
  // predicts nothing either.
  tellsLateRatio: 0.8,
  // A limit that will be reached sooner than this is always reported, as somebody must act.
  soonSeconds: SECONDS_PER_HOUR,
  // Prediction horizon, as a multiple of the observed hours, until two days are known: memory
  // leaked per request grows by day and rests at night.
  tellsHoursRatio: 1,
  // Largest swing of the memory with the load that allows such a prediction, as a share of the room
  // left.
  swingShareRatio: 0.2,
  // Within two hours, a rise is attributed to the load if the load explains this share of it.
  loadShareRatio: 0.5,
  // Least part of a rise that must exceed all earlier values. A level that returns each morning
  // exceeds that of the last morning only by noise.
  newShareRatio: 0.3
})

/** @typedef {typeof LASTING_LIMITS} LastingLimits */
/** @typedef {import('../signals/lasting').LastingTrend} LastingTrend */

/**
 * @typedef {object} LastingJudgement
 * @property {import('./define-diagnosis').State} state never unknown
 * @property {number} seconds length of the history behind the judgement
 * @property {boolean} keeps true if this judgement does not withdraw an earlier suspicion
 * @property {number} growth bytes a second
 * @property {number} rise bytes
 * @property {number} share part of the way to the limit
 * @property {number | null} limitInSeconds null if unknown
 * @property {number | null} tellsSeconds the same time, if it is certain enough for a text
 * @property {string} summary with `ok`: the reason
 * @property {string} because with a finding: the weighed evidence
 * @property {string} also other possible explanations, and the time until they are decided; empty
 *   if there are none
 */

/**
 * Judges growth over hours and days: growth that neither the load, nor the hour of the day, nor a
 * cache that fills explains is a leak.
 * @param {LastingTrend} trend
 * @param {{ peakRunway: number, nearestRunway?: number, limitInSeconds: number | null }} limit
 *   peakRunway: room left at the busiest moment, in bytes; nearestRunway: the same up to another
 *   limit that is nearer; limitInSeconds: time to the first limit
 * @param {LastingLimits & { runwayShareRatio: number, certainRiseBytes: number }} limits
 * @param {string} what name of the growing level, as in a sentence
 * @returns {LastingJudgement}
 */
function judgeLasting (trend, limit, limits, what) {
  const { peakRunway, nearestRunway = peakRunway, limitInSeconds } = limit
  const { slope: growth, rise, seconds, steadyDays: days } = trend
  const share = rise > 0 ? rise / (rise + peakRunway) : 0
  const isKnown = days !== null || seconds >= limits.dayTellsSeconds
  const keeps = !isKnown || mayGrow(trend, limits)
  const found = {
    seconds,
    growth,
    rise,
    share,
    keeps,
    limitInSeconds: null,
    tellsSeconds: null,
    because: '',
    also: ''
  }
  const harmless = explainLasting(trend, share, limits)
  if (harmless) return { ...found, state: 'ok', summary: `${what} ${harmless}` }

  const isSure = isNoLoad(trend, nearestRunway, limits)
  const isFar = share >= limits.runwayShareRatio || rise >= limits.certainRiseBytes
  const isLong =
    (days ?? 0) >= limits.certainDays &&
    seconds >= limits.certainDaysSeconds &&
    rise >= limits.certainDaysRiseBytes
  const isRateKnown = isSure && 1 / trend.score <= limits.rateErrorRatio &&
    trend.bendRatio <= limits.rateBendRatio
  const isCertain = isSure && (isFar || isLong)
  // The rate by day differs from the rate at night. Until full days are known, only a near limit
  // can be predicted.
  const isNear =
    isCertain &&
    trend.leastRatio >= limits.rateLeastRatio &&
    seconds >= limits.unseenSeconds &&
    trend.loadSwing <= limits.swingShareRatio * peakRunway &&
    (limitInSeconds ?? Infinity) <= limits.tellsHoursRatio * seconds
  const secondsLeft = isRateKnown && (days !== null || isNear)
    ? timeLeft(limitInSeconds ?? Infinity, seconds, {
      ...limits, tellsAheadRatio: limits.tellsDaysAheadRatio
    }).secondsLeft
    : null
  const isWithinNoise = (secondsLeft ?? 0) * growth < limits.roomNoises * trend.noise
  return {
    ...found,
    keeps: days === null || isSure,
    state: isCertain ? 'confirmed' : 'suspected',
    limitInSeconds: secondsLeft,
    tellsSeconds: isWithinNoise ? null : secondsLeft,
    summary: '',
    because: sayWeighed(trend, limits),
    also: isSure
      ? ''
      : 'it may be the daily load or a cache that fills; two days of history decide'
  }
}

/**
 * True if growth that is not certain enough for a finding does not withdraw one either. A leak of
 * 1.8 GiB in eight days was ruled out on its second weekend, as it did not grow against Friday.
 * @param {LastingTrend} trend
 * @param {LastingLimits} limits
 */
function mayGrow (trend, limits) {
  const { score, rise, seconds, steadyDays: days, lateRatio } = trend
  if (score < limits.lastingScore) {
    return days !== 0 && seconds < limits.doubtSeconds &&
      score >= limits.lastingDoubtScore && rise >= limits.lastingRiseBytes &&
      lateRatio >= limits.lastingLevelsOffRatio
  }
  // A level that returned from a quiet day, or does not grow on one, may grow again.
  return lateRatio >= limits.lastingLevelsOffRatio
}

/**
 * @param {LastingTrend} trend
 * @param {number} share of the way to the limit
 * @param {LastingLimits} limits
 * @returns {string | null} reason why the growth is no leak, as the end of a sentence
 */
function explainLasting (trend, share, limits) {
  const { slope, score, rise, seconds, steadyDays: days, lateRatio, loadSwing } = trend
  const isLarge =
    rise >= limits.lastingRiseBytes ||
    (share >= limits.lastingShareRatio && rise >= limits.lastingLeastBytes)
  const over = formatSeconds(seconds)
  if (score < limits.lastingScore || !isLarge) {
    const hour = days !== null ? ', against the same hours of other days' : ''
    const swing = loadSwing >= limits.lastingRiseBytes
      ? `; ${formatBytes(loadSwing)} rise and fall with the load`
      : ''
    return `does not grow in a straight line: ${formatPerHour(slope)} over ${over}${hour}${swing}`
  }
  const grew = `grew by ${formatBytes(rise)} in ${over}`
  if (lateRatio < limits.lastingLateRatio) {
    return `${grew} and is levelling off: its last third grew at no more than ` +
      `${formatRatio(Math.max(0, lateRatio))} of the rate`
  }
  if (returns(trend, limits)) {
    return `${grew}, and was as high at the same hours of an earlier day`
  }
  return days === 0 ? `${grew}, but not against the same hours of the day before` : null
}

/**
 * True if the level only returns to that of an earlier day, as after a weekend.
 * @param {LastingTrend} trend
 * @param {LastingLimits} limits
 */
const returns = ({ aboveAllDays, slope }, limits) =>
  aboveAllDays !== null && aboveAllDays < limits.newShareRatio * slope * DAY_SECONDS

/**
 * True if neither the load nor the hour of the day can explain this growth.
 * @param {LastingTrend} trend
 * @param {number} runway bytes
 * @param {LastingLimits} limits
 */
function isNoLoad (trend, runway, limits) {
  if (trend.score < limits.lastingCertainScore) return false
  if (trend.steadyDays !== null) return true
  return trend.bendRatio <= limits.lastingBendRatio &&
    trend.leastRatio >= limits.leastRatio &&
    trend.seconds >= secondsWithoutDays(trend, runway, limits)
}

/**
 * @param {LastingTrend} trend
 * @param {LastingLimits} limits
 * @returns {string} sentence that states the weighed evidence
 */
function sayWeighed ({ steadyDays: days, loadMovesRatio, loadSwing }, limits) {
  const swing = loadSwing >= limits.lastingRiseBytes
    ? `; ${formatBytes(loadSwing)} that rise and fall with the load are excluded`
    : ''
  if (days !== null) {
    const which = days === 1
      ? 'on the last day'
      : `on each of the last ${formatNumber(days)} days`
    return `Compared with the same hours of the day before, it grew ${which}${swing}.`
  }
  if (loadMovesRatio === null) {
    return 'CPU time and allocation are unknown: for a day, rising load looks the same.'
  }
  const does = loadMovesRatio < limits.loadMovesRatio ? 'hardly moved' : 'do not explain it'
  return `CPU time and allocation ${does} meanwhile${swing}.`
}

/**
 * Least length of a straight line that rules out the load, before days can be compared.
 * @param {LastingTrend} trend
 * @param {number} runway bytes
 * @param {LastingLimits} limits
 */
function secondsWithoutDays ({ loadMovesRatio, seconds, slope }, runway, limits) {
  if (loadMovesRatio === null) return limits.unseenSeconds
  if (loadMovesRatio >= limits.loadMovesRatio) return limits.movedSeconds
  return seconds + runway / slope < limits.unseenSeconds
    ? limits.steadySeconds
    : limits.unseenSeconds
}

/** @param {number} bytesPerSecond */
const formatPerHour = bytesPerSecond => `${formatBytes(bytesPerSecond * SECONDS_PER_HOUR)}/h`

/**
 * Time to the limit, predicted from observed growth.
 * @param {number} secondsLeft
 * @param {number} seconds length of the observation
 * @param {{ tellsAheadRatio: number, soonSeconds: number }} limits
 * @returns {{ secondsLeft: number | null, inTime: string }} null and empty if the limit is too far
 *   away to predict
 */
const timeLeft = (secondsLeft, seconds, limits) =>
  secondsLeft <= Math.max(limits.soonSeconds, limits.tellsAheadRatio * seconds)
    ? { secondsLeft, inTime: `in about ${formatSeconds(secondsLeft)}` }
    : { secondsLeft: null, inTime: '' }

/**
 * Rules out a rise within two hours if the load explains it, or if it only returns to an earlier
 * level.
 * @param {{ newShareRatio: number, loadShareRatio: number }} limits
 * @param {number} rise bytes
 * @param {{ grew: string, load: string, level: number | null, earlierHigh: number | null,
 *   loadShare: number | null }} of grew and load: the rise and the load in words; level and
 *   earlierHigh: bytes
 * @returns {import('./define-diagnosis').Dismissal | null}
 */
function ruleOutKnownRise (limits, rise, { grew, load, level, earlierHigh: high, loadShare }) {
  if (high !== null && level !== null && level - high < limits.newShareRatio * rise) {
    return ok(`${grew}, and was at ${formatBytes(high)} before`)
  }
  if (loadShare !== null && loadShare >= limits.loadShareRatio) {
    return ok(`${grew} with ${load}, which explains ${formatRatio(loadShare)} of it`)
  }
  return null
}

/**
 * @param {string} name of the growing level, as the subject of a sentence
 * @param {number} rise bytes
 * @param {number} seconds
 */
const sayStanding = (name, rise, seconds) =>
  `${name} grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}, ` +
  formatValue(rise / seconds, 'bytesPerSecond')

module.exports = {
  LASTING_LIMITS, formatPerHour, judgeLasting, ruleOutKnownRise, sayStanding, timeLeft
}
