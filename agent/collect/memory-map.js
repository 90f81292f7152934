'use strict'

const { clearTimeout, nowMs, setTimeout, measureCpu } = require('../primordials')
const { isTemporary } = require('../read-file')
const { memoryReader } = require('./memory-reader')
const { MOVED_SHARE, MemoryScan } = require('./memory-scan')

const EVERY_SECONDS = 5
/** At rest: while anonymous memory is constant, its parts hardly change. */
const AT_REST_EVERY_SECONDS = 60
/** Least change that ends the rest: garbage moves a small memory by more than MOVED_SHARE. */
const LEAST_MOVED_BYTES = 2 ** 20
/** Interval with smaps: the kernel reads all pages under the lock that page faults wait for. */
const SMAPS_EVERY_SECONDS = 120
/** Share of a core for scans; a slow scan makes the next ones rarer. */
const MOST_SHARE = 0.0005
/** The same in the first minutes, in which memory changes most. */
const EARLY_SHARE = 0.002
const EARLY_SECONDS = 120
const RAREST_SECONDS = 600
/** A scan takes up to dozens of ms; between such pieces the app has its turns. */
const PIECE_SECONDS = 0.0004
const BETWEEN_PIECES_MS = 1
/** A scan starts so early that it ends just before its frame: all values describe one moment. */
const LEAST_LEAD_MS = 5
const MOST_LEAD_MS = 500
const LEAD_FACTOR = 1.5
/** Longest scan in one go. */
const MOST_AT_ONCE_SECONDS = 0.01
const CLOCK = { now: () => nowMs() / 1000, measureCpu }
/** Other threads may move memory during every scan: the last attempt counts. */
const MOST_ATTEMPTS = 3

/**
 * States of the memory map. Frames call `read`; timers cause the other transitions.
 *
 *   idle     -- a frame, and a scan is due before the next --> waiting
 *   waiting  -- timer --> scanning -- last piece --> scanned
 *   scanned  -- a frame reports it --> idle
 *   scanned  -- memory moved meanwhile --> urgent, or idle if a scan in one go takes too long
 *   urgent   -- a frame scans in one go and reports --> idle
 *   any      -- a frame on command: it scans in one go and reports --> idle
 *   any      -- /proc is unreadable, for now --> idle, forever --> closed
 *   any      -- stop --> closed
 *
 * @typedef {'idle' | 'waiting' | 'scanning' | 'scanned' | 'urgent' | 'closed'} State
 */

/** @typedef {import('./collector').Values} Values */
/**
 * Guards work between frames, and counts its time.
 * @typedef {(what: string, work: () => void) => () => void} Metered
 */

/**
 * Breakdown of the process's anonymous memory outside the V8 heap. memory-scan.js runs one scan by
 * memory-reader.js; the states above decide the time. `other` is the rest, the V8 heap mostly.
 */
class MemoryMap {
  /** @type {readonly (keyof Values)[]} */
  fields = [
    'mallocHeapBytes',
    'mallocArenaBytes',
    'mallocArenas',
    'workerThreads',
    'v8MappedBytes',
    'residentBytes'
  ]

  /** @type {State} */
  #state = process.platform === 'linux' ? 'idle' : 'closed'
  /** @type {MemoryScan | undefined} */
  #scan
  /** Cancels the timer of `waiting` and `scanning`. @type {(() => void) | undefined} */
  #cancelTimer
  #frameMs
  #atRestEverySeconds
  #reader
  #clock
  #later
  #begin
  #continue
  #leadMs = LEAST_LEAD_MS
  /** Number of mixed scans in a row (MemoryScan.isMixed). */
  #attempts = 0
  /** Earliest time of the next scan, and of the next one at rest. */
  #nextAtSeconds = 0
  #restsUntilSeconds = 0
  /** Anonymous memory at the last report. */
  #reportedAnonBytes = NaN

  /**
   * @param {object} options
   * @param {number} options.frameMs
   * @param {Metered} options.metered
   * @param {(lines: string) => void} [options.onMaps] receives the lines as well
   * @param {number} [options.atRestEverySeconds] interval while anonymous memory stands still
   * @param {import('./memory-reader').Sources & { clock?: import('./memory-scan').Clock, later?:
   *   (work: () => void, ms: number) => () => void }} [dependencies] later: schedules work, and
   *   returns a function that cancels it
   */
  constructor (
    { frameMs, metered, onMaps = () => {}, atRestEverySeconds = AT_REST_EVERY_SECONDS },
    { clock = CLOCK, later = setLater, ...sources } = {}
  ) {
    this.#frameMs = frameMs
    this.#atRestEverySeconds = atRestEverySeconds
    this.#reader = memoryReader(onMaps, sources)
    this.#clock = clock
    this.#later = later
    this.#begin = metered('scan', () => {
      this.#scan = this.#newScan(this.#scan?.tookSeconds)
      this.#scanPiece()
    })
    this.#continue = metered('scan', () => this.#scanPiece())
  }

  start () {
    if (this.#state === 'idle') this.#wait(0)
  }

  /**
   * @param {Values} values
   * @param {import('./collector').Tick} tick
   */
  read (values, { nowSeconds, isOnDemand = false }) {
    if (this.#isMixed(values)) this.#refuseMixed()
    if (this.#state === 'urgent' || isOnDemand) this.#scanAtOnce(values, isOnDemand)
    if (this.#state === 'scanned') this.#report(values, nowSeconds)
    if (this.#state === 'idle' && this.#isDue(values, nowSeconds)) {
      this.#wait(Math.max(0, this.#frameMs - this.#leadMs))
    }
  }

  stop () {
    this.#cancel()
    this.#state = 'closed'
  }

  /** @param {number} ms until a scan begins */
  #wait (ms) {
    this.#state = 'waiting'
    this.#cancelTimer = this.#later(this.#begin, ms)
  }

  #scanPiece () {
    const scan = /** @type {MemoryScan} */ (this.#scan)
    this.#state = 'scanning'
    this.#cancelTimer = undefined
    try {
      if (scan.runFor(PIECE_SECONDS)) this.#state = 'scanned'
      else this.#cancelTimer = this.#later(this.#continue, BETWEEN_PIECES_MS)
    } catch (error) {
      this.#fail(error, 'idle')
    }
    if (this.#state === 'scanning') return
    const lastedMs = (this.#clock.now() - scan.beganSeconds) * 1000
    this.#leadMs = Math.min(LEAD_FACTOR * lastedMs + LEAST_LEAD_MS, MOST_LEAD_MS)
  }

  /**
   * Scans in one go. The next frame scans again if memory moves even then.
   * @param {Values} values
   * @param {boolean} isOnDemand report the result in any case
   */
  #scanAtOnce (values, isOnDemand) {
    if (this.#state === 'closed') return
    const again = this.#state === 'urgent' ? 'urgent' : 'idle'
    this.#cancel()
    this.#scan = this.#newScan(this.#scan?.tookSeconds)
    try {
      this.#scan.runToEnd()
      this.#state = 'scanned'
    } catch (error) {
      this.#fail(error, again)
    }
    if (!isOnDemand && this.#isMixed(values) && this.#isWorthAnother()) this.#state = again
  }

  /** Repeats a mixed scan in one go, or in pieces if that takes too long. */
  #refuseMixed () {
    const { tookSeconds } = /** @type {MemoryScan} */ (this.#scan)
    if (tookSeconds < MOST_AT_ONCE_SECONDS) this.#state = 'urgent'
    else if (this.#isWorthAnother()) this.#state = 'idle'
  }

  #isWorthAnother () {
    return ++this.#attempts < MOST_ATTEMPTS
  }

  /**
   * @param {unknown} error
   * @param {State} again state for another scan
   */
  #fail (error, again) {
    this.#state = isTemporary(error) ? again : 'closed'
  }

  #cancel () {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#scan?.cancel()
  }

  /** @param {number} [wastedSeconds] */
  #newScan (wastedSeconds) {
    const { scan, anonBytes } = this.#reader
    return new MemoryScan(scan(), { anonBytes, ...this.#clock, wastedSeconds })
  }

  /** @param {Values} values */
  #isMixed ({ rssAnonBytes }) {
    return this.#state === 'scanned' && this.#scan?.isMixed(rssAnonBytes) === true
  }

  /**
   * @param {Values} values
   * @param {number} nowSeconds
   */
  #report (values, nowSeconds) {
    const { result, tookSeconds } = /** @type {MemoryScan} */ (this.#scan)
    const { layout, resident } = result
    const { rssAnonBytes } = values
    values.mallocHeapBytes = layout.heapBytes
    values.mallocArenaBytes = layout.arenaBytes
    values.mallocArenas = layout.arenas
    values.workerThreads = layout.workerStacks
    values.v8MappedBytes = layout.v8Bytes
    if (resident && rssAnonBytes !== undefined) {
      const known = Object.values(resident).reduce((sum, bytes) => sum + bytes, 0)
      values.residentBytes = { ...resident, other: Math.max(0, rssAnonBytes - known) }
    }
    const least = this.#reader.usesSmaps() && resident ? SMAPS_EVERY_SECONDS : EVERY_SECONDS
    this.#nextAtSeconds = nowSeconds + Math.max(least, restAfter(tookSeconds, nowSeconds))
    this.#restsUntilSeconds = nowSeconds + this.#atRestEverySeconds
    this.#reportedAnonBytes = (resident && rssAnonBytes) ?? NaN
    this.#state = 'idle'
    this.#scan = undefined
    this.#attempts = 0
  }

  /**
   * @param {Values} values
   * @param {number} nowSeconds
   * @returns {boolean} true: the next frame should report a scan
   */
  #isDue ({ rssAnonBytes = NaN }, nowSeconds) {
    const nextFrameSeconds = nowSeconds + this.#frameMs / 1000
    if (nextFrameSeconds < this.#nextAtSeconds) return false
    const restBytes = Math.max(LEAST_MOVED_BYTES, MOVED_SHARE * this.#reportedAnonBytes)
    const isAtRest = Math.abs(rssAnonBytes - this.#reportedAnonBytes) <= restBytes
    return !isAtRest || nextFrameSeconds >= this.#restsUntilSeconds
  }
}

/**
 * @param {number} tookSeconds CPU time of a reading of memory
 * @param {number} nowSeconds uptime
 * @returns {number} seconds until the next one, so that readings stay within their share of a core
 */
const restAfter = (tookSeconds, nowSeconds) => Math.min(
  tookSeconds / (nowSeconds < EARLY_SECONDS ? EARLY_SHARE : MOST_SHARE),
  RAREST_SECONDS
)

/**
 * @param {() => void} work
 * @param {number} ms
 */
function setLater (work, ms) {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

module.exports = { MemoryMap, restAfter }
