'use strict'

/**
 * Registry in which variants tell work.js how their cost shows inside one process: by turning off
 * and on again, or by the CPU time of their turns of the event loop.
 */

const KEY = Symbol.for('memwatch.bench.switch')

/**
 * @typedef {object} Switch
 * @property {() => void} [on] what can be turned off is on now
 * @property {() => void} [off]
 * @property {() => number} [ownMicros] CPU time of the variant's own turns so far
 */

module.exports = {
  /** @param {Switch} of */
  offerSwitch (of) { /** @type {any} */ (globalThis)[KEY] = of },
  /** @returns {Switch} empty: the variant can neither be turned off nor measure its turns */
  offeredSwitch: () => /** @type {any} */ (globalThis)[KEY] ?? {}
}
