'use strict'

const { cpuTimeEvidence, evidence, listEvidence, sayCpuShare } = require('./evidence')
const { wastesCpuTime } = require('./semi-space-starvation-causes')
const { formatBytes, formatNumber, formatRatio } = require('../text/format')
const { chosenSizes, semiSpaceMax } = require('../v8/heap-sizing')

/** V8 10.2 of Node.js 18 sees no limit on cgroup v2; V8 11 of Node.js 20 does. */
const V8_OF_NODE_18 = /** @type {const} */ ([10, 2])
const V8_THAT_SEES_CGROUP2 = 11

/** @typedef {import('./semi-space-starvation').Limits} Limits */
/** @typedef {import('./semi-space-starvation').Signals} Signals */
/** @typedef {import('./semi-space-starvation-causes').Causes} Causes */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Hello} target
 * @param {Causes} causes
 */
function showEvidence (signals, limits, target, causes) {
  const { pretenures, outlive, promotesTooEarly, wallRatio, cpuRatio } = causes
  const { semiSpaceMaxBytes: most, semiSpaceCapacityBytes: now, scavengesPerSecond } = signals
  const { ordinaryMajorPauseRatio: majorRatio, ordinaryMajorsPerSecond: majors } = signals
  const allowed = semiSpaceMax(target, signals.heapSizeLimitBytes)
  const isChosenByV8 = allowed?.origin !== 'flag' && allowed?.origin !== 'resource-limits'
  const live = formatBytes(signals.liveHeapBytes ?? 0)
  const wastes = !causes.isLarge && wastesCpuTime(signals, limits, causes)
  const marks = wastes && causes.promotesGarbage
  const why = allowed?.because ?? ''
  return listEvidence(
    evidence('semiSpaceMaxBytes', most, limits.semiSpaceMaxBytes, (value, limit) => causes.isLarge
      ? `A semi-space may hold ${value}, and the objects in use fill it: ${why}.`
      : `A semi-space may hold at most ${value}, less than ${limit}: ${why}.`),
    evidence('semiSpaceCapacityBytes', now, most, value =>
      `The semi-space has ${value}${now < most ? '.' : ' and cannot grow further.'}`),
    evidence('scavengesPerSecond', scavengesPerSecond, limits.scavengesPerCpuSecond, value =>
      `${value} scavenges, ${formatRatio(signals.scavengePauseRatio)} of wall time.`),
    pretenures || outlive
      ? evidence('ordinaryMajorsPerSecond', majors, limits.ordinaryMajorsPerSecond, value =>
        `${value} ordinary major GCs, ${formatRatio(majorRatio)} of wall time; scavenges ` +
        `promoted at most ${formatBytes(signals.promotedPerMajorBytes ?? 0)} before each` +
        (outlive
          ? `. The live heap of ${live} may be data in use for a short time, which a larger ` +
            'semi-space would copy, too.'
          : ', and few Buffers waited for them.'))
      : evidence('ordinaryMajorPauseRatio', majorRatio, limits.ordinaryMajorRatio, (value, limit) =>
        `${formatNumber(majors)} ordinary major GCs a second, ${value} of wall time` +
        tellPromotion({ promotesTooEarly, marks, limit, live })),
    causes.isDirect && evidence(
      'oldSpaceSwingBytes', signals.oldSpaceSwingBytes ?? 0,
      limits.directRiseRatio * (signals.promotedPerMajorBytes ?? 0),
      (value, limit) => `The old space rose by up to ${value} between them (threshold ${limit}).`
    ),
    (wastes || causes.isDirect) && evidence(
      'ordinaryGcOfCpuRatio', signals.ordinaryGcOfCpuRatio ?? 0, limits.wastedCpuRatio,
      (value, limit) => `GC takes ${sayCpuShare(signals.ordinaryGcOfCpuRatio ?? 0)}, by its ` +
        `pauses, the number of major GCs and the live heap; the threshold is ${limit}.`
    ),
    evidence('gcPauseRatio', signals.gcPauseRatio ?? wallRatio, limits.pauseRatio, (value, limit) =>
      `GC pauses take ${value} of wall time. ${sayWorth(limits, causes, limit)}`),
    cpuTimeEvidence(
      signals,
      `${formatNumber(signals.scavengesPerCpuSecond)} scavenges, and ${formatRatio(cpuRatio)} in ` +
        'them and the major GCs they cause'
    ),
    isChosenByV8 && sinceUpgrade(target, most)
  )
}

/**
 * Says what major GCs show, as the end of a sentence about their time.
 * @param {object} of
 * @param {boolean} of.promotesTooEarly
 * @param {boolean} of.marks true if their marking shows it, and not their pauses
 * @param {string} of.limit share of time in pauses
 * @param {string} of.live live heap
 */
function tellPromotion ({ promotesTooEarly, marks, limit, live }) {
  if (promotesTooEarly) {
    return `; more than ${limit} while the live heap stays at ${live} means that V8 promotes ` +
      'short-lived objects.'
  }
  return marks
    ? `, while the live heap stays at ${live}: V8 promotes short-lived objects.`
    : `; ${limit} of CPU time would mean premature promotion.`
}

/**
 * @param {Limits} limits
 * @param {Causes} causes
 * @param {string} limit share of CPU time
 * @returns {string} sentence that says from which share of GC on a change is worthwhile
 */
function sayWorth (limits, { isLarge, pretenures }, limit) {
  if (pretenures) return 'V8 also marks between them and in other threads, which no pause shows.'
  if (isLarge) {
    const least = formatRatio(limits.largePauseRatio)
    return `A still larger new space may save much of them from ${least} of CPU time on.`
  }
  return 'A change is worthwhile if scavenges and the major GCs that they cause take ' +
    `${limit} of CPU time, or ${formatRatio(limits.wastedPauseRatio)} and, with the work of ` +
    `other threads, ${formatRatio(limits.wastedCpuRatio)} of the CPU time that the process uses.`
}

/**
 * Evidence of an upgrade that starves an app: Node 18 did not see a container's limit on cgroup v2,
 * and derived its sizes from the machine's memory. Later versions see it, and choose a smaller new
 * space.
 * @param {Hello} target
 * @param {number} most size of a semi-space
 */
function sinceUpgrade ({ v8, hostMemoryBytes: host, constrainedBytes: seen }, most) {
  if (seen === undefined || host === undefined) return null
  if (Number(v8.split('.')[0]) < V8_THAT_SEES_CGROUP2) return null
  const older = chosenSizes(...V8_OF_NODE_18, host).semiSpaceBytes
  return older > most && evidence('semiSpaceMaxBytes', most, older, (value, limit) =>
    'If the problem began with an upgrade: Node 18 did not see the limit on cgroup v2, used the ' +
    `machine's ${formatBytes(host)} and allowed semi-spaces of ${limit}. This Node sees ` +
    `${formatBytes(seen)} and allows ${value}.`)
}

module.exports = { showEvidence }
