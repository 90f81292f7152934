'use strict'

const { readLayout } = require('./layout')
const { SnapshotError } = require('./snapshot-error')

/** @typedef {import('./layout').Layout} Layout */
/** @typedef {'nodes' | 'edges' | 'locations' | 'trace_function_infos'} NumberSection */

/**
 * Callbacks of a scanner, in the order of the file.
 * @typedef {object} Visitor
 * @property {(layout: Layout) => void} header receives the header; may throw to refuse the file
 * @property {(section: NumberSection, values: Float64Array, count: number) => void} numbers
 *   receives a batch of numbers; a record may be split between batches
 * @property {(index: number, bytes: Buffer, isCut: boolean) => void} string JSON without its
 *   quotes, valid during the call
 * @property {(section: string, position: number) => void} [begin] position of the byte after the
 *   opening bracket
 * @property {(section: string, position: number) => void} [end] position of the closing bracket
 */

const QUOTE = 34
const COMMA = 44
const COLON = 58
const BACKSLASH = 92
const OPENING_BRACKET = 91
const CLOSING_BRACKET = 93
const OPENING_BRACE = 123
const CLOSING_BRACE = 125
const ZERO = 48
const NINE = 57

/** Upper bound of the header. V8's header takes 2 KiB. */
const MOST_HEADER_BYTES = 65_536
const MOST_KEY_BYTES = 64
/**
 * Upper bound of a string. V8 cuts strings at 1,024 characters, and a character takes at most six
 * bytes in JSON.
 */
const MOST_STRING_BYTES = 8192
/** Upper bound of digits: larger numbers are not counts, ids or sizes, and 2^53 has 16 digits. */
const MOST_DIGITS = 15
const BATCH = 65_536

/** @type {Record<string, 'numbers' | 'strings'>} */
const SECTIONS = Object.freeze({
  nodes: 'numbers',
  edges: 'numbers',
  locations: 'numbers',
  trace_function_infos: 'numbers',
  strings: 'strings'
})

const isSpace = (/** @type {number} */ byte) =>
  byte === 32 || byte === 10 || byte === 13 || byte === 9

/**
 * Reads the JSON of a heap snapshot byte by byte, in pieces of any size. Nothing proportional to
 * the file is kept: numbers go to the visitor in batches, strings one by one.
 */
class SnapshotScanner {
  #visitor
  /** @type {(chunk: Buffer, at: number) => number} */
  #state
  /** Position in the file of the first byte of the current chunk. */
  #base = 0
  #values = new Float64Array(BATCH)
  #count = 0
  #value = 0
  /** Digits of the current number; negative when the number has ended. */
  #digits = 0
  /** @type {Layout | undefined} */
  #layout
  #section = ''
  /** Bytes of a header, a key or a string that began in an earlier chunk. */
  #held = Buffer.alloc(256)
  #heldBytes = 0
  #isCut = false
  #depth = 0
  #inString = false
  #isEscaped = false
  #strings = 0
  /** Names of the members seen so far. */
  #seen = new Set()

  /** @param {Visitor} visitor */
  constructor (visitor) {
    this.#visitor = visitor
    this.#state = this.#opening
  }

  /**
   * @param {Buffer} chunk
   * @throws {SnapshotError}
   */
  write (chunk) {
    let at = 0
    while (at < chunk.length) at = this.#state(chunk, at)
    this.#base += chunk.length
  }

  /**
   * Ends the scan at the end of the file.
   * @throws {SnapshotError} if the file is incomplete
   */
  end () {
    if (this.#state !== this.#afterwards) {
      const within = this.#section === '' ? 'its header' : `"${this.#section}"`
      throw new SnapshotError('truncated', `the snapshot ends within ${within}`, {
        position: this.#base
      })
    }
    for (const section of ['nodes', 'edges', 'strings']) {
      if (!this.#seen.has(section)) throw this.#malformed(`it lacks "${section}"`, 0)
    }
  }

  /**
   * @param {string} why
   * @param {number} at position in the current chunk
   */
  #malformed (why, at) {
    return new SnapshotError('malformed', `not a heap snapshot of V8: ${why}`, {
      position: this.#base + at
    })
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #opening (chunk, at) {
    if (isSpace(chunk[at])) return at + 1
    if (chunk[at] !== OPENING_BRACE) throw this.#malformed('the snapshot does not begin with {', at)
    this.#state = this.#beforeKey
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #beforeKey (chunk, at) {
    const byte = chunk[at]
    if (byte === QUOTE) {
      this.#heldBytes = 0
      this.#state = this.#key
    } else if (byte === CLOSING_BRACE && this.#layout) {
      this.#state = this.#afterwards
    } else if (!isSpace(byte) && byte !== COMMA) {
      throw this.#malformed('expected the name of a member', at)
    }
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #key (chunk, at) {
    if (chunk[at] !== QUOTE) {
      if (this.#heldBytes >= MOST_KEY_BYTES) throw this.#malformed('a name is too long', at)
      this.#held[this.#heldBytes++] = chunk[at]
      return at + 1
    }
    this.#section = this.#held.toString('latin1', 0, this.#heldBytes)
    if (this.#seen.has(this.#section)) {
      throw this.#malformed(`section "${this.#section}" occurs ` +
      'twice', at)
    }
    this.#seen.add(this.#section)
    if (!this.#layout && this.#section !== 'snapshot') {
      throw this.#malformed('its first member is not "snapshot"', at)
    }
    this.#state = this.#beforeValue
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #beforeValue (chunk, at) {
    const byte = chunk[at]
    if (isSpace(byte) || byte === COLON) return at + 1
    this.#heldBytes = 0
    this.#depth = 0
    const kind = SECTIONS[this.#section]
    if (!kind) {
      this.#inString = this.#isEscaped = false
      this.#state = this.#section === 'snapshot' ? this.#header : this.#skipped
      return at
    }
    if (byte !== OPENING_BRACKET) throw this.#malformed(`"${this.#section}" is not a list`, at)
    this.#visitor.begin?.(this.#section, this.#base + at + 1)
    this.#state = kind === 'numbers' ? this.#numbers : this.#betweenStrings
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #header (chunk, at) {
    if (this.#heldBytes >= MOST_HEADER_BYTES) throw this.#malformed('its header is too long', at)
    this.#hold(chunk, at, at + 1)
    if (!this.#isValueOver(chunk[at])) return at + 1
    const text = this.#held.toString('utf8', 0, this.#heldBytes)
    this.#layout = readLayout(text, this.#base + at)
    this.#visitor.header(this.#layout)
    this.#state = this.#beforeKey
    return at + 1
  }

  /**
   * Skips a value that is not needed.
   * @param {Buffer} chunk
   * @param {number} at
   */
  #skipped (chunk, at) {
    for (let i = at; i < chunk.length; i++) {
      const mayEnd = this.#depth === 0 && !this.#inString
      if (mayEnd && (chunk[i] === COMMA || chunk[i] === CLOSING_BRACE)) {
        this.#state = this.#beforeKey
        return i
      }
      if (this.#isValueOver(chunk[i])) {
        this.#state = this.#beforeKey
        return i + 1
      }
    }
    return chunk.length
  }

  /**
   * @param {number} byte
   * @returns {boolean} true if the byte closes the outermost bracket of a value
   */
  #isValueOver (byte) {
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (byte === BACKSLASH) this.#isEscaped = true
      else if (byte === QUOTE) this.#inString = false
    } else if (byte === QUOTE) {
      this.#inString = true
    } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      this.#depth++
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      return --this.#depth <= 0
    }
    return false
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #numbers (chunk, at) {
    const values = this.#values
    let value = this.#value
    let digits = this.#digits
    let count = this.#count
    let i = at
    for (; i < chunk.length; i++) {
      const byte = chunk[i]
      if (byte >= ZERO && byte <= NINE) {
        if (digits < 0 || digits === MOST_DIGITS) throw this.#malformed('a number is wrong', i)
        value = value * 10 + (byte - ZERO)
        digits++
      } else if (byte === COMMA && digits !== 0) {
        values[count++] = value
        value = digits = 0
        if (count === BATCH) {
          this.#flush(count)
          count = 0
        }
      } else if (isSpace(byte)) {
        if (digits > 0) digits = -digits
      } else {
        break
      }
    }
    this.#value = value
    this.#digits = digits
    this.#count = count
    return i === chunk.length ? i : this.#endOfNumbers(chunk, i)
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #endOfNumbers (chunk, at) {
    if (chunk[at] !== CLOSING_BRACKET) {
      throw this.#malformed(`"${this.#section}" contains a value that is not a whole number`, at)
    }
    if (this.#digits !== 0) this.#values[this.#count++] = this.#value
    this.#flush(this.#count)
    this.#value = this.#digits = this.#count = 0
    return this.#endSection(at)
  }

  /** @param {number} count */
  #flush (count) {
    this.#visitor.numbers(/** @type {NumberSection} */ (this.#section), this.#values, count)
  }

  /** @param {number} at */
  #endSection (at) {
    this.#visitor.end?.(this.#section, this.#base + at)
    this.#state = this.#beforeKey
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #betweenStrings (chunk, at) {
    const byte = chunk[at]
    if (byte === QUOTE) {
      this.#heldBytes = 0
      this.#isCut = false
      this.#isEscaped = false
      this.#state = this.#string
    } else if (byte === CLOSING_BRACKET) {
      return this.#endSection(at)
    } else if (byte !== COMMA && !isSpace(byte)) {
      throw this.#malformed('"strings" contains a value that is not a string', at)
    }
    return at + 1
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #string (chunk, at) {
    let i = at
    let isEscaped = this.#isEscaped
    for (; i < chunk.length; i++) {
      const byte = chunk[i]
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) isEscaped = true
      else if (byte === QUOTE) break
    }
    this.#isEscaped = isEscaped
    if (i === chunk.length || this.#heldBytes > 0 || i - at > MOST_STRING_BYTES) {
      this.#hold(chunk, at, i)
      if (i === chunk.length) return i
      this.#visitor.string(this.#strings++, this.#held.subarray(0, this.#heldBytes), this.#isCut)
    } else {
      this.#visitor.string(this.#strings++, chunk.subarray(at, i), false)
    }
    this.#state = this.#betweenStrings
    return i + 1
  }

  /**
   * Copies bytes that are still needed when the next chunk arrives.
   * @param {Buffer} chunk
   * @param {number} from
   * @param {number} to
   */
  #hold (chunk, from, to) {
    const most = this.#section === 'snapshot' ? MOST_HEADER_BYTES : MOST_STRING_BYTES
    const end = Math.min(to, from + most - this.#heldBytes)
    if (end < to) this.#isCut = true
    const bytes = this.#heldBytes + end - from
    if (bytes > this.#held.length) {
      const larger = Buffer.alloc(Math.max(bytes, 2 * this.#held.length))
      this.#held.copy(larger, 0, 0, this.#heldBytes)
      this.#held = larger
    }
    chunk.copy(this.#held, this.#heldBytes, from, end)
    this.#heldBytes = bytes
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   */
  #afterwards (chunk, at) {
    if (!isSpace(chunk[at])) throw this.#malformed('there is text after its end', at)
    return at + 1
  }
}

module.exports = { SnapshotScanner }
