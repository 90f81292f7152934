'use strict'

const log = require('node:util').debuglog('memwatch')

/**
 * Prints with NODE_DEBUG=memwatch. It never throws: a value may carry a `toString` of the app.
 * @param {string} format
 * @param {unknown[]} values
 */
function debug (format, ...values) {
  try {
    log(format, ...values)
  } catch {}
}

/**
 * Runs a step, whose error does not reach the app.
 * @param {string} what name of the step, for NODE_DEBUG=memwatch
 * @param {() => void} work
 */
function attempt (what, work) {
  try {
    work()
  } catch (error) {
    debug('%s: %s', what, error)
  }
}

/** Barrier between agent and app: it counts errors inside and lets none out. */
class Guard {
  /** Number of errors, sent in every frame. */
  errors = 0

  /**
   * @param {string} what name of the step
   * @param {unknown} error
   */
  caught (what, error) {
    this.errors++
    debug('%s: %s', what, error)
  }

  /**
   * Guards functions of at most two parameters: rest parameters would allocate an array each time.
   * @template {[first?: any, second?: any]} Args
   * @template Result
   * @param {string} what name of the step
   * @param {(...args: Args) => Result} work
   * @returns {(...args: Args) => Result | undefined} undefined: the work threw
   */
  wrap (what, work) {
    /** @type {any} */
    const call = work
    /** @type {any} */
    const guarded = (/** @type {unknown} */ first, /** @type {unknown} */ second) => {
      try {
        return call(first, second)
      } catch (error) {
        // After a stack overflow this call throws as well.
        try {
          this.caught(what, error)
        } catch {}
      }
    }
    return guarded
  }
}

module.exports = { Guard, attempt, debug }
