'use strict'

const { findSnapshotFolders } = require('./snapshot-files')

/**
 * Least share of CPU time of a process whose own work blocks its event loop. With a smaller share,
 * the process waits.
 */
const BUSY_RATIO = 0.2

/**
 * States of a watched target.
 *
 *   connected  frames arrive
 *   late       frames are missing, and its process is polled: a frame leads back to connected
 *   vanished   its connection ended without a goodbye; a frame leads back to connected
 *   leaving    it said goodbye, and the kernel is polled until its process is gone
 *   settled    its end was reported, or it lives unwatched: the final state
 */
const STATES = Object.freeze({
  connected: 'connected',
  late: 'late',
  vanished: 'vanished',
  leaving: 'leaving',
  settled: 'settled'
})

/**
 * End of a connection.
 * @typedef {object} Loss
 * @property {number} sinceUnixMs
 * @property {boolean} unreachable true if it timed out
 * @property {boolean} unwatched true if the exporter was away
 */

/** State of one target in the death watch. */
class Watched {
  /** @type {keyof typeof STATES} */
  #state = STATES.connected
  /**
   * End of its connection; set in the states vanished, leaving and settled.
   * @type {Loss | undefined}
   */
  #loss
  /**
   * Last state of its process; set while it is late.
   * @type {import('../process/witness').Sight | undefined}
   */
  #sight
  /** Cause of its silence. @type {import('./silence').SilenceCause | undefined} */
  #silence
  /** Growth of RSS observed since its last frame. @type {number | undefined} */
  #silentGrowthBytes
  /**
   * Exit status, as its parent or the kernel reported it.
   * @type {import('../process/witness').Exit | undefined}
   */
  exit
  /** Exit code of its goodbye. @type {number | undefined} */
  byeCode

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {import('../process/witness').Witness | null} witness
   */
  constructor (target, witness) {
    this.target = target
    this.witness = witness
    /** OOM kills in its cgroup at the last reading before its end. */
    this.oomKills = witness?.oomKills()
    /** Folders for heap snapshots of V8, which are readable only while the process lives. */
    this.snapshotFolders = witness ? findSnapshotFolders(target.hello) : undefined
  }

  get loss () {
    return this.#loss
  }

  get silence () {
    return this.#silence
  }

  get silentGrowthBytes () {
    return this.#silentGrowthBytes
  }

  get isLost () {
    return this.#state === STATES.vanished || this.#state === STATES.leaving
  }

  get isLeaving () {
    return this.#state === STATES.leaving
  }

  /** Handles a frame. */
  hear () {
    this.#state = STATES.connected
    this.#loss = undefined
    this.#sight = undefined
    this.#silence = undefined
    this.#silentGrowthBytes = undefined
    // The count is read again regularly, so that the earlier OOM kill of another process in the
    // cgroup does not count for this one.
    const { containerOomKills } = this.target.frame?.values ?? {}
    if (containerOomKills !== undefined) this.oomKills = this.witness?.oomKills()
  }

  /**
   * Polls its process while frames are missing.
   * @param {object} options
   * @param {number} options.everySeconds seconds since the last poll
   * @param {boolean} options.isSilent true if the silence is longer than that of a late frame
   * @param {boolean} options.overNetwork true if the network may cause the silence
   */
  pollLate ({ everySeconds, isSilent, overNetwork }) {
    this.#state = STATES.late
    if (!this.witness) {
      if (isSilent) this.#silence = 'unknown'
      return
    }
    const before = this.#sight
    const sight = this.#sight = this.witness.look()
    this.#noteGrowth(this.witness.rssBytes())
    // A process that writes a heap snapshot is late, and may have changed its working directory
    // since its start.
    this.snapshotFolders = findSnapshotFolders(this.target.hello) ?? this.snapshotFolders
    if (!isSilent) return
    if (sight.state === 'stopped') this.#silence = 'stopped'
    else if (sight.state !== 'gone' && before) {
      const busySeconds = sight.cpuSeconds - before.cpuSeconds
      if (busySeconds >= BUSY_RATIO * everySeconds) this.#silence = 'loop_blocked'
      else this.#silence = overNetwork ? 'unknown' : 'waiting'
    }
  }

  /** @param {Loss} loss */
  vanish (loss) {
    this.#state = STATES.vanished
    this.#loss = loss
  }

  /** Handles a goodbye. @param {number} nowUnixMs */
  leave (nowUnixMs) {
    this.#state = STATES.leaving
    this.#loss = { sinceUnixMs: nowUnixMs, unreachable: false, unwatched: false }
  }

  settle () {
    this.#state = STATES.settled
  }

  /**
   * Polls its process after the connection ended, while the kernel still shows its exit status.
   * @returns {boolean} true if it is gone
   */
  pollLost () {
    const sight = this.witness?.look()
    this.exit ??= sight?.exit
    return sight?.state === 'gone'
  }

  /** Records that its process outlives its connection. */
  loseConnection () {
    this.#silence = 'connection_lost'
  }

  /** @returns {'lives' | 'gone' | undefined} its state in the kernel; undefined if unreadable */
  checkProcess () {
    if (!this.witness) return undefined
    return this.witness.look().state === 'gone' ? 'gone' : 'lives'
  }

  /** @param {number | undefined} rssBytes */
  #noteGrowth (rssBytes) {
    const { rssBytes: reportedBytes } = this.target.values
    if (rssBytes === undefined || reportedBytes === undefined) return
    this.#silentGrowthBytes = Math.max(this.#silentGrowthBytes ?? 0, rssBytes - reportedBytes)
  }
}

module.exports = { Watched }
