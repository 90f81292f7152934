'use strict'

/** Limit of followed slabs: enough to estimate a share, and few enough to cost nothing. */
const FOLLOWED = 32
/**
 * Sampling interval. It suffices, because an app that fills slabs quickly still gives enough
 * samples.
 */
const EVERY_FRAMES = 2
/**
 * Number of major GCs after which an unused slab is freed: the first may have begun before the pool
 * left the slab.
 */
const MAJORS = 2

/** @type {{ slabs: number, bytes: number } | undefined} */
let counted

/**
 * Sets the result of a count of slices, which frames send from now on.
 * @param {{ slabs: number, bytes: number }} count
 */
const setCounted = count => { counted = count }

/**
 * Slabs of Node's Buffer pool that small slices keep alive. Buffer.from and allocUnsafe cut small
 * Buffers from a slab (Buffer.poolSize), and one slice keeps a used-up slab alive. The collector
 * samples the current slab every second frame, follows it weakly, and counts it as kept if it
 * survives two major GCs after the pool left it.
 *
 * @param {{ majors: () => number, slab?: () => ArrayBufferLike }} dependencies majors: major GCs so
 *   far; slab: the current one
 * @returns {import('./collector').Collector}
 */
function bufferPool ({ majors, slab = () => Buffer.allocUnsafe(1).buffer }) {
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
      'bufferPoolBytes', 'bufferSlabsFollowed', 'bufferSlabsKept', 'bufferSlabsCounted',
      'bufferSlicesBytes'
    ],
    read (values, { count }) {
      if (count % EVERY_FRAMES === 0 || !current) sample()
      while (left.length > 0 && majors() - left[0].leftAt > MAJORS) {
        followed++
        if (left.shift()?.ref.deref() !== undefined) kept++
      }
      values.bufferPoolBytes = Buffer.poolSize
      values.bufferSlabsFollowed = followed
      values.bufferSlabsKept = kept
      if (counted) {
        values.bufferSlabsCounted = counted.slabs
        values.bufferSlicesBytes = counted.bytes
      }
    }
  }
}

module.exports = { bufferPool, setCounted }
