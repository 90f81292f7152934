'use strict'

const { NOT_RETAINING } = require('./heap-graph')

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/** Name that V8 gives to the memory of an ArrayBuffer in a snapshot. */
const BACKING_STORE = 'system / JSArrayBufferData'
/** Upper bounds of examined members of a pile, and of examined nodes below each member. */
const MOST_CHECKED = 100
const MOST_BELOW = 1000
/** A pile with this share of its bytes in ArrayBuffers counts as a pile of Buffers. */
const LEAST_SHARE = 0.5
/** Least size of an ArrayBuffer that a small slice can pin. */
const LEAST_STORE_BYTES = 4096

/**
 * ArrayBuffers that a pile keeps alive, and their views. A snapshot shows the length of an
 * ArrayBuffer, but not the length of its views: a Buffer may be all of its ArrayBuffer, or a slice
 * of a few bytes.
 * @typedef {object} Pins
 * @property {string} viewName class of the views: Buffer, Uint8Array, DataView
 * @property {number} views
 * @property {number} stores ArrayBuffers
 * @property {number} storeBytes median length of one ArrayBuffer
 */

/**
 * Memory of the ArrayBuffers that only this pile retains, estimated from some of its members.
 * @param {HeapGraph} graph
 * @param {import('./dominators').Dominators} dominators
 * @param {object} pile
 * @param {readonly number[]} pile.members all, or some evenly chosen ones
 * @param {number} pile.count number of all members
 * @param {number} pile.bytes bytes that all members retain
 * @returns {{ bufferBytes: number, pins: Pins | null }} pins: null if the pile pins no large
 *   ArrayBuffers
 */
function findBuffers (graph, dominators, { members, count, bytes }) {
  const none = { bufferBytes: 0, pins: null }
  const name = graph.strings.indexOf(BACKING_STORE)
  if (name < 0) return none
  const stride = Math.ceil(members.length / MOST_CHECKED)
  const checked = members.filter((_, i) => i % stride === 0)
  const { retainedBytes, dominator } = dominators
  const stores = checked.flatMap(member => findStores(graph, dominators, member, name))
  const ofAll = checked.reduce((sum, member) => sum + retainedBytes[member], 0)
  if (stores.length === 0 || ofAll === 0) return none
  const ofBuffers = stores.reduce((sum, store) => sum + graph.bytesOf(store), 0)
  const bufferBytes = Math.round(bytes * (ofBuffers / ofAll))
  const storeBytes = median(stores.map(store => graph.bytesOf(store)))
  if (bufferBytes < LEAST_SHARE * bytes || storeBytes < LEAST_STORE_BYTES) {
    return { bufferBytes, pins: null }
  }
  // Only the ArrayBuffer refers to its memory; views refer to the ArrayBuffer.
  const views = stores.flatMap(store => findViews(graph, dominators, dominator[store]))
  const scale = count / checked.length
  const pins = {
    viewName: views.length === 0 ? 'ArrayBuffer' : graph.nameOf(views[0]),
    views: Math.round(views.length * scale),
    stores: Math.round(stores.length * scale),
    storeBytes
  }
  return { bufferBytes, pins }
}

/**
 * @param {HeapGraph} graph
 * @param {import('./dominators').Dominators} dominators
 * @param {number} member
 * @param {number} name index of the name of backing stores
 * @returns {number[]} backing stores that only this member retains
 */
function findStores (graph, { firstChild, children }, member, name) {
  const open = [member]
  const found = []
  for (let k = 0; k < open.length; k++) {
    const node = open[k]
    if (graph.nodeName[node] === name) found.push(node)
    const end = firstChild[node + 1]
    for (let c = firstChild[node]; c < end && open.length < MOST_BELOW; c++) open.push(children[c])
  }
  return found
}

/**
 * @param {HeapGraph} graph
 * @param {import('./dominators').Dominators} dominators
 * @param {number} buffer an ArrayBuffer
 * @returns {number[]} nodes of its views
 */
function findViews ({ firstEdge, edgeTo, edgeType, edgeName, strings }, { reverse }, buffer) {
  const name = strings.indexOf('buffer')
  const found = []
  for (let k = reverse.first[buffer], end = reverse.first[buffer + 1]; k < end; k++) {
    const from = reverse.sources[k]
    for (let e = firstEdge[from], last = firstEdge[from + 1]; e < last; e++) {
      if (edgeTo[e] !== buffer || edgeName[e] !== name || edgeType[e] === NOT_RETAINING) continue
      found.push(from)
      break
    }
  }
  return found
}

/** @param {number[]} values */
const median = values => values.toSorted((a, b) => a - b)[values.length >> 1]

module.exports = { findBuffers }
