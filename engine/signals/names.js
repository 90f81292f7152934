'use strict'

/**
 * Names of signals for readers of a report: of signals that may be missing, and of signals that a
 * fix is predicted to change. Several signals may share one name if they are the same fact to a
 * reader.
 */
const NAMES = Object.freeze({
  ...nameAll('growth of the live heap', ['liveHeapGrowthBytesPerSecond']),
  ...nameAll('the live heap', [
    'liveHeapAtMostBytes', 'liveHeapBytes', 'liveHeapHighestBytes', 'liveHeapReadings',
    'liveHeapShareRatio'
  ]),
  ...nameAll('filled share of the heap limit', ['liveHeapPeakShareRatio']),
  ...nameAll('used heap', ['heapUsedBytes', 'pointerSpaceShareRatio']),
  ...nameAll('memory that V8 holds for the heap', ['heapResidentBytes', 'restFreedBytes']),
  ...nameAll('heap limit', ['heapSizeLimitBytes']),
  ...nameAll('size of a semi-space', ['semiSpaceCapacityBytes', 'semiSpaceMaxBytes']),
  ...nameAll('share of time in GC', [
    'gcPauseRatio', 'recentGcCpuRatio', 'recentGcPauseRatio', 'recentMajorCpuRatio'
  ]),
  ...nameAll('share of CPU time in major GCs', ['externalMarkingRatio', 'ordinaryMarkingRatio']),
  ...nameAll('share of CPU time in GC', ['ordinaryGcOfCpuRatio']),
  ...nameAll('rate of major GCs', [
    'majorsSeen', 'ordinaryMajorsPerSecond', 'recentMajorsPerCpuSecond', 'recentMajorsPerSecond'
  ]),
  ...nameAll('share of time in major GCs', ['ordinaryMajorCpuRatio', 'ordinaryMajorPauseRatio']),
  ...nameAll('rate of scavenges', [
    'gcWindowSeconds', 'gcsLastMinute', 'recentGcs', 'scavengesPerCpuSecond', 'scavengesPerSecond'
  ]),
  ...nameAll('share of time in scavenges', ['scavengeCpuRatio', 'scavengePauseRatio']),
  ...nameAll('rate of major GCs for Buffers', [
    'externalMajorsPerCpuSecond', 'externalMajorsPerSecond'
  ]),
  ...nameAll('share of time in major GCs for Buffers', [
    'externalMajorCpuRatio', 'externalMajorPauseRatio'
  ]),
  ...nameAll('memory of Buffers', [
    'arrayBuffersFloorBytes', 'externalFloorBytes', 'externalPeakBytes', 'externalWaitingBytes'
  ]),
  ...nameAll('slabs of the Buffer pool', ['bufferPoolBytes', 'bufferSlabsFollowed']),
  ...nameAll('RSS', ['rssBytes']),
  ...nameAll('memory outside the heap', [
    'besideHeapBytes', 'nativeBytes', 'outsideHeapBytes', 'outsideHeapReadings'
  ]),
  ...nameAll('growth of memory outside the heap', ['outsideHeapGrowthBytesPerSecond']),
  ...nameAll('native memory that waits for a GC', [
    'forcedFreedBytes', 'forcedFreedBytesPerSecond', 'ownMajorsPerForcedRatio'
  ]),
  ...nameAll('memory that malloc holds', [
    'allocatorSlackBytes', 'allocatorSlackNowBytes', 'mappedNativeBytes'
  ]),
  ...nameAll('memory that is left', ['memoryRunwayBytes', 'rssRunwayBytes']),
  ...nameAll('mean wait for the event loop', [
    'expectedWaitCpuSeconds', 'expectedWaitSeconds', 'longBlocksWaitSeconds'
  ]),
  ...nameAll('delays of the event loop', [
    'blockedFramesCpuRatio', 'blockedFramesRatio', 'longestDelayCpuSeconds', 'longestDelaySeconds',
    'loopWindowSeconds'
  ]),
  ...nameAll('utilization of the event loop', [
    'eventLoopUtilizationRatio', 'lastMinuteUtilizationRatio'
  ]),
  ...nameAll('throttled periods of the CPU limit', ['cpuThrottledRatio', 'settledThrottledRatio']),
  ...nameAll('CPU time', ['cpuPerEventSeconds', 'lifeCpuSeconds']),
  ...nameAll('loaded addons', ['addonsSeen']),
  ...nameAll('V8 contexts', ['nativeContexts']),
  ...nameAll('growth of V8 contexts', ['nativeContextsPerSecond']),
  ...nameAll('growth of compiled code', ['codeSpaceRiseBytes']),
  ...nameAll('growth of child processes and workers', ['childrenPerSecond']),
  ...nameAll('growth of message ports', ['messagePortsPerSecond']),
  ...nameAll('growth of open file descriptors', ['fileDescriptorsPerSecond']),
  ...nameAll('growth of open sockets and pipes', ['socketsPerSecond']),
  ...nameAll('growth of threads', ['threadsPerSecond']),
  ...nameAll('growth of active timers', ['timersPerSecond']),
  ...nameAll('growth of file watchers', ['watchersPerSecond'])
})

/** @typedef {keyof typeof NAMES} NamedSignal */

/**
 * @template {import('./index').FigureName} Name
 * @param {string} words
 * @param {readonly Name[]} signals
 */
function nameAll (words, signals) {
  return /** @type {Record<Name, string>} */ (
    Object.fromEntries(signals.map(signal => [signal, words])))
}

/**
 * @param {string} signal
 * @returns {string} name in words; the signal's own name if the table has none
 */
const nameOf = signal => NAMES[/** @type {NamedSignal} */ (signal)] ?? signal

module.exports = { NAMES, nameOf }
