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

/** Upper bound of V8's GC flags, which are bits. */
const FLAGS_END = 2 ** 16
/** Least interval of readings by JavaScript: V8 may run dozens of major GCs a second. */
const LIVE_HEAP_EVERY_MS = 50

/**
 * @param {string} name V8's heap space
 * @returns {boolean} true: a major GC leaves only live objects there; it empties the new spaces
 */
const isLiveSpace = name => !name.startsWith('new_')

/**
 * @returns {number} used bytes of all spaces but the new ones: survivors of the last major GC, and
 *   bytes promoted or allocated there since
 */
function readLiveBytes () {
  let bytes = 0
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics()) {
    if (isLiveSpace(name)) bytes += used
  }
  return bytes
}

/**
 * @param {{ kind?: number, flags?: number }} detail PerformanceEntry of type gc
 * @param {boolean} [isOwn] the agent ran it
 * @returns {string} kind/cause, the key on the wire
 */
function formatKey ({ kind = 0, flags = 0 }, isOwn = false) {
  const name = GC_KINDS[/** @type {keyof typeof GC_KINDS} */ (kind)] ?? `kind_${kind}`
  const cause = GC_CAUSES.find(({ flag }) => (flags & flag) !== 0)?.cause ?? ORDINARY_CAUSE
  return `${name}/${isOwn ? OWN_CAUSE : cause}`
}

/** @typedef {{ buckets: Buckets, isMajor: boolean }} Pause of one kind and cause */

/** All GCs of this isolate so far, and the live heap after major GCs. */
class GcPauses {
  /** @type {Map<string, Buckets>} */
  byKey = new Map()
  majors = 0
  /** Reading after the last major GC; -1 before the first. */
  liveBytes = -1
  /** Major GCs before that reading. */
  liveMajors = 0
  #liveReadAtMs = -Infinity
  /**
   * Pauses by V8's `kind` and `flags` in one number, as there may be thousands a second; negative
   * for GCs on command.
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
   * @param {boolean} isOwn the agent ran it
   * @returns {Pause}
   */
  find (kind, flags, isOwn) {
    const bits = kind * FLAGS_END + flags
    const code = isOwn ? -bits : bits
    let pause = this.#known.get(code)
    if (!pause) this.#known.set(code, pause = this.#add(formatKey({ kind, flags }, isOwn)))
    return pause
  }

  /** Reads the live heap. Call it right after a major GC. */
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

module.exports = { GcPauses, isLiveSpace, readLiveBytes }
