'use strict'

const primordials = require('../primordials')
const { getHeapSpaceStatistics } = require('../v8-functions')
const {
  GC_KINDS,
  GC_CAUSES,
  ORDINARY_CAUSE,
  OWN_CAUSE,
  GC_PAUSE_BOUNDS_SECONDS
} = require('../protocol/frame')
const { Buckets } = require('../protocol/buckets')

/** V8's GC flags are bits below this. */
const FLAGS_END = 2 ** 16
/** JavaScript reads the live heap at most this often: V8 may run dozens of majors a second. */
const LIVE_HEAP_EVERY_MS = 50

/**
 * @param {string} name of a space of V8's heap
 * @returns {boolean} whether a major GC leaves only live objects there: it empties the new ones
 */
const isLiveSpace = name => !name.startsWith('new_')

/**
 * @returns {number} used bytes of all spaces but the new ones: what a major GC left, plus what was
 *   promoted or made old since
 */
function readLiveBytes () {
  let bytes = 0
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics()) {
    if (isLiveSpace(name)) bytes += used
  }
  return bytes
}

/**
 * @param {{ kind?: number, flags?: number }} detail of a PerformanceEntry of type gc
 * @param {boolean} [isOwn] whether the agent ran it
 * @returns {string} kind/cause, the key on the wire
 */
function keyOf ({ kind = 0, flags = 0 }, isOwn = false) {
  const name = GC_KINDS[/** @type {keyof typeof GC_KINDS} */ (kind)] ?? `kind_${kind}`
  const cause = GC_CAUSES.find(({ flag }) => (flags & flag) !== 0)?.cause ?? ORDINARY_CAUSE
  return `${name}/${isOwn ? OWN_CAUSE : cause}`
}

/** @typedef {{ buckets: Buckets, isMajor: boolean }} Pause of one kind and cause */

/** Every GC of this isolate so far, and the live heap after majors. */
class GcPauses {
  /** @type {Map<string, Buckets>} */
  byKey = new Map()
  majors = 0
  /** After the last major GC that was read; -1 before the first. */
  liveBytes = -1
  /** Major GCs up to then. */
  liveMajors = 0
  #liveReadAtMs = -Infinity
  /**
   * The same by what V8 says, `kind` and `flags` in one number: there may be thousands a second.
   * Negative where the agent ran it.
   * @type {Map<number, Pause>}
   */
  #known = new Map()

  /** @returns {number} all GCs */
  get count () {
    let count = 0
    for (const buckets of this.byKey.values()) count += buckets.count
    return count
  }

  /**
   * @param {number} kind
   * @param {number} flags
   * @param {boolean} isOwn whether the agent ran it
   * @returns {Pause}
   */
  find (kind, flags, isOwn) {
    const told = kind * FLAGS_END + flags
    const code = isOwn ? -told : told
    let pause = this.#known.get(code)
    if (!pause) this.#known.set(code, pause = this.#add(keyOf({ kind, flags }, isOwn)))
    return pause
  }

  /** A major GC ended just now. */
  readLive () {
    const nowMs = primordials.nowMs()
    if (nowMs - this.#liveReadAtMs < LIVE_HEAP_EVERY_MS) return
    this.#liveReadAtMs = nowMs
    this.setLive(readLiveBytes())
  }

  /** @param {number} bytes after the last major GC */
  setLive (bytes) {
    this.liveBytes = bytes
    this.liveMajors = this.majors
  }

  /** @param {string} key */
  #add (key) {
    let buckets = this.byKey.get(key)
    if (!buckets) this.byKey.set(key, buckets = new Buckets(GC_PAUSE_BOUNDS_SECONDS))
    return { buckets, isMajor: key.startsWith('major/') }
  }
}

module.exports = { GcPauses, isLiveSpace, keyOf, readLiveBytes }
