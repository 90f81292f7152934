'use strict'

const debug = require('node:util').debuglog('memwatch')

/** The fence between the agent and the app: what goes wrong inside is counted, and never leaves. */
class Guard {
  /** Errors caught so far; travels in every frame. */
  errors = 0

  /**
   * @template {unknown[]} Args @template Result
   * @param {string} what is being done, for NODE_DEBUG=memwatch
   * @param {(...args: Args) => Result} work
   * @returns {(...args: Args) => Result | undefined} undefined when the work threw
   */
  wrap (what, work) {
    return (...args) => {
      try {
        return work(...args)
      } catch (error) {
        this.errors++
        debug('%s: %s', what, error)
        return undefined
      }
    }
  }
}

module.exports = { Guard, debug }
