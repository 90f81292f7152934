'use strict'

const { EventEmitter } = require('node:events')

/**
 * An emitter whose listeners cannot affect each other. An error or rejection of a listener is
 * counted, and reported once; the others still get the event.
 */
class GuardedEmitter extends EventEmitter {
  #onFailure
  /** Listeners whose failure was reported. @type {WeakSet<Function>} */
  #failed = new WeakSet()
  listenerErrors = 0

  /**
   * @param {(error: Error, event: string) => void} onFailure called with a listener's first error
   */
  constructor (onFailure) {
    super()
    this.#onFailure = onFailure
  }

  /**
   * @param {string | symbol} event
   * @param {...any} args
   * @returns {boolean} true if there are listeners
   * @override
   */
  emit (event, ...args) {
    const listeners = this.rawListeners(event)
    for (const listener of listeners) {
      const fail = (/** @type {Error} */ error) => {
        this.listenerErrors++
        if (this.#failed.has(listener)) return
        this.#failed.add(listener)
        this.#onFailure(error, String(event))
      }
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
