'use strict'

const { ok, unknown } = require('./define-diagnosis')
const { formatMilliseconds: ms, formatNumber, formatRatio } = require('../text/format')

/**
 * A block of L seconds adds L²/2 to the mean wait. So the wait divided by half of the longest block
 * is the least share of time in blocks.
 */
const MEAN_SHARE = 0.5

/** @typedef {import('./event-loop-blocked').Limits} Limits */
/** @typedef {import('./event-loop-blocked').Signals} Signals */
/**
 * @typedef {{ longest: number, mean: number, isLong: boolean, areRare: boolean, isHang: boolean }}
 *   Delays seconds; isLong: true if they are long enough, and were observed for long enough, to
 *   confirm the finding; isHang: true for few blocks, of which one is very long
 */

/**
 * Did the loop respond in time in the last seconds? If not, is the cause GC or a lack of CPU?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const { longestDelaySeconds: longest, expectedWaitSeconds: mean } = signals
  const { eventLoopUtilizationRatio: busy, runQueueWaitRatio: queued } = signals
  const { cpuThrottledRatio: throttled } = signals
  const gc = signals.gcPauseRatio ?? 0
  if (!isLate(limits, busy, signals.blockedFramesRatio, longest, mean)) {
    return ok(`the event loop is late by ${ms(mean)} on average and by ${ms(longest)} at most`)
  }
  const isYoung = signals.loopWindowSeconds < limits.windowSeconds
  if (queued === null && isYoung && waitsInside(signals, limits)) {
    return unknown(`the event loop is late by ${ms(mean)} on average; whether its thread waited ` +
      'for a CPU is not known yet')
  }
  const quota = signals.cpuQuotaCores ?? Infinity
  if (isYoung && quota < limits.threadCores) {
    return unknown(`the event loop is late by ${ms(mean)} on average; whether the CPU limit of ` +
      `${formatNumber(quota)} cores delays it is not known yet`)
  }
  if (queued === null && (throttled ?? 0) >= limits.throttledRatio) {
    return ok(`${throttledText(signals)}: raise the CPU limit; the code is not the cause`)
  }
  if (gc >= limits.gcShareRatio * busy) {
    const what = (queued ?? 0) > gc
      ? `, and the thread waits for a CPU ${formatRatio(queued ?? 0)} of the time: both delay ` +
        'the loop'
      : ': GC blocks the loop'
    return ok(`the loop is late by ${ms(mean)} on average, but GC takes ${formatRatio(gc)} of ` +
      `the time${what}`)
  }
  const outside = outsideMajors(signals) * mean
  if (outside < limits.suspectedExpectedWaitSeconds) {
    return ok(`the loop is late by ${ms(mean)} on average, but only by ${ms(outside)} without ` +
      'the pauses of major GCs')
  }
  if (busy - gc < limits.busyRatio) {
    return ok(`the loop is busy only ${formatRatio(busy)} of the time: single late timers`)
  }
  const { blockedFramesCpuRatio, longestDelayCpuSeconds, expectedWaitCpuSeconds } = signals
  if (
    isLate(limits, busy, blockedFramesCpuRatio, longestDelayCpuSeconds, expectedWaitCpuSeconds)
  ) return null
  const why = throttled
    ? `${throttledText(signals)}, and a higher CPU limit helps`
    : 'other processes on the machine used it'
  return ok(`the event loop is late by ${ms(mean)} on average, but ` +
    `${formatRatio(queued ?? 0)} of the time the thread was ready and had no CPU: ${why}`)
}

/**
 * Delays of the last seconds.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Delays}
 */
const findFrequent = (signals, limits) => ({
  longest: signals.longestDelaySeconds,
  mean: signals.expectedWaitSeconds,
  isLong:
    signals.expectedWaitCpuSeconds * outsideMajors(signals) >= limits.expectedWaitSeconds &&
    signals.loopWindowSeconds >= limits.windowSeconds,
  areRare: false,
  isHang: false
})

/**
 * Long blocks that recur within minutes, or one very long block. They are few, but they delay many
 * requests. In a loop that GC keeps busy all the time, work piles up, and turns are long because
 * each handles many events.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Delays | null}
 */
function findRare (signals, limits) {
  const { longBlocksSeen: count, longBlocksSpanSeconds: seconds } = signals
  const { longBlocksWaitSeconds: mean, longestBlockSeconds: longest } = signals
  if (mean === null || seconds === null || longest === null) return null
  const { eventLoopUtilizationRatio: busy } = signals
  const isOverloadedByGc =
    busy >= limits.frequentBusyRatio && (signals.gcPauseRatio ?? 0) >= limits.gcShareRatio * busy
  const areMany = !isOverloadedByGc &&
    (count ?? 0) >= limits.longBlocks && seconds >= limits.windowSeconds
  const isHang = !areMany && longest >= limits.hangSeconds
  const isMeanLong = mean >= limits.expectedWaitSeconds
  const areOften = mean / (MEAN_SHARE * longest) >= limits.longBlocksTimeRatio
  if (!(areMany || isHang) || !(isMeanLong || areOften)) return null
  const isLong = areMany && isMeanLong && seconds >= limits.longBlocksSpanSeconds
  return { longest, mean, isLong, areRare: true, isHang }
}

/**
 * Share of the wait that major GCs do not cause: one long pause a second takes a small share of the
 * time, but causes most of the wait.
 * @param {Signals} signals
 */
const outsideMajors = ({ expectedWaitSeconds: all, expectedWaitOutsideMajorsSeconds: outside }) =>
  all > 0 ? (outside ?? all) / all : 1

/**
 * @param {Limits} limits
 * @param {number} busy share of time
 * @param {number} blocked ratio of frames
 * @param {number} longest seconds
 * @param {number} mean seconds
 */
function isLate (limits, busy, blocked, longest, mean) {
  const areFrequent = mean >= limits.frequentWaitSeconds && busy < limits.frequentBusyRatio
  return blocked >= limits.blockedFramesRatio &&
    (areFrequent || longest >= limits.longestDelaySeconds) &&
    mean >= limits.suspectedExpectedWaitSeconds
}

/**
 * True if the verdict is a guess: V8 or overload may delay the loop, or the CPU time of the thread
 * is unknown, and the thread waited for a CPU during most of its busy time.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isGuess = (signals, limits) =>
  mayBeMarking(signals, limits) || mayBeOverload(signals, limits) ||
  mayBeThrottling(signals, limits) ||
  (signals.threadCpuRatio === null &&
    (signals.runQueueWaitRatio ?? 0) >= limits.contendedRatio * signals.eventLoopUtilizationRatio)

/**
 * True if V8 probably marks the heap in steps that nothing reports: a nearly full one, or one whose
 * major GCs take much of the CPU time.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const mayBeMarking = (signals, limits) => {
  const { ordinaryMarkingRatio, externalMarkingRatio } = signals
  const isNearlyFull = (signals.liveHeapShareRatio ?? 0) >= limits.markedShareRatio &&
    (signals.recentMajorsPerCpuSecond ?? 0) >= limits.markedMajorsPerCpuSecond
  const marking = (ordinaryMarkingRatio ?? 0) + (externalMarkingRatio ?? 0)
  return isNearlyFull || marking >= limits.markingRatio
}

/**
 * True if overload may cause the delays: the loop has no idle time, and GC takes much of its time
 * or events are short. Turns are then long without a slow call.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const mayBeOverload = (signals, limits) =>
  signals.eventLoopUtilizationRatio >= limits.frequentBusyRatio &&
  ((signals.gcPauseRatio ?? 0) >= limits.overloadGcRatio || areEventsShort(signals, limits))

/**
 * True if the CPU quota may cause the delays of a thread that computes: it stops the process in
 * bursts of many events, and no event is known to be long.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const mayBeThrottling = (signals, limits) =>
  (signals.cpuThrottledRatio ?? 0) >= limits.outOfCpuRatio && !waitsInside(signals, limits) &&
  (signals.cpuPerEventSeconds === null || areEventsShort(signals, limits))

/**
 * True if events of the mean length cannot cause the wait of a finding. A few long ones among them
 * are possible.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const areEventsShort = ({ cpuPerEventSeconds: mean }, { longEventSeconds }) =>
  mean !== null && mean < longEventSeconds

/**
 * Lack that leaves the loop no idle time. cpu: its CPU quota allows less CPU than its work needs;
 * threads: one thread is not enough for many short events.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {'cpu' | 'threads' | null} null: no lack is known
 */
function findLack (signals, limits) {
  if (signals.eventLoopUtilizationRatio < limits.frequentBusyRatio) return null
  if ((signals.cpuThrottledRatio ?? 0) >= limits.outOfCpuRatio) return 'cpu'
  return areEventsShort(signals, limits) ? 'threads' : null
}

/**
 * True if the loop sleeps inside calls for most of its busy time. Time spent waiting for a CPU is
 * excluded.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function waitsInside ({ threadCpuRatio, eventLoopUtilizationRatio: busy, cpuTimeRatio }, limits) {
  const ownBusy = busy - (1 - (cpuTimeRatio ?? 1))
  return threadCpuRatio !== null && threadCpuRatio < limits.waitingCpuShareRatio * ownBusy
}

/** @param {{ cpuThrottledRatio: number | null }} signals */
const throttledText = ({ cpuThrottledRatio }) =>
  `the CPU limit throttled the process in ${formatRatio(cpuThrottledRatio ?? 0)} of its periods`

module.exports = {
  areEventsShort,
  findFrequent,
  findLack,
  findRare,
  isGuess,
  mayBeMarking,
  ruleOut,
  throttledText,
  waitsInside
}
