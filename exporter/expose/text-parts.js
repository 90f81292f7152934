'use strict'

/**
 * malloc reuses parts of this size without leaving holes. Each part costs a system call, and the
 * metrics of ten targets fill three.
 */
const PART_CHARACTERS = 65_536

/**
 * A long text that is written in pieces and read in parts. Full parts are Buffers outside of V8's
 * heap. Otherwise each GC during a scrape would copy 20 MB of strings, and V8 would enlarge its new
 * space permanently.
 */
class TextParts {
  /** @type {Buffer[]} */
  #parts = []
  #tail = ''

  get isEmpty () {
    return this.#parts.length === 0 && this.#tail === ''
  }

  /** @param {string} text */
  write (text) {
    this.#tail += text
    if (this.#tail.length >= PART_CHARACTERS) this.#endPart()
  }

  /** @param {TextParts} other other text, which is appended */
  append (other) {
    if (other.#parts.length > 0) {
      this.#endPart()
      this.#parts.push(...other.#parts)
    }
    this.write(other.#tail)
  }

  /** @returns {Buffer[]} the whole text */
  end () {
    this.#endPart()
    return this.#parts
  }

  #endPart () {
    if (this.#tail !== '') this.#parts.push(Buffer.from(this.#tail))
    this.#tail = ''
  }
}

module.exports = { TextParts }
