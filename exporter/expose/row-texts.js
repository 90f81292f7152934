'use strict'

const { Turns } = require('../turns')

/** Small blocks go back to malloc, and come from there again, without leaving holes that nobody else fills. */
const BLOCK_BYTES = 16_384

/**
 * Text of many rows that is written batch by batch, some lines of every row each, and read row by row. It lies outside of V8's heap: as strings it would be copied by each
 * collection of a scrape, for which V8 makes the new space larger, and that stays.
 */
class RowTexts {
  /** All batches, one after the other. @type {Buffer[]} */
  #blocks = []
  /** Where in them each row of a batch ends. @type {Uint32Array[]} */
  #batches = []
  /** Of the batch that is being written. @type {number[]} */
  #ends = []
  /** In bytes. */
  length = 0

  /** @param {string} text of the next row of this batch; empty where it has none @param {string} [after] more of it: joined, they would be copied once more */
  write (text, after = '') {
    this.#append(text)
    this.#append(after)
    this.#ends.push(this.length)
  }

  /** The next row that is written is the first again. */
  endBatch () {
    this.#batches.push(Uint32Array.from(this.#ends))
    this.#ends = []
  }

  /** All rows, the lines of each together, in parts that can be sent. */
  async * parts () {
    const turns = new Turns()
    let left = this.length
    let part = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, left))
    let used = 0
    for (const piece of this.#pieces()) {
      for (let from = 0; from < piece.length;) {
        const copied = piece.copy(part, used, from)
        from += copied
        used += copied
        left -= copied
        if (used < part.length) continue
        yield part
        if (turns.over) await turns.next()
        part = Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, left))
        used = 0
      }
    }
  }

  /** @param {string} text */
  #append (text) {
    const size = Buffer.byteLength(text)
    const at = this.length % BLOCK_BYTES
    if (at > 0 && at + size <= BLOCK_BYTES) {
      this.length += this.#blocks[this.#blocks.length - 1].write(text, at)
      return
    }
    const bytes = Buffer.from(text)
    for (let from = 0; from < size;) {
      const at = this.length % BLOCK_BYTES
      if (at === 0) this.#blocks.push(Buffer.allocUnsafeSlow(BLOCK_BYTES))
      const copied = bytes.copy(this.#blocks[this.#blocks.length - 1], at, from)
      from += copied
      this.length += copied
    }
  }

  * #pieces () {
    const rows = Math.max(...this.#batches.map(ends => ends.length))
    for (let row = 0; row < rows; row++) {
      let batchStart = 0
      for (const ends of this.#batches) {
        const end = ends[Math.min(row, ends.length - 1)]
        for (let from = row === 0 ? batchStart : ends[Math.min(row, ends.length) - 1]; from < end;) {
          const to = Math.min(end, from - from % BLOCK_BYTES + BLOCK_BYTES)
          yield this.#blocks[Math.floor(from / BLOCK_BYTES)].subarray(from % BLOCK_BYTES, (to - 1) % BLOCK_BYTES + 1)
          from = to
        }
        batchStart = ends[ends.length - 1]
      }
    }
  }
}

module.exports = { RowTexts }
