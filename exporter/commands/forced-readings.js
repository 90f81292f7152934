'use strict'

const { outsideHeap } = require('@memwatch/engine/memory/frame-parts')
const { NATIVE_BASE_BYTES } = require('@memwatch/engine/memory/parts')
const { limits: IDLE } = require('@memwatch/engine/diagnoses/idle-heap-not-returned')
const { findCase } = require('@memwatch/engine/verdicts/case')
const { CommandError } = require('./commands')

/** Diagnoses that judge the live heap after major GCs. */
const BY_READINGS = new Set(['js-heap-leak', 'native-memory-leak', 'context-leak'])
/** The agent runs no two full GCs within four seconds. */
const LEAST_SECONDS = 5
/**
 * Distance between readings, as a part of the age. A trend needs seven readings in the last four
 * fifths of a life. With a sixth there are always ten, enough to stay decided and to see what
 * begins later; while a check is open there are twenty.
 */
const PART_OF_LIFE = Object.freeze({ suspected: 1 / 12, open: 1 / 12, ok: 1 / 6 })
/** Window of trends of minutes: two hours. */
const MOST_LIFE_SECONDS = 7200
/**
 * Freed memory outside the heap from which a full GC hides a problem: in production that memory
 * stays until V8 runs a GC itself, which is late. Finalizers run in turns of the loop after a GC,
 * so the next frames show the freed memory.
 */
const FREED = Object.freeze({ bytes: 8 * 2 ** 20, share: 0.1, withinSeconds: 2.5, times: 2 })

/** Time without work after which an event loop is at rest. */
const REST_SECONDS = 3

/**
 * @typedef {object} Readings of one target
 * @property {number | undefined} majors at the last reading
 * @property {number} readAtSeconds uptime
 * @property {number} askedAtSeconds uptime
 * @property {number} outsideBytes memory outside the heap at the last request; NaN once weighed
 * @property {number} freed number of these GCs that freed memory outside the heap
 * @property {number} seenAtSeconds uptime
 * @property {number} activeSeconds active time of the event loop at that reading
 * @property {number} busyAtSeconds uptime when the event loop was last at work
 */

/**
 * Requests full GCs from agents that allow it, if leak checks lack readings of the live heap
 * because the app's own major GCs are rare. The agent bounds their time. Requests stop if they free
 * memory outside the heap. An app at rest that holds much more than its live heap gets none. With
 * these limits the app behaves as without requests.
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
    const { frame, hello, send, values } = target
    if (!frame || !send || !hello.commands?.includes('force_gc')) return
    const { uptimeSeconds } = frame
    const readings = this.#readingsOf(target)
    if (values.liveHeapMajors !== readings.majors) {
      readings.majors = values.liveHeapMajors
      readings.readAtSeconds = uptimeSeconds
    }
    weighFreed(readings, target)
    noteWork(readings, target)
    if (readings.freed >= FREED.times) return
    if (uptimeSeconds - readings.askedAtSeconds < LEAST_SECONDS) return
    const need = needOf(target)
    if (need === 'none' || (need !== 'suspected' && wouldHeal(readings, target))) return
    const distanceSeconds =
      Math.max(LEAST_SECONDS, PART_OF_LIFE[need] * Math.min(uptimeSeconds, MOST_LIFE_SECONDS))
    if (uptimeSeconds - readings.readAtSeconds < distanceSeconds) return
    readings.askedAtSeconds = uptimeSeconds
    readings.outsideBytes = outsideHeap(values, target.workers) ?? NaN
    return this.#ask(target)
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

  /** @param {import('@memwatch/engine/history/target').Target} target */
  async #ask (target) {
    try {
      await this.#commands.carryOut(target, 'force_gc')
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      // The agent's time budget is used up, or the agent has ended.
    }
  }
}

/**
 * @param {Readings} readings readings whose last GC on command is weighed once it can have freed
 *   memory
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function weighFreed (readings, { frame, values, workers }) {
  if (!frame || Number.isNaN(readings.outsideBytes)) return
  const freed = readings.outsideBytes - (outsideHeap(values, workers) ?? NaN)
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
  const isAtRest = busySeconds < IDLE.utilizationRatio * (uptimeSeconds - readings.seenAtSeconds)
  if (!isAtRest) readings.busyAtSeconds = uptimeSeconds
  readings.seenAtSeconds = uptimeSeconds
  readings.activeSeconds = active
}

/**
 * V8 runs no GC in an app at rest, and a full GC would return the memory that the heap kept after a
 * burst: that would hide idle-heap-not-returned.
 * @param {Readings} readings
 * @param {import('@memwatch/engine/history/target').Target} target
 */
function wouldHeal ({ seenAtSeconds, busyAtSeconds }, { values, workers }) {
  if (seenAtSeconds - busyAtSeconds < REST_SECONDS) return false
  const { rssAnonBytes, heapTotalBytes = 0, liveHeapBytes, externalBytes = 0 } = values
  if (liveHeapBytes === undefined) return false
  const held = rssAnonBytes === undefined
    ? heapTotalBytes
    : rssAnonBytes - externalBytes - workers.heapBytes - workers.externalBytes - NATIVE_BASE_BYTES
  return held - liveHeapBytes >= IDLE.slackBytes
}

/**
 * Readings that the leak checks of a target need: `suspected` and `open` while one of them is
 * suspected or unknown, `ok` to stay ruled out, `none` before the first judgement and once a leak
 * is confirmed.
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
