'use strict'

const { LASTING } = require('../history/history')
const { DAY_SECONDS, unexplainedGrowth } = require('../statistics/unexplained-growth')
const { median } = require('../statistics/quantile')
const { heapRunwayBytes } = require('./heap')
const { peakOfDay } = require('./day-peak')
const { readOldLimit } = require('./heap-sizes')
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
const DAYS_AGREE_RATIO = 1.3
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
 * @typedef {{ likely: number, check: number, soonest: number }} Times in seconds. likely: if each
 *   coming day resembles the usual day, or from a week on the same weekday; check: if it resembles
 *   the last day, or from a week on the usual day; soonest: if it resembles the busiest day
 */

/**
 * @param {(name: keyof Times) => number} secondsOf
 * @returns {Times}
 */
const timesOf = secondsOf => ({
  likely: secondsOf('likely'), check: secondsOf('check'), soonest: secondsOf('soonest')
})

/**
 * @param {Window} window
 * @param {Level | 'rssBytes'} level
 * @param {number} limit bytes
 * @param {number} now the level
 * @param {Pick<LastingTrend, 'of' | 'slope' | 'seconds'>} growth
 * @returns {Times}
 */
function timesTo (window, level, limit, now, { of, slope, seconds }) {
  const name = `way of ${level} with ${of} to ${Math.round(limit / 2 ** 22)}`
  const { isDayKnown, ...reached } = window.lasting(name, ({ times, columns }) => {
    const end = times[times.length - 1] ?? 0
    const days = Math.floor((end - (times[0] ?? end)) / DAY_SECONDS)
    // Days before the growth began had another rate.
    const sinceSeconds = seconds + WARM_UP_MOST_SECONDS + LASTING.stepSeconds
    const grownDays = Math.floor(sinceSeconds / DAY_SECONDS)
    const knownDays = Math.min(days, Math.max(1, grownDays))
    const rows = { times, values: columns[level] }
    const byDay = reachedByDay(rows, limit, slope, Math.max(1, knownDays), 1)
    const isWeekKnown = knownDays >= WEEK_DAYS
    const byWeek = isWeekKnown ? reachedByDay(rows, limit, slope, WEEK_DAYS, WEEK_DAYS) : []
    return {
      likely: isWeekKnown ? Math.min(...byWeek) : median(byDay),
      check: isWeekKnown ? median(byDay) : byDay[0],
      soonest: Math.min(...(isWeekKnown ? byWeek : byDay)),
      isDayKnown: knownDays > 0
    }
  })
  const inSeconds = timesOf(name => Math.max(0, reached[name] - window.nowSeconds))
  if (isDayKnown) return inSeconds
  // The present level may differ from the level in an hour, so it is used only until a full day is
  // known.
  const atOnce = Math.min(inSeconds.likely, Math.max(0, limit - now) / slope)
  return timesOf(() => atOnce)
}

/**
 * Times at which the coming days reach a limit, if each resembles one past day.
 * @param {{ times: number[], values: number[] }} rows
 * @param {number} limit bytes
 * @param {number} slope bytes a second
 * @param {number} days number of past days
 * @param {number} step days after which a day returns
 * @returns {number[]} uptime for each past day, the last day first; Infinity if it never does
 */
function reachedByDay ({ times, values }, limit, slope, days, step) {
  const end = times[times.length - 1] ?? 0
  const reached = Array(days).fill(Infinity)
  values.forEach((value, i) => {
    const back = Math.ceil((end - times[i]) / DAY_SECONDS)
    const day = Math.max(0, back - 1)
    if (!Number.isFinite(value) || times[i] < WARM_UP_MOST_SECONDS || day >= days) return
    const needed = Math.max(back, (limit - value) / (slope * DAY_SECONDS))
    const ahead = step * Math.ceil(needed / step)
    if (ahead > MOST_DAYS_AHEAD) return
    reached[day] = Math.min(reached[day], times[i] + ahead * DAY_SECONDS)
  })
  return reached
}

/**
 * @param {Window} window
 * @param {Pick<LastingTrend, 'of' | 'slope' | 'seconds'>} growth of a part of RSS
 * @returns {Times} until RSS reaches its limit; Infinity without one, and in a worker, which does
 *   not report RSS
 */
function timesToMemoryLimit (window, growth) {
  const { rssBytes } = window.values
  const limit = memoryLimit(window)
  return limit === null || rssBytes === undefined
    ? timesOf(() => Infinity)
    : timesTo(window, 'rssBytes', limit, rssBytes, growth)
}

/**
 * Time until the first of several limits.
 * @param {Times[]} limits
 * @returns {number | null} seconds; null if the known days predict different times: a weekend tells
 *   nothing of the Monday after it
 */
function firstOf (...limits) {
  const first = timesOf(name => Math.min(...limits.map(times => times[name])))
  const times = Object.values(first)
  const sooner = Math.min(...times)
  const agrees =
    Math.max(...times) <= Math.max(DAYS_AGREE_RATIO * sooner, sooner + DAYS_AGREE_SECONDS)
  return agrees ? first.likely : null
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
  liveHeapPeakShareRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after the first major GC',
    afterEvent: true,
    help: 'Maximum of the live heap in the last week, divided by the maximum of the old ' +
      'generation.',
    compute: window => {
      const { liveHeapBytes } = window.values
      const limit = readOldLimit(window)
      if (liveHeapBytes === undefined || limit === null) return null
      const lately = window.overSpan('high of the live heap', QUICK_SECONDS, () =>
        Math.max(...window.points('liveHeapBytes', QUICK_SECONDS).values))
      return Math.max(liveHeapBytes, lately, earlierHigh(window, 'liveHeapBytes') ?? 0) / limit
    }
  }),
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
