'use strict'

/**
 * Interface by which a variant lets work.js measure its cost inside one process: by switching the
 * variant off and on, or by the CPU time of its callbacks.
 */

/**
 * Slices of a block in which a variant is on: in this order a drift of the machine affects on and
 * off equally.
 */
const ORDER = Object.freeze([true, false, false, true])

const KEY = Symbol.for('memwatch.bench.measurement')

/**
 * @typedef {object} Measurement
 * @property {() => void} [on] true while the part that can be switched off is on
 * @property {() => void} [off]
 * @property {() => number} [ownMicros] CPU time of its callbacks so far, in µs
 * @property {() => number} [frames] number of frames so far
 */

module.exports = {
  ORDER,
  /** @param {Measurement} measurement */
  offerMeasurement (measurement) { /** @type {any} */ (globalThis)[KEY] = measurement },
  /**
   * @returns {Measurement} functions for measuring; empty if the cost shows only between two
   *   processes
   */
  offeredMeasurement: () => /** @type {any} */ (globalThis)[KEY] ?? {}
}
