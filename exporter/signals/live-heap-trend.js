'use strict'

const { trend } = require('../statistics/trend')

/** Spans a trend is looked for in, each as long as one tier of the history. */
const SPANS_SECONDS = [600, 7200, 86_400]
/** The first part of a life is warm-up: modules load, caches and pools fill, code is compiled. */
const WARM_UP_SHARE = 0.2
const WARM_UP_MOST_SECONDS = 300

/**
 * @typedef {import('../statistics/trend').Trend} Trend
 * @type {WeakMap<import('../series/window').Window, { trend: Trend | null, readings: number }>}
 */
const memo = new WeakMap()

/**
 * The readings of the live heap, one after each major GC that was seen, and their trend: of all spans, the one in which the
 * floor rose most like a line – a leak that began yesterday is no line over the whole life.
 *
 * @param {import('../series/window').Window} window
 * @returns {{ trend: Trend | null, readings: number }} trend: y in bytes, x in seconds; readings: since the warm-up
 */
function liveHeapTrend (window) {
  const known = memo.get(window)
  if (known) return known
  const warmUpSeconds = Math.min(window.nowSeconds * WARM_UP_SHARE, WARM_UP_MOST_SECONDS)
  /** @type {Trend | null} */
  let best = null
  let readings = 0
  for (const span of SPANS_SECONDS) {
    const { x, y } = readingsOf(window, Math.min(span, window.nowSeconds - warmUpSeconds))
    readings = Math.max(readings, x.length)
    const found = trend(x, y)
    if (found && (!best || found.z * found.fit > best.z * best.fit)) best = found
    if (window.nowSeconds <= span) break
  }
  const result = { trend: best, readings }
  memo.set(window, result)
  return result
}

/** @param {import('../series/window').Window} window @param {number} seconds */
function readingsOf (window, seconds) {
  const majors = window.points('liveHeapMajors', seconds)
  const live = window.points('liveHeapBytes', seconds)
  /** @type {number[]} */
  const x = []
  /** @type {number[]} */
  const y = []
  live.times.forEach((time, i) => {
    // The same count of majors is the same reading, sent again.
    if (i > 0 && majors.values[i] === majors.values[i - 1]) return
    x.push(time)
    y.push(live.values[i])
  })
  return { x, y }
}

module.exports = { liveHeapTrend }
