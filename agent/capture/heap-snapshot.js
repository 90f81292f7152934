'use strict'

const os = require('node:os')
const { Promise } = require('../primordials')
const { getHeapSnapshot, getHeapSpaceStatistics } = require('../v8-functions')
const { CaptureError } = require('./parts')

/**
 * Memory that a snapshot takes in addition to the heap, for each byte of heap: 8 to 22 bytes for
 * small objects, 0.7 to 3 for long strings and arrays (bench/snapshot-cost.js). The memory depends
 * on the number of objects. v8.queryObjects counts them, but takes memory, blocks the app and
 * prints a warning. So the agent assumes the maximum. Large objects have their own spaces and
 * factor.
 */
const MOST_PER_SMALL_BYTE = 22
const MOST_PER_LARGE_BYTE = 3
/** Read size of a snapshot's stream: Node writes pieces of this size. */
const PIECE_BYTES = 65_536

/**
 * All objects and their references, for DevTools. V8 blocks the app meanwhile.
 * @type {import('./index').Capture}
 */
async function * heapSnapshot ({ force, headroomBytes = Infinity }) {
  const headroom = Math.min(headroomBytes, os.freemem())
  const predicted = predictedBytes(getHeapSpaceStatistics())
  if (!force && predicted > headroom) {
    throw new CaptureError('too_large', 'a snapshot could end the process', {
      predictedBytes: predicted,
      headroomBytes: Math.max(0, Math.round(headroom))
    })
  }
  yield { part: 'snapshot', chunks: readPieces(getHeapSnapshot()) }
}

/**
 * Reads the stream of a snapshot in pieces. `for await` waits for an end event that Node does not
 * emit before 20.19.5, 22.18 and 24.4 (https://github.com/nodejs/node/pull/58846). Up to Node 24
 * `for await` also copies the whole snapshot into one Buffer, as V8 writes it in one go.
 * @param {import('node:stream').Readable} stream
 * @returns {AsyncGenerator<Buffer>} leaving the generator ends the stream
 */
async function * readPieces (stream) {
  let over = false
  /** @type {Error | undefined} */
  let failure
  let wake = () => {}
  stream.on('readable', () => wake())
  stream.once('end', () => { over = true; wake() })
  stream.on('error', error => { failure = error; wake() })
  try {
    for (;;) {
      const piece = stream.read(PIECE_BYTES) ?? stream.read()
      if (piece) yield piece
      else if (failure) throw failure
      else if (over) return
      else await new Promise(resolve => { wake = () => resolve(undefined) })
    }
  } finally {
    stream.destroy()
  }
}

/**
 * @param {Pick<import('node:v8').HeapSpaceInfo, 'space_name' | 'space_used_size'>[]} spaces
 * @returns {number} upper bound of a snapshot's memory beside the heap
 */
function predictedBytes (spaces) {
  return spaces.reduce(
    (sum, { space_name: name, space_used_size: used }) =>
      sum + used * (name.includes('large_object') ? MOST_PER_LARGE_BYTE : MOST_PER_SMALL_BYTE),
    0
  )
}

module.exports = { heapSnapshot, readPieces, predictedBytes }
