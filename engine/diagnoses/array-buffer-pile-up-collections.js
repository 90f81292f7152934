'use strict'

// Full collections for Buffers, and the Buffers that wait for them.

const { leastPromotedBytes } = require('./semi-space-starvation-causes')

/** @typedef {import('./array-buffer-pile-up').Limits} Limits */
/** @typedef {import('./array-buffer-pile-up').Signals} Signals */

/**
 * Growth of external memory that is assumed to trigger a full collection. V8's own limit depends on
 * its version, and is at least 32 MiB.
 */
const COLLECTED_FROM_BYTES = 48 * 2 ** 20

/** Signals of the full collections, as V8 reports them: rate, share of pauses, marking. */
const SIGNALS_OF = Object.freeze(/** @type {const} */ ({
  reported: ['externalMajorsPerSecond', 'externalMajorPauseRatio', 'externalMarkingRatio'],
  ordinary: ['ordinaryMajorsPerSecond', 'ordinaryMajorPauseRatio', 'ordinaryMarkingRatio']
}))

/**
 * Full collections for Buffers.
 * @typedef {Record<'majors' | 'pauses' | 'cpuRatio' | 'marking', number> &
 *   { areReported: boolean }} Collections majors: a second; the others are shares of time; marking:
 *   of CPU time
 *
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Collections} areReported: false if V8 reports them as ordinary
 */
function findCollections (signals, limits) {
  const { ordinaryMajorsPerSecond: ordinary, promotedPerMajorBytes: promoted } = signals
  const areOrdinary = ordinary !== null && ordinary > signals.externalMajorsPerSecond &&
    ((promoted ?? Infinity) < leastPromotedBytes(signals, limits) ||
      signals.externalWaitingBytes >= outweighingBytes(signals, limits)) &&
    (signals.liveHeapShareRatio ?? 1) < limits.liveHeapShareRatio &&
    areCostly(signals, limits, ordinary, signals.ordinaryMarkingRatio ?? 0)
  return areOrdinary
    ? {
        areReported: false,
        majors: ordinary,
        pauses: signals.ordinaryMajorPauseRatio ?? 0,
        cpuRatio: signals.ordinaryMajorCpuRatio ?? 0,
        marking: signals.ordinaryMarkingRatio ?? 0
      }
    : {
        areReported: true,
        majors: signals.externalMajorsPerSecond,
        pauses: signals.externalMajorPauseRatio,
        cpuRatio: signals.externalMajorCpuRatio,
        marking: signals.externalMarkingRatio ?? 0
      }
}

/**
 * Do full collections take much CPU time, while Buffers wait for them?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} majors a second
 * @param {number} marking share of CPU time
 */
const areCostly = (signals, limits, majors, marking) =>
  marking >= limits.suspectedMarkingRatio &&
  majors >= limits.markedMajorsPerSecond &&
  majors * (signals.liveHeapBytes ?? 0) >= limits.markedBytesPerSecond &&
  signals.externalWaitingBytes >= leastWaiting(signals, limits)

/**
 * Least waiting Buffers that are much more than what came into the old generation, whatever
 * scavenges may promote: the promoted bytes are an upper bound.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const outweighingBytes = ({ oldGenerationSwingBytes: swing }, limits) =>
  Math.max(limits.fewWaitingBytes, limits.outweighsRatio * (swing ?? Infinity))

/**
 * Least Buffers that wait for costly collections.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const leastWaiting = (signals, limits) =>
  Math.min(limits.markedWaitingBytes, outweighingBytes(signals, limits))

/**
 * Bytes of dead Buffers at one time: the range in which external memory rises and falls. If full
 * collections run for Buffers, the result is at least the amount that V8 accepts before such a
 * collection. In an app that uses one large Buffer after the other, each reading includes one dead
 * and one live Buffer, so the range is small. V8 counts the whole size of a WebAssembly memory
 * again each time the memory grows, so full collections during such growth do not prove dead
 * Buffers.
 * @param {Pick<Signals, 'externalWaitingBytes' | 'externalPeakBytes' | 'externalMajorsPerSecond' |
 *   'externalMajorsPerCpuSecond' | 'externalTrend' | 'webassemblyGrowthBytesPerSecond'>} signals
 * @param {Limits} limits
 * @param {number} flatMajors least rate of these collections where external memory does not grow,
 *   per CPU-second
 */
function waitingOf (signals, limits, flatMajors) {
  const { externalWaitingBytes, externalPeakBytes, externalTrend } = signals
  const keptPerSecond = (externalTrend?.slope ?? 0) * (externalTrend?.fit ?? 0)
  const isFlat = externalTrend !== null && keptPerSecond <= 0
  const least = isFlat ? flatMajors : limits.majorsPerCpuSecond
  const areForBuffers =
    signals.externalMajorsPerCpuSecond >= least &&
    signals.externalMajorsPerSecond > keptPerSecond / limits.collectedFromBytes &&
    (signals.webassemblyGrowthBytesPerSecond ?? 0) < limits.webassemblyGrowthBytesPerSecond
  return Math.max(
    externalWaitingBytes, areForBuffers ? Math.min(externalPeakBytes, COLLECTED_FROM_BYTES) : 0
  )
}

module.exports = { SIGNALS_OF, areCostly, findCollections, leastWaiting, waitingOf }
