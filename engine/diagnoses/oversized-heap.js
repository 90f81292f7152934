'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatBytes, formatNumber, formatRatio, formatSeconds } = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { comfortableHeapMib } = require('../v8/fitting-sizes')
const { newSpaceBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
/** A semi-space that is enough for most request loads. */
const ENOUGH_SEMI_SPACE = 16 * MIB
/** Room above the live heap that keeps majors cheap. */
const COMFORTABLE_SHARE = 0.5
/** A heap of twice what lives is in proportion. */
const LIVE_FACTOR = 2

module.exports = defineDiagnosis({
  id: 'oversized-heap',
  title: 'The heap is far larger than what lives in it',
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
    // Every app is larger than what lives while it starts.
    windowSeconds: 25,
    // Held beyond twice what lives, and this share of RSS: more than V8's own largest new space of
    // 128 MiB, which is its choice.
    wasteBytes: 144 * MIB,
    wasteShareRatio: 0.45,
    // Where the app rests, another diagnosis speaks. One that waits for a CPU does not rest: it
    // counts in CPU-seconds.
    scavengesPerCpuSecond: 0.05
  },
  explains: [],
  runbook: 'MemwatchOversizedHeap',

  judge (signals, limits) {
    const { heapResidentBytes: resident, liveHeapAtMostBytes: live, rssBytes } = signals
    const waste = wasteOf(signals)
    if (waste < limits.wasteBytes || waste / rssBytes < limits.wasteShareRatio) {
      return {
        state: 'ok',
        summary: `the heap holds ${formatBytes(resident)} for ${formatBytes(live)} that live: ` +
          'in proportion'
      }
    }
    if (signals.gcWindowSeconds < limits.windowSeconds) {
      return {
        state: 'unknown',
        summary: `the heap holds ${formatBytes(resident)}, but was watched for ` +
          `${formatSeconds(signals.gcWindowSeconds)} only`
      }
    }
    if (signals.scavengesPerCpuSecond < limits.scavengesPerCpuSecond) {
      return { state: 'ok', summary: 'the app rests: what the heap keeps then is no working size' }
    }
    const pause = signals.majorPauseSeconds ?? 0
    return {
      state: 'confirmed',
      summary: `The heap holds ${formatBytes(resident)} most of the time, while ` +
        `${formatBytes(live)} live at most.`,
      finding: {
        heapResidentBytes: resident,
        liveBytes: live,
        semiSpaceBytes: signals.semiSpaceCapacityBytes,
        rssBytes
      },
      evidence: [
        evidence(
          'heapResidentBytes',
          resident,
          LIVE_FACTOR * live + limits.wasteBytes,
          (value, limit) =>
            `V8 holds ${value} most of the time; twice what lives and ` +
              `${formatBytes(limits.wasteBytes)} would be ${limit}.`
        ),
        evidence('liveHeapAtMostBytes', live, resident, value =>
          signals.ordinaryMajorsSeen
            ? `No major GC left more than ${value}.`
            : `No major GC was needed yet; with their garbage the old spaces hold ${value}.`
        ),
        evidence(
          'ordinaryMajorsSeen',
          signals.ordinaryMajorsSeen ?? 0,
          0,
          value =>
            `${value} majors in ten ` +
              `minutes${pause > 0 ? `, ${formatSeconds(pause)} each` : ''}: what waits for them ` +
                'is garbage.'
        ),
        evidence(
          'semiSpaceCapacityBytes',
          signals.semiSpaceCapacityBytes,
          ENOUGH_SEMI_SPACE,
          value => `The new space takes up to two halves of ${value}.`
        ),
        evidence(
          'rssBytes',
          rssBytes,
          waste / limits.wasteShareRatio,
          value => `RSS is ${value}; ${formatRatio(waste / rssBytes)} of it is waste.`
        )
      ],
      impact: `${formatBytes(waste)} of memory, ${formatRatio(waste / rssBytes)} of RSS, hold ` +
        'garbage that waits for a GC.'
    }
  },

  fix ({ heapResidentBytes, liveBytes: live, semiSpaceBytes, rssBytes }, target) {
    const megabytes = comfortableHeapMib(live, COMFORTABLE_SHARE)
    const semiIsLarge = semiSpaceBytes > ENOUGH_SEMI_SPACE
    const young = newSpaceBytes(Math.min(semiSpaceBytes, ENOUGH_SEMI_SPACE))
    // Measured: the old space then settles at about twice what lives.
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
        risk: 'GCs come earlier: more of them, each cheaper. Room for ' +
          `${formatNumber((megabytes * MIB) / Math.max(1, live))} times what lives now; a load ` +
            'that needs more would end with "heap out of memory".'
      }
    ]
  }
})

/** @param {{ heapResidentBytes: number, liveHeapAtMostBytes: number }} signals */
const wasteOf = ({ heapResidentBytes, liveHeapAtMostBytes }) =>
  Math.max(0, heapResidentBytes - LIVE_FACTOR * liveHeapAtMostBytes)
