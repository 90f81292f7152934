'use strict'

const { OwnDescriptor, LostDescriptor } = require('./own-descriptor')
const { closeSync, openSync, readSync } = require('./primordials')

/**
 * Calls the native function behind Buffer.toString directly: the JavaScript in between is slow in
 * cold code.
 * @param {Buffer} buffer
 * @param {number} length
 * @returns {string}
 */
const decodeLatin1 = (buffer, length) => {
  const { latin1Slice } = /** @type {{ latin1Slice?: (start: number, end: number) => string }} */ (/** @type {unknown} */ (buffer))
  return latin1Slice ? latin1Slice.call(buffer, 0, length) : buffer.toString('latin1', 0, length)
}

/** Longest content that `read` returns. */
const MAX_BYTES = 4 * 2 ** 20

/** The kernel returns one page per read of a file of many records. */
const pieceBuffer = Buffer.allocUnsafeSlow(4096)

/**
 * Reads a long kernel file in pieces, so that the app never waits for the whole file.
 * @param {string} file
 * @returns {Generator<string, void>} pieces of whole lines
 * @throws error of the file system
 */
function * readLines (file) {
  const descriptor = new OwnDescriptor(openSync(file, 'r'))
  try {
    let rest = ''
    for (let bytes; (bytes = descriptor.read(pieceBuffer, pieceBuffer.length, null)) > 0;) {
      const text = rest + decodeLatin1(pieceBuffer, bytes)
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
 * Repeated reads of kernel files into one buffer: each read leaves only its text as garbage. One
 * read must return the whole file, which has one record.
 * @typedef {object} KernelFiles both reads throw errors of the file system
 * @property {(file: string) => string} read opens and closes the file
 * @property {(file: string) => string} readKept keeps the file open, as opening takes longer than
 *   reading; the kernel renews the content at position 0. Beyond MOST_KEPT files same as `read`
 * @property {() => void} close
 */

/**
 * With its socket, the socket of a capture and the file of a scan, the agent holds at most six
 * descriptors.
 */
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
        if (length < buffer.length || length >= MAX_BYTES) return decodeLatin1(buffer, length)
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
      return length < buffer.length ? decodeLatin1(buffer, length) : read(file)
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
 * @param {unknown} error from a read
 * @returns {boolean} true: a retry may succeed, as the process is out of descriptors (EMFILE,
 *   ENFILE), or the app closed one of the agent's
 */
const isTemporary = error => error instanceof LostDescriptor ||
  Boolean(/** @type {NodeJS.ErrnoException} */ (error).code?.endsWith('FILE'))

/**
 * The number after a prefix at the start of a word. The function uses no regular expression: V8
 * would recompile it in code that runs once a second.
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
 * Parses the whole numbers at the start of a line, as in /proc/self/statm.
 * @param {string} text
 * @param {number[]} numbers result; its length limits the count
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

module.exports = { isTemporary, kernelFiles, readLines, numberAfter, leadingNumbers, decodeLatin1 }
