import { svg } from './dom.mjs'

const WIDTH = 120
const HEIGHT = 32
/** Margin for the width of a line. */
const EDGE = 2
/**
 * Largest ratio of the threshold to the series: a higher threshold would flatten the series, so it
 * is drawn at the top edge.
 */
const FAR_ABOVE = 4
/** Largest value on the axis, relative to the series, if the threshold is at the top edge. */
const ROOM_BELOW_FAR = 1.5
/** Number of points in a miniature: one for every two pixels. */
const POINTS = 60

/**
 * A series in miniature, with its threshold. It is hidden from screen readers, because the sentence
 * beside it contains the numbers.
 * @param {readonly (number | null)[]} values oldest first; null for gaps
 * @param {object} [drawn]
 * @param {number} [drawn.threshold] threshold, in the unit of the values
 * @param {[first: number, last: number]} [drawn.trend] a straight line through the values
 * @param {boolean} [drawn.isZeroBased] true if the axis begins at 0
 * @param {boolean} [drawn.isToScale] true to draw a threshold far above to scale, although it
 *   flattens the series
 * @returns {SVGElement | undefined} undefined with fewer than two values
 */
export function miniature (
  values, { threshold, trend, isZeroBased = true, isToScale = false } = {}
) {
  const points = thin(values)
  const known = points.flatMap(value => value ?? [])
  if (known.length < 2) return undefined
  const highest = Math.max(...known)
  const isFar = !isToScale && threshold !== undefined && threshold > FAR_ABOVE * highest
  const shown = [...known, ...trend ?? [], ...threshold === undefined || isFar ? [] : [threshold]]
  const least = isZeroBased ? Math.min(0, ...shown) : Math.min(...shown)
  const most = Math.max(...shown) * (isFar ? ROOM_BELOW_FAR : 1)
  const y = (/** @type {number} */ value) => most === least
    ? HEIGHT - EDGE
    : HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - least) / (most - least)
  const x = (/** @type {number} */ i) => WIDTH * i / (points.length - 1)
  let path = ''
  points.forEach((value, i) => {
    if (value === null) return
    const isStart = path === '' || points[i - 1] === null
    path += `${isStart ? 'M' : 'L'}${x(i).toFixed(1)} ${y(value).toFixed(1)}`
  })
  const line = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    svg('line', { class: name, x1: 0, x2: WIDTH, y1: from.toFixed(1), y2: to.toFixed(1) })
  return svg('svg', { class: 'mini', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true' },
    svg('path', { class: 'course', d: path }),
    ...trend ? [line('trend', y(trend[0]), y(trend[1]))] : [],
    ...threshold === undefined ? [] : [thresholdLine(isFar ? EDGE : y(threshold))])

  /** @param {number} at */
  function thresholdLine (at) {
    return line(isFar ? 'threshold far' : 'threshold', at, at)
  }
}

/**
 * A number and its limit as one bar, for evidence without a series.
 * @param {number} value
 * @param {number} limit
 * @returns {SVGElement | undefined} undefined if one bar cannot show both
 */
export function bullet (value, limit) {
  const most = 1.1 * Math.max(value, limit)
  if (!(most > 0) || value < 0 || limit < 0) return undefined
  const at = (WIDTH * limit / most).toFixed(1)
  return svg('svg', { class: 'mini', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true' },
    svg('rect', { class: 'amount', x: 0, y: 12, width: WIDTH * value / most, height: 8 }),
    svg('line', { class: 'threshold', x1: at, x2: at, y1: 6, y2: 26 }))
}

/**
 * Reduces values to the maximum of each section, so that short peaks stay visible.
 * @param {readonly (number | null)[]} values
 * @returns {(number | null)[]}
 */
export function thin (values) {
  if (values.length <= POINTS) return [...values]
  return Array.from({ length: POINTS }, (_, i) => {
    const known = values
      .slice(Math.floor(i * values.length / POINTS), Math.floor((i + 1) * values.length / POINTS))
      .flatMap(value => value ?? [])
    return known.length > 0 ? Math.max(...known) : null
  })
}
