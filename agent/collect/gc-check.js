'use strict'

/** Frames after which the counts of an app that collects all the time are taken to agree. */
const CONSISTENT_FRAMES = 3

/**
 * GCs of one kind with one set of flags, since the observer was connected.
 * @typedef {object} Row
 * @property {number} counted by the addon
 * @property {number} uncertain of those, that may have been before the observer was connected
 * @property {number} observed
 * @property {number} due of those counted, that must have been observed by the next frame
 */

/**
 * Holds the addon's counts against an observer's. V8 tells the addon at once and an observer in the
 * next turn of the loop: the observer is never ahead, and at each frame it has seen what was
 * counted up to the frame before. The counts agree as soon as they are equal. They may never be
 * where the app collects in each turn just before the observer is called: then they agree after
 * some frames of which that holds.
 */
class GcCheck {
  /** @type {Map<string, Row>} */
  #rows = new Map()
  #consistentFrames = 0

  /**
   * @param {number} kind
   * @param {number} flags
   * @param {number} count more GCs
   * @param {boolean} isCertain that the observer was connected
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
   * Call it when all that was observed and counted up to now was added, in this order.
   * @param {boolean} isFrame whether a frame is read
   * @returns {boolean | undefined} whether the counts agree; undefined while that is open
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
