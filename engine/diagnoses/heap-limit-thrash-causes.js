'use strict'

const { formatBytes } = require('../text/format')
const { marksAlways } = require('../v8/fitting-sizes')

/** @typedef {import('./heap-limit-thrash').Limits} Limits */
/** @typedef {import('./heap-limit-thrash').Signals} Signals */

/**
 * Part of the limit that the live heap leaves.
 * @param {Signals} signals
 */
const restOf = ({ liveHeapBytes: live, liveHeapShareRatio: share }) => live / share - live

/**
 * Why a heap below the usual share of its limit has no room.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function sayRest (signals, limits) {
  const { liveHeapShareRatio: share, semiSpaceCapacityBytes } = signals
  const semiSpaceBytes = semiSpaceCapacityBytes ?? 0
  return share < limits.crowdedShareRatio && marksAlways(semiSpaceBytes, restOf(signals))
    ? `, the rest is too little for semi-spaces of ${formatBytes(semiSpaceBytes)}`
    : ''
}

/**
 * True if major GCs run for lack of room, and cost time.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} ratio factor on the limits
 */
function comesForRoom (signals, limits, ratio) {
  const areFrequent =
    signals.recentMajorsPerCpuSecond >= ratio * limits.majorsPerCpuSecond ||
    signals.recentMajorCpuRatio >= ratio * limits.majorRatio
  const mark = marks(signals, limits, ratio * limits.suspectedMarkingRatio)
  return areFrequent
    ? mark || signals.recentGcCpuRatio >= ratio * limits.suspectedPauseRatio
    : mark && isFull(signals, limits) &&
      (signals.ordinaryMajorsPerSecond ?? 0) >= ratio * limits.fullMajorsPerSecond
}

/**
 * Does V8 take this share of the process's CPU time to mark a live heap that is near its limit? If
 * semi-spaces are the cause, a burst of work has the same cost for a few seconds, so the share must
 * be large.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} ratio
 */
function marks (signals, limits, ratio) {
  const { liveHeapShareRatio: share, ordinaryMarkingRatio } = signals
  const least = share >= limits.liveHeapShareRatio
    ? ratio
    : sayRest(signals, limits) === '' ? Infinity : limits.crowdedMarkingRatio
  return (ordinaryMarkingRatio ?? 0) >= least
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isFull = ({ liveHeapShareRatio: share }, { fullShareRatio }) => share >= fullShareRatio

/**
 * Share of the process's CPU time in major GCs that makes the finding certain.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const neededMarking = (signals, limits) =>
  isFull(signals, limits) ? limits.fullMarkingRatio : limits.markingRatio

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
const marksMuch = (signals, limits) => marks(signals, limits, neededMarking(signals, limits))

/**
 * Seconds until the heap is full; null if this takes longer than a minute, or is unknown.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function findSecondsToFill ({ liveHeapShareRatio, heapLimitSecondsLeft: left }, limits) {
  if (liveHeapShareRatio < limits.fillsShareRatio) return null
  return left !== null && left <= limits.fillsSeconds ? left : null
}

/**
 * Least share of CPU time in GC that makes the finding certain.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const findNeededPauses = ({ liveHeapShareRatio, recentMajorsPerCpuSecond }, limits) =>
  liveHeapShareRatio >= limits.brinkShareRatio &&
  recentMajorsPerCpuSecond >= limits.brinkMajorsPerCpuSecond
    ? limits.brinkPauseRatio
    : limits.pauseRatio

module.exports = {
  comesForRoom,
  findNeededPauses,
  findSecondsToFill,
  marks,
  marksMuch,
  neededMarking,
  restOf,
  sayRest
}
