'use strict'

/** Longest that long work holds the loop at a time: agents and probes wait meanwhile. */
const BLOCKED_MS = 5

/** The turns of the event loop that long work takes. */
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
