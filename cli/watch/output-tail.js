'use strict'

const fs = require('node:fs')

/** Bytes read from the end of an app's output for its last line. */
const TAIL_BYTES = 65_536

/**
 * @param {string} file file with the output of an app
 * @returns {string} end of the output
 */
function tailOf (file) {
  const fd = fs.openSync(file, 'r')
  try {
    const { size } = fs.fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES))
    fs.readSync(fd, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString()
  } finally {
    fs.closeSync(fd)
  }
}

module.exports = { tailOf }
