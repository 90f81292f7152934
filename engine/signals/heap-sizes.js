'use strict'

const { oldGenerationLimit, semiSpaceMax } = require('../v8/heap-sizing')

/** @typedef {import('../history/window').Window} Window */

/**
 * The maximum semi-space of the isolate: derived once a window, as many signals rest on it.
 * @param {Window} window
 * @returns {ReturnType<typeof semiSpaceMax>} null where it cannot be told
 */
const readSemiSpaceMax = window => window.once('semi-space max', () => {
  const { heapSizeLimitBytes } = window.values
  return heapSizeLimitBytes === undefined ? null : semiSpaceMax(window.hello, heapSizeLimitBytes)
})

/**
 * The limit of what survives a major GC: that lives in the old generation.
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
