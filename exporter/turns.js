'use strict'

/** Longest time for which long work blocks the loop: agents and probes wait meanwhile. */
const BLOCKED_MS = 5

/** Turns of the event loop for long work. */
class Turns {
  #began = performance.now()

  /** True when others should have their turn. */
  get over () {
    return performance.now() - this.#began > BLOCKED_MS
  }

  async next () {
    await new Promise(resolve => setImmediate(resolve))
    this.#began = performance.now()
  }
}

module.exports = { Turns }
