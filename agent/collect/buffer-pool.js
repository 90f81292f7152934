'use strict'

const { Buffer: NodeBuffer } = require('node:buffer')

/** Enough slabs to estimate a share, and few enough to cost nothing. */
const FOLLOWED = 32
/** An app that fills slabs quickly still gives enough samples. */
const EVERY_FRAMES = 2
/**
 * Number of major GCs after which an unused slab is freed: the first may have begun before the pool
 * left the slab.
 */
const MAJORS = 2

/** Time for which a count holds: the app may retain other slices later. */
const COUNT_HOLDS_MS = 3_600_000

/** @typedef {{ slabsBytes: number, slicesBytes: number, poolBytes: number }} Count */
/** @type {Count | undefined} */
let counted
let countedAtMs = 0

/**
 * Sets the result of a count of slices, which frames send for an hour.
 * @param {Count} count
 * @param {number} atMs
 */
function setCounted (count, atMs) {
  counted = count
  countedAtMs = atMs
}

/**
 * Slabs of Node's Buffer pool that slices keep alive. The collector samples the current slab every
 * second frame, follows it weakly, and counts it as kept if it survives two major GCs after the
 * pool left it.
 *
 * @param {{ majors: () => number, slab?: () => ArrayBufferLike }} dependencies majors: major GCs so
 *   far; slab: the current one
 * @returns {import('./collector').Collector}
 */
function bufferPool ({ majors, slab = () => NodeBuffer.allocUnsafe(1).buffer }) {
  /** @type {{ ref: WeakRef<ArrayBufferLike>, leftAt: number }[]} former slabs, oldest first */
  const left = []
  /** @type {WeakRef<ArrayBufferLike> | undefined} */
  let current
  let followed = 0
  let kept = 0
  const sample = () => {
    const inUse = slab()
    if (current?.deref() === inUse) return
    if (current && left.length < FOLLOWED) left.push({ ref: current, leftAt: majors() })
    current = new WeakRef(inUse)
  }
  return {
    fields: [
      'bufferPoolBytes', 'bufferSlabsFollowed', 'bufferSlabsKept', 'bufferSlabsCountedBytes',
      'bufferSlicesCountedBytes', 'bufferPoolCountedBytes'
    ],
    read (values, { count, nowSeconds }) {
      if (count % EVERY_FRAMES === 0 || !current) sample()
      while (left.length > 0 && majors() - left[0].leftAt > MAJORS) {
        followed++
        if (left.shift()?.ref.deref() !== undefined) kept++
      }
      values.bufferPoolBytes = NodeBuffer.poolSize
      values.bufferSlabsFollowed = followed
      values.bufferSlabsKept = kept
      if (counted && 1000 * nowSeconds - countedAtMs < COUNT_HOLDS_MS) {
        values.bufferSlabsCountedBytes = counted.slabsBytes
        values.bufferSlicesCountedBytes = counted.slicesBytes
        values.bufferPoolCountedBytes = counted.poolBytes
      }
    }
  }
}

module.exports = { bufferPool, setCounted }
