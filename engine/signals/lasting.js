'use strict'

const { DAY_SECONDS, unexplainedGrowth } = require('../statistics/unexplained-growth')
const { median } = require('../statistics/quantile')
const { heapRunwayBytes } = require('./heap')
const { peakOfDay } = require('./day-peak')
const { QUICK_SECONDS, loadShare } = require('./load-share')

/**
 * This file computes growth over hours and days that neither the load nor the hour of the day
 * explains.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../statistics/unexplained-growth').Growth} Growth
 * @typedef {'liveHeapBytes' | 'outsideHeapBytes'} Level
 * @typedef {Growth & { of: Level, rise: number, score: number }} LastingTrend rise: growth over
 *   the whole time; score: slope divided by its standard error, significant above 4
 */

/** Warm-up, the first part of a process's life: modules load, caches and pools fill. */
const WARM_UP_SHARE = 0.2
const WARM_UP_LEAST_SECONDS = 600
const WARM_UP_MOST_SECONDS = 1800
/**
 * Recent part of the process's life, examined in addition to the whole: a leak may begin when
 * another service is deployed.
 */
const RECENT_SECONDS = 3 * DAY_SECONDS
/** Number of days ahead in which a limit may be reached. */
const MOST_DAYS_AHEAD = 400
/** The last day predicts the same time as the usual day up to this factor, as no weekend does. */
const DAYS_AGREE_RATIO = 1.5
/** Number of standard deviations of a reading by which the room is known. */
const NOISE_FACTOR = 3

/**
 * @param {Window} window
 * @param {Level} level
 * @returns {LastingTrend | null}
 */
const lastingGrowth = (window, level) =>
  window.once(`lasting ${level}`, () =>
    window.lasting(level, ({ times, columns }) => {
      const end = times[times.length - 1] ?? 0
      const since = Math.min(
        WARM_UP_MOST_SECONDS,
        Math.max(WARM_UP_LEAST_SECONDS, WARM_UP_SHARE * end)
      )
      const spans = end > RECENT_SECONDS + DAY_SECONDS ? [since, end - RECENT_SECONDS] : [since]
      let best = null
      /** @type {number | null} */
      let aboveAllDays = null
      for (const from of spans) {
        const rows = times.map((_, i) => i).filter(i => times[i] >= from)
        const pick = (/** @type {number[]} */ column) => rows.map(i => column[i])
        const found = unexplainedGrowth({
          times: pick(times),
          level: pick(columns[level]),
          loads: [columns.workSeconds, columns.scavenges].map(pick)
        })
        // The recent part may lack the days before a weekend.
        if (from === since) aboveAllDays = found?.aboveAllDays ?? null
        if (!best || (found && isStronger(found, best))) best = found
      }
      return best && {
        ...best,
        of: level,
        aboveAllDays,
        rise: best.slope * best.seconds,
        score: best.error > 0 ? best.slope / best.error : 0
      }
    })
  )

/**
 * True if recent growth is to be used, because it is faster than growth over the whole life. Slower
 * recent growth, as at a weekend, is no better estimate.
 * @param {Growth} recent
 * @param {Growth} whole
 */
const isStronger = (recent, whole) =>
  recent.slope > whole.slope && recent.slope / recent.error > whole.slope / whole.error

/**
 * Highest level before the last two hours.
 * @param {Window} window
 * @param {Level} level
 * @returns {number | null}
 */
const earlierHigh = (window, level) => window.lasting(`high of ${level}`, ({ times, columns }) => {
  const end = times[times.length - 1] ?? 0
  const values = columns[level].filter(
    (value, i) =>
      Number.isFinite(value) && times[i] >= WARM_UP_MOST_SECONDS && times[i] < end - QUICK_SECONDS
  )
  return values.length > 0 ? Math.max(...values) : null
})

/**
 * Time until a limit is reached, if the coming days resemble the past ones and growth continues.
 * @param {Window} window
 * @param {Level | 'rssBytes'} level
 * @param {number} limit bytes
 * @param {number} now the level
 * @param {Pick<LastingTrend, 'of' | 'slope' | 'noise'>} growth
 * @returns {number | null} seconds to the limit; null if the last day predicts another time than
 *   the usual day, as at a weekend, or if the room is within the noise of a reading
 */
function secondsTo (window, level, limit, now, { of, slope, noise }) {
  const name = `way of ${level} with ${of} to ${Math.round(limit / 2 ** 22)}`
  const { reached, reachedLikeLastDay, isDayKnown } = window.lasting(name, ({ times, columns }) => {
    const end = times[times.length - 1] ?? 0
    const knownDays = Math.floor((end - (times[0] ?? end)) / DAY_SECONDS)
    // Times at which the coming days reach the limit, if each resembles one past day, the last day
    // first.
    const byDay = Array(Math.max(1, knownDays)).fill(Infinity)
    columns[level].forEach((value, i) => {
      const back = Math.ceil((end - times[i]) / DAY_SECONDS)
      const day = Math.max(0, back - 1)
      if (!Number.isFinite(value) || times[i] < WARM_UP_MOST_SECONDS || day >= byDay.length) return
      const days = Math.max(back, Math.ceil((limit - value) / (slope * DAY_SECONDS)))
      if (days > MOST_DAYS_AHEAD) return
      byDay[day] = Math.min(byDay[day], times[i] + days * DAY_SECONDS)
    })
    return { reached: median(byDay), reachedLikeLastDay: byDay[0], isDayKnown: knownDays > 0 }
  })
  const predicted = Math.max(0, reached - window.nowSeconds)
  // The present level may differ from the level in an hour, so it is used only until a full day is
  // known.
  if (!isDayKnown) return Math.min(predicted, Math.max(0, limit - now) / slope)
  const likeLastDay = Math.max(0, reachedLikeLastDay - window.nowSeconds)
  const daysAgree =
    Math.max(predicted, likeLastDay) <= DAYS_AGREE_RATIO * Math.min(predicted, likeLastDay)
  return daysAgree && predicted * slope >= NOISE_FACTOR * noise ? predicted : null
}

/**
 * Time until RSS reaches the memory limit, if it grows with a part of it.
 * @param {Window} window
 * @param {Pick<LastingTrend, 'of' | 'slope' | 'noise'>} growth of this part
 * @returns {number | null} seconds; Infinity without a limit; null if unknown
 */
function secondsToMemoryLimit (window, growth) {
  const { rssBytes } = window.values
  if (rssBytes === undefined) return null
  return secondsTo(window, 'rssBytes', memoryLimit(window) ?? Infinity, rssBytes, growth)
}

const FIGURES = Object.freeze(/** @type {const} */ ([
  'RiseBytes', 'GrowthBytesPerSecond', 'Score', 'LateRatio'
]))

/**
 * @param {Level} level
 * @param {string} what
 * @returns {import('./trend-signal').TrendSignal<typeof FIGURES[number], LastingTrend>}
 */
const trend = (level, what) => ({
  unit: 'bytes',
  what,
  help: `Growth of ${what} over hours and days that neither the load nor the hour of the day ` +
    'explains; known after about two hours.',
  figures: FIGURES,
  compute: window => lastingGrowth(window, level)
})

/**
 * @param {Level} level
 * @param {string} what
 * @returns {Signal}
 */
const loadShareOf = (level, what) => ({
  unit: 'ratio',
  help: `Share of the rise of ${what} within the last two hours that rising CPU time or ` +
    'allocation explains.',
  compute: window => loadShare(window, level)
})

/**
 * @param {Level} level
 * @param {string} what
 * @returns {Signal}
 */
const earlierHighOf = (level, what) => ({
  unit: 'bytes',
  expected: 'after two hours',
  help: `Maximum of ${what}, in steps of ten minutes, in the week before the last two hours.`,
  compute: window => earlierHigh(window, level)
})

module.exports = {
  liveHeapLastingTrend: trend('liveHeapBytes', 'the live heap'),
  liveHeapLoadShareRatio: loadShareOf('liveHeapBytes', 'the live heap'),
  liveHeapEarlierHighBytes: earlierHighOf('liveHeapBytes', 'the live heap'),
  liveHeapPeakRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: 'Memory left for the live heap at the busiest moment of the day.',
    compute: window => {
      const growth = lastingGrowth(window, 'liveHeapBytes')
      const runway = heapRunwayBytes.compute(window)
      const { liveHeapBytes } = window.values
      if (!growth || runway === null || liveHeapBytes === undefined) return null
      const peak = Math.max(liveHeapBytes, peakOfDay(window, 'liveHeapBytes', growth))
      return Math.max(0, runway + liveHeapBytes - peak)
    }
  }),
  liveHeapLimitInSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time until the live heap reaches its limit, if coming days resemble past ones and ' +
      'liveHeapLastingTrend continues.',
    compute: window => {
      const growth = lastingGrowth(window, 'liveHeapBytes')
      const runway = heapRunwayBytes.compute(window)
      const { liveHeapBytes } = window.values
      if (!growth || growth.slope <= 0 || runway === null || liveHeapBytes === undefined) {
        return null
      }
      const limit = runway + liveHeapBytes
      const heapSeconds = secondsTo(window, 'liveHeapBytes', limit, liveHeapBytes, growth)
      const memorySeconds = secondsToMemoryLimit(window, growth)
      return heapSeconds === null || memorySeconds === null
        ? null
        : Math.min(heapSeconds, memorySeconds)
    }
  }),
  outsideHeapLastingTrend: trend('outsideHeapBytes', 'the memory outside the heap'),
  outsideHeapLoadShareRatio: loadShareOf('outsideHeapBytes', 'the memory outside the heap'),
  outsideHeapEarlierHighBytes: earlierHighOf('outsideHeapBytes', 'the memory outside the heap'),
  memoryPeakRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "Memory left up to the container's limit, or the machine's memory, at the busiest " +
      'moment of ' +
      'the day.',
    compute: window => {
      const growth = lastingGrowth(window, 'outsideHeapBytes')
      const limit = memoryLimit(window)
      const { rssBytes } = window.values
      if (!growth || limit === null || rssBytes === undefined) return null
      return Math.max(0, limit - Math.max(rssBytes, peakOfDay(window, 'rssBytes', growth)))
    }
  }),
  memoryLimitInSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: "Time until RSS reaches the container's limit, or the machine's memory, if coming days " +
      'resemble past ones and outsideHeapLastingTrend continues.',
    compute: window => {
      const growth = lastingGrowth(window, 'outsideHeapBytes')
      return growth && growth.slope > 0 ? secondsToMemoryLimit(window, growth) : null
    }
  })
}

/** @param {Window} window */
const memoryLimit = ({ values, hello }) =>
  values.containerLimitBytes ?? hello.hostMemoryBytes ?? null
