'use strict'

/**
 * Statistics and trimming of this process's malloc, and counts of GCs in V8's own callbacks.
 * build.sh builds the binaries from the C files. They are part of the package: an installation
 * downloads and compiles nothing.
 *
 * @typedef {object} AllocatorStatistics statistics in bytes; the fields depend on the allocator
 * @property {'glibc' | 'jemalloc' | 'tcmalloc' | 'mimalloc' | 'unknown'} allocator unknown: the
 *   allocator has no statistics, like musl's
 * @property {string} [mallocInfo] glibc: the XML of malloc_info(3)
 * @property {number} [allocatedBytes] jemalloc stats.allocated, tcmalloc
 *   generic.current_allocated_bytes, mimalloc used blocks
 * @property {number} [activeBytes] jemalloc stats.active, mimalloc committed areas – of the calling
 *   thread's heap only
 * @property {number} [residentBytes] jemalloc stats.resident, tcmalloc heap_size minus
 *   pageheap_unmapped_bytes
 * @property {number} [metadataBytes] jemalloc stats.metadata
 * @property {number} [freePagesBytes] tcmalloc pageheap_free_bytes
 *
 * Counts the GCs of the isolate that created it, until the isolate ends.
 * @typedef {object} GcHooks
 * @property {number} takenLength length of the array for `take`
 * @property {(out: Float64Array) => void} take moves the counts since the last call into the array.
 *   First come the number of rows used, all major GCs so far, the live heap in bytes, and the major
 *   GCs up to its reading (0 before the first). Then each row has V8's kind and flags, the count,
 *   sum and longest pause in seconds, and the counts by the buckets of GC_PAUSE_BOUNDS_SECONDS of
 *   the agent's protocol
 * @property {(spaces: number) => number | undefined} readLiveHeap starts readings of the live heap
 *   at the end of each major GC: the used bytes of these spaces, bits by their place in
 *   v8.getHeapSpaceStatistics(). Returns the current bytes; undefined after `stop`
 * @property {() => void} stop stops counting permanently
 */

/** @returns {'linux-x64' | 'linux-arm64' | undefined} */
function platform () {
  const name = `${process.platform}-${process.arch}`
  return name === 'linux-x64' || name === 'linux-arm64' ? name : undefined
}

const built = platform()
if (!built) {
  throw Object.assign(
    new Error(`@memwatch/allocator: no binary for ${process.platform}-${process.arch}`),
    { code: 'MEMWATCH_NO_BINARY' }
  )
}

/**
 * trim: blocks the process; returns false if the allocator has no such call. countGcs: starts
 * counting; returns undefined if V8's functions were not found. sourceSha256: hash of the C files,
 * see build.sh.
 * @type {{ readStatistics: () => AllocatorStatistics, trim: () => boolean, countGcs: () => GcHooks | undefined,
 *   sourceSha256: string }}
 */
module.exports = require(`./prebuilt/${built}.node`)
