'use strict'

/**
 * A Buffer of its own for bytes that are kept: what zlib returns is a part of 16 KiB, and what
 * Buffer.from() does may be one of a pool; a few bytes would hold on to all of it.
 * @param {Buffer} bytes
 * @returns {Buffer}
 */
function exactBuffer (bytes) {
  const exact = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(exact)
  return exact
}

module.exports = { exactBuffer }
