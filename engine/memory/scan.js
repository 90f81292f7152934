'use strict'

const { NODE_MALLOC_BYTES } = require('./parts')

/** @typedef {import('../history/tracks').Values} Values */
/** @typedef {import('../history/tracks').Workers} Workers */

/**
 * What is known of the slack that trim does not give back, where malloc was not asked.
 *
 * glibc: the free end of a thread's arena stays (malloc/malloc.c, mtrim): 0.34 to 0.52 of the
 * arenas came back. jemalloc: its own books, and the rounding up of sizes to four classes for each
 * doubling (jemalloc(3), size classes). tcmalloc: caches of threads, 32 MiB in all
 * (TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES); 32 to 37 MiB stayed.
 */
const GLIBC_ARENA_SHARE = 0.43
const JEMALLOC_BOOKS_BYTES = 6 * 2 ** 20
const JEMALLOC_ROUNDING_SHARE = 0.15
const TCMALLOC_CACHES_BYTES = 32 * 2 ** 20

/**
 * What was resident where, at the moment of one look. In bytes.
 *
 * @typedef {object} Scan
 * @property {number} heapBytes the V8 heap of the isolate
 * @property {number} heapTotalBytes what V8 had taken for it then
 * @property {number} mallocBytes all that malloc holds
 * @property {number} stacksBytes
 * @property {number} webassemblyBytes
 * @property {number} silentHeapBytes heaps of workers that do not report
 * @property {number} pooledBytes pages that V8 emptied and keeps: they lie where its pages are,
 *   and it does not count them
 * @property {number} addonMallocBytes mimalloc's segments that an addon made, where the process has
 *   another malloc, less Buffers
 * @property {number} unexplainedBytes neither V8's nor malloc's
 * @property {number} externalBytes Buffers and other external memory of V8 that malloc holds
 * @property {number} addonExternalBytes those that the addon's mimalloc holds
 * @property {number} externalCountedBytes what V8 counted as external then, of this isolate
 * @property {number} nativeBytes in use besides: as malloc says, else what Node takes at least
 * @property {number} slackBytes free as malloc said last, less what Buffers took since; where it
 *   was never asked the rest of malloc's, in use by native code or free
 * @property {number} sinceBytes what malloc took since it was asked: of that nobody knows
 * @property {number} heapSlackBytes of that in [heap], the main arena
 * @property {number} arenaSlackBytes of that in the arenas of threads
 * @property {boolean} asked malloc was asked, now or before
 * @property {number} trimmableBytes of the slack what trim gives back, if it is free
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
 * @param {Scan} [previous] malloc is asked more rarely than looked at: what it said last is carried
 *   on
 * @returns {Scan}
 */
function scanOf (values, { allocator }, workers, previous) {
  const places = findPlaces(values, allocator, workers)
  const { resident, mallocBytes } = places
  const books = booksOf(values.allocatorBytes, allocator)
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
  // Large Buffers are mapped one by one, and never free.
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
  // What is taken is taken from free pages.
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
 * Who made the mappings that are resident.
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
    // It asks for addresses as low as V8's: smaller segments cannot be told from its pages.
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
 * What lies where V8's pages are and is not of a heap that reports. Heaps of workers that do not
 * report look like pages that V8 emptied and keeps, so all of it is theirs where there are any.
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
 * What of malloc's memory is in use, by whom.
 * @param {object} of
 * @param {Values} of.values
 * @param {number} of.webassemblyBytes
 * @param {Workers} of.workers
 * @param {number} of.mallocBytes
 * @param {number | undefined} of.inUseBytes as malloc says, where it was asked
 * @param {Scan} [of.previous]
 */
function usedOfMalloc ({ values, webassemblyBytes, workers, mallocBytes, inUseBytes, previous }) {
  const { externalBytes: counted = 0, arrayBuffersBytes = 0, mallocedBytes = 0 } = values
  // Nodes before 26 count WebAssembly memories as external.
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
 * What the allocator said of itself, in terms that all share. mimalloc tells of one thread's heap
 * only, which is not enough.
 * @param {Record<string, number> | undefined} bytes
 * @param {string} allocator
 * @returns {Books | undefined}
 *
 * @typedef {Record<'malloc_heap' | 'malloc_arenas' | 'malloc_mapped' | 'mimalloc' |
 *   'webassembly' | 'stacks' | 'other', number>} Resident bytes
 * @typedef {{ inUse: number, freePages: number, fragments: number, top: number }} Place
 * @typedef {{ inUse: number, heap?: Place, arenas?: Place, trimmable: (resident: Resident,
 *   mallocBytes: number) => number }} Books
 */
function booksOf (bytes, allocator) {
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
    inUse: heap.inUse + arenas.inUse + of('mapped'),
    heap,
    arenas,
    // Free pages are counted whether or not they are resident still: what was given back before is
    // not there to give.
    trimmable: resident =>
      clamp(heap.freePages + heap.top, resident.malloc_heap - heap.inUse - heap.fragments) +
      clamp(arenas.freePages, resident.malloc_arenas - arenas.inUse - arenas.fragments - arenas.top)
  }
}

/**
 * What jemalloc holds beyond what is in use, however much is freed.
 * @param {number} externalBytes of Buffers, which are most of it
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
      return 0 // mimalloc gives back by itself; musl has no such call
  }
}

module.exports = { scanOf, jemallocOverhead }
