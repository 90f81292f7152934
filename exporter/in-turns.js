'use strict'

const { Turns } = require('./turns')

/**
 * Evaluates targets for a few milliseconds at a time, after all frames that arrived together were
 * read. Otherwise a thousand agents would block the event loop. Targets are evaluated in the order
 * of their frames, from the next turn of the event loop on.
 */
class InTurns {
  #judge
  /** @type {Set<import('@memwatch/engine/history/target').Target>} */
  #waiting = new Set()
  #goesOn = false

  /** @param {(target: import('@memwatch/engine/history/target').Target) => void} judge */
  constructor (judge) {
    this.#judge = judge
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target with a new frame
   */
  add (target) {
    this.#waiting.add(target)
    this.#goOn()
  }

  /**
   * Evaluates a target now. The exporter calls this method before the target's next frame and at
   * its end, so that every frame is evaluated separately, as in a replay.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  now (target) {
    if (this.#waiting.delete(target)) this.#judge(target)
  }

  /** Evaluates all waiting targets. */
  end () {
    for (const target of this.#waiting) this.now(target)
  }

  #goOn () {
    if (this.#goesOn || this.#waiting.size === 0) return
    this.#goesOn = true
    setImmediate(() => {
      this.#goesOn = false
      const turns = new Turns()
      for (const target of this.#waiting) {
        this.now(target)
        if (turns.over) break
      }
      this.#goOn()
    })
  }
}

module.exports = { InTurns }
