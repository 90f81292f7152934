'use strict'

const { measureCpu } = require('../primordials')
const { restAfter } = require('./memory-map')

/** Chunks are not aligned to pages: the mean chunk can return one page less than its size. */
const PAGE_BYTES = 4096

/** @typedef {Record<string, number>} Bytes */

/**
 * glibc's statistics from the XML of malloc_info(3), summed for the main arena (`heap_...`) and for
 * the arenas of threads (`arenas_...`). `in_use` is allocated. `free_pages` are whole pages inside
 * free chunks, which malloc_trim(0) returns. `fragments` are smaller free chunks and parts of
 * pages. `top` is the free end of an arena, which malloc_trim(0) returns for the main arena only
 * (malloc/malloc.c, mtrim). `mapped` is the sum of chunks with a mapping of their own.
 *
 * @param {string} xml
 * @returns {Bytes}
 */
function parseMallocInfo (xml) {
  /** @type {Bytes} */
  const bytes = { mapped: 0 }
  for (const place of ['heap', 'arenas']) {
    for (const kind of ['in_use', 'free_pages', 'fragments', 'top']) bytes[`${place}_${kind}`] = 0
  }
  const [, ...arenas] = xml.split('<heap nr="')
  arenas.forEach((text, number) => {
    const end = text.indexOf('</heap>')
    const arena = text.slice(0, end)
    const place = number === 0 ? 'heap' : 'arenas'
    let listed = 0
    let pages = 0
    for (const [, total, count] of arena.matchAll(
      /<(?:size|unsorted) from="\d+" to="\d+" total="(\d+)" count="(\d+)"/g
    )) {
      listed += Number(total)
      pages += Math.max(0, Number(total) - Number(count) * PAGE_BYTES)
    }
    const fast = matchNumber(arena, /type="fast" count="\d+" size="(\d+)"/)
    const rest = matchNumber(arena, /type="rest" count="\d+" size="(\d+)"/)
    bytes[`${place}_in_use`] += Math.max(
      0,
      matchNumber(arena, /<system type="current" size="(\d+)"/) - fast - rest
    )
    bytes[`${place}_free_pages`] += pages
    bytes[`${place}_fragments`] += Math.max(0, listed - pages) + fast
    bytes[`${place}_top`] += Math.max(0, rest - listed)
    if (number === arenas.length - 1) {
      bytes.mapped = matchNumber(text.slice(end), /type="mmap" count="\d+" size="(\d+)"/)
    }
  })
  return bytes
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 */
const matchNumber = (text, pattern) => Number(pattern.exec(text)?.[1] ?? 0)

/**
 * @param {import('@memwatch/allocator').AllocatorStatistics} statistics
 * @returns {Bytes | undefined} undefined: the allocator has no statistics
 */
function convert ({
  allocator,
  mallocInfo,
  allocatedBytes = 0,
  activeBytes = 0,
  metadataBytes = 0,
  freePagesBytes = 0
}) {
  switch (allocator) {
    case 'glibc':
      return mallocInfo === undefined ? undefined : parseMallocInfo(mallocInfo)
    case 'jemalloc':
      return { in_use: allocatedBytes, active: activeBytes, metadata: metadataBytes }
    case 'tcmalloc':
      return { in_use: allocatedBytes, free_pages: freePagesBytes }
    case 'mimalloc':
      return { in_use: allocatedBytes, active: activeBytes }
  }
}

/**
 * Malloc's own statistics, in frames with resident memory, so that both describe one moment.
 * Expensive readings are rare, like slow scans: malloc walks through all free chunks.
 *
 * @param {Pick<import('../allocator-access').AllocatorAccess, 'readStatistics'>} access
 * @param {typeof measureCpu} [measure]
 * @returns {import('./collector').Collector}
 */
function allocatorStatistics (access, measure = measureCpu) {
  let nextAt = 0
  // The first reading includes the compilation of its code, so its duration predicts nothing.
  let isFirst = true
  return {
    fields: ['allocatorBytes'],
    read (values, { nowSeconds, isOnDemand }) {
      if ((nowSeconds < nextAt && !isOnDemand) || values.residentBytes === undefined) return
      const cpuSeconds = measure()
      const statistics = convert(access.readStatistics())
      if (statistics) values.allocatorBytes = statistics
      const waitSeconds = isFirst ? 0 : restAfter(cpuSeconds(), nowSeconds)
      nextAt = statistics ? nowSeconds + waitSeconds : Infinity
      isFirst = false
    }
  }
}

module.exports = { allocatorStatistics, parseMallocInfo }
