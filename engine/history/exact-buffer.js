'use strict'

/**
 * A Buffer with memory of its own, for bytes that are retained. zlib returns a slice of 16 KiB and
 * Buffer.from() may return a slice of a pool: a few bytes would keep all of that alive.
 * @param {Buffer} bytes
 * @returns {Buffer}
 */
function exactBuffer (bytes) {
  const exact = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(exact)
  return exact
}

module.exports = { exactBuffer }
