'use strict'

/**
 * What a step keeps of its readings: counters and readings their last value, ceilings their
 * highest, floors their lowest.
 * @typedef {'last' | 'min' | 'max'} Keep
 */

/**
 * A step with one reading more. All coarser steps are made by this rule.
 * @param {Keep} keep
 * @param {number} before what the step holds, NaN before its first reading
 * @param {number} value NaN where it was absent, which changes nothing
 * @returns {number}
 */
function merge (keep, before, value) {
  if (Number.isNaN(value)) return before
  if (keep === 'last' || Number.isNaN(before)) return value
  return (value > before) === (keep === 'max') ? value : before
}

module.exports = { merge }
