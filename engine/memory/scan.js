'use strict'

const { NODE_MALLOC_BYTES } = require('./parts')
const { uncountedBytes } = require('./frame-parts')

/** @typedef {import('../history/tracks').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */

/**
 * Estimates of the slack that a trim returns, or does not return. They are used if malloc was not
 * queried.
 *
 * glibc: the free end of a thread's arena stays (malloc/malloc.c, mtrim); a trim returned 0.34 to
 * 0.52 of the arenas. jemalloc: its metadata stays, and it rounds sizes up to four classes per
 * doubling (jemalloc(3), size classes). tcmalloc: the thread caches stay, 32 MiB in all
 * (TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES); 32 to 37 MiB stayed.
 */
const GLIBC_ARENA_SHARE = 0.43
const JEMALLOC_BOOKS_BYTES = 6 * 2 ** 20
const JEMALLOC_ROUNDING_SHARE = 0.15
const TCMALLOC_CACHES_BYTES = 32 * 2 ** 20

/**
 * Resident bytes by owner at the moment of one scan.
 *
 * @typedef {object} Scan
 * @property {number} heapBytes the V8 heap of the isolate
 * @property {number} heapTotalBytes committed by V8 at that moment
 * @property {number} mallocBytes all memory of malloc
 * @property {number} stacksBytes
 * @property {number} webassemblyBytes
 * @property {number} silentHeapBytes heaps of workers that do not report
 * @property {number} pooledBytes empty pages that V8 retains. They lie in the address range of its
 *   pages, and V8's own statistics leave them out
 * @property {number} addonMallocBytes mimalloc segments of an addon in a process with another
 *   malloc, without Buffers
 * @property {number} unexplainedBytes bytes owned neither by V8 nor by malloc
 * @property {number} externalBytes Buffers and other external memory of V8 in malloc's memory
 * @property {number} addonExternalBytes external memory in the addon's mimalloc
 * @property {number} outsideBytes outside all heaps, with the heaps of workers that do not report
 * @property {number} anonBytes anonymous memory of the process at that moment
 * @property {number} uncountedBytes part of anonBytes that V8 did not count in its heaps
 * @property {number} workerHeapsBytes heaps of workers that reported at that moment
 * @property {number} externalCountedBytes external memory that V8 counted for this isolate at that
 *   moment
 * @property {number} nativeBytes other memory in use: as reported by malloc, otherwise Node's
 *   minimum
 * @property {number} slackBytes free memory in malloc's last statistics, less Buffers allocated
 *   since. Without statistics: the rest of malloc's memory, which is free or used by native code
 * @property {number} sinceBytes memory that malloc obtained since its last statistics; its use is
 *   unknown
 * @property {number} heapSlackBytes slack in [heap], the main arena
 * @property {number} arenaSlackBytes slack in the arenas of threads
 * @property {boolean} asked true if malloc was queried, now or before
 * @property {number} trimmableBytes part of the slack that a trim returns, if the slack is free
 */

/** @type {Resident} */
const NONE_RESIDENT = Object.freeze({
  malloc_heap: 0,
  malloc_arenas: 0,
  malloc_mapped: 0,
  mimalloc: 0,
  webassembly: 0,
  stacks: 0,
  other: 0
})

/**
 * @param {Values} values of a frame that carries residentBytes
 * @param {Pick<import('@memwatch/agent/protocol/frame').Hello, 'allocator'>} hello
 * @param {Workers} workers
 * @param {Scan} [previous] previous scan. malloc is queried less often than the map is scanned, so
 *   its last statistics are carried over
 * @returns {Scan}
 */
function scanOf (values, { allocator }, workers, previous) {
  const places = findPlaces(values, allocator, workers)
  const { resident, mallocBytes } = places
  const books = booksOf(values.allocatorBytes, allocator, resident)
  const used = usedOfMalloc({
    values,
    webassemblyBytes: resident.webassembly,
    workers,
    mallocBytes,
    inUseBytes: books?.inUse,
    previous
  })
  const { externalBytes, nativeBytes } = used
  const addonExternalBytes = Math.min(places.addonMallocBytes, used.externalElsewhereBytes)
  const unclaimedBytes = mallocBytes - externalBytes - nativeBytes
  const slackBytes = books || !previous?.asked
    ? unclaimedBytes
    : clamp(previous.slackBytes + previous.externalBytes - externalBytes, unclaimedBytes)
  // Large Buffers are mapped one by one and unmapped when freed, so they leave no slack.
  const heapSlackBytes = clamp(
    books?.heap
      ? resident.malloc_heap - books.heap.inUse
      : resident.malloc_heap - Math.max(0, externalBytes - resident.malloc_mapped) - nativeBytes,
    slackBytes
  )
  const arenaSlackBytes = clamp(
    resident.malloc_arenas - (books?.arenas?.inUse ?? 0),
    slackBytes - heapSlackBytes
  )
  // A change of the slack changes the bytes that a trim returns, as allocations reuse free pages.
  const guess = previous?.asked
    ? previous.trimmableBytes + slackBytes - previous.slackBytes
    : guessedTrimmable({ slackBytes, heapSlackBytes, arenaSlackBytes, externalBytes }, allocator)
  return {
    heapBytes: places.heapBytes,
    heapTotalBytes: places.heapTotalBytes,
    mallocBytes,
    stacksBytes: resident.stacks,
    webassemblyBytes: resident.webassembly,
    silentHeapBytes: places.silentHeapBytes,
    pooledBytes: places.pooledBytes,
    addonMallocBytes: places.addonMallocBytes - addonExternalBytes,
    unexplainedBytes: places.unexplainedBytes,
    outsideBytes: mallocBytes + resident.stacks + resident.webassembly + places.addonMallocBytes +
      places.silentHeapBytes + places.unexplainedBytes,
    anonBytes: values.rssAnonBytes ?? 0,
    uncountedBytes: uncountedBytes(values, workers),
    workerHeapsBytes: workers.heapBytes,
    externalBytes,
    addonExternalBytes,
    externalCountedBytes: values.externalBytes ?? 0,
    nativeBytes,
    slackBytes,
    sinceBytes: unclaimedBytes - slackBytes,
    heapSlackBytes,
    arenaSlackBytes,
    asked: books !== undefined || previous?.asked === true,
    trimmableBytes: clamp(books ? books.trimmable(resident, mallocBytes) : guess, slackBytes)
  }
}

/**
 * Splits resident mappings by their owner.
 * @param {Values} values
 * @param {string} allocator
 * @param {Workers} workers
 */
function findPlaces (values, allocator, workers) {
  /** @type {Resident} */
  const resident = { ...NONE_RESIDENT, ...values.residentBytes }
  const { heapPhysicalBytes = 0, heapTotalBytes = heapPhysicalBytes } = values
  const rest = Math.max(0, resident.other - workers.heapBytes)
  const heapBytes = Math.min(rest, Math.max(heapTotalBytes, heapPhysicalBytes))
  const mallocBytes = resident.malloc_heap + resident.malloc_arenas + resident.malloc_mapped
  const of = { resident, heapBytes, heapTotalBytes }
  if (allocator === 'mimalloc') {
    // mimalloc maps addresses as low as V8's, so smaller segments look like V8's pages.
    return {
      ...of,
      mallocBytes: mallocBytes + resident.mimalloc + rest - heapBytes,
      addonMallocBytes: 0,
      silentHeapBytes: 0,
      pooledBytes: 0,
      unexplainedBytes: 0
    }
  }
  const low = splitLow(values, workers, rest - heapBytes)
  return { ...of, mallocBytes, addonMallocBytes: resident.mimalloc, ...low }
}

/**
 * Splits resident memory in the address range of V8's pages that belongs to no reporting heap.
 * Heaps of workers that do not report look like empty pages of V8, so all of this memory counts as
 * theirs if such workers exist.
 * @param {Values} values
 * @param {Workers} workers
 * @param {number} bytes resident
 */
function splitLow ({ workerThreads = 0, v8MappedBytes = 0, heapTotalBytes = 0 }, workers, bytes) {
  if (workerThreads > workers.count) {
    return { silentHeapBytes: bytes, pooledBytes: 0, unexplainedBytes: 0 }
  }
  const pooledBytes = clamp(v8MappedBytes - heapTotalBytes - workers.heapBytes, bytes)
  return { silentHeapBytes: 0, pooledBytes, unexplainedBytes: bytes - pooledBytes }
}

/**
 * Splits malloc's memory in use by owner.
 * @param {object} of
 * @param {Values} of.values
 * @param {number} of.webassemblyBytes
 * @param {Workers} of.workers
 * @param {number} of.mallocBytes
 * @param {number | undefined} of.inUseBytes bytes in use, as reported by malloc; undefined if it
 *   was not queried
 * @param {Scan} [of.previous]
 */
function usedOfMalloc ({ values, webassemblyBytes, workers, mallocBytes, inUseBytes, previous }) {
  const { externalBytes: counted = 0, arrayBuffersBytes = 0, mallocedBytes = 0 } = values
  // Node versions before 26 count WebAssembly memories as external.
  const webassemblyExternal = Math.min(webassemblyBytes, Math.max(0, counted - arrayBuffersBytes))
  const external = Math.max(0, counted + workers.externalBytes - webassemblyExternal)
  let native = NODE_MALLOC_BYTES + mallocedBytes
  if (inUseBytes !== undefined) native = Math.max(0, inUseBytes - external)
  else if (previous?.asked) native = previous.nativeBytes
  const nativeBytes = Math.min(native, mallocBytes)
  const externalBytes = Math.min(external, mallocBytes - nativeBytes)
  return { nativeBytes, externalBytes, externalElsewhereBytes: external - externalBytes }
}

/**
 * @param {number} bytes
 * @param {number} most
 */
const clamp = (bytes, most) => Math.max(0, Math.min(bytes, most))

/**
 * Converts an allocator's own statistics to common terms. mimalloc only reports the heap of one
 * thread, which is not enough.
 * @param {Record<string, number> | undefined} bytes
 * @param {string} allocator
 * @param {Resident} resident
 * @returns {Books | undefined}
 *
 * @typedef {Record<'malloc_heap' | 'malloc_arenas' | 'malloc_mapped' | 'mimalloc' |
 *   'webassembly' | 'stacks' | 'other', number>} Resident bytes
 * @typedef {{ inUse: number, freePages: number, fragments: number, top: number }} Place
 * @typedef {{ inUse: number, heap?: Place, arenas?: Place, trimmable: (resident: Resident,
 *   mallocBytes: number) => number }} Books
 */
function booksOf (bytes, allocator, resident) {
  if (bytes === undefined) return undefined
  const of = (/** @type {string} */ key) => bytes[key] ?? 0
  /**
   * @param {string} name
   * @returns {Place}
   */
  const place = name => ({
    inUse: of(`${name}_in_use`),
    freePages: of(`${name}_free_pages`),
    fragments: of(`${name}_fragments`),
    top: of(`${name}_top`)
  })
  if (allocator === 'jemalloc') {
    return {
      inUse: of('in_use'),
      trimmable: (_, mallocBytes) => mallocBytes - of('active') - of('metadata')
    }
  }
  if (allocator === 'tcmalloc') return { inUse: of('in_use'), trimmable: () => of('free_pages') }
  if (allocator !== 'glibc') return undefined
  const heap = place('heap')
  const arenas = place('arenas')
  return {
    // Memory in mappings of its own is in use: malloc returns them when they are freed, and those
    // that malloc does not know belong to others, such as the malloc of an addon.
    inUse: heap.inUse + arenas.inUse + Math.max(of('mapped'), resident.malloc_mapped),
    heap,
    arenas,
    // malloc also counts free pages that are no longer resident. A trim cannot return these again.
    trimmable: resident =>
      clamp(heap.freePages + heap.top, resident.malloc_heap - heap.inUse - heap.fragments) +
      clamp(arenas.freePages, resident.malloc_arenas - arenas.inUse - arenas.fragments - arenas.top)
  }
}

/**
 * Memory that jemalloc needs in addition to the memory in use, and retains however much the app
 * frees.
 * @param {number} externalBytes Buffers, which are most of the memory in use
 */
const jemallocOverhead = externalBytes =>
  JEMALLOC_BOOKS_BYTES + JEMALLOC_ROUNDING_SHARE * externalBytes

/**
 * @param {Pick<Scan, 'slackBytes' | 'heapSlackBytes' | 'arenaSlackBytes' | 'externalBytes'>} scan
 * @param {string} allocator
 */
function guessedTrimmable (
  { slackBytes, heapSlackBytes, arenaSlackBytes, externalBytes },
  allocator
) {
  switch (allocator) {
    case 'glibc':
      return heapSlackBytes + GLIBC_ARENA_SHARE * arenaSlackBytes
    case 'jemalloc':
      return slackBytes - jemallocOverhead(externalBytes)
    case 'tcmalloc':
      return slackBytes - TCMALLOC_CACHES_BYTES
    default:
      return 0 // mimalloc returns memory without a call; musl has no call for it.
  }
}

module.exports = { scanOf, jemallocOverhead }
