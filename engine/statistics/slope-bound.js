'use strict'

const { quantileInPlace } = require('./quantile')

/**
 * Distribution of Kendall's score without a trend: the number of orders of n values with each
 * number of falling pairs, by its recurrence. Kendall, Rank Correlation Methods (1975), chapter 5.
 * @param {number} n
 * @returns {number[]} probability of 0, 1, … falling pairs
 */
function fallingPairs (n) {
  let chances = [1]
  for (let size = 2; size <= n; size++) {
    const next = new Array(chances.length + size - 1).fill(0)
    chances.forEach((chance, falling) => {
      for (let added = 0; added < size; added++) next[falling + added] += chance / size
    })
    chances = next
  }
  return chances
}

/**
 * Theil–Sen slope with a one-sided lower confidence bound: the slopes that Kendall's test rejects.
 * It assumes no distribution, only that the errors are alike and independent. Sen, J. Am. Stat.
 * Assoc. 63 (1968) 1379–1389.
 *
 * @param {ArrayLike<number>} x all different
 * @param {ArrayLike<number>} y
 * @param {number} level probability, 0–1, that the bound exceeds the true slope
 * @returns {{ slope: number, lower: number }} units of y per unit of x; lower: -Infinity if there
 *   are too few points for this level
 */
function slopeBound (x, y, level) {
  const slopes = []
  for (let i = 0; i < x.length; i++) {
    for (let j = i + 1; j < x.length; j++) slopes.push((y[j] - y[i]) / (x[j] - x[i]))
  }
  slopes.sort((a, b) => a - b)
  let tail = 0
  let below = 0
  for (const chance of fallingPairs(x.length)) {
    tail += chance
    if (tail > level) break
    below++
  }
  return {
    slope: quantileInPlace(Float64Array.from(slopes), slopes.length, 0.5),
    lower: below === 0 ? -Infinity : slopes[below - 1]
  }
}

module.exports = { slopeBound }
