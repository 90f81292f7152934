'use strict'

const { CommandError } = require('../commands/commands')

/**
 * What is captured when a diagnosis is first suspected.
 * @type {Readonly<Record<string, { kind: import('./kinds').KindName }>>}
 */
const triggers = Object.freeze({
  'js-heap-leak': { kind: 'heap_profile' },
  'event-loop-blocked': { kind: 'cpu_profile' }
})
/** A target is not asked for the same again within this. */
const AGAIN_MS = 3_600_000
/** Whoever waits longer than this has changed meanwhile. */
const MOST_WAITING = 20

/**
 * Captures that the exporter has made by itself: gentle ones, once. One at a time, of all targets:
 * what many suffer from at once is the same, mostly.
 */
class AutomaticCaptures {
  #captures
  #now
  /**
   * When each target was asked for what.
   * @type {WeakMap<import('memwatch-engine/history/target').Target, Map<string, number>>}
   */
  #askedAt = new WeakMap()
  /** @type {{ target: import('memwatch-engine/history/target').Target, diagnosis: string }[]} */
  #waiting = []
  #busy = false

  /**
   * @param {Pick<import('./captures').Captures, 'request'>} captures
   * @param {{ now?: () => number }} [options] ms
   */
  constructor (captures, { now = () => performance.now() } = {}) {
    this.#captures = captures
    this.#now = now
  }

  /**
   * A diagnosis changed its state.
   * @param {import('memwatch-engine/history/target').Target} target
   * @param {Pick<import('memwatch-engine/verdicts/evaluate').Verdict, 'diagnosis' | 'state'>} verdict
   */
  changed (target, { diagnosis, state }) {
    if (!Object.hasOwn(triggers, diagnosis) || (state !== 'suspected' && state !== 'confirmed')) {
      return
    }
    const asked = this.#askedAt.get(target) ?? new Map()
    this.#askedAt.set(target, asked)
    if (
      this.#now() - (asked.get(diagnosis) ?? -Infinity) < AGAIN_MS ||
      this.#waiting.length >= MOST_WAITING
    ) { return }
    asked.set(diagnosis, this.#now())
    this.#waiting.push({ target, diagnosis })
    this.#next()
  }

  #next () {
    const next = this.#busy ? undefined : this.#waiting.shift()
    if (!next) return
    const { target, diagnosis } = next
    this.#busy = true
    this.#make(target, diagnosis).finally(() => {
      this.#busy = false
      this.#next()
    })
  }

  /**
   * @param {import('memwatch-engine/history/target').Target} target
   * @param {string} diagnosis
   */
  async #make (target, diagnosis) {
    try {
      await this.#captures.request(target, { ...triggers[diagnosis], diagnosis }).finished
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      // It takes none, or is gone: nothing was asked for, nobody is told.
    }
  }
}

module.exports = { AutomaticCaptures, triggers }
