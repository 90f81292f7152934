'use strict'

const { theilSen } = require('../statistics/theil-sen')
const { rSquared } = require('../statistics/trend')
const { pointsAfterMajors } = require('./growth')

/**
 * Growth of the live heap where major GCs are rare. V8 collects a large heap ever more rarely, so a
 * leak under a limit of gigabytes shows few readings of the live heap. Between two of them the old
 * spaces say what was promoted; the second says how much of that survived. Where nearly all
 * survives, the old spaces tell of the live heap between major GCs, too.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 *
 * @typedef {object} KeptGrowth
 * @property {number} keptRatio share of the promoted bytes that survived the next major GC
 * @property {number} rise bytes, by the line through the readings, and by the old spaces since
 * @property {number} seconds in which it rose
 * @property {number} slope bytes per second (Theil–Sen)
 * @property {number} fit r² of the line through the readings
 * @property {number} lateRatio slower of the slope at the end and that of the old spaces since,
 *   over the whole
 */

/** Longest part of a life that the line is looked for in. */
const SPAN_SECONDS = 7200
/** Two intervals between major GCs are the least that can agree. */
const LEAST_READINGS = 3
/** With more, the trend of the live heap itself is known: growth.js. */
const MOST_READINGS = 12
/** The first part of a life is warm-up, as long as enough readings are left without it. */
const WARM_UP_SHARE = 0.2
/**
 * The old spaces say how it goes on once this much time has passed since the last reading, and no
 * less than between the last two readings: survivors reach them in lumps, one each scavenge, and
 * semi-spaces of 16 to 64 MiB fill in 10 to 40 s. Sooner a straight leak measured 0.1–0.3.
 */
const LEAST_SINCE_SECONDS = 10
/**
 * How it goes on is read off this part of the line at least: forced GCs follow each other so
 * closely that a burst of the app would be taken for it.
 */
const LATE_SHARE = 1 / 4
/**
 * The line begins where the live heap was last this near to its lowest, as a share of its range: a
 * leak may begin with the load, long after the process.
 */
const FLOOR_SHARE = 0.1
/**
 * Garbage that survives a few scavenges is promoted, too: less than a line of this length is no
 * growth.
 */
const LEAST_SECONDS = 30

/**
 * @param {Window} window
 * @returns {KeptGrowth | null} null with too few readings, over too short a time, or without
 *   promotion
 */
const keptGrowth = window => window.once('kept growth', () => {
  const all = pointsAfterMajors(window, 'liveHeapBytes', SPAN_SECONDS)
  const warm = all.times.findIndex(time => time >= window.nowSeconds * WARM_UP_SHARE)
  const settled = Math.max(
    0,
    Math.min(warm < 0 ? Infinity : warm, all.times.length - LEAST_READINGS)
  )
  const from = lastAtFloor(all.values, settled)
  const readings = all.times.length - from
  if (readings < LEAST_READINGS || readings > MOST_READINGS) return null
  const times = all.times.slice(from)
  const live = all.values.slice(from)
  const seconds = times[times.length - 1] - times[0]
  if (seconds < LEAST_SECONDS) return null
  const line = theilSen(times, live)
  if (!line) return null

  const old = oldSpaces(window)
  let promoted = 0
  for (let i = 1, at = 0; i < times.length; i++) {
    let highest = live[i]
    for (; at < old.times.length && old.times[at] <= times[i]; at++) {
      if (old.times[at] > times[i - 1]) highest = Math.max(highest, old.values[at])
    }
    promoted += Math.max(0, highest - live[i - 1])
  }
  if (promoted <= 0) return null
  const last = live.length - 1
  const keptRatio = Math.max(0, live[last] - live[0]) / promoted
  // A capture collects twice within seconds: two readings so close have no slope but noise.
  const apartSeconds = Math.max(LEAST_SINCE_SECONDS, LATE_SHARE * seconds)
  const before = Math.max(0, times.findLastIndex(time => times[last] - time >= apartSeconds))
  const lastSeconds = times[last] - times[before]
  const lastSlope = (live[last] - live[before]) / lastSeconds
  const sinceSeconds = window.nowSeconds - times[last]
  const isKnown = sinceSeconds >= Math.max(LEAST_SINCE_SECONDS, lastSeconds)
  const tells = isKnown && old.times.length > 0
  const since = tells
    ? keptRatio * (old.values[old.values.length - 1] - live[last]) / sinceSeconds
    : lastSlope
  // Majors of a large heap come minutes apart: what the old spaces gained since the last one is
  // part of the rise, as far as the line would lead. More may be garbage.
  const goneOn = tells && since > 0 ? Math.min(since, line.slope) * sinceSeconds : 0
  return {
    keptRatio,
    rise: line.slope * seconds + goneOn,
    seconds: goneOn > 0 ? seconds + sinceSeconds : seconds,
    slope: line.slope,
    fit: Math.max(0, rSquared(times, live, line)),
    lateRatio: line.slope > 0 ? Math.min(lastSlope, since) / line.slope : 0
  }
})

/**
 * @param {number[]} live
 * @param {number} from the first reading that counts
 * @returns {number} index of the last reading near the lowest
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

/** Used bytes of the spaces that objects are promoted to. @param {Window} window */
function oldSpaces (window) {
  const { times, values } = window.points('oldSpaceBytes', SPAN_SECONDS)
  const large = window.points('largeObjectSpaceBytes', SPAN_SECONDS)
  // The other spaces hold code and what never moves: of the live heap they are a few MiB that stay.
  return { times, values: values.map((used, i) => used + (large.values[i] ?? 0)) }
}

const FIGURES = Object.freeze(/** @type {const} */ ([
  'RiseBytes', 'GrowthBytesPerSecond', 'GrowthFit', 'LateGrowthRatio'
]))

module.exports = {
  promotedKeptRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after three major GCs',
    afterEvent: true,
    help: 'Share of what was promoted between major GCs that survived the next one: near 1 it ' +
      'is kept, near 0 it was garbage.',
    compute: window => keptGrowth(window)?.keptRatio ?? null
  }),
  keptTrend: /** @type {import('./trend-signal').TrendSignal<typeof FIGURES[number], KeptGrowth>} */ ({
    unit: 'bytes',
    what: 'the live heap along the line through its readings, however few',
    help: 'Growth of the live heap by the line through its readings, however few they are, and of ' +
      'the old spaces since the last one.',
    figures: FIGURES,
    compute: keptGrowth
  })
}
