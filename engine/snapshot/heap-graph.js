'use strict'

const { predictMemory } = require('./layout')
const { SnapshotError } = require('./snapshot-error')
const { SnapshotScanner } = require('./snapshot-scanner')
const { StringTable, grown } = require('./string-table')

/** @typedef {import('./layout').Layout} Layout */

/** Type that replaces an edge's own type if the edge retains nothing. */
const NOT_RETAINING = 255
/** Node types whose names are contents of an app's strings. */
const CONTENTS = new Set(['string', 'concatenated string', 'sliced string'])
/** Edge types whose names are strings; other edges have numbers. */
const NAMED_EDGES = new Set(['context', 'property', 'internal', 'shortcut', 'weak'])
/** Allowance for strings that belong to no node and no edge. */
const SPARE_STRINGS = 65_536

/**
 * Nodes and edges of a heap snapshot in columns. Nodes and edges are numbered from 0 in the order
 * of the file; edges are ordered by the nodes that they leave.
 */
class HeapGraph {
  /** @param {Layout} layout */
  constructor (layout) {
    const { nodeCount, edgeCount, location } = layout
    this.layout = layout
    this.nodeCount = nodeCount
    this.edgeCount = edgeCount
    /** Index of `layout.nodeTypes`. */
    this.nodeType = new Uint8Array(nodeCount)
    this.nodeName = new Uint32Array(nodeCount)
    this.nodeId = new Uint32Array(nodeCount)
    /** Sizes in bytes. Sizes from 4 GiB on are in `#largeBytes`. */
    this.nodeBytes = new Uint32Array(nodeCount)
    /** The edges of node n are firstEdge[n] up to, not including, firstEdge[n + 1]. */
    this.firstEdge = new Uint32Array(nodeCount + 1)
    /** Index of `layout.edgeTypes`, or NOT_RETAINING. */
    this.edgeType = new Uint8Array(edgeCount)
    /** Index of a name, or a number, depending on the edge's type. */
    this.edgeName = new Uint32Array(edgeCount)
    this.edgeTo = new Uint32Array(edgeCount)
    /** Row of `locations` plus 1; 0 without a location. */
    this.locationRow = new Uint32Array(location ? nodeCount : 0)
    /** Script id, line and column from 0, of each row. */
    this.locations = new Uint32Array(3 * 1024)
    this.locationCount = 0
    /** @type {Map<number, number>} */
    this.largeBytes = new Map()
    this.strings = new StringTable(new Uint8Array(0))
    this.contentTypes = layout.nodeTypes.map(name => CONTENTS.has(name))
    this.namedEdgeTypes = layout.edgeTypes.map(name => NAMED_EDGES.has(name))
  }

  /** @param {number} node */
  bytesOf (node) {
    return this.largeBytes.get(node) ?? this.nodeBytes[node]
  }

  /**
   * @param {number} node
   * @returns {string} name of the type in `meta`
   */
  typeOf (node) {
    return this.layout.nodeTypes[this.nodeType[node]] ?? 'unknown'
  }

  /**
   * @param {number} node
   * @returns {string} name; empty for strings, whose contents are not stored
   */
  nameOf (node) {
    return this.contentTypes[this.nodeType[node]] ? '' : this.strings.get(this.nodeName[node])
  }

  /**
   * @param {number} edge
   * @returns {string} name of the type in `meta`
   */
  edgeTypeOf (edge) {
    return this.layout.edgeTypes[this.edgeType[edge]] ?? 'unknown'
  }

  /**
   * @param {number} edge
   * @returns {string | number} name of the edge; a number for an element
   */
  edgeNameOf (edge) {
    const name = this.edgeName[edge]
    return this.namedEdgeTypes[this.edgeType[edge]] ? this.strings.get(name) : name
  }

  /**
   * @param {number} node
   * @returns {{ scriptId: number, line: number, column: number } | null} line and column from 1: of
   *   a function its own position, of an object the position of its constructor
   */
  locationOf (node) {
    const row = (this.locationRow[node] ?? 0) - 1
    if (row < 0) return null
    const [scriptId, line, column] = this.locations.subarray(3 * row, 3 * row + 3)
    return { scriptId, line: line + 1, column: column + 1 }
  }
}

/** Builds a graph while a file is scanned. */
class GraphBuilder {
  #allowedBytes
  /** @type {HeapGraph | undefined} */
  #graph
  #node = 0
  #edge = 0
  /** Numbers of a record that is split between two batches. */
  #rest = new Float64Array(16)
  #restCount = 0
  /** @type {Uint8Array} */
  #isName = new Uint8Array(0)
  #position = 0
  #seen = new Set()

  /** @param {number} allowedBytes */
  constructor (allowedBytes) {
    this.#allowedBytes = allowedBytes
  }

  /** @type {import('./snapshot-scanner').Visitor['header']} */
  header (layout) {
    const predictedBytes = predictMemory(layout)
    if (predictedBytes > this.#allowedBytes) {
      throw new SnapshotError(
        'too_large',
        `${layout.nodeCount} nodes and ${layout.edgeCount} edges need more memory than allowed`,
        { predictedBytes, allowedBytes: this.#allowedBytes }
      )
    }
    this.#graph = new HeapGraph(layout)
  }

  /** @type {NonNullable<import('./snapshot-scanner').Visitor['begin']>} */
  begin (section, position) {
    const needed = { edges: 'nodes', locations: 'nodes', strings: 'edges' }[section]
    if (needed && !this.#seen.has(needed)) {
      throw this.#malformed(`section "${section}" comes before "${needed}"`)
    }
    this.#position = position
    this.#restCount = 0
    if (section === 'strings') this.#beginStrings()
  }

  /** @type {NonNullable<import('./snapshot-scanner').Visitor['end']>} */
  end (section, position) {
    this.#position = position
    this.#seen.add(section)
    const graph = this.graph
    if (this.#restCount > 0) throw this.#malformed(`the last record of "${section}" is incomplete`)
    if (section === 'nodes') {
      this.#checkCount('node_count', graph.nodeCount, this.#node)
      this.#checkCount('the number of edges of all ' +
        'nodes', graph.firstEdge[this.#node], graph.edgeCount)
    }
    if (section === 'edges') this.#checkCount('edge_count', graph.edgeCount, this.#edge)
    if (section === 'strings' && this.#isName.length > graph.strings.length) {
      throw this.#malformed('a name is missing in its strings')
    }
  }

  /** @type {import('./snapshot-scanner').Visitor['numbers']} */
  numbers (section, values, count) {
    const { layout } = this.graph
    if (section === 'nodes') {
      this.#records(layout.nodeFields, values, count, (list, at) => this.#addNode(list, at))
    } else if (section === 'edges') {
      this.#records(layout.edgeFields, values, count, (list, at) => this.#addEdge(list, at))
    } else if (section === 'locations' && layout.location) {
      this.#records(layout.locationFields, values, count, (list, at) => this.#addLocation(list, at))
    }
  }

  /** @type {import('./snapshot-scanner').Visitor['string']} */
  string (index, bytes) {
    this.graph.strings.add(index, bytes)
  }

  /** @returns {HeapGraph} */
  get graph () {
    return /** @type {HeapGraph} */ (this.#graph)
  }

  /** @param {string} why */
  #malformed (why) {
    return new SnapshotError('malformed', `not a heap snapshot of V8: ${why}`, {
      position: this.#position
    })
  }

  /**
   * @param {string} what
   * @param {number} wanted
   * @param {number} found
   */
  #checkCount (what, wanted, found) {
    if (wanted !== found) {
      throw this.#malformed(`${what} should be ${wanted}, but is ${found}`)
    }
  }

  /**
   * @param {number} width count of numbers in a record
   * @param {Float64Array} values
   * @param {number} count
   * @param {(list: Float64Array, at: number) => void} add
   */
  #records (width, values, count, add) {
    let at = 0
    if (width > this.#rest.length) throw this.#malformed('its records have too many fields')
    while (this.#restCount > 0 && this.#restCount < width && at < count) {
      this.#rest[this.#restCount++] = values[at++]
    }
    if (this.#restCount === width) {
      add(this.#rest, 0)
      this.#restCount = 0
    }
    for (; at + width <= count; at += width) add(values, at)
    while (at < count) this.#rest[this.#restCount++] = values[at++]
  }

  /**
   * @param {Float64Array} list
   * @param {number} at
   */
  #addNode (list, at) {
    const graph = this.graph
    const { node, nodeTypes } = graph.layout
    const n = this.#node++
    if (n >= graph.nodeCount) throw this.#malformed('there are more nodes than node_count')
    const id = list[at + node.id]
    const bytes = list[at + node.self_size]
    const edges = graph.firstEdge[n] + list[at + node.edge_count]
    if (list[at + node.type] >= nodeTypes.length || id > 0xffffffff || edges > graph.edgeCount) {
      throw this.#malformed(`node ${n} has an invalid type, id or edge_count`)
    }
    graph.nodeType[n] = list[at + node.type]
    graph.nodeName[n] = this.#checkName(list[at + node.name])
    graph.nodeId[n] = id
    graph.nodeBytes[n] = Math.min(bytes, 0xffffffff)
    if (bytes > 0xffffffff) graph.largeBytes.set(n, bytes)
    graph.firstEdge[n + 1] = edges
  }

  /**
   * @param {Float64Array} list
   * @param {number} at
   */
  #addEdge (list, at) {
    const graph = this.graph
    const { edge, nodeFields, edgeTypes } = graph.layout
    const e = this.#edge++
    if (e >= graph.edgeCount) throw this.#malformed('there are more edges than edge_count')
    const type = list[at + edge.type]
    const to = list[at + edge.to_node] / nodeFields
    if (type >= edgeTypes.length || to >= graph.nodeCount || to !== Math.floor(to)) {
      throw this.#malformed(`edge ${e} has an invalid type or to_node`)
    }
    const name = list[at + edge.name_or_index]
    graph.edgeType[e] = type
    graph.edgeName[e] = graph.namedEdgeTypes[type] ? this.#checkName(name) : name
    graph.edgeTo[e] = to
  }

  /**
   * @param {Float64Array} list
   * @param {number} at
   */
  #addLocation (list, at) {
    const graph = this.graph
    const location = /** @type {NonNullable<Layout['location']>} */ (graph.layout.location)
    const n = list[at + location.object_index] / graph.layout.nodeFields
    if (n >= graph.nodeCount || n !== Math.floor(n)) {
      throw this.#malformed('a location belongs ' +
      'to no node')
    }
    if (graph.locationCount >= graph.nodeCount) {
      throw this.#malformed('the snapshot has too many ' +
      'locations')
    }
    const row = graph.locationCount++
    if (3 * row + 3 > graph.locations.length) graph.locations = grown(graph.locations)
    graph.locations[3 * row] = list[at + location.script_id]
    graph.locations[3 * row + 1] = list[at + location.line]
    graph.locations[3 * row + 2] = list[at + location.column]
    graph.locationRow[n] = row + 1
  }

  /** @param {number} name index of a string */
  #checkName (name) {
    const { nodeCount, edgeCount, traceFunctionCount } = this.graph.layout
    if (name > nodeCount + edgeCount + 2 * traceFunctionCount + SPARE_STRINGS) {
      throw this.#malformed(`a name has the index ${name}, beyond the possible number of strings`)
    }
    return name
  }

  /** Marks the strings that are names; all others are dropped while they are read. */
  #beginStrings () {
    const { nodeCount, edgeCount, nodeType, nodeName, edgeType, edgeName } = this.graph
    const { contentTypes, namedEdgeTypes } = this.graph
    let most = -1
    for (let n = 0; n < nodeCount; n++) if (nodeName[n] > most) most = nodeName[n]
    for (let e = 0; e < edgeCount; e++) {
      if (namedEdgeTypes[edgeType[e]] && edgeName[e] > most) most = edgeName[e]
    }
    const isName = new Uint8Array(most + 1)
    for (let n = 0; n < nodeCount; n++) if (!contentTypes[nodeType[n]]) isName[nodeName[n]] = 1
    for (let e = 0; e < edgeCount; e++) if (namedEdgeTypes[edgeType[e]]) isName[edgeName[e]] = 1
    this.#isName = isName
    this.graph.strings = new StringTable(isName)
  }
}

/** Reads a heap snapshot into columns. layout.js predicts the memory of reading and analysis. */
class HeapGraphReader {
  #builder
  #scanner

  /**
   * @param {{ allowedBytes: number }} options allowedBytes: memory that reading and analysis may
   *   take
   */
  constructor ({ allowedBytes }) {
    this.#builder = new GraphBuilder(allowedBytes)
    this.#scanner = new SnapshotScanner(this.#builder)
  }

  /**
   * @param {Buffer} chunk the next bytes of the file
   * @throws {SnapshotError}
   */
  write (chunk) {
    this.#scanner.write(chunk)
  }

  /**
   * @returns {HeapGraph}
   * @throws {SnapshotError} if the file breaks off
   */
  end () {
    this.#scanner.end()
    return this.#builder.graph
  }
}

module.exports = { HeapGraphReader, HeapGraph, NOT_RETAINING }
