'use strict'

const { OwnDescriptor, LostDescriptor } = require('./own-descriptor')
const { closeSync, openSync, readSync } = require('./primordials')

/**
 * What Buffer.toString comes to in the end: the way there is long where the code is cold.
 * @param {Buffer} buffer
 * @param {number} length
 * @returns {string}
 */
const textOf = (buffer, length) => {
  const { latin1Slice } = /** @type {{ latin1Slice?: (start: number, end: number) => string }} */ (/** @type {unknown} */ (buffer))
  return latin1Slice ? latin1Slice.call(buffer, 0, length) : buffer.toString('latin1', 0, length)
}

/** Longest kernel file that is read whole. */
const MAX_BYTES = 4 * 2 ** 20

/** The kernel hands out a page at a time of a file of many records. */
const pieceBuffer = Buffer.allocUnsafeSlow(4096)

/**
 * A long kernel file as the kernel hands it out: read by read, so that nobody waits for all of it.
 * @param {string} file
 * @returns {Generator<string, void>} pieces that end where a line ends
 * @throws what the file system throws
 */
function * linesOf (file) {
  const descriptor = new OwnDescriptor(openSync(file, 'r'))
  try {
    let rest = ''
    for (let bytes; (bytes = descriptor.read(pieceBuffer, pieceBuffer.length, null)) > 0;) {
      const text = rest + textOf(pieceBuffer, bytes)
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      yield text.slice(0, end)
    }
    if (rest !== '') yield rest
  } finally {
    descriptor.close()
  }
}

/**
 * Kernel files that are read again and again, into one buffer that is kept: no garbage per read but
 * the text. What is read must be a whole answer, as that of all single-record files is.
 * @typedef {object} KernelFiles both reads throw what the file system throws
 * @property {(file: string) => string} read opens the file, and closes it
 * @property {(file: string) => string} readKept keeps it open: opening takes longer than reading;
 *   the kernel answers each read at 0 anew. At most MOST_KEPT files, then as `read`
 * @property {() => void} close
 */

/** With the socket, that of a capture and the file of a scan the agent holds six descriptors. */
const MOST_KEPT = 3

/** @returns {KernelFiles} */
function kernelFiles () {
  let buffer = Buffer.allocUnsafeSlow(4096)
  /** @type {Map<string, OwnDescriptor>} */
  const kept = new Map()

  /** @param {string} file */
  const read = file => {
    const fd = openSync(file, 'r')
    try {
      for (;;) {
        const length = readSync(fd, buffer, 0, buffer.length, 0)
        if (length < buffer.length || length >= MAX_BYTES) return textOf(buffer, length)
        buffer = Buffer.allocUnsafeSlow(2 * length)
      }
    } finally {
      closeSync(fd)
    }
  }
  /** @param {string} file */
  const readKept = file => {
    let descriptor = kept.get(file)
    try {
      if (!descriptor) {
        if (kept.size >= MOST_KEPT) return read(file)
        kept.set(file, descriptor = new OwnDescriptor(openSync(file, 'r')))
      }
      const length = descriptor.read(buffer, buffer.length, 0)
      return length < buffer.length ? textOf(buffer, length) : read(file)
    } catch (error) {
      kept.delete(file)
      descriptor?.close()
      if (error instanceof LostDescriptor) return read(file)
      throw error
    }
  }
  return {
    read,
    readKept,
    close () {
      for (const descriptor of kept.values()) descriptor.close()
      kept.clear()
    }
  }
}

/**
 * @param {unknown} error of a read
 * @returns {boolean} whether another attempt may succeed: the process is out of descriptors for now
 *   (EMFILE, ENFILE), or the app closed one of the agent's
 */
const isTemporary = error => error instanceof LostDescriptor ||
  Boolean(/** @type {NodeJS.ErrnoException} */ (error).code?.endsWith('FILE'))

/**
 * The number that follows a prefix where that begins a word: made without a regular expression,
 * which would be compiled anew for code that runs once a second.
 * @param {string} text
 * @param {string} prefix
 * @returns {number | undefined}
 */
function numberAfter (text, prefix) {
  for (let at = text.indexOf(prefix); at >= 0; at = text.indexOf(prefix, at + 1)) {
    if (at > 0 && text.charCodeAt(at - 1) > 32) continue
    const number = parseInt(text.slice(at + prefix.length, at + prefix.length + 24), 10)
    return Number.isNaN(number) ? undefined : number
  }
}

/**
 * The whole numbers that a line begins with, as /proc/self/statm does.
 * @param {string} text
 * @param {number[]} numbers is filled, as far as there are any
 */
function leadingNumbers (text, numbers) {
  for (let i = 0, at = 0; i < numbers.length && at < text.length; i++, at++) {
    let number = 0
    for (let digit; (digit = text.charCodeAt(at) - 48) >= 0 && digit <= 9; at++) {
      number = 10 * number + digit
    }
    numbers[i] = number
  }
}

module.exports = { isTemporary, kernelFiles, linesOf, numberAfter, leadingNumbers, textOf }
