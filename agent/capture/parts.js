'use strict'

const CHECK_SECONDS = 0.25

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

/**
 * Waits, but ends early once `isOver`.
 * @param {import('./index').Tools['wait']} wait
 * @param {number} seconds
 * @param {() => boolean} isOver
 */
async function waitUnless (wait, seconds, isOver) {
  for (let waited = 0; waited < seconds; waited += CHECK_SECONDS) {
    await wait(Math.min(CHECK_SECONDS, seconds - waited))
    if (isOver()) return
  }
}

module.exports = { CaptureError, stopAfter, textChunks, waitUnless }
