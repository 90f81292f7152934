'use strict'

const BLOCK_BYTES = 512
/**
 * Offset and length of a header's fields in POSIX ustar.
 * @type {Record<string, [offset: number, length: number]>}
 */
const FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8]
}

/**
 * @param {string} name name of the file, at most 100 characters
 * @param {number} mode
 * @param {number} bytes
 */
function header (name, mode, bytes) {
  const block = Buffer.alloc(BLOCK_BYTES)
  const write = (/** @type {string} */ field, /** @type {string} */ text) =>
    block.write(text, ...FIELDS[field])
  const octal = (/** @type {number} */ value, /** @type {number} */ digits) =>
    value.toString(8).padStart(digits, '0')
  write('name', name)
  write('mode', octal(mode, 7))
  write('uid', octal(0, 7))
  write('gid', octal(0, 7))
  write('size', octal(bytes, 11))
  write('mtime', octal(0, 11))
  write('type', '0')
  write('magic', 'ustar\0' + '00')
  // The checksum counts its own field as spaces.
  write('checksum', ' '.repeat(8))
  write('checksum', `${octal(block.reduce((sum, byte) => sum + byte, 0), 6)}\0 `)
  return block
}

/**
 * Creates a .tar whose bytes depend only on its files.
 * @param {readonly { name: string, mode: number, content: Buffer }[]} files
 * @returns {Buffer}
 */
function tar (files) {
  const blocks = files.flatMap(({ name, mode, content }) => [
    header(name, mode, content.length),
    content,
    Buffer.alloc(-content.length & (BLOCK_BYTES - 1))
  ])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)])
}

module.exports = { tar }
