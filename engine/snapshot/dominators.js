'use strict'

const { NOT_RETAINING } = require('./heap-graph')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/** Prefix of the names of Node.js' native objects. */
const OF_NODE = 'Node / '
/** Names of the lists of all native objects, including weakly held ones. */
const LISTS_OF_ALL = [
  'Node / Realm', 'Node / PrincipalRealm', 'Node / BaseObjectList', 'Node / CleanupQueue'
]
/** Number of an unreachable node. */
const NONE = 0xffffffff

/**
 * Marks the edges that retain nothing, as DevTools does (HeapSnapshot.isEssentialEdge of
 * chrome-devtools-frontend):
 * - weak edges;
 * - shortcuts, except those of the root, which lead to global objects;
 * - the edges from a WeakMap's table to its values, because the keys retain the values;
 * - the edges of lists of all native objects, if the snapshot also shows which of them are held.
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
 * True if the root has edges to the strongly held native objects, so that lists of all native
 * objects need not count as holders. Node.js 18 adds such edges: BaseObject::IsRootNode in
 * src/base_object.h.
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
 *   number: number of each node, NONE if unreachable; vertex: node of each number; parent: number
 *   of the parent, by number
 */
function searchDepthFirst ({ nodeCount, firstEdge, edgeType, edgeTo }) {
  const number = new Uint32Array(nodeCount).fill(NONE)
  const vertex = new Uint32Array(nodeCount)
  const parent = new Uint32Array(nodeCount)
  // The next edge to follow from each node, by number. `parent` leads back to the root.
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
 * Reverses all edges.
 * @param {HeapGraph} graph
 * @param {Uint32Array} number number of each node, NONE if unreachable
 * @returns {{ first: Uint32Array, sources: Uint32Array }} the sources of the edges to node n are
 *   sources[first[n]] up to, not including, sources[first[n + 1]]
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
 * @returns {Uint32Array} immediate dominator, by number
 */
function findDominators ({ number, vertex, parent, count }, { first, sources }) {
  const semi = new Uint32Array(count)
  const label = new Uint32Array(count)
  const ancestor = parent.slice(0, count)
  const stack = new Uint32Array(count)
  for (let i = 0; i < count; i++) semi[i] = label[i] = i
  /**
   * Number of the node with the least semidominator on the path from i to the forest's root, above
   * `last`.
   */
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
 * The dominator tree, and the size of the memory that each node alone keeps alive.
 * @typedef {object} Dominators
 * @property {Uint32Array} dominator immediate dominator of each node; NONE for the root and for
 *   unreachable nodes
 * @property {Float64Array} retainedBytes retained size of each node: its own size, plus the sizes
 *   of all nodes that it dominates
 * @property {Uint32Array} firstChild the children of node n are children[firstChild[n]] up to, not
 *   including, children[firstChild[n + 1]]
 * @property {Uint32Array} children nodes
 * @property {{ first: Uint32Array, sources: Uint32Array }} reverse the nodes that refer to node n
 *   are sources[first[n]] up to, not including, sources[first[n + 1]]
 */

/**
 * @param {HeapGraph} graph modified: edges that retain nothing are marked
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
