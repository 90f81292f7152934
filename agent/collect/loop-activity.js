'use strict'

const { eventLoopUtilization } = require('../primordials')
const { iterations } = require('./event-loop')

/** Active share of a busy loop. */
const BUSY_RATIO = 0.1
/** Shortest block of an idle loop that counts. */
const BLOCK_MS = 20

/**
 * Busy time of the event loop between two measurements. Active time, divided by the turns of the
 * app, is a lower bound of the longest block.
 */
class LoopActivity {
  /** Lower bound of the longest block between the last two measurements; 0: none visible. */
  longestBlockSeconds = 0
  /** Busy time between them. */
  activeMs = 0
  #last = eventLoopUtilization()
  #lastTurns = iterations()
  #ownTurns = 0
  #ownGc
  #lastOwnMs = 0

  /**
   * @param {Pick<import('./gc').OwnGc, 'totalMs'>} [ownGc] GCs on command, which are not part of
   *   the app's time
   */
  constructor (ownGc = { totalMs: 0 }) {
    this.#ownGc = ownGc
  }

  /** @param {number} turns turns that the agent caused, not the app */
  addOwnTurns (turns) {
    this.#ownTurns += turns
  }

  /**
   * @param {boolean} countsTurns true: also reads turns, for the longest block
   * @returns {boolean} true: the loop was busy since the last measurement
   */
  measure (countsTurns) {
    const now = eventLoopUtilization()
    const ownMs = this.#ownGc.totalMs
    const activeMs = now.active - this.#last.active - (ownMs - this.#lastOwnMs)
    this.activeMs = activeMs
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
