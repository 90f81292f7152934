'use strict'

/**
 * A jest transform: OpenTelemetry loads `http` by import(), which jest supports only with an
 * experimental flag.
 */
module.exports = {
  process: (/** @type {string} */ source) => ({ code: source.replace(/\bimport\(([^)]+)\)/g, 'Promise.resolve(require($1))') })
}
