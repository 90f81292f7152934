'use strict'

const { GC_PAUSE_BOUNDS_SECONDS } = require('@memwatch/agent/protocol/frame')
const { Buckets } = require('@memwatch/agent/protocol/buckets')

/** The `gc` field of a frame, counted from the GCs in a source: cumulative, by kind and cause. */
class GcCounters {
  /** @type {Map<string, Buckets>} */
  #buckets = new Map()

  /**
   * @param {'minor' | 'minor_mark_sweep' | 'major' | 'incremental'} kind
   * @param {string} cause
   * @param {number} pauseSeconds
   */
  add (kind, cause, pauseSeconds) {
    const key = `${kind}/${cause}`
    let buckets = this.#buckets.get(key)
    if (!buckets) this.#buckets.set(key, buckets = new Buckets(GC_PAUSE_BOUNDS_SECONDS))
    buckets.add(pauseSeconds)
  }

  /** @returns {import('@memwatch/agent/protocol/frame').Values['gc']} */
  get rows () {
    return Object.fromEntries([...this.#buckets].map(([key, { row }]) => [key, row]))
  }
}

module.exports = { GcCounters }
