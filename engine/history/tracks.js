'use strict'

const {
  fields, OWN_CAUSE, PAUSE_ROW, SPACE_ROW, isOwnGc
} = require('@memwatch/agent/protocol/frame')
const { isStale, residentNow } = require('../memory/anatomy')
const { heapResident, nativeMemory, outsideHeap } = require('../memory/frame-parts')
const { semiSpaceCapacity } = require('../v8/heap-spaces')

/**
 * Tracks: the numbers whose history is stored for every target. A track reads one number from a
 * frame's values, and a signal names the tracks from which it is computed. `keep` is the statistic
 * that a coarser tier stores: keep.js.
 *
 * @typedef {import('@memwatch/agent/protocol/frame').Frame['values']} Values
 * @typedef {object} Workers memory of the other threads of the process; RSS includes it
 * @property {number} count number of workers that report
 * @property {number} heapBytes resident
 * @property {number} heapLimitBytes
 * @property {number} externalBytes
 * @property {Iterable<import('./target').Target>} threads of the process, with the main one
 * @typedef {object} Neighbours other processes that share the memory limit of the container,
 *   summed. For a worker, memoryBytes includes the other threads of its process
 * @property {number} processes
 * @property {number} heaps number of V8 heaps, of main threads and workers
 * @property {number} memoryBytes resident anonymous memory
 * @property {number} heapBytes part of memoryBytes that belongs to V8 heaps
 * @property {number} liveHeapBytes sum over main threads, after their last major GC
 * @property {number} largestLiveHeapBytes largest of them
 * @property {number} heapLimitBytes
 * @property {number} [limitBytes] for a worker: memory limit of the container, which only the main
 *   thread reports
 * @typedef {object} Moment
 * @property {Values} values newest value of every field
 * @property {Workers} workers
 * @property {Neighbours} [neighbours]
 * @property {import('../memory/scan').Scan} [scan] newest scan of the memory map
 * @typedef {object} Track
 * @property {import('@memwatch/agent/protocol/frame').Unit} unit
 * @property {import('./keep').Keep} keep
 * @property {boolean} [counter] true if the track only grows
 * @property {boolean} [observed] true if the track counts GCs. It is absent while the agent does
 *   not observe GCs, because the count is unknown then, not unchanged
 * @property {boolean} [long] true if the track is stored beyond ten minutes, in single precision
 * @property {(values: Values, workers: Workers, scan: Moment['scan'], neighbours: Neighbours) =>
 *   number | undefined} read
 */

/** @type {Workers} */
const NO_WORKERS = Object.freeze({
  count: 0, heapBytes: 0, heapLimitBytes: 0, externalBytes: 0, threads: []
})
/** @type {Neighbours} */
const NO_NEIGHBOURS = Object.freeze({
  processes: 0,
  heaps: 0,
  memoryBytes: 0,
  heapBytes: 0,
  liveHeapBytes: 0,
  largestLiveHeapBytes: 0,
  heapLimitBytes: 0
})

/**
 * @param {import('@memwatch/agent/protocol/frame').NumberField} field
 * @param {import('./keep').Keep} [keep]
 * @returns {Track}
 */
function field (field, keep = 'last') {
  return {
    unit: fields[field].unit,
    keep,
    ...(fields[field].kind === 'counter' && { counter: true }),
    read: values => values[field]
  }
}

/**
 * @param {Track} track
 * @returns {Track} a track from which growth over hours is computed
 */
const long = track => ({ ...track, long: true })

/**
 * Sum over the GC kinds and causes that `accepts` selects.
 * @param {'count' | 'sumSeconds'} column
 * @param {(kindAndCause: string) => boolean} accepts selects keys of the `gc` field
 * @returns {Track}
 */
function gc (column, accepts) {
  const at = PAUSE_ROW[column]
  return {
    unit: column === 'count' ? 'count' : 'seconds',
    keep: 'last',
    counter: true,
    observed: true,
    read: ({ gc: rows, gcObserverStopped }) => {
      if (!rows || gcObserverStopped) return undefined
      let sum = 0
      for (const key in rows) if (accepts(key)) sum += rows[key][at]
      return sum
    }
  }
}
/** @param {string} key */
const isScavenge = key =>
  (key.startsWith('minor/') || key.startsWith('minor_mark_sweep/')) && !isOwnGc(key)
/**
 * Incremental marking steps belong to the ordinary major GCs that they prepare.
 * @param {string} key kind and cause of a GC
 */
const isOrdinaryMajor = key =>
  key === 'major/ordinary' || (key.startsWith('incremental/') && !isOwnGc(key))
const OWN_MAJORS = `major/${OWN_CAUSE}`
/** @param {string} key */
const isExternalMajor = key => key === 'major/external'

/**
 * Used bytes of one space of the heap.
 * @param {string} space
 * @returns {Track}
 */
const spaceUsed = space => ({
  unit: 'bytes',
  keep: 'min',
  read: values => values.spaces?.[space]?.[SPACE_ROW.usedBytes]
})

/**
 * @param {Record<string, number>} counts
 * @param {readonly string[]} names that are added up
 */
function sumOfNames (counts, names) {
  let sum = 0
  for (let i = 0; i < names.length; i++) sum += counts[names[i]] ?? 0
  return sum
}

/**
 * Active resources of some types. A missing type counts as 0 after the first reading.
 * @param {readonly string[]} types as process.getActiveResourcesInfo() names them
 * @returns {Track}
 */
const resources = types => ({
  unit: 'count',
  keep: 'min',
  read: values => values.resources && sumOfNames(values.resources, types)
})

/**
 * Open descriptors of one kind. A missing kind counts as 0 after the first reading by kind.
 * @param {string} kind as agent/collect/file-descriptors.js names it
 * @returns {Track}
 */
const descriptors = kind => ({
  unit: 'count',
  keep: 'min',
  read: values => values.descriptors && (values.descriptors[kind] ?? 0)
})

/**
 * @param {import('@memwatch/agent/protocol/frame').NumberField} a
 * @param {import('@memwatch/agent/protocol/frame').NumberField} b
 * @returns {Track}
 */
const sumOf = (a, b) => ({
  unit: 'seconds',
  keep: 'last',
  counter: true,
  read: values => {
    const first = values[a]
    return first === undefined ? undefined : first + (values[b] ?? 0)
  }
})

const THREAD_CPU = sumOf('threadCpuUserSeconds', 'threadCpuSystemSeconds')
const PROCESS_CPU = sumOf('cpuUserSeconds', 'cpuSystemSeconds')
const GC_PAUSES = gc('sumSeconds', key => !isOwnGc(key))
const OWN_GC_PAUSES = gc('sumSeconds', isOwnGc)

const tracks = Object.freeze({
  rssBytes: long(field('rssBytes', 'min')),
  externalBytes: long(field('externalBytes', 'min')),
  externalPeakBytes: long(field('externalPeakBytes', 'max')),
  arrayBuffersBytes: long(field('arrayBuffersBytes', 'min')),
  webassemblyBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    read: values => values.residentBytes && (values.residentBytes.webassembly ?? 0)
  }),
  silentWorkerHeapBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    read: (_values, _workers, scan) => scan?.silentHeapBytes
  }),
  workersExternalBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    read: (_values, { count, externalBytes }) => count > 0 ? externalBytes : undefined
  }),
  addonMallocBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    read: (_values, _workers, scan) => scan?.addonMallocBytes
  }),
  heapUsedBytes: field('heapUsedBytes', 'max'),
  liveHeapBytes: long(field('liveHeapBytes')),
  liveHeapMajors: long({
    ...field('liveHeapMajors'),
    observed: true,
    read: values => (values.gcObserverStopped ? undefined : values.liveHeapMajors)
  }),
  heapResidentBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'min',
    read: (values, workers, scan) =>
      values.heapPhysicalBytes === undefined ? undefined : heapResident(values, workers, scan)
  }),
  oldSpaceBytes: long(spaceUsed('old_space')),
  largeObjectSpaceBytes: long(spaceUsed('large_object_space')),
  codeSpaceBytes: long(spaceUsed('code_space')),
  nativeContexts: long(field('nativeContexts', 'min')),
  mallocSpanBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'last',
    read: values =>
      values.mallocHeapBytes === undefined
        ? undefined
        : values.mallocHeapBytes + (values.mallocArenaBytes ?? 0)
  }),
  mallocArenaBytes: field('mallocArenaBytes'),
  allocatorSlackBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    // Absent while malloc's statistics are out of date, because its free part is unknown then.
    read: (values, workers, scan) => {
      const resident = scan && residentNow({ values, workers, scan })
      return resident && !isStale(resident) ? resident.slack : undefined
    }
  }),
  outsideHeapBytes: /** @type {Track} */ ({
    long: true,
    unit: 'bytes',
    keep: 'min',
    read: outsideHeap
  }),
  nativeBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'min',
    read: nativeMemory
  }),
  neighboursBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'min',
    long: true,
    read: (values, workers, scan, { memoryBytes }) => memoryBytes > 0 ? memoryBytes : undefined
  }),
  eventLoopActiveSeconds: field('eventLoopActiveSeconds'),
  eventLoopIdleSeconds: field('eventLoopIdleSeconds'),
  eventLoopEvents: field('eventLoopEvents'),
  longestDelaySeconds: /** @type {Track} */ ({
    unit: 'seconds',
    keep: 'max',
    read: values => values.eventLoopDelay?.[PAUSE_ROW.longestSeconds]
  }),
  delayReadings: /** @type {Track} */ ({
    unit: 'count',
    keep: 'last',
    counter: true,
    read: values => values.eventLoopDelay?.[PAUSE_ROW.count]
  }),
  delaySeconds: /** @type {Track} */ ({
    unit: 'seconds',
    keep: 'last',
    counter: true,
    read: values => values.eventLoopDelay?.[PAUSE_ROW.sumSeconds]
  }),
  threadCpuSeconds: THREAD_CPU,
  threadRunSeconds: field('threadRunSeconds'),
  workSeconds: /** @type {Track} */ ({
    unit: 'seconds',
    keep: 'last',
    counter: true,
    long: true,
    // GC time is no measure of load: a growing heap makes its GCs longer. Pauses also contain the
    // wait for a CPU, which is no CPU time.
    read: (values, ...moment) => {
      const cpu = THREAD_CPU.read(values, ...moment) ?? PROCESS_CPU.read(values, ...moment)
      if (cpu === undefined) return undefined
      const pauses =
        (GC_PAUSES.read(values, ...moment) ?? 0) + (OWN_GC_PAUSES.read(values, ...moment) ?? 0)
      const wanted = cpu + (values.runQueueWaitSeconds ?? 0)
      return cpu - pauses * (wanted > 0 ? cpu / wanted : 1)
    }
  }),
  runQueueWaitSeconds: field('runQueueWaitSeconds'),
  processCpuSeconds: PROCESS_CPU,
  cpuPeriods: field('cpuPeriods'),
  cpuThrottledPeriods: field('cpuThrottledPeriods'),
  containerLimitHits: field('containerLimitHits'),
  containerHighHits: field('containerHighHits'),
  memoryPressureSomeSeconds: field('memoryPressureSomeSeconds'),
  sockets: long(
    resources([
      'TCPSocketWrap',
      'PipeWrap',
      'TLSWrap',
      'UDPWrap',
      'TTYWrap',
      'HTTP2SESSION',
      'QuicSession'
    ])
  ),
  timers: long(resources(['Timeout', 'Immediate'])),
  servers: /** @type {Track} */ ({ ...resources(['TCPServerWrap']), keep: 'max' }),
  connectionsAccepted: long(field('connectionsAccepted')),
  connections: resources(['TCPSocketWrap', 'TLSWrap', 'UDPWrap', 'HTTP2SESSION', 'QuicSession']),
  watchers: long(resources(['FSEvent', 'FSEventWrap', 'StatWatcher'])),
  childProcesses: long(resources(['ProcessWrap', 'Process', 'Worker'])),
  messagePorts: long(resources(['MessagePort'])),
  threads: long(field('threads', 'min')),
  socketDescriptors: descriptors('socket'),
  pipeDescriptors: descriptors('pipe'),
  fileDescriptors: descriptors('file'),
  loopDescriptors: descriptors('eventpoll'),
  openFileDescriptors: long(field('openFileDescriptors', 'min')),
  listenerWarnings: field('listenerWarnings'),
  bufferSlabsFollowed: field('bufferSlabsFollowed'),
  bufferSlabsKept: field('bufferSlabsKept'),
  semiSpaceCapacityBytes: /** @type {Track} */ ({
    unit: 'bytes',
    keep: 'max',
    read: values => semiSpaceCapacity(values.spaces)
  }),
  scavenges: long(gc('count', isScavenge)),
  scavengePauseSeconds: gc('sumSeconds', isScavenge),
  ordinaryMajors: gc('count', key => key === 'major/ordinary'),
  ordinaryMajorPauseSeconds: gc('sumSeconds', isOrdinaryMajor),
  externalMajors: gc('count', isExternalMajor),
  externalMajorPauseSeconds: gc('sumSeconds', isExternalMajor),
  gcPauseSeconds: GC_PAUSES,
  forcedMajors: gc('count', key => key === OWN_MAJORS),
  gcUnobservedSeconds: /** @type {Track} */ ({
    unit: 'seconds',
    keep: 'last',
    counter: true,
    // The unobserved time is stored in the same rows as the GC counts, because it is subtracted
    // from their time spans. Agents that never stopped observing GCs do not report it.
    read: values =>
      values.gc && !values.gcObserverStopped ? (values.gcUnobservedSeconds ?? 0) : undefined
  })
})

/** @typedef {keyof typeof tracks} TrackName */
const trackNames = /** @type {TrackName[]} */ (Object.keys(tracks))

module.exports = { tracks, trackNames, NO_WORKERS, NO_NEIGHBOURS }
