'use strict'

const { nowMs } = require('./primordials')
const { getHeapStatistics, runInNewContext, setFlagsFromString } = require('./v8-functions')
const { debug } = require('./guard')

/** Most of the wall time that an app stands still for GCs on command. */
const MOST_SHARE = 0.02
/** However short they are: each lets code age that V8 throws away when it is old. */
const LEAST_DISTANCE_SECONDS = 4
/**
 * Pause of a full GC for each byte of the heap before one was measured: 0.5 to 1.6 ms a MiB on
 * Node.js 18 to 26 with small objects, on a busy machine.
 */
const FIRST_SECONDS_PER_BYTE = 0.0016 / 2 ** 20

const OVER_BUDGET = 'full GCs on command take 2 % of the time at most'

/** @type {(() => void) | undefined} */
let gc

/**
 * V8's own `gc`, which marks and compacts once, before it returns. It is exposed to a context that
 * is new while the flag is set; the app's contexts do not have it. See
 * docs/decisions/0060-full-gcs-on-command.md.
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
 * Full GCs on command, for readings of the live heap where V8 itself collects too rarely. Each
 * comes as long after the one before, or after the start, as keeps them within MOST_SHARE: by the
 * pause of the last one, and by the pause that the heap of now makes likely.
 */
class ForcedGc {
  #ownGc
  #pauses
  #now
  #collect
  #heapUsedBytes
  #endedAtSeconds = 0
  #pauseSeconds = 0
  #secondsPerByte = FIRST_SECONDS_PER_BYTE

  /**
   * @param {import('./collect/gc').OwnGc} ownGc is told of each
   * @param {{ takePending: () => void, takeOwn: () => void }} pauses who reads ownGc, or takes
   *   what was counted meanwhile as the agent's
   * @param {{ now?: () => number, collect?: () => void, heapUsedBytes?: () => number }}
   *   [dependencies] now: milliseconds since the isolate started
   */
  constructor (ownGc, pauses, dependencies = {}) {
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
    const distanceSeconds = Math.max(LEAST_DISTANCE_SECONDS, likelySeconds / MOST_SHARE)
    const beganMs = this.#now()
    if (beganMs / 1000 - this.#endedAtSeconds < distanceSeconds) {
      return { ok: false, reason: 'too_soon', message: OVER_BUDGET }
    }
    // Of the one before, while ownGc still tells of it.
    this.#pauses.takePending()
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
    this.#pauses.takeOwn()
    this.#endedAtSeconds = endedMs / 1000
    this.#pauseSeconds = pauseMs / 1000
    this.#secondsPerByte = this.#pauseSeconds / Math.max(1, usedBytes)
    return { ok: true, blockedSeconds: this.#pauseSeconds }
  }
}

module.exports = { ForcedGc, LEAST_DISTANCE_SECONDS, MOST_SHARE }
