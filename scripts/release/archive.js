'use strict'

const { gzipSync } = require('node:zlib')
const { tar } = require('../../cli/triage/tar')

/**
 * Creates a .tar.gz whose bytes depend only on its files, not on machine or Node.js, so that a
 * committed file can contain its SHA-256. The content is stored, not compressed, because the output
 * of deflate differs between versions of zlib.
 * @param {readonly { name: string, mode: number, content: Buffer }[]} files
 * @returns {Buffer}
 */
function tarGz (files) {
  const gzip = gzipSync(tar(files), { level: 0 })
  // Byte 9 of a gzip header is the operating system of its writer; 255 means unknown.
  gzip[9] = 255
  return gzip
}

module.exports = { tarGz }
