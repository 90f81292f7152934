'use strict'

const { readMemory } = require('@memwatch/engine/text/quantity')

/**
 * A command line that cannot be carried out: its message names the option at fault. Ends with
 * status 2.
 */
class UsageError extends Error {}

/**
 * @param {string} option
 * @param {string} text
 * @returns {number} seconds, above 0
 * @throws {UsageError}
 */
function readSeconds (option, text) {
  const seconds = Number(text)
  if (text.trim() === '' || !(seconds > 0) || !Number.isFinite(seconds)) {
    throw new UsageError(
      `${option}: expected a number of seconds above 0, got ${JSON.stringify(text)}`
    )
  }
  return seconds
}

/**
 * @param {string} option
 * @param {string} text as in 512Mi
 * @returns {number} bytes
 * @throws {UsageError}
 */
function readBytes (option, text) {
  try {
    return readMemory(text)
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(`${option}: ${error.message}`) : error
  }
}

module.exports = { UsageError, readSeconds, readBytes }
