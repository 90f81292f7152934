'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { URGENCY_LIMITS, nameMemoryLimit } = require('./severity')
const { captureCommand } = require('../fixes/command')
const { FILLING_LIMITS } = require('./filling')
const { judgeHours, pickStronger } = require('./judge-hours')
const { LASTING_LIMITS } = require('./lasting-growth')
const { judgeMinutes } = require('./native-memory-leak-minutes')
const {
  PLACES, churns, findMajors, findPlace, namePlace, ruleOutFreed, showPlace, subjectOf
} = require('./native-memory-leak-evidence')

module.exports = defineDiagnosis({
  id: 'native-memory-leak',
  title: 'Memory outside the JS heap keeps growing and is not returned',
  severity: 'critical',
  scope: 'process',
  requires: ['outsideHeapBytes', 'outsideHeapReadings', 'majorsSeen', 'memoryRunwayBytes'],
  uses: [
    'outsideHeapTrend',
    'outsideHeapLineSeconds',
    'outsideHeapLatelyRatio',
    'outsideHeapStandsSeconds',
    'outsideHeapRoseSeconds',
    'outsideHeapStandLoadRatio',
    'forcedFreedBytes',
    'forcedFreedBytesPerSecond',
    'ownMajorsPerForcedRatio',
    'externalTrend',
    'arrayBuffersBytes',
    'arrayBuffersTrend',
    'webassemblyGrowthBytesPerSecond',
    'workersExternalTrend',
    'workersMajorsSeen',
    'silentWorkerHeapGrowthBytesPerSecond',
    'silentWorkerRunwayBytes',
    'addonMallocGrowthBytesPerSecond',
    'addonsSeen',
    'bufferChurnBytes',
    'containerLimitBytes',
    'containerProcesses',
    'allocatorAnswerDue',
    'allocatorAsked',
    'allocatorSlackTrend',
    'mappedNativeBytes',
    'nativeInUseTrend',
    'outsideHeapLastingTrend',
    'outsideHeapLoadShareRatio',
    'outsideHeapEarlierHighBytes',
    'lifeCpuSeconds',
    'memoryPeakRunwayBytes',
    'memoryLimitInSeconds'
  ],
  limits: {
    ...LASTING_LIMITS,
    readings: 7,
    // A major GC must come after half of the rise: until then garbage may still hold the memory
    // outside the heap.
    majors: 1,
    // V8 lets external memory grow by this size before it runs a major GC for it
    // (kExternalAllocationSoftLimit). Less may be garbage until one runs.
    garbageBytes: 64 * 2 ** 20,
    // Buffers that leak are still there. If fewer than this share of their growth are, a GC has
    // freed the rest.
    keptShareRatio: 0.5,
    // Growth of this size is worth a suspicion, however far the limit is: leaks of 0.6 MiB/s reach
    // it within a minute.
    riseBytes: 24 * 2 ** 20,
    // Least steadiness of growth that is straight and does not slow down: leaks measure 0.7–1.
    steadinessRatio: 0.6,
    // Below this steadiness the growth levels off.
    suspectedSteadinessRatio: 0.5,
    // Below this steadiness a suspicion is withdrawn.
    levelsOffRatio: 0.3,
    // A rise with this Mann–Kendall score that goes on is not noise.
    doubtScore: 2,
    // Growth of the last 20 s below this share of the trend is a pause. No time to the limit is
    // told then, and nothing is confirmed.
    pausesRatio: 0.3,
    // Memory outside the heap that fills this share of its room must stop growing, even if it
    // leaks, because the kernel reclaims pages and throttles the process.
    nearLimitRatio: 0.85,
    // Native memory waits for a GC if each full GC of memwatch frees this much of it, and the app
    // runs hardly more major GCs itself. Healthy apps measured at most 9 MB. Pictures of 1 MB, ten
    // a second, measured 19 to 32 MB.
    forcedFreedBytes: 16 * 2 ** 20,
    ownMajorsPerForcedRatio: 1.5,
    // Growth is attributed to one kind of memory if that kind makes up more than this share of the
    // growth.
    placeShareRatio: 0.5,
    // Memory that V8 counts is in Buffers if they make up this share of it.
    countedShareRatio: 0.8,
    ...FILLING_LIMITS,
    ...URGENCY_LIMITS,
    // If Buffers of this share of the rise come and go, freed memory that malloc retains may look
    // like a leak at first.
    churnShareRatio: 0.6,
    // The trend of the native memory in use must span this share of the trend of all memory outside
    // the heap.
    inUseSpanRatio: 0.5,
    churningRunwayShareRatio: 0.6
  },
  explains: ['allocator-fragmentation', 'container-limit-mismatch'],
  holds: 'buffers',
  runbook: 'MemwatchNativeMemoryLeak',

  /** @returns {Judgement} */
  judge: (signals, limits) =>
    pickStronger(judgeMinutes(signals, limits), judgeLong(signals, limits)),

  /** @param {Finding} finding */
  fix ({ place, hasAddons, growthBytesPerSecond }, target) {
    const { title, code: template } = PLACES[place]
    const isGarbage = place === 'waiting'
    const code = template.replaceAll('PID', String(target.pid))
      .replaceAll('ADDONS', hasAddons ? KEPT_ADDON_OBJECTS : '')
      .replaceAll('CAPTURE', () => captureCommand(target, 'heap_profile'))
    return [
      {
        title,
        change: { code },
        predicted: [
          prediction(
            isGarbage ? 'forcedFreedBytesPerSecond' : 'outsideHeapGrowthBytesPerSecond',
            growthBytesPerSecond, 0
          )
        ],
        risk: isGarbage
          ? 'Another allocator does not help. Code that still uses a released object fails.'
          : (OUTSIDE_MALLOC.has(place)
              ? ''
              : 'Another allocator may slow the growth, and does not end it. ') +
            'A restart gains about as much time as the growth took.'
      }
    ]
  }
})

/** Advice for a process with native addons. */
const KEPT_ADDON_OBJECTS = ' If these lines call a native addon, objects of the addon hold the ' +
  'memory. Limit the Map, array or cache that keeps them. If such an object has free() or close(), ' +
  'call it after the last use. If no line is named, remove native addons one by one.'

/** Places whose memory another allocator would not serve. @type {ReadonlySet<Place>} */
const OUTSIDE_MALLOC = new Set(['webassembly', 'silentWorkers', 'addonMalloc'])

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {import('./native-memory-leak-evidence').Place} Place */
/** @typedef {{ place: Place, hasAddons: boolean, growthBytesPerSecond: number }} Finding */
/** @typedef {import('./define-diagnosis').Judgement<Finding>} Judgement */

/**
 * Judges growth over hours and days.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null without enough data
 */
function judgeLong (signals, limits) {
  const { outsideHeapLastingTrend: trend, memoryPeakRunwayBytes: runway } = signals
  if (trend === null || runway === null) return null
  const limit = { peakRunway: runway, limitInSeconds: signals.memoryLimitInSeconds }
  const what = 'memory outside the heap'
  return judgeHours(trend, limit, 'outsideHeap', limits, what, (rise, growthBytesPerSecond) => {
    const freed = ruleOutFreed(signals, limits, rise)
    if (freed) return { ruledOut: freed.summary }
    // Freed memory that malloc retains levels off within days: memory that grows for longer is in
    // use.
    const mayBeFreed =
      churns(signals, limits, rise) && (trend.steadyDays ?? 0) < limits.certainDays
    const place = findPlace(signals, limits, rise, growthBytesPerSecond)
    const majors = findMajors(place, signals, limits)
    return {
      name: subjectOf(place),
      limitName: nameMemoryLimit(signals),
      fills: 'what fills',
      threat: 'at this rate they are gone',
      aftermath: ", and the kernel kills the process without a message in the app's log",
      finding: { place, hasAddons: signals.addonsSeen !== 0, growthBytesPerSecond },
      cause: namePlace(place, signals),
      isOpen: mayBeFreed || !majors.isCollected,
      evidence: listEvidence(
        evidence(majors.signal, majors.count, limits.majors, value =>
          majors.isCollected
            ? `${value} major GCs${majors.of} in the last minutes did not free it.`
            : `No major GC${majors.of} ran lately: the growth may be garbage.`),
        ...showPlace(place, signals, limits, growthBytesPerSecond),
        mayBeFreed &&
          evidence(
            'bufferChurnBytes', signals.bufferChurnBytes ?? 0, limits.churnShareRatio * rise,
            value => `Buffers of ${value} are allocated and freed: retained memory of malloc is ` +
              'not ruled out before two days.')
      )
    }
  })
}
