'use strict'

/** How variants that can be turned off and on again tell work.js of it. */

const KEY = Symbol.for('memwatch.bench.switch')

/** @typedef {{ on: () => void, off: () => void }} Switch */

module.exports = {
  /** @param {Switch} of what is on now */
  offerSwitch (of) { /** @type {any} */ (globalThis)[KEY] = of },
  /** @returns {Switch | undefined} undefined: the variant cannot be turned off */
  offeredSwitch: () => /** @type {any} */ (globalThis)[KEY]
}
