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
const WEEK_DAYS = 7
/**
 * The last day predicts the same time as the usual day up to this factor, or up to
 * this difference; a weekend does not.
 */
const DAYS_AGREE_RATIO = 1.5
const DAYS_AGREE_SECONDS = 1800

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
 * Times until a limit is reached, if growth continues.
 * @typedef {{ likeUsualDay: number, likeLastDay: number }} Times in seconds, if each coming day
 *   resembles the usual day, or the last one
 */

/**
 * @param {Window} window
 * @param {Level | 'rssBytes'} level
 * @param {number} limit bytes
 * @param {number} now the level
 * @param {Pick<LastingTrend, 'of' | 'slope'>} growth
 * @returns {Times}
 */
function timesTo (window, level, limit, now, { of, slope }) {
  const name = `way of ${level} with ${of} to ${Math.round(limit / 2 ** 22)}`
  const { usual, last, isDayKnown } = window.lasting(name, ({ times, columns }) => {
    const end = times[times.length - 1] ?? 0
    const knownDays = Math.floor((end - (times[0] ?? end)) / DAY_SECONDS)
    // Times at which the coming days reach the limit, if each resembles one past day, the last day
    // first. Once a week is known, a coming day resembles the same day of the last week.
    const isWeekKnown = knownDays >= WEEK_DAYS
    const byDay = Array(isWeekKnown ? WEEK_DAYS : Math.max(1, knownDays)).fill(Infinity)
    const step = isWeekKnown ? WEEK_DAYS : 1
    columns[level].forEach((value, i) => {
      const back = Math.ceil((end - times[i]) / DAY_SECONDS)
      const day = Math.max(0, back - 1)
      if (!Number.isFinite(value) || times[i] < WARM_UP_MOST_SECONDS || day >= byDay.length) return
      const needed = Math.max(back, (limit - value) / (slope * DAY_SECONDS))
      const days = step * Math.ceil(needed / step)
      if (days > MOST_DAYS_AHEAD) return
      byDay[day] = Math.min(byDay[day], times[i] + days * DAY_SECONDS)
    })
    return isWeekKnown
      ? { usual: Math.min(...byDay), last: Math.min(...byDay), isDayKnown: true }
      : { usual: median(byDay), last: byDay[0], isDayKnown: knownDays > 0 }
  })
  const [likeUsualDay, likeLastDay] = [usual, last].map(at => Math.max(0, at - window.nowSeconds))
  if (isDayKnown) return { likeUsualDay, likeLastDay }
  // The present level may differ from the level in an hour, so it is used only until a full day is
  // known.
  const atOnce = Math.min(likeUsualDay, Math.max(0, limit - now) / slope)
  return { likeUsualDay: atOnce, likeLastDay: atOnce }
}

/**
 * @param {Window} window
 * @param {Pick<LastingTrend, 'of' | 'slope'>} growth of a part of RSS
 * @returns {Times} until RSS reaches its limit; Infinity without one, and in a worker, which does
 *   not report RSS
 */
function timesToMemoryLimit (window, growth) {
  const { rssBytes } = window.values
  const limit = memoryLimit(window)
  return limit === null || rssBytes === undefined
    ? { likeUsualDay: Infinity, likeLastDay: Infinity }
    : timesTo(window, 'rssBytes', limit, rssBytes, growth)
}

/**
 * Memory left at the busiest moment of the day.
 * @param {Window} window
 * @param {Level} of part of RSS that grows
 * @returns {number | null} bytes
 */
function peakMemoryRunway (window, of) {
  const growth = lastingGrowth(window, of)
  const limit = memoryLimit(window)
  const { rssBytes } = window.values
  if (!growth || limit === null || rssBytes === undefined) return null
  return Math.max(0, limit - Math.max(rssBytes, peakOfDay(window, 'rssBytes', growth)))
}

/**
 * Time until the first of several limits.
 * @param {Times[]} limits
 * @returns {number | null} seconds; null if the last day predicts another time than the usual day
 */
function firstOf (...limits) {
  const likeUsualDay = Math.min(...limits.map(times => times.likeUsualDay))
  const likeLastDay = Math.min(...limits.map(times => times.likeLastDay))
  const sooner = Math.min(likeUsualDay, likeLastDay)
  const agrees = Math.max(likeUsualDay, likeLastDay) <=
    Math.max(DAYS_AGREE_RATIO * sooner, sooner + DAYS_AGREE_SECONDS)
  return agrees ? likeUsualDay : null
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
  liveHeapPeakMemoryRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    onMainThread: true,
    help: "Memory left up to the container's limit, or the machine's memory, at the busiest " +
      'moment of the day, if RSS grows like the live heap.',
    compute: window => peakMemoryRunway(window, 'liveHeapBytes')
  }),
  liveHeapLimitInSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Time until the live heap reaches its limit, or RSS with it the memory limit, if coming ' +
      'days resemble past ones and liveHeapLastingTrend continues. Null if the last day ' +
      'predicts another time than the usual day.',
    compute: window => {
      const growth = lastingGrowth(window, 'liveHeapBytes')
      const runway = heapRunwayBytes.compute(window)
      const { liveHeapBytes } = window.values
      if (!growth || growth.slope <= 0 || runway === null || liveHeapBytes === undefined) {
        return null
      }
      const limit = runway + liveHeapBytes
      return firstOf(
        timesTo(window, 'liveHeapBytes', limit, liveHeapBytes, growth),
        timesToMemoryLimit(window, growth)
      )
    }
  }),
  outsideHeapLastingTrend: trend('outsideHeapBytes', 'the memory outside the heap'),
  outsideHeapLoadShareRatio: loadShareOf('outsideHeapBytes', 'the memory outside the heap'),
  outsideHeapEarlierHighBytes: earlierHighOf('outsideHeapBytes', 'the memory outside the heap'),
  memoryPeakRunwayBytes: /** @type {Signal} */ ({
    unit: 'bytes',
    help: "Memory left up to the container's limit, or the machine's memory, at the busiest " +
      'moment of the day.',
    compute: window => peakMemoryRunway(window, 'outsideHeapBytes')
  }),
  memoryLimitInSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: "Time until RSS reaches the container's limit, or the machine's memory, if coming days " +
      'resemble past ones and outsideHeapLastingTrend continues. Null if the last day predicts ' +
      'another time than the usual day.',
    compute: window => {
      const growth = lastingGrowth(window, 'outsideHeapBytes')
      if (!growth || growth.slope <= 0 || memoryLimit(window) === null) return null
      return firstOf(timesToMemoryLimit(window, growth))
    }
  })
}

/** @param {Window} window */
const memoryLimit = ({ values, hello }) =>
  values.containerLimitBytes ?? hello.hostMemoryBytes ?? null
