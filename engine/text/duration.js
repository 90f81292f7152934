'use strict'

/** Units of durations as in Prometheus; a number without a unit is in seconds. */
const UNIT_SECONDS = Object.freeze({ '': 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 })
const MOST_SECONDS = 10 * 365 * UNIT_SECONDS.d

/**
 * Parses a duration. All options and variables use this grammar.
 * @param {string} text as in 90, 90s, 1.5m, 24h, 7d
 * @returns {number} seconds, above 0
 * @throws {RangeError} with a sentence that says what is expected
 */
function readDuration (text) {
  const [, digits, unit] = /^(\d{1,16}(?:\.\d{1,16})?)([smhdw]?)$/.exec(text.trim()) ?? []
  const seconds = Number(digits) * UNIT_SECONDS[/** @type {keyof typeof UNIT_SECONDS} */ (unit)]
  if (seconds > 0 && seconds <= MOST_SECONDS) return seconds
  throw new RangeError(
    `expected a time such as 90, 90s, 5m, 24h or 7d, got ${JSON.stringify(text)}`
  )
}

module.exports = { readDuration }
