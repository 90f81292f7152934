'use strict'

const { ok, unknown } = require('./define-diagnosis')
const { wallAndCpu } = require('./evidence')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { newSpaceBytes } = require('../v8/heap-sizing')
const { SEMI_SPACE_CHOICES } = require('../v8/young-generation')

/** V8 promotes an object that survives so many scavenges. */
const SCAVENGES_TO_PROMOTE = 2

/** @typedef {import('./semi-space-starvation').Limits} Limits */
/** @typedef {import('./semi-space-starvation').Signals} Signals */
/** @typedef {ReturnType<typeof weighCauses>} Causes */

/**
 * Has the new space its final size, and was it observed long enough, with room in the old space? A
 * large one counts only if GC takes much of the time.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const { semiSpaceMaxBytes: most, semiSpaceCapacityBytes: now, recentGcs } = signals
  if (isLarge(signals, limits)) return ruleOutLarge(signals, limits)
  if (now < limits.grownShareRatio * most) {
    return ok(`the semi-space has ${formatBytes(now)} and may still grow to ` +
      formatBytes(most))
  }
  if (recentGcs < limits.recentGcs) {
    return isLittle(signals, limits)
      ? ok(`${formatNumber(recentGcs)} GCs lately: scavenges and the major GCs they cause take ` +
        `${formatRatio(signals.scavengePauseRatio + signals.ordinaryMajorPauseRatio)} of the time`)
      : unknown(`only ${formatNumber(recentGcs)} GCs lately: too few for a rate`)
  }
  return ruleOutFull(signals, limits)
}

/**
 * Do GCs take so little time that no more of them would give a finding?
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isLittle = (signals, limits) => signals.gcWindowSeconds >= limits.gcWindowSeconds &&
  signals.scavengeCpuRatio + signals.ordinaryMajorCpuRatio < limits.frequentPauseRatio &&
  signals.ordinaryMajorsPerSecond < limits.directMajorsPerSecond

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOutFull (signals, limits) {
  const filled = signals.liveHeapShareRatio ?? 0
  if (filled <= limits.liveHeapShareRatio) return null
  return ok(`the live heap fills ${formatRatio(filled)} of its limit: major GCs run because the ` +
    'old space is full')
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isLarge = ({ semiSpaceMaxBytes: most }, limits) => most >= limits.semiSpaceMaxBytes

/**
 * Rules out starvation for a large new space, unless GC takes much of the time, most of it
 * scavenges. Less time is enough where a still larger new space saves much of it.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOutLarge (signals, limits) {
  const large = `a semi-space may grow to ${formatBytes(signals.semiSpaceMaxBytes)}, which is ` +
    'not small'
  const { isKept, canGrow, wallRatio, cpuRatio } = weighCauses(signals, limits)
  const isSettled = signals.recentGcs >= limits.recentGcs &&
    signals.gcWindowSeconds >= limits.gcWindowSeconds
  const areScavenges = signals.scavengeCpuRatio >= signals.ordinaryMajorCpuRatio
  // While requests wait for the loop or a CPU, their data outlive a new space of any size.
  const isIdle = (signals.eventLoopUtilizationRatio ?? 0) < limits.neverIdleRatio &&
    (signals.cpuThrottledRatio ?? 0) < limits.throttledRatio
  const saves = canGrow && areScavenges && isIdle && !isKept
  // A space of twice the size has half as much left to save.
  const leastRatio = saves
    ? limits.largePauseRatio * signals.semiSpaceMaxBytes / limits.semiSpaceMaxBytes
    : limits.unexplainedRatio
  if (!isSettled || cpuRatio < leastRatio) {
    return ok(large, { keeps: saves && cpuRatio >= limits.keptLargeShareRatio * leastRatio })
  }
  if (!areScavenges) {
    return unknown(
      `GC takes ${wallAndCpu(signals, wallRatio, cpuRatio)}, most of it major GCs, though ` +
        `${large}. Less data in use at the same time may help: fewer concurrent requests, ` +
        'streams, smaller pages',
      { openUntil: 'cause' }
    )
  }
  return ruleOutFull(signals, limits)
}

/**
 * Least bytes promoted between two major GCs that may cause the second one.
 * @param {{ liveHeapBytes: number | null }} signals
 * @param {{ promotedPerMajorBytes: number, growsLeastRatio: number }} limits
 */
const leastPromotedBytes = ({ liveHeapBytes }, { promotedPerMajorBytes, growsLeastRatio }) =>
  Math.max(promotedPerMajorBytes, growsLeastRatio * (liveHeapBytes ?? 0))

/**
 * Cost of GCs, and the ways in which a small new space causes them.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function weighCauses (signals, limits) {
  const { ordinaryMajorsPerSecond: majors } = signals
  const wallRatio = signals.scavengePauseRatio + signals.ordinaryMajorPauseRatio
  const promoted = signals.promotedPerMajorBytes ?? Infinity
  const isPromotion = promoted >= leastPromotedBytes(signals, limits)
  // A smaller volume would be within the noise of the live heap.
  const freed = Math.max(promoted, limits.promotedPerMajorBytes)
  const isKept = (signals.keptPerMajorBytes ?? 0) >= limits.keptShareRatio * freed
  const isOfLarge = isLarge(signals, limits)
  const canGrow = signals.semiSpaceMaxBytes < limits.semiSpaceLargestBytes
  // V8 does not report which major GCs its marking steps prepare: the steps count for the more
  // frequent kind.
  const areOrdinary = majors > 0 && majors >= (signals.externalMajorsPerSecond ?? 0)
  const areMany =
    signals.cpuTimeRatio === null
      ? majors >= limits.ordinaryMajorsPerSecond
      : signals.ordinaryMajorCpuRatio >= limits.ordinaryMajorRatio
  const areFrequent = areOrdinary && areMany && !isKept
  const promotesGarbage = isPromotion && areOrdinary && !isKept
  const scavengesTooOften = signals.scavengesPerCpuSecond >= limits.scavengesPerCpuSecond
  const areUnexplained = !isPromotion && areFrequent && majors >= limits.ordinaryMajorsPerSecond
  // V8 pretenures: it allocates in the old space what often survived, or is larger than the new
  // space. Neither promotion nor Buffers fill the old space between two of these major GCs.
  const isDirect = !isPromotion && areOrdinary && !isKept && isAllocatedOld(signals, limits)
  const arePauses = areUnexplained && signals.ordinaryMajorCpuRatio >= limits.ordinaryMajorRatio
  const mayPretenure = (arePauses || isDirect) && !scavengesTooOften && !isOfLarge &&
    (signals.externalWaitingBytes ?? Infinity) < limits.promotedPerMajorBytes
  const live = signals.liveHeapBytes ?? Infinity
  // The live heap may consist of objects that are in use for a short time only. A larger new space
  // would copy those as well.
  const outlive = areUnexplained && scavengesTooOften &&
    (signals.liveHeapBytes ?? 0) > limits.semiSpaceMaxBytes
  return {
    isLarge: isOfLarge,
    isPromotion,
    mayPretenure,
    isDirect: mayPretenure && isDirect,
    // Objects that a larger new space must hold. Most of a large live heap is in use for long.
    heldBytes: isDirect ? live / SCAVENGES_TO_PROMOTE / limits.holdsLiveRatio : live,
    pretenures: mayPretenure && signals.gcWindowSeconds >= limits.gcWindowSeconds,
    outlive: outlive || (isOfLarge && !canGrow),
    canGrow,
    isKept,
    promotesGarbage,
    diesYoung: diesYoung(signals, limits),
    promotesTooEarly: promotesGarbage && areMany,
    scavengesTooOften,
    wallRatio,
    cpuRatio: signals.scavengeCpuRatio + signals.ordinaryMajorCpuRatio
  }
}

/**
 * Does the old space rise by much more than scavenges can promote, at a high cost? Then V8
 * allocates short-lived objects there.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isAllocatedOld = (
  { oldSpaceSwingBytes, promotedPerMajorBytes, ordinaryMajorsPerSecond, ordinaryGcOfCpuRatio },
  limits
) => ordinaryMajorsPerSecond >= limits.directMajorsPerSecond &&
  (ordinaryGcOfCpuRatio ?? 0) >= limits.wastedCpuRatio &&
  (oldSpaceSwingBytes ?? 0) >= limits.directRiseRatio *
    Math.max(promotedPerMajorBytes ?? Infinity, limits.promotedPerMajorBytes)

/**
 * Does a small new space cause the GCs, and do they cost enough to be worth a change?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Causes} causes
 */
function ruleOutCauses (signals, limits, causes) {
  if (causes.isLarge) return null
  const { isPromotion, pretenures, promotesTooEarly, scavengesTooOften } = causes
  const { wallRatio, cpuRatio } = causes
  const majors = formatNumber(signals.ordinaryMajorsPerSecond)
  if (pretenures) {
    const size = holdingSize(causes.heldBytes, limits)
    const { semiSpaceMaxBytes, rssBytes, containerShareBytes } = signals
    const extraBytes = newSpaceBytes((size ?? Infinity) - semiSpaceMaxBytes)
    if (hasRoom(extraBytes, rssBytes, containerShareBytes, limits)) return null
    return unknown(
      `${majors} major GCs a second free little that was promoted: V8 probably allocates in the ` +
        'old space, ' +
        (size !== undefined
          ? 'and the container has no room for a larger semi-space'
          : 'and whether a larger semi-space holds these objects beside ' +
            `${formatBytes(signals.liveHeapBytes ?? 0)} of live heap is open; memwatch compare ` +
            'measures it'),
      { openUntil: 'cause', seconds: limits.pretenuringSeconds }
    )
  }
  if (causes.mayPretenure) {
    const waitSeconds = limits.gcWindowSeconds - signals.gcWindowSeconds
    return unknown(
      `${majors} major GCs a second free little that was promoted: too short to judge`,
      { waitSeconds }
    )
  }
  if (!isPromotion && !scavengesTooOften) {
    return ok(`scavenges promote at most ${formatBytes(signals.promotedPerMajorBytes ?? 0)} ` +
      `between two major GCs (${majors}/s): these have another cause, such as Buffers`)
  }
  const isCause = promotesTooEarly || scavengesTooOften
  const isCostly = cpuRatio >= limits.suspectedPauseRatio
  if ((isCause && isCostly) || wastesCpuTime(signals, limits, causes)) return null
  return ok('scavenges and the major GCs they cause take ' +
    `${wallAndCpu(signals, wallRatio, cpuRatio)} (${formatNumber(signals.scavengesPerSecond)} ` +
    `scavenges/s, ${majors} major GCs/s)`, {
    keeps: stillWastesCpuTime(signals, limits, causes) ||
      (isPromotion && !causes.isKept && isCostly &&
        signals.ordinaryMajorCpuRatio >= limits.keptOrdinaryMajorRatio)
  })
}

/**
 * Size for objects that V8 allocates in the old space. Most of a small live heap may be such
 * objects, and a semi-space that does not hold them copies them as well.
 * @param {number} liveBytes
 * @param {{ semiSpaceMaxBytes: number, semiSpaceLargestBytes: number, holdsLiveRatio: number }}
 *   limits
 * @returns {number | undefined} the first size that is not small and holds them; undefined if none
 *   does
 */
const holdingSize = (liveBytes, limits) =>
  [...SEMI_SPACE_CHOICES, limits.semiSpaceLargestBytes].find(bytes =>
    bytes >= limits.semiSpaceMaxBytes && bytes >= limits.holdsLiveRatio * liveBytes)

/**
 * True if the container has room for a larger new space. Processes that share the container have
 * the same problem, and get the same advice.
 * @param {number} extraBytes
 * @param {number | null} rssBytes
 * @param {number | null} shareBytes part of the container's memory that this process may have
 * @param {{ spareShareRatio: number }} limits
 * @returns {boolean}
 */
function hasRoom (extraBytes, rssBytes, shareBytes, { spareShareRatio }) {
  return extraBytes < spareShareRatio * ((shareBytes ?? Infinity) - (rssBytes ?? 0))
}

/**
 * Do scavenges, and the major GCs that they cause, take much of the CPU time that an app uses,
 * although it waits most of the time and its requests wait little?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Causes} causes
 * @param {number} [part] of the limits
 */
function wastesCpuTime (signals, limits, { cpuRatio, promotesGarbage, diesYoung }, part = 1) {
  const { scavengesPerCpuSecond, ordinaryMajorsPerSecond, ordinaryGcOfCpuRatio } = signals
  const gc = ordinaryGcOfCpuRatio ?? 0
  const areScavenges = scavengesPerCpuSecond >= part * limits.frequentScavengesPerCpuSecond
  const areMajors = promotesGarbage && diesYoung
  const areFrequent = areScavenges ||
    (areMajors && ordinaryMajorsPerSecond >= part * limits.ordinaryMajorsPerSecond)
  const isLong = cpuRatio >= part * limits.wastedPauseRatio && gc >= part * limits.wastedCpuRatio
  return (isLong && (areScavenges || areMajors)) ||
    (areFrequent && cpuRatio >= part * limits.frequentPauseRatio &&
      gc >= part * limits.frequentCpuRatio)
}

/**
 * The same for a finding that stands.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Causes} causes
 */
const stillWastesCpuTime = (signals, limits, causes) =>
  wastesCpuTime(signals, limits, causes, limits.keptShareOfLimits)

/**
 * Would the largest new space that memwatch recommends outlast the promoted objects? On average
 * they live at most for the time in which promotion fills the live heap (Little's law).
 * @param {Signals} signals
 * @param {Limits} limits
 */
function diesYoung (signals, limits) {
  const { semiSpaceCapacityBytes, scavengesPerSecond, ordinaryMajorsPerSecond } = signals
  const promotedPerSecond = (signals.promotedPerMajorBytes ?? 0) * ordinaryMajorsPerSecond
  const allocatedPerSecond = semiSpaceCapacityBytes * scavengesPerSecond
  const livesSeconds = (signals.liveHeapBytes ?? Infinity) / promotedPerSecond
  const fillsSeconds = limits.semiSpaceLargestBytes / allocatedPerSecond
  return livesSeconds < SCAVENGES_TO_PROMOTE * fillsSeconds
}

module.exports = {
  hasRoom, holdingSize, leastPromotedBytes, ruleOut, ruleOutCauses, stillWastesCpuTime,
  wastesCpuTime, weighCauses
}
