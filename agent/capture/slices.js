'use strict'

const { Buffer: NodeBuffer } = require('node:buffer')
const { nowMs } = require('../primordials')
const { setCounted } = require('../collect/buffer-pool')
const { getHeapStatistics } = require('../v8-functions')
const { CaptureError } = require('./parts')
const { NO_PROFILER, inspect } = require('./profilers')

/**
 * Largest heap whose Buffers are counted: V8 runs full GCs and passes over the heap. That took 70
 * to 130 ms with 8 MiB, 280 to 470 ms with 40 MiB, and five seconds with 440 MiB.
 */
const MOST_HEAP_BYTES = 32 * 2 ** 20
/** Least room below the heap's limit, for the list of all Buffers. */
const LEAST_ROOM_BYTES = 64 * 2 ** 20
/** Time between two counts, whoever asks. */
const EVERY_MS = 600_000

/** Name by which code of the inspector finds what it needs, while it counts. */
const SHARED = 'memwatch.slices'
const EXPRESSION = `process[Symbol.for('${SHARED}')]`

/** Prototype of all views of bytes, such as Buffer. */
const VIEWS = Object.getPrototypeOf(NodeBuffer.prototype)
/** Getters that apps cannot define on a view of their own. */
const [bufferOf, lengthOf] = ['buffer', 'byteLength'].map(name =>
  /** @type {() => any} */ (
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(VIEWS), name)?.get))

let countedAtMs = -Infinity

/**
 * @param {object[]} views objects with the prototype VIEWS, not all of them views
 * @param {number} slabBytes
 */
function sumUp (views, slabBytes) {
  /** @type {Map<ArrayBufferLike, number>} */
  const slabs = new Map()
  for (let i = 0; i < views.length; i++) {
    try {
      const buffer = Reflect.apply(bufferOf, views[i], [])
      const bytes = Reflect.apply(lengthOf, views[i], [])
      if (buffer.byteLength !== slabBytes || bytes === slabBytes) continue
      slabs.set(buffer, (slabs.get(buffer) ?? 0) + bytes)
    } catch {} // an object that only inherits from a view
  }
  let slicesBytes = 0
  // Overlapping slices count at most as their slab.
  slabs.forEach(bytes => { slicesBytes += Math.min(bytes, slabBytes) })
  return { slabsBytes: slabs.size * slabBytes, slicesBytes }
}

/**
 * Counts the slices that keep slabs of the Buffer pool alive, and their bytes. No other way tells
 * slices of a few bytes from slices that fill their slabs.
 * @returns {{ ok: true, blockedSeconds: number }} blockedSeconds: pause of the app; frames have the
 *   result
 * @throws {CaptureError} without an inspector, too soon after the last count, or if the heap is too
 *   large or too full
 */
function countSlices () {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  if (nowMs() - countedAtMs < EVERY_MS) {
    throw new CaptureError('too_soon', 'the agent counted slices less than ten minutes ago')
  }
  if (used > MOST_HEAP_BYTES || limit - used < LEAST_ROOM_BYTES) {
    throw new CaptureError('not_supported', 'the heap is too large for a count of its Buffers')
  }
  const session = inspect()
  if (!session) throw new CaptureError('not_supported', NO_PROFILER)
  const beganMs = countedAtMs = nowMs()
  let result
  const shared = {
    views: VIEWS,
    take (/** @type {object[]} */ found) {
      result = sumUp(found, NodeBuffer.allocUnsafe(1).buffer.byteLength)
    }
  }
  Object.defineProperty(process, Symbol.for(SHARED), { value: shared, configurable: true })
  try {
    const { result: views } = session.post('Runtime.evaluate', { expression: `${EXPRESSION}.views` })
    const { objects } = session.post('Runtime.queryObjects', { prototypeObjectId: views.objectId })
    session.post('Runtime.callFunctionOn', {
      objectId: objects.objectId,
      functionDeclaration: `function () { ${EXPRESSION}.take(this) }`,
      silent: true
    })
  } finally {
    session.end()
    Reflect.deleteProperty(process, Symbol.for(SHARED))
  }
  if (!result) throw new CaptureError('not_supported', 'the inspector does not reach this process')
  setCounted(result, nowMs())
  return { ok: true, blockedSeconds: (nowMs() - beganMs) / 1000 }
}

module.exports = { countSlices }
