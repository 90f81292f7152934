'use strict'

const { residentNow } = require('../memory/anatomy')
const { median } = require('../statistics/quantile')
const { RATE_SECONDS } = require('../history/window')
const { trend } = require('../statistics/trend')
const { peakOfDay } = require('./day-peak')
const { jemallocSavingBytes } = require('./jemalloc-saving')
const {
  answer, forcedFrees, nativeInUse, NATIVE_SECONDS, TYPICAL_SECONDS, typicalNativeBytes,
  nativeReusedBytes, slackBytes, retainedBytes
} = require('./native-memory')
const { growthAfterMajors, growthOf, lineSeconds, steadiness } = require('./growth')
const { partOfRoom } = require('./shared-room')
const { bytesTrend, trendOf } = require('./trend-signal')

/** @typedef {import('./index').Signal} Signal */

/**
 * Time after the first frame in which missing statistics of malloc are still expected. Agents query
 * malloc when they scan the memory map, within seconds; later if the machine is busy.
 */
const ANSWER_SECONDS = 120

/** Window that shows whether growth goes on, and the least share of it that must be known. */
const LATELY_SECONDS = 20
/** Time in which bursts of free memory recur: those of a job each minute do so several times. */
const SLACK_FALL_SECONDS = 300
const LATELY_LEAST_SHARE = 0.75

/** Least external memory of a worker that may hold the growth, as a share of the largest one. */
const HOLDER_SHARE = 0.5
/** Longest time of rssLatePeakShareRatio: RSS falls at a major GC, of which a quiet app has few. */
const LATE_SECONDS = 7200
/** Window whose second half must contain a major GC, which frees garbage outside the heap. */
const COLLECTED_SECONDS = 600

/**
 * @param {import('../history/window').Window} window
 * @param {number} seconds
 * @returns {number | null} highest RSS of this time, divided by the memory limit of the container
 */
function peakShareRatio (window, seconds) {
  const { values } = window.points('rssBytes', seconds)
  const { containerLimitBytes } = window.values
  return values.length > 0 && containerLimitBytes
    ? Math.max(...values) / containerLimitBytes
    : null
}

/**
 * Memory that is left beside all processes in the container.
 * @param {import('../history/window').Window} window
 * @returns {number | null} bytes
 */
function leftBeside ({ values: { containerLimitBytes, rssBytes }, hello, neighbours }) {
  const limit = containerLimitBytes ?? hello.hostMemoryBytes
  return limit === undefined || rssBytes === undefined
    ? null
    : Math.max(0, limit - rssBytes - neighbours.memoryBytes)
}

/** @param {import('../history/window').Window} window */
const besideHeap = window => {
  const { rssBytes } = window.values
  const heap = window.last('heapResidentBytes')
  return rssBytes === undefined || heap === undefined ? null : Math.max(0, rssBytes - heap)
}

/** @param {import('../history/window').Window} window */
const majorsSeen = window =>
  window.increase('liveHeapMajors', window.settledSeconds(COLLECTED_SECONDS) / 2)?.increase ?? 0

const outsideTrend = growthAfterMajors('outsideHeapBytes')
const rssGrowth = growthOf('rssBytes')
const slackGrowth = growthOf('allocatorSlackBytes')

/** @param {import('../history/window').Window} window */
const nativeGrowth = window => window.overSpan('nativeBytes', NATIVE_SECONDS, () => {
  const { times, values } = window.points('nativeBytes', NATIVE_SECONDS)
  return { trend: trend(times, values), readings: times.length }
})

/** @param {import('../history/window').Window} window */
const nativeInUseGrowth = window => window.overSpan('native in use', NATIVE_SECONDS, () => {
  const { times, values } = nativeInUse(window, window.settledSeconds(NATIVE_SECONDS))
  return { trend: trend(times, values), readings: times.length }
})

module.exports = {
  rssBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on the main thread; on Linux from /proc',
    onMainThread: true,
    help: `Resident set size, median of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('rssBytes', RATE_SECONDS)
      return values.length > 0 ? median(values) : null
    }
  }),
  rssTrend: bytesTrend('RSS', window => {
    const found = rssGrowth(window)
    return trendOf(found, steadiness(found))
  }),
  containerLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory limit of the container: the lowest of its cgroup and of all visible parents.',
    compute: window => window.values.containerLimitBytes ?? null
  }),
  rssShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'RSS divided by the memory limit of the container.',
    compute: window => {
      const { values } = window.points('rssBytes', RATE_SECONDS)
      const { containerLimitBytes } = window.values
      return values.length > 0 && containerLimitBytes ? median(values) / containerLimitBytes : null
    }
  }),
  rssPeakShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Highest RSS of the last ${RATE_SECONDS} s, divided by the memory limit of the container.`,
    compute: window => peakShareRatio(window, RATE_SECONDS)
  }),
  rssLatePeakShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Highest RSS of the second half of the life of the process, at most of the last two ' +
      'hours, divided by the memory limit of the container.',
    compute: window => peakShareRatio(window, Math.min(LATE_SECONDS, window.nowSeconds / 2))
  }),
  rssDayPeakShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after ten minutes',
    help: 'Highest RSS of the last day, in steps of ten minutes, divided by the memory limit of ' +
      'the container.',
    compute: window => {
      const peak = peakOfDay(window, 'rssBytes')
      const { containerLimitBytes } = window.values
      return peak > 0 && containerLimitBytes ? peak / containerLimitBytes : null
    }
  }),
  memoryRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help:
      "Memory left for growth outside the heap, up to the container's limit, or the machine's " +
        'memory without one. Growing processes in the container share this memory.',
    compute: window => {
      const left = leftBeside(window)
      return left && left * partOfRoom(window, outsideTrend(window).trend?.slope)
    }
  }),
  rssRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help: 'The same for the growth of RSS, of which memory outside the heap may be a part.',
    compute: window => {
      const left = leftBeside(window)
      return left && left * partOfRoom(window, rssGrowth(window).trend?.slope)
    }
  }),
  besideHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help: 'Resident memory that is not the V8 heap.',
    compute: besideHeap
  }),
  containerLimitHitsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: "Times a second that memory use reached the container's limit, so that the kernel " +
      'reclaimed memory.',
    compute: window => window.rate('containerLimitHits')
  }),
  containerHighBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'memory.high of the cgroup: above it the kernel throttles the process.',
    compute: window => window.values.containerHighBytes ?? null
  }),
  containerHighHitsPerSecond: /** @type {Signal} */ ({
    unit: 'perSecond',
    help: 'Times a second that memory use exceeded memory.high.',
    compute: window => window.rate('containerHighHits')
  }),
  memoryPressureRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of time in which some task of the cgroup waited for memory (PSI, some).',
    compute: window => {
      // The field is read every ten frames: the window may start with an older reading.
      const rate = window.rate('memoryPressureSomeSeconds')
      return rate && Math.min(1, rate)
    }
  }),
  outsideHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help: 'Anonymous resident memory outside the V8 heap, including Buffers.',
    compute: window => window.last('outsideHeapBytes') ?? null
  }),
  outsideHeapReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the memory outside the heap since the warm-up; only those after a major ' +
      'GC, if there are enough.',
    compute: window => outsideTrend(window).readings
  }),
  besideHeapPeakBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help: 'Resident memory that is not the V8 heap, at its highest of the last day, in steps of ' +
      'ten minutes.',
    compute: window => {
      const beside = besideHeap(window)
      const now = window.last('outsideHeapBytes')
      if (beside === null || now === undefined) return beside
      return beside + Math.max(0, peakOfDay(window, 'outsideHeapBytes') - now)
    }
  }),
  majorsSeen: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Major GCs in the second half of the last ten minutes, or of the time since the ' +
      'warm-up of a younger process. Each major GC also frees garbage outside the heap.',
    compute: majorsSeen
  }),
  workersMajorsSeen: /** @type {Signal} */ ({
    unit: 'count',
    expected: 'with worker threads',
    onMainThread: true,
    help: 'Major GCs in the same time in the worker that had the fewest, among the workers with ' +
      'the most external memory: half of the largest one, or more.',
    compute: ({ workers: { threads } }) => {
      const bytesOf = (/** @type {import('../history/target').Target} */ { hello, values }) =>
        hello.threadId === 0 ? 0 : values.externalBytes ?? 0
      const largest = Math.max(0, ...[...threads].map(bytesOf))
      const counts = [...threads]
        .filter(worker => bytesOf(worker) > 0 && bytesOf(worker) >= HOLDER_SHARE * largest)
        .map(worker => worker.window())
        .map(window => (window ? majorsSeen(window) : 0))
      return counts.length > 0 ? Math.min(...counts) : null
    }
  }),
  outsideHeapTrend: bytesTrend('the memory outside the heap across major GCs', window =>
    trendOf(outsideTrend(window))),
  outsideHeapLineSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time for which the memory outside the heap has grown along the line of its trend, ' +
      'with the warm-up that the trend excludes.',
    compute: window => lineSeconds(window, 'outsideHeapBytes', outsideTrend(window))
  }),
  outsideHeapLatelyRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: `after ${LATELY_SECONDS} s`,
    help: `Growth of the memory outside the heap in the last ${LATELY_SECONDS} s, as a share of ` +
      'its trend across major GCs, which may be rare.',
    compute: window => {
      const { slope = 0 } = outsideTrend(window).trend ?? {}
      const { times, values } = window.points('outsideHeapBytes', LATELY_SECONDS)
      const spanSeconds = times[times.length - 1] - times[0]
      if (slope <= 0 || !(spanSeconds >= LATELY_LEAST_SHARE * LATELY_SECONDS)) return null
      // Medians of the first and last third: single readings contain garbage.
      const third = Math.ceil(values.length / 3)
      const grown = median(values.slice(-third)) - median(values.slice(0, third))
      return grown / (2 / 3 * spanSeconds) / slope
    }
  }),
  forcedFreedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'where memwatch runs full GCs',
    onMainThread: true,
    help: 'Memory outside the heap and Buffers that one full GC of memwatch frees: median of the ' +
      'last ten minutes without the start.',
    compute: window => forcedFrees(window)?.eachBytes ?? null
  }),
  forcedFreedBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'where memwatch runs full GCs',
    onMainThread: true,
    help: 'Memory outside the heap and Buffers that full GCs of memwatch free, per second.',
    compute: window => forcedFrees(window)?.perSecond ?? null
  }),
  ownMajorsPerForcedRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'where memwatch runs full GCs',
    help: 'Major GCs of the app per full GC of memwatch, over the same time.',
    compute: window => {
      const seconds = window.settledSeconds(NATIVE_SECONDS)
      const own = (window.increase('ordinaryMajors', seconds)?.increase ?? 0) +
        (window.increase('externalMajors', seconds)?.increase ?? 0)
      const { forced = 0 } = forcedFrees(window) ?? {}
      return forced > 0 ? own / forced : null
    }
  }),
  nativeBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    help: 'Anonymous resident memory outside the V8 heap and Buffers, median of the last ' +
      `${TYPICAL_SECONDS} s.`,
    compute: typicalNativeBytes
  }),
  mallocArenaShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of allocatorSlackBytes in the arenas of threads; the rest is in the main arena, ' +
      '[heap].',
    compute: window => {
      const { scan } = window
      if (scan && scan.heapSlackBytes + scan.arenaSlackBytes > 0) {
        return scan.arenaSlackBytes / (scan.heapSlackBytes + scan.arenaSlackBytes)
      }
      const span = window.last('mallocSpanBytes')
      const arenas = window.last('mallocArenaBytes')
      return span && arenas !== undefined ? arenas / span : null
    }
  }),
  allocatorSlackBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on the main thread, on Linux from /proc, within seconds',
    onMainThread: true,
    help: 'Memory of malloc, less Buffers and the memory of Node.js itself: median of the last ' +
      `${TYPICAL_SECONDS} s. If malloc was queried, all of it is free; otherwise it is free or ` +
      'used by native code.',
    compute: slackBytes
  }),
  allocatorSlackNowBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on the main thread, on Linux from /proc, within seconds',
    onMainThread: true,
    help: 'The newest reading of allocatorSlackBytes, which lags behind a sudden change.',
    compute: window => window.last('allocatorSlackBytes') ?? null
  }),
  allocatorSlackFallBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    onMainThread: true,
    help: `The largest fall of allocatorSlackBytes in the last ${SLACK_FALL_SECONDS / 60} minutes.`,
    compute: window => window.largestFall('allocatorSlackBytes', SLACK_FALL_SECONDS)
  }),
  mappedNativeBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on the main thread, on Linux from /proc, within seconds',
    onMainThread: true,
    help: 'Memory of malloc and of the malloc of addons by the newest scan of the memory map, and ' +
      'memory that was obtained since.',
    compute: window => {
      const found = window.scan ? residentNow(window) : null
      return found && found.native + found.slack + found.since + found.addonMalloc
    }
  }),
  allocatorSlackTrend: bytesTrend('memory that malloc holds beyond need', window =>
    trendOf(slackGrowth(window))),
  allocatorAsked: /** @type {Signal} */ ({
    unit: 'count',
    help:
      "1 if malloc's own statistics are known and recent; 0 if its memory is estimated.",
    compute: window => Number(answer(window).asked)
  }),
  allocatorAnswerDue: /** @type {Signal} */ ({
    unit: 'count',
    help: '1 while the agent may query malloc but has no recent answer; 0 if no answer has ' +
      `arrived ${ANSWER_SECONDS} s after the first frame.`,
    compute: window => Number(
      window.hello.allocatorAccess !== undefined &&
      !answer(window).asked &&
      (window.scan?.asked === true || window.watchedSeconds < ANSWER_SECONDS))
  }),
  allocatorRetainedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory that malloc retains: freed by the app, not returned. An estimate from its ' +
      "movement if malloc's statistics were not read; absent where no estimate is possible, as " +
      'with musl.',
    compute: retainedBytes
  }),
  jemallocSavingBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Predicted saving of RSS under jemalloc: allocatorSlackBytes, its average over the last ' +
      `ten minutes without the start or, if higher, its minimum over the last ${RATE_SECONDS} s, ` +
      "less jemalloc's overhead and the memory it retains for a second.",
    compute: jemallocSavingBytes
  }),
  allocatorTrimmableBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Part of allocatorSlackBytes that memwatch trim would return; the rest is in small ' +
      'pieces or at the end of arenas.',
    compute: window => {
      const { scan } = window
      const retained = retainedBytes(window)
      return scan && retained !== null && scan.slackBytes > 0
        ? scan.trimmableBytes * Math.min(1, retained / scan.slackBytes)
        : null
    }
  }),
  nativeReusedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help:
      'Native memory that Buffers reused: its largest fall in the last ten minutes, without the ' +
        'start, less the memory returned to the kernel.',
    compute: nativeReusedBytes
  }),
  nativeInUseTrend: bytesTrend('the native memory that malloc does not count as free', window =>
    answer(window).asked ? trendOf(nativeInUseGrowth(window)) : null),
  nativeTrend: bytesTrend('the native memory', window => trendOf(nativeGrowth(window)))
}
