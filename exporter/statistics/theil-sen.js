'use strict'

const { median } = require('simple-statistics')

/**
 * Theil–Sen estimator: the median of the slopes of all pairs of points. Up to 29 % of the points may be arbitrarily wrong
 * without moving it far. Sen, J. Am. Stat. Assoc. 63 (1968) 1379–1389.
 *
 * @param {ArrayLike<number>} x ascending, of the same length as y
 * @param {ArrayLike<number>} y
 * @returns {{ slope: number, intercept: number } | null} slope in units of y per unit of x; null when no two x differ
 */
function theilSen (x, y) {
  const slopes = []
  for (let i = 0; i < x.length; i++) {
    for (let j = i + 1; j < x.length; j++) {
      if (x[j] !== x[i]) slopes.push((y[j] - y[i]) / (x[j] - x[i]))
    }
  }
  if (slopes.length === 0) return null
  const slope = median(slopes)
  const intercept = median(Array.from(y, (value, i) => value - slope * x[i]))
  return { slope, intercept }
}

module.exports = { theilSen }
