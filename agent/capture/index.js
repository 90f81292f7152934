'use strict'

const { Promise, setTimeout } = require('../primordials')
const { debug } = require('../guard')
const { plainText } = require('../protocol/text-rules')
const { CaptureError } = require('./parts')
const { send } = require('./send')

/**
 * Captures that an exporter may ask for. Each is an async generator. It yields the parts of the
 * capture, in order, as bytes. Leaving the generator stops what it started.
 *
 * @typedef {object} CaptureArguments checked by `problemOf`
 * @property {string} kind
 * @property {number} seconds
 * @property {number} [intervalBytes] of a heap profile: one allocation in so many is sampled
 * @property {boolean} force a snapshot even where it may end the process
 * @property {number} [headroomBytes] what the process may still take, as far as the exporter knows
 *
 * @typedef {{ part: string, chunks: Iterable<Buffer> | AsyncIterable<Buffer> }} Part
 *
 * @typedef {object} Tools
 * @property {(seconds: number) => Promise<void>} wait without holding the process
 * @property {() => number} gcs GCs so far
 *
 * @typedef {(args: CaptureArguments, tools: Tools) => AsyncGenerator<Part>} Capture
 */

/** A shorter interval would slow the app down, whoever asks for it. */
const LEAST_INTERVAL_BYTES = 8192

/**
 * A capture is loaded when it is asked for.
 * @type {Record<string, { mostSeconds: number, load: () => Capture }>}
 */
const kinds = {
  cpu_profile: { mostSeconds: 60, load: () => require('./cpu-profile').cpuProfile },
  heap_profile: { mostSeconds: 300, load: () => require('./heap-profile').heapProfile },
  allocation_profile: { mostSeconds: 60, load: () => require('./heap-profile').allocationProfile },
  gc_trace: { mostSeconds: 10, load: () => require('./gc-trace').gcTrace },
  report: { mostSeconds: 0, load: () => require('./report').report },
  heap_snapshot: { mostSeconds: 0, load: () => require('./heap-snapshot').heapSnapshot }
}

/** @type {Tools['wait']} */
const wait = seconds => new Promise(resolve => { setTimeout(resolve, 1000 * seconds) })

/**
 * Captures of this isolate, one at a time.
 * @param {object} options
 * @param {{ path: string }} options.address where the bytes go, on connections of their own
 * @param {boolean} options.allowSnapshot
 * @param {Pick<Tools, 'gcs'>} options.counts
 */
function captures ({ address, allowSnapshot, counts }) {
  let busy = false
  /**
   * @param {any} given
   * @returns {CaptureError | undefined}
   */
  const problemOf = given => {
    const kind = Object.hasOwn(kinds, given?.kind) ? kinds[given.kind] : undefined
    if (!kind) {
      return new CaptureError('unknown_capture', `there are ${Object.keys(kinds).join(', ')}`)
    }
    if (given.kind === 'heap_snapshot' && !allowSnapshot) {
      return new CaptureError('snapshot_not_allowed', 'snapshots hold secrets')
    }
    if (!(given.seconds >= 0 && given.seconds <= kind.mostSeconds)) {
      return new CaptureError('bad_arguments', `seconds: 0 to ${kind.mostSeconds}`)
    }
    if (!((given.intervalBytes ?? LEAST_INTERVAL_BYTES) >= LEAST_INTERVAL_BYTES)) {
      return new CaptureError('bad_arguments', `intervalBytes: from ${LEAST_INTERVAL_BYTES} on`)
    }
    if (busy) return new CaptureError('busy', 'one capture at a time')
  }
  return {
    /**
     * Never rejects.
     * @param {string} id
     * @param {any} given CaptureArguments, as they came
     * @returns {Promise<Omit<import('../protocol/frame').Answer, 'id'>>}
     */
    async capture (id, given) {
      const problem = problemOf(given)
      if (problem) return { ok: false, reason: problem.reason, message: problem.message }
      busy = true
      try {
        /** @type {Record<string, number>} */
        const parts = {}
        for await (const { part, chunks } of kinds[given.kind].load()(given, { wait, ...counts })) {
          parts[part] = await send({ address, header: { id, part }, chunks })
        }
        return { ok: true, parts }
      } catch (error) {
        debug('capture: %s', error)
        if (error instanceof CaptureError) {
          return { ok: false, reason: error.reason, message: error.message, ...error.figures }
        }
        const message = String(/** @type {Error} */ (error)?.message ?? error)
        return { ok: false, reason: 'failed', message: plainText(message, 256) }
      } finally {
        busy = false
      }
    }
  }
}

module.exports = { captures, kinds }
