'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { cpuTimeEvidence, evidence, prediction, wallAndCpu } = require('./evidence')
const {
  formatBytes,
  formatMilliseconds,
  formatNumber,
  formatRatio,
  formatSeconds
} = require('../text/format')
const { nodeFlagChange } = require('../fixes/node-flag')
const { semiSpaceMax, youngGenerationBytes } = require('../v8/heap-sizing')

const MIB = 2 ** 20
/** A semi-space that is enough for most request loads. */
const ENOUGH_SEMI_SPACE = 16 * MIB
/**
 * The live heap should fill so much of the old generation at most: measured, 80 % of the limit
 * takes 20 % of the time.
 */
const COMFORTABLE_SHARE = 0.65
/**
 * Of the container, this much may be used by what memwatch can add up; the rest is page cache,
 * stacks and surprise.
 */
const CONTAINER_SHARE = 0.92
/** Heap limits are advised in steps of this. */
const STEP_MIB = 32
/** A limit that is raised by less buys too little. */
const WORTH_GROWTH = 1.15
/** Near the limit V8 keeps at least this share of it to work in. */
const LEAST_ROOM_SHARE = 0.02

module.exports = defineDiagnosis({
  id: 'heap-limit-thrash',
  title: 'The live heap meets its limit: V8 collects all the time, or will within a minute',
  severity: 'critical',
  scope: 'isolate',
  requires: [
    'heapSizeLimitBytes',
    'liveHeapBytes',
    'liveHeapShareRatio',
    'recentGcPauseRatio',
    'recentMajorsPerSecond',
    'recentGcCpuRatio',
    'recentMajorsPerCpuSecond',
    'recentMajorCpuRatio'
  ],
  uses: [
    'heapLimitSecondsLeft',
    'majorPauseSeconds',
    'liveHeapTrend',
    'besideHeapBytes',
    'containerLimitBytes',
    'semiSpaceMaxBytes',
    'cpuTimeRatio',
    'cpuThrottledRatio',
    'containerShareBytes',
    'containerProcesses'
  ],
  limits: {
    // Above this share of the limit V8 has no room to let garbage wait.
    liveHeapShareRatio: 0.75,
    // Share of the CPU time that the thread had, as a pause of a throttled thread lasts several
    // times longer: 0.2 at 85 % of the limit, 0.5 and more from 90 % on.
    pauseRatio: 0.18,
    suspectedPauseRatio: 0.06,
    // So near the limit a major a second marks the whole heap again and again, on other threads for
    // the most part: less of a pause is enough. A large, quiet heap at 91 % of its limit ran one in
    // a minute.
    brinkShareRatio: 0.87,
    brinkMajorsPerCpuSecond: 0.8,
    brinkPauseRatio: 0.07,
    // Majors that come for want of room, in a CPU-second …
    majorsPerCpuSecond: 0.3,
    // … or what they take of CPU time, as a slow machine runs fewer and longer ones: thrashing apps
    // measured 0.1–0.19.
    majorRatio: 0.05,
    // What fills so much of its limit, and the rest of it within a minute, leaves nobody the time
    // to see more of it. Caches fill as fast, and stop: more than a suspicion it is not.
    fillsShareRatio: 0.6,
    fillsSeconds: 60
  },
  explains: ['semi-space-starvation', 'event-loop-blocked'],
  runbook: 'MemwatchHeapLimitThrash',

  judge (signals, limits, target) {
    const {
      liveHeapShareRatio: share,
      recentGcPauseRatio: pauses,
      recentMajorsPerSecond: majors,
      recentGcCpuRatio: cpuRatio
    } = signals
    const takes = wallAndCpu(signals, pauses, cpuRatio)
    const comeForRoom =
      signals.recentMajorsPerCpuSecond >= limits.majorsPerCpuSecond ||
      signals.recentMajorCpuRatio >= limits.majorRatio
    const left = signals.heapLimitSecondsLeft
    const fills = left !== null && share >= limits.fillsShareRatio && left <= limits.fillsSeconds
    const isRoomy = share < limits.liveHeapShareRatio
    const isCalm = cpuRatio < limits.suspectedPauseRatio || !comeForRoom
    if (isRoomy && !fills) {
      return {
        state: 'ok',
        summary: `the live heap fills ${formatRatio(share)} of its limit: there is room`
      }
    }
    if (isCalm && !fills) {
      return {
        state: 'ok',
        summary: `the live heap fills ${formatRatio(share)} of its limit, and GC takes ${takes} ` +
          'only'
      }
    }
    const growth = signals.liveHeapTrend?.slope ?? 0
    const needed =
      share >= limits.brinkShareRatio &&
      signals.recentMajorsPerCpuSecond >= limits.brinkMajorsPerCpuSecond
        ? limits.brinkPauseRatio
        : limits.pauseRatio
    const between = majors > 0 ? 1 / majors : Infinity
    return {
      state: cpuRatio >= needed && !isRoomy && !isCalm ? 'confirmed' : 'suspected',
      // On the brink the process lives for seconds; farther from it GC costs time.
      severity:
        fills || cpuRatio >= needed || share >= limits.brinkShareRatio ? 'critical' : 'warning',
      summary: `The live heap fills ${formatRatio(share)} of its limit of ` +
        `${formatBytes(signals.heapSizeLimitBytes)}, and ` +
          `${fills
            ? 'at its rate the rest in about ' +
            `${formatSeconds(left)}`
              : `GC takes ${takes}`}.`,
      finding: {
        fills,
        liveBytes: signals.liveHeapBytes,
        heapLimitBytes: signals.heapSizeLimitBytes,
        gcPauseRatio: pauses,
        semiSpaceBytes:
          signals.semiSpaceMaxBytes ??
          semiSpaceMax(target, signals.heapSizeLimitBytes)?.bytes ??
          ENOUGH_SEMI_SPACE,
        besideBytes: signals.besideHeapBytes ?? 0,
        containerLimitBytes: signals.containerLimitBytes,
        shareBytes: signals.containerShareBytes ?? signals.containerLimitBytes,
        processes: signals.containerProcesses ?? 1
      },
      evidence: [
        evidence(
          'liveHeapShareRatio',
          share,
          limits.liveHeapShareRatio,
          (value, limit) =>
            `After a major GC ${formatBytes(signals.liveHeapBytes)} are left: ${value} of the ` +
              `limit; above ${limit} there is little room for garbage to wait.`
        ),
        ...(fills
          ? [
              evidence(
                'heapLimitSecondsLeft',
                left,
                limits.fillsSeconds,
                value =>
                  `It fell at none of the last major GCs: full in about ${value}, if it goes on.`
              )
            ]
          : []),
        evidence(
          'recentGcPauseRatio',
          pauses,
          needed,
          (value, limit) => `GC pauses take ${value} of wall time; ${limit} of CPU time count.`
        ),
        evidence(
          'recentMajorsPerSecond',
          majors,
          limits.majorsPerCpuSecond,
          value =>
            `${value} major GCs: one every ${formatNumber(between)} s, each of them ` +
              `${formatMilliseconds(signals.majorPauseSeconds ?? 0)} long.`
        ),
        ...cpuTimeEvidence(
          signals,
          `${formatNumber(signals.recentMajorsPerCpuSecond)} major GCs, and ` +
            `${formatRatio(cpuRatio)} in GCs of all kinds`
        ),
        ...(growth > 0
          ? [
              evidence(
                'liveHeapGrowthBytesPerSecond',
                growth,
                0,
                value => `The live heap still grows, by ${value}: what fills it may be a leak.`
              )
            ]
          : [])
      ],
      impact:
        'Requests wait for GC, and at the limit the process ends with "JavaScript heap out of ' +
          'memory" (exit 134): at 95 % it lived some 10 seconds.'
    }
  },

  fix (finding, target) {
    const { fills, liveBytes: live, heapLimitBytes: limit, gcPauseRatio: pauses } = finding
    const { semiSpaceBytes, besideBytes, containerLimitBytes, shareBytes, processes } = finding
    const isShared = processes > 1
    // With room in the old space a small new space is the next to be short.
    /** @type {Record<string, number>} */
    const semiFlag =
      semiSpaceBytes < ENOUGH_SEMI_SPACE && target.threadId === 0
        ? { '--max-semi-space-size': ENOUGH_SEMI_SPACE / MIB }
        : {}
    const youngBytes = youngGenerationBytes(Math.max(semiSpaceBytes, ENOUGH_SEMI_SPACE))
    const wanted = Math.ceil(live / COMFORTABLE_SHARE / (STEP_MIB * MIB)) * STEP_MIB
    const fits =
      shareBytes === null
        ? Infinity
        : Math.floor((CONTAINER_SHARE * shareBytes - besideBytes - youngBytes) / MIB)
    const megabytes = Math.min(wanted, fits)
    const find = {
      title: 'Keep less on the heap',
      change: {
        code: `${formatBytes(live)} are referred to after each major GC. If that grew over time ` +
          'it is a leak: find what is kept (memwatch capture TARGET heap_profile). If it is ' +
            'data the app needs, hold it outside the heap (Buffers, a file, a database) or in ' +
              'fewer objects.'
      },
      predicted: [],
      risk: 'None, but it takes time.'
    }
    if (megabytes * MIB < WORTH_GROWTH * (limit - youngBytes)) {
      return [
        find,
        {
          title:
            containerLimitBytes === null
              ? 'Give the heap more room'
              : `Give the container more memory: this one of ${formatBytes(containerLimitBytes)}` +
                `${isShared ? `, which ${processes} processes share,` : ''} has no room for the ` +
                `${wanted} MiB of heap it needs`,
          change: nodeFlagChange(target, { '--max-old-space-size': wanted, ...semiFlag }),
          predicted: [
            prediction(
              'recentGcPauseRatio',
              pauses,
              predictedPauses(pauses, live, limit, wanted * MIB)
            )
          ],
          risk:
            `${isShared ? 'This process' : 'The container'} needs about ` +
            `${formatBytes(wanted * MIB + youngBytes + besideBytes)} then; with less the ` +
            'kernel kills it.'
        }
      ]
    }
    const raise = {
      title: `Raise the heap limit to ${megabytes} ` +
        `MiB${'--max-semi-space-size' in semiFlag ? ', and let semi-spaces grow' : ''}`,
      change:
        target.threadId > 0
          ? {
              code: `new Worker(file, { resourceLimits: { maxOldGenerationSizeMb: ${megabytes} ` +
                '} }): a worker\'s heap has the limits that it was started with.'
            }
          : nodeFlagChange(target, { '--max-old-space-size': megabytes, ...semiFlag }),
      predicted: [
        prediction(
          'recentGcPauseRatio',
          pauses,
          predictedPauses(pauses, live, limit, megabytes * MIB)
        )
      ],
      risk:
        `RSS may rise by up to ${formatBytes(Math.max(0, megabytes * MIB - limit))}` +
        `${describeFit(containerLimitBytes, shareBytes, processes)}. If the live heap grows it ` +
        'only takes longer.'
    }
    return fills ? [find, raise] : [raise, find]
  }
})

/**
 * @param {number | null} limitBytes of the container
 * @param {number | null} shareBytes of that which is this process's
 * @param {number} processes that share it
 */
function describeFit (limitBytes, shareBytes, processes) {
  if (limitBytes === null || shareBytes === null) return ''
  const limit = formatBytes(limitBytes)
  return processes > 1
    ? `; it was computed to fit ${formatBytes(shareBytes)}, its part of the ${limit} that ` +
      `${processes} processes share`
    : `; it was computed to fit the container's ${limit}`
}

/**
 * A major GC is needed each time the room above the live heap is used up: twice the room, half the
 * majors.
 * @param {number} pauses ratio
 * @param {number} live bytes
 * @param {number} limit bytes
 * @param {number} next bytes
 */
const predictedPauses = (pauses, live, limit, next) =>
  pauses * Math.min(1, Math.max(limit - live, LEAST_ROOM_SHARE * limit) / Math.max(1, next - live))
