'use strict'

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */
/** @typedef {import('./dominators').Dominators} Dominators */

/** Fewer are no pile, whatever they weigh. */
const LEAST_COUNT = 10
/** A member that holds more of its group than this is looked into itself. */
const MOST_SHARE_OF_ONE = 0.25
/** Links of a linked list repeat within so many steps: node, entry, closure, scope. */
const LONGEST_PERIOD = 6

/**
 * Many alike nodes that one node alone keeps alive, or links of one chain.
 * @typedef {object} Group
 * @property {number} dominator node
 * @property {number[]} members nodes of one type and name; those of a chain from its start
 * @property {boolean} isChain whether each member is held by the one before
 * @property {number} bytes retained by all members
 */

/**
 * Groups, by a walk down the dominator tree through all nodes that retain enough.
 * @param {HeapGraph} graph
 * @param {Dominators} dominators
 * @param {object} options
 * @param {number} options.leastBytes that a group retains
 * @param {(node: number) => boolean} options.counts whether a node may be a member
 * @returns {Group[]} and single nodes of so many bytes by themselves, as groups of one
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
 * The links of a linked list: nodes of one kind, each dominating the next one.
 * @param {HeapGraph} graph
 * @param {Dominators} dominators
 * @param {number} start
 * @param {number} leastBytes
 * @returns {number[] | null} the last one is where the chain no longer repeats
 */
function followChain (graph, dominators, start, leastBytes) {
  const { nodeType, nodeName } = graph
  const { retainedBytes, firstChild, children } = dominators
  /** @param {number} node @returns {number} its child that retains most, -1 without */
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
      // The first links hold nearly all; a tree of alike nodes loses most of it at each step.
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
 * @param {number[]} periods steps to each link from the one before
 * @returns {number[] | null} without those at the start that are of the same class by chance
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

module.exports = { findGroups, LEAST_COUNT }
