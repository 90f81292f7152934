'use strict'

const { Turns } = require('./turns')

/**
 * Judges targets a few milliseconds at a time, when what came in together has been read: a thousand
 * agents would hold the loop otherwise. Who comes first is judged first, in the next turn of the
 * loop.
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
   * @param {import('@memwatch/engine/history/target').Target} target whose history is longer than when it was
   *   judged last
   */
  add (target) {
    this.#waiting.add(target)
    this.#goOn()
  }

  /**
   * Before its history goes on, or it is over: live as in a replay each frame is judged by itself.
   * @param {import('@memwatch/engine/history/target').Target} target
   */
  now (target) {
    if (this.#waiting.delete(target)) this.#judge(target)
  }

  /** All that wait. */
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
