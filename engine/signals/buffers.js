'use strict'

const { quantile } = require('../statistics/quantile')
const { RATE_SECONDS } = require('../history/window')
const { growthOf } = require('./growth')
const { acrossMajors, bytesTrend, trendOf } = require('./trend-signal')

/** @typedef {import('./index').Signal} Signal */

/** Time for which evidence of a burst stays valid: the length of the history's middle tier. */
const CHURN_SECONDS = 7200

/**
 * Growth per second of a value from the memory map. The value is constant between two scans.
 * @param {import('../history/tracks').TrackName} track
 * @returns {(window: import('../history/window').Window) => number | null} bytes a second
 */
const betweenLooks = track => window => {
  // The first point is older than the window, or part of the first scan.
  const { times, values } = window.pointsOnChange(track, track, CHURN_SECONDS)
  if (times.length === 0) return null
  const last = times.length - 1
  return last < 2 ? 0 : (values[last] - values[1]) / (times[last] - times[1])
}

/** Least number of readings of a range, and how old they may be if frames are rare. */
const LEAST_READINGS = 3
const OLDEST_SECONDS = 300

/**
 * Readings of the last seconds. If the loop is blocked for longer than that, these are the last few
 * frames: one reading shows no range.
 * @param {import('../history/window').Window} window
 * @param {import('../history/tracks').TrackName} track
 * @returns {number[]}
 */
function readLately (window, track) {
  const { values } = window.points(track, RATE_SECONDS)
  return values.length >= LEAST_READINGS
    ? values
    : window.points(track, OLDEST_SECONDS).values.slice(-LEAST_READINGS)
}

const externalAcrossMajors = acrossMajors('externalBytes')
const workersExternal = growthOf('workersExternalBytes')

/**
 * Growth across major GCs, multiplied by the r² of its line. The rest of the growth is noise:
 * temporary memory that was in use at a major GC.
 * @param {import('../history/window').Window} window
 */
function keptLately (window) {
  const { slope = 0, fit = 0 } = externalAcrossMajors(window) ?? {}
  return Math.max(0, slope * fit) * RATE_SECONDS
}

module.exports = {
  externalFloorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Retained external memory (Buffers, ArrayBuffers, WebAssembly): minimum of the last ' +
      `${RATE_SECONDS} s.`,
    compute: window => {
      const values = readLately(window, 'externalBytes')
      return values.length > 0 ? Math.min(...values) : null
    }
  }),
  externalPeakBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Peak of external memory: 90th percentile of the peaks of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const values = readLately(window, 'externalPeakBytes')
      return values.length > 0 ? quantile(values, 0.9) : null
    }
  }),
  externalWaitingBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Short-lived external memory of the last ${RATE_SECONDS} s: 90th percentile of its ` +
      'peaks, less its minimum and its growth across major GCs.',
    compute: window => {
      const peaks = readLately(window, 'externalPeakBytes')
      const readings = readLately(window, 'externalBytes')
      return peaks.length === 0 || readings.length === 0
        ? null
        : Math.max(0, quantile(peaks, 0.9) - Math.min(...readings) - keptLately(window))
    }
  }),
  externalTrend: bytesTrend('external memory across major GCs', externalAcrossMajors),
  workersExternalTrend: bytesTrend('external memory of worker threads', window =>
    trendOf(workersExternal(window))),
  arrayBuffersTrend: bytesTrend(
    'Buffers and ArrayBuffers across major GCs',
    acrossMajors('arrayBuffersBytes')
  ),
  webassemblyGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Growth of resident WebAssembly memory between scans of the memory map over two hours, ' +
      'whether or not V8 counts it as external.',
    compute: betweenLooks('webassemblyBytes')
  }),
  silentWorkerRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Room for the V8 heaps of workers that send no frames, if each has the heap size limit ' +
      'of the main thread and all grow alike.',
    compute: ({ values, workers, scan }) => {
      const { workerThreads, heapSizeLimitBytes } = values
      if (workerThreads === undefined || heapSizeLimitBytes === undefined || !scan) return null
      const silent = workerThreads - workers.count
      return silent > 0 ? Math.max(0, silent * heapSizeLimitBytes - scan.silentHeapBytes) : null
    }
  }),
  silentWorkerHeapGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Growth of the V8 heaps of workers that send no frames, between scans of the memory ' +
      'map over two hours.',
    compute: betweenLooks('silentWorkerHeapBytes')
  }),
  addonMallocGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: "Growth of an addon's own malloc, between scans of the memory map over two hours.",
    compute: betweenLooks('addonMallocBytes')
  }),
  arrayBuffersFloorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Retained Buffers and ArrayBuffers: minimum of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('arrayBuffersBytes', RATE_SECONDS)
      return values.length > 0 ? Math.min(...values) : null
    }
  }),
  arrayBuffersBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Buffers and ArrayBuffers now.',
    compute: window => window.last('arrayBuffersBytes') ?? null
  }),
  bufferPoolBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Size of a slab of the Buffer pool.',
    compute: window => window.values.bufferPoolBytes ?? null
  }),
  bufferSlabsFollowed: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Slabs of the Buffer pool checked in the last ten minutes, two major GCs after the ' +
      'pool left them.',
    compute: window => window.increase('bufferSlabsFollowed', 600)?.increase ?? null
  }),
  bufferSlabsKeptRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the checked slabs that a slice still kept alive.',
    compute: window => {
      const followed = window.increase('bufferSlabsFollowed', 600)
      const kept = window.increase('bufferSlabsKept', 600)
      return followed && kept && followed.increase > 0 ? kept.increase / followed.increase : null
    }
  }),
  bufferSlicesFillRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the living Buffers that slices and other views fill, by the last count of ' +
      'all views.',
    compute: ({ values: { bufferSlabsCountedBytes: slabs, bufferSlicesCountedBytes: bytes } }) =>
      slabs && bytes !== undefined ? Math.min(1, bytes / slabs) : null
  }),
  bufferPoolCountedRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the Buffers of the last count that have the size of a slab of the Buffer pool.',
    compute: ({ values: { bufferSlabsCountedBytes: slabs, bufferPoolCountedBytes: pool } }) =>
      slabs && pool !== undefined ? pool / slabs : null
  }),
  bufferSlabsCountedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Living Buffers of at most 4 MiB at the last count of all views.',
    compute: window => window.values.bufferSlabsCountedBytes ?? null
  }),
  bufferChurnBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory of short-lived Buffers: largest fall of external memory in the last two hours, ' +
      'without the start.',
    compute: window => window.overSpan('churn of Buffers', CHURN_SECONDS, () => {
      const seconds = window.settledSeconds(CHURN_SECONDS)
      const peaks = window.points('externalPeakBytes', seconds)
      const readings = window.points('externalBytes', seconds)
      if (readings.values.length === 0) return null
      let highest = 0
      let fall = 0
      readings.values.forEach((value, i) => {
        // The peak of a row occurred before the row's own reading.
        highest = Math.max(highest, value, peaks.values[i] ?? 0)
        fall = Math.max(fall, highest - value)
      })
      return fall
    })
  })
}
