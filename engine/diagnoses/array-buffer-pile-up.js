'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { NATIVE_BASE_BYTES } = require('../memory/parts')
const {
  cpuTimeEvidence, evidence, listEvidence, prediction, sayCpuShare, wallAndCpu
} = require('./evidence')
const {
  SIGNALS_OF, areCostly, findCollections, leastWaiting, waitingOf
} = require('./array-buffer-pile-up-collections')
const { limits: STARVATION } = require('./semi-space-starvation')
const { ROOM_LIMITS, hasRoom } = require('./severity')
const { formatBytes, formatNumber, formatRatio, formatSeconds } = require('../text/format')
const { flagsInForce } = require('../v8/flags')

/**
 * Measured share of the waiting memory that immediate release removed from RSS: see
 * docs/accuracy.md.
 */
const RELEASED_SHARE = 0.8
/** All releases of V8 from this major version on have ArrayBuffer.prototype.transfer. */
const V8_WITH_TRANSFER = 12
/**
 * Versions of V8 that free short-lived Buffers by mark-compacts: all of 13, and those of 14 before
 * `healedMinor`.
 */
const V8_WITH_REGRESSION = Object.freeze({ first: 13, last: 14, healedMinor: 6 })

module.exports = defineDiagnosis({
  id: 'array-buffer-pile-up',
  title: 'Buffers pile up until a late GC frees them',
  severity: 'warning',
  scope: 'isolate',
  requires: [
    'externalWaitingBytes',
    'externalPeakBytes',
    'externalFloorBytes',
    'externalMajorsPerSecond',
    'externalMajorPauseRatio',
    'externalMajorsPerCpuSecond',
    'externalMajorCpuRatio',
    'rssBytes',
    'gcWindowSeconds'
  ],
  uses: [
    'outsideHeapBytes',
    'gcPauseRatio',
    'containerLimitBytes',
    'containerShareBytes',
    'memoryRunwayBytes',
    'rssShareRatio',
    'ordinaryMajorsPerSecond',
    'ordinaryMajorPauseRatio',
    'ordinaryMajorCpuRatio',
    'promotedPerMajorBytes',
    'oldGenerationSwingBytes',
    'liveHeapBytes',
    'liveHeapShareRatio',
    'ordinaryMarkingRatio',
    'externalMarkingRatio',
    'webassemblyGrowthBytesPerSecond',
    'externalTrend',
    'arrayBuffersFloorBytes',
    'liveHeapAgeSeconds',
    'cpuTimeRatio',
    'cpuThrottledRatio'
  ],
  limits: {
    // Least garbage in Buffers at one time, and its least share of RSS.
    waitingBytes: 40 * 2 ** 20,
    waitingShareRatio: 0.2,
    // Without a major GC for this long, Buffers that stay allocated may be garbage.
    unseenSeconds: 30,
    // Least rate and cost of the full collections that run only for Buffers. The rate is per
    // CPU-second, because a thread that waits for a CPU drops fewer Buffers.
    majorsPerCpuSecond: 1,
    majorRatio: 0.003,
    // From this share of CPU time on, full collections are too expensive at any rate: a slow
    // machine runs fewer and longer collections. Apps that drop Buffers and have a lower rate of
    // major GCs measured at most 0.0035.
    costlyMajorRatio: 0.01,
    // Least rate of full collections for Buffers that shows unused Buffers where it is known that
    // external memory does not grow: each of them runs because it grew by `collectedFromBytes`.
    countedMajorsPerCpuSecond: 0.2,
    // Rate, cost or share of RSS that confirms the finding.
    certainMajorsPerCpuSecond: 2,
    certainMajorRatio: 0.02,
    certainShareRatio: 0.4,
    // Share of the process's CPU time in these collections that confirms the finding with fewer
    // waiting Buffers: V8 marks the live heap in each of them. Four servers marked 36 to 375 MiB
    // of heap a second, in 0.06 to 0.4 cores, a share of 0.81 to 1. With a pool of Buffers they
    // took 7 to 25 % of this CPU time. A fifth had a share of 0.44 to 0.49, and late frames. In 391
    // recordings no healthy app had half of the share.
    markingRatio: 0.4,
    // Two servers with 0.34 and 0.37 used 0.18 and 0.31 cores instead of 0.05 and 0.1.
    suspectedMarkingRatio: 0.3,
    markedBytesPerSecond: 32 * 2 ** 20,
    markedMajorsPerSecond: 0.2,
    markedWaitingBytes: 16 * 2 ** 20,
    // Fewer are enough if they are this multiple of what came into the old generation meanwhile. A
    // server with 10 MiB, 70 times as much, used 0.1 cores instead of 0.006.
    fewWaitingBytes: 4 * 2 ** 20,
    outweighsRatio: 4,
    // A third of a core.
    urgentMarkedBytesPerSecond: 256 * 2 ** 20,
    // With this share of throttled periods, requests wait for CPU time that marking uses.
    throttledRatio: STARVATION.throttledRatio,
    // V8 11.3 and 12.4 report such collections as ordinary. They are for Buffers if scavenges
    // promoted less than this before each of them, in bytes and as a share of the live heap, and
    // the live heap fills less than this share of its limit.
    promotedPerMajorBytes: STARVATION.promotedPerMajorBytes,
    growsLeastRatio: STARVATION.growsLeastRatio,
    liveHeapShareRatio: STARVATION.liveHeapShareRatio,
    // If WebAssembly memories grow by one page of 64 KiB a second or more, they may cause the full
    // collections.
    webassemblyGrowthBytesPerSecond: 64 * 2 ** 10,
    // Growth of external memory that triggers a full collection: the minimum over all versions of
    // V8. Full collections that growth of retained memory causes do not prove dead Buffers.
    collectedFromBytes: 32 * 2 ** 20,
    ...ROOM_LIMITS,
    windowSeconds: 15,
    // In its first seconds an app reads its files: the Buffers that it uses look like those that
    // wait, and the median of RSS is that of the time before.
    leastWindowSeconds: 5,
    // Share of the full collections for Buffers that remains if each Buffer is released at once.
    remainingMajorsShareRatio: 0.1,
    // Share of the pauses of these collections that remains when scavenges free young Buffers
    // again.
    scavengedPauseShareRatio: 0.5
  },
  explains: ['allocator-fragmentation'],
  runbook: 'MemwatchArrayBufferPileUp',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, target) {
    const { externalMajorsPerCpuSecond: perCpuSecond, rssBytes } = signals
    const collections = findCollections(signals, limits)
    const { majors, pauses, cpuRatio } = collections
    const waiting = waitingOf(signals, limits, limits.majorsPerCpuSecond)
    const share = waiting / rssBytes
    const marks = areCostly(signals, limits, majors, collections.marking)
    const collects =
      cpuRatio >=
      (perCpuSecond >= limits.majorsPerCpuSecond ? limits.majorRatio : limits.costlyMajorRatio)
    const waits = waiting >= limits.waitingBytes && share >= limits.waitingShareRatio
    if (collects && waits && signals.gcWindowSeconds < limits.leastWindowSeconds) {
      return unknown('Buffers were watched for less than ' +
        formatSeconds(limits.leastWindowSeconds))
    }
    if (!marks && (!collects || !waits)) {
      const unseen = describeUnseen(signals, limits)
      if (unseen) return unknown(unseen)
      const counted = waitingOf(signals, limits, limits.countedMajorsPerCpuSecond)
      return ok(`up to ${formatBytes(counted)} of unused Buffers wait between GCs, and V8 counts ` +
        `${formatNumber(majors)} major GCs a second for them ` +
        `(${wallAndCpu(signals, pauses, cpuRatio)})`)
    }
    const isCostly = cpuRatio >= limits.certainMajorRatio
    const isUrgent = marks
      ? majors * (signals.liveHeapBytes ?? 0) >= limits.urgentMarkedBytesPerSecond ||
        (signals.cpuThrottledRatio ?? 0) >= limits.throttledRatio
      : isCostly
    const isMuch =
      (marks && collections.marking >= limits.markingRatio) ||
      (collections.areReported && (isCostly || share >= limits.certainShareRatio ||
        perCpuSecond >= limits.certainMajorsPerCpuSecond))
    const ofLimit = signals.rssShareRatio === null
      ? ''
      : ` (RSS is at ${formatRatio(signals.rssShareRatio)} of the container limit)`
    // Least RSS after the fix, as heap, code and Node's own memory remain.
    const remainingBytes = rssBytes - (signals.outsideHeapBytes ?? 0) + NATIVE_BASE_BYTES
    return {
      state: isMuch && signals.gcWindowSeconds >= limits.windowSeconds
        ? 'confirmed'
        : 'suspected',
      severity: isUrgent || !hasRoom(signals, waiting, limits) ? 'warning' : 'info',
      summary: `Up to ${formatBytes(waiting)} of unused Buffers wait between GCs, and V8 runs ` +
        `${formatNumber(majors)} major GCs a second to free them` +
        `${marks ? `, in ${sayCpuShare(collections.marking)}` : ''}.`,
      finding: {
        areReported: collections.areReported,
        markingRatio: marks ? collections.marking : null,
        majorsPerSecond: majors,
        majorPauseRatio: pauses,
        waitingBytes: waiting,
        rssBytes,
        leastRssBytes: Math.min(rssBytes, remainingBytes)
      },
      evidence: showEvidence(signals, limits, target, { ...collections, waiting, marks }),
      impact: `RSS is up to ${formatBytes(waiting)} higher than the memory in use${ofLimit}, and ` +
        `GCs take ${formatRatio(pauses)} of the time` +
        `${marks ? ` and ${sayCpuShare(collections.marking)}` : ''}.`
    }
  },

  fix (
    {
      areReported, markingRatio: marking, majorsPerSecond: majors, majorPauseRatio: pauses,
      waitingBytes, rssBytes, leastRssBytes
    },
    target,
    limits
  ) {
    const [rate, ratio, marked] = SIGNALS_OF[areReported ? 'reported' : 'ordinary']
    const [v8Major] = target.v8.split('.').map(Number)
    const canTransfer = v8Major >= V8_WITH_TRANSFER
    const releasedBytes = RELEASED_SHARE * waitingBytes
    /** @type {import('./define-diagnosis').Fix[]} */
    const fixes = [
      {
        title: 'Release each Buffer after its last use',
        change: {
          code:
            (canTransfer
              ? 'After the last use of a large Buffer that owns its memory: ' +
                'buffer.buffer.transfer(0) frees it at once. Do so only if buffer.byteOffset === ' +
                '0 and buffer.byteLength === buffer.buffer.byteLength: a small Buffer (below ' +
                'half of Buffer.poolSize, from Buffer.from, allocUnsafe or concat) shares its ' +
                'slab with other Buffers, and a transfer of the slab breaks them. '
              : 'This Node has no ArrayBuffer.prototype.transfer (22 and later do): keep few ' +
                'large Buffers and reuse them (a pool of Buffer.allocUnsafeSlow). ') +
            'Do not join the chunks of a body with Buffer.concat: handle the chunks as a stream ' +
              '(pipeline, ' +
              'hash.update per chunk), or write them into one ' +
                'Buffer.allocUnsafeSlow(contentLength).'
        },
        predicted: [
          prediction(rate, majors, limits.remainingMajorsShareRatio * majors),
          prediction(ratio, pauses, limits.remainingMajorsShareRatio * pauses),
          ...(marking === null
            ? []
            : [prediction(marked, marking, limits.remainingMajorsShareRatio * marking)]),
          prediction('rssBytes', rssBytes, Math.max(leastRssBytes, rssBytes - releasedBytes))
        ],
        risk: canTransfer
          ? 'Code that still refers to a transferred Buffer sees an empty one.'
          : 'Code that still refers to a reused Buffer sees new content.'
      }
    ]
    // With a live heap of 267 MiB, which costs marking, the flag had no such effect: V8 ran 3.6
    // instead of 2.4 major GCs a second.
    const flag = marking === null ? regression(target) : null
    if (flag && !flagsInForce(target).has(flag.split('=')[0])) {
      fixes.push({
        title: `On Node ${target.node.split('.')[0]}: let scavenges free young Buffers again, ` +
          'or move to Node 26',
        // NODE_OPTIONS refuses these flags: they work on the command line only.
        change: { flag },
        predicted: [prediction(ratio, pauses, limits.scavengedPauseShareRatio * pauses)],
        risk: 'Later versions of Node.js may remove this V8 flag. NODE_OPTIONS does not accept ' +
          'it: put it on the command line. Buffers still wait for a GC.'
      })
    }
    return fixes
  }
})

/**
 * Buffers that stay allocated while no major GC runs may all be garbage.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {string | null} null if they are few, or a major GC ran lately
 */
function describeUnseen ({ arrayBuffersFloorBytes, rssBytes, liveHeapAgeSeconds: age }, limits) {
  const bytes = arrayBuffersFloorBytes ?? 0
  const isMuch = bytes >= limits.waitingBytes && bytes >= limits.waitingShareRatio * rssBytes
  if (!isMuch || (age !== null && age < limits.unseenSeconds)) return null
  return `${formatBytes(bytes)} of Buffers stay allocated, and only the next major GC shows how ` +
    'many of them are in use'
}

/**
 * Flag that makes scavenges free Buffers again. In V8 13.6 and 14.1, young Buffers trigger a
 * scavenge only above the limit of a full collection, so mark-compacts free short-lived Buffers:
 * nodejs/node#61967. V8 14.1 removed the flag of V8 13.6.
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @returns {string | null}
 */
function regression ({ v8 }) {
  const [major, minor] = v8.split('.').map(Number)
  if (major === V8_WITH_REGRESSION.first) return '--scavenger-max-new-space-capacity-mb=8'
  return major === V8_WITH_REGRESSION.last && minor < V8_WITH_REGRESSION.healedMinor
    ? '--external-memory-accounted-in-global-limit'
    : null
}

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'majorsPerSecond' | 'majorPauseRatio' | 'waitingBytes' | 'rssBytes' |
 *   'leastRssBytes', number> & { areReported: boolean, markingRatio: number | null }} Finding
 *   markingRatio: null if the collections are not confirmed by their share of CPU time
 */

/**
 * Upper bound of the bytes that came into the old generation between two major GCs.
 * @param {Signals} signals
 */
const mostReceivedBytes = ({ promotedPerMajorBytes, oldGenerationSwingBytes }) =>
  Math.min(promotedPerMajorBytes ?? Infinity, oldGenerationSwingBytes ?? Infinity)

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {import('./array-buffer-pile-up-collections').Collections &
 *   { waiting: number, marks: boolean }} found waiting: bytes
 */
function showEvidence (signals, limits, target, found) {
  const { areReported, majors, pauses, cpuRatio, marking, waiting, marks } = found
  const { rssBytes, externalFloorBytes: least, externalPeakBytes: most } = signals
  const [rate, ratio, marked] = SIGNALS_OF[areReported ? 'reported' : 'ordinary']
  const waitingLimit = marks ? leastWaiting(signals, limits) : limits.waitingBytes
  return listEvidence(
    evidence('externalWaitingBytes', waiting, waitingLimit, (value, limit) =>
      `About ${value} of external memory (threshold ${limit}) are allocated and freed again and ` +
      'again: Buffers are unused long before a GC frees them. External memory was between ' +
      `${formatBytes(least)} and ${formatBytes(most)}.`),
    evidence(rate, majors, limits.majorsPerCpuSecond, (value, limit) => areReported
      ? `${value} major GCs because of external memory; the threshold is ${limit} of CPU time.`
      : `${value} major GCs. V8 does not say why, but at most ` +
        `${formatBytes(mostReceivedBytes(signals))} came into the old generation before each, ` +
        `and the live heap fills ${formatRatio(signals.liveHeapShareRatio ?? 0)} of its limit: ` +
        'Buffers are the cause.'),
    evidence(ratio, pauses, limits.majorRatio, value =>
      `They take ${value} of wall time, although they free little on the heap.`),
    marks && evidence(marked, marking, limits.markingRatio, (value, limit) =>
      `They take about ${value} of CPU time, by their number and the live ` +
      `heap that they mark, most of it in other threads; the threshold is ${limit}.`),
    areReported && cpuTimeEvidence(
      signals,
      `${formatNumber(signals.externalMajorsPerCpuSecond)} such GCs, which take ` +
        formatRatio(cpuRatio)
    ),
    evidence('rssBytes', rssBytes, waiting / limits.waitingShareRatio, value =>
      `RSS is ${value}: ${formatRatio(Math.min(1, waiting / rssBytes))} of it are unused Buffers.`),
    regression(target) !== null &&
      evidence('ordinaryMajorsPerSecond', signals.ordinaryMajorsPerSecond ?? 0, 0, () =>
        `Node ${target.node} (V8 ${target.v8}) frees short-lived Buffers by major GCs; other ` +
        'versions free them by scavenges.')
  )
}
