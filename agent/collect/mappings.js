'use strict'

/**
 * glibc reserves 64 MiB, aligned to 64 MiB, for each arena except the main one (HEAP_MAX_SIZE,
 * malloc/arena.c).
 */
const ARENA_BYTES = 64 * 2 ** 20
/** Guard of a thread's stack: one page by default, more in some threads. */
const MOST_GUARD_BYTES = 65_536
/** Stacks of Node's threads: 4 MiB for a worker, else ulimit -s, 8 MiB nearly everywhere. */
const LEAST_STACK_BYTES = 512 * 1024
const MOST_STACK_BYTES = 8 * 2 ** 20
/** Only workers have exactly this stack size, on Node.js 18 to 26 (src/node_worker.h). */
const WORKER_STACK_BYTES = 4 * 2 ** 20
/**
 * Addresses that V8 reserves for a WebAssembly memory, to omit bounds checks: 8 GiB from its start.
 * On Node 18 to 22 V8 also reserves 2 GiB before it, which join the end of the previous memory.
 */
const WEBASSEMBLY_BYTES = 8 * 2 ** 30
const WEBASSEMBLY_STEP_BYTES = 2 * 2 ** 30
/**
 * V8 puts its pages at random addresses below 2^46 (allocator hints, src/base/platform); mmap's own
 * area is above. Digits are compared, as there may be thousands of mappings.
 */
const MMAP_AREA_DIGITS = 12
const MMAP_AREA_FIRST_DIGIT = '4'.charCodeAt(0)
/**
 * Alignment of mimalloc's segments, whose addresses are low, too. One in 2,000 of V8's mappings of
 * this size has the same alignment.
 */
const MIMALLOC_BYTES = 32 * 2 ** 20
const MIMALLOC_STEP_BYTES = 4 * 2 ** 20
/**
 * Length of a space and the four letters of the access. The columns of a mapping without a file
 * follow.
 */
const ACCESS_LENGTH = 5
const NO_FILE = ' 00000000 00:00 0'

/**
 * Mapping of anonymous memory outside the V8 heap.
 * @typedef {'malloc_heap' | 'malloc_arenas' | 'malloc_mapped' | 'mimalloc' | 'stacks' |
 *   'webassembly'} MappingPart
 * @typedef {{ part: MappingPart, from: number, to: number, rssBytes: number }} Mapping rssBytes:
 *   from smaps; 0 from maps
 */

/**
 * @typedef {object} MemoryLayout
 * @property {Mapping[]} mappings
 * @property {number} heapBytes extent of [heap]
 * @property {number} arenaBytes extent of the arenas of threads
 * @property {number} arenas
 * @property {number} v8Bytes extent of the writable mappings where V8 places its pages
 * @property {number} workerStacks number of worker threads, with or without an agent
 */

/**
 * Memory layout from the lines of /proc/self/maps or smaps: proc(5). The V8 heap is not identified:
 * since Node 20 each of its pages is a mapping of its own.
 *
 * - [heap] is the main malloc arena. Arenas of threads are anonymous and writable, start at a
 *   64 MiB boundary, and an inaccessible mapping follows up to the next boundary.
 * - A small inaccessible guard precedes a stack. An inaccessible rest of the reservation follows a
 *   WebAssembly memory.
 * - Malloc made all other writable anonymous mappings of mmap's area: large chunks, or everything
 *   of another allocator.
 *
 * @returns {{ layout: MemoryLayout, add: (lines: string) => void }} add: reads the next lines;
 *   layout: of the lines so far
 */
function mappingsReader () {
  /** @type {Reading} */
  const reading = {
    layout: { mappings: [], heapBytes: 0, arenaBytes: 0, arenas: 0, v8Bytes: 0, workerStacks: 0 },
    guardEnd: -1,
    guardBytes: 0,
    last: undefined,
    open: undefined
  }
  /** @param {string} text */
  const add = text => {
    for (let start = 0, end; start < text.length; start = end + 1) {
      end = text.indexOf('\n', start)
      if (end < 0) end = text.length
      readLine(reading, text, start, end)
    }
  }
  return { layout: reading.layout, add }
}

/**
 * State of the reader.
 * @typedef {object} Reading
 * @property {MemoryLayout} layout
 * @property {number} guardEnd end of the last inaccessible mapping
 * @property {number} guardBytes
 * @property {Mapping | undefined} last arena or WebAssembly memory, if a reservation follows
 * @property {Mapping | undefined} open mapping before its Rss line
 */

/**
 * @param {Reading} reading
 * @param {string} text
 * @param {number} start start of the line
 * @param {number} end
 */
function readLine (reading, text, start, end) {
  const first = text.charCodeAt(start)
  // A key of smaps begins with a capital letter, an address with a digit or a small letter.
  if (first >= 65 && first <= 90) {
    if (reading.open && text.startsWith('Rss:', start)) {
      reading.open.rssBytes = parseInt(text.slice(start + 4, end), 10) * 1024
    }
    return
  }
  const { last } = reading
  reading.open = reading.last = undefined
  const dash = text.indexOf('-', start)
  const space = text.indexOf(' ', dash)
  const after = space + ACCESS_LENGTH + NO_FILE.length
  if (dash < 0 || after > end || !text.startsWith(NO_FILE, space + ACCESS_LENGTH)) return
  const inMmapArea =
    dash - start > MMAP_AREA_DIGITS ||
    (dash - start === MMAP_AREA_DIGITS && first >= MMAP_AREA_FIRST_DIGIT)
  // Without a name a line of maps ends with a space.
  const name = end - after > 1 ? text.slice(after, end).trim() : ''
  const inaccessible = text.startsWith(' ---', space)
  const anonymous = name === '' && (text.startsWith(' rw-', space) || (inaccessible && inMmapArea))
  if (!anonymous && name !== '[heap]' && name !== '[stack]') return
  const from = parseInt(text.slice(start, dash), 16)
  const to = parseInt(text.slice(dash + 1, space), 16)
  if (anonymous && !inMmapArea) return addLow(reading, from, to)
  if (!inaccessible) return addMapping(reading, name, from, to)
  reading.guardEnd = to
  reading.guardBytes = to - from
  if (last && last.to === from) nameByReservation(reading.layout, last, to)
}

/**
 * An inaccessible mapping may complete a reservation of malloc or V8.
 * @param {MemoryLayout} layout
 * @param {Mapping} mapping
 * @param {number} end end of the reservation
 */
function nameByReservation (layout, mapping, end) {
  if (mapping.from % ARENA_BYTES === 0 && end === mapping.from + ARENA_BYTES) {
    mapping.part = 'malloc_arenas'
    layout.arenas++
    layout.arenaBytes += mapping.to - mapping.from
    return
  }
  if (end - mapping.from < WEBASSEMBLY_BYTES) return
  // The kernel joins a neighbour to the memory: cut off the part outside the reservation.
  const before = (end - mapping.from) % WEBASSEMBLY_STEP_BYTES
  if (before >= mapping.to - mapping.from) return
  if (before > 0) {
    const { from } = mapping
    layout.mappings.push({ part: 'malloc_mapped', from, to: from + before, rssBytes: 0 })
  }
  mapping.from += before
  mapping.part = 'webassembly'
}

/**
 * @param {Reading} reading
 * @param {number} from
 * @param {number} to
 */
function addLow (reading, from, to) {
  const bytes = to - from
  const isMimalloc = bytes >= MIMALLOC_BYTES && from % MIMALLOC_BYTES === 0 &&
    bytes % MIMALLOC_STEP_BYTES === 0
  if (!isMimalloc) {
    reading.layout.v8Bytes += bytes
    return
  }
  reading.open = { part: 'mimalloc', from, to, rssBytes: 0 }
  reading.layout.mappings.push(reading.open)
}

/**
 * @param {Reading} reading
 * @param {string} name empty, [heap] or [stack]
 * @param {number} from
 * @param {number} to
 */
function addMapping (reading, name, from, to) {
  const { layout, guardEnd, guardBytes } = reading
  const bytes = to - from
  const isThreadStack =
    name === '' &&
    from === guardEnd &&
    guardBytes <= MOST_GUARD_BYTES &&
    bytes >= LEAST_STACK_BYTES
  /** @type {MappingPart} */
  let part = 'malloc_mapped'
  if (name === '[heap]') {
    part = 'malloc_heap'
    layout.heapBytes += bytes
  } else if (isThreadStack || name === '[stack]') {
    part = 'stacks'
    if (isThreadStack && bytes === WORKER_STACK_BYTES) layout.workerStacks++
  }
  if (isThreadStack && bytes > MOST_STACK_BYTES) {
    // The kernel joins adjacent mappings of the same kind.
    layout.mappings.push({ part, from, to: from + MOST_STACK_BYTES, rssBytes: 0 })
    from += MOST_STACK_BYTES
    part = 'malloc_mapped'
  }
  reading.open = reading.last = { part, from, to, rssBytes: 0 }
  layout.mappings.push(reading.open)
}

/** @returns {Record<MappingPart, number>} */
const noBytes = () => ({
  malloc_heap: 0, malloc_arenas: 0, malloc_mapped: 0, mimalloc: 0, webassembly: 0, stacks: 0
})

module.exports = { mappingsReader, noBytes }
