'use strict'

const { ok } = require('./define-diagnosis')
const { evidence } = require('./evidence')
const { formatBytes } = require('../text/format')

/** @typedef {import('./native-memory-leak').Limits} Limits */
/** @typedef {import('./native-memory-leak').Signals} Signals */

/** Places of memory outside the heap, each with its advice and whether caches live there. */
const PLACES = Object.freeze({
  buffers: {
    holdsCaches: true,
    name: 'it sits in Buffers that JavaScript still refers to',
    title: 'Let go of the Buffers that are kept',
    code: 'arrayBuffers grows with it: Buffers or ArrayBuffers are held by a Map, an array, a ' +
      'cache without a bound, or a queue that is filled faster than it is emptied. Bound it, or ' +
        'copy out the part that is needed (Buffer.allocUnsafeSlow(n) and copy): a slice keeps ' +
          'the whole Buffer. A sampling heap profile shows who holds the Buffer objects.'
  },
  webassembly: {
    holdsCaches: false,
    name: 'it is WebAssembly memory',
    title: 'Let go of the WebAssembly memories that are kept',
    code: 'The memory map shows WebAssembly memories that grow. Look for new WebAssembly.Memory, ' +
      'WebAssembly.instantiate and for packages that are compiled to WebAssembly (image, PDF, ' +
        'SQLite and cryptography libraries) in code that runs per request: make one instance and ' +
          'reuse it. Inside one instance, look for what is allocated there and never freed: each ' +
            'malloc() or constructor of such a package needs its free(), delete() or close().'
  },
  silentWorkers: {
    holdsCaches: true,
    name: 'it sits in the V8 heaps of worker threads that send no frames',
    title: 'Let go of what the worker threads keep',
    code: 'The memory map shows heaps of workers that grow. A worker that waits in Atomics.wait ' +
      'between its tasks, as those of piscina do, or computes without a turn of its event loop ' +
        'sends no frames. Look in the code that the tasks run for a Map, array or cache that ' +
          'grows with each task. To see its lines, let the pool wait without Atomics for a while ' +
            "(piscina: atomics: 'disabled'): then its workers report like any thread. " +
              'resourceLimits.maxOldGenerationSizeMb bounds each of them.'
  },
  addonMalloc: {
    holdsCaches: false,
    name: 'an addon holds it, in a malloc of its own (mimalloc)',
    title: 'Release what the addon holds',
    code: 'The memory map shows segments of mimalloc, which many addons in Rust bring with them: ' +
      '@napi-rs/snappy, @napi-rs/canvas and @resvg/resvg-js do. Neither V8 nor the malloc of the ' +
        'process counts them. `grep -F .node /proc/PID/maps` lists the loaded addons. Look for ' +
          'their objects in code that runs per request: call free() or close() where there is ' +
            'one. Else update the addon, or replace it on a replica to see which one it is.'
  },
  external: {
    holdsCaches: true,
    name: 'V8 counts it as external memory that is no Buffer: WebAssembly memories, or objects ' +
      'of an addon',
    title: 'Let go of what owns external memory',
    code: 'external grows with it, arrayBuffers does not: WebAssembly.Memory objects or ' +
      'instances that are kept (one is enough: make it once and reuse it), or handles of an ' +
        'addon that are never closed. Look for new WebAssembly.Memory, WebAssembly.instantiate ' +
          'and addon objects made per request.'
  },
  native: {
    holdsCaches: false,
    name: 'V8 does not know of it: memory of native code, as zlib, TLS or an addon take',
    title: 'Close what holds native memory',
    code: 'Neither heap nor Buffers grow: native code allocated the memory. Look for zlib, ' +
      'crypto and http2 streams that are made per request and never ended or closed ' +
        '(stream.close() on every path, also when the client goes away; pipeline() does it), ' +
          'and for native addons: take those out one by one. What ' +
            'to capture: process.report (libuv handles), the counts of active resources, and ' +
              '`jemalloc` heap profiling (MALLOC_CONF=prof:true) on a replica.'
  }
})

/**
 * Kind of memory that grew, by the counters that grew with it. Versions of Node.js before 26 count
 * WebAssembly memory as external; the memory map separates it.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes of all memory outside the heap
 * @param {number} growth bytes per second, of all memory outside the heap
 * @returns {keyof typeof PLACES}
 */
function findPlace (signals, { placeShareRatio }, rise, growth) {
  // WebAssembly comes first, because the buffer of its memory is an ArrayBuffer, too.
  if ((signals.webassemblyGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'webassembly'
  }
  if ((signals.arrayBuffersTrend?.rise ?? 0) > placeShareRatio * rise) return 'buffers'
  if ((signals.silentWorkerHeapGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'silentWorkers'
  }
  if ((signals.addonMallocGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'addonMalloc'
  }
  return (signals.externalTrend?.rise ?? 0) > placeShareRatio * rise ? 'external' : 'native'
}

/** Freed memory that malloc retains; null if it was not queried. @param {Signals} signals */
const freedBytes = ({ allocatorAsked, allocatorSlackTrend }) =>
  allocatorAsked === 1 ? (allocatorSlackTrend?.rise ?? null) : null

/**
 * Rules out growth that malloc reports as freed. Only malloc can tell retained free memory from
 * memory in use.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 */
function ruleOutFreed (signals, limits, rise) {
  const freed = freedBytes(signals)
  if (freed === null || freed < limits.churnShareRatio * rise) return null
  return ok(`memory outside the heap grew by ${formatBytes(rise)}, of which malloc counts ` +
    `${formatBytes(freed)} as free`)
}

/**
 * True if the growth may be freed memory that malloc retains. Without a query of malloc, large
 * enough Buffers that come and go are the sign of it.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 */
const churns = (signals, limits, rise) =>
  freedBytes(signals) === null && (signals.bufferChurnBytes ?? 0) >= limits.churnShareRatio * rise

/** @param {{ containerLimitBytes: number | null }} signals */
const nameLimit = ({ containerLimitBytes }) =>
  containerLimitBytes === null ? "the machine's memory" : 'the container limit'

/**
 * @param {keyof typeof PLACES} place
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} growth bytes per second, of all memory outside the heap
 */
const showPlace = (place, signals, limits, growth) => [
  place === 'webassembly' &&
    evidence(
      'webassemblyGrowthBytesPerSecond',
      signals.webassemblyGrowthBytesPerSecond ?? 0,
      limits.placeShareRatio * growth,
      value => `WebAssembly memories grow by ${value}, as the memory map shows.`
    ),
  place === 'silentWorkers' &&
    evidence(
      'silentWorkerHeapGrowthBytesPerSecond',
      signals.silentWorkerHeapGrowthBytesPerSecond ?? 0,
      limits.placeShareRatio * growth,
      value => `V8 heaps of workers that send no frames grow by ${value}, as the memory map shows.`
    ),
  place === 'addonMalloc' &&
    evidence(
      'addonMallocGrowthBytesPerSecond',
      signals.addonMallocGrowthBytesPerSecond ?? 0,
      limits.placeShareRatio * growth,
      value => `Segments of mimalloc grow by ${value}, as the memory map shows.`
    )
]

module.exports = {
  PLACES, churns, findPlace, freedBytes, nameLimit, ruleOutFreed, showPlace
}
