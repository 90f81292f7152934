'use strict'

const { median } = require('./quantile')

/** Fewest maxima whose spread is worth an estimate. */
const LEAST_MAXIMA = 3

/**
 * Level that the maximum of a period exceeds with a small probability. The excess over a threshold
 * is exponential in the tail: the generalized Pareto distribution with shape 0 (Pickands, Ann.
 * Statist. 3 (1975) 119). The threshold is the median of the maxima, so that quiet periods, such as
 * weekends, do not widen the tail.
 * @param {readonly number[]} maxima one for each period
 * @param {number} probability that a period exceeds the level, below 0.5
 * @returns {number} at least the highest maximum; -Infinity without any
 */
function tailLevel (maxima, probability) {
  const highest = maxima.reduce((most, value) => Math.max(most, value), -Infinity)
  if (maxima.length < LEAST_MAXIMA) return highest
  const threshold = median(maxima)
  const excesses = maxima.filter(value => value > threshold).map(value => value - threshold)
  const scale = excesses.reduce((sum, excess) => sum + excess, 0) / Math.max(1, excesses.length)
  return Math.max(highest, threshold + scale * Math.log(0.5 / probability))
}

module.exports = { tailLevel }
