'use strict'

const { NOT_RETAINING } = require('./heap-graph')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/** Name of Node.js' native objects. */
const OF_NODE = 'Node / '
/** Name of the list of native objects, which includes weak ones. */
const LISTS_OF_ALL = [
  'Node / Realm', 'Node / PrincipalRealm', 'Node / BaseObjectList', 'Node / CleanupQueue'
]
/** A node that is not reachable. */
const NONE = 0xffffffff

/**
 * Marks the edges that retain nothing, as DevTools does (HeapSnapshot.isEssentialEdge of
 * chrome-devtools-frontend): weak ones; shortcuts, but for those of the root, which lead to global
 * objects; the edges of a WeakMap's table to its values, which their keys retain; and lists of all
 * native objects, where those that are held are known.
 * @param {HeapGraph} graph
 */
function markEdgesThatRetainNothing (graph) {
  const { layout, nodeCount, firstEdge, edgeType, edgeName, edgeTo } = graph
  const { nodeId, nodeName, strings } = graph
  const weak = layout.edgeTypes.indexOf('weak')
  const shortcut = layout.edgeTypes.indexOf('shortcut')
  const internal = strings.hasWeakPairs ? layout.edgeTypes.indexOf('internal') : NOT_RETAINING
  const lists = marksStrongObjects(graph)
    ? new Set(LISTS_OF_ALL.map(name => strings.indexOf(name)).filter(index => index >= 0))
    : new Set()
  for (let n = 0; n < nodeCount; n++) {
    const isList = lists.has(nodeName[n])
    for (let e = firstEdge[n], end = firstEdge[n + 1]; e < end; e++) {
      const type = edgeType[e]
      if (
        type === weak ||
        (type === shortcut && n !== 0) ||
        (isList && graph.nameOf(edgeTo[e]).startsWith(OF_NODE)) ||
        (type === internal && strings.weakTable(edgeName[e]) === nodeId[n])
      ) {
        edgeType[e] = NOT_RETAINING
      }
    }
  }
}

/**
 * True where the root has edges to the strongly held native objects. Then the lists of all native
 * objects prove nothing. Node.js 18 draws such edges: BaseObject::IsRootNode in src/base_object.h.
 * @param {HeapGraph} graph
 */
function marksStrongObjects (graph) {
  for (let e = graph.firstEdge[0]; e < graph.firstEdge[1]; e++) {
    const name = graph.nameOf(graph.edgeTo[e])
    if (name.startsWith(OF_NODE) && name !== 'Node / Environment') return true
  }
  return false
}

/**
 * Nodes that can be reached from the root, numbered in the order of a depth-first search.
 * @param {HeapGraph} graph
 * @returns {{ number: Uint32Array, vertex: Uint32Array, parent: Uint32Array, count: number }}
 *   number: of each node, NONE where it cannot be reached; vertex: its inverse; parent: numbers
 */
function searchDepthFirst ({ nodeCount, firstEdge, edgeType, edgeTo }) {
  const number = new Uint32Array(nodeCount).fill(NONE)
  const vertex = new Uint32Array(nodeCount)
  const parent = new Uint32Array(nodeCount)
  // The next edge of each number; the way back to the root goes by parents.
  const next = new Uint32Array(nodeCount)
  next[0] = firstEdge[0]
  let count = 1
  number[0] = 0
  for (let at = 0; ;) {
    const end = firstEdge[vertex[at] + 1]
    let e = next[at]
    while (e < end && (edgeType[e] === NOT_RETAINING || number[edgeTo[e]] !== NONE)) e++
    next[at] = e + 1
    if (e < end) {
      const to = edgeTo[e]
      number[to] = count
      vertex[count] = to
      parent[count] = at
      next[count] = firstEdge[to]
      at = count++
    } else if (at === 0) {
      return { number, vertex, parent, count }
    } else {
      at = parent[at]
    }
  }
}

/**
 * The edges backwards.
 * @param {HeapGraph} graph
 * @param {Uint32Array} number of each node, NONE where it cannot be reached
 * @returns {{ first: Uint32Array, sources: Uint32Array }} sources of the edges to node n are
 *   those from first[n] up to first[n + 1]
 */
function reverseEdges ({ nodeCount, firstEdge, edgeType, edgeTo }, number) {
  const first = new Uint32Array(nodeCount + 2)
  for (let n = 0; n < nodeCount; n++) {
    if (number[n] === NONE) continue
    for (let e = firstEdge[n], end = firstEdge[n + 1]; e < end; e++) {
      if (edgeType[e] !== NOT_RETAINING) first[edgeTo[e] + 2]++
    }
  }
  for (let n = 2; n < nodeCount + 2; n++) first[n] += first[n - 1]
  const sources = new Uint32Array(first[nodeCount + 1])
  for (let n = 0; n < nodeCount; n++) {
    if (number[n] === NONE) continue
    for (let e = firstEdge[n], end = firstEdge[n + 1]; e < end; e++) {
      if (edgeType[e] !== NOT_RETAINING) sources[first[edgeTo[e] + 1]++] = n
    }
  }
  return { first: first.subarray(0, nodeCount + 1), sources }
}

/**
 * Immediate dominators by Semi-NCA: Georgiadis, Linear-Time Algorithms for Dominators and Related
 * Problems (2005), section 2.3; path compression as in Lengauer and Tarjan (1979).
 * @param {ReturnType<typeof searchDepthFirst>} found
 * @param {ReturnType<typeof reverseEdges>} reverse
 * @returns {Uint32Array} by number
 */
function findDominators ({ number, vertex, parent, count }, { first, sources }) {
  const semi = new Uint32Array(count)
  const label = new Uint32Array(count)
  const ancestor = parent.slice(0, count)
  const stack = new Uint32Array(count)
  for (let i = 0; i < count; i++) semi[i] = label[i] = i
  /** The number of the least semidominator on the path from i to the forest's root above `last`. */
  const evaluate = (/** @type {number} */ i, /** @type {number} */ last) => {
    if (ancestor[i] < last) return label[i]
    let depth = 0
    let at = i
    do {
      stack[depth++] = at
      at = ancestor[at]
    } while (ancestor[at] >= last)
    let top = at
    while (depth > 0) {
      at = stack[--depth]
      ancestor[at] = ancestor[top]
      if (semi[label[top]] < semi[label[at]]) label[at] = label[top]
      top = at
    }
    return label[i]
  }
  for (let i = count - 1; i > 0; i--) {
    const node = vertex[i]
    let least = parent[i]
    for (let k = first[node], end = first[node + 1]; k < end; k++) {
      const candidate = semi[evaluate(number[sources[k]], i + 1)]
      if (candidate < least) least = candidate
    }
    semi[i] = least
  }
  const dominator = parent.slice(0, count)
  for (let i = 1; i < count; i++) {
    let at = dominator[i]
    while (at > semi[i]) at = dominator[at]
    dominator[i] = at
  }
  return dominator
}

/**
 * The dominator tree, and what each node alone keeps alive.
 * @typedef {object} Dominators
 * @property {Uint32Array} dominator immediate dominator of each node; of the root and of nodes that
 *   cannot be reached NONE
 * @property {Float64Array} retainedBytes of each node: its own and those of all that it dominates
 * @property {Uint32Array} firstChild children of node n are those from firstChild[n] up to
 *   firstChild[n + 1]
 * @property {Uint32Array} children nodes
 * @property {{ first: Uint32Array, sources: Uint32Array }} reverse nodes that retain node n are
 *   those of sources from first[n] up to first[n + 1]
 */

/**
 * @param {HeapGraph} graph its edges that retain nothing are marked
 * @returns {Dominators}
 */
function dominate (graph) {
  const { nodeCount } = graph
  markEdgesThatRetainNothing(graph)
  const found = searchDepthFirst(graph)
  const reverse = reverseEdges(graph, found.number)
  const byNumber = findDominators(found, reverse)
  const { vertex, count } = found

  const retainedBytes = new Float64Array(nodeCount)
  for (let i = 0; i < count; i++) retainedBytes[vertex[i]] = graph.bytesOf(vertex[i])
  const dominator = new Uint32Array(nodeCount).fill(NONE)
  for (let i = count - 1; i > 0; i--) {
    dominator[vertex[i]] = vertex[byNumber[i]]
    retainedBytes[vertex[byNumber[i]]] += retainedBytes[vertex[i]]
  }
  const firstChild = new Uint32Array(nodeCount + 2)
  for (let i = 1; i < count; i++) firstChild[dominator[vertex[i]] + 2]++
  for (let n = 2; n < nodeCount + 2; n++) firstChild[n] += firstChild[n - 1]
  const children = new Uint32Array(count - 1)
  for (let i = 1; i < count; i++) children[firstChild[dominator[vertex[i]] + 1]++] = vertex[i]
  return {
    dominator,
    retainedBytes,
    firstChild: firstChild.subarray(0, nodeCount + 1),
    children,
    reverse
  }
}

module.exports = { dominate, NONE, LISTS_OF_ALL }
