'use strict'

const { nowMs } = require('../primordials')

/** A reading may take this share of a core; one that takes longer makes the next ones rarer. */
const MOST_SHARE = 0.0005
const RAREST_SECONDS = 600
/** Chunks are not aligned to pages: on average one page less of each can be given back. */
const PAGE_BYTES = 4096

/** @typedef {Record<string, number>} Bytes */

/**
 * glibc's books from the XML of malloc_info(3), summed for the main arena (`heap_...`) and those of
 * threads (`arenas_...`): `in_use`; `free_pages`, whole pages inside free chunks, which
 * malloc_trim(0) gives back; `fragments`, free chunks and parts of them that are smaller; `top`,
 * the free end, which malloc_trim(0) gives back for the main arena only (malloc/malloc.c, mtrim).
 * `mapped` is what malloc mapped chunk by chunk.
 *
 * @param {string} xml
 * @returns {Bytes}
 */
function glibcBooks (xml) {
  /** @type {Bytes} */
  const books = { mapped: 0 }
  for (const place of ['heap', 'arenas']) {
    for (const kind of ['in_use', 'free_pages', 'fragments', 'top']) books[`${place}_${kind}`] = 0
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
    const fast = numberIn(arena, /type="fast" count="\d+" size="(\d+)"/)
    const rest = numberIn(arena, /type="rest" count="\d+" size="(\d+)"/)
    books[`${place}_in_use`] += Math.max(
      0,
      numberIn(arena, /<system type="current" size="(\d+)"/) - fast - rest
    )
    books[`${place}_free_pages`] += pages
    books[`${place}_fragments`] += Math.max(0, listed - pages) + fast
    books[`${place}_top`] += Math.max(0, rest - listed)
    if (number === arenas.length - 1) {
      books.mapped = numberIn(text.slice(end), /type="mmap" count="\d+" size="(\d+)"/)
    }
  })
  return books
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 */
const numberIn = (text, pattern) => Number(pattern.exec(text)?.[1] ?? 0)

/**
 * @param {import('@memwatch/allocator').Books} books
 * @returns {Bytes | undefined} undefined where the allocator cannot be asked
 */
function readBooks ({
  allocator,
  mallocInfo,
  allocatedBytes = 0,
  activeBytes = 0,
  metadataBytes = 0,
  freePagesBytes = 0
}) {
  switch (allocator) {
    case 'glibc':
      return mallocInfo === undefined ? undefined : glibcBooks(mallocInfo)
    case 'jemalloc':
      return { in_use: allocatedBytes, active: activeBytes, metadata: metadataBytes }
    case 'tcmalloc':
      return { in_use: allocatedBytes, free_pages: freePagesBytes }
    case 'mimalloc':
      return { in_use: allocatedBytes, active: activeBytes }
  }
}

/**
 * What malloc says of itself. Read in the frames that carry the resident memory, so that both are
 * of one moment, and rarely where it is dear: it walks through all free chunks.
 *
 * @param {Pick<import('../allocator-access').AllocatorAccess, 'books'>} access
 * @param {{ now?: () => number }} [dependencies] now: seconds
 * @returns {import('./collector').Collector}
 */
function allocatorBooks (access, { now = () => nowMs() / 1000 } = {}) {
  let nextAt = 0
  // The first reading compiles what the others run: how long it took says nothing.
  let isFirst = true
  return {
    fields: ['allocatorBytes'],
    read (values, { nowSeconds, look: asked }) {
      if ((nowSeconds < nextAt && !asked) || values.residentBytes === undefined) return
      const began = now()
      const books = readBooks(access.books())
      if (books) values.allocatorBytes = books
      const waitSeconds = isFirst ? 0 : Math.min((now() - began) / MOST_SHARE, RAREST_SECONDS)
      nextAt = books ? nowSeconds + waitSeconds : Infinity
      isFirst = false
    }
  }
}

module.exports = { allocatorBooks, glibcBooks }
