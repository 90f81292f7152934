'use strict'

const debug = require('node:util').debuglog('memwatch')

/** The fence between the agent and the app: what goes wrong inside is counted, and never leaves. */
class Guard {
  /** Errors caught so far; travels in every frame. */
  errors = 0

  /** @param {string} what was being done, for NODE_DEBUG=memwatch @param {unknown} error */
  caught (what, error) {
    this.errors++
    debug('%s: %s', what, error)
  }

  /**
   * For functions of at most two parameters: to hand on any number takes an array each time.
   * @template {[first?: any, second?: any]} Args @template Result
   * @param {string} what is being done, for NODE_DEBUG=memwatch
   * @param {(...args: Args) => Result} work
   * @returns {(...args: Args) => Result | undefined} undefined when the work threw
   */
  wrap (what, work) {
    /** @type {any} */
    const call = work
    /** @type {any} */
    const guarded = (/** @type {unknown} */ first, /** @type {unknown} */ second) => {
      try {
        return call(first, second)
      } catch (error) {
        this.caught(what, error)
      }
    }
    return guarded
  }
}

module.exports = { Guard, debug }
