'use strict'

const { SnapshotScanner } = require('./snapshot-scanner')

/** @typedef {import('./layout').Layout} Layout */

/** Bit for strings that name a class, function or variable of the app, Node.js or V8. */
const OF_CODE = 1
/** Bit for strings that name a property. */
const OF_PROPERTY = 2

/** Types of nodes whose names are contents. */
const CONTENTS = new Set(['string', 'concatenated string', 'sliced string', 'bigint', 'regexp'])
/** Types of nodes whose names are contents, unless they look like names. */
const NAMED_BY_APP = new Set(['number', 'symbol'])
/** An object with more properties is a dictionary, whose keys are contents. */
const MOST_PROPERTIES = 64
/**
 * Property names that look like identifiers in code. Longer names, or names with more digits, may
 * be tokens or ids.
 */
const IDENTIFIER = /^(?:[gs]et )?[#$]?[A-Za-z_$][\w$]{0,39}$/
const SYMBOL = /^<symbol [\w.:# -]{0,60}>$/
const MOST_DIGITS = 3
/** A script whose name is its source. */
const DATA_URL = /^data:/i
/** Names that V8 gives to numbers. */
const KIND_OF_NUMBER = /^[a-z ]+$/
const WEAK_PAIR =
  /^(\d+) \/ part of key \(.*@(\d+)\) -> value \(.*@(\d+)\) pair in WeakMap \(table @(\d+)\)$/s
const FLUSH_BYTES = 65_536

/**
 * Copies a heap snapshot without the contents of the app's strings: each becomes `redacted N`, so
 * that equal strings stay equal. It keeps the names of classes, functions, variables and scripts
 * (paths of files). Names of properties are kept if they look like identifiers and belong to
 * objects with at most 64 properties. Sizes, ids and references stay unchanged.
 */
class Redactor {
  #emit
  #scanner
  /** @type {Layout | undefined} */
  #layout
  /** Usage bits of each string. */
  #usage = new Uint8Array(65_536)
  /** Number of edges of each node. */
  #edgeCounts = new Uint32Array(0)
  #node = 0
  #edgesLeft = 0
  #isDictionary = false
  #globals = new Set([0])
  #rest = /** @type {number[]} */ ([])
  /** Bytes of the file that were read before the current chunk. */
  #base = 0
  /** Position in the file from which bytes are copied unchanged. */
  #copyFrom = 0
  #inStrings = false
  /** @type {string[]} */
  #pieces = []
  #pieceBytes = 0
  #redacted = 0
  /** @type {Buffer} */
  #chunk = Buffer.alloc(0)

  /** @param {(bytes: Buffer) => void} emit receives the copy piece by piece */
  constructor (emit) {
    this.#emit = emit
    this.#scanner = new SnapshotScanner({
      header: layout => {
        this.#layout = layout
        this.#edgeCounts = new Uint32Array(layout.nodeCount)
      },
      begin: (section, position) => this.#begin(section, position),
      end: (section, position) => this.#end(section, position),
      numbers: (section, values, count) => {
        if (section === 'nodes') this.#records(this.layout.nodeFields, values, count, this.#addNode)
        if (section === 'edges') this.#records(this.layout.edgeFields, values, count, this.#addEdge)
      },
      string: (index, bytes) => this.#string(index, bytes)
    })
  }

  /** @returns {Layout} */
  get layout () {
    return /** @type {Layout} */ (this.#layout)
  }

  /** Number of strings replaced so far. */
  get redacted () {
    return this.#redacted
  }

  /**
   * @param {Buffer} chunk the next bytes of the file
   * @throws {import('./snapshot-error').SnapshotError}
   */
  write (chunk) {
    this.#chunk = chunk
    this.#scanner.write(chunk)
    const from = this.#copyFrom - this.#base
    if (!this.#inStrings && from < chunk.length) this.#emit(Buffer.from(chunk.subarray(from)))
    this.#base += chunk.length
    this.#copyFrom = Math.max(this.#copyFrom, this.#base)
  }

  /** @throws {import('./snapshot-error').SnapshotError} if the file breaks off */
  end () {
    this.#scanner.end()
  }

  /**
   * @param {string} section
   * @param {number} position
   */
  #begin (section, position) {
    this.#rest = []
    this.#node = -1
    this.#edgesLeft = 0
    if (section !== 'strings') return
    const from = this.#copyFrom - this.#base
    this.#emit(Buffer.from(this.#chunk.subarray(from, position - this.#base)))
    this.#inStrings = true
  }

  /**
   * @param {string} section
   * @param {number} position
   */
  #end (section, position) {
    if (section !== 'strings') return
    this.#flush()
    this.#inStrings = false
    this.#copyFrom = position
  }

  /**
   * @param {number} width
   * @param {Float64Array} values
   * @param {number} count
   * @param {(record: ArrayLike<number>) => void} add
   */
  #records (width, values, count, add) {
    let at = 0
    while (this.#rest.length > 0 && this.#rest.length < width && at < count) {
      this.#rest.push(values[at++])
    }
    if (this.#rest.length === width) add.call(this, this.#rest.splice(0))
    for (; at + width <= count; at += width) add.call(this, values.subarray(at, at + width))
    while (at < count) this.#rest.push(values[at++])
  }

  /** @param {ArrayLike<number>} record */
  #addNode (record) {
    const { node, nodeTypes } = this.layout
    this.#edgeCounts[++this.#node] = record[node.edge_count]
    const type = nodeTypes[record[node.type]]
    if (NAMED_BY_APP.has(type)) this.#use(record[node.name], OF_PROPERTY)
    else if (!CONTENTS.has(type)) this.#use(record[node.name], OF_CODE)
  }

  /** @param {ArrayLike<number>} record */
  #addEdge (record) {
    const { edge, edgeTypes, nodeFields } = this.layout
    while (this.#edgesLeft === 0 && this.#node < this.#edgeCounts.length) {
      this.#edgesLeft = this.#edgeCounts[++this.#node]
      this.#isDictionary = this.#edgesLeft > MOST_PROPERTIES && !this.#globals.has(this.#node)
    }
    this.#edgesLeft--
    const type = edgeTypes[record[edge.type]]
    const name = record[edge.name_or_index]
    if (type === 'element' || type === 'hidden') return
    if (this.#node === 0) this.#globals.add(record[edge.to_node] / nodeFields)
    if (type !== 'property') this.#use(name, OF_CODE)
    else if (!this.#isDictionary) this.#use(name, OF_PROPERTY)
  }

  /**
   * @param {number} name
   * @param {number} usage
   */
  #use (name, usage) {
    if (name >= this.#usage.length) {
      const larger = new Uint8Array(Math.max(name + 1, 2 * this.#usage.length))
      larger.set(this.#usage)
      this.#usage = larger
    }
    this.#usage[name] |= usage
  }

  /**
   * @param {number} index
   * @param {Buffer} bytes
   */
  #string (index, bytes) {
    const json = bytes.toString('utf8')
    const kept = keptText(json, this.#usage[index] ?? 0)
    const text = kept ?? `redacted ${index}`
    if (kept !== json) this.#redacted++
    this.#pieces.push(`${index === 0 ? '' : ',\n'}"${text}"`)
    this.#pieceBytes += text.length
    if (this.#pieceBytes > FLUSH_BYTES) this.#flush()
  }

  #flush () {
    if (this.#pieces.length > 0) this.#emit(Buffer.from(this.#pieces.join('')))
    this.#pieces = []
    this.#pieceBytes = 0
  }
}

/**
 * @param {string} json a string without its quotes
 * @param {number} usage
 * @returns {string | null} the text to keep; null if nothing of the string may be kept
 */
function keptText (json, usage) {
  const pair = WEAK_PAIR.exec(json)
  if (pair) {
    const [, entry, key, value, table] = pair
    return `${entry} / part of key (@${key}) -> value (@${value}) pair in WeakMap (table @${table})`
  }
  if (usage & OF_CODE) return DATA_URL.test(json) ? null : json
  if (!(usage & OF_PROPERTY)) return null
  if ((json.match(/\d/g)?.length ?? 0) > MOST_DIGITS) return null
  return IDENTIFIER.test(json) || SYMBOL.test(json) || KIND_OF_NUMBER.test(json) ? json : null
}

module.exports = { Redactor }
