'use strict'

const FIRST_BYTES = 2 ** 20
/**
 * Upper bound of a name's bytes; longer names are cut. V8 itself cuts names at 1,024 characters.
 */
const MOST_NAME_BYTES = 4096
/** Part of V8's name for the edges of a WeakMap's entry, from the key and from the table. */
const WEAK_PAIR = ') pair in WeakMap (table @'
const ZERO = 48
const NINE = 57

/**
 * Names of nodes and edges. Bytes of all names lie in one Buffer, and a name is decoded when it is
 * read. The contents of an app's strings, which are most of a snapshot's strings, are dropped.
 */
class StringTable {
  #isName
  #bytes = Buffer.alloc(FIRST_BYTES)
  #used = 0
  /** Start of the bytes of each string; they end at the start of the next one. */
  #starts
  #length = 0
  /** Pairs of numbers: the index of a WeakMap entry's name, and the id of the entry's table. */
  #pairs = new Uint32Array(64)
  #pairTables = new Uint32Array(64)
  #pairCount = 0
  /** @type {Map<number, string>} */
  #decoded = new Map()

  /**
   * @param {Uint8Array} isName for each index 1 if the string is a name; other strings, and strings
   *   with higher indexes, are dropped
   */
  constructor (isName) {
    this.#isName = isName
    this.#starts = new Uint32Array(isName.length + 1)
  }

  /** Number of strings read from the file. */
  get length () {
    return this.#length
  }

  /**
   * @param {number} index index of the string; ascending
   * @param {Buffer} bytes JSON without its quotes
   */
  add (index, bytes) {
    this.#length = index + 1
    if (index >= this.#isName.length) return
    if (this.#isName[index] && !this.#addPair(index, bytes)) this.#keep(bytes)
    this.#starts[index + 1] = this.#used
  }

  /**
   * @param {number} index
   * @returns {string} the name; empty if the string is not a name
   */
  get (index) {
    const known = this.#decoded.get(index)
    if (known !== undefined) return known
    const name =
      index >= this.#isName.length
        ? ''
        : decode(this.#bytes.toString('utf8', this.#starts[index], this.#starts[index + 1]))
    this.#decoded.set(index, name)
    return name
  }

  /**
   * @param {string} name
   * @returns {number} index of the name; -1 if it is absent
   */
  indexOf (name) {
    const wanted = Buffer.from(JSON.stringify(name).slice(1, -1))
    const starts = this.#starts
    for (let at = this.#bytes.indexOf(wanted); at >= 0; at = this.#bytes.indexOf(wanted, at + 1)) {
      const index = this.#lastStartingAt(at)
      if (starts[index] === at && starts[index + 1] - at === wanted.length) return index
    }
    return -1
  }

  /**
   * @param {number} index index of an edge's name
   * @returns {number} id of the WeakMap's table if the edge is an entry of a WeakMap, otherwise 0
   */
  weakTable (index) {
    let low = 0
    let high = this.#pairCount - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const found = this.#pairs[middle]
      if (found === index) return this.#pairTables[middle]
      if (found < index) low = middle + 1
      else high = middle - 1
    }
    return 0
  }

  get hasWeakPairs () {
    return this.#pairCount > 0
  }

  /** @param {number} at position in #bytes */
  #lastStartingAt (at) {
    let low = 0
    let high = Math.min(this.#length, this.#isName.length) - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle] <= at) low = middle
      else high = middle - 1
    }
    return low
  }

  /** @param {Buffer} bytes */
  #keep (bytes) {
    const length = Math.min(bytes.length, MOST_NAME_BYTES)
    if (this.#used + length > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(2 * this.#bytes.length, this.#used + length))
      this.#bytes.copy(larger, 0, 0, this.#used)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#used, 0, length)
    this.#used += length
  }

  /**
   * @param {number} index
   * @param {Buffer} bytes
   * @returns {boolean} true if the string is the name of a WeakMap's entry
   */
  #addPair (index, bytes) {
    if (!(bytes[0] >= ZERO && bytes[0] <= NINE)) return false
    const at = bytes.lastIndexOf(WEAK_PAIR)
    if (at < 0) return false
    const table = parseInt(bytes.toString('latin1', at + WEAK_PAIR.length), 10)
    if (!(table > 0)) return false
    if (this.#pairCount === this.#pairs.length) {
      this.#pairs = grown(this.#pairs)
      this.#pairTables = grown(this.#pairTables)
    }
    this.#pairs[this.#pairCount] = index
    this.#pairTables[this.#pairCount++] = table
    return true
  }
}

/**
 * @param {Uint32Array} list
 * @returns {Uint32Array<ArrayBuffer>} a copy of twice the length
 */
function grown (list) {
  const larger = new Uint32Array(2 * list.length)
  larger.set(list)
  return larger
}

/**
 * @param {string} json without its quotes
 * @returns {string}
 */
function decode (json) {
  if (!json.includes('\\')) return json
  try {
    return JSON.parse(`"${json}"`)
  } catch {
    // The text was cut within an escape, or is damaged; it is used as the name unchanged.
    return json
  }
}

module.exports = { StringTable, grown }
