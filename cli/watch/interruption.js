'use strict'

const os = require('node:os')

/**
 * Ctrl-C and similar signals over several runs: ends the running one, and reports the results so
 * far. Further signals are ignored meanwhile: the recordings must be kept.
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

  /** Aborts on such a signal. */
  get signal () {
    return this.#controller.signal
  }

  /** Exit status after an interruption. */
  get status () {
    return this.by === undefined ? 0 : 128 + os.constants.signals[this.by]
  }

  stop () {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener)
  }
}

module.exports = { Interruption }
