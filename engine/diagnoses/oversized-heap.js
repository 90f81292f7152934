'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatBytes, formatNumber, formatRatio, formatSeconds } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { comfortableHeapMib } = require('../v8/fitting-sizes')
const { newSpaceBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
/** Recommended semi-space for most request loads. */
const ENOUGH_SEMI_SPACE = 16 * MIB
/**
 * Share of the recommended heap limit that the live heap fills. The rest is headroom that keeps
 * major GCs cheap.
 */
const COMFORTABLE_SHARE = 0.5
/** A heap of this multiple of the live heap is in proportion. */
const LIVE_FACTOR = 2

module.exports = defineDiagnosis({
  id: 'oversized-heap',
  title: 'The heap is far larger than its live objects',
  severity: 'info',
  scope: 'isolate',
  requires: [
    'heapResidentBytes',
    'liveHeapAtMostBytes',
    'rssBytes',
    'scavengesPerCpuSecond',
    'semiSpaceCapacityBytes',
    'gcWindowSeconds'
  ],
  uses: [
    'ordinaryMajorsSeen',
    'majorPauseSeconds',
    'heapSizeLimitBytes',
    'semiSpaceMaxBytes',
    'lastMinuteUtilizationRatio'
  ],
  limits: {
    // Length of the start phase, in which every heap exceeds twice its live heap.
    windowSeconds: 25,
    // Limits of the bytes beyond twice the live heap, and of their share of RSS. V8's own largest
    // new space has 128 MiB, less than the first limit.
    wasteBytes: 144 * MIB,
    wasteShareRatio: 0.45,
    // Rate of scavenges below which the app is at rest; idle-heap-not-returned judges such apps. An
    // app that waits for a CPU is not at rest, so the rate is per CPU-second.
    scavengesPerCpuSecond: 0.05
  },
  explains: [],
  runbook: 'MemwatchOversizedHeap',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits) {
    const waste = wasteOf(signals)
    const dismissed = ruleOut(signals, limits, waste)
    if (dismissed) return dismissed
    const { heapResidentBytes, liveHeapAtMostBytes: live, rssBytes } = signals
    return {
      state: 'confirmed',
      summary: `The heap holds ${formatBytes(heapResidentBytes)} most of the time, for at most ` +
        `${formatBytes(live)} of live objects.`,
      finding: {
        heapResidentBytes,
        liveBytes: live,
        semiSpaceBytes: signals.semiSpaceCapacityBytes,
        semiSpaceMaxBytes: signals.semiSpaceMaxBytes ?? signals.semiSpaceCapacityBytes,
        rssBytes
      },
      evidence: showEvidence(signals, limits, waste),
      impact: `${formatBytes(waste)} of memory, ${formatRatio(waste / rssBytes)} of RSS, hold ` +
        'garbage that waits for a GC.'
    }
  },

  fix ({ heapResidentBytes, liveBytes: live, rssBytes, ...semi }, target) {
    const { semiSpaceBytes, semiSpaceMaxBytes } = semi
    const megabytes = comfortableHeapMib(live, COMFORTABLE_SHARE)
    // Larger ones would leave V8 too little of the limit: decision 98. With 64 MiB for both, an API
    // used 16.7 s of CPU time in 14 s instead of 0.8, and more memory than before.
    const semiIsLarge = semiSpaceMaxBytes > ENOUGH_SEMI_SPACE
    const young = newSpaceBytes(Math.min(semiSpaceBytes, ENOUGH_SEMI_SPACE))
    // In measurements the old space settles at about twice the live heap after the fix.
    const after = Math.min(heapResidentBytes, LIVE_FACTOR * live + young)
    const saved = heapResidentBytes - after
    return [
      {
        title: `Limit the heap to ${megabytes} ` +
          `MiB${semiIsLarge ? ' and the semi-spaces to 16 MiB' : ''}: saves about ` +
            `${formatBytes(saved)}`,
        change: nodeFlagChange(target, {
          '--max-old-space-size': megabytes,
          ...(semiIsLarge && { '--max-semi-space-size': ENOUGH_SEMI_SPACE / MIB })
        }),
        predicted: [prediction('rssBytes', rssBytes, rssBytes - saved)],
        risk: 'V8 runs more GCs, each cheaper. The heap has room for ' +
          `${formatNumber((megabytes * MIB) / Math.max(1, live))} times the present live ` +
          'objects. A load that needs more would end with "heap out of memory".'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'heapResidentBytes' | 'liveBytes' | 'semiSpaceBytes' | 'semiSpaceMaxBytes' |
 *   'rssBytes', number>} Finding
 */

/** @param {{ heapResidentBytes: number, liveHeapAtMostBytes: number }} signals */
const wasteOf = ({ heapResidentBytes, liveHeapAtMostBytes }) =>
  Math.max(0, heapResidentBytes - LIVE_FACTOR * liveHeapAtMostBytes)

/**
 * Is the heap in proportion, the app too young to judge, or the app at rest?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} waste bytes
 */
function ruleOut (signals, limits, waste) {
  const { heapResidentBytes, liveHeapAtMostBytes: live, rssBytes, gcWindowSeconds } = signals
  const holds = `the heap holds ${formatBytes(heapResidentBytes)}`
  if (waste < limits.wasteBytes || waste / rssBytes < limits.wasteShareRatio) {
    // The heap is its median of a minute, so a growing heap may be smaller than its live objects.
    return ok(heapResidentBytes < live
      ? `the heap holds less than the ${formatBytes(live)} that were live at most`
      : `${holds} for ${formatBytes(live)} of live objects: ` +
        (waste > 0 ? `a limit would free ${formatBytes(waste)} at most` : 'in proportion'))
  }
  if (gcWindowSeconds < limits.windowSeconds) {
    return unknown(`${holds}, but was watched only for ${formatSeconds(gcWindowSeconds)}`)
  }
  if (signals.scavengesPerCpuSecond >= limits.scavengesPerCpuSecond) return null
  return ok('the app is idle: the size of an idle heap is not its working size')
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} waste bytes
 */
function showEvidence (signals, limits, waste) {
  const { heapResidentBytes, liveHeapAtMostBytes: live, rssBytes } = signals
  const { semiSpaceCapacityBytes, ordinaryMajorsSeen: majors, majorPauseSeconds: pause } = signals
  const goodBytes = LIVE_FACTOR * live + limits.wasteBytes
  return [
    evidence('heapResidentBytes', heapResidentBytes, goodBytes, (value, limit) =>
      `V8 holds ${value} most of the time; the threshold is twice the live heap plus ` +
      `${formatBytes(limits.wasteBytes)}, which is ${limit}.`),
    evidence('liveHeapAtMostBytes', live, heapResidentBytes, value =>
      majors
        ? `After each major GC at most ${value} were in use.`
        : `No major GC was needed yet; with their garbage the old spaces hold ${value}.`),
    evidence('ordinaryMajorsSeen', majors ?? 0, 0, value =>
      `${value} major GCs in at most ten minutes` +
      `${pause ? `, ${formatSeconds(pause)} each` : ''}: the rest is garbage.`),
    evidence('semiSpaceCapacityBytes', semiSpaceCapacityBytes, ENOUGH_SEMI_SPACE, value =>
      `The new space takes up to two halves of ${value}.`),
    evidence('rssBytes', rssBytes, waste / limits.wasteShareRatio, value =>
      `RSS is ${value}; ${formatRatio(waste / rssBytes)} of it is waste.`)
  ]
}
