'use strict'

const { readDuration } = require('@memwatch/engine/text/duration')
const { readMemory } = require('@memwatch/engine/text/quantity')

/**
 * Error for an invalid command line: its message names the wrong option. The command ends with
 * status 2.
 */
class UsageError extends Error {}

/**
 * @template Value
 * @param {(text: string) => Value} read throws a RangeError that names the expected form
 * @returns {(option: string, text: string) => Value} reader that throws a UsageError with the name
 *   of the option
 */
const forOption = read => (option, text) => {
  try {
    return read(text)
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(`${option}: ${error.message}`) : error
  }
}

/** Reads seconds from a duration such as 90, 90s, 5m, 24h or 7d. */
const readSeconds = forOption(readDuration)
/** Reads bytes from a size such as 512Mi, 2Gi, 512MiB or 536870912. */
const readBytes = forOption(readMemory)

module.exports = { UsageError, readSeconds, readBytes }
