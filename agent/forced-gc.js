'use strict'

const { nowMs, measureCpu } = require('./primordials')
const { getHeapStatistics, runInNewContext, setFlagsFromString } = require('./v8-functions')
const { debug } = require('./guard')

/**
 * Largest share of CPU time, and least time between two full GCs. Each full GC ages compiled code,
 * and V8 discards old code.
 */
const LIMITS = {
  allow: { share: 0.02, distanceSeconds: 4 },
  often: { share: 0.25, distanceSeconds: 0.1 }
}
/**
 * Least cost of a pause, as a share of its length: a pause without CPU time blocks the app, too. So
 * the mode `allow` pauses the app for at most a tenth of the time.
 */
const LEAST_CPU_SHARE = 0.2
/**
 * Cost before the first measurement: full GCs took 0.5 to 1.6 ms for each MiB on Node.js 18 to 26.
 */
const FIRST_SECONDS_PER_BYTE = 0.0016 / 2 ** 20

/** @type {(() => void) | undefined} */
let gc

/**
 * V8 exposes its `gc` to contexts created while the flag is set, so to no context of the app:
 * docs/decisions/0060-full-gcs-on-command.md.
 * @returns {() => void}
 */
function exposeGc () {
  const found = runInNewContext('typeof gc === "function" ? gc : undefined')
  if (found) return found
  // V8 aborts a process that sets a frozen flag.
  if (process.execArgv.some(flag => /^--freeze.flags/.test(flag))) throw new Error('frozen flags')
  setFlagsFromString('--expose-gc')
  try {
    return runInNewContext('gc')
  } finally {
    setFlagsFromString('--no-expose-gc')
  }
}

const collect = () => {
  gc ??= exposeGc()
  gc()
}
const heapUsedBytes = () => getHeapStatistics().used_heap_size

/**
 * Full GCs on command, for readings of the live heap when V8 itself collects too rarely. The time
 * since the previous GC, or since the start, keeps their share within LIMITS. The expected cost
 * follows from the last GC and from the size of the heap.
 */
class ForcedGc {
  #limits
  #ownGc
  #pauses
  #system
  #endedAtSeconds = 0
  #costSeconds = 0
  #secondsPerByte = FIRST_SECONDS_PER_BYTE

  /**
   * @param {keyof typeof LIMITS} mode
   * @param {import('./collect/gc').OwnGc} ownGc records each GC
   * @param {{ countPending: () => void, countOwn: () => void }} pauses counters of GCs
   * @param {{ now?: () => number, measureCpu?: typeof measureCpu, collect?: () => void,
   *   heapUsedBytes?: () => number }} [dependencies] now: milliseconds since the isolate started
   */
  constructor (mode, ownGc, pauses, dependencies = {}) {
    this.#limits = LIMITS[mode]
    this.#ownGc = ownGc
    this.#pauses = pauses
    this.#system = { now: nowMs, measureCpu, collect, heapUsedBytes, ...dependencies }
  }

  /** @returns {import('./commands').Result} blockedSeconds: the pause */
  run () {
    const { now, measureCpu, collect, heapUsedBytes } = this.#system
    const usedBytes = heapUsedBytes()
    const likelySeconds = Math.max(this.#costSeconds, this.#secondsPerByte * usedBytes)
    const { share, distanceSeconds } = this.#limits
    const leastSeconds = Math.max(distanceSeconds, likelySeconds / share)
    const beganMs = now()
    const cpuSeconds = measureCpu()
    if (beganMs / 1000 - this.#endedAtSeconds < leastSeconds) {
      return { ok: false, reason: 'too_soon', message: 'too soon after the last full GC' }
    }
    // ownGc still describes the previous GC on command: count that one first.
    this.#pauses.countPending()
    try {
      collect()
    } catch (error) {
      debug('full GC: %s', error)
      return { ok: false, reason: 'not_supported', message: 'this Node exposes no gc' }
    }
    const endedMs = now()
    const pauseMs = endedMs - beganMs
    this.#ownGc.beganMs = beganMs
    this.#ownGc.endedMs = endedMs
    this.#ownGc.totalMs += pauseMs
    this.#pauses.countOwn()
    this.#endedAtSeconds = endedMs / 1000
    this.#costSeconds = Math.max(cpuSeconds(), LEAST_CPU_SHARE * pauseMs / 1000)
    this.#secondsPerByte = this.#costSeconds / Math.max(1, usedBytes)
    return { ok: true, blockedSeconds: pauseMs / 1000 }
  }
}

module.exports = { ForcedGc, LIMITS }
