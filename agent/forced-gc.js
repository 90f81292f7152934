'use strict'

const { nowMs } = require('./primordials')
const { getHeapStatistics, runInNewContext, setFlagsFromString } = require('./v8-functions')
const { debug } = require('./guard')

/** Most share of time, and least distance, as each GC ages code, and V8 discards old code. */
const LIMITS = {
  allow: { share: 0.02, distanceSeconds: 4 },
  often: { share: 0.25, distanceSeconds: 0.1 }
}
/**
 * Estimate before the first measurement: full GCs took 0.5 to 1.6 ms for each MiB of heap on
 * Node.js 18 to 26, with small objects on a busy machine.
 */
const FIRST_SECONDS_PER_BYTE = 0.0016 / 2 ** 20

const OVER_BUDGET = 'too soon after the last full GC on command'

/** @type {(() => void) | undefined} */
let gc

/**
 * V8's own `gc` marks and compacts once before it returns. V8 exposes it to contexts created while
 * the flag is set; the app's contexts do not get it: docs/decisions/0060-full-gcs-on-command.md.
 * @returns {() => void}
 */
function exposeGc () {
  const found = runInNewContext('typeof gc === "function" ? gc : undefined')
  if (found) return found
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
 * Full GCs on command, for readings of the live heap when V8 itself collects too rarely. The
 * distance to the previous GC, or to the start, limits their share of time, for the last pause and
 * for the pause that the current heap predicts.
 */
class ForcedGc {
  #limits
  #ownGc
  #pauses
  #now
  #collect
  #heapUsedBytes
  #endedAtSeconds = 0
  #pauseSeconds = 0
  #secondsPerByte = FIRST_SECONDS_PER_BYTE

  /**
   * @param {keyof typeof LIMITS} mode
   * @param {import('./collect/gc').OwnGc} ownGc records each GC
   * @param {{ countPending: () => void, countOwn: () => void }} pauses counters of GCs
   * @param {{ now?: () => number, collect?: () => void, heapUsedBytes?: () => number }}
   *   [dependencies] now: milliseconds since the isolate started
   */
  constructor (mode, ownGc, pauses, dependencies = {}) {
    this.#limits = LIMITS[mode]
    this.#ownGc = ownGc
    this.#pauses = pauses
    this.#now = dependencies.now ?? nowMs
    this.#collect = dependencies.collect ?? collect
    this.#heapUsedBytes = dependencies.heapUsedBytes ?? heapUsedBytes
  }

  /** @returns {import('./commands').Result} blockedSeconds: the pause */
  run () {
    const usedBytes = this.#heapUsedBytes()
    const likelySeconds = Math.max(this.#pauseSeconds, this.#secondsPerByte * usedBytes)
    const { share, distanceSeconds } = this.#limits
    const beganMs = this.#now()
    const leastSeconds = Math.max(distanceSeconds, likelySeconds / share)
    if (beganMs / 1000 - this.#endedAtSeconds < leastSeconds) {
      return { ok: false, reason: 'too_soon', message: OVER_BUDGET }
    }
    // ownGc still describes the previous GC on command: count that one first.
    this.#pauses.countPending()
    try {
      this.#collect()
    } catch (error) {
      debug('full GC: %s', error)
      return { ok: false, reason: 'not_supported', message: 'this Node exposes no gc' }
    }
    const endedMs = this.#now()
    const pauseMs = endedMs - beganMs
    this.#ownGc.beganMs = beganMs
    this.#ownGc.endedMs = endedMs
    this.#ownGc.totalMs += pauseMs
    this.#pauses.countOwn()
    this.#endedAtSeconds = endedMs / 1000
    this.#pauseSeconds = pauseMs / 1000
    this.#secondsPerByte = this.#pauseSeconds / Math.max(1, usedBytes)
    return { ok: true, blockedSeconds: this.#pauseSeconds }
  }
}

module.exports = { ForcedGc, LIMITS }
