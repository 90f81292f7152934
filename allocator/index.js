'use strict'

/**
 * Asks the malloc of this process what it holds, and tells it to give back what it does not need.
 * The binaries are built from allocator.c by build.sh, and are part of the package: nothing is
 * downloaded or compiled when it is installed.
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
 * trim: false where the allocator has no such call; it blocks the process meanwhile. sourceSha256:
 * of allocator.c.
 * @type {{ books: () => Books, trim: () => boolean, sourceSha256: string }}
 */
module.exports = require(`./prebuilt/${built}.node`)
