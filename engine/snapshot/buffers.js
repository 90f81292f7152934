'use strict'

/** @typedef {import('./heap-graph').HeapGraph} HeapGraph */

/** Memory of an ArrayBuffer, as V8 calls it in a snapshot. */
const BACKING_STORE = 'system / JSArrayBufferData'
/** So many members of a pile are looked into, and so many nodes below each. */
const MOST_CHECKED = 100
const MOST_BELOW = 1000

/**
 * Memory of ArrayBuffers that a pile alone retains, from some of its members.
 * @param {HeapGraph} graph
 * @param {import('./dominators').Dominators} dominators
 * @param {readonly number[]} members
 * @param {number} bytes that all members retain
 * @returns {number} bytes
 */
function estimateBuffers (graph, { firstChild, children, retainedBytes }, members, bytes) {
  const name = graph.strings.indexOf(BACKING_STORE)
  if (name < 0) return 0
  const stride = Math.ceil(members.length / MOST_CHECKED)
  let ofBuffers = 0
  let ofAll = 0
  for (let i = 0; i < members.length; i += stride) {
    ofAll += retainedBytes[members[i]]
    const open = [members[i]]
    for (let k = 0; k < open.length; k++) {
      const node = open[k]
      if (graph.nodeName[node] === name) ofBuffers += graph.bytesOf(node)
      const end = firstChild[node + 1]
      for (let c = firstChild[node]; c < end && open.length < MOST_BELOW; c++) {
        open.push(children[c])
      }
    }
  }
  return ofAll === 0 ? 0 : Math.round(bytes * (ofBuffers / ofAll))
}

module.exports = { estimateBuffers, BACKING_STORE }
