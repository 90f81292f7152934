'use strict'

/** malloc reuses parts of this size without leaving holes. */
const PART_CHARACTERS = 16_384

/**
 * A long text, written in pieces and read in parts. Full parts lie outside of V8's heap: 20 MB of
 * strings would be copied by each collection of a scrape, and V8 makes the new space larger for
 * them, for good.
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

  /** @param {TextParts} other whose text follows */
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
