'use strict'

const { readFileSync } = require('../primordials')
const { isTemporary, kernelFiles, leadingNumbers, readLines } = require('../read-file')
const { mappingsReader, noBytes } = require('./mappings')
const { residentPages } = require('./resident-pages')

/** @typedef {import('./mappings').Mapping} Mapping */
/** @typedef {Record<import('./mappings').MappingPart, number>} Resident bytes */
/** @typedef {{ layout: import('./mappings').MemoryLayout, resident?: Resident }} Breakdown */

/**
 * @typedef {object} Sources /proc by default
 * @property {(file: string) => string} [read] for repeated reads
 * @property {() => Buffer} [auxiliaryVector]
 * @property {(file: string) => Iterable<string>} [lines]
 * @property {(mappings: readonly Mapping[]) => Generator<void, Resident>} [count]
 */

/**
 * Breakdown of anonymous memory: malloc's extents from /proc/self/maps, and their resident part
 * from /proc/self/pagemap, or from smaps where pagemap is closed (gVisor).
 *
 * @param {(lines: string) => void} onMaps receives the lines as well: they are too expensive to
 *   read twice
 * @param {Sources} [sources]
 * @returns {{ scan: () => Generator<void, Breakdown>, anonBytes: () => number, usesSmaps: () =>
 *   boolean }} scan: one scan, with pauses; usesSmaps: true: the kernel must add up smaps. The
 *   first two throw if /proc is closed
 */
function memoryReader (
  onMaps,
  {
    read = kernelFiles().read,
    auxiliaryVector = () => readFileSync('/proc/self/auxv'),
    lines = readLines,
    count
  } = {}
) {
  /** @type {'maps' | 'smaps'} */
  let source = 'maps'
  let counted = count
  let knownPageBytes = 0
  const pages = [0, 0, 0]
  const pageBytes = () => (knownPageBytes ||= readPageBytes(auxiliaryVector()))

  /**
   * @param {Mapping[]} mappings
   * @returns {Generator<void, Resident | undefined>}
   */
  function * countResident (mappings) {
    if (source === 'smaps') return sumSmaps(mappings)
    try {
      counted ??= residentPages({ pageBytes: pageBytes() })
      return yield * counted(mappings)
    } catch (error) {
      if (isTemporary(error)) throw error
      source = 'smaps'
    }
  }

  return {
    * scan () {
      const { layout, add } = mappingsReader()
      for (const text of lines(`/proc/self/${source}`)) {
        add(text)
        onMaps(text)
        yield
      }
      return { layout, resident: yield * countResident(layout.mappings) }
    },
    /** Bytes of resident less shared pages. proc(5). */
    anonBytes () {
      leadingNumbers(read('/proc/self/statm'), pages)
      const [, resident, shared] = pages
      return (resident - shared) * pageBytes()
    },
    usesSmaps: () => source === 'smaps'
  }
}

/**
 * Size of a page, from the auxiliary vector: Node does not report it.
 * @param {Buffer} vector
 */
function readPageBytes (vector) {
  const AT_PAGESZ = 6
  for (let at = 0; at + 16 <= vector.length; at += 16) {
    if (vector.readBigUInt64LE(at) === BigInt(AT_PAGESZ)) {
      return Number(vector.readBigUInt64LE(at + 8))
    }
  }
  throw new Error('no page size in /proc/self/auxv')
}

/** @param {Mapping[]} mappings */
function sumSmaps (mappings) {
  const sums = noBytes()
  for (const { part, rssBytes } of mappings) sums[part] += rssBytes
  return sums
}

module.exports = { memoryReader }
