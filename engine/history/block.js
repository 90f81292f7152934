'use strict'

const { deflateRawSync, inflateRawSync } = require('node:zlib')
const { exactBuffer } = require('./exact-buffer')

/**
 * Compression level of zlib. Its output is at most 10 % larger than with level 6, in half the time.
 */
const LEVEL = 1
const HEAD_BYTES = 8
/**
 * Upper bound of an unpacked block. The largest real block has ten minutes of seconds: 600 rows of
 * a hundred numbers.
 */
const MAX_BYTES = 4 * 2 ** 20

/**
 * Rows of numbers over time. They take half the space of doubles, and a tenth once packed. A column
 * stores its first number in double precision, and the differences from it in single precision.
 * Even a counter that is weeks old keeps 24 bits for its growth within the block.
 */
class Block {
  /** @type {number[]} */
  times = []
  #width
  #bases
  /** Numbers, row after row. */
  #cells

  /** @param {number} width columns */
  constructor (width) {
    this.#width = width
    this.#bases = new Float64Array(width).fill(NaN)
    this.#cells = new Float32Array(8 * width)
  }

  get length () {
    return this.times.length
  }

  /**
   * @param {number} time seconds; not earlier than the last row
   * @param {ArrayLike<number>} row NaN for an absent number
   */
  append (time, row) {
    const at = this.times.push(time) - 1
    if ((at + 1) * this.#width > this.#cells.length) {
      const cells = new Float32Array(2 * this.#cells.length)
      cells.set(this.#cells)
      this.#cells = cells
    }
    for (let c = 0; c < this.#width; c++) {
      if (Number.isNaN(this.#bases[c])) this.#bases[c] = row[c]
      this.#cells[at * this.#width + c] = row[c] - this.#bases[c]
    }
  }

  /**
   * @param {number} i row
   * @param {number} column
   * @returns {number} NaN if the number was absent
   */
  valueAt (i, column) {
    return this.#bases[column] + this.#cells[i * this.#width + column]
  }

  /**
   * Packs the columns. Bytes of the same significance lie next to each other, because such bytes
   * repeat and compress well.
   * @returns {Buffer}
   */
  pack () {
    const rows = this.times.length
    const raw = Buffer.alloc(HEAD_BYTES + 8 * (rows + this.#width) + 4 * rows * this.#width)
    raw.writeUInt32LE(rows, 0)
    raw.writeUInt32LE(this.#width, 4)
    let at = HEAD_BYTES
    for (const time of this.times) at = raw.writeDoubleLE(time, at)
    for (const base of this.#bases) at = raw.writeDoubleLE(base, at)
    const bytes = new Uint8Array(this.#cells.buffer)
    for (let weight = 0; weight < 4; weight++) {
      for (let c = 0; c < this.#width; c++) {
        for (let i = 0; i < rows; i++) raw[at++] = bytes[4 * (i * this.#width + c) + weight]
      }
    }
    return exactBuffer(deflateRawSync(raw, { level: LEVEL }))
  }

  /**
   * @param {Buffer} packed
   * @param {number} width expected width
   * @returns {Block}
   * @throws {Error} when the bytes are not a packed block
   */
  static unpack (packed, width) {
    const raw = inflateRawSync(packed, { maxOutputLength: MAX_BYTES })
    const [rows, found] =
      raw.length >= HEAD_BYTES ? [raw.readUInt32LE(0), raw.readUInt32LE(4)] : [0, 0]
    if (found !== width || raw.length !== HEAD_BYTES + 8 * (rows + width) + 4 * rows * width) {
      throw new Error(`${raw.length} bytes are not ${rows} rows of ${width}, but of ${found}`)
    }
    const block = new Block(width)
    block.times = Array.from({ length: rows }, (_, i) => raw.readDoubleLE(HEAD_BYTES + 8 * i))
    block.#bases = Float64Array.from({ length: width }, (_, c) =>
      raw.readDoubleLE(HEAD_BYTES + 8 * (rows + c))
    )
    block.#cells = new Float32Array(Math.max(1, rows * width))
    const bytes = new Uint8Array(block.#cells.buffer)
    let at = HEAD_BYTES + 8 * (rows + width)
    for (let weight = 0; weight < 4; weight++) {
      for (let c = 0; c < width; c++) {
        for (let i = 0; i < rows; i++) bytes[4 * (i * width + c) + weight] = raw[at++]
      }
    }
    block.#assertSound()
    return block
  }

  /** @throws {Error} if times run backwards, or a number is larger than any in a frame */
  #assertSound () {
    const { times } = this
    if (
      times.some((time, i) => !(time >= (times[i - 1] ?? 0) && time <= Number.MAX_SAFE_INTEGER))
    ) {
      throw new Error('its times are not in order')
    }
    const isSound = (/** @type {number} */ value) => Number.isNaN(value) || Math.abs(value) <= Number.MAX_SAFE_INTEGER
    if (!this.#bases.every(isSound) || !this.#cells.every(isSound)) {
      throw new Error('its numbers are too large')
    }
  }
}

module.exports = { Block }
