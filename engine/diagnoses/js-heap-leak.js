'use strict'

const { defineDiagnosis, unknown } = require('./define-diagnosis')
const { listEvidence, prediction } = require('./evidence')
const { captureCommand } = require('../fixes/command')
const { URGENCY_LIMITS, nameMemoryLimit } = require('./severity')
const { FILLING_LIMITS } = require('./filling')
const { judgeHours, pickStronger } = require('./judge-hours')
const { LASTING_LIMITS } = require('./lasting-growth')
const { judgeWithoutReadings } = require('./js-heap-leak-few')
const { judgeMinutes } = require('./js-heap-leak-minutes')
const {
  PATTERNS, findGrowing, nameLimit, showGrownWith, showSharers
} = require('./js-heap-leak-evidence')

const MIB = 2 ** 20

module.exports = defineDiagnosis({
  id: 'js-heap-leak',
  title: 'Live JS heap keeps growing across major GCs',
  severity: 'critical',
  scope: 'isolate',
  requires: ['heapSizeLimitBytes', 'liveHeapReadings'],
  uses: [
    'liveHeapBytes',
    'liveHeapTrend',
    'threadRoomBytes',
    'otherThreadsGrowthBytesPerSecond',
    'liveHeapFallRatio',
    'liveHeapStandsSeconds',
    'liveHeapRoseSeconds',
    'liveHeapStandLoadRatio',
    'liveHeapFilledLoopRatio',
    'liveHeapLineSeconds',
    'liveHeapAgeSeconds',
    'liveHeapLatelyRatio',
    'heapRunwayBytes',
    'rssTrend',
    'unwatchedSeconds',
    'liveHeapShareRatio',
    'liveHeapHighestBytes',
    'oldSpaceTrend',
    'largeObjectSpaceTrend',
    'codeSpaceTrend',
    'arrayBuffersTrend',
    'nativeContextsTrend',
    'socketsTrend',
    'timersTrend',
    'listenerWarnings',
    'gcPauseRatio',
    'promotedKeptRatio',
    'keptTrend',
    'liveHeapReadingsDueSeconds',
    'liveHeapBoundBytes',
    'liveHeapBoundOldBytes',
    'liveHeapBoundSeconds',
    'usedHeapRunwayBytes',
    'heapLimitSecondsLeft',
    'liveHeapForcedReadings',
    'containerProcesses',
    'liveHeapLastingTrend',
    'lifeCpuSeconds',
    'liveHeapLoadShareRatio',
    'liveHeapEarlierHighBytes',
    'liveHeapPeakRunwayBytes',
    'liveHeapLimitInSeconds',
    'liveHeapPeakMemoryRunwayBytes',
    'containerLimitBytes'
  ],
  limits: {
    ...LASTING_LIMITS,
    // Least number of readings after major GCs: fewer cannot reach the score below, however
    // straight they rise.
    readings: 7,
    // With fewer readings, a single one decides if growth seems to slow down.
    slowingReadings: 10,
    // Mann–Kendall score of the growth. A flat series reaches 3 once in a thousand times.
    score: 3,
    // Score of a rise that keeps a leak from being ruled out. A flat series reaches 2 once in 44
    // times.
    doubtScore: 2,
    // The same with few readings, as a leak may have no higher score yet. A flat series reaches 1
    // once in six times.
    fewDoubtScore: 1,
    // r² that makes a rise worth a suspicion: the rise is five times the scatter around the line.
    suspectedFit: 0.85,
    // r² of the line: leaks measured 0.98–1.00, caches that fill up 0.67–0.84 once they slow down.
    fit: 0.9,
    // A leak continues at its rate. Growth that slows down to this share of the rate is a cache
    // that fills.
    lateGrowthRatio: 0.6,
    // A suspicion is withdrawn if the growth falls below this share of the rate.
    levelsOffRatio: 0.4,
    // A loop that became busy for this share of the time slows the app down, and its growth too.
    filledLoopRatio: 0.95,
    // Growth below this share of its rate has ended, however busy the loop is.
    endedRatio: 0.1,
    // The growth of a live heap has ended if it has stayed just below its limit for this time, and
    // for this share of the work that the second half of its rise took. GC that takes most of the
    // time slows a leak down.
    stoodSeconds: 60,
    stoodWorkRatio: 0.75,
    slowedByGcRatio: 0.5,
    // A live heap that falls by this share of its rise is no longer suspected. Caches of two equal
    // generations drop half of it, and grow again until the next major GC: they fell by 0.49 and
    // 0.55.
    fallShareRatio: 0.35,
    ...FILLING_LIMITS,
    // Growth below this share of the way to the limit is not worth a suspicion.
    suspectedRunwayShareRatio: 0.05,
    // Growth of this size is worth a suspicion, however far the limit is: leaks of 0.7 MiB/s reach
    // it within a minute.
    suspectedRiseBytes: 16 * MIB,
    // Growth that began in the last third of the readings rules nothing out if it would be worth a
    // suspicion within this time.
    lateSeconds: 300,
    // If there are few readings, this share of the promoted bytes must have survived the next major
    // GC. Leaks under limits of 1 to 4 GiB measured 0.67–1.00, garbage that is promoted early
    // 0.0–0.3.
    promotedKeptRatio: 0.5,
    // If the readings span this time, growth over the last few of them counts if this part of it
    // exceeds all earlier ones.
    keptManySeconds: 300,
    keptNewRatio: 0.5,
    // Least time over which promoted bytes bound the growth: in a shorter time little is promoted.
    boundSeconds: 30,
    // Share of the limit above which the live heap cannot rise any more: a flat line there proves
    // nothing.
    nearLimitRatio: 0.85,
    // The container's limit is reached first if it leaves less than this share of the room below
    // the heap's own limit.
    ownRunwayRatio: 0.99,
    // A worker whose heap grows by less than this share of all growth in its container is not told
    // the time at which the other memory fills the container.
    leastPartRatio: 0.1,
    ...URGENCY_LIMITS,
    // Growth that was first seen at this age may have begun at the start of the process. It did if
    // the same rate since the start explains this share of the live heap, and not much more.
    unwatchedSeconds: 30,
    // The time before the first frame is at least this share of the watched growth.
    unwatchedShareRatio: 0.25,
    explainedLeastRatio: 0.75,
    explainedMostRatio: 1.1,
    // No time to the limit is told if the live heap grew by less than this share of the trend up to
    // its last reading: a cache was full for 55 s, and its time was still told.
    pausesRatio: 0.5,
    // If the heap will be full within this time, the rate of its last readings predicts the end.
    lastMinuteSeconds: 60,
    // Least growth of contexts, sockets or timers that is reported together with the heap's growth.
    grownWith: 5
  },
  explains: [
    'heap-limit-thrash',
    'container-limit-mismatch',
    'oversized-heap',
    'event-loop-blocked'
  ],
  holds: 'objects',
  runbook: 'MemwatchJsHeapLeak',

  /** @returns {Judgement} */
  judge (signals, limits, { commands }) {
    const { heapRunwayBytes: runway } = signals
    if (signals.liveHeapBytes === null || runway === null) {
      return judgeWithoutReadings(signals, limits) ??
        unknown('no major GC has run yet; the live heap is unknown before the first one')
    }
    return pickStronger(judgeMinutes(signals, limits, runway, commands), judgeLong(signals, limits))
  },

  /** @param {Finding} finding */
  fix ({ growthBytesPerSecond, grows }, target) {
    return [
      {
        title: 'Find the retained objects, and drop the references to them',
        change: {
          code:
            (grows ? PATTERNS[grows] : '') +
            'Limit every Map, array and cache that grows with traffic (a size or a TTL), and ' +
              'every queue (delay or refuse work while it is full). A stream or socket is a ' +
              "queue, too: if its write() returns false, wait for the event 'drain'. Remove " +
              'listeners that are added per request, and keep data about other objects in a ' +
              'WeakMap. ' +
              `If no suspects are shown, ${captureCommand(target, 'heap_profile')} names the ` +
              'lines that allocate the retained objects.'
        },
        predicted: [prediction('liveHeapGrowthBytesPerSecond', growthBytesPerSecond, 0)],
        risk: 'A larger --max-old-space-size only delays the crash. A restart gains time.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {{ growthBytesPerSecond: number, grows: keyof typeof PATTERNS | null }} Finding grows:
 *   null without a hint
 */
/** @typedef {import('./define-diagnosis').Judgement<Finding>} Judgement */

/**
 * Judges growth over hours and days.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null without enough data
 */
function judgeLong (signals, limits) {
  const { liveHeapLastingTrend: trend, liveHeapPeakRunwayBytes: runway } = signals
  if (trend === null || runway === null) return null
  const memoryRunway = signals.liveHeapPeakMemoryRunwayBytes ?? Infinity
  const limit = {
    peakRunway: runway,
    nearestRunway: Math.min(runway, memoryRunway),
    limitInSeconds: signals.liveHeapLimitInSeconds
  }
  const what = 'the live heap'
  return judgeHours(trend, limit, 'liveHeap', limits, what, (rise, growthBytesPerSecond) => ({
    name: 'The live heap',
    limitName: nameLimit(signals, limits, signals.heapRunwayBytes ?? runway),
    ...(memoryRunway < runway && {
      first: { name: nameMemoryLimit(signals), runway: memoryRunway }
    }),
    fills: 'a cache that fills',
    threat: 'the process or worker dies',
    finding: { growthBytesPerSecond, grows: findGrowing(signals) },
    evidence: listEvidence(showGrownWith(signals, rise, limits), showSharers(signals, runway))
  }))
}
