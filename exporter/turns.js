'use strict'

/** Time after which long work pauses, because agents and probes wait for the event loop. */
const BLOCKED_MS = 5

/** Splits long work over several turns of the event loop. */
class Turns {
  #began = performance.now()

  /** True if the current turn has lasted long enough. */
  get over () {
    return performance.now() - this.#began > BLOCKED_MS
  }

  async next () {
    await new Promise(resolve => setImmediate(resolve))
    this.#began = performance.now()
  }
}

module.exports = { Turns }
