'use strict'

const { median } = require('../statistics/quantile')
const { ENOUGH_READINGS, liveHeapTrend, warmUpSeconds } = require('./growth')

/** Readings that come more rarely than seven in so long predict no time. */
const LOOK_BACK_SECONDS = 7200
/** Readings that more than so many major GCs would not complete are not worth a time. */
const MOST_AHEAD = 14
/** Verdicts are reached every two seconds. */
const LEAST_WAIT_SECONDS = 2
/** Gaps between major GCs that are compared. */
const LAST_GAPS = 4
/**
 * V8 collects a growing heap ever more rarely: where a gap exceeds the usual one by this factor no
 * time is predicted. With 1.3, and 1.5 below, 88 % of 235 predictions on the recordings came true
 * within a half or three seconds.
 */
const STRETCHED_RATIO = 1.3
/** Gaps that differ by more follow a load, and predict nothing. */
const UNEVEN_RATIO = 1.5

/**
 * Time until the live heap has enough readings for a trend. Each major GC gives one, and the
 * growing warm-up takes early ones away.
 * @param {import('../history/window').Window} window
 * @returns {number | null} seconds; null where major GCs do not come evenly
 */
function secondsUntilTrend (window) {
  const { nowSeconds } = window
  const at = readingTimes(window)
  const gaps = at.slice(-LAST_GAPS - 1).map((time, i, all) => time - all[i - 1]).slice(1)
  if (gaps.length < LAST_GAPS) return null
  const gap = median(gaps)
  const newest = at[at.length - 1]
  const lengthens = Math.max(nowSeconds - newest, gaps[gaps.length - 1]) > STRETCHED_RATIO * gap
  if (lengthens || Math.max(...gaps) > UNEVEN_RATIO * Math.min(...gaps)) return null
  // A trend may be a few seconds older, and count the reading that holds when the warm-up ends.
  const besides = liveHeapTrend(window).readings - countSince(at, warmUpSeconds(nowSeconds))
  for (let more = 1; more <= MOST_AHEAD; more++) {
    at.push(Math.max(nowSeconds, newest + more * gap))
    const time = at[at.length - 1]
    if (countSince(at, warmUpSeconds(time)) + besides >= ENOUGH_READINGS) {
      return Math.max(LEAST_WAIT_SECONDS, time - nowSeconds)
    }
  }
  return null
}

/**
 * @param {number[]} at
 * @param {number} sinceSeconds
 */
const countSince = (at, sinceSeconds) => at.filter(time => time > sinceSeconds).length

/**
 * When major GCs gave a new reading, oldest first.
 * @param {import('../history/window').Window} window
 * @returns {number[]} uptime
 */
function readingTimes (window) {
  const { times, values } = window.points('liveHeapMajors', LOOK_BACK_SECONDS)
  return times.filter((_, i) => i === 0 || values[i] !== values[i - 1])
}

module.exports = { secondsUntilTrend }
