'use strict'

const { leastSquares } = require('../statistics/least-squares')
const { theilSen } = require('../statistics/theil-sen')
const { MAX_POINTS, rSquared } = require('../statistics/trend')
const { pointsAfterMajors } = require('./growth')

/**
 * Growth of the live heap where major GCs are rare. V8 collects a large heap ever more rarely, so a
 * leak under a limit of gigabytes gives few readings of the live heap. Between two readings, the
 * growth of the old spaces is the promoted bytes; the second reading shows how many of them
 * survived. If nearly all survive, the old spaces measure the live heap between major GCs, too:
 * with only two readings, their growth since then has to continue the line.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 *
 * @typedef {object} KeptGrowth
 * @property {number} keptRatio share of the promoted bytes that survived the next major GC
 * @property {number} rise growth along the line through the readings, plus the later growth of the
 *   old spaces
 * @property {number} seconds duration of the rise
 * @property {number} slope bytes per second (Theil–Sen)
 * @property {number} fit r² of the line through the readings; with only two readings, r² of the
 *   line of the old spaces since then
 * @property {boolean} isLine true with enough readings for a line of their own
 * @property {number} newRatio part of the growth between the readings that exceeds the earlier
 *   readings of the window and half of their range
 * @property {number} lastRatio slope at the end of the readings, relative to the whole slope
 * @property {number} lateRatio the lower of two slopes, relative to the whole slope: the slope at
 *   the end of the readings, and the slope of the old spaces since
 */

/** Longest window of the line. */
const SPAN_SECONDS = 7200
/** Readings that form a line; between fewer, any growth is straight. */
const LINE_READINGS = 3
/** Least number of readings for a trend. */
const LEAST_READINGS = 2
/** With this many readings growth.js computes the trend of the live heap itself. */
const MOST_READINGS = 12
/** The first share of a process's life is its warm-up: it is left out if enough readings remain. */
const WARM_UP_SHARE = 0.2
/**
 * Least time since the last reading after which the old spaces show the present rate. The time
 * between the last two readings must have passed as well. Survivors reach the old spaces in
 * batches, one for each scavenge, and semi-spaces of 16 to 64 MiB fill in 10 to 40 s. Measured
 * earlier, a steady leak appeared at 0.1–0.3 of its rate.
 */
const LEAST_SINCE_SECONDS = 10
/** The same for a line over less than LEAST_SECONDS, which proves growth only if it goes on. */
const LEAST_YOUNG_SECONDS = 5
/**
 * Least part of the line over which the present rate is measured: forced GCs follow each other so
 * closely that a burst of the app would look like the present rate.
 */
const LATE_SHARE = 1 / 4
/**
 * Start of the line: the last reading this close to the lowest, as a share of the range. A leak may
 * begin with the load, long after the process.
 */
const FLOOR_SHARE = 0.1
/**
 * Least time from the first reading until now, and until the last reading. Garbage that survives a
 * few scavenges is promoted, too, so growth over a shorter time proves nothing.
 */
const LEAST_SECONDS = 30
const LEAST_LINE_SECONDS = 10
/**
 * Share of the growth between two readings that survived, from which on the old spaces measure the
 * live heap in this time as well.
 */
const MEASURED_RATIO = 0.7
/** A further reading may exceed all earlier ones by this share of their range. */
const SCATTER_SHARE = 0.5

/**
 * @param {Window} window
 * @returns {KeptGrowth | null} null with too few readings, over too short a time, without growth or
 *   without promotion
 */
const keptGrowth = window => window.once('kept growth', () => {
  const all = pointsAfterMajors(window, 'liveHeapBytes', SPAN_SECONDS)
  const from = lastAtFloor(all.values, warmUpEnd(window, all.times))
  const readings = all.times.length - from
  if (readings < LEAST_READINGS || readings > MOST_READINGS) return null
  const times = all.times.slice(from)
  const live = all.values.slice(from)
  const seconds = times[times.length - 1] - times[0]
  if (seconds < LEAST_LINE_SECONDS || window.nowSeconds - times[0] < LEAST_SECONDS) return null
  const line = theilSen(times, live)
  if (!line || line.slope <= 0) return null

  const old = oldSpaces(window)
  const promoted = promotedBytes(old, times, live)
  if (promoted <= 0) return null
  const last = live.length - 1
  const keptRatio = Math.max(0, live[last] - live[0]) / promoted
  // A capture causes two major GCs within seconds, and the slope between their readings is noise.
  const apartSeconds = Math.max(LEAST_SINCE_SECONDS, LATE_SHARE * seconds)
  const before = Math.max(0, times.findLastIndex(time => times[last] - time >= apartSeconds))
  const lastSeconds = times[last] - times[before]
  const lastSlope = (live[last] - live[before]) / lastSeconds
  const sinceSeconds = window.nowSeconds - times[last]
  const newRatio = newRatioOf(live[0], live[last], all.values.slice(0, from))
  const isLine = readings >= LINE_READINGS
  const isYoung = isLine && seconds < LEAST_SECONDS
  const isKnown = sinceSeconds >=
    (isYoung ? LEAST_YOUNG_SECONDS : Math.max(LEAST_SINCE_SECONDS, lastSeconds))
  const tells = isKnown && old.times.length > 0
  // The first of two readings may not belong to the start, when modules load.
  const isSettled = isLine || times[0] >= WARM_UP_SHARE * times[last]
  if (!isSettled || (!tells && (isYoung || !isLine))) {
    if (isLine) return null
    return measuredGrowth(old, times, live, { keptRatio, newRatio, nowSeconds: window.nowSeconds })
  }
  const since = tells
    ? keptRatio * (old.usedAt(old.times.length - 1) - live[last]) / sinceSeconds
    : lastSlope
  // Major GCs of a large heap are minutes apart. The growth of the old spaces since the last major
  // GC is added to the rise, up to the amount that the line predicts; the rest may be garbage.
  const goneOn = tells && since > 0 ? Math.min(since, line.slope) * sinceSeconds : 0
  const rise = line.slope * seconds + goneOn
  const overSeconds = goneOn > 0 ? seconds + sinceSeconds : seconds
  // Two readings may include the end of the start: the growth since then belongs to the rate.
  const slope = isLine ? line.slope : rise / overSeconds
  return {
    keptRatio,
    rise,
    seconds: overSeconds,
    slope,
    fit: isLine ? Math.max(0, rSquared(times, live, line)) : fitSince(old, times[last]),
    isLine,
    newRatio,
    lastRatio: lastSlope / slope,
    lateRatio: Math.min(lastSlope, since) / slope
  }
})

/**
 * Part of a rise that exceeds the earlier readings and their scatter: a further reading may be
 * higher by chance.
 * @param {number} from bytes
 * @param {number} to bytes
 * @param {readonly number[]} earlier readings before the rise, bytes
 * @returns {number} at most 1
 */
function newRatioOf (from, to, earlier) {
  if (to <= from) return 0
  if (earlier.length === 0) return 1
  const highest = Math.max(...earlier)
  const expected = highest + SCATTER_SHARE * (highest - Math.min(...earlier))
  return Math.min(1, (to - expected) / (to - from))
}

/**
 * Growth of the old spaces between two readings, without the warm-up, where the second reading
 * shows that most of it survived.
 * @param {Used} old
 * @param {readonly number[]} times times of the two readings
 * @param {readonly number[]} live live heap at these times, bytes
 * @param {{ keptRatio: number, newRatio: number, nowSeconds: number }} latest
 * @returns {KeptGrowth | null} null if the old spaces do not measure the live heap for long enough
 */
function measuredGrowth (old, [first, second], live, { keptRatio, newRatio, nowSeconds }) {
  const from = Math.max(first, WARM_UP_SHARE * second)
  if (keptRatio < MEASURED_RATIO || second - from < LEAST_SECONDS) return null
  const at = pointsBetween(old, from, second)
  const line = theilSen(at.times, at.bytes)
  if (!line || line.slope <= 0) return null
  const seconds = at.times[at.times.length - 1] - at.times[0]
  const third = Math.floor(at.times.length * 2 / 3)
  const lastSlope = slopeOfSteps(at.times.slice(third), at.bytes.slice(third))
  const sinceSeconds = nowSeconds - second
  // A full GC promotes all young objects, so the old spaces stay for a while after it.
  const since = sinceSeconds >= LEAST_SECONDS
    ? (old.usedAt(old.times.length - 1) - live[1]) / sinceSeconds
    : Infinity
  return {
    keptRatio,
    rise: keptRatio * line.slope * seconds,
    seconds,
    slope: keptRatio * line.slope,
    fit: Math.max(0, rSquared(at.times, at.bytes, line)),
    isLine: false,
    newRatio,
    lastRatio: lastSlope / line.slope,
    lateRatio: Math.min(lastSlope, since) / line.slope
  }
}

/**
 * Slope by least squares. Old spaces rise in steps, one for each scavenge. A median of slopes would
 * show only the time between two steps.
 * @param {readonly number[]} times
 * @param {readonly number[]} bytes
 * @returns {number} bytes per second; 0 with too few readings
 */
function slopeOfSteps (times, bytes) {
  const centered = (/** @type {readonly number[]} */ values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    return Float64Array.from(values, value => value - mean)
  }
  return leastSquares([centered(times)], centered(bytes))?.coefficients[0] ?? 0
}

/**
 * @param {Used} old
 * @param {readonly number[]} times times of readings
 * @param {readonly number[]} live live heap at these times, bytes
 * @returns {number} sum of the growth of the old spaces from each reading to the next major GC
 */
function promotedBytes (old, times, live) {
  let promoted = 0
  for (let i = 1, at = 0; i < times.length; i++) {
    let highest = live[i]
    for (; at < old.times.length && old.times[at] <= times[i]; at++) {
      if (old.times[at] > times[i - 1]) highest = Math.max(highest, old.usedAt(at))
    }
    promoted += Math.max(0, highest - live[i - 1])
  }
  return promoted
}

/**
 * @param {Window} window
 * @param {readonly number[]} times times of readings
 * @returns {number} index of the first reading to use: the first after the warm-up, or an earlier
 *   one if too few readings remain, or if all that remain follow the GCs of one capture
 */
function warmUpEnd (window, times) {
  const warm = times.findIndex(time => time >= window.nowSeconds * WARM_UP_SHARE)
  const at = Math.max(0, Math.min(warm < 0 ? Infinity : warm, times.length - LINE_READINGS))
  const apart = times.findLastIndex(time => times[times.length - 1] - time >= LEAST_LINE_SECONDS)
  return apart < 0 ? at : Math.min(at, apart)
}

/**
 * @param {Used} old
 * @param {number} seconds uptime
 * @returns {number} r² of the line through the used bytes of the old spaces since then
 */
function fitSince (old, seconds) {
  const { times, bytes } = pointsBetween(old, seconds, Infinity)
  const line = theilSen(times, bytes)
  return line ? Math.max(0, rSquared(times, bytes, line)) : 0
}

/**
 * @param {Used} old
 * @param {number} after seconds of uptime
 * @param {number} before seconds of uptime
 * @returns {{ times: number[], bytes: number[] }} used bytes of the old spaces in this time, at
 *   MAX_POINTS times at most
 */
function pointsBetween (old, after, before) {
  const all = old.times.map((_, i) => i).filter(i => old.times[i] > after && old.times[i] < before)
  const step = Math.ceil(all.length / MAX_POINTS)
  const at = all.filter((_, i) => i % step === 0)
  return { times: at.map(i => old.times[i]), bytes: at.map(old.usedAt) }
}

/**
 * @param {number[]} live
 * @param {number} from index of the first reading to use
 * @returns {number} index of the last reading near the lowest one
 */
function lastAtFloor (live, from) {
  let lowest = Infinity
  let highest = -Infinity
  for (let i = from; i < live.length; i++) {
    lowest = Math.min(lowest, live[i])
    highest = Math.max(highest, live[i])
  }
  const most = lowest + FLOOR_SHARE * (highest - lowest)
  let last = live.length - 1
  while (last >= from && live[last] > most) last--
  return last
}

/**
 * @typedef {{ times: number[], usedAt: (i: number) => number }} Used usedAt: bytes at the i-th time
 */

/**
 * Used bytes of the spaces of promoted objects.
 * @param {Window} window
 * @returns {Used}
 */
function oldSpaces (window) {
  const { times, values } = window.points('oldSpaceBytes', SPAN_SECONDS)
  const large = window.points('largeObjectSpaceBytes', SPAN_SECONDS).values
  // The other spaces hold code and immovable objects: a few MiB of the live heap, nearly constant.
  return { times, usedAt: i => values[i] + (large[i] ?? 0) }
}

const FIGURES = Object.freeze(/** @type {const} */ ([
  'RiseBytes', 'GrowthBytesPerSecond', 'GrowthFit', 'LateGrowthRatio'
]))

module.exports = {
  promotedKeptRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after two major GCs',
    afterEvent: true,
    help: 'Share of the bytes promoted between major GCs that survived the next one: near 1 they ' +
      'are retained, near 0 they become garbage.',
    compute: window => keptGrowth(window)?.keptRatio ?? null
  }),
  keptTrend: /** @type {import('./trend-signal').TrendSignal<typeof FIGURES[number], KeptGrowth>} */ ({
    unit: 'bytes',
    what: 'the live heap along the line through its readings, however few',
    help: 'Growth of the live heap along the line through its few readings, plus that of the old ' +
      'spaces since the last reading.',
    figures: FIGURES,
    compute: keptGrowth
  })
}
