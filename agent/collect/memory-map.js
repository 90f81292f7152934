'use strict'

const { clearTimeout, nowMs, setTimeout } = require('../primordials')
const { isTemporary } = require('../read-file')
const { memoryLook } = require('./memory-look')
const { MOVED_SHARE, MemoryScan } = require('./memory-scan')

const EVERY_SECONDS = 10
/**
 * While anonymous memory stays as it is, little can have moved within it; the exporter follows the
 * heap and the Buffers by their own numbers.
 */
const AT_REST_EVERY_SECONDS = 60
/** Garbage alone moves a small memory by more than MOVED_SHARE. */
const LEAST_MOVED_BYTES = 2 ** 20
/**
 * The kernel adds up smaps page by page under the lock that page faults wait for: where it must
 * serve, rarely.
 */
const SMAPS_EVERY_SECONDS = 120
/** A scan may take this share of a core; one that takes longer makes the next ones rarer. */
const MOST_SHARE = 0.0005
const RAREST_SECONDS = 600
/**
 * A scan takes milliseconds, up to dozens: pieces of about this length leave the app its turns in
 * between.
 */
const PIECE_SECONDS = 0.0004
const BETWEEN_PIECES_MS = 1
/**
 * A scan starts early enough to end just before its frame, by the length of the last one, so that
 * all values of a frame describe one moment.
 */
const LEAST_LEAD_MS = 5
const MOST_LEAD_MS = 500
const LEAD_FACTOR = 1.5
/** The app may be held up for so long by a scan at once. */
const MOST_AT_ONCE_SECONDS = 0.01
/** Other threads may move memory even then: the last attempt is reported as it is. */
const MOST_ATTEMPTS = 3

/**
 * States of the memory map. `read` is called with each frame, and all else is a timer's.
 *
 *   idle     -- a frame, and a scan is due before the next --> waiting
 *   waiting  -- timer --> scanning -- last piece --> scanned
 *   scanned  -- a frame reports it --> idle
 *   scanned  -- memory moved meanwhile --> urgent, or idle where that would hold the app up
 *   urgent   -- a frame scans at once and reports it --> idle
 *   any      -- a frame is asked for: it scans at once and reports --> idle
 *   any      -- /proc cannot be read, now --> idle, ever --> closed
 *   any      -- stop --> closed
 */
const STATES = Object.freeze({
  idle: 'idle',
  waiting: 'waiting',
  scanning: 'scanning',
  scanned: 'scanned',
  urgent: 'urgent',
  closed: 'closed'
})

/** @typedef {import('./collector').Values} Values as of now */

/**
 * Where the anonymous memory of the process lies that is not the V8 heap: memory-look.js finds it,
 * memory-scan.js runs one scan, and the states above say when. Anonymous resident memory that is
 * none of the parts found is `other`: the V8 heap, mostly.
 */
class MemoryMap {
  /** @type {readonly (keyof Values)[]} */
  fields = [
    'mallocHeapBytes',
    'mallocArenaBytes',
    'mallocArenas',
    'workerThreads',
    'residentBytes'
  ]

  /** @type {keyof typeof STATES} */
  #state = process.platform === 'linux' ? STATES.idle : STATES.closed
  /** @type {MemoryScan | undefined} */
  #scan
  /** Cancels the timer of `waiting` and `scanning`. @type {(() => void) | undefined} */
  #cancelTimer
  #frameMs
  #atRestEverySeconds
  #look
  #now
  #later
  #begin
  #continue
  #leadMs = LEAST_LEAD_MS
  /** Scans in a row whose result was mixed. */
  #attempts = 0
  /** No scan before the first, and none before the second while anonymous memory is at rest. */
  #nextAtSeconds = 0
  #restsUntilSeconds = 0
  /** Anonymous memory at the last report. */
  #reportedAnonBytes = NaN

  /**
   * @param {object} options
   * @param {number} options.frameMs
   * @param {(what: string, work: () => void) => () => void} options.metered guards work between
   *   frames, and counts its time
   * @param {(lines: string) => void} [options.look] is shown the lines as well, which are too
   *   expensive to be made twice
   * @param {number} [options.atRestEverySeconds] while anonymous memory does not move
   * @param {import('./memory-look').Sources & { now?: () => number, later?: (work: () => void, ms:
   *   number) => () => void }} [dependencies]
   *   now: seconds; later: returns what cancels it
   */
  constructor (
    { frameMs, metered, look = () => {}, atRestEverySeconds = AT_REST_EVERY_SECONDS },
    { now = () => nowMs() / 1000, later = setLater, ...sources } = {}
  ) {
    this.#frameMs = frameMs
    this.#atRestEverySeconds = atRestEverySeconds
    this.#look = memoryLook(look, sources)
    this.#now = now
    this.#later = later
    this.#begin = metered('look', () => {
      this.#scan = this.#newScan()
      this.#scanPiece()
    })
    this.#continue = metered('look', () => this.#scanPiece())
  }

  start () {
    if (this.#state === STATES.idle) this.#wait(0)
  }

  /**
   * @param {Values} values
   * @param {import('./collector').Tick} tick
   */
  read (values, { nowSeconds, look: isAsked = false }) {
    if (this.#isMixed(values)) this.#refuseMixed()
    if (this.#state === STATES.urgent || isAsked) this.#scanAtOnce(values, isAsked)
    if (this.#state === STATES.scanned) this.#report(values, nowSeconds)
    if (this.#state === STATES.idle && this.#isDue(values, nowSeconds)) {
      this.#wait(Math.max(0, this.#frameMs - this.#leadMs))
    }
  }

  stop () {
    this.#cancel()
    this.#state = STATES.closed
  }

  /** @param {number} ms until a scan begins */
  #wait (ms) {
    this.#state = STATES.waiting
    this.#cancelTimer = this.#later(this.#begin, ms)
  }

  #scanPiece () {
    const scan = /** @type {MemoryScan} */ (this.#scan)
    this.#state = STATES.scanning
    this.#cancelTimer = undefined
    try {
      if (scan.runFor(PIECE_SECONDS)) this.#state = STATES.scanned
      else this.#cancelTimer = this.#later(this.#continue, BETWEEN_PIECES_MS)
    } catch (error) {
      this.#fail(error, STATES.idle)
    }
    if (this.#state === STATES.scanning) return
    const lastedMs = (this.#now() - scan.beganSeconds) * 1000
    this.#leadMs = Math.min(LEAD_FACTOR * lastedMs + LEAST_LEAD_MS, MOST_LEAD_MS)
  }

  /**
   * Where memory moves even then, the next frame scans again.
   * @param {Values} values
   * @param {boolean} isAsked what was found is reported in any case
   */
  #scanAtOnce (values, isAsked) {
    if (this.#state === STATES.closed) return
    const again = this.#state === STATES.urgent ? STATES.urgent : STATES.idle
    this.#cancel()
    this.#scan = this.#newScan(this.#scan?.tookSeconds)
    try {
      this.#scan.runToEnd()
      this.#state = STATES.scanned
    } catch (error) {
      this.#fail(error, again)
    }
    if (!isAsked && this.#isMixed(values) && this.#isWorthAnother()) this.#state = again
  }

  /** A mixed scan is repeated at once, or in pieces again where that takes too long. */
  #refuseMixed () {
    const { tookSeconds } = /** @type {MemoryScan} */ (this.#scan)
    if (tookSeconds < MOST_AT_ONCE_SECONDS) this.#state = STATES.urgent
    else if (this.#isWorthAnother()) this.#state = STATES.idle
  }

  #isWorthAnother () {
    return ++this.#attempts < MOST_ATTEMPTS
  }

  /**
   * @param {unknown} error
   * @param {keyof typeof STATES} again the state that scans again
   */
  #fail (error, again) {
    this.#state = isTemporary(error) ? again : STATES.closed
  }

  #cancel () {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#scan?.cancel()
  }

  /** @param {number} [wastedSeconds] */
  #newScan (wastedSeconds) {
    const { take, anonBytes } = this.#look
    return new MemoryScan(take(), { anonBytes, now: this.#now, wastedSeconds })
  }

  /** @param {Values} values */
  #isMixed ({ rssAnonBytes }) {
    return this.#state === STATES.scanned && this.#scan?.isMixed(rssAnonBytes) === true
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
    if (resident && rssAnonBytes !== undefined) {
      const known = Object.values(resident).reduce((sum, bytes) => sum + bytes, 0)
      values.residentBytes = { ...resident, other: Math.max(0, rssAnonBytes - known) }
    }
    const least = this.#look.usesSmaps() && resident ? SMAPS_EVERY_SECONDS : EVERY_SECONDS
    const restSeconds = Math.min(Math.max(least, tookSeconds / MOST_SHARE), RAREST_SECONDS)
    this.#nextAtSeconds = nowSeconds + restSeconds
    this.#restsUntilSeconds = nowSeconds + this.#atRestEverySeconds
    this.#reportedAnonBytes = (resident && rssAnonBytes) ?? NaN
    this.#state = STATES.idle
    this.#scan = undefined
    this.#attempts = 0
  }

  /**
   * @param {Values} values
   * @param {number} nowSeconds
   * @returns {boolean} whether the next frame should report a scan
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
 * @param {() => void} work
 * @param {number} ms
 */
function setLater (work, ms) {
  const timer = setTimeout(work, ms)
  return () => clearTimeout(timer)
}

module.exports = { MemoryMap }
