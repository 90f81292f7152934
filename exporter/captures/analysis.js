'use strict'

const { parseBounded } = require('../data-folder/bounded-json')
const { readRegularFile } = require('../data-folder/regular-file')

/** Size limit of profiles that are analysed; larger profiles have no suspects. */
const MOST_PROFILE_BYTES = 64 * 2 ** 20

/** @typedef {import('./captures').Capture} Capture */
/** @typedef {import('@memwatch/agent/protocol/frame').Hello} Hello */

/** Finds suspects and holders in the stored parts of captures. */
class CaptureAnalysis {
  #store
  #suspectsOf
  #retainersOf
  #signal
  /**
   * Heap profiles that began before their capture. Their second reading alone has more samples than
   * its growth since the first one, and a few objects of unfinished requests among them.
   * @type {WeakSet<Capture>}
   */
  #whole = new WeakSet()
  /** Growth of the live heap while a heap profile ran. @type {WeakMap<Capture, number>} */
  #growth = new WeakMap()

  /**
   * @param {object} parts
   * @param {import('./store').CaptureStore} parts.store
   * @param {typeof import('./suspects').suspectsOf} parts.suspectsOf
   * @param {typeof import('./retainers').retainersOf} parts.retainersOf
   * @param {AbortSignal} parts.signal ends running analyses
   */
  constructor ({ store, suspectsOf, retainersOf, signal }) {
    this.#store = store
    this.#suspectsOf = suspectsOf
    this.#retainersOf = retainersOf
    this.#signal = signal
  }

  /**
   * @param {Pick<Capture, 'id'>} capture
   * @param {string} part
   * @param {number} [maxBytes]
   * @returns {any} profile as the app sent it, unchecked
   * @throws {Error} if it is larger, not JSON, or does not fit in memory
   */
  profile ({ id }, part, maxBytes = MOST_PROFILE_BYTES) {
    return parseBounded(
      readRegularFile(this.#store.fileOf(id, part), { maxBytes }).toString('utf8')
    )
  }

  /**
   * Suspects of a complete capture.
   * @param {Capture} capture
   * @param {Hello} hello
   * @param {{ isWhole?: boolean, heap?: import('./heap-suspects').HeapProfiles | null,
   *   names?: import('./rules').CaptureRule['names'], heapGrowthBytes?: number }} [options]
   *   isWhole: true for a heap profile that began long before the capture; heap: see
   *   suspects.js; heapGrowthBytes: see HeapProfiles; names: see rules.js
   * @returns {Capture['suspects']} null for a profile that does not fit in memory; the profile can
   *   still be downloaded
   * @throws {Error} if a part is not a profile
   */
  findSuspects (capture, hello, { isWhole = false, heap, names, heapGrowthBytes } = {}) {
    if (isWhole) this.#whole.add(capture)
    if (heapGrowthBytes !== undefined) this.#growth.set(capture, heapGrowthBytes)
    const parts = this.#partsOf(capture)
    const suspects = this.#read(capture, hello, { parts, heap, names, heapGrowthBytes })
    // The first reading may have named sites that the whole profile does not.
    return isWhole && suspects?.sites.length === 0 && capture.suspects
      ? this.findEarlySuspects(capture, hello, { isOver: true, heapGrowthBytes })
      : suspects
  }

  /**
   * Suspects of the first reading of a heap profile.
   * @param {Capture} capture
   * @param {Hello} hello
   * @param {{ isOver?: boolean, heapGrowthBytes?: number }} [options] isOver: true if the profile
   *   no longer runs
   * @returns {Capture['suspects']}
   * @throws {Error} if the reading is not a profile
   */
  findEarlySuspects (capture, hello, { isOver = false, heapGrowthBytes } = {}) {
    return this.#read(capture, hello, { parts: [], isEarly: true, isOver, heapGrowthBytes })
  }

  /**
   * @param {Capture} heap a complete heap profile
   * @returns {import('./heap-suspects').HeapProfiles | null} null if the store removed its files
   */
  heapProfiles (heap) {
    const hasBefore = this.#partsOf(heap).some(({ part }) => part === 'before')
    try {
      return {
        before: hasBefore ? this.profile(heap, 'before') : undefined,
        after: this.profile(heap, 'profile'),
        heapGrowthBytes: this.#growth.get(heap)
      }
    } catch {
      return null
    }
  }

  /**
   * @param {Capture} capture
   * @param {Hello} hello
   * @returns {Promise<Capture['retainers']>} null for a kind of capture that contains no objects
   */
  async findRetainers (capture, { name: app, agentFolder }) {
    if (capture.kind !== 'heap_snapshot') return null
    const fileOf = (/** @type {Capture} */ { id, parts }) => this.#store.fileOf(id, parts[0].part)
    /** @type {Capture | undefined} */
    const before = this.#store.all.findLast(other =>
      other.kind === capture.kind && isOfSameIsolate(other, capture))
    const earlier = before && { file: fileOf(before), atUnixMs: before.requestedUnixMs }
    const signal = this.#signal
    return this.#retainersOf(fileOf(capture), { earlier, app, agentFolder, signal })
  }

  /**
   * @param {Capture} capture
   * @returns {Capture['parts']} parts in which suspects are sought
   */
  #partsOf (capture) {
    const { parts } = capture
    return this.#whole.has(capture) ? parts.filter(({ part }) => part !== 'before') : parts
  }

  /**
   * @param {Capture} capture
   * @param {Hello} hello
   * @param {{ parts: Capture['parts'], isEarly?: boolean, isOver?: boolean,
   *   heap?: import('./heap-suspects').HeapProfiles | null,
   *   names?: import('./rules').CaptureRule['names'], heapGrowthBytes?: number }} options
   * @returns {Capture['suspects']}
   */
  #read (capture, hello, { parts, isEarly = false, isOver = false, heap, ...options }) {
    try {
      return this.#suspectsOf(
        { ...capture, parts, isEarly, isOver, ...options },
        part => this.profile(capture, isEarly ? 'before' : part),
        hello,
        undefined,
        heap
      )
    } catch (error) {
      if (error instanceof RangeError) return null
      throw error
    }
  }
}

/**
 * @param {Capture} a
 * @param {Capture} b
 */
const isOfSameIsolate = (a, b) =>
  a.pid === b.pid && a.host === b.host && a.thread === b.thread &&
  a.startedAtUnixMs === b.startedAtUnixMs

module.exports = { CaptureAnalysis }
