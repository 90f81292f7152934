'use strict'

const { ok } = require('./define-diagnosis')
const { evidence } = require('./evidence')
const { formatBytes } = require('../text/format')

/** @typedef {import('./native-memory-leak').Limits} Limits */
/** @typedef {import('./native-memory-leak').Signals} Signals */

/**
 * Places of memory outside the heap, each with its advice. In it PID is the process id, CAPTURE the
 * command that captures a heap profile, and ADDONS advice for a process with native addons.
 */
const PLACES = Object.freeze({
  waiting: {
    name: 'it waits for a major GC of the app',
    title: 'Release the native memory at once',
    code: 'JavaScript objects that are garbage already own the memory, and V8 runs no GC for it, ' +
      'because native code does not report it to V8. Search for objects of native addons that ' +
      'are created per request: call their free(), close(), destroy() or dispose() after the ' +
      'last use. If they have none, update the addon, or create fewer of them at a time. ' +
      '`CAPTURE` names the lines that create them.'
  },
  buffers: {
    name: 'it is in Buffers',
    title: 'Drop the references to retained Buffers',
    code: 'The signal arrayBuffers grows at the same time: a Map, an array, a cache without a ' +
      'limit, or a queue that fills faster than it empties holds Buffers or ArrayBuffers. Limit ' +
      'its size, or copy the needed part (Buffer.allocUnsafeSlow(n) and copy): a slice keeps the ' +
      'whole Buffer. `CAPTURE` names the lines that create them, unless they are few and large. ' +
      'If the app runs with MEMWATCH_ALLOW_SNAPSHOT=1, `memwatch capture` with heap_snapshot ' +
      'names what holds them.'
  },
  webassembly: {
    name: 'it is WebAssembly memory',
    title: 'Free the WebAssembly memory, or drop the references to it',
    code: 'The memory map shows WebAssembly memories that grow. Search for new ' +
      'WebAssembly.Memory, WebAssembly.instantiate and packages that are compiled to WebAssembly ' +
      '(image, PDF, SQLite and cryptography libraries) in code that runs per request: create one ' +
      'instance and reuse it. Inside one instance, search for memory that is never freed: each ' +
      'malloc() or constructor of such a package needs its free(), delete() or close(). A memory ' +
      'has at most 4 GiB, unless it uses 64-bit addresses. When it is full, its allocations fail.'
  },
  workers: {
    name: 'worker threads hold it, in Buffers or other external memory',
    title: 'Drop the references to retained Buffers in the worker threads',
    code: 'The external memory of worker threads grows at the same time: a Map, an array, a cache ' +
      'without a limit, or a queue in the code of a worker holds Buffers, ArrayBuffers or ' +
      'WebAssembly memories. Limit its size. `CAPTURE --thread worker-N` names the lines that ' +
      'create them; memwatch top lists the threads.'
  },
  silentWorkers: {
    name: 'it is in the V8 heaps of worker threads that do not report',
    title: 'Drop the references in the worker threads',
    code: 'The memory map shows heaps of workers that grow. A worker sends no frames while it ' +
      'waits in Atomics.wait between its tasks, as workers of piscina do, or while it blocks its ' +
      'event loop. Search the code of the tasks for a Map, array or cache that grows with each ' +
      'task. To see its lines, let the pool wait without Atomics for a while (piscina: atomics: ' +
      "'disabled'): then its workers report like any thread. " +
      'resourceLimits.maxOldGenerationSizeMb bounds each of them.'
  },
  addonMalloc: {
    name: 'an addon holds it, in its own malloc (mimalloc)',
    title: 'Release the memory of the addon',
    code: 'The memory map shows segments of mimalloc, which many addons in Rust contain, such as ' +
      '@napi-rs/snappy, @napi-rs/canvas and @resvg/resvg-js. Neither V8 nor the malloc of the ' +
      'process counts them. `grep -F .node /proc/PID/maps` lists the loaded addons. Search for ' +
      'their objects in code that runs per request, and call their free() or close(). If they ' +
      'have none, update the addon, or replace one addon at a time on a replica.'
  },
  external: {
    name: 'V8 counts it as external memory: WebAssembly memories, or Buffers and other objects of ' +
      'an addon',
    title: 'Drop the objects that own external memory',
    code: 'The signal external grows at the same time, arrayBuffers does not: the app keeps ' +
      'Buffers that an addon filled (such as images of sharp), WebAssembly.Memory objects or ' +
      'instances (create one and reuse it), or never closes handles of an addon. Search for a ' +
      'cache without a limit, new WebAssembly.Memory, WebAssembly.instantiate and addon objects ' +
      'that are created per request.'
  },
  native: {
    name: 'V8 does not count it: memory of native code, such as zlib, SQLite, Intl or an addon',
    title: 'Close the objects that hold native memory',
    code: 'Neither the heap nor Buffers hold this memory: native code allocated it. `CAPTURE` ' +
      'names the lines that create its JavaScript objects.ADDONS Search for zlib, crypto and ' +
      'http2 streams that are created per request and never closed (call close() on every path, ' +
      'also when the client disconnects; pipeline() does this for streams). Objects without ' +
      'close(), such as SQLite statements, X509Certificate, KeyObject, Blob and the formatters ' +
      'of Intl, stay as long as a Map, an array or a cache refers to them: limit its size, bind ' +
      'values instead of writing them into the SQL, and create one formatter per locale. ' +
      'Messages that a worker or port reads too slowly, and rows of an in-memory database, count ' +
      'as well. If no line is named: process.report (libuv handles), the counts of active ' +
      'resources, and `jemalloc` heap profiling (MALLOC_CONF=prof:true) on a replica.'
  }
})

/** @typedef {keyof typeof PLACES} Place */

/**
 * @param {Place} place
 * @param {Signals} signals
 * @returns {string} the place in a sentence
 */
const namePlace = (place, { addonsSeen }) => place === 'native' && addonsSeen === 0
  ? 'V8 does not count it: memory of native code in Node.js, such as zlib, TLS, SQLite or Intl'
  : PLACES[place].name

/**
 * Kind of memory that grew, by the counters that grew with it. Versions of Node.js before 26 count
 * WebAssembly memory as external; the memory map separates it.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes of all memory outside the heap
 * @param {number} growth bytes per second, of all memory outside the heap
 * @returns {Place}
 */
function findPlace (signals, { placeShareRatio, countedShareRatio }, rise, growth) {
  // WebAssembly comes first, because the buffer of its memory is an ArrayBuffer, too.
  if ((signals.webassemblyGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'webassembly'
  }
  const external = signals.externalTrend?.rise ?? 0
  // Node.js also counts messages that wait to be sent as Buffers. The app does not hold them, and
  // V8 does not count them.
  const buffers = Math.min(external, signals.arrayBuffersTrend?.rise ?? 0)
  const isCounted = external > placeShareRatio * rise
  // Buffers with a little other external memory may together exceed the share.
  if (buffers > placeShareRatio * rise || (isCounted && buffers > countedShareRatio * external)) {
    return 'buffers'
  }
  if ((signals.workersExternalTrend?.slope ?? 0) > placeShareRatio * growth) return 'workers'
  if ((signals.silentWorkerHeapGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'silentWorkers'
  }
  if ((signals.addonMallocGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'addonMalloc'
  }
  return isCounted ? 'external' : 'native'
}

/**
 * @param {Place} place
 * @returns {string} subject of a sentence about the growth
 */
const subjectOf = place =>
  place === 'silentWorkers' ? 'Memory of worker threads' : 'Memory outside the JS heap'

/**
 * Major GCs that would have freed garbage at this place: the GCs of a worker free its Buffers.
 * @param {Place} place
 * @param {Signals} signals
 * @param {Limits} limits
 */
function findMajors (place, signals, limits) {
  const [signal, of] = place === 'workers'
    ? /** @type {const} */ (['workersMajorsSeen', ' of each of these workers'])
    : /** @type {const} */ (['majorsSeen', ''])
  const count = signals[signal] ?? 0
  return { signal, count, of, isCollected: count >= limits.majors }
}

/**
 * Growth of the freed memory that malloc retains, in bytes; null if malloc was not queried.
 * @param {Signals} signals
 */
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
 * True if the growth may be freed memory that malloc retains. Without a query of malloc, Buffers
 * that come and go are the sign of such memory, if they are large enough.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 */
const churns = (signals, limits, rise) =>
  freedBytes(signals) === null && (signals.bufferChurnBytes ?? 0) >= limits.churnShareRatio * rise

/**
 * @param {Place} place
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
  place === 'workers' &&
    evidence(
      'workersExternalGrowthBytesPerSecond',
      signals.workersExternalTrend?.slope ?? 0,
      limits.placeShareRatio * growth,
      value => `Buffers and other external memory of worker threads grow by ${value}.`
    ),
  place === 'silentWorkers' &&
    evidence(
      'silentWorkerHeapGrowthBytesPerSecond',
      signals.silentWorkerHeapGrowthBytesPerSecond ?? 0,
      limits.placeShareRatio * growth,
      value => `V8 heaps of workers that do not report grow by ${value}, as the memory map shows.`
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
  PLACES, churns, findMajors, findPlace, freedBytes, namePlace, ruleOutFreed, showPlace, subjectOf
}
