'use strict'

/**
 * A jest transform: jest's own module system has no import() without a flag that is experimental,
 * and OpenTelemetry loads `http` by it.
 */
module.exports = {
  process: (/** @type {string} */ source) => ({ code: source.replace(/\bimport\(([^)]+)\)/g, 'Promise.resolve(require($1))') })
}
