'use strict'

/**
 * A value that a test needs. If it is missing, the test fails here instead of some lines later.
 * @template T
 * @param {T} value
 * @returns {NonNullable<T>}
 */
function defined (value) {
  if (value === undefined || value === null) throw new Error(`expected a value, not ${value}`)
  return value
}

module.exports = { defined }
