'use strict'

// RSS breakdown from the numbers in every frame. A scan of the memory map is more exact, but exists
// only every ten to sixty seconds, or never. A history that switched between both sources would
// show steps without any growth. See docs/decisions/0007-resident-heap-lies-between.md.

const { NATIVE_BASE_BYTES } = require('./parts')

/** @typedef {import('@memwatch/agent/protocol/frame').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */

/**
 * Resident bytes of this isolate's heap. V8's total_physical_size leaves out pages that a
 * semi-space used before its last scavenge. Its total_heap_size counts pages that were returned or
 * never touched. For a new space of 128 MiB the two values were 19 and 139 MiB. On Node 24 all of
 * the new space was resident, on Node 20 almost nothing. The result is the resident memory that is
 * neither external nor Node's own, clamped to these two bounds.
 * @param {Values} values
 * @param {Workers} workers
 * @returns {number} bytes
 */
function heapResident (
  { heapPhysicalBytes = 0, heapTotalBytes, rssAnonBytes, externalBytes = 0 },
  workers
) {
  if (heapTotalBytes === undefined || rssAnonBytes === undefined) return heapPhysicalBytes
  const left =
    rssAnonBytes - workers.heapBytes - workers.externalBytes - externalBytes - NATIVE_BASE_BYTES
  return Math.max(heapPhysicalBytes, Math.min(heapTotalBytes, left))
}

/**
 * Anonymous memory outside all V8 heaps; Buffers are part of it.
 * @param {Values} values
 * @param {Workers} workers
 * @returns {number | undefined} bytes
 */
const outsideHeap = (values, workers) =>
  values.rssAnonBytes === undefined
    ? undefined
    : Math.max(0, values.rssAnonBytes - workers.heapBytes - heapResident(values, workers))

/**
 * Anonymous memory outside V8 heaps and Buffers. A Buffer that was never written to counts as
 * external but is not resident, so a negative difference becomes 0.
 * @param {Values} values
 * @param {Workers} workers
 * @returns {number | undefined} bytes
 */
function nativeMemory (values, workers) {
  const { rssAnonBytes, externalBytes } = values
  if (rssAnonBytes === undefined || externalBytes === undefined) return undefined
  const heaps = workers.heapBytes + heapResident(values, workers)
  return Math.max(0, rssAnonBytes - heaps - workers.externalBytes - externalBytes)
}

module.exports = { heapResident, outsideHeap, nativeMemory }
