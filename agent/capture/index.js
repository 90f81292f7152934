'use strict'

const { Promise, nowMs, setTimeout } = require('../primordials')
const { debug } = require('../guard')
const { plainText } = require('../protocol/text-rules')
const { CaptureError } = require('./parts')
const { send } = require('./send')

/**
 * Captures on command. Each is an async generator that yields the parts of the capture, in order,
 * as bytes. Leaving the generator stops its profiler.
 *
 * @typedef {object} CaptureArguments validated by `findProblem`
 * @property {string} kind
 * @property {number} seconds
 * @property {number} [intervalBytes] mean bytes between two samples of a heap profile
 * @property {boolean} force makes a snapshot even if it may end the process
 * @property {number} [headroomBytes] memory available to the process, as the exporter knows it
 *
 * @typedef {{ part: string, chunks: Iterable<Buffer> | AsyncIterable<Buffer> }} Part
 *
 * @typedef {object} Tools
 * @property {(seconds: number) => Promise<void>} wait waits, and does not keep the process alive
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

/**
 * Longest time that a heap profile runs without a request for it, and time between two such
 * profiles, whoever asks. A refusal counts as well: if the app runs a profile, V8 reads it before
 * the agent knows.
 */
const MOST_EARLY_SECONDS = 120
const EARLY_EVERY_MS = 3_500_000

/** @type {Tools['wait']} */
const wait = seconds => new Promise(resolve => { setTimeout(resolve, 1000 * seconds) })

const BUSY = Object.freeze({ ok: false, reason: 'busy', message: 'one capture at a time' })

/**
 * Heap profiles that begin before they are requested.
 * @param {Pick<Tools, 'gcs'>} counts
 */
function earlyProfiles (counts) {
  /** @type {Tools['early']} */
  let last
  let beganMs = -Infinity
  return {
    last: () => last,
    /**
     * @param {any} args unchecked
     * @returns {Omit<import('../protocol/frame').Answer, 'id'>}
     */
    begin (args) {
      if (!(args?.seconds >= 0 && args.seconds <= MOST_EARLY_SECONDS)) {
        return { ok: false, reason: 'bad_arguments', message: `seconds: 0 to ${MOST_EARLY_SECONDS}` }
      }
      if (nowMs() - beganMs < EARLY_EVERY_MS) {
        return { ok: false, reason: 'too_soon', message: 'a profile began less than an hour ago' }
      }
      beganMs = nowMs()
      try {
        const { EarlyProfile } = require('./heap-profile')
        last = new EarlyProfile(args, { wait, ...counts })
        return { ok: true }
      } catch (error) {
        return refuse(error)
      }
    }
  }
}

/**
 * Captures of this isolate, one at a time.
 * @param {{ address: { path: string }, allowSnapshot: boolean, counts: Pick<Tools, 'gcs'> }}
 *   options address: of the exporter; each part of a capture has its own connection
 */
function captures ({ address, allowSnapshot, counts }) {
  let busy = false
  const early = earlyProfiles(counts)
  /**
   * @param {any} args
   * @returns {CaptureError | undefined}
   */
  const findProblem = args => {
    const kind = Object.hasOwn(kinds, args?.kind) ? kinds[args.kind] : undefined
    if (!kind) {
      return new CaptureError('unknown_capture', `there are ${Object.keys(kinds).join(', ')}`)
    }
    if (args.kind === 'heap_snapshot' && !allowSnapshot) {
      return new CaptureError('snapshot_not_allowed', 'snapshots hold secrets')
    }
    if (!(args.seconds >= 0 && args.seconds <= kind.mostSeconds)) {
      return new CaptureError('bad_arguments', `seconds: 0 to ${kind.mostSeconds}`)
    }
    if (busy) return new CaptureError('busy', 'one capture at a time')
  }
  return {
    /**
     * Never rejects.
     * @param {string} id
     * @param {any} args unchecked CaptureArguments
     * @returns {Promise<Omit<import('../protocol/frame').Answer, 'id'>>}
     */
    async capture (id, args) {
      const problem = findProblem(args)
      if (problem) return { ok: false, reason: problem.reason, message: problem.message }
      busy = true
      try {
        /** @type {Record<string, number>} */
        const parts = {}
        // One profiler at a time: two of them cost more, and share what V8 has once.
        if (args.kind !== 'heap_profile') early.last()?.drop()
        const tools = { wait, ...counts, early: early.last() }
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
     * Begins a heap profile that a later `capture` continues. Without one it ends unread. Never
     * throws.
     * @param {any} args unchecked: seconds and intervalBytes, as for `capture`
     * @returns {Omit<import('../protocol/frame').Answer, 'id'>}
     */
    sampleHeap: args => busy ? BUSY : early.begin(args),

    /**
     * Counts slices of the Buffer pool: slices.js. Never throws.
     * @returns {Omit<import('../protocol/frame').Answer, 'id'>}
     */
    countSlices () {
      try {
        return require('./slices').countSlices()
      } catch (error) {
        return refuse(error)
      }
    }
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
