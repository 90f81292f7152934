'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')
const { canTellRetained } = require('./retained')
const { oldUsedBytes } = require('../v8/heap-spaces')

/** Least retained memory that is worth a line of text, as a share of RSS. */
const WORTH_ASKING = 0.02
/** Parts that only a scan shows, with their values before the first scan. */
const NOTHING_SEEN = Object.freeze({
  silentHeaps: 0,
  pooled: 0,
  addonMalloc: 0,
  stacks: 0,
  webassembly: 0,
  native: 0,
  slack: 0,
  since: 0
})

/** @typedef {import('../history/tracks').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */
/** @typedef {import('./scan').Scan} Scan */
/** @typedef {import('./parts').PartName} PartName */

/**
 * RSS breakdown of a process.
 * @typedef {object} Anatomy
 * @property {number} rssBytes
 * @property {Record<PartName, number>} parts in bytes; their sum is rssBytes
 * @property {[least: number, most: number]} retainedBytes lower and upper bound of memory retained
 *   by malloc; both are allocator_retained if malloc was queried
 * @property {string | null} unknown information that is missing on this system, and the reason;
 *   null if nothing is missing
 */

/**
 * Breaks RSS down into parts. Parts are assigned in turn, the most reliable first. Each part gets
 * at most the bytes that are left, so the sum is RSS for any input. RSS and the V8 heap are
 * current. malloc's parts date from the last scan, seconds or minutes ago. All later changes count
 * as malloc's memory, or as memory of an addon's malloc if that malloc has more. Before the first
 * scan malloc's memory counts as unexplained.
 *
 * @param {object} of
 * @param {Values} of.values newest values
 * @param {Workers} of.workers
 * @param {Scan} [of.scan] newest scan
 * @returns {Resident | null} null without RSS
 *
 * @typedef {Record<'rss' | 'files' | 'heap' | 'workerHeaps' | 'silentHeaps' | 'pooled' |
 *   'addonMalloc' | 'stacks' | 'webassembly' | 'external' | 'native' | 'slack' | 'since' |
 *   'unexplained', number>} Resident
 *   bytes, see Scan
 */
function residentNow ({ values, workers, scan }) {
  const { rssBytes: rss, externalBytes = 0 } = values
  if (rss === undefined) return null
  let left = rss
  /** @param {number} bytes */
  const take = bytes => {
    const taken = Math.max(0, Math.min(bytes, left))
    left -= taken
    return taken
  }
  const files = take(rss - (values.rssAnonBytes ?? rss))
  const heap = take(heapNow(values, scan))
  const workerHeaps = take(workers.heapBytes)
  if (scan === undefined) {
    const external = take(externalBytes + workers.externalBytes)
    return { ...NOTHING_SEEN, rss, files, heap, workerHeaps, external, unexplained: left }
  }
  const stacks = take(scan.stacksBytes)
  const webassembly = take(scan.webassemblyBytes)
  const silentHeaps = take(scan.silentHeapBytes)
  const pooled = take(pooledNow(scan, heap))
  const addonMallocThen = take(scan.addonMallocBytes)
  const unexplained = take(scan.unexplainedBytes)
  const native = take(scan.nativeBytes)
  const buffersBytes = externalBytes - scan.externalCountedBytes
  const external = take(scan.externalBytes + scan.addonExternalBytes + buffersBytes)
  // Buffers are allocated from malloc's free memory, and return to it.
  const isAddons = scan.addonMallocBytes > scan.mallocBytes
  const slack = take(scan.asked || isAddons ? scan.slackBytes - buffersBytes : left)
  const addonMalloc = addonMallocThen + (isAddons ? take(left) : 0)
  return {
    rss,
    files,
    heap,
    workerHeaps,
    silentHeaps,
    pooled,
    addonMalloc,
    stacks,
    webassembly,
    external,
    native,
    slack,
    since: left,
    unexplained
  }
}

/** Growth of malloc's memory, as a share of it, after which its last statistics are out of date. */
const STALE_SHARE = 0.1

/**
 * Tells if malloc obtained so much memory since its last statistics that its free part is unknown.
 * @param {NonNullable<ReturnType<typeof residentNow>>} resident
 */
const isStale = ({ native, external, slack, since }) =>
  since > STALE_SHARE * (native + external + slack + since)

/**
 * @param {object} of values, workers and scan as in residentNow
 * @param {Values} of.values
 * @param {Workers} of.workers
 * @param {Scan | undefined} of.scan
 * @param {import('@memwatch/agent/protocol/frame').Hello['allocator']} of.allocator
 * @returns {Anatomy | null} null without RSS
 */
function anatomyOf ({ values, workers, scan, allocator }) {
  const resident = residentNow({ values, workers, scan })
  if (!resident) return null
  const { rss, heap, external, webassembly, native, slack, since, stacks, files } = resident
  const asked = scan?.asked === true
  const parts = heapParts(values, heap)
  return {
    rssBytes: rss,
    parts: {
      // Every scrape needs this object. With `...parts` it takes five times as long.
      heap_live: parts.heap_live,
      heap_garbage: parts.heap_garbage,
      heap_slack: parts.heap_slack,
      new_space: parts.new_space,
      worker_heaps: resident.workerHeaps,
      silent_worker_heaps: resident.silentHeaps,
      heap_pooled: resident.pooled,
      external,
      webassembly,
      allocator_in_use: asked ? native : 0,
      allocator_retained: asked ? slack : 0,
      allocator_unasked: asked ? since : native + slack,
      addon_malloc: resident.addonMalloc,
      stacks,
      files,
      unexplained: resident.unexplained
    },
    retainedBytes: scan ? [asked ? slack : 0, slack + since] : [0, resident.unexplained],
    unknown: unknownOf(scan, slack / rss, allocator)
  }
}

/**
 * @param {Scan | undefined} scan
 * @param {number} slackRatio slack as a share of RSS
 * @param {import('@memwatch/agent/protocol/frame').Hello['allocator']} allocator
 * @returns {string | null} missing information and the reason; null if nothing is missing
 */
function unknownOf (scan, slackRatio, allocator) {
  if (!scan) {
    return 'the parts of the memory outside the heap: /proc/self/maps and pagemap were not read ' +
      'yet, or are not readable'
  }
  if (scan.asked || slackRatio < WORTH_ASKING) return null
  if (!canTellRetained(allocator)) {
    const owner = allocator === 'musl' ? "musl's" : 'this'
    return `the free part of malloc's memory: ${owner} malloc has no statistics of it`
  }
  return "the free part of malloc's memory: malloc's statistics were not read " +
    '(MEMWATCH_ALLOCATOR_ACCESS=read lets the agent read them)'
}

/**
 * Resident bytes of the V8 heap: its bytes in the last scan, plus the growth that V8 reported
 * since.
 * @param {Values} values
 * @param {Scan | undefined} scan
 */
function heapNow ({ heapPhysicalBytes = 0, heapTotalBytes = heapPhysicalBytes }, scan) {
  if (scan === undefined) return heapPhysicalBytes
  return Math.max(
    heapPhysicalBytes,
    Math.min(heapTotalBytes, scan.heapBytes + heapTotalBytes - scan.heapTotalBytes)
  )
}

/**
 * Bytes of pages in V8's pool now. A growing heap takes pages from the pool, and a shrinking one
 * fills it.
 * @param {Scan} scan
 * @param {number} heap resident now
 */
const pooledNow = (scan, heap) =>
  scan.pooledBytes > 0 ? Math.max(0, scan.pooledBytes + scan.heapBytes - heap) : 0

/**
 * Splits the heap by use. Pages of a semi-space that were touched before its last scavenge are
 * missing from V8's total_physical_size.
 * @param {Values} values
 * @param {number} heap resident bytes
 */
function heapParts ({ spaces = {}, liveHeapBytes, heapPhysicalBytes = 0 }, heap) {
  let newPhysical = 0
  let newTotal = 0
  for (const name in spaces) {
    if (!name.startsWith('new_')) continue
    newPhysical += spaces[name][SPACE_ROW.physicalBytes]
    newTotal += spaces[name][SPACE_ROW.sizeBytes]
  }
  const newSpace = Math.min(heap, newTotal, newPhysical + Math.max(0, heap - heapPhysicalBytes))
  const old = heap - newSpace
  const used = Math.min(oldUsedBytes(spaces), old)
  const live = Math.min(liveHeapBytes ?? used, used)
  return { heap_live: live, heap_garbage: used - live, heap_slack: old - used, new_space: newSpace }
}

module.exports = { anatomyOf, isStale, residentNow }
