'use strict'

const { outsideHeap } = require('@memwatch/engine/memory/frame-parts')
const { NATIVE_BASE_BYTES } = require('@memwatch/engine/memory/parts')
const { limits: IDLE } = require('@memwatch/engine/diagnoses/idle-heap-not-returned')
const { REST } = require('@memwatch/engine/signals/rest-freed')
const { findCase, thrashes } = require('@memwatch/engine/verdicts/case')
const { CommandError } = require('./commands')

/** Diagnoses that judge the live heap after major GCs. */
const BY_READINGS = new Set(['js-heap-leak', 'native-memory-leak', 'context-leak'])
/** Least time between requests: the agent does not run two full GCs within four seconds. */
const LEAST_SECONDS = 5
/**
 * Time after a refusal. The agent refuses until its time budget allows a GC, which takes half a
 * minute for a heap of 400 MiB.
 */
const AGAIN_SECONDS = 2
/**
 * Time between readings, as a part of the time for which the target was watched: its age, or the
 * time since an attach. A trend needs seven readings in the last four fifths of this time. A
 * reading at every sixth of it yields about ten, enough to stay decided and to notice later growth.
 * While a check is open, a twelfth yields about twenty.
 */
const PART_OF_WATCH = Object.freeze({ suspected: 1 / 12, open: 1 / 12, ok: 1 / 6 })
/** Upper bound of this time in the calculation: two hours, the window of trends over minutes. */
const MOST_WATCHED_SECONDS = 7200
/** Time at rest after which idle-heap-not-returned is judged. */
const JUDGED_SECONDS = 75
/**
 * Least drop of memory outside the heap that counts as freed by a requested full GC. After such
 * drops the requests stop: in production this memory stays until V8 runs its own GC, much later.
 * Finalizers run in turns of the event loop after a GC, so the next frames show the freed memory.
 */
const FREED = Object.freeze({ bytes: 8 * 2 ** 20, share: 0.1, withinSeconds: 2.5, times: 2 })

/**
 * @typedef {object} Readings readings of one target
 * @property {number | undefined} majors number of major GCs at the last reading
 * @property {number} readAtSeconds uptime
 * @property {number} askedAtSeconds uptime
 * @property {number} outsideBytes memory outside the heap at the last request; NaN once it was
 *   compared
 * @property {number} freed number of requested GCs that freed memory outside the heap
 * @property {number} seenAtSeconds uptime
 * @property {number} activeSeconds active time of the event loop at `seenAtSeconds`
 * @property {number} busyAtSeconds uptime at which the event loop was last busy
 */

/**
 * Requests full GCs from agents that allow it, if leak checks lack readings of the live heap
 * because the app's own major GCs are rare. The agent limits the time of these GCs. Requests stop
 * if the GCs free memory outside the heap. An app at rest whose heap is much larger than its live
 * heap gets none until idle-heap-not-returned is judged, and a nearly full heap, which V8 collects
 * often enough, gets none at all. With these limits the app behaves as it would without requests.
 */
class ForcedReadings {
  #commands
  /** @type {WeakMap<import('@memwatch/engine/history/target').Target, Readings>} */
  #readings = new WeakMap()

  /** @param {Pick<import('./commands').Commands, 'carryOut'>} commands */
  constructor (commands) {
    this.#commands = commands
  }

  /**
   * Handles a frame of a target.
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {Promise<void> | undefined} resolves with the answer, if a GC was requested
   */
  seen (target) {
    const { frame, hello, send, values, watchedSeconds } = target
    if (!frame || !send || !hello.commands?.includes('force_gc')) return
    const { uptimeSeconds } = frame
    const readings = this.#readingsOf(target)
    if (values.liveHeapMajors !== readings.majors) {
      readings.majors = values.liveHeapMajors
      readings.readAtSeconds = uptimeSeconds
    }
    weighFreed(readings, target)
    noteWork(readings, target)
    if (readings.freed >= FREED.times || thrashes(target)) return
    if (uptimeSeconds - readings.askedAtSeconds < LEAST_SECONDS) return
    const need = needOf(target)
    if (need === 'none' || (need !== 'suspected' && wouldHeal(readings, target))) return
    const distanceSeconds =
      Math.max(LEAST_SECONDS, PART_OF_WATCH[need] * Math.min(watchedSeconds, MOST_WATCHED_SECONDS))
    if (uptimeSeconds - readings.readAtSeconds < distanceSeconds) return
    readings.askedAtSeconds = uptimeSeconds
    readings.outsideBytes = outsideHeap(values, target.workers, target.scan) ?? NaN
    return this.#ask(target, readings)
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @returns {Readings}
   */
  #readingsOf (target) {
    const known = this.#readings.get(target)
    if (known) return known
    const none = {
      majors: undefined,
      readAtSeconds: 0,
      askedAtSeconds: 0,
      outsideBytes: NaN,
      freed: 0,
      seenAtSeconds: 0,
      activeSeconds: 0,
      busyAtSeconds: 0
    }
    this.#readings.set(target, none)
    return none
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {Readings} readings
   */
  async #ask (target, readings) {
    try {
      await this.#commands.carryOut(target, 'force_gc')
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      // The request fails if the agent's time budget is used up, or if the agent has ended.
      readings.askedAtSeconds -= LEAST_SECONDS - AGAIN_SECONDS
    }
  }
}

/**
 * @param {Readings} readings readings of the target; `freed` grows if the last requested GC freed
 *   memory outside the heap
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function weighFreed (readings, { frame, values, workers, scan }) {
  if (!frame || Number.isNaN(readings.outsideBytes)) return
  const freed = readings.outsideBytes - (outsideHeap(values, workers, scan) ?? NaN)
  const isMuch = freed >= Math.max(FREED.bytes, FREED.share * readings.outsideBytes)
  if (isMuch) readings.freed++
  if (isMuch || frame.uptimeSeconds - readings.askedAtSeconds > FREED.withinSeconds) {
    readings.outsideBytes = NaN
  }
}

/**
 * @param {Readings} readings
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function noteWork (readings, { frame, values: { eventLoopActiveSeconds: active = NaN } }) {
  const { uptimeSeconds } = /** @type {NonNullable<typeof frame>} */ (frame)
  const busySeconds = active - readings.activeSeconds
  const isAtRest = busySeconds < REST.utilizationRatio * (uptimeSeconds - readings.seenAtSeconds)
  if (!isAtRest) readings.busyAtSeconds = uptimeSeconds
  readings.seenAtSeconds = uptimeSeconds
  readings.activeSeconds = active
}

/**
 * True if a GC would hide idle-heap-not-returned: V8 runs no GC in an app at rest, and a full GC
 * would return the memory that the heap retained after a burst. After a minute at rest, either the
 * finding is confirmed, or no limit is near, and only a GC shows how much of the heap is in use.
 * @param {Readings} readings
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function wouldHeal ({ seenAtSeconds, busyAtSeconds }, target) {
  const { values, workers } = target
  const restSeconds = seenAtSeconds - busyAtSeconds
  if (restSeconds < REST.seconds) return false
  const isKnown = findCase(target).verdicts.some(({ diagnosis, state }) =>
    diagnosis === 'idle-heap-not-returned' && state === 'confirmed')
  if (restSeconds >= JUDGED_SECONDS && !isKnown) return false
  const { rssAnonBytes, heapTotalBytes = 0, liveHeapBytes } = values
  if (liveHeapBytes === undefined) return false
  // A SharedArrayBuffer is not external memory of V8.
  const buffers = Math.max(values.externalBytes ?? 0, values.arrayBuffersBytes ?? 0)
  const held = rssAnonBytes === undefined
    ? heapTotalBytes
    : rssAnonBytes - buffers - workers.heapBytes - workers.externalBytes - NATIVE_BASE_BYTES
  return held - liveHeapBytes >= IDLE.slackBytes
}

/**
 * State of the leak checks of a target, which need readings: `suspected` or `open` while one of
 * them is suspected or unknown; `ok` if all are ruled out; `none` before the first evaluation, and
 * once a leak is confirmed.
 * @param {import('@memwatch/engine/history/target').Target} target
 * @returns {'suspected' | 'open' | 'ok' | 'none'}
 */
function needOf (target) {
  const checks = findCase(target).verdicts.filter(({ diagnosis }) => BY_READINGS.has(diagnosis))
  if (checks.length === 0 || checks.some(({ state }) => state === 'confirmed')) return 'none'
  if (checks.some(({ state }) => state === 'suspected')) return 'suspected'
  const isOpen = checks.some(({ state, open }) =>
    state === 'unknown' && open?.until === 'readings')
  return isOpen ? 'open' : 'ok'
}

module.exports = { ForcedReadings }
