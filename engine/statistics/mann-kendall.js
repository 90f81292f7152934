'use strict'

/**
 * Mann–Kendall trend test, with the variance corrected for ties: do later values tend to be higher?
 * It assumes no distribution and no straight line. Mann, Econometrica 13 (1945) 245–259; Kendall,
 * Rank Correlation Methods (1975).
 *
 * @param {ArrayLike<number>} y in order of time
 * @returns {{ tau: number, z: number }} tau: share of rising less share of falling pairs, −1…1; z:
 *   standard score of the trend, positive when rising (2.33 ≈ 1 % one-sided); both 0 with fewer
 *   than two values or when all are equal
 */
function mannKendall (y) {
  const n = y.length
  let score = 0
  let variance = varianceOf(n)
  for (let i = 0; i < n; i++) {
    let equal = 0
    for (let j = i + 1; j < n; j++) {
      score += Number(y[j] > y[i]) - Number(y[j] < y[i])
      equal += Number(y[j] === y[i])
    }
    // The values of a group of k equal values have k − 1, …, 1, 0 equal later ones: these
    // differences add up to the variance of the group.
    variance -= varianceOf(equal + 1) - varianceOf(equal)
  }
  variance /= 18
  const pairs = n * (n - 1) / 2
  if (pairs === 0 || variance <= 0) return { tau: 0, z: 0 }
  return { tau: score / pairs, z: (score - Math.sign(score)) / Math.sqrt(variance) }
}

/** Eighteen times the variance of the score of n values. @param {number} n */
const varianceOf = n => n * (n - 1) * (2 * n + 5)

module.exports = { mannKendall }
