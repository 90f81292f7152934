'use strict'

const { AssertionError } = require('node:assert')
const v8 = require('node:v8')
const vm = require('node:vm')
const path = require('node:path')
const { fileURLToPath } = require('node:url')
const { MessageChannel } = require('node:worker_threads')
const { slopeBound } = require('@memwatch/engine/statistics/slope-bound')
const { formatNumber } = require('@memwatch/engine/text/format')

/**
 * Numbers of rounds. In the warm-up rounds, which are not read, V8 compiles hot functions and
 * caches fill. A measurement (look) has one reading per round. With sixteen readings, Kendall's
 * test tolerates a single step of the heap, as when an array is enlarged.
 */
const ROUNDS = Object.freeze({ warmUp: 8, look: 16 })
/** Upper bound of measurements (looks), each with twice as many calls as the previous one. */
const LOOKS = 3
const DEFAULTS = Object.freeze({ calls: 50, leastBytes: 64, falseAlarms: 0.001 })
/** Mean distance of sampled allocations, in bytes: a leaking round retains a few KiB. */
const SAMPLING_BYTES = 256

/** @type {(() => void) | undefined} */
let gc

/**
 * Returns V8's own `gc`, which V8 exposes to contexts that are created while the flag is set.
 * @returns {() => void}
 * @throws {Error} if this Node.js offers no `gc`
 */
function exposeGc () {
  const exposed = /** @type {{ gc?: () => void }} */ (globalThis).gc
  if (typeof exposed === 'function') return exposed
  try {
    v8.setFlagsFromString('--expose-gc')
    return vm.runInNewContext('gc')
  } catch {
    throw new Error('expectNoLeak: this Node.js offers no gc; run it with --expose-gc')
  } finally {
    v8.setFlagsFromString('--no-expose-gc')
  }
}

/**
 * Waits for later turns of the event loop. It uses messages of a channel, which fake timers do not
 * replace.
 */
class Turns {
  #channel = new MessageChannel()

  /** @returns {Promise<void>} */
  next () {
    return new Promise(resolve => {
      this.#channel.port1.once('message', () => resolve())
      this.#channel.port2.postMessage(undefined)
    })
  }

  end () {
    this.#channel.port1.close()
  }
}

/**
 * @param {Turns} turns
 * @returns {Promise<number>} live bytes on the heap, plus the bytes outside that V8 counts
 */
async function readLiveBytes (turns) {
  gc ??= exposeGc()
  // Callbacks and finalizers of the round hold objects until a later turn of the event loop.
  await turns.next()
  gc()
  const { used_heap_size: heap, external_memory: external } = v8.getHeapStatistics()
  return heap + external
}

/**
 * @param {() => unknown} work
 * @param {number} calls
 */
async function call (work, calls) {
  for (let i = 0; i < calls; i++) await work()
}

/**
 * Growth of the live heap over the rounds of one measurement.
 * @param {() => unknown} work
 * @param {{ calls: number, level: number, turns: Turns }} options
 * @returns {Promise<{ slope: number, lower: number }>} bytes per call
 */
async function look (work, { calls, level, turns }) {
  // The arrays are allocated before the first reading, because later they would be growth of the
  // heap.
  const done = new Float64Array(ROUNDS.look)
  const bytes = new Float64Array(ROUNDS.look)
  for (let round = 0; round < ROUNDS.look; round++) {
    await call(work, calls)
    done[round] = (round + 1) * calls
    bytes[round] = await readLiveBytes(turns)
  }
  return slopeBound(done, bytes, level)
}

/**
 * Expects that repeated calls retain no memory, for node:test, vitest, jest and others.
 *
 * The work is called in rounds. After each round full GCs run, and the live memory, including
 * Buffers, is read. Growth is the Theil–Sen slope, bytes per call. A leak is growth whose lower
 * confidence bound (Sen 1968) exceeds `leastBytes` in two consecutive measurements, the later one
 * with twice as many calls: late warm-up is no leak. A measurement with a slope of at most
 * `leastBytes` ends the check without a leak. Growth caused by other code of the process is
 * included, so nothing else should run at the same time.
 *
 * The check uses no timers and no clock, so that fake ones do not disturb it.
 *
 * @param {() => unknown} work may be asynchronous
 * @param {object} [options]
 * @param {number} [options.calls] calls per round; default 50. In all, the check makes 24 × `calls`
 *   calls, or up to 120 × `calls` if memory grows
 * @param {number} [options.leastBytes] growth per call that counts as a leak; default 64
 * @param {number} [options.falseAlarms] highest rate of false alarms, 0–1; default 0.001
 * @returns {Promise<{ bytesPerCall: number, isDecided: boolean }>} growth of the last
 *   measurement; isDecided: false if it exceeds `leastBytes`, but scatters too much to be a leak
 * @throws {AssertionError} for a leak, with its bytes per call, and with the function that
 *   allocates the retained memory if a sampling heap profile of one more round shows it. An error
 *   of the work is passed on unchanged; RangeError for a wrong option; Error if no GC can be run
 */
async function expectNoLeak (work, options = {}) {
  const { calls, leastBytes, falseAlarms } = readOptions(options)
  const turns = new Turns()
  try {
    for (let round = 0; round < ROUNDS.warmUp; round++) {
      await call(work, calls)
      await readLiveBytes(turns)
    }
    let seenBefore = false
    let bytesPerCall = 0
    for (let number = 0; number < LOOKS; number++) {
      const callsNow = calls * 2 ** number
      // The second and the third measurement may declare a leak, so each has its part of the rate.
      const level = falseAlarms / (LOOKS - 1)
      const { slope, lower } = await look(work, { calls: callsNow, level, turns })
      bytesPerCall = slope
      if (slope <= leastBytes) return { bytesPerCall, isDecided: true }
      const isSeen = lower > leastBytes
      if (isSeen && seenBefore) {
        throw await leakError(work, { slope, lower, calls: callsNow, leastBytes, turns })
      }
      seenBefore = isSeen
    }
    return { bytesPerCall, isDecided: false }
  } finally {
    turns.end()
  }
}

/**
 * @param {() => unknown} work
 * @param {{ slope: number, lower: number, calls: number, leastBytes: number, turns: Turns }} found
 */
async function leakError (work, { slope, lower, calls, leastBytes, turns }) {
  const place = await findAllocator(async () => {
    await call(work, calls)
    await readLiveBytes(turns)
  })
  return new AssertionError({
    message: `memory leak: each call retains ${formatNumber(slope)} bytes (at least ` +
      `${formatNumber(lower)}), measured over ${calls * ROUNDS.look} calls; ` +
      `${formatNumber(leastBytes)} are tolerated${place ? `. Most of it is allocated in ${place}` : ''}`,
    actual: slope,
    expected: leastBytes,
    operator: 'expectNoLeak',
    stackStartFn: expectNoLeak
  })
}

/** @param {{ calls?: number, leastBytes?: number, falseAlarms?: number }} given */
function readOptions (given) {
  const options = { ...DEFAULTS, ...given }
  const unknown = Object.keys(given).find(name => !Object.hasOwn(DEFAULTS, name))
  if (unknown !== undefined) throw new RangeError(`expectNoLeak: unknown option ${unknown}`)
  if (!(Number.isSafeInteger(options.calls) && options.calls > 0)) {
    throw new RangeError(`expectNoLeak: calls: expected a whole number from 1 on, got ${options.calls}`)
  }
  if (!(options.leastBytes >= 0 && options.leastBytes < Infinity)) {
    throw new RangeError(`expectNoLeak: leastBytes: expected bytes, got ${options.leastBytes}`)
  }
  if (!(options.falseAlarms >= 1e-6 && options.falseAlarms <= 0.2)) {
    throw new RangeError(
      `expectNoLeak: falseAlarms: expected a rate from 0.000001 to 0.2, got ${options.falseAlarms}`
    )
  }
  return options
}

/**
 * Finds the function that allocated most of the memory that one more round retains. It uses V8's
 * sampling heap profile, which costs little and also shows constructors.
 * @param {() => Promise<void>} round
 * @returns {Promise<string | undefined>} undefined if it is unknown
 */
async function findAllocator (round) {
  /** @type {import('node:inspector').Session | undefined} */
  let session
  try {
    const { Session } = require('node:inspector')
    session = new Session()
    session.connect()
    session.post('HeapProfiler.startSampling', { samplingInterval: SAMPLING_BYTES })
    await round()
    /** @type {import('node:inspector').HeapProfiler.SamplingHeapProfile | undefined} */
    let profile
    session.post('HeapProfiler.stopSampling', (_, found) => { profile = found?.profile })
    return profile && largestOf(profile.head)
  } catch {
    return undefined // There is no inspector, or another one is profiling.
  } finally {
    session?.disconnect()
  }
}

/**
 * @param {import('node:inspector').HeapProfiler.SamplingHeapProfileNode} head
 * @returns {string | undefined} function and place of the code that retains most
 */
function largestOf (head) {
  /** @type {Map<string, number>} */
  const bytes = new Map()
  /**
   * @param {import('node:inspector').HeapProfiler.SamplingHeapProfileNode} node
   * @param {string | undefined} inside nearest calling function that is in a file
   */
  const visit = ({ callFrame: { functionName, url, lineNumber }, selfSize, children }, inside) => {
    const isOwn = url === __filename || url.endsWith(__filename)
    const isApp = url !== '' && !url.startsWith('node:') && !isOwn
    const place = isApp ? `${functionName || 'a function'} (${shortPath(url)}:${lineNumber + 1})` : inside
    if (place !== undefined) bytes.set(place, (bytes.get(place) ?? 0) + selfSize)
    for (const child of children) visit(child, place)
  }
  visit(head, undefined)
  return [...bytes].sort(([, a], [, b]) => b - a)[0]?.[0]
}

/** @param {string} url path or file: URL */
function shortPath (url) {
  const file = url.startsWith('file:') ? fileURLToPath(url) : url
  const relative = path.relative(process.cwd(), file)
  return relative.startsWith('..') ? file : relative
}

module.exports = { expectNoLeak }
