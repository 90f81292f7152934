'use strict'

const { oldGenerationLimit, semiSpaceMax } = require('../v8/heap-sizing')

/** @typedef {import('../history/window').Window} Window */

/**
 * Cached maxima by hello: every evaluation reads the maximum, which hardly ever changes.
 * @type {WeakMap<object, { limit: number, max: ReturnType<typeof semiSpaceMax> }>}
 */
const derived = new WeakMap()

/**
 * Maximum semi-space of the isolate.
 * @param {Window} window
 * @returns {ReturnType<typeof semiSpaceMax>} null if it cannot be derived
 */
function readSemiSpaceMax ({ hello, values: { heapSizeLimitBytes: limit } }) {
  if (limit === undefined) return null
  let known = derived.get(hello)
  if (known?.limit !== limit) {
    derived.set(hello, known = { limit, max: semiSpaceMax(hello, limit) })
  }
  return known.max
}

/**
 * Maximum of the old generation, which holds the objects that survive a major GC.
 * @param {Window} window
 * @returns {number | null} bytes
 */
function readOldLimit (window) {
  const { heapSizeLimitBytes } = window.values
  return heapSizeLimitBytes
    ? oldGenerationLimit(heapSizeLimitBytes, readSemiSpaceMax(window))
    : null
}

module.exports = { readOldLimit, readSemiSpaceMax }
