'use strict'

/** Consistent frames after which counts agree even if they are never equal. */
const CONSISTENT_FRAMES = 3

/**
 * GCs of one kind and set of flags, since the observer was connected.
 * @typedef {object} Row
 * @property {number} counted by the addon
 * @property {number} uncertain counted, perhaps before the observer was connected
 * @property {number} observed
 * @property {number} due counted, and to be observed by the next frame
 */

/**
 * Compares the addon's counts with an observer's. V8 calls the addon at once and an observer in the
 * next turn of the loop. So the observer is never ahead, and in each frame it knows all GCs that
 * the addon had counted by the frame before. Equal counts agree. In an app with a GC in each turn
 * just before the observer, the counts are never equal: they agree after CONSISTENT_FRAMES.
 */
class GcCheck {
  /** @type {Map<string, Row>} */
  #rows = new Map()
  #consistentFrames = 0

  /**
   * @param {number} kind
   * @param {number} flags
   * @param {number} count more GCs
   * @param {boolean} isCertain true: the observer was connected
   */
  addCounted (kind, flags, count, isCertain) {
    const row = this.#find(kind, flags)
    row.counted += count
    if (!isCertain) row.uncertain += count
  }

  /**
   * @param {number} kind
   * @param {number} flags
   */
  addObserved (kind, flags) {
    this.#find(kind, flags).observed++
  }

  /**
   * Compares the counts. Before each call, add observed GCs first, then counted ones.
   * @param {boolean} isFrame true: in a frame
   * @returns {boolean | undefined} true: the counts agree; undefined: undecided
   */
  compare (isFrame) {
    const rows = [...this.#rows.values()]
    if (rows.some(({ counted, observed }) => observed > counted)) return false
    const hasCounted = rows.some(({ counted, uncertain }) => counted > uncertain)
    if (!hasCounted) return undefined
    const isEqual = rows.every(row => row.observed >= row.counted - row.uncertain)
    if (isEqual) return true
    if (!isFrame) return undefined
    if (rows.some(({ observed, due }) => observed < due)) return false
    for (const row of rows) row.due = row.counted - row.uncertain
    return ++this.#consistentFrames > CONSISTENT_FRAMES ? true : undefined
  }

  /**
   * @param {number} kind
   * @param {number} flags
   * @returns {Row}
   */
  #find (kind, flags) {
    const key = `${kind}/${flags}`
    let row = this.#rows.get(key)
    if (!row) this.#rows.set(key, row = { counted: 0, uncertain: 0, observed: 0, due: 0 })
    return row
  }
}

module.exports = { GcCheck, CONSISTENT_FRAMES }
