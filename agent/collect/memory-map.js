'use strict'

const { performance } = require('node:perf_hooks')
const { fileReader } = require('../read-file')
const { readMappings } = require('./mappings')
const { residentPages } = require('./resident-pages')

const EVERY_SECONDS = 10
/** The kernel adds up smaps page by page under the lock that page faults wait for: where it must serve, rarely. */
const SMAPS_EVERY_SECONDS = 120
/** A look may take this share of a core; one that takes longer makes the next ones rarer. */
const MOST_SHARE = 0.0005
const RAREST_SECONDS = 600
/** Other threads free and take memory during a look: where it moved by more than this, the next frame looks again. */
const MOVED_SHARE = 0.02
const MOST_ATTEMPTS = 3

/**
 * Where the anonymous memory of the process lies that is not the V8 heap: malloc's extents from /proc/self/maps, and how
 * much of them is resident from /proc/self/pagemap, or where that is closed (gVisor) from smaps. What is anonymous and
 * resident and none of it is `other`: the V8 heap, mostly.
 *
 * @param {object} [dependencies]
 * @param {(file: string) => string} [dependencies.read]
 * @param {(mappings: readonly import('./mappings').Mapping[]) => Record<import('./mappings').MappingPart, number>} [dependencies.count]
 * @param {() => number} [dependencies.now] seconds
 * @param {(maps: string) => void} [dependencies.look] is shown the text as well, which is too dear to be made twice
 * @returns {import('./collector').Collector}
 */
function memoryMap ({ read = fileReader(), count, now = () => performance.now() / 1000, look = () => {} } = {}) {
  let nextAt = process.platform === 'linux' ? 0 : Infinity
  /** @type {'maps' | 'smaps'} */
  let source = 'maps'
  let counted = count
  let pageBytes = 0
  let attempts = 0
  return {
    fields: ['mallocHeapBytes', 'mallocArenaBytes', 'mallocArenas', 'residentBytes'],
    read (values, { nowSeconds, look: asked }) {
      if (nowSeconds < nextAt && !asked) return
      const began = now()
      try {
        const text = read(`/proc/self/${source}`)
        const { mappings, heapBytes, arenaBytes, arenas } = readMappings(text)
        look(text)
        values.mallocHeapBytes = heapBytes
        values.mallocArenaBytes = arenaBytes
        values.mallocArenas = arenas
        const resident = residentOf(mappings)
        if (resident && values.rssAnonBytes !== undefined) {
          const known = Object.values(resident).reduce((sum, bytes) => sum + bytes, 0)
          const moved = Math.abs(anonBytes() - values.rssAnonBytes)
          if (moved > MOVED_SHARE * values.rssAnonBytes && !asked && ++attempts < MOST_ATTEMPTS) return
          attempts = 0
          values.residentBytes = { ...resident, other: Math.max(0, values.rssAnonBytes - known) }
        }
        const least = source === 'maps' || !resident ? EVERY_SECONDS : SMAPS_EVERY_SECONDS
        nextAt = nowSeconds + Math.min(Math.max(least, (now() - began) / MOST_SHARE), RAREST_SECONDS)
      } catch {
        nextAt = Infinity
      }
    }
  }

  /** Resident less shared pages. proc(5). */
  function anonBytes () {
    const [, resident, shared] = read('/proc/self/statm').split(' ', 3)
    return (Number(resident) - Number(shared)) * (pageBytes ||= pageBytesOf(read))
  }

  /** @param {import('./mappings').Mapping[]} mappings */
  function residentOf (mappings) {
    if (source === 'smaps') return sumOfSmaps(mappings)
    try {
      counted ??= residentPages({ pageBytes: pageBytes ||= pageBytesOf(read) })
      return counted(mappings)
    } catch {
      source = 'smaps'
    }
  }
}

/** The size of a page: Node does not tell it, smaps and the auxiliary vector do. @param {(file: string) => string} read */
function pageBytesOf (read) {
  const AT_PAGESZ = 6
  const vector = Buffer.from(read('/proc/self/auxv'), 'latin1')
  for (let at = 0; at + 16 <= vector.length; at += 16) {
    if (vector.readBigUInt64LE(at) === BigInt(AT_PAGESZ)) return Number(vector.readBigUInt64LE(at + 8))
  }
  throw new Error('no page size in /proc/self/auxv')
}

/** @param {import('./mappings').Mapping[]} mappings */
function sumOfSmaps (mappings) {
  const sums = { malloc_heap: 0, malloc_arenas: 0, malloc_mapped: 0, webassembly: 0, stacks: 0 }
  for (const { part, rssBytes } of mappings) sums[part] += rssBytes
  return sums
}

module.exports = { memoryMap }
