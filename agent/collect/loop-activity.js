'use strict'

const { eventLoopUtilization } = require('../primordials')
const { iterations } = require('./event-loop')

/** Share of time the loop must be active to count as busy. */
const BUSY_RATIO = 0.1
/** A block of an idle loop is worth noting from here on. */
const BLOCK_MS = 20

/**
 * Busy time of the event loop between two measurements. Active time, divided by the turns of the
 * app, is a lower bound of the longest block.
 */
class LoopActivity {
  /** Lower bound of the longest block between the last two measurements; 0 where none shows. */
  longestBlockSeconds = 0
  #last = eventLoopUtilization()
  #lastTurns = iterations()
  #ownTurns = 0
  #ownGc
  #lastOwnMs = 0

  /**
   * @param {Pick<import('./gc').OwnGc, 'totalMs'>} [ownGc] GCs that the agent ran on command are
   *   none of the app's time
   */
  constructor (ownGc = { totalMs: 0 }) {
    this.#ownGc = ownGc
  }

  /** @param {number} turns of the loop that the agent took, not the app */
  addOwnTurns (turns) {
    this.#ownTurns += turns
  }

  /**
   * @param {boolean} countsTurns whether to ask for turns, which the longest block needs
   * @returns {boolean} whether the loop was busy since the last measurement
   */
  measure (countsTurns) {
    const now = eventLoopUtilization()
    const ownMs = this.#ownGc.totalMs
    const activeMs = now.active - this.#last.active - (ownMs - this.#lastOwnMs)
    this.#lastOwnMs = ownMs
    const idleMs = now.idle - this.#last.idle
    const turns = countsTurns ? iterations() : undefined
    this.longestBlockSeconds = 0
    if (turns !== undefined && this.#lastTurns !== undefined && activeMs > BLOCK_MS) {
      const appTurns = Math.max(1, turns - this.#lastTurns - this.#ownTurns)
      this.longestBlockSeconds = activeMs / appTurns / 1000
    }
    this.#last = now
    this.#lastTurns = turns
    this.#ownTurns = 0
    return activeMs / Math.max(1, activeMs + idleMs) >= BUSY_RATIO
  }
}

module.exports = { LoopActivity }
