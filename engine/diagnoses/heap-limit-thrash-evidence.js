'use strict'

const {
  cpuTimeEvidence, evidence, listEvidence, markingEvidence, sayMarking, wallAndCpu
} = require('./evidence')
const { marks, marksMuch, neededMarking, restOf, sayRest } = require('./heap-limit-thrash-causes')
const { formatBytes, formatMilliseconds, formatNumber, formatRatio } = require('../text/format')

/** @typedef {import('./heap-limit-thrash').Limits} Limits */
/** @typedef {import('./heap-limit-thrash').Signals} Signals */

/**
 * @param {Signals} signals
 * @param {number} needed ratio
 * @param {Limits} limits
 */
function pausesEvidence (signals, needed, limits) {
  const isCertain = signals.recentGcCpuRatio >= needed || marksMuch(signals, limits)
  const usual = needed < limits.pauseRatio
    ? `, as major GCs are frequent; otherwise ${formatRatio(limits.pauseRatio)}`
    : ''
  return evidence('recentGcPauseRatio', signals.recentGcPauseRatio, needed, (_, limit) => {
    const pauses = `GC pauses take ${sayPauses(signals)}; `
    return isCertain
      ? `${pauses}the threshold is ${limit} of CPU time${usual}.`
      : `${pauses}the finding is certain from ${limit} of CPU time on${usual}.`
  })
}

/** @param {Signals} signals */
const sayPauses = signals =>
  wallAndCpu(signals, signals.recentGcPauseRatio, signals.recentGcCpuRatio)

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {string} share of pauses, and of marking if other threads mark much
 */
const sayCost = (signals, limits) => marks(signals, limits, limits.suspectedMarkingRatio)
  ? `${formatRatio(signals.recentGcPauseRatio)} of the time` +
    sayMarking(signals.ordinaryMarkingRatio)
  : sayPauses(signals)

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
function majorsEvidence (signals, limits) {
  const { ordinaryMajorsPerSecond, recentMajorsPerSecond } = signals
  const say = (/** @type {number} */ majors) => (/** @type {string} */ value) =>
    `${value} major GCs${majors > 0 ? `: one every ${formatNumber(1 / majors)} s` : ''}, each of ` +
    `them ${formatMilliseconds(signals.majorPauseSeconds ?? 0)} long.`
  return marks(signals, limits, limits.suspectedMarkingRatio) && ordinaryMajorsPerSecond !== null
    ? evidence('ordinaryMajorsPerSecond', ordinaryMajorsPerSecond, limits.fullMajorsPerSecond,
      say(ordinaryMajorsPerSecond))
    : evidence('recentMajorsPerSecond', recentMajorsPerSecond, limits.majorsPerCpuSecond,
      say(recentMajorsPerSecond))
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number | null} left seconds until the heap is full
 * @param {number} neededPauses ratio
 */
function showEvidence (signals, limits, left, neededPauses) {
  const { liveHeapShareRatio: share } = signals
  const { slope: growth = 0, fit = 0 } = signals.liveHeapTrend ?? {}
  const mayLeak = growth > 0 && fit >= limits.growthFit
  const isCrowded = sayRest(signals, limits) !== ''
  return listEvidence(
    evidence('liveHeapShareRatio', share, limits.liveHeapShareRatio, (value, limit) =>
      `After a major GC ${formatBytes(signals.liveHeapBytes)} are left: ${value} of the limit.` +
      (isCrowded ? '' : ` Above ${limit} there is little room for garbage.`)),
    isCrowded &&
      evidence(
        'semiSpaceCapacityBytes',
        signals.semiSpaceCapacityBytes ?? 0,
        limits.usedRestRatio * restOf(signals),
        (value, limit) =>
          `A semi-space of ${value} is larger than ${limit}, half of the rest of the limit: V8 ` +
            'marks the heap all the time.'
      ),
    left !== null && evidence('heapLimitSecondsLeft', left, limits.fillsSeconds, value =>
      'The live heap fell at none of the last major GCs: at this rate it reaches its limit in ' +
      `about ${value}.`),
    marks(signals, limits, limits.suspectedMarkingRatio) &&
      markingEvidence(signals.ordinaryMarkingRatio, neededMarking(signals, limits)),
    pausesEvidence(signals, neededPauses, limits),
    majorsEvidence(signals, limits),
    cpuTimeEvidence(
      signals,
      `${formatNumber(signals.recentMajorsPerCpuSecond)} major GCs, and ` +
        `${formatRatio(signals.recentGcCpuRatio)} in GCs of all kinds`
    ),
    mayLeak && evidence('liveHeapGrowthBytesPerSecond', growth, 0, value =>
      `The live heap still grows, by ${value}: the cause may be a leak.`)
  )
}

module.exports = { pausesEvidence, sayCost, sayPauses, showEvidence }
