'use strict'

/**
 * Origin of each field of a frame, for the documentation of the wire protocol: Node API, V8 counter
 * or kernel file of the number. The agent itself does not need these texts.
 * @type {Readonly<Record<import('@memwatch/agent/protocol/frame').FieldName, string>>}
 */
const FIELD_SOURCES = Object.freeze({
  rssBytes: '/proc/self/statm resident, elsewhere process.memoryUsage.rss()',
  rssAnonBytes: '/proc/self/statm resident less shared',
  rssFileBytes: '/proc/self/status RssFile',
  rssShmemBytes: '/proc/self/status RssShmem',
  swapBytes: '/proc/self/status VmSwap',
  virtualBytes: '/proc/self/status VmSize',
  dataBytes: '/proc/self/status VmData',
  threads: '/proc/self/status Threads',
  openFileDescriptors: 'entries of /proc/self/fd, every 5 s',
  descriptors:
    'links of /proc/self/fd by kind: socket, pipe, file, eventpoll (one a loop), eventfd, ' +
    'inotify, io_uring, timerfd, signalfd, pidfd, other. When openFileDescriptors changed by 5 ' +
    '%, every 10 s at most; more than 512 are sampled',
  maxFileDescriptors: '/proc/self/limits Max open files, soft',
  cpuUserSeconds: 'process.cpuUsage().user',
  cpuSystemSeconds: 'process.cpuUsage().system',
  mallocHeapBytes: '/proc/self/maps [heap]: extent of the main malloc arena, with residentBytes',
  mallocArenaBytes: '/proc/self/maps: writable part of the 64 MiB glibc arenas, with residentBytes',
  mallocArenas: '/proc/self/maps: number of 64 MiB glibc arenas, with residentBytes',
  workerThreads:
    '/proc/self/maps: number of stacks of 4 MiB, those of worker threads, with residentBytes',
  v8MappedBytes: '/proc/self/maps: writable mappings where V8 places its pages, with residentBytes',
  residentBytes:
    '/proc/self/pagemap, else smaps: resident part of malloc_heap ([heap]), malloc_arenas, ' +
    'malloc_mapped, mimalloc, webassembly and stacks; other is the rest of RssAnon, the V8 heap ' +
    'mostly. Every 5 s while RssAnon moves, else every 60 s; larger memories sampled',
  allocatorBytes:
    'malloc itself, if MEMWATCH_ALLOCATOR_ACCESS allows it: malloc_info(3), jemalloc ' +
    'mallctl(3), tcmalloc, mimalloc; see collect/allocator-statistics.js. With residentBytes, ' +
    'more rarely if expensive',
  containerLimitBytes: 'cgroup memory.max or memory.limit_in_bytes, parents walked',
  containerHighBytes: 'cgroup v2 memory.high, parents walked',
  containerUsageBytes: 'cgroup memory.current or memory.usage_in_bytes',
  containerWorkingSetBytes: 'cgroup usage less inactive_file, as the kubelet counts',
  containerLimitHits: 'cgroup memory.events max or memory.failcnt',
  containerHighHits: 'cgroup v2 memory.events high',
  containerOomEvents: 'cgroup v2 memory.events oom',
  containerOomKills: 'cgroup memory.events oom_kill or memory.oom_control oom_kill',
  memoryPressureSomeSeconds: 'cgroup v2 memory.pressure some total',
  memoryPressureFullSeconds: 'cgroup v2 memory.pressure full total',
  cpuPressureSomeSeconds: 'cgroup v2 cpu.pressure some total',
  cpuQuotaCores: 'cgroup cpu.max or cpu.cfs_quota_us / cpu.cfs_period_us',
  cpuPeriods: 'cgroup cpu.stat nr_periods',
  cpuThrottledPeriods: 'cgroup cpu.stat nr_throttled',
  cpuThrottledSeconds: 'cgroup cpu.stat throttled_usec (v2) or throttled_time (v1)',
  heapUsedBytes: 'v8.getHeapStatistics().used_heap_size',
  heapTotalBytes: 'v8.getHeapStatistics().total_heap_size',
  heapPhysicalBytes: 'v8.getHeapStatistics().total_physical_size',
  heapExecutableBytes: 'v8.getHeapStatistics().total_heap_size_executable',
  heapSizeLimitBytes: 'v8.getHeapStatistics().heap_size_limit',
  heapAllocatedBytes: 'v8.getHeapStatistics().total_allocated_bytes, where Node has it',
  externalBytes: 'v8.getHeapStatistics().external_memory',
  externalPeakBytes: 'highest v8 external_memory seen since the previous frame',
  arrayBuffersBytes: 'process.memoryUsage().arrayBuffers, every 5 frames',
  mallocedBytes: 'v8.getHeapStatistics().malloced_memory',
  peakMallocedBytes: 'v8.getHeapStatistics().peak_malloced_memory',
  globalHandlesBytes: 'v8.getHeapStatistics().used_global_handles_size',
  nativeContexts: 'v8.getHeapStatistics().number_of_native_contexts',
  detachedContexts: 'v8.getHeapStatistics().number_of_detached_contexts',
  spaces: 'v8.getHeapSpaceStatistics()',
  gc:
    "V8's GC callbacks by the addon, else PerformanceObserver 'gc', every entry; cause " +
    'memwatch: GCs on the command force_gc',
  gcObserverStopped:
    '1 if GCs were not observed since the previous frame, because observing may cause GCs: ' +
    'collect/gc-watchdog.js. Absent at first',
  gcUnobservedSeconds:
    'time without observed GCs, for the same reason; gc does not change. Absent before the ' +
    'first time',
  liveHeapBytes:
    "used bytes of all spaces but the new ones, read in V8's callback at the end of a major GC, " +
    'else in the callback of the observer; absent before the first',
  liveHeapMajors: 'number of major GCs when liveHeapBytes was read; it identifies the reading',
  eventLoopActiveSeconds: 'performance.eventLoopUtilization().active',
  eventLoopIdleSeconds: 'performance.eventLoopUtilization().idle',
  eventLoopIterations: 'performance.nodeTiming.uvMetricsInfo.loopCount, Node 20+',
  eventLoopEvents: 'performance.nodeTiming.uvMetricsInfo.events, Node 20+',
  eventLoopDelay: "lateness of the agent's own timer, see collect/delay.js",
  threadCpuUserSeconds: 'process.threadCpuUsage().user, Node 22+',
  threadCpuSystemSeconds: 'process.threadCpuUsage().system, Node 22+',
  threadRunSeconds:
    '/proc/thread-self/schedstat: time this thread ran on a CPU; every 5 frames',
  runQueueWaitSeconds:
    '/proc/thread-self/schedstat: time this thread was ready and another had its CPU, ' +
    'throttling included; every 5 frames',
  resources: 'process.getActiveResourcesInfo(), by type',
  connectionsAccepted:
    'diagnostics_channel net.server.socket: connections that servers accepted since the agent ' +
    'started, Node 18.7+',
  listenerWarnings:
    "process 'warning': MaxListenersExceededWarning, one for each emitter and event",
  bufferPoolBytes: 'Buffer.poolSize: size of a slab for small Buffers',
  bufferSlabsFollowed:
    'slabs of the Buffer pool followed beyond two major GCs after the pool left them',
  bufferSlabsKept: 'followed slabs that a slice kept alive',
  bufferSlabsCountedBytes:
    'ArrayBuffers of at most 4 MiB that views kept alive at the command count_slices, for an hour',
  bufferSlicesCountedBytes: 'bytes of these views, each ArrayBuffer at most once',
  bufferPoolCountedBytes: 'those of the ArrayBuffers that have the size of a slab of the pool',
  addons:
    'loaded .node files by `abi/name`, from scans of the memory map; abi is v8, node_api or ' +
    'unread',
  agentErrors: 'errors caught by the guard of the agent',
  framesDropped: 'frames dropped: too long, or the exporter was away or slow for too long',
  collectSeconds: 'main-thread time the agent spent to collect, encode and send'
})

module.exports = { FIELD_SOURCES }
