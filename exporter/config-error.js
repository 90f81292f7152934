'use strict'

/**
 * A configuration value that cannot be used. Its message names the option and says what is accepted.
 */
class ConfigError extends Error {
  code = 'MEMWATCH_CONFIG'
}

module.exports = { ConfigError }
