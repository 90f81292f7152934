'use strict'

/** A failed capture. `reason` is its code on the wire. */
class CaptureError extends Error {
  /**
   * @param {string} reason
   * @param {string} message
   * @param {Record<string, number>} [figures] for the answer
   */
  constructor (reason, message, figures = {}) {
    super(message)
    this.reason = reason
    this.figures = figures
  }
}

/**
 * @param {string} text
 * @returns {import('./index').Part['chunks']}
 */
const textChunks = text => [Buffer.from(text)]

/**
 * Stops the profiler in any case: a profiler that is never stopped slows the app down forever.
 * @template T
 * @param {{ stop: () => T }} running
 * @param {() => Promise<void>} work
 * @returns {Promise<T>} result of `stop`
 */
async function stopAfter (running, work) {
  let result
  try {
    await work()
  } finally {
    result = running.stop()
  }
  return result
}

module.exports = { CaptureError, stopAfter, textChunks }
