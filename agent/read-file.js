'use strict'

const fs = require('node:fs')

/** What Buffer.toString comes to in the end: the way there is long where the code is cold. @param {Buffer} buffer @param {number} length @returns {string} */
const textOf = (buffer, length) => {
  const { latin1Slice } = /** @type {{ latin1Slice?: (start: number, end: number) => string }} */ (/** @type {unknown} */ (buffer))
  return latin1Slice ? latin1Slice.call(buffer, 0, length) : buffer.toString('latin1', 0, length)
}

/** Longest file that is read whole; /proc/self/maps of a large process is the longest there is. */
const MAX_BYTES = 4 * 2 ** 20

/**
 * Reads small kernel files into one buffer that is kept: no garbage per read but the text. The kernel makes such a file
 * anew for each open, and hands it out in pieces.
 * @returns {(file: string) => string} throws what the file system throws
 */
function fileReader () {
  let buffer = Buffer.allocUnsafeSlow(8192)
  return file => {
    const fd = fs.openSync(file, 'r')
    try {
      let length = 0
      for (;;) {
        const bytes = fs.readSync(fd, buffer, length, buffer.length - length, null)
        if (bytes === 0) return textOf(buffer, length)
        length += bytes
        if (length === MAX_BYTES) return textOf(buffer, length)
        if (length === buffer.length) {
          const larger = Buffer.allocUnsafeSlow(Math.min(2 * buffer.length, MAX_BYTES))
          buffer.copy(larger)
          buffer = larger
        }
      }
    } finally {
      fs.closeSync(fd)
    }
  }
}

/** The kernel hands out a page at a time of a file of many records. */
const pieceBuffer = Buffer.allocUnsafeSlow(4096)

/**
 * A long kernel file as the kernel hands it out: read by read, so that nobody waits for all of it.
 * @param {string} file
 * @returns {Generator<string, void>} pieces that end where a line ends @throws what the file system throws
 */
function * linesOf (file) {
  const fd = fs.openSync(file, 'r')
  try {
    let rest = ''
    for (let bytes; (bytes = fs.readSync(fd, pieceBuffer, 0, pieceBuffer.length, null)) > 0;) {
      const text = rest + textOf(pieceBuffer, bytes)
      const end = text.lastIndexOf('\n') + 1
      rest = text.slice(end)
      yield text.slice(0, end)
    }
    if (rest !== '') yield rest
  } finally {
    fs.closeSync(fd)
  }
}

/**
 * Reads the same few kernel files again and again: they stay open, which spares the opening, by far the dearest part. The
 * kernel answers each read at 0 anew. What is read must be a whole answer, as that of all single-record files is.
 * @returns {((file: string) => string) & { close: () => void }} throws what the file system throws
 */
function keptFileReader () {
  let buffer = Buffer.allocUnsafeSlow(4096)
  /** @type {Map<string, number>} */
  const descriptors = new Map()
  /** @param {string} file @returns {string} */
  const read = file => {
    let fd = descriptors.get(file)
    if (fd === undefined) descriptors.set(file, fd = fs.openSync(file, 'r'))
    try {
      let length = fs.readSync(fd, buffer, 0, buffer.length, 0)
      while (length === buffer.length && length < MAX_BYTES) {
        buffer = Buffer.allocUnsafeSlow(2 * length)
        length = fs.readSync(fd, buffer, 0, buffer.length, 0)
      }
      return textOf(buffer, length)
    } catch (error) {
      descriptors.delete(file)
      fs.closeSync(fd)
      throw error
    }
  }
  return Object.assign(read, {
    close () {
      for (const fd of descriptors.values()) fs.closeSync(fd)
      descriptors.clear()
    }
  })
}

/**
 * The number that follows a prefix where that begins a word: made without a regular expression, which would be compiled anew
 * for code that runs once a second.
 * @param {string} text @param {string} prefix @returns {number | undefined}
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
 * @param {string} text @param {number[]} numbers is filled, as far as there are any
 */
function leadingNumbers (text, numbers) {
  for (let i = 0, at = 0; i < numbers.length && at < text.length; i++, at++) {
    let number = 0
    for (let digit; (digit = text.charCodeAt(at) - 48) >= 0 && digit <= 9; at++) number = 10 * number + digit
    numbers[i] = number
  }
}

module.exports = { fileReader, keptFileReader, linesOf, numberAfter, leadingNumbers }
