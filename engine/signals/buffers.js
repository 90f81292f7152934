'use strict'

const { quantile } = require('../statistics/quantile')
const { RATE_SECONDS } = require('../history/window')
const { acrossMajors, bytesTrend } = require('./trend-signal')

/** @typedef {import('./index').Signal} Signal */

/** After a burst the evidence is old: the middle tier of the history. */
const CHURN_SECONDS = 7200

/**
 * Between two looks at the memory map the value stands still.
 * @param {import('../history/tracks').TrackName} track
 * @returns {(window: import('../history/window').Window) => number | null} bytes a second
 */
const betweenLooks = track => window => {
  const { times, values } = window.points(track, CHURN_SECONDS)
  if (times.length === 0) return null
  const looks = times.map((_, i) => i).filter(i => i > 0 && values[i] !== values[i - 1])
  const [first, last] = [looks[0], looks[looks.length - 1]]
  return looks.length < 2 ? 0 : (values[last] - values[first]) / (times[last] - times[first])
}

const externalAcrossMajors = acrossMajors('externalBytes')

/**
 * Growth counts as far as it is a line, by r²: the rest is the swing of what comes and goes, seen
 * at a few major GCs.
 * @param {import('../history/window').Window} window
 */
function keptLately (window) {
  const { slope = 0, fit = 0 } = externalAcrossMajors(window) ?? {}
  return Math.max(0, slope * fit) * RATE_SECONDS
}

module.exports = {
  externalFloorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'External memory – Buffers, ArrayBuffers, WebAssembly – that stays: lowest of the ' +
      `last ${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('externalBytes', RATE_SECONDS)
      return values.length > 0 ? Math.min(...values) : null
    }
  }),
  externalPeakBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'External memory at its height: the ninth decile of the peaks of the last ' +
      `${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('externalPeakBytes', RATE_SECONDS)
      return values.length > 0 ? quantile(values, 0.9) : null
    }
  }),
  externalWaitingBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'External memory that comes and goes: the ninth decile of its peaks, less its lowest ' +
      `and what it grew by across major GCs, over the last ${RATE_SECONDS} s.`,
    compute: window => {
      const peaks = window.points('externalPeakBytes', RATE_SECONDS).values
      const readings = window.points('externalBytes', RATE_SECONDS).values
      return peaks.length === 0 || readings.length === 0
        ? null
        : Math.max(0, quantile(peaks, 0.9) - Math.min(...readings) - keptLately(window))
    }
  }),
  externalTrend: bytesTrend('external memory across major GCs', externalAcrossMajors),
  arrayBuffersTrend: bytesTrend(
    'Buffers and ArrayBuffers across major GCs',
    acrossMajors('arrayBuffersBytes')
  ),
  webassemblyGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Growth of WebAssembly memories between the looks at the memory map, over two hours: ' +
      'of what is resident, whether V8 counts it as external or not.',
    compute: betweenLooks('webassemblyBytes')
  }),
  silentWorkerHeapGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Growth of the V8 heaps of workers that send no frames, between the looks at the ' +
      'memory map, over two hours.',
    compute: betweenLooks('silentWorkerHeapBytes')
  }),
  addonMallocGrowthBytesPerSecond: /** @type {Signal} */ ({
    unit: 'bytesPerSecond',
    expected: 'on Linux, from /proc',
    onMainThread: true,
    help: 'Growth of the memory that an addon takes from a malloc of its own, between the looks ' +
      'at the memory map, over two hours.',
    compute: betweenLooks('addonMallocBytes')
  }),
  arrayBuffersFloorBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Buffers and ArrayBuffers that stay: lowest of the last ${RATE_SECONDS} s.`,
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
    help: 'Size of the slabs that small Buffers are cut from.',
    compute: window => window.values.bufferPoolBytes ?? null
  }),
  bufferSlabsFollowed: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Slabs of the Buffer pool whose end was looked for in the last ten minutes, two major ' +
      'GCs after they were left.',
    compute: window => window.increase('bufferSlabsFollowed', 600)?.increase ?? null
  }),
  bufferSlabsKeptRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of those slabs that a slice still kept alive.',
    compute: window => {
      const followed = window.increase('bufferSlabsFollowed', 600)
      const kept = window.increase('bufferSlabsKept', 600)
      return followed && kept && followed.increase > 0 ? kept.increase / followed.increase : null
    }
  }),
  bufferChurnBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'How far the memory of Buffers came and went: largest fall of external memory in the ' +
      'last two hours, without the start.',
    compute: window => {
      const seconds = window.settledSeconds(CHURN_SECONDS)
      const peaks = window.points('externalPeakBytes', seconds)
      const readings = window.points('externalBytes', seconds)
      if (readings.values.length === 0) return null
      let highest = 0
      let fall = 0
      readings.values.forEach((value, i) => {
        // The peak of a row was before its reading.
        highest = Math.max(highest, value, peaks.values[i] ?? 0)
        fall = Math.max(fall, highest - value)
      })
      return fall
    }
  })
}
