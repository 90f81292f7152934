'use strict'

// RSS by the numbers that each frame has. A scan of the memory map is more exact, and comes every
// ten to sixty seconds, or never: a history that changed its source with it would show steps where
// nothing grew. docs/decisions/0007-resident-heap-lies-between.md

const { NATIVE_BASE_BYTES } = require('./parts')

/** @typedef {import('@memwatch/agent/protocol/frame').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */

/**
 * What the heap of this isolate really holds of RSS. V8's total_physical_size leaves out what a
 * semi-space held before its last scavenge, its total_heap_size counts pages that were given back
 * or never touched: with a new space of 128 MiB they were measured to say 19 and 139 MiB of the
 * same heap, of which Node 24 held all and Node 20 next to nothing. What is resident and neither
 * external nor Node's own decides.
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
 * Anonymous memory outside all heaps, Buffers and all.
 * @param {Values} values
 * @param {Workers} workers
 * @returns {number | undefined} bytes
 */
const outsideHeap = (values, workers) =>
  values.rssAnonBytes === undefined
    ? undefined
    : Math.max(0, values.rssAnonBytes - workers.heapBytes - heapResident(values, workers))

/**
 * Anonymous memory that neither a V8 heap nor a Buffer accounts for. A Buffer that was never
 * written to counts as external but not as resident, so the difference can fall below zero.
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
