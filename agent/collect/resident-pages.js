'use strict'

const { openSync } = require('../primordials')
const { OwnDescriptor } = require('../own-descriptor')
const { noBytes } = require('./mappings')

/** @typedef {import('./mappings').Mapping} Mapping */
/** @typedef {import('./mappings').MappingPart} MappingPart */

/**
 * Entry of /proc/self/pagemap, and the bit "present" of its last byte: the kernel's pagemap.rst.
 */
const ENTRY_BYTES = 8
const PRESENT = 0x80
/** Pages of one read. */
const WINDOW_PAGES = 256
/** Part of a window; entries of a mixed piece are counted one by one. */
const PIECE_BYTES = 256
/** Untouched pages in a row at which a stack ends. */
const UNTOUCHED_PAGES = 64
/** All parts but stacks, of which only the used end counts. */
const SAMPLED = /** @type {const} */ ([
  'malloc_heap', 'malloc_arenas', 'malloc_mapped', 'mimalloc', 'webassembly'
])
/** Limit of windows in a scan: 256 MiB with pages of 4 KiB. Larger memory is sampled. */
const MOST_WINDOWS = 256

/** Entries of pagemap, one window of pages at a time. */
class PagemapWindow {
  #buffer = Buffer.allocUnsafeSlow(WINDOW_PAGES * ENTRY_BYTES)
  #whole = this.#overlap(0, this.#buffer.length)
  #pieces = Array.from({ length: this.#buffer.length / PIECE_BYTES }, (_, i) =>
    this.#overlap(i * PIECE_BYTES, PIECE_BYTES)
  )

  #pageBytes

  /** @param {number} pageBytes */
  constructor (pageBytes) {
    this.#pageBytes = pageBytes
  }

  /** Size in the address space. */
  get bytes () {
    return WINDOW_PAGES * this.#pageBytes
  }

  /**
   * @param {OwnDescriptor} file
   * @param {number} from
   * @param {number} to at most a window further
   * @returns {number} bytes of entries
   */
  read (file, from, to) {
    const entries = (to - from) / this.#pageBytes
    return file.read(this.#buffer, entries * ENTRY_BYTES, (from / this.#pageBytes) * ENTRY_BYTES)
  }

  /**
   * @param {number} start start of a piece
   * @param {number} end bytes of entries
   * @returns {number} present pages
   */
  countPresent (start, end) {
    if (start === 0 && end === this.#buffer.length && areAlike(this.#whole)) {
      return this.#isPresent(0) ? WINDOW_PAGES : 0
    }
    let present = 0
    for (let from = start; from < end; from += PIECE_BYTES) {
      const to = from + PIECE_BYTES
      if (to <= end && areAlike(this.#pieces[from / PIECE_BYTES])) {
        if (this.#isPresent(from)) present += PIECE_BYTES / ENTRY_BYTES
      } else {
        for (let at = from; at < to && at < end; at += ENTRY_BYTES) {
          if (this.#isPresent(at)) present++
        }
      }
    }
    return present
  }

  /** @param {number} at in the buffer */
  #isPresent (at) {
    return (this.#buffer[at + ENTRY_BYTES - 1] & PRESENT) !== 0
  }

  /**
   * Two views of a range, one without its first entry and one without its last: if the views are
   * equal, all entries are equal. A loop in cold code costs a hundred times as much.
   * @param {number} start
   * @param {number} bytes
   */
  #overlap (start, bytes) {
    return [
      this.#buffer.subarray(start + ENTRY_BYTES, start + bytes),
      this.#buffer.subarray(start, start + bytes - ENTRY_BYTES)
    ]
  }
}

const areAlike = (/** @type {Buffer[]} */ [later, earlier]) => Buffer.compare(later, earlier) === 0

/**
 * Counts resident pages by /proc/self/pagemap. Unlike smaps, pagemap takes no time for other
 * mappings. Unprivileged processes may read its flags (not its frame numbers) since Linux 4.2.
 *
 * Memory beyond the limit is sampled evenly, with another start each time.
 *
 * @param {{ pageBytes?: number, mostWindows?: number }} [options]
 */
function residentPages ({ pageBytes = 4096, mostWindows = MOST_WINDOWS } = {}) {
  const window = new PagemapWindow(pageBytes)
  let turn = 0

  /**
   * @param {readonly Mapping[]} mappings
   * @returns {Generator<void, Record<MappingPart, number>>} resident bytes of each part; it pauses
   *   after each window
   * @throws {Error} error of the file system: pagemap is closed
   */
  return function * (mappings) {
    const select = (/** @type {MappingPart} */ part) =>
      mappings.filter(mapping => mapping.part === part)
    const windows = countWindows(mappings.filter(({ part }) => part !== 'stacks'), window.bytes)
    const stride = Math.max(1, Math.ceil(windows / mostWindows))
    turn++
    const resident = noBytes()
    const file = new OwnDescriptor(openSync('/proc/self/pagemap', 'r'))
    try {
      for (const part of SAMPLED) {
        const own = select(part)
        if (own.length === 0) continue
        const pages = yield * countSampled({ file, window, mappings: own, stride, turn })
        resident[part] = pages * pageBytes
      }
      for (const stack of select('stacks')) {
        resident.stacks += (yield * countStack(file, window, stack)) * pageBytes
      }
      return resident
    } finally {
      file.close()
    }
  }
}

/**
 * @param {readonly Mapping[]} mappings
 * @param {number} windowBytes
 */
const countWindows = (mappings, windowBytes) =>
  mappings.reduce((sum, { from, to }) => sum + Math.ceil((to - from) / windowBytes), 0)

/**
 * A stack grows downwards: nothing lies below a long untouched piece.
 * @param {OwnDescriptor} file
 * @param {PagemapWindow} window
 * @param {Mapping} stack
 * @returns {Generator<void, number>} pages
 */
function * countStack (file, window, { from, to }) {
  let present = 0
  for (let high = to; high > from; high -= window.bytes) {
    const bytes = window.read(file, Math.max(from, high - window.bytes), high)
    const untouched = Math.min(bytes, UNTOUCHED_PAGES * ENTRY_BYTES)
    const low = window.countPresent(0, untouched)
    present += low + window.countPresent(untouched, bytes)
    if (low === 0) break
    yield
  }
  return present
}

/**
 * Counts every stride-th window, and extrapolates.
 * @param {{ file: OwnDescriptor, window: PagemapWindow, mappings: Mapping[], stride: number,
 *   turn: number }} of turn: varies the start
 * @returns {Generator<void, number>} pages
 */
function * countSampled ({ file, window, mappings, stride, turn }) {
  let ahead = turn % Math.min(stride, countWindows(mappings, window.bytes))
  let present = 0
  let sampled = 0
  let all = 0
  for (const { from, to } of mappings) {
    all += to - from
    for (let low = from; low < to; low += window.bytes) {
      if (ahead-- > 0) continue
      ahead = stride - 1
      const high = Math.min(to, low + window.bytes)
      sampled += high - low
      present += window.countPresent(0, window.read(file, low, high))
      yield
    }
  }
  return Math.round((present * all) / sampled)
}

module.exports = { residentPages }
