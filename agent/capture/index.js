'use strict'

const { Promise, setTimeout } = require('../primordials')
const { debug } = require('../guard')
const { plainText } = require('../protocol/text-rules')
const { CaptureError } = require('./parts')
const { send } = require('./send')

/**
 * Captures on command. Each is an async generator that yields the parts of the capture, in order,
 * as bytes. Leaving the generator stops its profiler.
 *
 * @typedef {object} CaptureArguments validated by `check`
 * @property {string} kind
 * @property {number} seconds
 * @property {number} [intervalBytes] mean bytes between two samples of a heap profile
 * @property {number} [intervalMicroseconds] between two samples of a CPU profile
 * @property {boolean} force makes a snapshot even if it may end the process
 * @property {number} [headroomBytes] memory available to the process, as the exporter knows it
 *
 * @typedef {{ part: string, chunks: Iterable<Buffer> | AsyncIterable<Buffer> }} Part
 *
 * @typedef {object} Tools
 * @property {(seconds: number) => Promise<void>} wait does not keep the process alive
 * @property {() => number} gcs GCs so far
 * @property {import('./heap-profile').EarlyProfile} [early] heap profile that began before
 *
 * @typedef {(args: CaptureArguments, tools: Tools) => AsyncGenerator<Part>} Capture
 */

/** @type {Record<string, { mostSeconds: number, load: () => Capture }>} */
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
 * @param {{ address: { path: string }, allowSnapshot: boolean, counts: Pick<Tools, 'gcs'> }}
 *   options address: of the exporter; each part of a capture has its own connection
 */
function captures ({ address, allowSnapshot, counts }) {
  let busy = false
  /** @type {Tools['early']} */
  let early
  /** @throws {CaptureError} */
  const checkFree = () => {
    if (busy) throw new CaptureError('busy', 'one capture at a time')
    return { ok: true }
  }
  /**
   * @param {any} args
   * @throws {CaptureError}
   */
  const check = args => {
    const kind = Object.hasOwn(kinds, args?.kind) ? kinds[args.kind] : undefined
    if (!kind) {
      throw new CaptureError('unknown_capture', `there are ${Object.keys(kinds).join(', ')}`)
    }
    if (args.kind === 'heap_snapshot' && !allowSnapshot) {
      throw new CaptureError('snapshot_not_allowed', 'snapshots hold secrets')
    }
    if (!(args.seconds >= 0 && args.seconds <= kind.mostSeconds)) {
      throw new CaptureError('bad_arguments', `seconds: 0 to ${kind.mostSeconds}`)
    }
    return checkFree()
  }
  return {
    /**
     * Never rejects.
     * @param {string} id
     * @param {any} args unchecked CaptureArguments
     * @returns {Promise<Omit<import('../protocol/frame').Answer, 'id'>>}
     */
    async capture (id, args) {
      const checked = attempt(() => check(args))
      if (!checked.ok) return checked
      busy = true
      try {
        /** @type {Record<string, number>} */
        const parts = {}
        // One profiler at a time: two of them cost more, and share what V8 has once.
        if (args.kind !== 'heap_profile') early?.drop()
        const tools = { wait, ...counts, early }
        for await (const { part, chunks } of kinds[args.kind].load()(args, tools)) {
          parts[part] = await send({ address, header: { id, part }, chunks })
        }
        return { ok: true, parts }
      } catch (error) {
        return refuse(error)
      } finally {
        busy = false
      }
    },

    /**
     * Begins a heap profile that a later `capture` continues. Never throws.
     * @param {any} args unchecked: seconds and intervalBytes, as for `capture`
     */
    sampleHeap (args) {
      return attempt(() => {
        checkFree()
        early = require('./heap-profile').beginEarly(args, { wait, ...counts })
        return { ok: true }
      })
    },

    /** Counts slices of the Buffer pool. Never throws. */
    countSlices: () => attempt(require('./slices').countSlices)
  }
}

/**
 * @param {() => Omit<import('../protocol/frame').Answer, 'id'>} work
 * @returns {Omit<import('../protocol/frame').Answer, 'id'>}
 */
function attempt (work) {
  try {
    return work()
  } catch (error) {
    return refuse(error)
  }
}

/**
 * @param {unknown} error
 * @returns {Omit<import('../protocol/frame').Answer, 'id'>}
 */
function refuse (error) {
  debug('capture: %s', error)
  if (error instanceof CaptureError) {
    return { ok: false, reason: error.reason, message: error.message, ...error.figures }
  }
  const message = String(/** @type {Error} */ (error)?.message ?? error)
  return { ok: false, reason: 'failed', message: plainText(message, 256) }
}

module.exports = { captures, kinds }
