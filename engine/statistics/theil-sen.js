'use strict'

const { quantileInPlace, roomFor } = require('./quantile')

/**
 * Theil–Sen estimator: the median of the slopes of all pairs of points. Up to 29 % of the points
 * may be arbitrarily wrong without moving it far. Sen, J. Am. Stat. Assoc. 63 (1968) 1379–1389.
 *
 * @param {ArrayLike<number>} x ascending, of the same length as y
 * @param {ArrayLike<number>} y
 * @returns {{ slope: number, intercept: number } | null} slope in units of y per unit of x; null
 *   when no two x differ
 */
function theilSen (x, y) {
  const slope = theilSenSlope(x, y, 0, x.length)
  if (slope === null) return null
  const rests = roomFor(x.length)
  for (let i = 0; i < x.length; i++) rests[i] = y[i] - slope * x[i]
  return { slope, intercept: quantileInPlace(rests, x.length, 0.5) }
}

/**
 * Theil–Sen slope of the points in a range of indices.
 * @param {ArrayLike<number>} x
 * @param {ArrayLike<number>} y
 * @param {number} from
 * @param {number} to
 * @returns {number | null}
 */
function theilSenSlope (x, y, from, to) {
  const slopes = roomFor((to - from) * (to - from - 1) / 2)
  let count = 0
  for (let i = from; i < to; i++) {
    for (let j = i + 1; j < to; j++) {
      if (x[j] !== x[i]) slopes[count++] = (y[j] - y[i]) / (x[j] - x[i])
    }
  }
  return count === 0 ? null : quantileInPlace(slopes, count, 0.5)
}

module.exports = { theilSen, theilSenSlope }
