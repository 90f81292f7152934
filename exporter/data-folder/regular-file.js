'use strict'

const fs = require('node:fs')

/**
 * O_NOFOLLOW refuses a link, and O_NONBLOCK opens a FIFO at once instead of waiting for its writer:
 * open(2). Windows has neither.
 */
const FLAGS = fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) |
  (fs.constants.O_NONBLOCK ?? 0)

/**
 * @param {string} file
 * @param {fs.Stats} stats
 * @throws {Error} if the file is not regular
 */
function assertRegular (file, stats) {
  if (!stats.isFile()) throw new Error(`${file}: expected a regular file`)
}

/**
 * Opens a file for reading. The file must be regular, not a link, FIFO, device or folder.
 * @param {string} file
 * @returns {{ fd: number, bytes: number }} descriptor, to be closed by the caller
 * @throws {Error} if the file is not regular, or on an error of the file system
 */
function openRegularFile (file) {
  // Opening a device can have an effect, so the path is checked first. The final decision is made
  // on the descriptor.
  assertRegular(file, fs.lstatSync(file))
  const fd = fs.openSync(file, FLAGS)
  try {
    const stats = fs.fstatSync(fd)
    assertRegular(file, stats)
    return { fd, bytes: stats.size }
  } catch (error) {
    fs.closeSync(fd)
    throw error
  }
}

/**
 * @param {number} fd
 * @param {number} length
 * @param {number} [offset]
 * @returns {Buffer} bytes; fewer if the file ends earlier
 */
function readBytes (fd, length, offset = 0) {
  const bytes = Buffer.alloc(length)
  let filled = 0
  while (filled < length) {
    const read = fs.readSync(fd, bytes, filled, length - filled, offset + filled)
    if (read === 0) break
    filled += read
  }
  return bytes.subarray(0, filled)
}

/**
 * Reads a regular file. It reads at most the size that the kernel reports, which is 0 for the
 * endless files of /proc.
 * @param {string} file
 * @param {{ maxBytes: number }} options
 * @returns {Buffer}
 * @throws {Error} if the file is not regular or too large, or on an error of the file system
 */
function readRegularFile (file, { maxBytes }) {
  const { fd, bytes } = openRegularFile(file)
  try {
    if (bytes > maxBytes) throw new Error(`${file}: expected at most ${maxBytes} bytes, got ${bytes}`)
    return readBytes(fd, bytes)
  } finally {
    fs.closeSync(fd)
  }
}

module.exports = { openRegularFile, readBytes, readRegularFile }
