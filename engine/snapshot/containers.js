'use strict'

const { NONE } = require('./dominators')
const { LEAST_COUNT } = require('./groups')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/** Upper bound of members whose paths are compared; the result is extrapolated to all members. */
const MOST_COMPARED = 1000
/** A place is reported if it holds this share of a group. */
const LEAST_SHARE = 0.2
/** Least share of members that must be reached in the same way. */
const LEAST_LIKE = 0.5
/** Upper bound of the steps of a path; longer paths are cut. */
const MOST_STEPS = 2000
/** Least number of alike steps in a row that form a chain. */
const LEAST_LINKS = 8
/** Upper bound of the steps after which the links of a linked list repeat. */
const LONGEST_PERIOD = 4

/**
 * Members of a group that are held by one node.
 * @typedef {object} Cluster
 * @property {number} container the last node that the paths of all members share
 * @property {number[]} members all members, or an evenly chosen sample
 * @property {number} count of all
 * @property {number} bytes retained by all members
 */

/**
 * Divides a group by the places that hold its members. A place is the deepest node through which
 * many paths of members pass.
 * @param {HeapGraph} graph
 * @param {import('./paths').Paths} paths
 * @param {import('./dominators').Dominators} dominators
 * @param {import('./groups').Group} group
 * @returns {Cluster[]}
 */
function findContainers (graph, paths, { retainedBytes }, group) {
  const walk = makeWalk(graph, paths, new Set(group.members))
  if (group.isChain || group.members.length === 1) {
    const container = walk(group.members[0])[0] ?? 0
    const { members, bytes } = group
    return [{ container, members, count: members.length, bytes }]
  }
  const stride = Math.ceil(group.members.length / MOST_COMPARED)
  const compared = group.members.filter((_, i) => i % stride === 0)
  const comparedBytes = compared.reduce((sum, member) => sum + retainedBytes[member], 0)
  const ways = compared.map(walk)
  const depths = new Map()
  /** @type {Map<number, number[]>} */
  const through = new Map()
  ways.forEach((way, i) => {
    way.forEach((node, k) => {
      let list = through.get(node)
      if (!list) {
        through.set(node, (list = []))
        depths.set(node, way.length - k)
      }
      list.push(i)
    })
  })
  const least = Math.max(Math.min(LEAST_COUNT, compared.length), compared.length * LEAST_SHARE)
  const candidates = [...through]
    .filter(([, list]) => list.length >= least)
    .sort(([a], [b]) => depths.get(b) - depths.get(a))
  const isTaken = new Uint8Array(compared.length)
  /** @type {Cluster[]} */
  const clusters = []
  for (const [container, list] of candidates) {
    const free = list.filter(i => !isTaken[i])
    if (free.length < least) continue
    if (!haveLikePaths(graph, paths, free.map(i => ways[i]), container)) continue
    for (const i of free) isTaken[i] = 1
    const members = free.map(i => compared[i])
    const share = members.reduce((sum, member) => sum + retainedBytes[member], 0) / comparedBytes
    clusters.push({
      container,
      members,
      count: Math.round(group.members.length * (members.length / compared.length)),
      bytes: group.bytes * share
    })
  }
  return clusters
}

/**
 * True if most paths from a node to the members below it are alike, except for the entry or key at
 * which they leave the node. Other groups are no pile: all modules of an app, say, are below its
 * main module.
 * @param {HeapGraph} graph
 * @param {import('./paths').Paths} paths
 * @param {number[][]} ways paths from members up to the root
 * @param {number} container
 */
function haveLikePaths (graph, { edgeTo }, ways, container) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  let most = 0
  for (const way of ways) {
    const key = way
      .slice(0, Math.max(0, way.indexOf(container)))
      .map((node, i, below) => {
        const type = graph.edgeTypeOf(edgeTo[node])
        const isLabel = type === 'context' || (type === 'property' && i < below.length - 1)
        return isLabel ? graph.edgeName[edgeTo[node]] : type
      })
      .join()
    const count = (counts.get(key) ?? 0) + 1
    counts.set(key, count)
    most = Math.max(most, count)
  }
  return most >= ways.length * LEAST_LIKE
}

/**
 * @param {HeapGraph} graph
 * @param {import('./paths').Paths} paths
 * @param {Set<number>} members of the group
 * @returns {(member: number) => number[]} function that returns the nodes from a member's holder up
 *   to the root, without the links of linked lists. The holder of a list is the holder of its first
 *   link
 */
function makeWalk (graph, { edgeTo, parent }, members) {
  const parentOf = (/** @type {number} */ node) =>
    edgeTo[node] === NONE ? -1 : parent[node]
  // Holder of the first link, by each link already passed, so that a list is walked only once.
  /** @type {Map<number, number>} */
  const holders = new Map()
  const holderOf = (/** @type {number} */ member) => {
    const passed = [member]
    let at = parentOf(member)
    for (let ahead = at, steps = 0; ahead > 0 && steps < LONGEST_PERIOD; steps++) {
      const node = ahead
      ahead = parentOf(ahead)
      if (!members.has(node)) continue
      const known = holders.get(node)
      at = known ?? ahead
      if (known !== undefined) break
      passed.push(node)
      steps = -1
    }
    for (const node of passed) holders.set(node, at)
    return at
  }
  return member => {
    let at = holderOf(member)
    const way = []
    for (; at >= 0 && way.length < MOST_STEPS; at = parentOf(at)) way.push(at)
    return withoutChains(graph, way)
  }
}

/**
 * @param {HeapGraph} graph
 * @param {number[]} way path from a member up
 * @returns {number[]} the path with each chain, such as prototypes of prototypes, reduced to its
 *   topmost link
 */
function withoutChains ({ nodeType, nodeName }, way) {
  const isLike = (/** @type {number} */ a, /** @type {number} */ b) =>
    nodeType[a] === nodeType[b] && nodeName[a] === nodeName[b]
  let kept = way
  for (let period = 1; period <= LONGEST_PERIOD; period++) {
    const next = []
    for (let i = 0; i < kept.length;) {
      let end = i + period
      while (end < kept.length && isLike(kept[end], kept[end - period])) end++
      if (end - i >= LEAST_LINKS * period) i = end - period
      next.push(kept[i++])
    }
    kept = next
  }
  return kept
}

module.exports = { findContainers }
