'use strict'

/**
 * Time limit for the rest of a capture. The agent's answer and the end of the data arrive over two
 * connections, at about the same time.
 */
const PART_WITHIN_MS = 10_000

/** A running capture, and the data received so far. */
class RunningCapture {
  /** @type {Map<string, Promise<{ bytes: number, sha256: string }>>} */
  arrived = new Map()
  /** Resolves when the capture has ended. @type {Promise<unknown> | undefined} */
  finished
  /** @type {Map<string, () => void>} */
  #awaited = new Map()

  /**
   * @param {import('./captures').Capture} capture
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {number} [sampledSeconds] age of the heap profile that it continues
   */
  constructor (capture, target, sampledSeconds = 0) {
    this.capture = capture
    this.target = target
    this.sampledSeconds = sampledSeconds
  }

  /**
   * @returns {number | undefined} bytes by which the live heap grows while a heap profile runs, by
   *   its trend across major GCs; undefined without a trend
   */
  get heapGrowthBytes () {
    // A sidecar loads the signals with the first frame.
    const { signalsOf } = require('@memwatch/engine/signals/index')
    const window = this.target.window()
    const trend = window && signalsOf(window).liveHeapTrend
    const seconds = this.sampledSeconds + this.capture.seconds
    return trend ? Math.max(0, trend.slope) * seconds : undefined
  }

  /**
   * @param {string} part
   * @param {Promise<{ bytes: number, sha256: string }>} written
   */
  arrive (part, written) {
    this.arrived.set(part, written)
    this.#awaited.get(part)?.()
  }

  /**
   * @param {string} name
   * @returns {Promise<{ bytes: number, sha256: string }>}
   */
  async part (name) {
    if (!this.arrived.has(name)) {
      await new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`the agent sent ${name}, but it did not arrive`)),
          PART_WITHIN_MS
        )
        this.#awaited.set(name, () => { clearTimeout(timer); resolve(undefined) })
      })
    }
    return /** @type {Promise<{ bytes: number, sha256: string }>} */ (this.arrived.get(name))
  }
}

module.exports = { RunningCapture }
