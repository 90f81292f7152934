'use strict'

const { CommandError } = require('../commands/commands')
const { kinds } = require('./kinds')
const { signalsOf } = require('@memwatch/engine/signals/index')

/** Samples of retained memory after which a heap profile distinguishes a leak from other growth. */
const SAMPLES = 32
/** Least growth: less may belong to unfinished requests. */
const LEAST_SECONDS = 9
/**
 * Mean distance of two samples, and samples a second: in a service, and if a user waits. A waiting
 * user accepts a few percent of the CPU for some seconds. A sample takes about 35 µs.
 */
const INTERVAL_BYTES = { service: 524_288, watched: 131_072 }
const SAMPLES_PER_SECOND = { service: 100, watched: 200 }
/**
 * Least distance of samples: an app that allocates little may begin to allocate much at any time,
 * and then pays for each sample.
 */
const LEAST_INTERVAL_BYTES = { service: 32_768, watched: 4096 }
/** Seconds of a profile of a leak outside the heap, which finds few samples a second. */
const OUTSIDE_SECONDS = { service: 120, watched: 15 }

/**
 * Kind of run. `watched` if the operator allows full GCs on command: a user waits for the answer.
 * @param {import('@memwatch/engine/history/target').Target} target
 */
const modeOf = ({ hello }) => hello.commands?.includes('force_gc') ? 'watched' : 'service'

/** @typedef {Pick<Options, 'kind' | 'seconds' | 'intervalBytes'>} Plan */

/**
 * A leak of the JS heap: as long as its samples take, at most as long as a profile on request.
 * @type {(target: import('@memwatch/engine/history/target').Target, verdict: Changed) => Plan}
 */
function planForHeapLeak (target, { evidence }) {
  const intervalBytes = INTERVAL_BYTES[modeOf(target)]
  const growth = evidence.find(({ signal }) => signal === 'liveHeapGrowthBytesPerSecond')?.value ?? 0
  const wanted = SAMPLES * intervalBytes / Math.max(growth, 1)
  const seconds = Math.ceil(Math.min(Math.max(wanted, LEAST_SECONDS), kinds.heap_profile.seconds))
  return { kind: 'heap_profile', seconds, intervalBytes }
}

/**
 * A leak outside the JS heap: each Buffer, zlib stream, socket or worker that is retained has
 * objects of some hundred bytes on the heap. To find those the profile samples as closely as the
 * allocation rate permits, which is at most a semi-space per scavenge.
 * docs/decisions/0065-profiles-find-owners-outside-the-heap.md
 * @type {(target: import('@memwatch/engine/history/target').Target) => Plan}
 */
function planForOutsideLeak (target) {
  const mode = modeOf(target)
  const window = target.window()
  const { scavengesPerSecond = null, semiSpaceCapacityBytes = null } = window
    ? signalsOf(window)
    : {}
  const bytesPerSecond = scavengesPerSecond === null || semiSpaceCapacityBytes === null
    ? Infinity
    : scavengesPerSecond * semiSpaceCapacityBytes
  const wanted = Math.max(LEAST_INTERVAL_BYTES[mode], bytesPerSecond / SAMPLES_PER_SECOND[mode])
  return {
    kind: 'heap_profile',
    seconds: OUTSIDE_SECONDS[mode],
    intervalBytes: Math.round(Math.min(wanted, INTERVAL_BYTES[mode]))
  }
}

/** @typedef {Parameters<import('./captures').Captures['request']>[1]} Options */

/**
 * @typedef {Pick<import('@memwatch/engine/verdicts/evaluate').Verdict, 'diagnosis' | 'state' |
 *   'evidence'>} Changed
 */

/**
 * JavaScript objects own Buffers, streams and most handles of native code. A profile runs full GCs.
 * Unless the operator allows those, it must not free memory that still waits for a GC. It does not
 * show the heaps of other threads.
 * @type {(target: import('@memwatch/engine/history/target').Target, verdict: Changed) =>
 *   Plan | undefined}
 */
function planForNativeLeak (target, { evidence }) {
  const majors = evidence.find(({ signal }) => signal === 'majorsSeen')
  const mayCollect = modeOf(target) === 'watched' ||
    (majors !== undefined && majors.value >= majors.limit)
  const hasOwners = mayCollect &&
    !evidence.some(({ signal }) => signal === 'silentWorkerHeapGrowthBytesPerSecond')
  return hasOwners ? planForOutsideLeak(target) : undefined
}

/** @type {() => Plan} */
const planForBlockedLoop = () => ({ kind: 'cpu_profile' })

/**
 * Captures at the first suspicion of a diagnosis.
 * @type {Readonly<Record<string, (target: import('@memwatch/engine/history/target').Target,
 *   verdict: Changed) => Plan | undefined>>} undefined: none yet
 */
const triggers = Object.freeze({
  'js-heap-leak': planForHeapLeak,
  'native-memory-leak': planForNativeLeak,
  'resource-leak': planForOutsideLeak,
  'event-loop-blocked': planForBlockedLoop
})
/** Time before a target is asked for the same capture again. */
const AGAIN_MS = 3_600_000
/** Longest wait in the queue; a target that waited longer has changed. */
const MOST_WAITING = 20

/**
 * Captures that the exporter starts by itself: once for each target, and one at a time, because
 * simultaneous problems of many targets usually have one cause.
 */
class AutomaticCaptures {
  #captures
  #now
  /**
   * Time and kind of the last automatic capture of each target.
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
    const plan = triggers[diagnosis](target, verdict)
    if (!plan) return
    asked.set(diagnosis, this.#now())
    this.#waiting.push({ target, options: { ...plan, diagnosis } })
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
      // The agent accepts none, or has ended: no capture was requested, so nobody is notified.
    }
  }
}

module.exports = { AutomaticCaptures, triggers }
