'use strict'

const { CommandError } = require('../commands/commands')
const { kinds } = require('./kinds')
const { signalsOf } = require('@memwatch/engine/signals/index')

/**
 * A heap profile lasts until so much of what the leak keeps can be expected in it: 32 samples, at
 * the two intervals of the agent. Fewer do not tell the leak from other growth.
 */
const GROWN_BYTES = { gentle: 16 * 2 ** 20, close: 4 * 2 ** 20 }
/** Growth within less than this may as well be requests in flight. */
const LEAST_SECONDS = 9

/** One allocation in so many bytes is sampled; close: the agent's default. */
const INTERVAL_BYTES = { gentle: 524_288, close: 131_072 }
/**
 * Objects that own handles or memory outside the heap are small: 300 bytes own 60 KiB. Where little
 * is allocated they are sampled more closely, as far down as the agent goes, ...
 */
const LEAST_INTERVAL_BYTES = 8192
/** ... and as often as costs about 1 % of a core: 30 µs each were measured. */
const MOST_SAMPLES_PER_SECOND = 300

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

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {number} bytes
 */
const intervalOf = target => INTERVAL_BYTES[isGentle(target) ? 'gentle' : 'close']

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {number} bytes
 */
function ownersInterval (target) {
  const window = target.window()
  if (window === null) return intervalOf(target)
  const { scavengesPerSecond, semiSpaceCapacityBytes } = signalsOf(window)
  if (scavengesPerSecond === null || semiSpaceCapacityBytes === null) return intervalOf(target)
  // A scavenge comes when a semi-space is full.
  const allocated = scavengesPerSecond * semiSpaceCapacityBytes
  const affordable = Math.max(LEAST_INTERVAL_BYTES, allocated / MOST_SAMPLES_PER_SECOND)
  return Math.ceil(Math.min(affordable, intervalOf(target)))
}

/**
 * Objects of JavaScript own Buffers, streams and most handles of native code. A profile runs full
 * GCs: unless those are allowed, it must not free what still waits for one. Heaps of other threads
 * are not in it.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {Changed} verdict of native-memory-leak
 */
function mayHaveOwners (target, { evidence }) {
  const majors = evidence.find(({ signal }) => signal === 'majorsSeen')
  const mayCollect = !isGentle(target) || (majors !== undefined && majors.value >= majors.limit)
  return mayCollect &&
    !evidence.some(({ signal }) => signal === 'silentWorkerHeapGrowthBytesPerSecond')
}

/** @typedef {Parameters<import('./captures').Captures['request']>[1]} Options */

/**
 * @typedef {Pick<import('@memwatch/engine/verdicts/evaluate').Verdict, 'diagnosis' | 'state' |
 *   'evidence'>} Changed
 */

/**
 * What is captured when a diagnosis is first suspected. `isUseful`: always, where it is absent.
 * @typedef {object} Trigger
 * @property {import('./kinds').KindName} kind
 * @property {(target: import('@memwatch/engine/history/target').Target, verdict: Changed) =>
 *   boolean} [isUseful]
 * @property {(target: import('@memwatch/engine/history/target').Target, verdict: Changed) =>
 *   number} [seconds]
 * @property {(target: import('@memwatch/engine/history/target').Target) => number} [intervalBytes]
 */

/**
 * The first of a kind is the diagnosis that a capture of this kind says most about.
 * @type {Readonly<Record<string, Trigger>>}
 */
const triggers = Object.freeze({
  'js-heap-leak': {
    kind: 'heap_profile', seconds: leakProfileSeconds, intervalBytes: intervalOf
  },
  'native-memory-leak': {
    kind: 'heap_profile', isUseful: mayHaveOwners, intervalBytes: ownersInterval
  },
  'resource-leak': { kind: 'heap_profile', intervalBytes: ownersInterval },
  'event-loop-blocked': { kind: 'cpu_profile' }
})
/** A target is not asked for the same again within this. */
const AGAIN_MS = 3_600_000
/** Whoever waits longer than this has changed meanwhile. */
const MOST_WAITING = 20

/**
 * Captures that the exporter has made by itself: low-overhead ones, once. One at a time, of all
 * targets: what many suffer from at once is the same, mostly.
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
    const { kind, seconds, intervalBytes, isUseful } = triggers[diagnosis]
    if (isUseful && !isUseful(target, verdict)) return
    const asked = this.#askedAt.get(target) ?? new Map()
    this.#askedAt.set(target, asked)
    if (
      this.#now() - (asked.get(diagnosis) ?? -Infinity) < AGAIN_MS ||
      this.#waiting.length >= MOST_WAITING
    ) { return }
    asked.set(diagnosis, this.#now())
    this.#waiting.push({
      target,
      options: {
        kind,
        seconds: seconds?.(target, verdict),
        intervalBytes: intervalBytes?.(target),
        diagnosis
      }
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
