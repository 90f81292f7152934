'use strict'

const { evidence, listEvidence } = require('./evidence')
const { CONTAINER_LIMIT } = require('./severity')
const { formatBytes, formatNumber } = require('../text/format')

/** @typedef {import('./js-heap-leak').Limits} Limits */
/** @typedef {import('./js-heap-leak').Signals} Signals */

/** Advice for each resource that grows with the heap. */
const PATTERNS = Object.freeze({
  listeners:
    'The app adds listeners and does not remove them: search for .on() in code that runs per ' +
      'request, and use once(), removeListener or an AbortSignal. ',
  largeObjects:
    'Large objects grow: one array or Map whose table keeps doubling, or long strings. ',
  buffers: 'The retained objects hold Buffers, which are larger than the objects. '
})

/**
 * Least steadiness of Buffers that grow with the objects. One Buffer of 91 MiB, in which a socket
 * wrote all waiting data at once, had 0.
 */
const STEADY_RATIO = 0.5

/** Counts that may grow with the heap, with their names in a sentence. */
const COUNTS = Object.freeze(/** @type {const} */ ([
  ['nativeContexts', 'contexts'],
  ['sockets', 'sockets'],
  ['timers', 'timers']
]))

/**
 * @param {Signals} signals
 * @returns {keyof typeof PATTERNS | null} null if no resource grows with the heap
 */
function findGrowing (
  { largeObjectSpaceTrend, oldSpaceTrend, listenerWarnings, arrayBuffersTrend }
) {
  const old = oldSpaceTrend?.rise ?? 0
  if (listenerWarnings) return 'listeners'
  if ((largeObjectSpaceTrend?.rise ?? 0) > old) return 'largeObjects'
  const { rise: buffers = 0, steadinessRatio: steady } = arrayBuffersTrend ?? {}
  return buffers > old && (steady ?? 0) >= STEADY_RATIO ? 'buffers' : null
}

/**
 * Evidence of the heap spaces that grow, and of counts that grow with them.
 * @param {Signals} signals
 * @param {number} rise of the live heap, bytes
 * @param {Limits} limits
 */
function showGrownWith (signals, rise, limits) {
  const { oldSpaceTrend: old, largeObjectSpaceTrend: large, codeSpaceTrend: code } = signals
  const { listenerWarnings } = signals
  return listEvidence(
    old && evidence('oldSpaceRiseBytes', old.rise, rise, value =>
      `The old space grew by ${value}, the large object space by ` +
      `${formatBytes(large?.rise ?? 0)}, code by ${formatBytes(code?.rise ?? 0)}.`),
    COUNTS
      .map(([of, name]) => ({ of, name, trend: signals[`${of}Trend`] }))
      .map(({ trend, ...what }) => ({ ...what, count: trend?.rise ?? 0, score: trend?.score ?? 0 }))
      .filter(({ count, score }) => count >= limits.grownWith && score >= limits.score)
      .map(({ of, name, count }) =>
        evidence(`${of}Rise`, Math.round(count), 0, value =>
          `At the same time, ${name} grew by ${value}.`)),
    listenerWarnings && evidence('listenerWarnings', listenerWarnings, 0, value =>
      `Node warned of ${value} emitter(s) with too many listeners.`)
  )
}

/**
 * @param {{ containerProcesses: number | null }} signals
 * @param {number} runway room left to the limit, in bytes
 */
function showSharers ({ containerProcesses: processes }, runway) {
  if (processes === null || processes <= 1) return null
  return evidence('containerProcesses', processes, 1, value =>
    `${value} processes share the container: of its free memory, this one can use at most ` +
    `${formatBytes(runway)}.`)
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway room left to the limit, in bytes
 */
function nameLimit (signals, limits, runway) {
  // If less room remains than the heap's own limit leaves, the container's limit is reached first.
  return runway < limits.ownRunwayRatio * findOwnRunway(signals)
    ? CONTAINER_LIMIT
    : 'the heap size limit'
}

/**
 * @param {Signals} signals
 * @returns {number} bytes that the heap's own limit leaves
 */
function findOwnRunway ({ liveHeapBytes, liveHeapShareRatio }) {
  const live = liveHeapBytes ?? 0
  return live / (liveHeapShareRatio ?? 1) - live
}

/**
 * Finds how much of the heap's room other memory of the process took while the heap grew. In a
 * container that native memory fills, any growth of the heap would come close to the limit.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ slope: number, seconds: number }} line growth of the live heap
 * @param {number} runway room left to the limit, in bytes
 * @returns {number} bytes
 */
function findTakenBytes (signals, limits, { slope, seconds }, runway) {
  const ownRunway = findOwnRunway(signals)
  if (runway >= limits.ownRunwayRatio * ownRunway) return 0
  const others = Math.max(0, (signals.rssTrend?.slope ?? 0) - slope)
  return Math.min(others * seconds, ownRunway - runway)
}

/** @param {{ liveHeapForcedReadings: number | null }} signals */
const sayForced = ({ liveHeapForcedReadings: count }) =>
  count ? `; ${formatNumber(count)} of the last readings follow full GCs that memwatch ran` : ''

/**
 * Room for the growth of a thread. Other threads and processes fill the container of a worker at
 * the same time.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway room left to the thread's own limit, in bytes
 * @param {number} growth of the thread, bytes a second
 * @returns {number} bytes
 */
function shareRoom (signals, { leastPartRatio }, runway, growth) {
  const { threadRoomBytes: room, otherThreadsGrowthBytesPerSecond: others } = signals
  if (room === null || others === null) return runway
  const part = growth / (growth + others)
  return part < leastPartRatio ? runway : Math.min(runway, part * room)
}

module.exports = {
  PATTERNS, findGrowing, findTakenBytes, nameLimit, sayForced, shareRoom, showGrownWith, showSharers
}
