'use strict'

const { liveHeapTrend } = require('./live-heap-trend')

/** @typedef {import('./index').Signal} Signal */

module.exports = {
  heapSizeLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Most that V8 lets the heap of this isolate grow to.',
    compute: window => window.values.heapSizeLimitBytes ?? null
  }),
  liveHeapBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Heap that survived the last major GC.',
    compute: window => window.values.liveHeapBytes ?? null
  }),
  liveHeapReadings: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Readings of the live heap since the warm-up, each after a major GC.',
    compute: window => liveHeapTrend(window).readings
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
    help: 'Slope of the second half over the slope of the first: a filling cache slows down, a leak does not.',
    compute: window => {
      const { trend } = liveHeapTrend(window)
      return trend && trend.earlySlope > 0 ? trend.lateSlope / trend.earlySlope : null
    }
  }),
  heapRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the live heap may still grow by until the heap size limit or the container limit, whichever comes first.',
    compute: window => {
      const { liveHeapBytes, heapSizeLimitBytes, containerLimitBytes, rssBytes, heapPhysicalBytes } = window.values
      if (liveHeapBytes === undefined || heapSizeLimitBytes === undefined) return null
      // In the container the heap shares with everything else that is resident.
      const beside = rssBytes !== undefined && heapPhysicalBytes !== undefined ? Math.max(0, rssBytes - heapPhysicalBytes) : 0
      const container = containerLimitBytes === undefined ? Infinity : containerLimitBytes - beside
      return Math.max(0, Math.min(heapSizeLimitBytes, container) - liveHeapBytes)
    }
  }),
  liveHeapShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Live heap over the heap size limit.',
    compute: window => {
      const { liveHeapBytes, heapSizeLimitBytes } = window.values
      return liveHeapBytes === undefined || !heapSizeLimitBytes ? null : liveHeapBytes / heapSizeLimitBytes
    }
  })
}
