'use strict'

/** A capture that was not made. `reason` is a word of the wire. */
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
 * Stops the profiler whatever happens: a profiler that keeps running costs the app forever.
 * @template T
 * @param {{ stop: () => T }} running
 * @param {() => Promise<void>} work
 * @returns {Promise<T>} the result of `stop`
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
