'use strict'

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */
/** @typedef {import('./dominators').Dominators} Dominators */

/** Least number of members: fewer objects are no pile, whatever their size. */
const LEAST_COUNT = 10
/** A member that holds a larger share of its group is searched for groups itself. */
const MOST_SHARE_OF_ONE = 0.25
/** A class is left out if a larger share of its objects is in known groups. */
const MOST_KNOWN = 0.5
/**
 * Upper bound of the steps after which the links of a linked list repeat: node, entry, closure,
 * scope.
 */
const LONGEST_PERIOD = 6

/**
 * A group: many nodes of one type and name that are all dominated by one node, or the links of one
 * chain.
 * @typedef {object} Group
 * @property {number} dominator node
 * @property {number[]} members nodes of one type and name; for a chain in order, from its start
 * @property {boolean} isChain true if each member is held by the previous one
 * @property {number} bytes retained by all members
 */

/**
 * Finds groups by walking down the dominator tree, through all nodes that retain enough.
 * @param {HeapGraph} graph
 * @param {Dominators} dominators
 * @param {object} options
 * @param {number} options.leastBytes least bytes that a group retains
 * @param {(node: number) => boolean} options.counts tells if a node may be a member
 * @returns {Group[]} groups; a single node of that many bytes of its own is a group of one
 */
function findGroups (graph, dominators, { leastBytes, counts }) {
  const { retainedBytes, firstChild, children } = dominators
  const { nodeType, nodeName, contentTypes } = graph
  /** @type {Group[]} */
  const found = []
  const open = [0]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (graph.bytesOf(node) >= leastBytes && counts(node)) {
      found.push({ dominator: node, members: [node], isChain: false, bytes: graph.bytesOf(node) })
    }
    const chain = followChain(graph, dominators, node, leastBytes)
    if (chain) {
      const last = chain[chain.length - 1]
      const members = chain.filter(counts)
      const bytes = (retainedBytes[node] - retainedBytes[last]) * (members.length / chain.length)
      if (members.length >= LEAST_COUNT && bytes >= leastBytes) {
        found.push({ dominator: dominators.dominator[node], members, isChain: true, bytes })
      }
      open.push(last)
      continue
    }
    /** @type {Map<number, { members: number[], bytes: number, most: number }>} */
    const kinds = new Map()
    for (let k = firstChild[node], end = firstChild[node + 1]; k < end; k++) {
      const child = children[k]
      if (retainedBytes[child] >= leastBytes) open.push(child)
      if (!counts(child)) continue
      const type = nodeType[child]
      const key = contentTypes[type] ? -1 - type : nodeName[child] * 256 + type
      let kind = kinds.get(key)
      if (!kind) kinds.set(key, (kind = { members: [], bytes: 0, most: 0 }))
      kind.members.push(child)
      kind.bytes += retainedBytes[child]
      kind.most = Math.max(kind.most, retainedBytes[child])
    }
    for (const { members, bytes, most } of kinds.values()) {
      if (members.length < LEAST_COUNT || bytes < leastBytes) continue
      if (most > bytes * MOST_SHARE_OF_ONE) continue
      found.push({ dominator: node, members, isChain: false, bytes })
    }
  }
  return found
}

/**
 * Follows the links of a linked list: nodes of one kind, each of which dominates the next one.
 * @param {HeapGraph} graph
 * @param {Dominators} dominators
 * @param {number} start
 * @param {number} leastBytes
 * @returns {number[] | null} links; the last one is the node at which the chain stops repeating
 */
function followChain (graph, dominators, start, leastBytes) {
  const { nodeType, nodeName } = graph
  const { retainedBytes, firstChild, children } = dominators
  /**
   * @param {number} node
   * @returns {number} the child that retains most; -1 without children
   */
  const heaviest = node => {
    let most = -1
    for (let k = firstChild[node], end = firstChild[node + 1]; k < end; k++) {
      if (most < 0 || retainedBytes[children[k]] > retainedBytes[most]) most = children[k]
    }
    return most
  }
  const links = [start]
  const periods = [0]
  for (let link = start; ;) {
    let next = heaviest(link)
    let steps = 1
    while (
      next >= 0 &&
      steps < LONGEST_PERIOD &&
      (nodeType[next] !== nodeType[start] || nodeName[next] !== nodeName[start])
    ) {
      next = heaviest(next)
      steps++
    }
    const isLink =
      next >= 0 &&
      nodeType[next] === nodeType[start] &&
      nodeName[next] === nodeName[start] &&
      // In a list each link retains nearly as much as the previous one; in a tree of alike nodes
      // each step loses most of the retained bytes.
      (links.length > LEAST_COUNT || retainedBytes[next] > retainedBytes[start] * 0.5)
    if (!isLink) return links.length > LEAST_COUNT ? trim(graph, links, periods) : null
    links.push(next)
    periods.push(steps)
    link = next
    if (retainedBytes[link] < leastBytes && links.length <= LEAST_COUNT) return null
  }
}

/**
 * @param {HeapGraph} graph
 * @param {number[]} links
 * @param {number[]} periods number of steps from the previous link to each link
 * @returns {number[] | null} the links without those at the start that have the same class by
 *   chance
 */
function trim ({ firstEdge, edgeName, edgeTo, strings }, links, periods) {
  const map = strings.indexOf('map')
  const hiddenClass = (/** @type {number} */ i) => {
    let e = firstEdge[links[i]]
    while (e < firstEdge[links[i] + 1] && edgeName[e] !== map) e++
    return edgeTo[e]
  }
  const middle = links.length >> 1
  const usual = hiddenClass(middle)
  let from = middle
  while (from > 0 && periods[from] === periods[middle] && hiddenClass(from - 1) === usual) from--
  return links.length - from > LEAST_COUNT ? links.slice(from) : null
}

/**
 * Finds groups of one hidden class that are scattered over many places. Each place may hold too
 * little to be found, like the shards of a cache, or no member may have siblings, like the nodes of
 * a tree.
 * @param {HeapGraph} graph
 * @param {Dominators} dominators
 * @param {object} options
 * @param {number} options.leastBytes
 * @param {(node: number) => boolean} options.counts
 * @param {readonly Group[]} options.known known groups: classes whose objects are mostly in these
 *   groups are left out
 * @returns {Group[]}
 */
function findScattered (graph, { retainedBytes, dominator }, { leastBytes, counts, known }) {
  const { nodeCount, nodeType, nodeName, layout, strings, firstEdge, edgeName, edgeTo } = graph
  const object = layout.nodeTypes.indexOf('object')
  const literal = strings.indexOf('Object')
  const map = strings.indexOf('map')
  /** The hidden class of each object, 0 for other nodes. */
  const classes = new Uint32Array(nodeCount)
  for (let n = 0; n < nodeCount; n++) {
    // All arrays share one hidden class, as do all Maps and all scopes.
    const isOfApp = nodeName[n] === literal || graph.locationRow[n] > 0
    if (nodeType[n] !== object || !isOfApp || retainedBytes[n] === 0 || !counts(n)) continue
    for (let e = firstEdge[n + 1] - 1; e >= firstEdge[n]; e--) {
      if (edgeName[e] !== map) continue
      classes[n] = edgeTo[e]
      break
    }
  }
  const isWithinAlike = (/** @type {number} */ node) => {
    let at = dominator[node]
    for (let i = 0; i < LONGEST_PERIOD && at > 0 && at < nodeCount; i++, at = dominator[at]) {
      if (classes[at] === classes[node]) return true
    }
    return false
  }
  /** @type {Map<number, number>} */
  const bytes = new Map()
  /** @type {Map<number, number>} */
  const most = new Map()
  for (let n = 0; n < nodeCount; n++) {
    if (classes[n] === 0 || isWithinAlike(n)) continue
    bytes.set(classes[n], (bytes.get(classes[n]) ?? 0) + retainedBytes[n])
    most.set(classes[n], Math.max(most.get(classes[n]) ?? 0, retainedBytes[n]))
  }
  const isKnown = new Uint8Array(nodeCount)
  for (const { members } of known) for (const member of members) isKnown[member] = 1
  /** @type {Map<number, number[]>} */
  const found = new Map()
  for (const [of, sum] of bytes) {
    const isEven = (most.get(of) ?? 0) <= sum * MOST_SHARE_OF_ONE
    if (sum >= leastBytes && isEven) found.set(of, [])
  }
  for (let n = 0; n < nodeCount; n++) found.get(classes[n])?.push(n)
  return [...found]
    .filter(([, members]) => members.length >= LEAST_COUNT &&
      members.filter(member => isKnown[member]).length < members.length * MOST_KNOWN)
    .map(([of, members]) => ({ dominator: 0, members, isChain: false, bytes: bytes.get(of) ?? 0 }))
}

module.exports = { findGroups, findScattered, LEAST_COUNT }
