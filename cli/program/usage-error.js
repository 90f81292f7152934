'use strict'

const { readDuration } = require('@memwatch/engine/text/duration')
const { readMemory } = require('@memwatch/engine/text/quantity')

/**
 * A command line that cannot be carried out: its message names the option at fault. Ends with
 * status 2.
 */
class UsageError extends Error {}

/**
 * @template Value
 * @param {(text: string) => Value} read throws a RangeError that says what is expected
 * @returns {(option: string, text: string) => Value} throws a UsageError that names the option
 */
const forOption = read => (option, text) => {
  try {
    return read(text)
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(`${option}: ${error.message}`) : error
  }
}

/** Seconds of a time such as 90, 90s, 5m, 24h or 7d. */
const readSeconds = forOption(readDuration)
/** Bytes of a size such as 512Mi, 2Gi, 512MiB or 536870912. */
const readBytes = forOption(readMemory)

module.exports = { UsageError, readSeconds, readBytes }
