'use strict'

/**
 * Statistic of a track's readings that a coarser step stores: the last value (counters and gauges),
 * the maximum (upper bounds) or the minimum (lower bounds).
 * @typedef {'last' | 'min' | 'max'} Keep
 */

/**
 * Adds one reading to a step. All coarser steps are built by this rule.
 * @param {Keep} keep
 * @param {number} before value of the step so far, NaN before its first reading
 * @param {number} value NaN for an absent reading, which changes nothing
 * @returns {number}
 */
function merge (keep, before, value) {
  if (Number.isNaN(value)) return before
  if (keep === 'last' || Number.isNaN(before)) return value
  return (value > before) === (keep === 'max') ? value : before
}

module.exports = { merge }
