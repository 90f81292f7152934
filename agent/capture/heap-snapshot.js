'use strict'

const os = require('node:os')
const v8 = require('node:v8')
const { CaptureError } = require('./index')

/**
 * What V8 takes beside the heap while it makes a snapshot, for each byte of the heap: measured at 8 to 22 for small objects, 0.7 to 3 for long
 * strings and arrays (bench/snapshot-cost.js). It depends on the number of objects, which cannot be had without a walk that itself
 * takes memory, stops the app, and prints a warning (v8.queryObjects): so the most is taken, except for what lies in spaces of its own as it is large.
 */
const MOST_PER_SMALL_BYTE = 22
const MOST_PER_LARGE_BYTE = 3

/** All objects and their references, for DevTools. The app stands still while it is made. @type {import('./index').Capture} */
async function * heapSnapshot ({ force, headroomBytes = Infinity }) {
  const headroom = Math.min(headroomBytes, os.freemem())
  const predicted = predictedBytes(v8.getHeapSpaceStatistics())
  if (!force && predicted > headroom) {
    throw new CaptureError('too_large', 'a snapshot could end the process', { predictedBytes: predicted, headroomBytes: Math.max(0, Math.round(headroom)) })
  }
  // A stream: V8 holds the snapshot until it is read to its end, and the agent no more than a piece.
  yield { part: 'snapshot', chunks: v8.getHeapSnapshot() }
}

/** @param {Pick<v8.HeapSpaceInfo, 'space_name' | 'space_used_size'>[]} spaces @returns {number} most bytes that a snapshot takes beside the heap */
function predictedBytes (spaces) {
  return spaces.reduce((sum, { space_name: name, space_used_size: used }) => sum + used * (name.includes('large_object') ? MOST_PER_LARGE_BYTE : MOST_PER_SMALL_BYTE), 0)
}

module.exports = { heapSnapshot, predictedBytes }
