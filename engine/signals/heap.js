'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')
const { median } = require('../statistics/quantile')
const {
  countForcedReadings, lineSeconds, liveHeapTrend, pointsAfterMajors
} = require('./growth')
const { readOldLimit } = require('./heap-sizes')
const { besideHeapBytes } = require('./memory')
const { secondsUntilTrend } = require('./readings-due')
const { partOfRoom } = require('./shared-room')
const { acrossMajors, bytesTrend, trendOf } = require('./trend-signal')
const { residentNow } = require('../memory/anatomy')
const { oldUsedBytes } = require('../v8/heap-spaces')

/** @typedef {import('./index').Signal} Signal */

/**
 * @param {import('../history/window').Window} window
 * @param {number | undefined} heapBytes live heap
 * @returns {number | null} bytes
 */
function runwayFrom (window, heapBytes) {
  const { heapSizeLimitBytes, containerLimitBytes } = window.values
  if (heapBytes === undefined || heapSizeLimitBytes === undefined) return null
  // The heap shares the container with all other resident memory.
  const beside = besideHeapBytes.compute(window) ?? 0
  const own = (readOldLimit(window) ?? heapSizeLimitBytes) - heapBytes
  if (containerLimitBytes === undefined) return Math.max(0, own)
  const left = containerLimitBytes - beside - window.neighbours.memoryBytes - heapBytes
  const part = partOfRoom(window, liveHeapTrend(window).trend?.slope)
  return Math.max(0, Math.min(own, left * part))
}

/** Window that outlasts a burst. */
const RESIDENT_SECONDS = 60

/** Shorter window for a heap that fills within a minute. */
const FILL_SECONDS = 30
/** Number of rising readings in a row that rules out uncollected garbage as the reason. */
const LEAST_FILL_READINGS = 4
/** Shortest span of major GCs: a burst within a moment is no trend. */
const LEAST_FILL_SECONDS = 5

/**
 * Upper bound of the growth of the live heap: it is never larger than the used heap. Over a longer
 * time two sizes of the used heap are compared as well, because the first reading of the live heap
 * may lack objects that were still in the new space.
 * @param {import('../history/window').Window} window
 * @param {import('../history/window').Points} readings of the live heap, at least two
 * @returns {number} bytes a second; Infinity if it is unknown
 */
function usedHeapGrowth (window, { times, values }) {
  const { nowSeconds, values: { heapUsedBytes: now } } = window
  const [before, last] = [times.length - 2, times.length - 1]
  if (now === undefined) return Infinity
  const sinceLast = times[last] < nowSeconds
    ? (now - values[last]) / (nowSeconds - times[last])
    : Infinity
  const seconds = nowSeconds - times[before]
  const [used] = window.points('heapUsedBytes', seconds).values
  return seconds < LEAST_FILL_SECONDS || used === undefined
    ? sinceLast
    : Math.min(sinceLast, (now - used) / seconds)
}

/**
 * Least time between the two readings that show whether the live heap still grows: long enough for
 * growth of this many standard deviations of a reading, which would hide less.
 */
const LATELY_SECONDS = 8
const LATELY_DEVIATIONS = 5

/**
 * @param {import('../history/window').Window} window
 * @returns {number | null} growth between the last reading and an earlier one, as a share of the
 *   trend; null without a rising trend or such readings
 */
function latelyRatio (window) {
  const { trend: line } = liveHeapTrend(window)
  if (!line || line.slope <= 0) return null
  // A uniform rise over a span has a variance of a twelfth of its square, of which the line
  // explains the share `fit`.
  const deviationSeconds = line.spanX * Math.sqrt((1 / line.fit - 1) / 12)
  const { times, values } = pointsAfterMajors(window, 'liveHeapBytes', line.spanX)
  const last = times.length - 1
  const leastSeconds = Math.max(LATELY_SECONDS, LATELY_DEVIATIONS * deviationSeconds)
  const before = times.findLastIndex(time => time <= times[last] - leastSeconds)
  return before < 0
    ? null
    : (values[last] - values[before]) / (times[last] - times[before]) / line.slope
}

/** Time for which a fall must last: objects of requests come and go. */
const FALL_SECONDS = 15

/**
 * @param {import('../history/window').Window} window
 * @returns {number | null} null without a rising trend
 */
function fallRatio (window) {
  const { trend: line } = liveHeapTrend(window)
  const { liveHeapBytes: now } = window.values
  if (!line || line.rise <= 0 || now === undefined) return null
  const end = line.intercept + line.slope * (line.startX + line.spanX)
  if (end <= now) return 0
  const { nowSeconds } = window
  const { times, values } = pointsAfterMajors(window, 'liveHeapBytes', nowSeconds - line.startX)
  const since = times.findIndex(time => time >= nowSeconds - FALL_SECONDS)
  const lately = Math.max(...values.slice(since < 0 ? -1 : since))
  // A single high reading is far above the line, and the line far above a sawtooth.
  return Math.max(0, Math.min(end, Math.max(...values)) - lately) / line.rise
}

/**
 * Readings of the live heap in a short window. The first row of a window repeats an older reading,
 * so a window of twice the length is read: a short window would date that reading too late, and
 * show growth too steep.
 * @param {import('../history/window').Window} window
 * @param {number} seconds
 */
function newReadings (window, seconds) {
  const { times, values } = pointsAfterMajors(window, 'liveHeapBytes', 2 * seconds)
  const from = times.findIndex(time => time >= window.nowSeconds - seconds)
  return from < 0
    ? { times: [], values: [] }
    : { times: times.slice(from), values: values.slice(from) }
}

/** The loop had room while it was busy for less than this share of the time. */
const ROOM_RATIO = 0.8
/** Longest time before now in which the loop may have had room. */
const ROOM_SECONDS = 600

/**
 * @param {import('../history/window').Window} window
 * @returns {number | null} share of the time in which the loop was busy, in the last third of a
 *   rise of the live heap; null if it had no room ten minutes ago, or at the start, either
 */
function filledLoop (window) {
  const { trend: line } = liveHeapTrend(window)
  if (!line || line.rise <= 0) return null
  const span = Math.min(window.nowSeconds, ROOM_SECONDS)
  const hadRoom = busyRatio(window, span, 2 * span / 3) < ROOM_RATIO
  const late = busyRatio(window, Math.min(span, window.nowSeconds - line.startX) / 3)
  return hadRoom && Number.isFinite(late) ? late : null
}

/**
 * @param {import('../history/window').Window} window
 * @param {number} from seconds before now
 * @param {number} [to] seconds before now
 * @returns {number} share of the time in which the loop was busy; NaN without readings
 */
function busyRatio (window, from, to = 0) {
  /** @param {'eventLoopActiveSeconds' | 'eventLoopIdleSeconds'} track */
  const increase = track =>
    (window.increase(track, from)?.increase ?? NaN) -
    (to > 0 ? window.increase(track, to)?.increase ?? NaN : 0)
  const active = increase('eventLoopActiveSeconds')
  return active / (active + increase('eventLoopIdleSeconds'))
}

module.exports = {
  heapSizeLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "Maximum size of this isolate's heap.",
    compute: window => window.values.heapSizeLimitBytes ?? null
  }),
  liveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Heap that survived the last major GC.',
    compute: window => window.values.liveHeapBytes ?? null
  }),
  liveHeapAgeSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Time since the last major GC, which gave the known live heap.',
    compute: window => {
      const { times } = pointsAfterMajors(window, 'liveHeapBytes', 7200)
      return times.length > 0 ? window.nowSeconds - times[times.length - 1] : null
    }
  }),
  unwatchedSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Age of the isolate at its first frame: above a few seconds after an attach, or if the ' +
      'exporter started later than the process.',
    compute: window => window.nowSeconds - window.watchedSeconds
  }),
  liveHeapReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the live heap since the warm-up, each after a major GC.',
    compute: window => liveHeapTrend(window).readings
  }),
  liveHeapForcedReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the live heap in the last ten minutes, since the warm-up, after full GCs ' +
      'that memwatch requested.',
    compute: window => countForcedReadings(window, window.settledSeconds(600))
  }),
  liveHeapReadingsDueSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time until there are enough readings of the live heap for a trend; null unless major ' +
      'GCs run at even intervals.',
    compute: secondsUntilTrend
  }),
  heapPooledBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Resident pages that GCs emptied and V8 keeps for later; V8 does not count them.',
    compute: window => residentNow(window)?.pooled ?? null
  }),
  liveHeapTrend: bytesTrend('the live heap across major GCs', window =>
    trendOf(liveHeapTrend(window))),
  liveHeapFallRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'while the live heap has a rising trend',
    afterEvent: true,
    help: 'Fall of the live heap below its highest reading, and below the end of its rising ' +
      `trend, as a share of the rise. All readings of the last ${FALL_SECONDS} s must show it.`,
    compute: fallRatio
  }),
  liveHeapFilledLoopRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'while the live heap has a rising trend',
    help: 'Share of wall time in which the event loop was busy, in the last third of the rise of ' +
      `the live heap. Null if it was busy for ${ROOM_RATIO * 100} % of the first third of the ` +
      'last ten minutes, or of the life of a younger process.',
    compute: filledLoop
  }),
  liveHeapLineSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time for which the live heap has grown along the line of its trend, with the warm-up ' +
      'that the trend excludes.',
    compute: window => lineSeconds(window, 'liveHeapBytes', liveHeapTrend(window), true)
  }),
  heapRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help:
      'Memory left for the live heap, up to the heap size limit or the container limit, whichever ' +
        'is nearer. Growing processes in the container share its free memory.',
    compute: window => runwayFrom(window, window.values.liveHeapBytes)
  }),
  usedHeapRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Lower bound of heapRunwayBytes: from the used heap, including garbage.',
    compute: window => runwayFrom(window, window.values.heapUsedBytes)
  }),
  oldSpaceTrend: bytesTrend('the old space across major GCs', acrossMajors('oldSpaceBytes')),
  largeObjectSpaceTrend: bytesTrend(
    'the large object space across major GCs',
    acrossMajors('largeObjectSpaceBytes')
  ),
  pointerSpaceShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the used heap in the old space, which contains objects with pointers. Other ' +
      'spaces contain large strings and arrays, code and young objects.',
    compute: window => {
      const { spaces, heapUsedBytes } = window.values
      const row = spaces?.old_space
      return row && heapUsedBytes ? row[SPACE_ROW.usedBytes] / heapUsedBytes : null
    }
  }),
  heapUsedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Used heap now, including garbage.',
    compute: window => window.values.heapUsedBytes ?? null
  }),
  heapResidentBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Resident memory of the V8 heap: median of the last ${RESIDENT_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('heapResidentBytes', RESIDENT_SECONDS)
      return values.length > 0 ? median(values) : null
    }
  }),
  liveHeapAtMostBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Upper bound of the live heap: its maximum after a major GC in the last ten minutes; ' +
      'before the first major GC the used bytes of all but the new spaces.',
    compute: window => {
      const { values } = window.points('liveHeapBytes', 600)
      if (values.length > 0) return Math.max(...values)
      const { spaces } = window.values
      return spaces ? oldUsedBytes(spaces) : null
    }
  }),
  liveHeapHighestBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Maximum of the live heap after a major GC in the last ten minutes.',
    compute: window => {
      const { values } = window.points('liveHeapBytes', 600)
      return values.length > 0 ? Math.max(...values) : null
    }
  }),
  liveHeapShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Live heap divided by the maximum of the old generation, which is the heap size limit ' +
      'less three semi-spaces.',
    compute: window => {
      const { liveHeapBytes } = window.values
      const limit = readOldLimit(window)
      return liveHeapBytes === undefined || limit === null ? null : liveHeapBytes / limit
    }
  }),
  liveHeapLatelyRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'while the live heap rises',
    help: 'Growth of the live heap up to its last reading, from one early enough to show it, as ' +
      'a share of its trend.',
    compute: latelyRatio
  }),
  heapLimitSecondsLeft: /** @type {Signal} */ ({
    unit: 'seconds',
    expected: `while the live heap rises at each of ${LEAST_FILL_READINGS} major GCs`,
    help: `Time until the live heap reaches its limit, at the rate of the last ${FILL_SECONDS} ` +
      's or of its last step, whichever is lower; null unless it rose in that time and fell at no ' +
      'major GC.',
    compute: window => {
      const { times, values } = newReadings(window, FILL_SECONDS)
      const limit = readOldLimit(window)
      const last = values.length - 1
      const seconds = times[last] - times[0]
      if (limit === null || values.length < LEAST_FILL_READINGS || seconds < LEAST_FILL_SECONDS) {
        return null
      }
      // An app that has loaded its data stops growing: the last step counts if it was slower.
      const lately = (values[last] - values[last - 1]) / (times[last] - times[last - 1])
      const elapsed = window.nowSeconds - times[last]
      const perSecond = Math.min(
        (values[last] - values[0]) / seconds, lately, usedHeapGrowth(window, { times, values })
      )
      if (perSecond <= 0 || values.some((value, i) => i > 0 && value < values[i - 1])) return null
      return Math.max(0, (limit - values[last]) / perSecond - elapsed)
    }
  })
}
