import { partsOfTracks } from '@memwatch/engine/memory/track-parts'

/**
 * Charts of a target from the tracks of engine/history/tracks.js, and the evidence that each chart
 * shows.
 *
 * @typedef {object} Drawn
 * @property {string} label
 * @property {string} colour a custom property of page.css
 * @property {string} [scale] y, or right
 * @property {(row: import('./history.mjs').Row) => number | null} read
 *
 * A style of evidence in a chart. level: a line at the limit; `read` gives the values over time if
 * no track has the name of the signal. slope: the growth in the finding, drawn through the newest
 * points of a track. rise: the level at which the rise of a track reaches its threshold. text:
 * words only.
 * @typedef {{ as: 'level', scale?: string, read?: Drawn['read'] } |
 *   { as: 'slope' | 'rise', track: string } | { as: 'text' }} EvidenceStyle
 *
 * @typedef {object} Chart
 * @property {string} id
 * @property {string} title
 * @property {string} help signs of a problem
 * @property {readonly string[]} parts ids of the part groups that the chart shows
 * @property {string} unit unit of the left scale, as in engine/text/format.js
 * @property {string} [rightUnit]
 * @property {boolean} [stacked] true to stack the series from the bottom up
 * @property {boolean} [gcMarks] true to draw lanes of GCs by kind below the chart
 * @property {readonly string[]} tracks tracks that the chart needs
 * @property {readonly Drawn[]} draws
 * @property {(values: Record<string, any>) => ({ label: string, value: number | undefined, scale?:
 *   string })[]} lines levels that are always drawn, computed from a target's newest values
 * @property {Record<string, EvidenceStyle>} evidence styles of evidence by signal
 */

/** @type {{ as: 'text' }} */
const text = { as: 'text' }
/** @type {{ as: 'level' }} */
const level = { as: 'level' }
/**
 * @param {string} track
 * @returns {{ as: 'rise', track: string }}
 */
const rise = track => ({ as: 'rise', track })
/**
 * @param {string} track
 * @returns {{ as: 'slope', track: string }}
 */
const slope = track => ({ as: 'slope', track })
/** @param {string} track */
const last = track => (/** @type {import('./history.mjs').Row} */ row) => row.last(track)
/** @param {string} track */
const rate = track => (/** @type {import('./history.mjs').Row} */ row) => row.rate(track)

/**
 * Series of a part of RSS, computed from tracks; the exact present parts are in the memory bar.
 * @param {keyof NonNullable<ReturnType<typeof partsOfTracks>>} part
 */
const part = part => (/** @type {import('./history.mjs').Row} */ row) =>
  partsOfTracks(row.last)?.[part] ?? null

/**
 * @param {Drawn['read']} read
 * @returns {{ as: 'level', read: Drawn['read'] }}
 */
const levelOf = read => ({ as: 'level', read })

const semiSpace = (/** @type {import('./history.mjs').Row} */ row) =>
  row.max('semiSpaceCapacityBytes')

/** @param {import('./history.mjs').Row} row */
function utilization (row) {
  const [active, idle] = [row.rate('eventLoopActiveSeconds'), row.rate('eventLoopIdleSeconds')]
  return active === null || idle === null || active + idle === 0 ? null : active / (active + idle)
}

/** @param {import('./history.mjs').Row} row */
function throttled (row) {
  const [periods, throttled] = [row.rate('cpuPeriods'), row.rate('cpuThrottledPeriods')]
  return periods && throttled !== null ? throttled / periods : null
}

/**
 * Groups of parts of RSS with one colour each: parts of engine/memory/parts.js, and the tracks that
 * show their growth. They have the order of the bar, in which the heap comes first, so that the
 * heap limit is a position on the bar.
 * @typedef {object} PartGroup
 * @property {string} id
 * @property {string} title
 * @property {string} colour class of page.css; hatched if two kinds of memory cannot be
 *   distinguished
 * @property {readonly string[]} parts
 * @property {readonly (keyof NonNullable<ReturnType<typeof partsOfTracks>>)[]} tracks
 */

/** @type {readonly PartGroup[]} */
export const partGroups = [
  { id: 'live', title: 'Heap, live', colour: 'blue', parts: ['heap_live'], tracks: ['live'] },
  {
    id: 'garbage',
    title: 'Heap, garbage and free',
    colour: 'light-blue',
    parts: ['heap_garbage', 'heap_slack', 'heap_pooled', 'new_space'],
    tracks: ['garbage']
  },
  {
    id: 'workers',
    title: 'Heaps of workers',
    colour: 'green',
    parts: ['worker_heaps', 'silent_worker_heaps'],
    tracks: []
  },
  {
    id: 'buffers',
    title: 'Buffers',
    colour: 'orange',
    parts: ['external', 'webassembly'],
    tracks: ['buffers']
  },
  {
    id: 'native',
    title: 'Native, in use',
    colour: 'violet',
    parts: ['allocator_in_use', 'addon_malloc', 'stacks'],
    tracks: ['native']
  },
  {
    id: 'retained',
    title: 'malloc, retained',
    colour: 'red',
    parts: ['allocator_retained'],
    tracks: ['retained']
  },
  {
    id: 'unasked',
    title: 'malloc, in use or retained',
    colour: 'hatched',
    parts: ['allocator_unasked'],
    tracks: ['native', 'retained']
  },
  { id: 'files', title: 'Code, files', colour: 'grey', parts: ['files'], tracks: ['files'] },
  {
    id: 'unexplained',
    title: 'Unexplained',
    colour: 'hatched-grey',
    parts: ['unexplained'],
    tracks: []
  }
]

const HEAP_PARTS = ['live', 'garbage', 'workers']
const OUTSIDE_PARTS = ['buffers', 'native', 'retained', 'unasked', 'unexplained']

/** @type {readonly Chart[]} */
export const charts = [
  {
    id: 'memory',
    parts: partGroups.map(({ id }) => id),
    title: 'RSS by part',
    help: 'A problem: the top is near the container limit, or malloc retains a large part.',
    unit: 'bytes',
    stacked: true,
    tracks: [
      'rssBytes',
      'heapResidentBytes',
      'liveHeapBytes',
      'outsideHeapBytes',
      'externalBytes',
      'allocatorSlackBytes'
    ],
    draws: [
      { label: 'Code, files, workers', colour: '--grey', read: part('files') },
      { label: 'Native', colour: '--violet', read: part('native') },
      { label: 'malloc, retained?', colour: '--red', read: part('retained') },
      { label: 'Buffers', colour: '--orange', read: part('buffers') },
      { label: 'Heap, live', colour: '--blue', read: part('live') },
      { label: 'Heap, garbage and free', colour: '--light-blue', read: part('garbage') }
    ],
    lines: ({ containerLimitBytes, heapSizeLimitBytes }) => [
      { label: 'container limit', value: containerLimitBytes },
      { label: 'heap size limit', value: heapSizeLimitBytes }
    ],
    evidence: {
      rssBytes: level,
      rssPeakShareRatio: text,
      rssDayPeakShareRatio: text,
      rssGrowthBytesPerSecond: slope('rssBytes'),
      containerLimitBytes: levelOf(last('rssBytes')),
      containerHeapLimitBytes: text, // The value covers several processes, and the chart only one.
      containerProcesses: text,
      heapResidentBytes: level,
      heapPooledBytes: text,
      containerLimitHitsPerSecond: text,
      containerHighHitsPerSecond: text,
      pointerSpaceShareRatio: text,
      v8AddonsLoaded: text
    }
  },
  {
    id: 'heap',
    parts: HEAP_PARTS,
    title: 'The V8 heap',
    help: 'A problem: the heap after major GCs rises in a straight line, or stays near the limit.',
    unit: 'bytes',
    gcMarks: true,
    tracks: [
      'heapUsedBytes',
      'liveHeapBytes',
      'scavenges',
      'ordinaryMajors',
      'externalMajors',
      'oldSpaceBytes',
      'largeObjectSpaceBytes',
      'codeSpaceBytes'
    ],
    draws: [
      { label: 'used', colour: '--light-blue', read: row => row.max('heapUsedBytes') },
      { label: 'live after major GC', colour: '--blue', read: last('liveHeapBytes') },
      { label: 'old space', colour: '--green', read: last('oldSpaceBytes') },
      { label: 'large object space', colour: '--orange', read: last('largeObjectSpaceBytes') },
      { label: 'code space', colour: '--grey', read: last('codeSpaceBytes') }
    ],
    lines: ({ heapSizeLimitBytes }) => [{ label: 'heap size limit', value: heapSizeLimitBytes }],
    evidence: {
      liveHeapGrowthBytesPerSecond: slope('liveHeapBytes'),
      liveHeapRiseBytes: rise('liveHeapBytes'),
      keptRiseBytes: rise('liveHeapBytes'),
      liveHeapLastingRiseBytes: text,
      liveHeapLastingScore: text,
      liveHeapLastingLateRatio: text,
      liveHeapLastingGrowthBytesPerSecond: text,
      promotedKeptRatio: text,
      keptGrowthFit: text,
      keptLateGrowthRatio: text,
      oldSpaceRiseBytes: text, // The limit refers to the rise of the whole live heap.
      heapSizeLimitBytes: levelOf(last('liveHeapBytes')),
      liveHeapAtMostBytes: levelOf(last('liveHeapBytes')),
      liveHeapHighestBytes: levelOf(last('liveHeapBytes')),
      liveHeapGrowthFit: text,
      liveHeapLateGrowthRatio: text,
      liveHeapPeakShareRatio: text,
      liveHeapShareRatio: text,
      heapLimitSecondsLeft: text,
      codeSpaceRiseBytes: rise('codeSpaceBytes')
    }
  },
  {
    id: 'outside',
    parts: OUTSIDE_PARTS,
    title: 'Outside the heap',
    help: 'A problem: external memory grows while the heap does not, or unused Buffers wait for a ' +
      'late GC.',
    unit: 'bytes',
    tracks: [
      'outsideHeapBytes',
      'externalBytes',
      'arrayBuffersBytes',
      'nativeBytes',
      'allocatorSlackBytes',
      'mallocSpanBytes'
    ],
    draws: [
      { label: 'all that is resident', colour: '--grey', read: last('outsideHeapBytes') },
      { label: 'external', colour: '--orange', read: row => row.max('externalBytes') },
      { label: 'ArrayBuffers', colour: '--green', read: row => row.max('arrayBuffersBytes') },
      { label: 'native', colour: '--violet', read: last('nativeBytes') },
      { label: 'malloc, retained?', colour: '--red', read: last('allocatorSlackBytes') }
    ],
    lines: () => [],
    evidence: {
      outsideHeapGrowthBytesPerSecond: slope('outsideHeapBytes'),
      outsideHeapRiseBytes: rise('outsideHeapBytes'),
      outsideHeapLastingRiseBytes: text,
      outsideHeapLastingScore: text,
      outsideHeapLastingLateRatio: text,
      outsideHeapLastingGrowthBytesPerSecond: text,
      outsideHeapSteadinessRatio: text,
      nativeRiseBytes: rise('nativeBytes'),
      externalRiseBytes: rise('externalBytes'),
      arrayBuffersRiseBytes: rise('arrayBuffersBytes'),
      arrayBuffersGrowthBytesPerSecond: slope('arrayBuffersBytes'),
      webassemblyGrowthBytesPerSecond: text,
      silentWorkerHeapGrowthBytesPerSecond: text,
      workersExternalGrowthBytesPerSecond: text,
      addonMallocGrowthBytesPerSecond: text,
      arrayBuffersFloorBytes: levelOf(last('arrayBuffersBytes')),
      externalWaitingBytes: levelOf(last('externalBytes')),
      allocatorSlackBytes: level,
      allocatorSlackRiseBytes: rise('allocatorSlackBytes'),
      mallocArenaShareRatio: text,
      bufferPoolBytes: level,
      bufferChurnBytes: text,
      bufferSlabsKeptRatio: text,
      bufferSlicesFillRatio: text
    }
  },
  {
    id: 'gc',
    parts: [...HEAP_PARTS, 'buffers'],
    title: 'Time in GC pauses, by kind and cause',
    help: 'A problem: a tenth of the time or more. Many scavenges and ordinary major GCs: the new ' +
      'space is too small. Cause external: Buffers.',
    unit: 'ratio',
    stacked: true,
    tracks: [
      'scavengePauseSeconds',
      'ordinaryMajorPauseSeconds',
      'externalMajorPauseSeconds',
      'gcPauseSeconds'
    ],
    draws: [
      { label: 'scavenges', colour: '--green', read: rate('scavengePauseSeconds') },
      { label: 'major, ordinary', colour: '--blue', read: rate('ordinaryMajorPauseSeconds') },
      {
        label: 'major, for Buffers',
        colour: '--orange',
        read: rate('externalMajorPauseSeconds')
      },
      {
        label: 'other',
        colour: '--grey',
        read: row => {
          const all = row.rate('gcPauseSeconds')
          return all === null
            ? null
            : Math.max(
              0,
              all -
                  (row.rate('scavengePauseSeconds') ?? 0) -
                  (row.rate('ordinaryMajorPauseSeconds') ?? 0) -
                  (row.rate('externalMajorPauseSeconds') ?? 0)
            )
        }
      }
    ],
    lines: () => [],
    evidence: {
      gcPauseRatio: levelOf(rate('gcPauseSeconds')),
      recentGcPauseRatio: levelOf(rate('gcPauseSeconds')),
      ordinaryMarkingRatio: text,
      ordinaryGcOfCpuRatio: text,
      externalMarkingRatio: text,
      ordinaryMajorPauseRatio: levelOf(rate('ordinaryMajorPauseSeconds')),
      externalMajorPauseRatio: levelOf(rate('externalMajorPauseSeconds')),
      gcsLastMinute: text,
      restFreedBytes: text,
      forcedFreedBytes: text,
      forcedFreedBytesPerSecond: text,
      ownMajorsPerForcedRatio: text,
      majorsSeen: text,
      workersMajorsSeen: text,
      ordinaryMajorsSeen: text,
      oldSpaceSwingBytes: text
    }
  },
  {
    id: 'young',
    parts: [...HEAP_PARTS, 'buffers'],
    title: 'GCs a second, and the semi-space',
    help: 'A problem: dozens of scavenges a second while the semi-space has its maximum size.',
    unit: 'perSecond',
    rightUnit: 'bytes',
    tracks: ['scavenges', 'ordinaryMajors', 'externalMajors', 'semiSpaceCapacityBytes'],
    draws: [
      { label: 'scavenges', colour: '--green', read: rate('scavenges') },
      { label: 'major, ordinary', colour: '--blue', read: rate('ordinaryMajors') },
      { label: 'major, for Buffers', colour: '--orange', read: rate('externalMajors') },
      {
        label: 'semi-space',
        colour: '--violet',
        scale: 'right',
        read: semiSpace
      }
    ],
    lines: () => [],
    evidence: {
      scavengesPerSecond: levelOf(rate('scavenges')),
      ordinaryMajorsPerSecond: levelOf(rate('ordinaryMajors')),
      recentMajorsPerSecond: level,
      externalMajorsPerSecond: levelOf(rate('externalMajors')),
      semiSpaceCapacityBytes: { as: 'level', scale: 'right', read: semiSpace },
      semiSpaceMaxBytes: { as: 'level', scale: 'right', read: semiSpace }
    }
  },
  {
    id: 'loop',
    parts: [],
    title: 'Event loop and CPU',
    help: 'A problem: the event loop is busy all the time, or the container is throttled.',
    unit: 'ratio',
    tracks: [
      'eventLoopActiveSeconds',
      'eventLoopIdleSeconds',
      'threadCpuSeconds',
      'processCpuSeconds',
      'cpuPeriods',
      'cpuThrottledPeriods',
      'runQueueWaitSeconds',
      'memoryPressureSomeSeconds'
    ],
    draws: [
      {
        label: 'event loop',
        colour: '--blue',
        read: utilization
      },
      { label: 'CPU of the thread', colour: '--green', read: rate('threadCpuSeconds') },
      { label: 'CPU of the process', colour: '--light-blue', read: rate('processCpuSeconds') },
      {
        label: 'periods throttled',
        colour: '--red',
        read: throttled
      },
      { label: 'waits for a CPU', colour: '--violet', read: rate('runQueueWaitSeconds') },
      { label: 'waits for memory', colour: '--orange', read: rate('memoryPressureSomeSeconds') }
    ],
    lines: () => [],
    evidence: {
      eventLoopUtilizationRatio: levelOf(utilization),
      threadCpuRatio: levelOf(rate('threadCpuSeconds')),
      cpuTimeRatio: level,
      cpuThrottledRatio: levelOf(throttled),
      settledThrottledRatio: levelOf(throttled),
      runQueueWaitRatio: levelOf(rate('runQueueWaitSeconds')),
      cpuPerEventSeconds: text,
      cpuQuotaCores: text,
      memoryPressureRatio: levelOf(rate('memoryPressureSomeSeconds')),
      connectionsKeptRatio: text,
      loadGrowthRatio: text
    }
  },
  {
    id: 'delay',
    parts: [],
    title: 'Longest delay of the event loop',
    help: 'A problem: a tenth of a second or more, repeatedly. Requests wait for that time.',
    unit: 'seconds',
    tracks: ['longestDelaySeconds'],
    draws: [
      { label: 'longest delay', colour: '--blue', read: row => row.max('longestDelaySeconds') }
    ],
    lines: () => [],
    evidence: {
      expectedWaitSeconds: level,
      blockedFramesRatio: text,
      longBlocksSeen: text,
      longBlocksSpanSeconds: text,
      longBlocksWaitSeconds: text,
      longestBlockSeconds: text,
      serversListening: text,
      fewestTimers: text,
      fewestConnections: text
    }
  },
  {
    id: 'resources',
    parts: ['native', 'unasked', 'files', 'buffers'],
    title: 'What is open',
    help: 'A problem: the number rises and never falls.',
    unit: 'count',
    tracks: [
      'sockets',
      'timers',
      'watchers',
      'childProcesses',
      'messagePorts',
      'threads',
      'openFileDescriptors',
      'nativeContexts',
      'listenerWarnings'
    ],
    draws: [
      { label: 'sockets', colour: '--blue', read: last('sockets') },
      { label: 'timers', colour: '--green', read: last('timers') },
      { label: 'file watchers', colour: '--orange', read: last('watchers') },
      { label: 'processes, workers', colour: '--violet', read: last('childProcesses') },
      { label: 'threads', colour: '--light-blue', read: last('threads') },
      { label: 'file descriptors', colour: '--grey', read: last('openFileDescriptors') },
      { label: 'contexts', colour: '--red', read: last('nativeContexts') }
    ],
    lines: () => [],
    evidence: {
      nativeContextsPerSecond: slope('nativeContexts'),
      nativeContextsRise: rise('nativeContexts'),
      nativeContextsSteadinessRatio: text,
      socketsPerSecond: slope('sockets'),
      timersPerSecond: slope('timers'),
      watchersPerSecond: slope('watchers'),
      childrenPerSecond: slope('childProcesses'),
      messagePortsPerSecond: slope('messagePorts'),
      fileDescriptorsPerSecond: slope('openFileDescriptors'),
      threadsPerSecond: slope('threads'),
      socketsRise: rise('sockets'),
      threadsRise: rise('threads'),
      timersRise: rise('timers'),
      watchersRise: rise('watchers'),
      childrenRise: rise('childProcesses'),
      messagePortsRise: rise('messagePorts'),
      fileDescriptorsRise: rise('openFileDescriptors'),
      socketsSteadinessRatio: text,
      timersSteadinessRatio: text,
      watchersSteadinessRatio: text,
      childrenSteadinessRatio: text,
      messagePortsSteadinessRatio: text,
      fileDescriptorsSteadinessRatio: text,
      threadsSteadinessRatio: text,
      socketDescriptorsOpen: text,
      pipeDescriptorsOpen: text,
      fileDescriptorsOfFiles: text,
      loopDescriptorsRise: text,
      listenerWarnings: text
    }
  }
]

/** All tracks that any chart draws. */
export const drawnTracks = [...new Set(charts.flatMap(({ tracks }) => tracks))]
