'use strict'

const log = require('node:util').debuglog('memwatch')

/**
 * Prints with NODE_DEBUG=memwatch. Never throws: a value may carry a `toString` of the app.
 * @param {string} format
 * @param {unknown[]} values
 */
function debug (format, ...values) {
  try {
    log(format, ...values)
  } catch {}
}

/**
 * One step of which no error may reach the app.
 * @param {string} what is being done, for NODE_DEBUG=memwatch
 * @param {() => void} work
 */
function attempt (what, work) {
  try {
    work()
  } catch (error) {
    debug('%s: %s', what, error)
  }
}

/** The fence between the agent and the app: what goes wrong inside is counted, and never leaves. */
class Guard {
  /** Errors caught so far; travels in every frame. */
  errors = 0

  /**
   * @param {string} what was being done, for NODE_DEBUG=memwatch
   * @param {unknown} error
   */
  caught (what, error) {
    this.errors++
    debug('%s: %s', what, error)
  }

  /**
   * For functions of at most two parameters: to hand on any number takes an array each time.
   * @template {[first?: any, second?: any]} Args
   * @template Result
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
        // A call in here throws as well when the stack is used up.
        try {
          this.caught(what, error)
        } catch {}
      }
    }
    return guarded
  }
}

module.exports = { Guard, attempt, debug }
