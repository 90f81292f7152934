'use strict'

/**
 * The agent counts GCs from the preload on, before the rest of it is loaded.
 *
 * @typedef {object} StartedGcs
 * @property {import('@memwatch/allocator').GcHooks} [hooks] V8's own callbacks, by the addon
 * @property {ReturnType<typeof import('./gc-observer').gcObserver>} [observer] without hooks
 * @property {import('../protocol/frame').GcHooksMissing} [hooksMissing] reason for no hooks
 */

/** Reasons by Node.js' error codes. */
const REASONS = /** @type {const} */ ({
  MODULE_NOT_FOUND: 'no_addon',
  ERR_DLOPEN_DISABLED: 'addons_disabled'
})

/** @returns {StartedGcs} */
function startHooks () {
  try {
    const hooks = require('../addon').loadAddon().countGcs()
    return hooks ? { hooks } : { hooksMissing: 'no_symbols' }
  } catch (error) {
    const { code } = /** @type {{ code: keyof typeof REASONS }} */ (error)
    return { hooksMissing: REASONS[code] ?? 'not_loaded' }
  }
}

/**
 * Counts GCs from now on, by V8's hooks if possible: an observer takes 40 to 100 µs of CPU for each
 * GC.
 * @param {boolean} allowsHooks
 * @returns {StartedGcs}
 */
function startGcs (allowsHooks) {
  const started = allowsHooks ? startHooks() : { hooksMissing: /** @type {const} */ ('off') }
  return started.hooks ? started : { ...started, observer: require('./gc-observer').gcObserver() }
}

/** @param {StartedGcs} started */
function stopGcs ({ hooks, observer }) {
  hooks?.stop()
  observer?.disconnect()
}

module.exports = { startGcs, stopGcs }
