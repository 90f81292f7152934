'use strict'

const { Buffer: NodeBuffer } = require('node:buffer')
const { nowMs } = require('../primordials')
const { setCounted } = require('../collect/buffer-pool')
const { getHeapStatistics } = require('../v8-functions')
const { CaptureError } = require('./parts')
const { NO_PROFILER, inspect } = require('./profilers')

/**
 * Largest heap whose Buffers are counted, and least room below its limit: V8 runs full GCs, in 70
 * to 130 ms with 8 MiB, and in five seconds with 440 MiB.
 */
const MOST_HEAP_BYTES = 32 * 2 ** 20
const LEAST_ROOM_BYTES = 64 * 2 ** 20
const EVERY_MS = 600_000

/** Code of the inspector finds what it needs here. */
const SHARED = Symbol.for('memwatch.slices')
const EXPRESSION = "process[Symbol.for('memwatch.slices')]"
/** The prototype of all typed arrays. */
const VIEWS = Object.getPrototypeOf(Object.getPrototypeOf(NodeBuffer.prototype))
/** Getters that no view of an app replaces. */
const [bufferOf, lengthOf] = ['buffer', 'byteLength'].map(name =>
  /** @type {() => any} */ (Object.getOwnPropertyDescriptor(VIEWS, name)?.get))
/** Larger memory may be used without views. */
const MOST_SLAB_BYTES = 4 * 2 ** 20

let countedAtMs = -Infinity

/** @param {object[]} views objects with the prototype VIEWS */
function sumUp (views) {
  /** @type {Map<ArrayBufferLike, number>} */
  const slabs = new Map()
  for (let i = 0; i < views.length; i++) {
    try {
      const slab = Reflect.apply(bufferOf, views[i], [])
      slabs.set(slab, (slabs.get(slab) ?? 0) + Reflect.apply(lengthOf, views[i], []))
    } catch {} // an object that only inherits from a view
  }
  let slabsBytes = 0
  let slicesBytes = 0
  let poolBytes = 0
  slabs.forEach((bytes, { byteLength }) => {
    if (byteLength > MOST_SLAB_BYTES) return
    slabsBytes += byteLength
    if (byteLength === NodeBuffer.poolSize) poolBytes += byteLength
    // Overlapping views count at most once.
    slicesBytes += Math.min(bytes, byteLength)
  })
  return { slabsBytes, slicesBytes, poolBytes }
}

/**
 * Counts ArrayBuffers, and views that keep them alive, for the next frames:
 * docs/decisions/0075-slices-are-counted.md.
 * @returns {{ ok: true, blockedSeconds: number }} blockedSeconds: pause of the app
 * @throws {CaptureError} if that is not possible, or too soon
 */
function countSlices () {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  const beganMs = nowMs()
  if (beganMs - countedAtMs < EVERY_MS) {
    throw new CaptureError('too_soon', 'the agent counted slices less than ten minutes ago')
  }
  if (used > MOST_HEAP_BYTES || limit - used < LEAST_ROOM_BYTES) {
    throw new CaptureError('not_supported', 'the heap is too large for a count of its Buffers')
  }
  const session = inspect()
  if (!session) throw new CaptureError('not_supported', NO_PROFILER)
  countedAtMs = beganMs
  let result
  const value = {
    VIEWS,
    take (/** @type {object[]} */ views) {
      result = sumUp(views)
    }
  }
  Object.defineProperty(process, SHARED, { value, configurable: true })
  try {
    const { result: views } =
      session.post('Runtime.evaluate', { expression: `${EXPRESSION}.VIEWS` })
    const { objects } = session.post('Runtime.queryObjects', { prototypeObjectId: views.objectId })
    session.post('Runtime.callFunctionOn', {
      objectId: objects.objectId,
      functionDeclaration: `function () { ${EXPRESSION}.take(this) }`,
      silent: true
    })
  } finally {
    session.end()
    Reflect.deleteProperty(process, SHARED)
  }
  if (!result) throw new CaptureError('not_supported', 'the inspector does not reach this process')
  setCounted(result, nowMs())
  return { ok: true, blockedSeconds: (nowMs() - beganMs) / 1000 }
}

module.exports = { countSlices }
