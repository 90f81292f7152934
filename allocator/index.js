'use strict'

/**
 * Asks the malloc of this process what it holds, tells it to give back what it does not need, and
 * counts GCs in V8's own callbacks. The binaries are built from the C files by build.sh, and are
 * part of the package: nothing is downloaded or compiled when it is installed.
 *
 * @typedef {object} Books what the allocator says of itself, in bytes; which of them depends on the
 *   allocator
 * @property {'glibc' | 'jemalloc' | 'tcmalloc' | 'mimalloc' | 'unknown'} allocator unknown: it has
 *   no call for it, as musl's
 * @property {string} [mallocInfo] glibc: the XML of malloc_info(3)
 * @property {number} [allocatedBytes] jemalloc stats.allocated, tcmalloc
 *   generic.current_allocated_bytes, mimalloc used blocks
 * @property {number} [activeBytes] jemalloc stats.active, mimalloc committed areas – of the calling
 *   thread's heap only
 * @property {number} [residentBytes] jemalloc stats.resident, tcmalloc heap_size less
 *   pageheap_unmapped_bytes
 * @property {number} [metadataBytes] jemalloc stats.metadata
 * @property {number} [freePagesBytes] tcmalloc pageheap_free_bytes
 *
 * Counts the GCs of the isolate that made it, until that ends.
 * @typedef {object} GcHooks
 * @property {number} takenLength of the array that `take` fills
 * @property {(out: Float64Array) => void} take moves what was counted since the last call into it:
 *   rows used, all major GCs so far, the live heap in bytes and the major GCs up to its reading (0
 *   before the first), then for each row V8's kind and flags, count, sum and longest of its pauses
 *   in seconds, and counts by the buckets of GC_PAUSE_BOUNDS_SECONDS of the agent's protocol
 * @property {(spaces: number) => number | undefined} readLiveHeap from now on the live heap is read
 *   at the end of each major GC: the used bytes of these spaces, bits by their place in
 *   v8.getHeapSpaceStatistics(). Returns those of now; undefined after `stop`
 * @property {() => void} stop for good
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
 * trim: false where the allocator has no such call; it blocks the process meanwhile. countGcs:
 * begins to; undefined where V8's functions are not found. sourceSha256: of the C files, see
 * build.sh.
 * @type {{ books: () => Books, trim: () => boolean, countGcs: () => GcHooks | undefined,
 *   sourceSha256: string }}
 */
module.exports = require(`./prebuilt/${built}.node`)
