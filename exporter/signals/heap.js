'use strict'

const { median } = require('../statistics/quantile')
const {
  countForcedReadings,
  growthOf,
  liveHeapTrend,
  pointsAfterMajors
} = require('./growth')
const { secondsUntilTrend } = require('./readings-due')
const { partOfRoom } = require('./shared-room')
const { semiSpaceMax, youngGenerationBytes } = require('../v8/heap-sizing')

/** @typedef {import('./index').Signal} Signal */

/**
 * What survives a major GC lives in the old generation; the rest of the heap size limit belongs to
 * the young one.
 * @param {import('../series/window').Window} window
 * @returns {number | null} bytes
 */
function oldGenerationLimit ({ hello, values: { heapSizeLimitBytes } }) {
  if (!heapSizeLimitBytes) return null
  return (
    heapSizeLimitBytes - youngGenerationBytes(semiSpaceMax(hello, heapSizeLimitBytes)?.bytes ?? 0)
  )
}

/** Long enough for a burst to pass. */
const RESIDENT_SECONDS = 60

/** A heap that is full within a minute shows it in less. */
const FILL_SECONDS = 30
/**
 * So many readings in a row, each above the one before it, are no accident of garbage that waits.
 */
const LEAST_FILL_READINGS = 4
/** A burst of major GCs within a moment tells of that moment. */
const LEAST_FILL_SECONDS = 5

module.exports = {
  heapSizeLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Most that V8 lets the heap of this isolate grow to.',
    compute: window => window.values.heapSizeLimitBytes ?? null
  }),
  liveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Heap that survived the last major GC.',
    compute: window => window.values.liveHeapBytes ?? null
  }),
  liveHeapReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the live heap since the warm-up, each after a major GC.',
    compute: window => liveHeapTrend(window).readings
  }),
  liveHeapForcedReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the live heap in the last ten minutes, since the warm-up, after full GCs ' +
      'that memwatch asked for.',
    compute: window => countForcedReadings(window, window.settledSeconds(600))
  }),
  liveHeapReadingsDueSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time until there are enough readings of the live heap for a trend, where major GCs ' +
      'come evenly.',
    compute: secondsUntilTrend
  }),
  liveHeapGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    help: 'Slope of the live heap across major GCs (Theil–Sen).',
    compute: window => liveHeapTrend(window).trend?.slope ?? null
  }),
  liveHeapRiseBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the live heap grew by over the span of that slope.',
    compute: window => liveHeapTrend(window).trend?.rise ?? null
  }),
  liveHeapRiseSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'The span of that slope.',
    compute: window => liveHeapTrend(window).trend?.spanX ?? null
  }),
  liveHeapGrowthFit: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'How straight the growth is: r² of the line, 1 is a straight line.',
    compute: window => liveHeapTrend(window).trend?.fit ?? null
  }),
  liveHeapGrowthScore: /** @type {Signal} */ ({
    unit: 'score',
    help: 'Mann–Kendall standard score of the growth: above 3 it is no accident.',
    compute: window => liveHeapTrend(window).trend?.z ?? null
  }),
  liveHeapLateGrowthRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Slope of the last third over the slope of the whole: 1 goes on, 0 has stopped.',
    compute: window => {
      const { trend } = liveHeapTrend(window)
      return trend && trend.slope > 0 ? trend.lastThirdSlope / trend.slope : null
    }
  }),
  liveHeapHalvesRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Slope of the second half over the slope of the first: a filling cache slows down, a ' +
      'leak does not.',
    compute: window => {
      const { trend } = liveHeapTrend(window)
      return trend && trend.earlySlope > 0 ? trend.lateSlope / trend.earlySlope : null
    }
  }),
  heapRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help:
      'What the live heap may still grow by until the heap size limit or the container ' +
      'limit, whichever comes first. Of what is left in the container, processes in it that grow ' +
      'as well take their parts.',
    compute: window => {
      const { liveHeapBytes, heapSizeLimitBytes, containerLimitBytes, rssBytes } = window.values
      const heap = window.last('heapResidentBytes')
      if (liveHeapBytes === undefined || heapSizeLimitBytes === undefined) return null
      // In the container the heap shares with everything else that is resident.
      const beside = rssBytes !== undefined && heap !== undefined ? Math.max(0, rssBytes - heap) : 0
      const own = (oldGenerationLimit(window) ?? heapSizeLimitBytes) - liveHeapBytes
      if (containerLimitBytes === undefined) return Math.max(0, own)
      const left = containerLimitBytes - beside - window.neighbours.memoryBytes - liveHeapBytes
      const part = partOfRoom(window, liveHeapTrend(window).trend?.slope)
      return Math.max(0, Math.min(own, left * part))
    }
  }),
  oldSpaceRiseBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the old space grew by, as a line across major GCs.',
    compute: window => growthOf(window, 'oldSpaceBytes', { afterMajors: true }).trend?.rise ?? null
  }),
  largeObjectSpaceRiseBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the large object space grew by, as a line across major GCs.',
    compute: window =>
      growthOf(window, 'largeObjectSpaceBytes', { afterMajors: true }).trend?.rise ?? null
  }),
  pointerSpaceShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the used heap that lies in the old space, where objects are: elsewhere ' +
      'there are large strings and arrays, code, and what is young.',
    compute: window => {
      const { spaces, heapUsedBytes } = window.values
      return spaces?.old_space && heapUsedBytes ? spaces.old_space[0] / heapUsedBytes : null
    }
  }),
  heapUsedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Used heap now, garbage and all.',
    compute: window => window.values.heapUsedBytes ?? null
  }),
  heapResidentBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory that V8 holds for the heap, most of the time: median of the last ' +
      `${RESIDENT_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('heapResidentBytes', RESIDENT_SECONDS)
      return values.length > 0 ? median(values) : null
    }
  }),
  liveHeapAtMostBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'A bound of what lives: the most that was left after a major GC in the last ten ' +
      'minutes; before the first one all that the spaces hold but the new ones.',
    compute: window => {
      const { values } = window.points('liveHeapBytes', 600)
      if (values.length > 0) return Math.max(...values)
      const { spaces } = window.values
      if (!spaces) return null
      return Object.entries(spaces).reduce(
        (sum, [name, [used]]) => (name.startsWith('new_') ? sum : sum + used),
        0
      )
    }
  }),
  liveHeapHighestBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'The most that was left after a major GC in the last ten minutes.',
    compute: window => {
      const { values } = window.points('liveHeapBytes', 600)
      return values.length > 0 ? Math.max(...values) : null
    }
  }),
  liveHeapShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Live heap over the most that the old generation may grow to: the heap size limit ' +
      'less three semi-spaces.',
    compute: window => {
      const { liveHeapBytes } = window.values
      const limit = oldGenerationLimit(window)
      return liveHeapBytes === undefined || limit === null ? null : liveHeapBytes / limit
    }
  }),
  heapLimitSecondsLeft: /** @type {Signal} */ ({
    unit: 'seconds',
    expected: `while the live heap rises at each of ${LEAST_FILL_READINGS} major GCs`,
    help: `Time until the live heap meets its limit, at the rate of the last ${FILL_SECONDS} s; ` +
      'null unless it rose and fell at no major GC in them.',
    compute: window => {
      const { times, values } = pointsAfterMajors(window, 'liveHeapBytes', FILL_SECONDS)
      const limit = oldGenerationLimit(window)
      const last = values.length - 1
      const seconds = times[last] - times[0]
      if (limit === null || values.length < LEAST_FILL_READINGS || seconds < LEAST_FILL_SECONDS) {
        return null
      }
      const perSecond = (values[last] - values[0]) / seconds
      if (perSecond <= 0 || values.some((value, i) => i > 0 && value < values[i - 1])) return null
      return Math.max(0, (limit - values[last]) / perSecond - (window.nowSeconds - times[last]))
    }
  })
}
