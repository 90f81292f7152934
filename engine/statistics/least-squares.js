'use strict'

/**
 * Cap of the autocorrelation. Similar neighbours carry less information than independent ones; at 1
 * they would carry none.
 */
const MOST_CORRELATION = 0.98

/**
 * Ordinary least squares of few regressors, with standard errors for autocorrelated residuals. The
 * number of readings n is replaced by the equivalent number of independent readings, n (1 − ρ) / (1
 * + ρ), where ρ is the autocorrelation at lag 1. Bayley & Hammersley, J. R. Stat. Soc. Suppl. 8
 * (1946) 184–197. The regressors and y must have a mean of 0, unless one regressor is constant.
 *
 * @param {readonly Float64Array[]} regressors columns, each as long as y
 * @param {Float64Array} y
 * @param {number} [lost] degrees of freedom already used, for example by group means
 * @returns {{ coefficients: number[], errors: number[], residuals: Float64Array } | null} errors:
 *   standard errors; null if the regressors depend on each other, or there are too few readings
 */
function leastSquares (regressors, y, lost = 0) {
  const n = y.length
  const free = n - lost - regressors.length
  if (free < 2) return null
  const inverse = invert(regressors.map(a => regressors.map(b => dot(a, b))))
  if (!inverse) return null
  const moments = regressors.map(a => dot(a, y))
  const coefficients = inverse.map(row =>
    row.reduce((sum, value, i) => sum + value * moments[i], 0)
  )
  const residuals = new Float64Array(n)
  for (let i = 0; i < n; i++) {
    residuals[i] = y[i]
    for (let k = 0; k < coefficients.length; k++) residuals[i] -= coefficients[k] * regressors[k][i]
  }
  const squares = dot(residuals, residuals)
  let lagged = 0
  for (let i = 1; i < n; i++) lagged += residuals[i] * residuals[i - 1]
  const correlation = squares > 0 ? Math.min(MOST_CORRELATION, Math.max(0, lagged / squares)) : 0
  const variance = squares / free * (1 + correlation) / (1 - correlation)
  return {
    coefficients,
    errors: inverse.map((row, i) => Math.sqrt(Math.max(0, variance * row[i]))),
    residuals
  }
}

/**
 * @param {Float64Array} a
 * @param {Float64Array} b
 */
function dot (a, b) {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i]
  return sum
}

/** Smallest pivot, as a share of its diagonal, before the matrix counts as singular. */
const LEAST_PIVOT = 1e-9

/**
 * Inverts a symmetric positive-definite matrix by Gauss–Jordan elimination.
 * @param {number[][]} matrix
 * @returns {number[][] | null}
 */
function invert (matrix) {
  const n = matrix.length
  const rows = matrix.map((row, i) => [...row, ...row.map((_, k) => Number(k === i))])
  for (let i = 0; i < n; i++) {
    const pivot = rows[i][i]
    if (!(pivot > LEAST_PIVOT * matrix[i][i])) return null
    for (let k = 0; k < 2 * n; k++) rows[i][k] /= pivot
    for (let j = 0; j < n; j++) {
      if (j === i) continue
      const factor = rows[j][i]
      for (let k = 0; k < 2 * n; k++) rows[j][k] -= factor * rows[i][k]
    }
  }
  return rows.map(row => row.slice(n))
}

module.exports = { leastSquares }
