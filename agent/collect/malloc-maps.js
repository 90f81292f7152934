'use strict'

const { performance } = require('node:perf_hooks')
const { fileReader } = require('../read-file')

/** glibc reserves 64 MiB, aligned to 64 MiB, for each arena but the main one (HEAP_MAX_SIZE, malloc/arena.c). */
const ARENA_BYTES = 64 * 2 ** 20
const EVERY_SECONDS = 10
/** A read that takes longer than this makes the next ones rarer. */
const DEAR_SECONDS = 0.002
const RAREST_SECONDS = 600

/**
 * Extents of malloc in /proc/self/maps: [heap], the main arena, and the 64 MiB arenas of threads. An arena is an anonymous
 * writable mapping at a 64 MiB boundary, followed by an inaccessible one up to the next boundary.
 *
 * @param {string} maps
 * @returns {{ heapBytes: number, arenaBytes: number, arenas: number }}
 */
function mallocExtents (maps) {
  let heapBytes = 0
  let arenaBytes = 0
  let arenas = 0
  let start = -1
  let writableEnd = -1
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) (....) \S+ \S+ (\d+)\s*(.*)$/.exec(line)
    if (!match) continue
    const from = parseInt(match[1], 16)
    const to = parseInt(match[2], 16)
    const [, , , access, inode, name] = match
    if (name === '[heap]') heapBytes += to - from
    // The kernel may split or merge what lies between two boundaries; the parts still follow one another.
    const anonymous = inode === '0' && name === ''
    if (anonymous && access.startsWith('rw') && from % ARENA_BYTES === 0 && to - from <= ARENA_BYTES) {
      start = from
      writableEnd = to
      if (to - from === ARENA_BYTES) start = -1 // may be anything of that size; a full arena is rare
    } else if (anonymous && access.startsWith('---') && start >= 0 && from === writableEnd && to === start + ARENA_BYTES) {
      arenas++
      arenaBytes += writableEnd - start
      start = -1
    } else {
      start = -1
    }
  }
  return { heapBytes, arenaBytes, arenas }
}

/**
 * @param {{ read?: (file: string) => string, now?: () => number, look?: (maps: string) => void }} [dependencies] now: seconds;
 *   look: is shown the text as well, which is too dear to be made twice
 * @returns {import('./collector').Collector}
 */
function mallocMaps ({ read = fileReader(), now = () => performance.now() / 1000, look = () => {} } = {}) {
  let nextAt = process.platform === 'linux' ? 0 : Infinity
  let everySeconds = EVERY_SECONDS
  return {
    fields: ['mallocHeapBytes', 'mallocArenaBytes', 'mallocArenas'],
    read (values, { nowSeconds }) {
      if (nowSeconds < nextAt) return
      const began = now()
      try {
        const maps = read('/proc/self/maps')
        const { heapBytes, arenaBytes, arenas } = mallocExtents(maps)
        look(maps)
        values.mallocHeapBytes = heapBytes
        values.mallocArenaBytes = arenaBytes
        values.mallocArenas = arenas
        everySeconds = now() - began > DEAR_SECONDS ? Math.min(2 * everySeconds, RAREST_SECONDS) : EVERY_SECONDS
        nextAt = nowSeconds + everySeconds
      } catch {
        nextAt = Infinity
      }
    }
  }
}

module.exports = { mallocMaps, mallocExtents }
