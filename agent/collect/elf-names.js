'use strict'

/** First words of a 64-bit, little-endian ELF file; the second one without ABI and padding. */
const MAGIC = 0x464c_457f
const CLASS_AND_ORDER = 0x0102
/** Sizes in 32-bit words: header, program header, entry of the dynamic section. */
const HEADER_WORDS = 16
const SEGMENT_WORDS = 14
const ENTRY_WORDS = 4
/** Types of segments, and tags of the dynamic section. */
const PT_LOAD = 1
const PT_DYNAMIC = 2
const DT_NULL = 0
const DT_STRTAB = 5
const DT_STRSZ = 10
/** Limit of a table. Addons have about 10 program headers and 30 dynamic entries. */
const MOST_TABLE_WORDS = 1024

/**
 * Bytes of a file, from `start` to before `end`.
 * @typedef {{ start: number, end: number }} Range
 */

/**
 * Position of the dynamic string table in an ELF file: names that a shared library imports and
 * exports: elf(5). It reads 32-bit words without calls, as V8 would have to compile each function
 * of Buffer first.
 *
 * @param {Uint32Array} words filled by `read`
 * @param {(at: number, bytes: number) => number} read reads at most that many bytes of the file
 *   into `words`, and returns their number
 * @returns {Range}
 * @throws the file is no 64-bit ELF file, or a table is missing
 */
function locateNames (words, read) {
  const headerBytes = read(0, HEADER_WORDS * 4)
  if (
    headerBytes < HEADER_WORDS * 4 ||
    words[0] !== MAGIC ||
    (words[1] & 0xffff) !== CLASS_AND_ORDER
  ) throw new Error('no 64-bit ELF file')
  const segmentsAt = words[8] + words[9] * 2 ** 32
  const segmentBytes = words[13] >>> 16
  const segmentCount = words[14] & 0xffff
  if (segmentBytes !== SEGMENT_WORDS * 4) throw new Error('unknown program headers')

  const segmentWords =
    read(segmentsAt, 4 * Math.min(segmentCount * SEGMENT_WORDS, MOST_TABLE_WORDS)) / 4
  /** File offset, address and bytes of each loaded segment. @type {number[]} */
  const loaded = []
  let dynamicAt = NaN
  let dynamicBytes = 0
  for (let i = 0; i + SEGMENT_WORDS <= segmentWords; i += SEGMENT_WORDS) {
    const fileAt = words[i + 2] + words[i + 3] * 2 ** 32
    const bytes = words[i + 8] + words[i + 9] * 2 ** 32
    if (words[i] === PT_LOAD) {
      loaded.push(fileAt, words[i + 4] + words[i + 5] * 2 ** 32, bytes)
    } else if (words[i] === PT_DYNAMIC) {
      dynamicAt = fileAt
      dynamicBytes = bytes
    }
  }

  const entryWords = read(dynamicAt, Math.min(dynamicBytes, MOST_TABLE_WORDS * 4)) / 4
  let address = NaN
  let bytes = NaN
  for (let i = 0; i + ENTRY_WORDS <= entryWords && words[i] !== DT_NULL; i += ENTRY_WORDS) {
    const value = words[i + 2] + words[i + 3] * 2 ** 32
    if (words[i] === DT_STRTAB) address = value
    else if (words[i] === DT_STRSZ) bytes = value
  }
  for (let i = 0; i < loaded.length; i += 3) {
    const within = address - loaded[i + 1]
    if (within >= 0 && within + bytes <= loaded[i + 2]) {
      return { start: loaded[i] + within, end: loaded[i] + within + bytes }
    }
  }
  throw new Error('no dynamic string table')
}

module.exports = { locateNames }
