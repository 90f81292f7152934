'use strict'

const os = require('node:os')

/**
 * Ctrl-C and its like, over several runs: what runs is ended, what is known is said. Another one
 * while that goes on changes nothing: what was recorded must be kept.
 */
class Interruption {
  #controller = new AbortController()
  /** @type {Map<NodeJS.Signals, () => void>} */
  #listeners = new Map()
  /** @type {NodeJS.Signals | undefined} */
  by

  constructor () {
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
      const listener = () => {
        this.by ??= signal
        this.#controller.abort()
      }
      this.#listeners.set(signal, listener)
      process.on(signal, listener)
    }
  }

  /** Aborts when it comes. */
  get signal () {
    return this.#controller.signal
  }

  /** Exit status of who was interrupted. */
  get status () {
    return this.by === undefined ? 0 : 128 + os.constants.signals[this.by]
  }

  stop () {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }
}

module.exports = { Interruption }
