'use strict'

const { MAX_TEXT } = require('./limits')
const { plainText } = require('./text-rules')

/** Environment variables that configure an allocator. */
const MALLOC_ENV = [
  'LD_PRELOAD',
  'MALLOC_CONF',
  'GLIBC_TUNABLES',
  'MALLOC_ARENA_MAX',
  'MALLOC_MMAP_THRESHOLD_',
  'MALLOC_TRIM_THRESHOLD_',
  'MALLOC_MMAP_MAX_',
  'MALLOC_TOP_PAD_',
  'MIMALLOC_PURGE_DELAY',
  'TCMALLOC_RELEASE_RATE',
  'UV_THREADPOOL_SIZE'
]

/** A loaded object of such a name precedes libc: it is the allocator. */
const ALLOCATORS = /** @type {const} */ (['jemalloc', 'mimalloc', 'tcmalloc'])

/**
 * libc and allocator by the loaded objects: LD_PRELOAD may name a file that the loader did not
 * find.
 * @param {string | undefined} maps text of /proc/self/maps; undefined: unreadable
 * @returns {Pick<import('./frame').Hello, 'libc' | 'allocator' | 'allocatorPath'>}
 */
function loadedAllocator (maps) {
  if (maps === undefined) return { libc: 'unknown', allocator: 'unknown' }
  const objects = new Set(
    maps.split('\n').map(line => line.slice(line.indexOf('/'))).filter(name => name.startsWith('/'))
  )
  const has = (/** @type {RegExp} */ pattern) => [...objects].find(name => pattern.test(name))
  const libc = has(/\/(ld-musl-[^/]*|libc\.musl-[^/]*)$/)
    ? 'musl'
    : has(/\/(libc\.so\.6|libc-2[^/]*\.so)$/) ? 'glibc' : 'other'
  for (const allocator of ALLOCATORS) {
    const file = has(new RegExp(`/lib${allocator}[^/]*$`))
    if (file) return { libc, allocator, allocatorPath: plainText(file, MAX_TEXT) }
  }
  return { libc, allocator: libc }
}

module.exports = { MALLOC_ENV, loadedAllocator }
