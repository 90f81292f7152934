'use strict'

/**
 * Quantile of a bucketed distribution, by linear interpolation inside the bucket, as Prometheus'
 * histogram_quantile() computes it. Values above the last bound count as that bound.
 *
 * @param {readonly number[]} bounds upper bounds, ascending
 * @param {readonly number[]} counts one per bound and one for values above the last; not cumulative
 * @param {number} quantile 0–1
 * @returns {number} 0 when nothing was counted
 */
function histogramQuantile (bounds, counts, quantile) {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return 0
  let below = 0
  for (let i = 0; i < bounds.length; i++) {
    if (below + counts[i] >= quantile * total && counts[i] > 0) {
      const lower = i === 0 ? 0 : bounds[i - 1]
      return lower + (bounds[i] - lower) * (quantile * total - below) / counts[i]
    }
    below += counts[i]
  }
  return bounds[bounds.length - 1]
}

/**
 * Standard deviation of a bucketed distribution. Every value counts as the middle of its bucket.
 * @param {readonly number[]} bounds
 * @param {readonly number[]} counts number per bucket, as in histogramQuantile
 * @param {number} mean
 */
function histogramDeviation (bounds, counts, mean) {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return 0
  const squares = counts.reduce((sum, count, i) => {
    const middle = i === bounds.length ? bounds[i - 1] : (bounds[i] + (bounds[i - 1] ?? 0)) / 2
    return sum + count * (middle - mean) ** 2
  }, 0)
  return Math.sqrt(squares / total)
}

module.exports = { histogramQuantile, histogramDeviation }
