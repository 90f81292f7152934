'use strict'

const path = require('node:path')
const { oldUsedBytes, semiSpaceCapacity } = require('@memwatch/engine/v8/heap-spaces')
const { defineSource, SourceError } = require('./define-source')
const { GcCounters } = require('./gc-counters')
const { NewSpace } = require('./new-space')
const { heapBounds, V8 } = require('./heap-bounds')
const { readJson, count, present } = require('./read-json')

/** @type {Record<string, 'minor' | 'minor_mark_sweep' | 'major' | 'incremental'>} */
const KINDS = {
  Scavenge: 'minor',
  MinorMarkSweep: 'minor_mark_sweep',
  MinorMarkCompact: 'minor_mark_sweep',
  MarkSweepCompact: 'major',
  IncrementalMarking: 'incremental'
}

/** Longest profile. V8 stores kilobytes for each GC, so nobody records a profile for days. */
const MOST_SECONDS = 2 * 86_400

const gcProfiler = defineSource({
  id: 'gc-profiler',
  title: 'a GC profile',
  accepted: 'the JSON of v8.GCProfiler, as memwatch capture TARGET gc_trace writes it',
  fields: [
    'gc',
    'liveHeapBytes',
    'liveHeapMajors',
    'heapUsedBytes',
    'heapTotalBytes',
    'heapPhysicalBytes',
    'heapSizeLimitBytes',
    'externalBytes',
    'mallocedBytes',
    'peakMallocedBytes',
    'globalHandlesBytes',
    'spaces'
  ],
  lacks:
    'RSS, handles, the event loop, and the cause and time of each GC; memwatch spreads the GCs ' +
      'evenly between start and end',
  unsure: { '*': 'a GC profile contains neither times nor causes of GCs' },
  bounds: () => undefined,
  accepts: head =>
    /^\s*\{/.test(head) &&
    /"statistics"\s*:\s*\[/.test(head) &&
    (head.includes('"gcType"') || /"statistics"\s*:\s*\[\s*\]/.test(head)),

  async read (inputs, lives, given) {
    for (const input of inputs) {
      const profile = await readJson(input, gcProfiler.title)
      const { startTime, endTime, statistics } = profile
      const seconds = (count(endTime) ?? NaN) / 1000 - (count(startTime) ?? NaN) / 1000
      if (!Array.isArray(statistics) || !(seconds >= 0 && seconds <= MOST_SECONDS)) {
        throw new SourceError(`${input.name}: expected a GC profile with startTime, endTime and statistics; one is missing`)
      }
      if (statistics.length === 0) lives.notes.add(`${input.name} contains no GC`)
      judgeProfile(input.name, profile, lives, given)
    }
  }
})

/**
 * @param {string} file
 * @param {{ startTime: number, endTime: number, statistics: any[] }} profile startTime, endTime:
 *   Unix ms
 * @param {import('./lives').Lives} lives
 * @param {import('./define-source').Given} given
 */
function judgeProfile (file, { startTime, endTime, statistics }, lives, given) {
  const seconds = (endTime - startTime) / 1000
  const gc = new GcCounters()
  const newSpace = new NewSpace()
  let majors = 0
  const v8 = V8[parseInt(given.nodeVersion ?? '')]
  const life = lives.open({
    name: file === '-' ? 'stdin' : path.basename(file).replace(/(\.gctrace)?\.json(\.gz)?$/, ''),
    host: file,
    startedAtUnixMs: startTime,
    node: given.nodeVersion ?? 'unknown',
    ...(v8 && { v8: v8.join('.') }),
    ...(given.containerLimitBytes !== undefined && { constrainedBytes: given.containerLimitBytes })
  }, () => semiSpaceBounds(newSpace, given))

  /** @type {import('@memwatch/agent/protocol/frame').Values} */
  let values = {}
  let taken = 0
  const frames = Math.max(1, Math.ceil(seconds))
  for (let frame = 0; frame <= frames; frame++) {
    const atSeconds = Math.min(seconds, frame)
    for (
      ;
      taken < statistics.length && ((taken + 1) / (statistics.length + 1)) * seconds <= atSeconds;
      taken++
    ) { take(statistics[taken]) }
    life?.frame(atSeconds, { ...values, gc: gc.rows })
  }

  /** @param {any} item record of one GC */
  function take (item) {
    const kind = KINDS[item?.gcType]
    const after = spacesOf(item?.afterGC)
    const before = spacesOf(item?.beforeGC)
    if (!kind || !after || !before) return
    gc.add(kind, 'ordinary', (count(item.cost) ?? 0) / 1e6)
    const heap = item.afterGC.heapStatistics
    values = present({
      ...values,
      heapUsedBytes: count(heap.usedHeapSize),
      heapTotalBytes: count(heap.totalHeapSize),
      heapPhysicalBytes: count(heap.totalPhysicalSize),
      heapSizeLimitBytes: count(heap.heapSizeLimit),
      externalBytes: count(heap.externalMemory),
      mallocedBytes: count(heap.mallocedMemory),
      peakMallocedBytes: count(heap.peakMallocedMemory),
      globalHandlesBytes: count(heap.usedGlobalHandlesSize),
      spaces: after,
      ...(kind === 'major' && { liveHeapBytes: oldUsedBytes(after), liveHeapMajors: ++majors })
    })
    newSpace.take({
      kind,
      filled: true,
      usedBeforeBytes: oldUsedBytes(before),
      usedAfterBytes: oldUsedBytes(after),
      capacityBytes: semiSpaceCapacity(after) ?? 0
    })
  }
}

/**
 * The source contains the heap size limit, but not the maximum semi-space.
 * @param {NewSpace} newSpace
 * @param {import('./define-source').Given} given
 */
function semiSpaceBounds ({ capacityBytes, maxBytes }, given) {
  const bounds = heapBounds(
    {
      heldBytes: 0,
      semiSpaceCapacityBytes: capacityBytes,
      semiSpaceMaxBytes: maxBytes,
      worker: false
    },
    given
  )
  return bounds && { least: { ...bounds.least, values: {} }, most: { ...bounds.most, values: {} } }
}

/**
 * @param {any} side beforeGC or afterGC
 * @returns {import('@memwatch/agent/protocol/frame').Values['spaces']}
 */
function spacesOf (side) {
  if (!side?.heapStatistics || !Array.isArray(side.heapSpaceStatistics)) return undefined
  return Object.fromEntries(side.heapSpaceStatistics.map((/** @type {any} */ space) => [String(space?.spaceName), ['spaceUsedSize', 'spaceSize', 'spaceAvailableSize', 'physicalSpaceSize'].map(key => count(space?.[key]) ?? 0)]))
}

module.exports = { gcProfiler }
