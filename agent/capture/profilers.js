'use strict'

const { stringifyJson } = require('../primordials')
const v8 = require('../v8-functions')
const { debug } = require('../guard')

/**
 * Profilers of this isolate, in order of preference: the first available profiler of a list runs.
 * The permission model allows `node:v8`, and nearly every build has `node:inspector`. Builds with
 * neither need the package v8-profiler-next, which the app must install and compile.
 */

/**
 * stop: profile as JSON of the DevTools protocol; drop: ends it unread, where supported
 * @typedef {{ stop: () => string, drop?: () => void }} Running
 */

const ADDON = 'v8-profiler-next'

/** @returns {any} undefined: not installed, or not for this Node */
function addon () {
  try {
    return require(require.resolve(ADDON, { paths: [process.cwd(), __dirname] }))
  } catch (error) {
    debug('%s: %s', ADDON, error)
    return undefined
  }
}

/**
 * The addon counts lines and columns from 1, the protocol from 0.
 * @param {{ lineNumber: number, columnNumber: number }} frame
 */
function countFromZero (frame) {
  frame.lineNumber--
  frame.columnNumber--
}

/** @typedef {{ post: (method: string, params?: object) => any, end: () => void }} Session */

/**
 * Inspector session with this isolate itself: `post` returns the answer.
 * @returns {Session | undefined} undefined: a build without inspector, or denied
 */
function inspect () {
  let session
  try {
    session = new (require('node:inspector').Session)()
    session.connect()
  } catch {
    return undefined
  }
  const open = session
  return {
    post (method, params = {}) {
      /** @type {{ error: Error | null, result: any } | undefined} */
      let answer
      open.post(method, params, (error, result) => { answer = { error, result } })
      if (!answer) throw new Error(`${method}: no answer`)
      if (answer.error) throw answer.error
      return answer.result
    },
    end: () => open.disconnect()
  }
}

/** Lower bound, so that a peer cannot slow the app down with a short interval. */
const LEAST_MICROSECONDS = 250

/**
 * V8 samples each millisecond by default. The inspector is first: V8's own text of a profile is no
 * JSON if the name of a regular expression contains a backslash (Node.js 24 and 26).
 * @type {((intervalMicroseconds?: number) => Running | undefined)[]}
 */
const cpuProfilers = [
  interval => {
    const session = inspect()
    if (!session) return undefined
    const drop = () => session.end()
    try {
      collect(session)
      session.post('Profiler.enable')
      if (interval) {
        session.post('Profiler.setSamplingInterval', {
          interval: Math.max(LEAST_MICROSECONDS, interval)
        })
      }
      session.post('Profiler.start')
    } catch (error) {
      drop()
      throw error
    }
    return {
      drop,
      stop () {
        try {
          return stringifyJson(session.post('Profiler.stop').profile)
        } finally {
          drop()
        }
      }
    }
  },
  () => v8.startCpuProfile?.(),
  () => {
    const profiler = addon()
    if (!profiler) return undefined
    profiler.setGenerateType?.(1) // current format of DevTools
    profiler.startProfiling('memwatch', true)
    return {
      stop () {
        const profile = profiler.stopProfiling('memwatch')
        const { nodes, samples, timeDeltas, startTime, endTime } = profile
        for (const { callFrame } of nodes) countFromZero(callFrame)
        const text = stringifyJson({ nodes, samples, timeDeltas, startTime, endTime })
        profile.delete()
        return text
      }
    }
  }
]

/**
 * drop: also runs no full GC; read: profile so far, absent where unsupported
 * @typedef {Running & { read?: () => string }} RunningHeap
 */

/**
 * @typedef {{ intervalBytes: number, collected: boolean }} HeapOptions collected: includes garbage
 */

const COLLECTED = { includeObjectsCollectedByMajorGC: true, includeObjectsCollectedByMinorGC: true }

/**
 * @param {HeapOptions} options
 * @returns {RunningHeap | undefined}
 * @throws {Error} if the app runs this profiler itself
 */
function inspectHeap ({ intervalBytes, collected }) {
  const session = inspect()
  if (!session) return undefined
  const end = () => session.end()
  try {
    if (isSampling(session)) throw new Error('it would end with this profile')
    if (collected && !knowsCollected(session)) {
      end()
      return undefined
    }
    session.post('HeapProfiler.startSampling', {
      samplingInterval: intervalBytes,
      ...(collected && COLLECTED)
    })
  } catch (error) {
    end()
    throw error
  }
  return {
    read: () => stringifyJson(session.post('HeapProfiler.getSamplingProfile').profile),
    drop: end,
    stop () {
      try {
        return stringifyJson(session.post('HeapProfiler.stopSampling').profile)
      } finally {
        end()
      }
    }
  }
}

/**
 * The inspector is first here: only it allows readings of a running profile.
 * @type {((options: HeapOptions) => RunningHeap | undefined)[]}
 */
const heapProfilers = [
  inspectHeap,
  ({ intervalBytes, collected }) =>
    v8.startHeapProfile?.({
      sampleInterval: intervalBytes,
      // The inspector runs a full GC before each reading; this API runs one only with this option.
      ...(collected ? COLLECTED : { forceGC: true })
    }),
  ({ intervalBytes, collected }) => {
    const profiler = collected ? undefined : addon()
    if (!profiler) return undefined
    profiler.startSamplingHeapProfiling(intervalBytes)
    return {
      stop () {
        const { head } = profiler.stopSamplingHeapProfiling()
        for (const open = [head]; open.length > 0;) {
          const { callFrame, children } = /** @type {any} */ (open.pop())
          countFromZero(callFrame)
          open.push(...children)
        }
        return stringifyJson({ head })
      }
    }
  }
]

/**
 * True if a heap profile runs, which would end with a second one: all sessions share the profiler.
 * Otherwise this reading fails at once, without a GC.
 * @param {Session} session
 */
function isSampling (session) {
  try {
    session.post('HeapProfiler.getSamplingProfile')
    return true
  } catch {
    return false
  }
}

/**
 * Runs a full GC, so that none is due while a CPU profile begins:
 * docs/decisions/0076-a-full-gc-before-cpu-profiles.md.
 * @param {Session} session
 */
function collect (session) {
  if (isSampling(session)) return // this ran a full GC
  session.post('HeapProfiler.startSampling')
  session.post('HeapProfiler.stopSampling')
}

/**
 * True if the inspector rejects an invalid value: it ignores unknown parameters.
 * @param {Session} session
 */
function knowsCollected (session) {
  try {
    session.post('HeapProfiler.startSampling', {
      includeObjectsCollectedByMajorGC: 'neither true nor false'
    })
  } catch {
    return true
  }
  session.post('HeapProfiler.stopSampling')
  return false
}

/**
 * @template T, O
 * @param {((options: O) => T | undefined)[]} starts
 * @param {O} options
 * @returns {T | undefined} first available profiler
 */
function first (starts, options) {
  for (const start of starts) {
    const running = start(options)
    if (running) return running
  }
}

const NO_PROFILER = `this Node has no inspector, or does not permit it, and ${ADDON} is not ` +
  'installed where the app runs, or not compiled for it'

module.exports = {
  NO_PROFILER,
  inspect,
  inspectHeap,
  startCpuProfile: (/** @type {number=} */ interval) => first(cpuProfilers, interval),
  startHeapProfile: (/** @type {HeapOptions} */ options) => first(heapProfilers, options)
}
