'use strict'

const { NOT_RETAINING } = require('./heap-graph')
const { NONE, LISTS_OF_ALL } = require('./dominators')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/**
 * Number of buckets, above the largest cost of an edge: one bucket per cost holds all open nodes
 * (Dial's algorithm, 1969).
 */
const BUCKETS = 128

/**
 * Cost of an edge by its type: the lower, the more the edge tells a developer. Variables,
 * properties and elements appear in the code; hidden edges belong to V8.
 */
const EDGE_COSTS = Object.freeze({
  context: 1, property: 1, element: 1, shortcut: 1, internal: 2, hidden: 8
})
const OTHER_EDGE = 8
/**
 * Additional cost of V8's own nodes, whose edges name nothing in the app: code, feedback, hidden
 * classes.
 */
const OWN_NODE = 24
const OWN_TYPES = new Set(['code', 'object shape', 'hidden'])
/** Edges that duplicate a better named edge. */
const DETOURS = Object.freeze({
  ['__proto__']: 12,
  constructor: 12,
  map: 24,
  feedback_cell: 24,
  shared: 24,
  scope_info: 24,
  previous: 1,
  builtins_with_cache: 4,
  native_context: 4,
  execution_async_resources: 40
})
/** V8's own nodes whose edges belong to the app: variables of a block, reactions of a promise. */
const SPEAKING = ['system / Context', 'system / PromiseReaction']
const SPEAKING_EDGE = 2
/**
 * Cost of an edge from a list of all native objects, which does not explain why one of them is
 * alive.
 */
const OF_LIST = 40
/** Cost of an entry of a WeakMap, which holds its value only as long as its key lives. */
const WEAK_ENTRY = 6
/**
 * Cost of an edge to be avoided: the highest cost, above that of most paths through the code of an
 * app.
 */
const AVOIDED = 127
/**
 * True for roots that are native objects of Node.js, or V8's handles of them.
 * @param {string} name of a root
 */
const isHandle = name =>
  (name.startsWith('Node / ') && name !== 'Node / Environment') ||
  name === '(Global handles)' || name === '(Traced handles)'
/**
 * Costs of edges from the roots: edges of V8 and Node.js explain less than a variable of the app.
 */
const ROOT_COSTS = new Map([
  ['(Global handles)', 8],
  ['(Eternal handles)', 8],
  ['(Stack roots)', 60],
  ['(Handle scope)', 60],
  ['(Internalized strings)', 60],
  ['(Compilation cache)', 60],
  ['(Bootstrapper)', 60]
])
const OTHER_ROOT = 16

/**
 * One path to each node, along the edges that tell a developer the most.
 * @typedef {object} Paths
 * @property {Uint32Array} edgeTo the last edge of the path to a node; NONE for the root and for
 *   unreachable nodes
 * @property {Uint32Array} parent node that this edge leaves
 */

/**
 * @param {HeapGraph} graph graph in which the edges that retain nothing are marked
 * @param {{ avoidsHandles?: boolean }} [options] avoidsHandles: true to prefer a path through a
 *   variable of the app over a path through native code
 * @returns {Paths}
 */
function findPaths (graph, { avoidsHandles = false } = {}) {
  const { nodeCount, firstEdge, edgeType, edgeName, edgeTo, nodeType } = graph
  const costOf = makeCosts(graph, avoidsHandles)
  const distance = new Uint32Array(nodeCount).fill(NONE)
  const lastEdge = new Uint32Array(nodeCount).fill(NONE)
  const parent = new Uint32Array(nodeCount)
  const buckets = Array.from({ length: BUCKETS }, () => new Bucket())
  distance[0] = 0
  buckets[0].push(0)
  let open = 1
  for (let at = 0; open > 0; at++) {
    const bucket = buckets[at % BUCKETS]
    while (bucket.length > 0) {
      const node = bucket.pop()
      open--
      if (distance[node] !== at) continue // A shorter path has been found in the meantime.
      for (let e = firstEdge[node], end = firstEdge[node + 1]; e < end; e++) {
        const type = edgeType[e]
        if (type === NOT_RETAINING) continue
        const to = edgeTo[e]
        if (distance[to] <= at + 1) continue
        const cost = at + costOf(node, nodeType[node], type, edgeName[e], to)
        if (cost >= distance[to]) continue
        distance[to] = cost
        lastEdge[to] = e
        parent[to] = node
        buckets[cost % BUCKETS].push(to)
        open++
      }
    }
  }
  return { edgeTo: lastEdge, parent }
}

/**
 * @param {HeapGraph} graph
 * @param {boolean} avoidsHandles
 * @returns {(from: number, fromType: number, type: number, name: number, to: number) => number}
 *   function that returns the cost of an edge, from 1 to BUCKETS - 1
 */
function makeCosts (graph, avoidsHandles) {
  const { layout, strings, namedEdgeTypes, nodeName } = graph
  const ofType = layout.edgeTypes.map(
    name => EDGE_COSTS[/** @type {keyof typeof EDGE_COSTS} */ (name)] ?? OTHER_EDGE
  )
  const ofNode = layout.nodeTypes.map(name => (OWN_TYPES.has(name) ? OWN_NODE : 0))
  const detours = new Map(
    Object.entries(DETOURS)
      .map(([name, cost]) => /** @type {const} */ ([strings.indexOf(name), cost]))
      .filter(([index]) => index >= 0)
  )
  const speaking = new Set(SPEAKING.map(name => strings.indexOf(name)))
  const lists = new Set(LISTS_OF_ALL.map(name => strings.indexOf(name)))
  const hidden = layout.edgeTypes.indexOf('hidden')
  const synthetic = layout.nodeTypes.indexOf('synthetic')
  const hasWeakPairs = strings.hasWeakPairs
  const internal = layout.edgeTypes.indexOf('internal')
  return (from, fromType, type, name, to) => {
    if (lists.has(nodeName[from])) return OF_LIST
    if (fromType === synthetic) {
      const rootName = graph.nameOf(to)
      if (avoidsHandles && isHandle(rootName)) return AVOIDED
      if (type === internal || from !== 0) return ROOT_COSTS.get(rootName) ?? OTHER_EDGE
      return rootName === '(GC roots)' ? OTHER_ROOT : graph.nodeType[to] === synthetic ? 4 : 1
    }
    if (type === hidden && speaking.has(nodeName[from])) return SPEAKING_EDGE
    let cost = ofType[type] + ofNode[fromType]
    if (namedEdgeTypes[type]) {
      cost += detours.get(name) ?? 0
      if (hasWeakPairs && type === internal && strings.weakTable(name) > 0) cost += WEAK_ENTRY
    }
    return cost
  }
}

/** A stack of nodes. */
class Bucket {
  #nodes = new Uint32Array(256)
  length = 0

  /** @param {number} node */
  push (node) {
    if (this.length === this.#nodes.length) {
      const larger = new Uint32Array(2 * this.length)
      larger.set(this.#nodes)
      this.#nodes = larger
    }
    this.#nodes[this.length++] = node
  }

  /** @returns {number} */
  pop () {
    return this.#nodes[--this.length]
  }
}

module.exports = { findPaths }
