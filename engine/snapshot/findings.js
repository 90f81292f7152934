'use strict'

const { findBuffers } = require('./buffers')
const { findContainers } = require('./containers')
const { dominate, NONE } = require('./dominators')
const { findGroups, findScattered } = require('./groups')
const { describeHolder, findPlaceOfHeld } = require('./holders')
const { Names, isOfNode: isPlaceOfNode, stepsTo } = require('./names')
const { findPaths } = require('./paths')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */
/** @typedef {import('./containers').Cluster} Cluster */

/** Least size of a reported pile: a share of the heap, and for small heaps a number of bytes. */
const LEAST_SHARE = 0.01
const LEAST_BYTES = 65_536
/** Number of members that are checked to decide if a pile lies within another pile. */
const MOST_CHECKED = 20
/**
 * Least size of the part of a group in one place, as a share of the least size of a pile: alike
 * parts in many places are merged into one pile.
 */
const LEAST_SHARE_OF_PLACE = 0.1
/**
 * A pile of Node.js itself is reported if it has this share of the heap. In the smallest heaps the
 * piles of Node.js reach it.
 */
const LEAST_SHARE_OF_NODE = 0.1
/** A file is named if this share of a pile's members holds functions of the file. */
const LEAST_WITH_CODE = 0.25
/** Upper bound of reported findings, for human readers. */
const MOST_FINDINGS = 8
/** Classes of nodes that only wrap the app's objects. */
const WRAPPERS = new Set([
  'system / Context', 'system / PromiseReaction', 'system / PromiseCapability',
  'system / WeakCell', 'Promise', 'WeakRef', 'Generator', 'AsyncGenerator', 'Listener', 'Timeout',
  'Immediate', 'AsyncContextFrame'
])
/** Upper bound of the steps of a path that are shown before and after the holder. */
const MOST_PATH = 40
const MOST_BELOW = 12
const WRAPPER_TYPES = new Set(['closure', 'array', 'hidden', 'code', 'object shape'])
const MOST_WRAPPED = 12

/**
 * A step of the path from a root to a held object.
 * @typedef {object} PathStep
 * @property {string} edge type of the edge in the snapshot: context, property, element, internal,
 *   hidden
 * @property {string | number} name
 * @property {string} className class of the node to which the step leads
 * @property {import('./names').Place | null} place
 *
 * A pile of alike objects, and its holder.
 * @typedef {object} Finding
 * @property {number} count number of objects
 * @property {string} className class of one object
 * @property {number} retainedBytes bytes that would be freed if the pile were gone
 * @property {number} places number of holders with the same name, if more than one
 * @property {{ className: string, count: number, retainedBytes: number }[]} others smaller piles
 *   with the same holder
 * @property {boolean} isChain true if each object holds the next one, as in a linked list
 * @property {{ className: string, retainedBytes: number, isStore: boolean } | null} keeps content
 *   of one object, if the object is only a wrapper, such as a function, a scope or a reaction of a
 *   promise; isStore: true for the store of an AsyncLocalStorage
 * @property {import('./holders').Holder & { heldPlace: import('./names').Place | null }} holder
 *   heldPlace: place of a function of the app among the held objects, if only Node.js' own code
 *   holds the pile
 * @property {number} bufferBytes memory of ArrayBuffers among the retained bytes
 * @property {import('./buffers').Pins | null} pins of a pile of Buffers
 * @property {import('./names').Place | null} code place in the app or in a package that holds the
 *   pile; null if only Node.js' own code does
 * @property {import('./holders').Holder | null} also holder in the code of the app or of a package,
 *   if native code holds the pile as well
 * @property {string | null} package package whose code holds the pile; null for the app's own code
 *   and for Node.js
 * @property {number} holderId V8's id of the holder, which DevTools also shows
 * @property {number} exampleId V8's id of one of the objects
 * @property {import('./roots').Root} root
 * @property {PathStep[]} path from the root to one of the objects
 *
 * @typedef {object} Findings
 * @property {number} nodeCount
 * @property {number} edgeCount
 * @property {number} reachableBytes
 * @property {{ count: number, bytes: number } | null} added objects added since an earlier snapshot
 * @property {Finding[]} findings largest first
 */

/**
 * @param {HeapGraph} graph modified: edges that retain nothing are marked
 * @param {object} [options]
 * @param {(id: number) => boolean} [options.isNew] tells if an object was created after an earlier
 *   snapshot; if given, only such objects form piles
 * @param {string} [options.agentFolder] folder of memwatch's agent, whose own objects are not
 *   reported
 * @param {(what: string) => void} [options.onProgress]
 * @returns {Findings}
 */
function findHolders (graph, { isNew, agentFolder, onProgress = () => {} } = {}) {
  onProgress('dominators')
  const dominators = dominate(graph)
  const { retainedBytes, dominator, reverse } = dominators
  onProgress('paths')
  const paths = findPaths(graph)
  onProgress('holders')
  const counts = (/** @type {number} */ node) => isNew === undefined || isNew(graph.nodeId[node])
  let count = 0
  let bytes = 0
  for (let n = 0; n < graph.nodeCount; n++) {
    if (dominator[n] === NONE || !counts(n)) continue
    count++
    bytes += graph.bytesOf(n)
  }
  const leastBytes = Math.max(LEAST_BYTES, LEAST_SHARE * (isNew ? bytes : retainedBytes[0]))
  const groups = findGroups(graph, dominators, { leastBytes, counts })
  groups.push(...findScattered(graph, dominators, { leastBytes, counts, known: groups }))
  const clusters = groups
    .flatMap(group =>
      findContainers(graph, paths, dominators, group)
        .map(cluster => ({ ...cluster, isChain: group.isChain }))
    )
    .filter(cluster => cluster.bytes >= leastBytes * LEAST_SHARE_OF_PLACE)
    .sort((a, b) => b.bytes - a.bytes)
  const leastOfNode = isNew ? 0 : LEAST_SHARE_OF_NODE * retainedBytes[0]
  const names = new Names(graph, reverse)
  /** @type {import('./paths').Paths | undefined} */
  let otherPaths
  const found = outermost(graph, clusters, dominators)
    .map(cluster => {
      const finding = describe(graph, names, paths, dominators, cluster, leastOfNode)
      if (finding?.root.kind !== 'handle' || finding.holder.place) return finding
      otherPaths ??= findPaths(graph, { avoidsHandles: true })
      return withAlso(finding, findAlso(graph, names, otherPaths, dominators, cluster))
    })
    .filter(finding => finding !== null)
    .filter(({ code }) => !code || !isWithin(code.file, agentFolder))
  return {
    nodeCount: graph.nodeCount,
    edgeCount: graph.edgeCount,
    reachableBytes: retainedBytes[0],
    added: isNew ? { count, bytes } : null,
    findings: merge(found)
      .filter(finding => finding.retainedBytes >= leastBytes)
      .slice(0, MOST_FINDINGS)
  }
}

/**
 * Removes the piles that lie within objects of a larger pile.
 * @template {Cluster} C
 * @param {HeapGraph} graph
 * @param {C[]} clusters largest first
 * @param {import('./dominators').Dominators} dominators
 * @returns {C[]}
 */
function outermost ({ nodeType, nodeName }, clusters, { dominator }) {
  // Siblings of one kind are one pile. A cluster may list only some of them.
  const kindOf = (/** @type {number} */ node) =>
    `${dominator[node]} ${nodeType[node]} ${nodeName[node]}`
  /** @type {Set<string>} */
  const kinds = new Set()
  const isInside = (/** @type {number} */ member) => {
    for (let at = member; at !== 0 && at !== NONE; at = dominator[at]) {
      if (kinds.has(kindOf(at))) return true
    }
    return false
  }
  return clusters.filter(({ members }) => {
    const stride = Math.ceil(members.length / MOST_CHECKED)
    const some = members.filter((_, i) => i % stride === 0)
    if (some.filter(isInside).length * 2 > some.length) return false
    for (const member of members) kinds.add(kindOf(member))
    return true
  })
}

/**
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {import('./paths').Paths} paths
 * @param {import('./dominators').Dominators} dominators
 * @param {Cluster & { isChain: boolean }} cluster
 * @param {number} leastOfNode least bytes of a pile that Node.js holds for itself to be reported
 * @returns {(Finding & { holderNode: number }) | null} null for smaller piles that Node.js and V8
 *   hold for themselves
 */
function describe (graph, names, paths, dominators, cluster, leastOfNode) {
  const { container, members, count, bytes, isChain } = cluster
  const member = members[members.length >> 1]
  const steps = stepsTo(graph, paths, container)
  const below = stepsTo(graph, paths, member).slice(steps.length)
  const { holder, root, at } = describeHolder(graph, names, steps, below)
  const isOfNode = !holder.place || isPlaceOfNode(holder.place.file)
  const heldPlace = isOfNode ? findPlaceOfSome(graph, names, dominators, members) : null
  if (isOfNode && !heldPlace && bytes < leastOfNode) return null
  const code = isOfNode ? heldPlace : holder.place
  return {
    holderNode: at < 0 ? 0 : steps[at].node,
    count,
    className: names.classOf(member),
    retainedBytes: Math.round(bytes),
    places: 1,
    others: [],
    isChain,
    keeps: findKept(graph, names, dominators, member),
    ...findBuffers(graph, dominators, cluster),
    code,
    package: code?.package ?? null,
    holderId: at < 0 ? graph.nodeId[0] : graph.nodeId[steps[at].node],
    exampleId: graph.nodeId[member],
    holder: { ...holder, heldPlace },
    also: null,
    root,
    path: [...steps.slice(-MOST_PATH), ...below.slice(-MOST_BELOW)].map(({ node, edge, name }) => ({
      edge,
      name,
      className: names.classOf(node),
      place: names.placeOf(node)
    }))
  }
}

/**
 * The holder of a pile in JavaScript code, if native code holds the pile, too.
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {import('./paths').Paths} paths that avoid native code
 * @param {import('./dominators').Dominators} dominators
 * @param {Cluster & { isChain: boolean }} cluster
 * @returns {Finding['also']}
 */
function findAlso (graph, names, paths, dominators, { members, bytes, isChain }) {
  const [cluster] = findContainers(graph, paths, dominators, {
    dominator: 0, members, bytes, isChain
  })
  if (!cluster) return null
  const steps = stepsTo(graph, paths, cluster.container)
  const { holder } = describeHolder(graph, names, steps, [])
  return holder.place && holder.name !== null && !isPlaceOfNode(holder.place.file) ? holder : null
}

/**
 * @template {Finding} F
 * @param {F} finding
 * @param {Finding['also']} also
 * @returns {F}
 */
function withAlso (finding, also) {
  const code = finding.code ?? also?.place ?? null
  return { ...finding, also, code, package: code?.package ?? null }
}

/**
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {import('./dominators').Dominators} dominators
 * @param {readonly number[]} members members of the pile. Not every member has a function of the
 *   app: of two ports, say, only one has a listener
 * @returns {import('./names').Place | null}
 */
function findPlaceOfSome (graph, names, dominators, members) {
  // The step is odd, because kinds of members may alternate.
  const stride = Math.ceil(members.length / MOST_CHECKED) | 1
  const checked = members.filter((_, i) => i % stride === 0)
  /** @type {Map<string, import('./names').Place[]>} */
  const byFile = new Map()
  for (const member of checked) {
    const place = findPlaceOfHeld(graph, names, dominators, member)
    if (place) byFile.set(place.file, [...(byFile.get(place.file) ?? []), place])
  }
  const [places = []] = [...byFile.values()].sort((a, b) => b.length - a.length)
  return places.length >= LEAST_WITH_CODE * checked.length ? places[0] ?? null : null
}

/**
 * @param {string} file
 * @param {string} [folder]
 */
function isWithin (file, folder) {
  const path = file.replace(/^file:\/\//, '')
  return folder !== undefined && path.startsWith(folder) && /^[\\/]/.test(path.slice(folder.length))
}

/**
 * @param {HeapGraph} graph
 * @param {Names} names
 * @param {import('./dominators').Dominators} dominators
 * @param {number} member
 * @returns {Finding['keeps']}
 */
function findKept (graph, names, { retainedBytes, firstChild, children }, member) {
  const isWrapper = (/** @type {number} */ node) =>
    WRAPPER_TYPES.has(graph.typeOf(node)) || WRAPPERS.has(graph.nameOf(node))
  let at = member
  let isStore = false
  for (let steps = 0; isWrapper(at) && steps < MOST_WRAPPED; steps++) {
    let most = -1
    for (let k = firstChild[at], end = firstChild[at + 1]; k < end; k++) {
      const child = children[k]
      const isLink = graph.nodeName[child] === graph.nodeName[member] &&
        graph.nodeType[child] === graph.nodeType[member]
      if (!isLink && (most < 0 || retainedBytes[child] > retainedBytes[most])) most = child
    }
    if (most < 0) return null
    isStore ||= names.isStore(at, most)
    at = most
  }
  if (at === member || isWrapper(at)) return null
  return { className: names.classOf(at), retainedBytes: retainedBytes[at], isStore }
}

/**
 * Merges all piles of one holder, and all piles of one class with alike holders, into one finding
 * each.
 * @param {(Finding & { holderNode: number })[]} findings largest first
 * @returns {Finding[]} largest first
 */
function merge (findings) {
  /** @type {Map<string | number, Finding>} */
  const merged = new Map()
  for (const { holderNode, ...finding } of findings) {
    const { kind, name, owner, place } = finding.holder
    const like = JSON.stringify([finding.className, kind, name, owner, place?.file, place?.line])
    const { className, count, retainedBytes } = finding
    const ofHolder = holderNode === 0 ? undefined : merged.get(holderNode)
    const ofLike = merged.get(like)
    if (ofHolder) {
      ofHolder.others.push({ className, count, retainedBytes })
    } else if (ofLike) {
      ofLike.count += count
      ofLike.retainedBytes += retainedBytes
      ofLike.bufferBytes += finding.bufferBytes
      ofLike.places++
      merged.set(holderNode, ofLike)
    } else {
      merged.set(like, finding)
      merged.set(holderNode, finding)
    }
  }
  return [...new Set(merged.values())].sort((a, b) => b.retainedBytes - a.retainedBytes)
}

module.exports = { findHolders }
