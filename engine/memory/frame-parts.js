'use strict'

// RSS breakdown of every frame. A scan of the memory map shows the exact parts, but only every five
// seconds, or more rarely. Each frame between two scans adds what has changed since the last one.
// See docs/decisions/0099-memory-follows-the-last-scan.md.

const { NATIVE_BASE_BYTES } = require('./parts')

/** @typedef {import('@memwatch/agent/protocol/frame').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */
/** @typedef {import('./scan').Scan} Scan */

/**
 * Anonymous memory that V8 does not count as resident in its heaps: an upper bound of the memory
 * outside the heaps.
 * @param {Values} values
 * @param {Workers} workers
 */
const uncountedBytes = ({ rssAnonBytes = 0, heapPhysicalBytes = 0 }, workers) =>
  Math.max(0, rssAnonBytes - workers.heapBytes - heapPhysicalBytes)

/**
 * Memory outside the heaps before the first scan, or without scans. V8's total_physical_size leaves
 * out pages that a semi-space used before its last scavenge. Its total_heap_size counts pages that
 * were returned or never touched. For a new space of 128 MiB the two values were 19 and 139 MiB. On
 * Node 24 all of the new space was resident, on Node 20 almost nothing. So the heap is the resident
 * memory that is neither external nor Node's own, clamped to these two values.
 * @param {Values} values with rssAnonBytes
 * @param {Workers} workers
 * @returns {number} bytes
 */
function estimateOutside (values, workers) {
  const { heapPhysicalBytes = 0, heapTotalBytes = heapPhysicalBytes, externalBytes = 0 } = values
  const uncounted = uncountedBytes(values, workers)
  const own = workers.externalBytes + externalBytes + NATIVE_BASE_BYTES
  const least = uncounted - Math.max(0, heapTotalBytes - heapPhysicalBytes)
  return Math.max(0, least, Math.min(uncounted, own))
}

/**
 * Memory outside the heaps now, from the last scan. It grows with the memory that V8 does not
 * count, as far as all memory grew. V8 stops counting pages that it still holds, and takes them
 * again: these do not change all memory. It shrinks with freed Buffers, and with heaps of workers
 * that began to report.
 * @param {Values} values with rssAnonBytes
 * @param {Workers} workers
 * @param {Scan} scan
 * @returns {number} bytes
 */
function followOutside (values, workers, scan) {
  const { rssAnonBytes = 0, externalBytes = 0 } = values
  const uncounted = uncountedBytes(values, workers)
  const change = uncounted - scan.uncountedBytes
  const grown = Math.min(change, rssAnonBytes - scan.anonBytes)
  const reporting = Math.min(scan.silentHeapBytes, workers.heapBytes - scan.workerHeapsBytes)
  const claimed = scan.externalCountedBytes - externalBytes + Math.max(0, reporting)
  const shrunk = Math.min(-change, claimed)
  return Math.min(uncounted, scan.outsideBytes + Math.max(0, grown) - Math.max(0, shrunk))
}

/**
 * Anonymous memory outside all V8 heaps; Buffers are part of it.
 * @param {Values} values
 * @param {Workers} workers
 * @param {Scan} [scan] newest scan
 * @returns {number | undefined} bytes
 */
function outsideHeap (values, workers, scan) {
  if (values.rssAnonBytes === undefined) return undefined
  return scan ? followOutside(values, workers, scan) : estimateOutside(values, workers)
}

/**
 * Resident bytes of this isolate's heap, with the empty pages that V8 keeps for it.
 * @param {Values} values
 * @param {Workers} workers
 * @param {Scan} [scan] newest scan
 * @returns {number} bytes
 */
function heapResident (values, workers, scan) {
  const outside = outsideHeap(values, workers, scan)
  const { rssAnonBytes = 0, heapPhysicalBytes = 0 } = values
  return outside === undefined
    ? heapPhysicalBytes
    : Math.max(heapPhysicalBytes, rssAnonBytes - workers.heapBytes - outside)
}

/**
 * Anonymous memory outside V8 heaps and Buffers. A Buffer that was never written to counts as
 * external but is not resident, so a negative difference becomes 0.
 * @param {Values} values
 * @param {Workers} workers
 * @param {Scan} [scan] newest scan
 * @returns {number | undefined} bytes
 */
function nativeMemory (values, workers, scan) {
  const outside = outsideHeap(values, workers, scan)
  const { externalBytes } = values
  if (outside === undefined || externalBytes === undefined) return undefined
  return Math.max(0, outside - workers.externalBytes - externalBytes)
}

module.exports = { heapResident, outsideHeap, nativeMemory, uncountedBytes }
