'use strict'

const { defineDiagnosis, ok } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const {
  comesForRoom, findNeededPauses, findSecondsToFill, marks, marksMuch, sayRest
} = require('./heap-limit-thrash-causes')
const { pausesEvidence, sayCost, sayPauses, showEvidence } = require('./heap-limit-thrash-evidence')
const { ENOUGH_SEMI_SPACE, giveRoom } = require('./heap-limit-thrash-fix')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')
const { USED_REST_SHARE } = require('../v8/fitting-sizes')
const { semiSpaceMax } = require('../v8/heap-sizing')

module.exports = defineDiagnosis({
  id: 'heap-limit-thrash',
  title: 'The heap limit leaves too little room for garbage',
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
    'liveHeapPeakShareRatio',
    'majorPauseSeconds',
    'liveHeapTrend',
    'besideHeapBytes',
    'containerLimitBytes',
    'semiSpaceMaxBytes',
    'semiSpaceCapacityBytes',
    'cpuTimeRatio',
    'cpuThrottledRatio',
    'ordinaryMarkingRatio',
    'ordinaryMajorsPerSecond',
    'containerShareBytes',
    'containerProcesses'
  ],
  limits: {
    // Share of the limit above which V8 has little room for garbage to accumulate. Two servers at
    // 72 and 74 % saved a quarter of their CPU time with more; at 60 to 68 %, two of four did.
    liveHeapShareRatio: 0.7,
    // Below this share semi-spaces that are too large are the cause, not the live heap.
    crowdedShareRatio: 0.75,
    // Share of the process's CPU time in major GCs that makes such a finding certain. A server that
    // used a core instead of 0.04 had 1.
    crowdedMarkingRatio: 0.5,
    // V8 runs a major GC at the latest at this share of the rest, and marks for it all the time if
    // a semi-space is larger: heap-limit-thrash-fix.js. With 110 MiB alive, V8 ran 11 to 14 major
    // GCs a second at limits of 150, 200 and 230 MiB with semi-spaces of 64 MiB, and at 150 MiB
    // with 32 MiB. It ran none at 256 MiB, or at 150 MiB with 16 MiB.
    usedRestRatio: USED_REST_SHARE,
    // Share of the thread's available CPU time that GC takes. Wall time would mislead, because a
    // pause of a throttled thread lasts several times longer. A live heap at 85 % of the limit
    // measured 0.2; from 90 % on, 0.5 and more.
    pauseRatio: 0.18,
    suspectedPauseRatio: 0.06,
    // Shares of the process's CPU time in major GCs that are enough instead, with the rate below:
    // V8 marks mostly on other threads. With 110 MiB alive at 78 % of a limit, pauses took 2 to 8 %
    // of the time, and a server 0.2 to 1.6 cores instead of 0.07.
    markingRatio: 0.3,
    suspectedMarkingRatio: 0.15,
    // From this share of the limit on, less marking is enough: at 0.86 to 0.9, servers with 0.2 to
    // 0.26 saved 46 to 95 % of their CPU time with a higher limit.
    fullShareRatio: 0.85,
    fullMarkingRatio: 0.2,
    // At this share of the limit V8 marks the whole heap every second, mostly on other threads, so
    // a smaller share of pauses is enough. The rate must be high as well: a large, quiet heap ran
    // one major GC a minute at 91 % of its limit. A quiet heap above this share is suspected, with
    // severity info.
    brinkShareRatio: 0.87,
    brinkMajorsPerCpuSecond: 0.8,
    brinkPauseRatio: 0.07,
    // Least rate of major GCs that run for lack of room, per CPU-second.
    majorsPerCpuSecond: 0.3,
    // Least rate over half a minute that is enough in such a heap: one GC of a large heap takes a
    // second of CPU time. A server with 0.24 a second used 0.22 cores instead of 0.01.
    fullMajorsPerSecond: 0.1,
    // Share of CPU time in these GCs that is enough instead of the rate, because a slow machine
    // runs fewer and longer GCs. Thrashing apps measured 0.1–0.19.
    majorRatio: 0.05,
    // A finding is kept down to `keepsRatio` times these limits, while the live heap fills
    // `keepsShareRatio` of its limit. Near its heap limit an app runs many GCs in each burst of
    // load, and few between bursts.
    keepsRatio: 0.5,
    keepsShareRatio: 0.65,
    // A heap that fills this share of its limit, and would fill the rest within a minute, leaves no
    // time for more evidence. The state stays `suspected`, because caches fill as fast and then
    // stop.
    fillsShareRatio: 0.6,
    fillsSeconds: 60,
    // r² of growth that may be a leak: five times the scatter around its line.
    growthFit: 0.85
  },
  explains: ['semi-space-starvation', 'event-loop-blocked', 'cpu-throttling'],
  holds: 'objects',
  runbook: 'MemwatchHeapLimitThrash',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, target) {
    const left = findSecondsToFill(signals, limits)
    const calm = ruleOut(signals, limits)
    // A heap that will be full within a minute is suspected before GC takes time.
    if (calm && left === null) return judgeQuiet(signals, limits, target, calm)
    const { liveHeapShareRatio: share, recentGcCpuRatio } = signals
    const needed = findNeededPauses(signals, limits)
    const crowded = sayRest(signals, limits)
    const course = left !== null ? 'fills' : crowded === '' ? 'thrashes' : 'marks'
    const isCostly = recentGcCpuRatio >= needed || marksMuch(signals, limits)
    const isOnBrink = recentGcCpuRatio >= needed || share >= limits.brinkShareRatio
    return {
      state: !calm && isCostly ? 'confirmed' : 'suspected',
      keeps: !calm,
      // At the limit the process has seconds to live; below it GC only costs time.
      severity: left !== null || (isOnBrink && crowded === '') ? 'critical' : 'warning',
      secondsLeft: left,
      standing: `The live heap filled ${formatRatio(share)} of its limit` +
        (left === null
          ? `${crowded}, and GC took ${sayCost(signals, limits)}`
          : `, and its rate would fill the rest in about ${formatSeconds(left)}`),
      summary: `The live heap fills ${formatRatio(share)} of its limit of ` +
        `${formatBytes(signals.liveHeapBytes / share)}${crowded}, and ` +
        (left === null
          ? `GC takes ${sayCost(signals, limits)}.`
          : `at this rate it fills the rest in about ${formatSeconds(left)}.`),
      finding: findRoom(signals, limits, target, course, share),
      evidence: showEvidence(signals, limits, left, needed),
      impact: crowded === ''
        ? 'Requests wait for GC, and at the limit the process ends with "JavaScript heap out of ' +
          'memory" (exit 134): in a measurement at 95 %, after about 10 seconds.'
        : 'Requests wait for GC, and the threads that mark the heap take CPU time: in a ' +
          'measurement, 1.7 cores instead of 0.1.'
    }
  },

  /** @returns {import('./define-diagnosis').Fix[]} */
  fix: (finding, target) => giveRoom(finding, target)
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * Course of a live heap close to its limit: `fills` if it will be full within a minute, `thrashes`
 * or `marks` if GC already takes time, else `quiet`. `marks`: the semi-spaces are too large.
 * @typedef {'thrashes' | 'marks' | 'fills' | 'quiet'} Course
 * @typedef {Record<'liveBytes' | 'heapLimitBytes' | 'shareOfLimit' | 'gcPauseRatio' |
 *   'semiSpaceBytes' | 'besideBytes' | 'processes', number> & Record<'containerLimitBytes' |
 *   'costlyMajorsPerSecond' | 'shareBytes', number | null> & { course: Course }} Finding
 *   shareOfLimit: liveBytes divided by the maximum of the old generation; costlyMajorsPerSecond:
 *   rate of major GCs, null if other threads take little CPU time for them; shareBytes: part of the
 *   container for this process
 */

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {Course} course
 * @param {number} shareOfLimit
 * @returns {Finding}
 */
const findRoom = (signals, limits, target, course, shareOfLimit) => ({
  course,
  liveBytes: signals.liveHeapBytes / signals.liveHeapShareRatio * shareOfLimit,
  shareOfLimit,
  heapLimitBytes: signals.heapSizeLimitBytes,
  gcPauseRatio: signals.recentGcPauseRatio,
  costlyMajorsPerSecond: marks(signals, limits, limits.suspectedMarkingRatio)
    ? signals.ordinaryMajorsPerSecond
    : null,
  semiSpaceBytes:
    signals.semiSpaceMaxBytes ??
    semiSpaceMax(target, signals.heapSizeLimitBytes)?.bytes ??
    ENOUGH_SEMI_SPACE,
  besideBytes: signals.besideHeapBytes ?? 0,
  containerLimitBytes: signals.containerLimitBytes,
  shareBytes: signals.containerShareBytes ?? signals.containerLimitBytes,
  processes: signals.containerProcesses ?? 1
})

/**
 * Judges a heap whose GCs take little time. It is suspected if it came close to its limit within
 * the last week: one that does so each day is one finding.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {import('./define-diagnosis').Dismissal} calm
 * @returns {import('./define-diagnosis').Judgement<Finding>}
 */
function judgeQuiet (signals, limits, target, calm) {
  const { liveHeapShareRatio: share, liveHeapBytes: live, liveHeapPeakShareRatio } = signals
  const peak = liveHeapPeakShareRatio ?? share
  if (peak < limits.brinkShareRatio) return calm
  const limit = live / share
  const left = `${formatBytes((1 - peak) * limit)} for growth and garbage`
  const isNow = share >= limits.brinkShareRatio
  return {
    state: 'suspected',
    severity: 'info',
    keeps: calm.keeps,
    standing: `The live heap filled ${formatRatio(peak)} of its limit`,
    summary: isNow
      ? `The live heap fills ${formatRatio(share)} of its limit of ${formatBytes(limit)}, which ` +
        `leaves ${left}. Major GCs take little time so far.`
      : `The live heap fills ${formatRatio(share)} of its limit of ${formatBytes(limit)} now, ` +
        `but filled ${formatRatio(peak)} before, which left ${left}.`,
    finding: findRoom(signals, limits, target, 'quiet', peak),
    evidence: listEvidence(
      evidence('liveHeapPeakShareRatio', peak, limits.brinkShareRatio, (value, threshold) =>
        `After a major GC ${formatBytes(peak * limit)} were left: ${value} of the limit. Above ` +
        `${threshold} a little growth ends the process.`),
      pausesEvidence(signals, findNeededPauses(signals, limits), limits)
    ),
    impact: 'Growth by that much ends the process with "JavaScript heap out of memory" (exit ' +
      '134), and before that GC takes most of the time.'
  }
}

/**
 * Is there headroom, or does GC cost little?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const fills = `the live heap fills ${formatRatio(signals.liveHeapShareRatio)} of its limit`
  const keeps =
    signals.liveHeapShareRatio >= limits.keepsShareRatio &&
    comesForRoom(signals, limits, limits.keepsRatio)
  if (signals.liveHeapShareRatio < limits.liveHeapShareRatio && sayRest(signals, limits) === '') {
    return ok(`${fills}: there is room`, { keeps })
  }
  if (comesForRoom(signals, limits, 1)) return null
  const { recentGcCpuRatio, recentMajorCpuRatio } = signals
  const ofMajors = recentGcCpuRatio < limits.suspectedPauseRatio
    ? ''
    : ', but major GCs are rare, and take ' +
      `${formatRatio(recentMajorCpuRatio)} of the time, without waits for a CPU`
  return ok(`${fills}, and GC takes ${sayPauses(signals)}${ofMajors}`, { keeps })
}
