'use strict'

const CHECK_SECONDS = 0.125

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
 * Stops the profiler in any case: else it slows the app down forever.
 * @template T
 * @param {{ stop: () => T, drop?: () => void }} running is dropped if `work` fails
 * @param {() => Promise<void>} work
 * @returns {Promise<T>} result of `stop`
 */
async function stopAfter (running, work) {
  /** @type {'drop' | 'stop'} */
  let end = running.drop ? 'drop' : 'stop'
  /** @type {any} */
  let result
  try {
    await work()
    end = 'stop'
  } finally {
    result = running[end]?.()
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
