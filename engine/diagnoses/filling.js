'use strict'

const { CONTAINER_LIMIT } = require('./severity')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')

/**
 * Limits that separate leaks from caches: a cache that fills grows as straight as a leak until it
 * meets its bound. The live heap and the memory outside it share these limits.
 */
const FILLING_LIMITS = Object.freeze({
  // Growth is certainly a leak if it is straight over this share of the way from its start to the
  // limit, and for `fillingSeconds`.
  runwayShareRatio: 0.35,
  // Least time of a straight line: caches of 50 to 400 MiB took up to ten minutes to fill.
  fillingSeconds: 600,
  // Slower growth must be straight for this time. Memory that follows the load rises by up to 300
  // MiB in the first hour of a working day, and large caches fill in an hour.
  slowBytesPerSecond: 300 * 2 ** 20 / 3600,
  slowSeconds: 3600,
  // Straight growth has at least this part of its rate at its end. Slow growth also needs at least
  // this r². Such a morning and a cache that fills have less.
  straightFit: 0.97,
  straightLateRatio: 0.8,
  // Far from the limit, growth has ended if its level has stood for this time, and for this share
  // of the work that the second half of its rise took, and if its rate would have added this share
  // of the level meanwhile. Readings that stand vary by 0.03. After 45 s, caches that had filled in
  // 80 s were still suspected when their two minutes ended.
  endedSeconds: 20,
  endedWorkRatio: 0.25,
  endedGrowthShareRatio: 0.1,
  // A load below this share of that in the rise may stop a leak as well.
  loadedRatio: 0.3,
  // Other growth is certainly a leak only if it covers this share of the way, because caches are
  // configured to stay below the limit.
  fillingRunwayShareRatio: 0.8,
  // Straight growth of this size is certainly a leak, however far the limit is, because the
  // measured caches were smaller. A share alone would demand too much: on a machine with 24 GiB and
  // no container limit, a third of the way is 8 GiB.
  certainRiseBytes: 512 * 2 ** 20,
  // A rise that is too small for a suspicion is worth one if its line is this straight for this
  // time, this fast, as long as this share of the age of the process, and this share of the level:
  // in an older or a larger one the load moves as much. Sessions, iterators and databases that leak
  // 14 to 24 MiB a minute had 0.79 to 0.99. Of some 150 healthy apps only a cache that filled had.
  straightRiseBytes: 10 * 2 ** 20,
  straightRatio: 0.75,
  straightSeconds: 40,
  straightBytesPerSecond: 0.08 * 2 ** 20,
  straightShareRatio: 0.5,
  straightLevelRatio: 0.1
})

/** End of a sentence about growth that is not certain to be a leak. */
const MAY_FILL = 'a leak, or a cache that still fills'

/**
 * Verb before the limit of a growth. A cache may stop before it.
 * @param {boolean} isCertain
 */
const reaches = isCertain => isCertain ? 'reaches' : 'would reach'

/**
 * Says when a growth reaches its limit.
 * @param {{ isCertain: boolean, limitName: string, inTime: string }} growth
 * @param {{ containerProcesses: number | null }} signals other processes that grow take a part of
 *   the room, so the time is shorter than that of this growth alone
 */
const sayReaches = ({ isCertain, limitName, inTime }, { containerProcesses: processes }) =>
  `${reaches(isCertain)} ${limitName} ${inTime}` +
  (limitName === CONTAINER_LIMIT && (processes ?? 1) > 1
    ? `, as ${processes} processes share it`
    : '')

/**
 * Impact of growth that fills a heap.
 * @param {{ room: string, isCertain: boolean, inTime: string }} growth room: memory that is left,
 *   with its limit; inTime: empty without a time
 */
const sayDeath = ({ room, isCertain, inTime }) => {
  const until = isCertain ? 'at this rate' : 'if the growth continues at this rate,'
  return `There is room for ${room}${inTime && `: ${until} the process or worker dies ${inTime}`}.`
}

/** @typedef {typeof FILLING_LIMITS} FillingLimits */

/**
 * Is growth a straight line over most of the life of a process?
 * @param {FillingLimits} limits
 * @param {Record<'rise' | 'growth' | 'seconds' | 'steady', number>} line rise: bytes; growth: bytes
 *   a second; steady: its steadiness, from 0 to 1
 * @param {{ level: number | null, lifeSeconds: number | null }} of level: bytes now; lifeSeconds:
 *   age of the process, in which it had a CPU
 */
const isStraightSince = (limits, { rise, growth, seconds, steady }, { level, lifeSeconds }) =>
  rise >= limits.straightRiseBytes && steady >= limits.straightRatio &&
  seconds >= limits.straightSeconds && growth >= limits.straightBytesPerSecond &&
  lifeSeconds !== null && seconds >= limits.straightShareRatio * lifeSeconds &&
  level !== null && rise >= limits.straightLevelRatio * level

/**
 * Least rise along a line that makes a leak certain.
 * @param {FillingLimits} limits
 * @param {Record<'rise' | 'runway' | 'seconds' | 'growth', number> & { isStraight: boolean }} line
 *   rise and runway: bytes; growth: bytes per second
 * @returns {number} bytes
 */
function findCertainBytes (limits, { rise, runway, seconds, growth, isStraight }) {
  const isSlow = growth < limits.slowBytesPerSecond
  const mayFill = !isStraight || seconds < (isSlow ? limits.slowSeconds : limits.fillingSeconds)
  const share = mayFill ? limits.fillingRunwayShareRatio : limits.runwayShareRatio
  return Math.min(share * (rise + runway), limits.certainRiseBytes)
}

/**
 * Memory that stands at its highest level.
 * @typedef {Record<'level' | 'stood' | 'rose' | 'load', number | null>} Standing level: bytes;
 *   stood, rose: seconds; load: since then, as a share of the load of the rise
 */

/**
 * Has memory stood for a time, and for a share of the work of its rise?
 * @param {Standing} standing
 * @param {{ seconds: number, workRatio: number, loadedRatio: number }} least
 */
const hasStood = ({ stood, rose, load }, { seconds, workRatio, loadedRatio }) =>
  stood !== null && rose !== null && load !== null &&
  load >= loadedRatio && stood >= seconds && load * stood >= workRatio * rose

/**
 * Tells that growth has ended: a cache is full.
 * @param {FillingLimits} limits
 * @param {number} growth mean rate of all readings, in bytes a second
 * @param {Standing} standing
 * @returns {string | null} the end of a sentence about the level; null if the growth may go on
 */
function sayEnded (limits, growth, standing) {
  const { endedSeconds: seconds, endedWorkRatio: workRatio, loadedRatio } = limits
  const { level, stood, load } = standing
  if (level === null || stood === null || load === null) return null
  const missing = growth * stood
  if (!hasStood(standing, { seconds, workRatio, loadedRatio }) ||
    missing < limits.endedGrowthShareRatio * level) return null
  const share = load >= 1 ? 'at least the load' : `${formatRatio(load)} of the load`
  return `has stayed at ${formatBytes(level)} for ${formatSeconds(stood)}, under ${share} of its ` +
    `rise; at its mean rate it would have grown by ${formatBytes(missing)}`
}

/**
 * A line with the growth before it that already followed it. This growth counts for the size of the
 * rise, but not for its time: the start of the process belongs to the ten minutes of a cache.
 * @template {Record<'rise' | 'seconds', number>} L
 * @param {L} line
 * @param {number | null} lineSeconds length with that growth
 * @returns {L & { overSeconds: number }} overSeconds: time of the rise
 */
function extendLine (line, lineSeconds) {
  const overSeconds = Math.max(line.seconds, lineSeconds ?? 0)
  return { ...line, overSeconds, rise: line.rise * overSeconds / line.seconds }
}

module.exports = {
  FILLING_LIMITS,
  MAY_FILL,
  extendLine,
  findCertainBytes,
  hasStood,
  isStraightSince,
  reaches,
  sayDeath,
  sayEnded,
  sayReaches
}
