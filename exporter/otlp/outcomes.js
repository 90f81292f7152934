'use strict'

/** Outcomes of an export. failed: sent, but not accepted; dropped: never sent. */
const OUTCOMES = Object.freeze(/** @type {const} */ (['delivered', 'rejected', 'failed', 'dropped']))

/** State of the exports of one signal: counts each export, and logs changes of the outcome. */
class Outcomes {
  #signal
  #counts
  #log
  #failing = false

  /**
   * @param {'metrics' | 'logs'} signal
   * @param {Map<string, number>} counts counts of all signals, by `signal outcome`
   * @param {{ warn: (text: string) => void, info: (text: string) => void }} log
   */
  constructor (signal, counts, log) {
    this.#signal = signal
    this.#counts = counts
    this.#log = log
    for (const outcome of OUTCOMES) counts.set(`${signal} ${outcome}`, 0)
  }

  /**
   * @param {typeof OUTCOMES[number]} outcome
   * @param {number} count
   */
  add (outcome, count) {
    const key = `${this.#signal} ${outcome}`
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + count)
  }

  /**
   * @param {import('./sender').Sent} sent
   * @param {number} count number of readings or events
   */
  sent ({ outcome, message }, count) {
    this.add(outcome, count)
    const fails = outcome !== 'delivered'
    if (fails !== this.#failing) {
      this.#log[fails ? 'warn' : 'info'](
        `--otlp: ${this.#signal} ${fails ? `do not arrive: ${message}` : 'arrive again'}`
      )
    }
    this.#failing = fails
  }
}

module.exports = { Outcomes, OUTCOMES }
