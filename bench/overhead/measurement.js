'use strict'

/**
 * A variant offers here how work.js measures its cost inside one process: by turning it off and on
 * again, or by the CPU time of its own callbacks.
 */

/**
 * Slices of a block in which a variant is on: a drift of the machine counts for on and off alike.
 */
const ORDER = Object.freeze([true, false, false, true])

const KEY = Symbol.for('memwatch.bench.measurement')

/**
 * @typedef {object} Measurement
 * @property {() => void} [on] what can be turned off is on now
 * @property {() => void} [off]
 * @property {() => number} [ownMicros] CPU time of its callbacks so far, in µs
 */

module.exports = {
  ORDER,
  /** @param {Measurement} measurement */
  offerMeasurement (measurement) { /** @type {any} */ (globalThis)[KEY] = measurement },
  /** @returns {Measurement} empty: the cost shows between two processes only */
  offeredMeasurement: () => /** @type {any} */ (globalThis)[KEY] ?? {}
}
