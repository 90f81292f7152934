'use strict'

const { parseJson } = require('../primordials')

/**
 * The wire contract between agent and exporter.
 *
 * An agent opens one connection per isolate and writes NDJSON lines: one `hello`, one `frame` a
 * second and, if possible, one `bye`. Counters are cumulative since the isolate started, so a lost
 * frame loses no event. Numbers are in base units: bytes, seconds, ratios 0 to 1. A field that this
 * machine cannot measure is absent, never 0.
 *
 *   {"v":1,"type":"hello", ...Hello}
 *   {"v":1,"type":"frame","sequence":7,"atUnixMs":1760000000000,"uptimeSeconds":7.1,
 *    "values":{"rssBytes":...,...}}
 *   {"v":1,"type":"bye","sequence":8,"atUnixMs":...,"exitCode":0}
 *
 * An agent executes the `commands` of its hello if it trusts their sender. Without a token it
 * trusts a Unix socket that belongs, with its folder, to the agent's own user or root. With a token
 * each command needs a `proof`, which covers the growing `sequence` and the hello's `nonce`:
 * proof.js.
 *
 *   {"v":1,"type":"command","id":"...","command":"capture","sequence":3,"proof":"...",
 *    "args":{"kind":"cpu_profile","seconds":5}}
 *   {"v":1,"type":"answer","id":"...", ...Answer}
 *
 * A capture precedes the answer. Each part has its own connection: this line, then bytes to the
 * end.
 *
 *   {"v":1,"type":"capture","id":"...","part":"profile"}
 *
 * A reader ignores unknown fields; a known field of the wrong shape rejects the frame.
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
 * Rows of numbers travel without names, which would be most of a frame.
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
 * @property {string} source Node API, V8 counter or kernel file of the number
 */

/**
 * @template {Shape} S
 * @param {Field['kind']} kind
 * @param {S} shape
 * @returns {(unit: Unit, scope: Field['scope'], source: string) => Field<S>}
 */
const define = (kind, shape) => (unit, scope, source) => ({ unit, kind, scope, shape, source })
const gauge = define('gauge', 'number')
const counter = define('counter', 'number')
const counts = define('gauge', 'counts')

const fields = Object.freeze({
  // Process, from the kernel. /proc/self/status counts in kB; these fields are in bytes.
  rssBytes: gauge('bytes', 'process',
    '/proc/self/statm resident, elsewhere process.memoryUsage.rss()'
  ),
  rssAnonBytes: gauge('bytes', 'process', '/proc/self/statm resident less shared'),
  rssFileBytes: gauge('bytes', 'process', '/proc/self/status RssFile'),
  rssShmemBytes: gauge('bytes', 'process', '/proc/self/status RssShmem'),
  swapBytes: gauge('bytes', 'process', '/proc/self/status VmSwap'),
  virtualBytes: gauge('bytes', 'process', '/proc/self/status VmSize'),
  dataBytes: gauge('bytes', 'process', '/proc/self/status VmData'),
  threads: gauge('count', 'process', '/proc/self/status Threads'),
  openFileDescriptors: gauge('count', 'process', 'entries of /proc/self/fd, every 5 s'),
  descriptors: counts('count', 'process',
    'links of /proc/self/fd by kind: socket, pipe, file, eventpoll (one a loop), eventfd, ' +
      'inotify, io_uring, timerfd, signalfd, pidfd, other. When openFileDescriptors changed by 5 ' +
      '%, every 10 s at most; more than 512 are sampled'
  ),
  maxFileDescriptors: gauge('count', 'process', '/proc/self/limits Max open files, soft'),
  cpuUserSeconds: counter('seconds', 'process', 'process.cpuUsage().user'),
  cpuSystemSeconds: counter('seconds', 'process', 'process.cpuUsage().system'),
  mallocHeapBytes: gauge('bytes', 'process',
    '/proc/self/maps [heap]: extent of the main malloc arena, with residentBytes'
  ),
  mallocArenaBytes: gauge('bytes', 'process',
    '/proc/self/maps: writable part of the 64 MiB glibc arenas, with residentBytes'
  ),
  mallocArenas: gauge('count', 'process',
    '/proc/self/maps: number of 64 MiB glibc arenas, with residentBytes'
  ),
  workerThreads: gauge('count', 'process',
    '/proc/self/maps: number of stacks of 4 MiB, those of worker threads, with residentBytes'
  ),
  v8MappedBytes: gauge('bytes', 'process',
    '/proc/self/maps: writable mappings where V8 places its pages, with residentBytes'
  ),
  residentBytes: counts('bytes', 'process',
    '/proc/self/pagemap, else smaps: resident part of malloc_heap ([heap]), malloc_arenas, ' +
      'malloc_mapped, mimalloc, webassembly and stacks; other is the rest of RssAnon, the V8 heap ' +
      'mostly. Every 10 s while RssAnon moves, else every 60 s; larger memories sampled'
  ),
  allocatorBytes: counts('bytes', 'process',
    'malloc itself, if MEMWATCH_ALLOCATOR_ACCESS allows it: malloc_info(3), jemalloc mallctl(3), ' +
      'tcmalloc, mimalloc; see collect/allocator-statistics.js. With residentBytes, more rarely if ' +
      'expensive'
  ),

  // Container. Absent without a limit; else the smallest limit of the cgroup and its visible
  // parents.
  containerLimitBytes: gauge('bytes', 'process',
    'cgroup memory.max or memory.limit_in_bytes, parents walked'
  ),
  containerHighBytes: gauge('bytes', 'process', 'cgroup v2 memory.high, parents walked'),
  containerUsageBytes: gauge('bytes', 'process', 'cgroup memory.current or memory.usage_in_bytes'),
  containerWorkingSetBytes: gauge('bytes', 'process',
    'cgroup usage less inactive_file, as the kubelet counts'
  ),
  containerLimitHits: counter('count', 'process', 'cgroup memory.events max or memory.failcnt'),
  containerHighHits: counter('count', 'process', 'cgroup v2 memory.events high'),
  containerOomEvents: counter('count', 'process', 'cgroup v2 memory.events oom'),
  containerOomKills: counter('count', 'process',
    'cgroup memory.events oom_kill or memory.oom_control oom_kill'
  ),
  memoryPressureSomeSeconds: counter('seconds', 'process', 'cgroup v2 memory.pressure some total'),
  memoryPressureFullSeconds: counter('seconds', 'process', 'cgroup v2 memory.pressure full total'),
  cpuPressureSomeSeconds: counter('seconds', 'process', 'cgroup v2 cpu.pressure some total'),
  cpuQuotaCores: gauge('cores', 'process',
    'cgroup cpu.max or cpu.cfs_quota_us / cpu.cfs_period_us'
  ),
  cpuPeriods: counter('count', 'process', 'cgroup cpu.stat nr_periods'),
  cpuThrottledPeriods: counter('count', 'process', 'cgroup cpu.stat nr_throttled'),
  cpuThrottledSeconds: counter('seconds', 'process',
    'cgroup cpu.stat throttled_usec (v2) or throttled_time (v1)'
  ),

  // Isolate, from V8.
  heapUsedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().used_heap_size'),
  heapTotalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().total_heap_size'),
  heapPhysicalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().total_physical_size'),
  heapExecutableBytes: gauge('bytes', 'isolate',
    'v8.getHeapStatistics().total_heap_size_executable'
  ),
  heapSizeLimitBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().heap_size_limit'),
  heapAllocatedBytes: counter('bytes', 'isolate',
    'v8.getHeapStatistics().total_allocated_bytes, where Node has it'
  ),
  externalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().external_memory'),
  externalPeakBytes: gauge('bytes', 'isolate',
    'highest v8 external_memory seen since the previous frame'
  ),
  arrayBuffersBytes: gauge('bytes', 'isolate',
    'process.memoryUsage().arrayBuffers, every 5 frames'
  ),
  mallocedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().malloced_memory'),
  peakMallocedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().peak_malloced_memory'),
  globalHandlesBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().used_global_handles_size'),
  nativeContexts: gauge('count', 'isolate', 'v8.getHeapStatistics().number_of_native_contexts'),
  detachedContexts: gauge('count', 'isolate', 'v8.getHeapStatistics().number_of_detached_contexts'),
  spaces: define('gauge', 'spaces')('bytes', 'isolate', 'v8.getHeapSpaceStatistics()'),
  gc: define('counter', 'gc')('seconds', 'isolate',
    "V8's GC callbacks by the addon, else PerformanceObserver 'gc', every entry; cause memwatch: " +
      'GCs on the command force_gc'
  ),
  gcObserverStopped: gauge('count', 'isolate',
    '1 if GCs were not observed since the previous frame, because observing may cause GCs: ' +
    'collect/gc-watchdog.js. Absent at first'
  ),
  gcUnobservedSeconds: counter('seconds', 'isolate',
    'time without observed GCs, for the same reason; gc does not change. Absent before the ' +
      'first time'
  ),
  liveHeapBytes: gauge('bytes', 'isolate',
    "used bytes of all spaces but the new ones, read in V8's callback at the end of a major GC, " +
      'else in the callback of the observer; absent before the first'
  ),
  liveHeapMajors: counter('count', 'isolate',
    'number of major GCs when liveHeapBytes was read; it identifies the reading'
  ),

  // Event loop.
  eventLoopActiveSeconds: counter('seconds', 'isolate',
    'performance.eventLoopUtilization().active'
  ),
  eventLoopIdleSeconds: counter('seconds', 'isolate', 'performance.eventLoopUtilization().idle'),
  eventLoopIterations: counter('count', 'isolate',
    'performance.nodeTiming.uvMetricsInfo.loopCount, Node 20+'
  ),
  eventLoopDelay: define('counter', 'delay')('seconds', 'isolate',
    "lateness of the agent's own timer, see collect/delay.js"
  ),
  threadCpuUserSeconds: counter('seconds', 'isolate', 'process.threadCpuUsage().user, Node 22+'),
  threadCpuSystemSeconds: counter('seconds', 'isolate',
    'process.threadCpuUsage().system, Node 22+'
  ),
  runQueueWaitSeconds: counter('seconds', 'isolate',
    '/proc/thread-self/schedstat: time this thread was ready and another had its CPU, throttling ' +
      'included; every 5 frames'
  ),
  resources: counts('count', 'isolate', 'process.getActiveResourcesInfo(), by type'),
  connectionsAccepted: counter('count', 'isolate',
    'diagnostics_channel net.server.socket: connections that servers accepted since the agent ' +
      'started, Node 18.7+'
  ),

  // Objects that pile up or pin memory.
  listenerWarnings: counter('count', 'isolate',
    "process 'warning': MaxListenersExceededWarning, one for each emitter and event"
  ),
  bufferPoolBytes: gauge('bytes', 'isolate', 'Buffer.poolSize: size of a slab for small Buffers'),
  bufferSlabsFollowed: counter('count', 'isolate',
    'slabs of the Buffer pool followed beyond two major GCs after the pool left them'
  ),
  bufferSlabsKept: counter('count', 'isolate', 'followed slabs that a slice kept alive'),
  bufferSlabsCountedBytes: gauge('bytes', 'isolate',
    'slabs that slices kept alive at the command count_slices, for an hour'
  ),
  bufferSlicesCountedBytes: gauge('bytes', 'isolate', 'bytes of these slices'),
  addons: counts('count', 'process',
    'loaded .node files by `abi/name`, from scans of the memory map; abi is v8, node_api or unread'
  ),

  // Errors and costs of the agent itself.
  agentErrors: counter('count', 'isolate', 'errors caught by the guard of the agent'),
  framesDropped: counter('count', 'isolate',
    'frames dropped: too long, or the exporter was away or slow for too long'
  ),
  collectSeconds: counter('seconds', 'isolate',
    'main-thread time the agent spent to collect, encode and send'
  )
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
 * @property {string} [host] os.hostname(): processes of different containers may have the same pid
 * @property {Pod} [pod] from the environment
 * @property {string} [cgroup] inode of the memory cgroup with the tightest limit; main threads
 *   only. Processes of one host and cgroup share a limit
 * @property {number} pid
 * @property {number} threadId 0 is the main thread
 * @property {number} startedAtUnixMs start of the isolate; pid, threadId and start identify it
 * @property {number} [startTimeTicks] start of the process in clock ticks since boot,
 *   /proc/self/stat
 * @property {string} name name of the app: MEMWATCH_NAME, else the name in the nearest
 *   package.json, else the script's base name
 * @property {string} [appVersion] service.version of OTEL_RESOURCE_ATTRIBUTES, else that of the
 *   nearest package.json
 * @property {number} intervalSeconds seconds between frames
 * @property {string} node version, without the v
 * @property {string} v8 version
 * @property {string} platform
 * @property {string} arch
 * @property {'glibc'|'musl'|'other'|'unknown'} libc
 * @property {'glibc'|'musl'|'jemalloc'|'mimalloc'|'tcmalloc'|'other'|'unknown'} allocator
 *   implementation of malloc, by the loaded objects
 * @property {string} [allocatorPath] loaded object of the allocator
 * @property {boolean} pointerCompression
 * @property {string[]} execArgv process.execArgv
 * @property {string[]} nodeOptions NODE_OPTIONS, split as Node splits it
 * @property {Record<string, string>} mallocEnv environment variables that configure an allocator
 * @property {string[]} allowedFlags process.allowedNodeEnvironmentFlags
 * @property {{maxOldGenerationSizeMb?: number, maxYoungGenerationSizeMb?: number}} [resourceLimits]
 *   limits of a worker
 * @property {number} [hostMemoryBytes] os.totalmem()
 * @property {number} [constrainedBytes] process.constrainedMemory(), if a real limit: V8 sized its
 *   heap by it at start
 * @property {number} [cores] os.availableParallelism()
 * @property {'addon'|'ffi'} [allocatorAccess] access to malloc, with permission
 * @property {'hooks'|'observer'} [gcCounter] counter of GCs: V8's own callbacks, by the addon, or a
 *   PerformanceObserver
 * @property {GcHooksMissing} [gcHooksMissing] reason for the observer
 * @property {CommandName[]} [commands] accepted commands
 * @property {string} [agentFolder] folder of the agent's own files, which are no suspects in
 *   profiles
 * @property {string} [nonce] random for each connection, 32 hexadecimal digits; with a token only
 * @property {number} [semiSpaceMaxBytes] largest semi-space, from logs of GCs; no agent sends it
 */

/**
 * @typedef {'look' | 'trim' | 'capture' | 'sample_heap' | 'count_slices' | 'force_gc'} CommandName
 *   `look`: a frame now, with all rarely read values. `trim`: such a frame, then malloc returns
 *   free memory to the system, by malloc_trim(0) or its nearest equivalent. `capture`:
 *   capture/index.js. `sample_heap`: begins a heap profile that a later `capture` continues.
 *   `count_slices`: capture/slices.js. `force_gc`: one full GC, for a reading of the live heap:
 *   forced-gc.js
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
