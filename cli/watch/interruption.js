'use strict'

const os = require('node:os')

/**
 * Handles Ctrl-C and similar signals for a command with several runs: the present run is ended, and
 * the results so far are reported. Further signals are ignored then, so that the recordings are
 * kept.
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

  /** Signal that aborts at an interruption. */
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
