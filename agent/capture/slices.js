'use strict'

const { nowMs, stringifyJson } = require('../primordials')
const { setCounted } = require('../collect/buffer-pool')
const { getHeapStatistics } = require('../v8-functions')
const { CaptureError } = require('./parts')
const { NO_PROFILER, inspect } = require('./profilers')

/**
 * Largest heap whose Buffers are counted. V8 runs full GCs and passes over the heap, which took 30
 * to 90 ms on small heaps.
 */
const MOST_HEAP_BYTES = 512 * 2 ** 20

/**
 * Function that runs with all Buffers as `this`. Overlapping slices count at most as their slab.
 * @param {number} slabBytes
 */
const sumOf = slabBytes => `function () {
  const slabs = new Map()
  for (const { buffer, byteLength } of this) {
    if (buffer.byteLength !== ${slabBytes} || byteLength === ${slabBytes}) continue
    slabs.set(buffer, (slabs.get(buffer) || 0) + byteLength)
  }
  let bytes = 0
  for (const used of slabs.values()) bytes += Math.min(used, ${slabBytes})
  return { slabs: slabs.size, bytes }
}`

/**
 * Counts the slices that keep slabs of the Buffer pool alive, and their bytes. No other way tells
 * slices of a few bytes from slices that fill their slabs.
 * @returns {{ ok: true, blockedSeconds: number }} blockedSeconds: pause of the app; frames
 *   have the counts
 * @throws {CaptureError} without an inspector, or if the heap is too large
 */
function countSlices () {
  if (getHeapStatistics().used_heap_size > MOST_HEAP_BYTES) {
    throw new CaptureError('not_supported', 'the heap is too large for a count of its Buffers')
  }
  const session = inspect()
  if (!session) throw new CaptureError('not_supported', NO_PROFILER)
  const beganMs = nowMs()
  try {
    const { result: prototype } = session.post('Runtime.evaluate', { expression: 'Buffer.prototype' })
    const { objects } = session.post('Runtime.queryObjects', {
      prototypeObjectId: prototype.objectId
    })
    const { result, exceptionDetails } = session.post('Runtime.callFunctionOn', {
      objectId: objects.objectId,
      functionDeclaration: sumOf(Buffer.allocUnsafe(1).buffer.byteLength),
      returnByValue: true
    })
    if (exceptionDetails) throw new CaptureError('failed', stringifyJson(exceptionDetails.text))
    setCounted(result.value)
  } finally {
    session.end()
  }
  return { ok: true, blockedSeconds: (nowMs() - beganMs) / 1000 }
}

module.exports = { countSlices }
