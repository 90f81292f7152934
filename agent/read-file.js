'use strict'

const fs = require('node:fs')

/** Longest file that is read; /proc/self/maps of a large process is the longest there is. */
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
        if (bytes === 0) return buffer.toString('latin1', 0, length)
        length += bytes
        if (length === MAX_BYTES) return buffer.toString('latin1', 0, length)
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

module.exports = { fileReader }
