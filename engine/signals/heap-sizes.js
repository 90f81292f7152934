'use strict'

const { oldGenerationLimit, semiSpaceMax } = require('../v8/heap-sizing')

/** @typedef {import('../history/window').Window} Window */

/**
 * Maximum semi-space of the isolate, derived once per window because many signals use it.
 * @param {Window} window
 * @returns {ReturnType<typeof semiSpaceMax>} null if it cannot be derived
 */
const readSemiSpaceMax = window => window.once('semi-space max', () => {
  const { heapSizeLimitBytes } = window.values
  return heapSizeLimitBytes === undefined ? null : semiSpaceMax(window.hello, heapSizeLimitBytes)
})

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
