'use strict'

const { CommandError } = require('../commands/commands')
const { kinds } = require('./kinds')

/**
 * A heap profile lasts until so much of what the leak keeps can be expected in it: 32 samples, at
 * the two intervals of the agent. Fewer do not tell the leak from other growth.
 */
const GROWN_BYTES = { gentle: 16 * 2 ** 20, close: 4 * 2 ** 20 }
/** Growth within less than this may as well be requests in flight. */
const LEAST_SECONDS = 9

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {boolean} whether a profile is to cost next to nothing. Where the operator allows full
 *   GCs on command, somebody waits for the answer, and a few percent for some seconds are welcome.
 */
const isGentle = ({ hello }) => !hello.commands?.includes('force_gc')

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {Changed} verdict
 * @returns {number} seconds that a heap profile of a leak takes; at most as long as one takes that
 *   somebody asks for
 */
function leakProfileSeconds (target, { evidence }) {
  const growth = evidence.find(({ signal }) => signal === 'liveHeapGrowthBytesPerSecond')?.value ?? 0
  const wanted = GROWN_BYTES[isGentle(target) ? 'gentle' : 'close'] / Math.max(growth, 1)
  return Math.ceil(Math.min(Math.max(wanted, LEAST_SECONDS), kinds.heap_profile.seconds))
}

/** @typedef {Parameters<import('./captures').Captures['request']>[1]} Options */

/**
 * @typedef {Pick<import('@memwatch/engine/verdicts/evaluate').Verdict, 'diagnosis' | 'state' |
 *   'evidence'>} Changed
 */

/**
 * Captures at the first suspicion of a diagnosis.
 * @type {Readonly<Record<string, { kind: import('./kinds').KindName, seconds?: (target:
 *   import('@memwatch/engine/history/target').Target, verdict: Changed) => number }>>}
 */
const triggers = Object.freeze({
  'js-heap-leak': { kind: 'heap_profile', seconds: leakProfileSeconds },
  'event-loop-blocked': { kind: 'cpu_profile' }
})
/** A target is not asked for the same again within this. */
const AGAIN_MS = 3_600_000
/** Whoever waits longer than this has changed meanwhile. */
const MOST_WAITING = 20

/**
 * Captures that the exporter has made by itself: low-overhead ones, once, and one at a time for all
 * targets. Simultaneous problems of many mostly have one cause.
 */
class AutomaticCaptures {
  #captures
  #now
  /**
   * When each target was asked for what.
   * @type {WeakMap<import('@memwatch/engine/history/target').Target, Map<string, number>>}
   */
  #askedAt = new WeakMap()
  /** @type {{ target: import('@memwatch/engine/history/target').Target, options: Options }[]} */
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
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {Changed} verdict
   */
  changed (target, verdict) {
    const { diagnosis, state } = verdict
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
    const { kind, seconds } = triggers[diagnosis]
    this.#waiting.push({
      target,
      options: { kind, seconds: seconds?.(target, verdict), gentle: isGentle(target), diagnosis }
    })
    this.#next()
  }

  #next () {
    const next = this.#busy ? undefined : this.#waiting.shift()
    if (!next) return
    const { target, options } = next
    this.#busy = true
    this.#make(target, options).finally(() => {
      this.#busy = false
      this.#next()
    })
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {Options} options
   */
  async #make (target, options) {
    try {
      await this.#captures.request(target, options).finished
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      // It takes none, or is gone: nothing was asked for, nobody is told.
    }
  }
}

module.exports = { AutomaticCaptures, triggers }
