'use strict'

const { parseJson } = require('../primordials')

/**
 * THE wire contract between an agent and the exporter.
 *
 * An agent opens one connection per isolate and writes NDJSON lines: one `hello`, then one `frame`
 * a second, then, if it can, one `bye`. Counters are cumulative since the isolate started, so a
 * lost frame loses no event. Every number is in base units: bytes, seconds, ratios 0 to 1; a field
 * that cannot be read on this machine is absent, never 0.
 *
 *   {"v":1,"type":"hello", ...Hello}
 *   {"v":1,"type":"frame","sequence":7,"atUnixMs":1760000000000,"uptimeSeconds":7.1,
 *    "values":{"rssBytes":...,...}}
 *   {"v":1,"type":"bye","sequence":8,"atUnixMs":...,"exitCode":0}
 *
 * An agent whose hello names `commands` executes them where it can trust the socket: it is a Unix
 * socket that belongs, with its folder, to the agent's own user or root, or both sides share a
 * token. Then `proof` covers `sequence`, which grows, and the hello's `nonce`: proof.js.
 *
 *   {"v":1,"type":"command","id":"...","command":"capture","sequence":3,"proof":"...",
 *    "args":{"kind":"cpu_profile","seconds":5}}
 *   {"v":1,"type":"answer","id":"...", ...Answer}
 *
 * A capture travels before the answer, each part on a connection of its own: this line, then bytes
 * until it ends.
 *
 *   {"v":1,"type":"capture","id":"...","part":"profile"}
 *
 * A reader ignores unknown fields; a known one with a value of the wrong shape rejects the frame.
 */

/** Version of the contract. It changes only when an older reader would misread a newer line. */
const PROTOCOL_VERSION = 1

/** Longest line in bytes that a reader must accept; an agent never writes a longer one. */
const MAX_LINE_BYTES = 262_144

/** Upper bounds in seconds of the GC pause buckets; a last bucket counts all longer pauses. */
const GC_PAUSE_BOUNDS_SECONDS = Object.freeze([
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5
])

/**
 * Upper bounds in seconds of the event loop delay buckets; a last bucket counts all longer delays.
 */
const DELAY_BOUNDS_SECONDS = Object.freeze([
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5
])

/**
 * GC kinds as `perf_hooks` numbers them (`entry.detail.kind`), under the names that prom-client
 * gave them.
 */
const GC_KINDS = Object.freeze({
  1: 'minor',
  2: 'minor_mark_sweep',
  4: 'major',
  8: 'incremental',
  16: 'weakcb'
})

/**
 * Why a GC ran, read from `entry.detail.flags` (V8's GCCallbackFlags). First match wins, top to
 * bottom.
 */
const GC_CAUSES = Object.freeze([
  { flag: 4, cause: 'forced' }, // kGCCallbackFlagForced: global.gc(), inspector
  // kGCCallbackFlagCollectAllExternalMemory: Buffers and ArrayBuffers
  { flag: 32, cause: 'external' },
  { flag: 128, cause: 'last_resort' } // kGCCallbackFlagLastResort, V8 14.6
])

/** The cause when none of the flags is set: V8 ran out of room in a space of its own. */
const ORDINARY_CAUSE = 'ordinary'

/** Columns of a row of `spaces`. */
const SPACE_ROW = Object.freeze(
  /** @type {const} */ ({ usedBytes: 0, sizeBytes: 1, availableBytes: 2, physicalBytes: 3 })
)

/** Columns of a row of `gc`, and of `eventLoopDelay`. */
const PAUSE_ROW = Object.freeze(
  /** @type {const} */ ({ count: 0, sumSeconds: 1, longestSeconds: 2, buckets: 3 })
)

/** Why the agent observes GCs and does not count them in V8's own callbacks. */
const GC_HOOKS_MISSING = Object.freeze(
  /** @type {const} */ ({
    off: 'MEMWATCH_GC_HOOKS is off',
    no_addon:
      'the package @memwatch/allocator is not installed, or has no binary for this platform',
    addons_disabled: 'the permission model, or --no-addons',
    not_loaded: 'Node.js could not load it',
    no_symbols: "this Node.js does not export V8's functions",
    disagreed: 'they counted other GCs than an observer beside them'
  })
)
/** @typedef {keyof typeof GC_HOOKS_MISSING} GcHooksMissing */

/** The cause of GCs that the agent ran on the command `force_gc`: they are none of the app's. */
const OWN_CAUSE = 'memwatch'
const OWN_ROW = `/${OWN_CAUSE}`
/**
 * @param {string} key kind/cause of a row of the field `gc`
 * @returns {boolean} whether the agent ran these GCs on command
 */
const isOwnGc = key => key.endsWith(OWN_ROW)

/**
 * Rows of numbers travel without names, which would be most of a frame.
 * @typedef {[usedBytes: number, sizeBytes: number, availableBytes: number, physicalBytes: number]}
 *   SpaceRow
 * @typedef {[count: number, sumSeconds: number, longestSeconds: number, buckets: number[]]}
 *   PauseRow the longest covers the time since a frame was last sent at once, all else is
 *   cumulative
 *
 * What a field holds, by its shape.
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
 * @property {'process'|'isolate'} scope process-wide fields travel from the main thread only
 * @property {S} shape
 * @property {string} source the Node API, V8 counter or kernel file the number comes from
 */

/**
 * @param {Unit} unit
 * @param {'process'|'isolate'} scope
 * @param {string} source
 * @returns {Field<'number'>}
 */
const gauge = (unit, scope, source) => ({ unit, kind: 'gauge', scope, shape: 'number', source })
/**
 * @param {Unit} unit
 * @param {'process'|'isolate'} scope
 * @param {string} source
 * @returns {Field<'number'>}
 */
const counter = (unit, scope, source) => ({ unit, kind: 'counter', scope, shape: 'number', source })

const fields = Object.freeze({
  // What the kernel says of the process. /proc/self/status counts in kB; bytes here.
  rssBytes: gauge(
    'bytes',
    'process',
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
  descriptors: /** @type {Field<'counts'>} */ ({
    unit: 'count',
    kind: 'gauge',
    scope: 'process',
    shape: 'counts',
    source:
      'links of /proc/self/fd by kind: socket, pipe, file, eventpoll (one a loop), eventfd, ' +
        'inotify, io_uring, timerfd, signalfd, pidfd, other. When openFileDescriptors changed ' +
          'by 5 %, every 10 s at most; more than 512 are sampled'
  }),
  maxFileDescriptors: gauge('count', 'process', '/proc/self/limits Max open files, soft'),
  cpuUserSeconds: counter('seconds', 'process', 'process.cpuUsage().user'),
  cpuSystemSeconds: counter('seconds', 'process', 'process.cpuUsage().system'),
  mallocHeapBytes: gauge(
    'bytes',
    'process',
    '/proc/self/maps [heap]: extent of the main malloc arena, with residentBytes'
  ),
  mallocArenaBytes: gauge(
    'bytes',
    'process',
    '/proc/self/maps: writable part of the 64 MiB glibc arenas, with residentBytes'
  ),
  mallocArenas: gauge(
    'count',
    'process',
    '/proc/self/maps: number of 64 MiB glibc arenas, with residentBytes'
  ),
  workerThreads: gauge(
    'count',
    'process',
    '/proc/self/maps: number of stacks of 4 MiB, those of worker threads, with residentBytes'
  ),
  residentBytes: /** @type {Field<'counts'>} */ ({
    unit: 'bytes',
    kind: 'gauge',
    scope: 'process',
    shape: 'counts',
    source:
      '/proc/self/pagemap, else smaps: resident part of malloc_heap ([heap]), malloc_arenas, ' +
        'malloc_mapped, webassembly and stacks; other is the rest of RssAnon, the V8 heap ' +
          'mostly. Every 10 s while RssAnon moves, else every 60 s; larger memories sampled'
  }),
  allocatorBytes: /** @type {Field<'counts'>} */ ({
    unit: 'bytes',
    kind: 'gauge',
    scope: 'process',
    shape: 'counts',
    source:
      'malloc itself, where MEMWATCH_ALLOCATOR_ACCESS allows it: malloc_info(3), jemalloc ' +
        'mallctl(3), tcmalloc, mimalloc; see collect/allocator-books.js. With residentBytes, ' +
          'more rarely where it is dear'
  }),

  // What the container allows. Absent when there is no limit; the smallest limit of the cgroup and
  // its visible parents.
  containerLimitBytes: gauge(
    'bytes',
    'process',
    'cgroup memory.max or memory.limit_in_bytes, parents walked'
  ),
  containerHighBytes: gauge('bytes', 'process', 'cgroup v2 memory.high, parents walked'),
  containerUsageBytes: gauge('bytes', 'process', 'cgroup memory.current or memory.usage_in_bytes'),
  containerWorkingSetBytes: gauge(
    'bytes',
    'process',
    'cgroup usage less inactive_file, as the kubelet counts'
  ),
  containerLimitHits: counter('count', 'process', 'cgroup memory.events max or memory.failcnt'),
  containerHighHits: counter('count', 'process', 'cgroup v2 memory.events high'),
  containerOomEvents: counter('count', 'process', 'cgroup v2 memory.events oom'),
  containerOomKills: counter(
    'count',
    'process',
    'cgroup memory.events oom_kill or memory.oom_control oom_kill'
  ),
  memoryPressureSomeSeconds: counter('seconds', 'process', 'cgroup v2 memory.pressure some total'),
  memoryPressureFullSeconds: counter('seconds', 'process', 'cgroup v2 memory.pressure full total'),
  cpuPressureSomeSeconds: counter('seconds', 'process', 'cgroup v2 cpu.pressure some total'),
  cpuQuotaCores: gauge(
    'cores',
    'process',
    'cgroup cpu.max or cpu.cfs_quota_us / cpu.cfs_period_us'
  ),
  cpuPeriods: counter('count', 'process', 'cgroup cpu.stat nr_periods'),
  cpuThrottledPeriods: counter('count', 'process', 'cgroup cpu.stat nr_throttled'),
  cpuThrottledSeconds: counter(
    'seconds',
    'process',
    'cgroup cpu.stat throttled_usec (v2) or throttled_time (v1)'
  ),

  // What V8 says of the isolate.
  heapUsedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().used_heap_size'),
  heapTotalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().total_heap_size'),
  heapPhysicalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().total_physical_size'),
  heapExecutableBytes: gauge(
    'bytes',
    'isolate',
    'v8.getHeapStatistics().total_heap_size_executable'
  ),
  heapSizeLimitBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().heap_size_limit'),
  heapAllocatedBytes: counter(
    'bytes',
    'isolate',
    'v8.getHeapStatistics().total_allocated_bytes, where Node has it'
  ),
  externalBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().external_memory'),
  externalPeakBytes: gauge(
    'bytes',
    'isolate',
    'highest v8 external_memory seen since the previous frame'
  ),
  arrayBuffersBytes: gauge(
    'bytes',
    'isolate',
    'process.memoryUsage().arrayBuffers, every 5 frames'
  ),
  mallocedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().malloced_memory'),
  peakMallocedBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().peak_malloced_memory'),
  globalHandlesBytes: gauge('bytes', 'isolate', 'v8.getHeapStatistics().used_global_handles_size'),
  nativeContexts: gauge('count', 'isolate', 'v8.getHeapStatistics().number_of_native_contexts'),
  detachedContexts: gauge('count', 'isolate', 'v8.getHeapStatistics().number_of_detached_contexts'),
  spaces: /** @type {Field<'spaces'>} */ ({
    unit: 'bytes',
    kind: 'gauge',
    scope: 'isolate',
    shape: 'spaces',
    source: 'v8.getHeapSpaceStatistics()'
  }),
  gc: /** @type {Field<'gc'>} */ ({
    unit: 'seconds',
    kind: 'counter',
    scope: 'isolate',
    shape: 'gc',
    source:
      "V8's GC callbacks by the addon, else PerformanceObserver 'gc', every entry; the cause " +
        'memwatch is that of GCs on the command force_gc'
  }),
  gcObserverStopped: gauge(
    'count',
    'isolate',
    '1 where GCs were not observed since the frame before, as observing them may have caused ' +
      'them: collect/gc-watchdog.js. Absent before the first time'
  ),
  gcUnobservedSeconds: counter(
    'seconds',
    'isolate',
    'time in which GCs were not observed, for that reason: the counts of gc stand still in it. ' +
      'Absent before the first time'
  ),
  liveHeapBytes: gauge(
    'bytes',
    'isolate',
    "used bytes of all spaces but the new ones, read in V8's callback at the end of a major GC, " +
      'else in the callback of the observer; absent before the first'
  ),
  liveHeapMajors: counter(
    'count',
    'isolate',
    'major GCs counted when liveHeapBytes was read: a new value is a new reading'
  ),

  // The loop.
  eventLoopActiveSeconds: counter(
    'seconds',
    'isolate',
    'performance.eventLoopUtilization().active'
  ),
  eventLoopIdleSeconds: counter('seconds', 'isolate', 'performance.eventLoopUtilization().idle'),
  eventLoopIterations: counter(
    'count',
    'isolate',
    'performance.nodeTiming.uvMetricsInfo.loopCount, Node 20+'
  ),
  eventLoopDelay: /** @type {Field<'delay'>} */ ({
    unit: 'seconds',
    kind: 'counter',
    scope: 'isolate',
    shape: 'delay',
    source: "lateness of the agent's own timer, see collect/delay.js"
  }),
  threadCpuUserSeconds: counter('seconds', 'isolate', 'process.threadCpuUsage().user, Node 22+'),
  threadCpuSystemSeconds: counter(
    'seconds',
    'isolate',
    'process.threadCpuUsage().system, Node 22+'
  ),
  runQueueWaitSeconds: counter(
    'seconds',
    'isolate',
    '/proc/thread-self/schedstat: time this thread was ready and another had its CPU, ' +
      'throttling included; every 5 frames'
  ),
  resources: /** @type {Field<'counts'>} */ ({
    unit: 'count',
    kind: 'gauge',
    scope: 'isolate',
    shape: 'counts',
    source: 'process.getActiveResourcesInfo(), by type'
  }),
  connectionsAccepted: counter(
    'count',
    'isolate',
    'diagnostics_channel net.server.socket: connections that servers accepted since the agent ' +
      'started, Node 18.7+'
  ),

  // What piles up, and what pins memory.
  listenerWarnings: counter(
    'count',
    'isolate',
    "process 'warning': MaxListenersExceededWarning, one for each emitter and event"
  ),
  bufferPoolBytes: gauge('bytes', 'isolate', 'Buffer.poolSize: what small Buffers are cut from'),
  bufferSlabsFollowed: counter(
    'count',
    'isolate',
    'slabs of the Buffer pool that were followed beyond two major GCs after they were left'
  ),
  bufferSlabsKept: counter('count', 'isolate', 'those of them that a slice kept alive'),
  addons: /** @type {Field<'counts'>} */ ({
    unit: 'count',
    kind: 'gauge',
    scope: 'process',
    shape: 'counts',
    source:
      'loaded .node files by `abi/name`; abi is v8, node_api or unread, where a look at the ' +
        'memory map finds them'
  }),

  // The agent's own trouble, in band.
  agentErrors: counter('count', 'isolate', 'errors caught by the guard of the agent'),
  framesDropped: counter(
    'count',
    'isolate',
    'frames given up because the exporter was away or slow for longer than they are kept, or ' +
      'too long'
  ),
  collectSeconds: counter(
    'seconds',
    'isolate',
    'main-thread time the agent spent to collect, encode and send'
  )
})

/**
 * @typedef {object} Pod of Kubernetes; each from a variable that the downward API fills
 * @property {string} [uid] MEMWATCH_POD_UID
 * @property {string} [name] MEMWATCH_POD_NAME
 * @property {string} [namespace] MEMWATCH_POD_NAMESPACE
 * @property {boolean} [injected] MEMWATCH_INJECTED: the preload comes from an admission policy, not
 *   from who wrote the pod
 * @property {string} [container] MEMWATCH_CONTAINER: the containers of a pod share its host name,
 *   and may all have a pid 1
 */

/**
 * What an agent says of itself once, in its first line.
 * @typedef {object} Hello
 * @property {string} agent version of the agent
 * @property {string} [host] os.hostname(): containers number their processes alike
 * @property {Pod} [pod] where it runs in Kubernetes, as far as its environment says
 * @property {string} [cgroup] inode of the memory cgroup whose limit the process meets first; main
 *   threads only. Processes of one host and cgroup share a limit
 * @property {number} pid
 * @property {number} threadId 0 is the main thread
 * @property {number} startedAtUnixMs when the isolate started; pid + threadId + this tell two lives
 *   apart
 * @property {number} [startTimeTicks] start of the process in clock ticks since boot,
 *   /proc/self/stat
 * @property {string} name the app: MEMWATCH_NAME, else the name in the nearest package.json, else
 *   the script's base name
 * @property {number} intervalSeconds seconds between frames
 * @property {string} node version, without the v
 * @property {string} v8 version
 * @property {string} platform
 * @property {string} arch
 * @property {'glibc'|'musl'|'other'|'unknown'} libc
 * @property {'glibc'|'musl'|'jemalloc'|'mimalloc'|'tcmalloc'|'other'|'unknown'} allocator what
 *   malloc is, from the loaded objects
 * @property {string} [allocatorPath] the loaded object that says so
 * @property {boolean} pointerCompression
 * @property {string[]} execArgv process.execArgv
 * @property {string[]} nodeOptions NODE_OPTIONS, split as Node splits it
 * @property {Record<string, string>} mallocEnv the environment variables that steer an allocator,
 *   those that are set
 * @property {string[]} allowedFlags process.allowedNodeEnvironmentFlags
 * @property {{maxOldGenerationSizeMb?: number, maxYoungGenerationSizeMb?: number}} [resourceLimits]
 *   of a worker
 * @property {number} [hostMemoryBytes] os.totalmem()
 * @property {number} [constrainedBytes] process.constrainedMemory() where it names a real limit:
 *   what V8 was told at start
 * @property {number} [cores] os.availableParallelism()
 * @property {'addon'|'ffi'} [allocatorAccess] how malloc is asked, where that is allowed
 * @property {'hooks'|'observer'} [gcCounter] what counts GCs: V8's own callbacks, by the addon, or
 *   a PerformanceObserver
 * @property {GcHooksMissing} [gcHooksMissing] why it is the observer
 * @property {CommandName[]} [commands] that the agent carries out
 * @property {string} [agentFolder] where the agent's own files lie: what a profile shows of them is
 *   no suspect
 * @property {string} [nonce] of this connection, 32 hexadecimal digits; with a token only
 * @property {number} [semiSpaceMaxBytes] no agent sends it: what a log of GCs shows of the most
 *   that a semi-space may grow to
 */

/**
 * @typedef {'look' | 'trim' | 'capture' | 'force_gc'} CommandName `look`: a frame with all that is
 *   otherwise read rarely, now. `trim`: a look, then malloc gives free memory back to the system,
 *   by malloc_trim(0) or what comes nearest. `capture`: capture/index.js. `force_gc`: one full GC,
 *   for a reading of the live heap: forced-gc.js
 * @typedef {object} Answer to a command
 * @property {string} id of the command
 * @property {boolean} ok
 * @property {string} [reason] why not, in a word
 * @property {string} [message] and in a sentence
 * @property {Record<string, number>} [parts] bytes of each part of a capture
 * @property {number} [predictedBytes] what a snapshot that was refused would take beside the heap
 * @property {number} [headroomBytes] what there is for it
 * @property {number} [blockedSeconds] how long the app's thread stood still
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
 * @property {number} sequence 1, 2, 3 ...; a gap tells frames lost
 * @property {number} atUnixMs when it was read
 * @property {number} uptimeSeconds age of the isolate then
 * @property {Values} values
 */

/**
 * Values of a frame before anything is read: each field is there, and none has a value. All frames
 * copy it, so they have one shape, which V8 fills and reads without looking names up. Parsed, as an
 * object that is put together name by name becomes a slow dictionary.
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
