'use strict'

const { median, min, max } = require('simple-statistics')

/**
 * The same figure of several runs.
 * @typedef {{ median: number, min: number, max: number, values: number[] }} Spread
 *
 * @param {(number | null)[]} values values of the runs; missing values are left out
 * @returns {Spread | null}
 */
function spreadOf (values) {
  const known = values.filter(value => value !== null)
  return known.length === 0
    ? null
    : { median: median(known), min: min(known), max: max(known), values: known }
}

/**
 * True if two ranges do not overlap. With three runs on each side this happens by chance once in
 * ten comparisons, with five runs once in 126. With one run it proves nothing.
 * @param {Spread | null} before
 * @param {Spread | null} after
 * @returns {boolean | null} null if a side has fewer than two runs
 */
function isApart (before, after) {
  if (!before || !after || Math.min(before.values.length, after.values.length) < 2) return null
  return before.max < after.min || after.max < before.min
}

module.exports = { spreadOf, isApart }
