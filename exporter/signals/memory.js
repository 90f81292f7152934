'use strict'

const { min, max, median } = require('simple-statistics')
const { RATE_SECONDS } = require('../series/window')
const { trend } = require('../statistics/trend')

/** @typedef {import('./index').Signal} Signal */

/** Freed memory that malloc keeps is looked for over the two hours of the middle tier: after a burst the evidence is old. */
const CHURN_SECONDS = 7200
/** A process that starts frees much of what it took to start: that is no sign of how it lives. */
const START_SHARE = 0.2
const START_LEAST_SECONDS = 10
const START_MOST_SECONDS = 300
/** Trend of the native memory: long enough for a load to come and go. */
const NATIVE_TREND_SECONDS = 600
/** What Node's own mallocs hold in a small app, and never less than was seen at the start. Measured 6–15 MiB on Node 18–26. */
const NATIVE_BASE_BYTES = 16 * 2 ** 20

/**
 * Buffers that come and go fill and leave the same memory: what is typical shows in the median, over more than one round.
 */
const TYPICAL_SECONDS = 60

/** @param {import('../series/window').Window} window */
const typicalNative = window => {
  const { values } = window.points('nativeBytes', TYPICAL_SECONDS)
  return values.length > 0 ? median(values) : null
}

/**
 * The last `seconds`, or less: without the start of the process.
 * @param {import('../series/window').Window} window @param {number} seconds
 */
function settledSeconds (window, seconds) {
  const start = Math.min(Math.max(window.nowSeconds * START_SHARE, START_LEAST_SECONDS), START_MOST_SECONDS)
  return Math.min(seconds, window.nowSeconds - start)
}

/** @type {WeakMap<import('../series/window').Window, import('../statistics/trend').Trend | null>} */
const memo = new WeakMap()

/** @param {import('../series/window').Window} window */
function nativeTrend (window) {
  const known = memo.get(window)
  if (known !== undefined) return known
  const { times, values } = window.points('nativeBytes', NATIVE_TREND_SECONDS)
  const found = trend(times, values)
  memo.set(window, found)
  return found
}

module.exports = {
  rssBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Resident set size, median of the last ${RATE_SECONDS} s.`,
    compute: window => {
      const { values } = window.points('rssBytes', RATE_SECONDS)
      return values.length > 0 ? median(values) : null
    }
  }),
  containerLimitBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory limit of the container: the smallest of its cgroup and the parents that can be seen.',
    compute: window => window.values.containerLimitBytes ?? null
  }),
  nativeBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: `Anonymous resident memory outside the V8 heap and Buffers, median of the last ${TYPICAL_SECONDS} s.`,
    compute: typicalNative
  }),
  mallocSpanBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Extent of what glibc malloc manages: [heap] and the 64 MiB arenas.',
    compute: window => window.last('mallocSpanBytes') ?? null
  }),
  mallocArenaShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of that extent which lies in the arenas of threads; the rest is the main arena, [heap].',
    compute: window => {
      const span = window.last('mallocSpanBytes')
      const arenas = window.last('mallocArenaBytes')
      return span && arenas !== undefined ? arenas / span : null
    }
  }),
  allocatorRetainedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Estimate of what malloc holds beyond need: native memory inside its extent, less what Node itself takes and what Buffers fill.',
    compute: window => {
      const native = typicalNative(window)
      const span = window.last('mallocSpanBytes')
      if (native === null || span === undefined) return null
      return Math.max(0, Math.min(native, span) - NATIVE_BASE_BYTES)
    }
  }),
  bufferChurnBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'How far the memory of Buffers came and went: highest less lowest external memory of the last two hours, without the start.',
    compute: window => {
      const seconds = settledSeconds(window, CHURN_SECONDS)
      const peaks = window.points('externalPeakBytes', seconds).values
      const readings = window.points('externalBytes', seconds).values
      return readings.length > 0 ? Math.max(max(readings), peaks.length > 0 ? max(peaks) : 0) - min(readings) : null
    }
  }),
  nativeReturnedBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Largest fall of the native memory in the last ten minutes, without the start: memory in use does not fall.',
    compute: window => {
      let highest = 0
      let fall = 0
      for (const value of window.points('nativeBytes', settledSeconds(window, NATIVE_TREND_SECONDS)).values) {
        highest = Math.max(highest, value)
        fall = Math.max(fall, highest - value)
      }
      return fall
    }
  }),
  nativeGrowthScore: /** @type {Signal} */ ({
    unit: 'score',
    help: 'Mann–Kendall standard score of the native memory’s growth.',
    compute: window => nativeTrend(window)?.z ?? null
  }),
  nativeGrowthFit: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'How straight the native memory grows: r² of the line.',
    compute: window => nativeTrend(window)?.fit ?? null
  }),
  nativeRiseBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'What the native memory grew by along that line.',
    compute: window => nativeTrend(window)?.rise ?? null
  }),
  nativeLateGrowthRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Slope of the native memory in the last third over the whole: 1 goes on, 0 has stopped.',
    compute: window => {
      const found = nativeTrend(window)
      return found && found.slope > 0 ? found.lastThirdSlope / found.slope : null
    }
  })
}
