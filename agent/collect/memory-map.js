'use strict'

const { clearTimeout, nowMs, setTimeout } = require('../primordials')
const { isTemporary } = require('../read-file')
const { memoryLook } = require('./memory-look')

const EVERY_SECONDS = 10
/**
 * While anonymous memory stays as it is, little can have moved within it; the exporter follows the
 * heap and the Buffers by their own numbers.
 */
const AT_REST_EVERY_SECONDS = 60
/** Of a small memory the share below is nothing: garbage alone moves it by more. */
const LEAST_MOVED_BYTES = 2 ** 20
/**
 * The kernel adds up smaps page by page under the lock that page faults wait for: where it must
 * serve, rarely.
 */
const SMAPS_EVERY_SECONDS = 120
/** A look may take this share of a core; one that takes longer makes the next ones rarer. */
const MOST_SHARE = 0.0005
const RAREST_SECONDS = 600
/**
 * A look takes milliseconds, up to dozens: it is taken in pieces of about this length, and the app
 * has its turn in between.
 */
const PIECE_SECONDS = 0.0004
const BETWEEN_PIECES_MS = 1
/**
 * It is begun so long before its frame that it should end just then, going by the last one: what a
 * frame says is of one moment.
 */
const LEAST_LEAD_MS = 5
const MOST_LEAD_MS = 500
const LEAD_FACTOR = 1.5
/**
 * The app takes and frees memory meanwhile: where it moved by more than this, the look is taken
 * anew and at once, as only that is of one moment; unless it would hold the app up for too long.
 * Other threads may move it even then: the next frame has another.
 */
const MOVED_SHARE = 0.02
const MOST_AT_ONCE_SECONDS = 0.01
const MOST_ATTEMPTS = 3

/** @typedef {import('./memory-look').Look} Look */

/**
 * Where the anonymous memory of the process lies that is not the V8 heap: `memory-look.js` finds
 * it, and here is decided when. What is anonymous and resident and none of it is `other`: the V8
 * heap, mostly.
 *
 * @param {object} options
 * @param {number} options.frameMs
 * @param {(what: string, work: () => void) => () => void} options.metered guards work between
 *   frames, and counts its time
 * @param {(lines: string) => void} [options.look] is shown the lines as well, which are too dear to
 *   be made twice
 * @param {number} [options.atRestEverySeconds] while anonymous memory does not move
 * @param {import('./memory-look').Sources & { now?: () => number, later?: (work: () => void, ms:
 *   number) => () => void }} [dependencies]
 *   now: seconds; later: returns what takes it back
 * @returns {import('./collector').Collector}
 */
function memoryMap (
  { frameMs, metered, look = () => {}, atRestEverySeconds = AT_REST_EVERY_SECONDS },
  { now = () => nowMs() / 1000, later = setLater, ...sources } = {}
) {
  const { take, anonBytes, usesSmaps } = memoryLook(look, sources)
  let nextAt = process.platform === 'linux' ? 0 : Infinity
  /** Anonymous memory as the last look told of it, and until when that holds while it stays so. */
  let toldAnonBytes = NaN
  let atRestUntil = 0
  let attempts = 0
  /** The next one is taken at once. */
  let atOnce = false
  let leadMs = LEAST_LEAD_MS
  /** The look that is being taken. @type {Generator<void, Look> | undefined} */
  let looking
  let beganSeconds = 0
  let tookSeconds = 0
  /** Anonymous memory during the look: between what and what. */
  let leastBytes = 0
  let mostBytes = 0
  /** The look that the next frame tells of. @type {Look | undefined} */
  let seen
  /** @type {(() => void) | undefined} */
  let takeBack

  const begin = metered('look', () => {
    prepare()
    beganSeconds = now()
    goOn()
  })

  const prepare = () => {
    looking = take()
    tookSeconds = 0
    leastBytes = Infinity
    mostBytes = 0
  }

  const goOn = () => {
    takeBack = undefined
    const from = now()
    noteAnonBytes()
    let more = true
    while (more && now() - from < PIECE_SECONDS) more = step()
    noteAnonBytes()
    tookSeconds += now() - from
    if (more) takeBack = later(piece, BETWEEN_PIECES_MS)
    else {
      leadMs = Math.min(LEAD_FACTOR * (now() - beganSeconds) * 1000 + LEAST_LEAD_MS, MOST_LEAD_MS)
    }
  }
  const piece = metered('look', goOn)

  /** @returns {boolean} whether there is more to do */
  const step = () => {
    try {
      const { done, value } = /** @type {Generator<void, Look>} */ (looking).next()
      if (!done) return true
      seen = value
    } catch (error) {
      if (!isTemporary(error)) nextAt = Infinity // /proc is closed, and stays so
    }
    looking = undefined
    return false
  }

  /** All of it at once. */
  const lookNow = () => {
    const wastedSeconds = tookSeconds
    cancel()
    prepare()
    const from = now()
    while (step());
    noteAnonBytes()
    tookSeconds = wastedSeconds + now() - from
  }

  const cancel = () => {
    takeBack?.()
    takeBack = undefined
    looking?.return(/** @type {any} */ (undefined))
    looking = undefined
    seen = undefined
  }

  function noteAnonBytes () {
    try {
      const bytes = anonBytes()
      leastBytes = Math.min(leastBytes, bytes)
      mostBytes = Math.max(mostBytes, bytes)
    } catch (error) {
      if (!isTemporary(error)) nextAt = Infinity
    }
  }

  /**
   * @param {import('./collector').Values} values as of now
   * @returns {boolean} whether what was seen is of another moment
   */
  const moved = ({ rssAnonBytes }) =>
    rssAnonBytes !== undefined &&
    Math.max(mostBytes, rssAnonBytes) - Math.min(leastBytes, rssAnonBytes) >
      MOVED_SHARE * rssAnonBytes

  /**
   * @param {import('./collector').Values} values as of now
   * @returns {boolean} whether all is as the last look told, as far as anonymous memory shows
   */
  const isAtRest = ({ rssAnonBytes = NaN }) =>
    Math.abs(rssAnonBytes - toldAnonBytes) <=
    Math.max(LEAST_MOVED_BYTES, MOVED_SHARE * toldAnonBytes)

  /**
   * @param {import('./collector').Values} values
   * @param {Look} look
   */
  const tell = (values, { layout, resident }) => {
    values.mallocHeapBytes = layout.heapBytes
    values.mallocArenaBytes = layout.arenaBytes
    values.mallocArenas = layout.arenas
    values.workerThreads = layout.workerStacks
    if (!resident || values.rssAnonBytes === undefined) return
    const known = Object.values(resident).reduce((sum, bytes) => sum + bytes, 0)
    values.residentBytes = { ...resident, other: Math.max(0, values.rssAnonBytes - known) }
  }

  return {
    fields: [
      'mallocHeapBytes',
      'mallocArenaBytes',
      'mallocArenas',
      'workerThreads',
      'residentBytes'
    ],
    start () {
      if (nextAt === 0) takeBack = later(begin, 0)
    },
    read (values, { nowSeconds, look: asked }) {
      if (seen?.resident && moved(values)) atOnce = tookSeconds < MOST_AT_ONCE_SECONDS
      if (nextAt < Infinity && (asked || atOnce)) lookNow()
      if (seen?.resident && !asked && moved(values) && ++attempts < MOST_ATTEMPTS) seen = undefined
      if (seen) {
        tell(values, seen)
        const least = usesSmaps() && seen.resident ? SMAPS_EVERY_SECONDS : EVERY_SECONDS
        nextAt = nowSeconds + Math.min(Math.max(least, tookSeconds / MOST_SHARE), RAREST_SECONDS)
        atRestUntil = nowSeconds + atRestEverySeconds
        toldAnonBytes = (seen.resident && values.rssAnonBytes) ?? NaN
        seen = undefined
        attempts = 0
        atOnce = false
        tookSeconds = 0
      }
      const nextFrameSeconds = nowSeconds + frameMs / 1000
      const isDue =
        nextFrameSeconds >= nextAt && (nextFrameSeconds >= atRestUntil || !isAtRest(values))
      if (!atOnce && !looking && !takeBack && isDue) {
        takeBack = later(begin, Math.max(0, frameMs - leadMs))
      }
    },
    stop: cancel
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

module.exports = { memoryMap }
