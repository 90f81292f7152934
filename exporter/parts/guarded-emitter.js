'use strict'

const { EventEmitter } = require('node:events')

/**
 * An emitter whose listeners cannot harm each other: one that throws, or returns a promise that
 * rejects, is reported, and the others still hear of the event.
 */
class GuardedEmitter extends EventEmitter {
  #onFailure

  /**
   * @param {(error: Error, event: string | symbol, listener: Function) => void} onFailure
   */
  constructor (onFailure) {
    super()
    this.#onFailure = onFailure
  }

  /**
   * @param {string | symbol} event
   * @param {...any} args
   * @returns {boolean} whether anybody listens
   * @override
   */
  emit (event, ...args) {
    const listeners = this.rawListeners(event)
    for (const listener of listeners) {
      const fail = (/** @type {Error} */ error) => this.#onFailure(error, event, listener)
      try {
        const result = Reflect.apply(listener, this, args)
        if (typeof result?.then === 'function') result.then(undefined, fail)
      } catch (error) {
        fail(/** @type {Error} */ (error))
      }
    }
    return listeners.length > 0
  }
}

module.exports = { GuardedEmitter }
