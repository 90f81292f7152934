'use strict'

const { parseJson } = require('../primordials')

/**
 * The wire contract between agent and exporter. engine/decode/decode.js describes its lines. All
 * numbers are in base units. A field that this machine cannot measure is absent, never 0.
 */

/** Version of the contract. It changes only when an older reader would misread a newer line. */
const PROTOCOL_VERSION = 1

/** Longest line in bytes: a reader must accept it, and an agent never exceeds it. */
const MAX_LINE_BYTES = 262_144

/** Upper bounds in seconds of the GC pause buckets; a last bucket counts longer pauses. */
const GC_PAUSE_BOUNDS_SECONDS = Object.freeze([
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5
])

/** Upper bounds in seconds of the event loop delay buckets; a last bucket counts longer delays. */
const DELAY_BOUNDS_SECONDS = Object.freeze([
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5
])

/** GC kinds by their number in `perf_hooks` (`entry.detail.kind`), with prom-client's names. */
const GC_KINDS = Object.freeze({
  1: 'minor',
  2: 'minor_mark_sweep',
  4: 'major',
  8: 'incremental',
  16: 'weakcb'
})

/** Cause of a GC by `entry.detail.flags` (V8's GCCallbackFlags). The first match wins. */
const GC_CAUSES = Object.freeze([
  { flag: 4, cause: 'forced' }, // kGCCallbackFlagForced: global.gc(), inspector
  // kGCCallbackFlagCollectAllExternalMemory: Buffers and ArrayBuffers
  { flag: 32, cause: 'external' },
  { flag: 128, cause: 'last_resort' } // kGCCallbackFlagLastResort, V8 14.6
])

/** Cause of a GC without these flags: a V8 space was full. */
const ORDINARY_CAUSE = 'ordinary'

/** Columns of a row of `spaces`. */
const SPACE_ROW = Object.freeze(
  /** @type {const} */ ({ usedBytes: 0, sizeBytes: 1, availableBytes: 2, physicalBytes: 3 })
)

/** Columns of a row of `gc`, and of `eventLoopDelay`. */
const PAUSE_ROW = Object.freeze(
  /** @type {const} */ ({ count: 0, sumSeconds: 1, longestSeconds: 2, buckets: 3 })
)

/** Reasons to count GCs by an observer instead of V8's own callbacks. */
const GC_HOOKS_MISSING = Object.freeze(/** @type {const} */ ([
  'off', 'no_addon', 'addons_disabled', 'not_loaded', 'no_symbols', 'disagreed'
]))
/** @typedef {typeof GC_HOOKS_MISSING[number]} GcHooksMissing */

/** Cause of GCs that the agent ran on the command `force_gc`: they are none of the app's. */
const OWN_CAUSE = 'memwatch'
const OWN_ROW = `/${OWN_CAUSE}`
/**
 * @param {string} key kind/cause of a row of the field `gc`
 * @returns {boolean} true: the agent ran these GCs on command
 */
const isOwnGc = key => key.endsWith(OWN_ROW)

/**
 * Rows have no names, which would be most of a frame.
 * @typedef {[usedBytes: number, sizeBytes: number, availableBytes: number, physicalBytes: number]}
 *   SpaceRow
 * @typedef {[count: number, sumSeconds: number, longestSeconds: number, buckets: number[]]}
 *   PauseRow cumulative, except for the longest, which counts since the last frame that was sent at
 *   once
 *
 * Value of a field, by its shape.
 * @typedef {object} Shapes
 * @property {number} number finite
 * @property {Record<string, SpaceRow>} spaces by name
 * @property {Record<string, PauseRow>} gc by kind + '/' + cause
 * @property {PauseRow} delay
 * @property {Record<string, number>} counts by name
 * @typedef {keyof Shapes} Shape
 * @typedef {'bytes'|'seconds'|'count'|'cores'} Unit
 */

/**
 * @template {Shape} [S=Shape]
 * @typedef {object} Field
 * @property {Unit} unit
 * @property {'gauge'|'counter'} kind counters only grow while the isolate lives
 * @property {'process'|'isolate'} scope only the main thread sends fields of the process
 * @property {S} shape
 */

/**
 * @template {Shape} S
 * @param {Field['kind']} kind
 * @param {S} shape
 * @returns {(unit: Unit, scope: Field['scope']) => Field<S>}
 */
const define = (kind, shape) => (unit, scope) => ({ unit, kind, scope, shape })
const gauge = define('gauge', 'number')
const counter = define('counter', 'number')
const counts = define('gauge', 'counts')

const processBytes = gauge('bytes', 'process')
const isolateBytes = gauge('bytes', 'isolate')
const processCount = gauge('count', 'process')
const isolateCount = gauge('count', 'isolate')
const processSeconds = counter('seconds', 'process')
const isolateSeconds = counter('seconds', 'isolate')
const processEvents = counter('count', 'process')
const isolateEvents = counter('count', 'isolate')

/** engine/decode/field-sources.js tells where each number comes from. */
const fields = Object.freeze({
  // Process, from the kernel. /proc/self/status counts in kB; these fields are in bytes.
  rssBytes: processBytes,
  rssAnonBytes: processBytes,
  rssFileBytes: processBytes,
  rssShmemBytes: processBytes,
  swapBytes: processBytes,
  virtualBytes: processBytes,
  dataBytes: processBytes,
  threads: processCount,
  openFileDescriptors: processCount,
  descriptors: counts('count', 'process'),
  maxFileDescriptors: processCount,
  cpuUserSeconds: processSeconds,
  cpuSystemSeconds: processSeconds,
  mallocHeapBytes: processBytes,
  mallocArenaBytes: processBytes,
  mallocArenas: processCount,
  workerThreads: processCount,
  v8MappedBytes: processBytes,
  residentBytes: counts('bytes', 'process'),
  allocatorBytes: counts('bytes', 'process'),

  // Container. Absent without a limit; else the smallest limit of the visible cgroups.
  containerLimitBytes: processBytes,
  containerHighBytes: processBytes,
  containerUsageBytes: processBytes,
  containerWorkingSetBytes: processBytes,
  containerLimitHits: processEvents,
  containerHighHits: processEvents,
  containerOomEvents: processEvents,
  containerOomKills: processEvents,
  memoryPressureSomeSeconds: processSeconds,
  memoryPressureFullSeconds: processSeconds,
  cpuPressureSomeSeconds: processSeconds,
  cpuQuotaCores: gauge('cores', 'process'),
  cpuPeriods: processEvents,
  cpuThrottledPeriods: processEvents,
  cpuThrottledSeconds: processSeconds,

  // Isolate, from V8.
  heapUsedBytes: isolateBytes,
  heapTotalBytes: isolateBytes,
  heapPhysicalBytes: isolateBytes,
  heapExecutableBytes: isolateBytes,
  heapSizeLimitBytes: isolateBytes,
  heapAllocatedBytes: counter('bytes', 'isolate'),
  externalBytes: isolateBytes,
  externalPeakBytes: isolateBytes,
  arrayBuffersBytes: isolateBytes,
  mallocedBytes: isolateBytes,
  peakMallocedBytes: isolateBytes,
  globalHandlesBytes: isolateBytes,
  nativeContexts: isolateCount,
  detachedContexts: isolateCount,
  spaces: define('gauge', 'spaces')('bytes', 'isolate'),
  gc: define('counter', 'gc')('seconds', 'isolate'),
  gcObserverStopped: isolateCount,
  gcUnobservedSeconds: isolateSeconds,
  liveHeapBytes: isolateBytes,
  liveHeapMajors: isolateEvents,

  // Event loop.
  eventLoopActiveSeconds: isolateSeconds,
  eventLoopIdleSeconds: isolateSeconds,
  eventLoopIterations: isolateEvents,
  eventLoopEvents: isolateEvents,
  eventLoopDelay: define('counter', 'delay')('seconds', 'isolate'),
  threadCpuUserSeconds: isolateSeconds,
  threadCpuSystemSeconds: isolateSeconds,
  threadRunSeconds: isolateSeconds,
  runQueueWaitSeconds: isolateSeconds,
  resources: counts('count', 'isolate'),
  connectionsAccepted: isolateEvents,

  // Objects that pile up or pin memory.
  listenerWarnings: isolateEvents,
  bufferPoolBytes: isolateBytes,
  bufferSlabsFollowed: isolateEvents,
  bufferSlabsKept: isolateEvents,
  bufferSlabsCountedBytes: isolateBytes,
  bufferSlicesCountedBytes: isolateBytes,
  bufferPoolCountedBytes: isolateBytes,
  addons: counts('count', 'process'),

  // The agent itself.
  agentErrors: isolateEvents,
  framesDropped: isolateEvents,
  collectSeconds: isolateSeconds
})

/**
 * @typedef {object} Pod Kubernetes pod, by variables that the downward API fills
 * @property {string} [uid] MEMWATCH_POD_UID
 * @property {string} [name] MEMWATCH_POD_NAME
 * @property {string} [namespace] MEMWATCH_POD_NAMESPACE
 * @property {boolean} [injected] MEMWATCH_INJECTED: an admission policy added the preload, not the
 *   author of the pod
 * @property {string} [container] MEMWATCH_CONTAINER: containers of a pod share its host name, and
 *   may all have a pid 1
 */

/**
 * First line of an agent: its identity.
 * @typedef {object} Hello
 * @property {string} agent version of the agent
 * @property {string} [host] os.hostname()
 * @property {Pod} [pod] from the environment
 * @property {string} [cgroup] collect/memory-cgroup.js; main threads only
 * @property {number} pid
 * @property {number} threadId 0 is the main thread
 * @property {number} startedAtUnixMs start of the isolate; pid, threadId and start identify it
 * @property {number} [startTimeTicks] of the process since boot, /proc/self/stat
 * @property {string} name of the app: identity.js
 * @property {string} [appVersion]
 * @property {number} intervalSeconds seconds between frames
 * @property {string} node version, without the v
 * @property {string} v8 version
 * @property {string} platform
 * @property {string} arch
 * @property {'glibc'|'musl'|'other'|'unknown'} libc
 * @property {'glibc'|'musl'|'jemalloc'|'mimalloc'|'tcmalloc'|'other'|'unknown'} allocator
 *   implementation of malloc, by the loaded objects
 * @property {string} [allocatorPath]
 * @property {boolean} pointerCompression
 * @property {string[]} execArgv process.execArgv
 * @property {string[]} nodeOptions NODE_OPTIONS, split as Node splits it
 * @property {Record<string, string>} mallocEnv variables that configure an allocator
 * @property {string[]} allowedFlags process.allowedNodeEnvironmentFlags
 * @property {{maxOldGenerationSizeMb?: number, maxYoungGenerationSizeMb?: number}} [resourceLimits]
 *   limits of a worker
 * @property {number} [hostMemoryBytes] os.totalmem()
 * @property {number} [constrainedBytes] process.constrainedMemory(), if a real limit
 * @property {number} [cores] os.availableParallelism()
 * @property {'addon'|'ffi'} [allocatorAccess] access to malloc, with permission
 * @property {'hooks'|'observer'} [gcCounter] V8's callbacks, or a PerformanceObserver
 * @property {GcHooksMissing} [gcHooksMissing] reason for the observer
 * @property {CommandName[]} [commands] accepted commands
 * @property {string} [agentFolder] its files are no suspects
 * @property {string} [nonce] random for each connection, 32 hexadecimal digits; with a token only
 * @property {number} [semiSpaceMaxBytes] largest semi-space, from logs of GCs; no agent sends it
 */

/**
 * @typedef {'look' | 'trim' | 'capture' | 'sample_heap' | 'count_slices' | 'force_gc'} CommandName
 *   engine/decode/decode.js
 * @typedef {object} Answer to a command
 * @property {string} id id of the command
 * @property {boolean} ok
 * @property {string} [reason] word for a refusal
 * @property {string} [message] sentence for a refusal
 * @property {Record<string, number>} [parts] bytes of each part of a capture
 * @property {number} [predictedBytes] memory for a refused snapshot, beside the heap
 * @property {number} [headroomBytes] memory available for it
 * @property {number} [blockedSeconds] pause of the app's thread
 * @property {number} [rssBeforeBytes]
 * @property {number} [rssAfterBytes]
 */

/**
 * @typedef {keyof typeof fields} FieldName
 * @typedef {{ [Name in FieldName]: typeof fields[Name]['shape'] extends 'number' ? Name : never
 *   }[FieldName]} NumberField a field that is one number
 * @typedef {{ [Name in FieldName]?: Shapes[typeof fields[Name]['shape']] }} Values of a frame
 *
 * @typedef {object} Frame
 * @property {number} sequence 1, 2, 3 ...; a gap means lost frames
 * @property {number} atUnixMs time of reading
 * @property {number} uptimeSeconds age of the isolate at that time
 * @property {Values} values
 */

/**
 * Initial values of a frame: each field, without a value. All frames copy it, so they have one
 * shape, which V8 fills and reads without looking names up. The object is parsed from JSON, as an
 * object built field by field becomes a slow dictionary.
 * @type {Values}
 */
const NO_VALUES = parseJson(`{${Object.keys(fields).map(name => `"${name}":null`)}}`)
for (const name in NO_VALUES) NO_VALUES[/** @type {FieldName} */ (name)] = undefined

module.exports = {
  PROTOCOL_VERSION,
  MAX_LINE_BYTES,
  GC_PAUSE_BOUNDS_SECONDS,
  DELAY_BOUNDS_SECONDS,
  GC_KINDS,
  GC_CAUSES,
  ORDINARY_CAUSE,
  GC_HOOKS_MISSING,
  SPACE_ROW,
  PAUSE_ROW,
  OWN_CAUSE,
  isOwnGc,
  NO_VALUES,
  fields
}
