'use strict'

const { gzipSync } = require('node:zlib')
const { tar } = require('../../cli/triage/tar')

/**
 * A .tar.gz whose bytes depend only on its files, on every machine and Node.js, so that a committed
 * file can contain its SHA-256. Its content is stored, not compressed, since the output of deflate
 * differs between versions of zlib.
 * @param {readonly { name: string, mode: number, content: Buffer }[]} files
 * @returns {Buffer}
 */
function tarGz (files) {
  const gzip = gzipSync(tar(files), { level: 0 })
  // Byte 9 names the operating system that compressed: 255 is unknown.
  gzip[9] = 255
  return gzip
}

module.exports = { tarGz }
