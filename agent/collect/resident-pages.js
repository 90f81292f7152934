'use strict'

const { openSync } = require('../primordials')
const { OwnDescriptor } = require('../own-descriptor')

/** @typedef {import('./mappings').Mapping} Mapping */
/** @typedef {import('./mappings').MappingPart} MappingPart */

/**
 * Bytes per entry of /proc/self/pagemap, and the bit of its last byte that says present: the
 * kernel's pagemap.rst.
 */
const ENTRY_BYTES = 8
const PRESENT = 0x80
/** Pages that are looked at in one go. */
const WINDOW_PAGES = 256
/**
 * Entries that differ are counted one by one in pieces of this length, into which a window can be
 * cut.
 */
const PIECE_BYTES = 256
/** A stack that was not touched for so many pages was never deeper. */
const UNTOUCHED_PAGES = 64
/** All but stacks, whose ends tell. */
const SAMPLED = /** @type {const} */ ([
  'malloc_heap',
  'malloc_arenas',
  'malloc_mapped',
  'webassembly'
])
/**
 * Most windows of a look: 256 MiB with pages of 4 KiB. A larger memory is sampled, so that the cost
 * of a look is bounded.
 */
const MOST_WINDOWS = 256

/**
 * Counts the resident pages of parts of the address space by /proc/self/pagemap. Unlike smaps it
 * takes no time for what is not asked about, and unprivileged processes may read its flags (not its
 * frame numbers) since Linux 4.2.
 *
 * Memory beyond the budget is sampled evenly, with another start each time.
 *
 * @param {{ pageBytes?: number, mostWindows?: number }} [options]
 */
function residentPages ({ pageBytes = 4096, mostWindows = MOST_WINDOWS } = {}) {
  const buffer = Buffer.allocUnsafeSlow(WINDOW_PAGES * ENTRY_BYTES)
  const windowBytes = WINDOW_PAGES * pageBytes
  let turn = 0

  /**
   * All entries of a part of the buffer but the first, and all but the last: where they are the
   * same, all are alike. One comparison tells, which costs a hundredth of a loop in code that runs
   * so rarely; that of Buffers made beforehand leaves no garbage, unlike one by offsets.
   * @param {number} start
   * @param {number} bytes
   */
  const overlap = (start, bytes) => [
    buffer.subarray(start + ENTRY_BYTES, start + bytes),
    buffer.subarray(start, start + bytes - ENTRY_BYTES)
  ]
  const whole = overlap(0, buffer.length)
  const pieces = Array.from({ length: buffer.length / PIECE_BYTES }, (_, i) =>
    overlap(i * PIECE_BYTES, PIECE_BYTES)
  )
  const areAlike = (/** @type {Buffer[]} */ [later, earlier]) =>
    Buffer.compare(later, earlier) === 0

  /**
   * @param {number} at in the buffer
   * @returns {boolean}
   */
  const isPresent = at => (buffer[at + ENTRY_BYTES - 1] & PRESENT) !== 0

  /**
   * @param {number} start where a piece begins
   * @param {number} end bytes of the buffer
   * @returns {number} present pages
   */
  const countEntries = (start, end) => {
    if (start === 0 && end === buffer.length && areAlike(whole)) {
      return isPresent(0) ? WINDOW_PAGES : 0
    }
    let present = 0
    for (let from = start; from < end; from += PIECE_BYTES) {
      const to = from + PIECE_BYTES
      if (to <= end && areAlike(pieces[from / PIECE_BYTES])) {
        if (isPresent(from)) present += PIECE_BYTES / ENTRY_BYTES
      } else {
        for (let at = from; at < to && at < end; at += ENTRY_BYTES) if (isPresent(at)) present++
      }
    }
    return present
  }

  /**
   * @param {OwnDescriptor} file
   * @param {number} from
   * @param {number} to at most a window further
   * @returns {number} bytes of the buffer
   */
  const readWindow = (file, from, to) =>
    file.read(buffer, ((to - from) / pageBytes) * ENTRY_BYTES, (from / pageBytes) * ENTRY_BYTES)

  /**
   * A stack grows downwards: below a long piece that was never touched lies nothing.
   * @param {OwnDescriptor} file
   * @param {Mapping} stack
   * @returns {Generator<void, number>}
   */
  const countStack = function * (file, { from, to }) {
    let present = 0
    for (let high = to; high > from; high -= windowBytes) {
      const bytes = readWindow(file, Math.max(from, high - windowBytes), high)
      const untouched = Math.min(bytes, UNTOUCHED_PAGES * ENTRY_BYTES)
      const low = countEntries(0, untouched)
      present += low + countEntries(untouched, bytes)
      if (low === 0) break
      yield
    }
    return present
  }

  /**
   * Every stride-th window, the rest in proportion.
   * @param {OwnDescriptor} file
   * @param {Mapping[]} mappings
   * @param {number} stride
   * @returns {Generator<void, number>}
   */
  const countSampled = function * (file, mappings, stride) {
    let ahead = turn % Math.min(stride, windowsOf(mappings))
    let present = 0
    let looked = 0
    let all = 0
    for (const { from, to } of mappings) {
      all += to - from
      for (let low = from; low < to; low += windowBytes) {
        if (ahead-- > 0) continue
        ahead = stride - 1
        const high = Math.min(to, low + windowBytes)
        looked += high - low
        present += countEntries(0, readWindow(file, low, high))
        yield
      }
    }
    return Math.round((present * all) / looked)
  }

  /** @param {readonly Mapping[]} mappings */
  const windowsOf = mappings =>
    mappings.reduce((sum, { from, to }) => sum + Math.ceil((to - from) / windowBytes), 0)

  /**
   * @param {readonly Mapping[]} mappings
   * @returns {Generator<void, Record<MappingPart, number>>} resident bytes of each part, after
   *   pauses wherever there may be one
   * @throws {Error} what the file system throws where pagemap is closed
   */
  return function * (mappings) {
    const ofPart = (/** @type {MappingPart} */ part) =>
      mappings.filter(mapping => mapping.part === part)
    const stride = Math.max(
      1,
      Math.ceil(windowsOf(mappings.filter(({ part }) => part !== 'stacks')) / mostWindows)
    )
    turn++
    const resident = {
      malloc_heap: 0,
      malloc_arenas: 0,
      malloc_mapped: 0,
      webassembly: 0,
      stacks: 0
    }
    const file = new OwnDescriptor(openSync('/proc/self/pagemap', 'r'))
    try {
      for (const part of SAMPLED) {
        const own = ofPart(part)
        if (own.length > 0) resident[part] = (yield * countSampled(file, own, stride)) * pageBytes
      }
      for (const stack of ofPart('stacks')) {
        resident.stacks += (yield * countStack(file, stack)) * pageBytes
      }
      return resident
    } finally {
      file.close()
    }
  }
}

module.exports = { residentPages }
