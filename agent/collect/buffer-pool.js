'use strict'

/** Slabs that are followed at a time: enough for a share, few enough to cost nothing. */
const FOLLOWED = 32
/** The slab is looked at so often: whoever fills them quickly leaves enough to be seen. */
const EVERY_FRAMES = 2
/**
 * A slab that nobody slices any more is gone after so many majors: the first may have begun before
 * it was left.
 */
const MAJORS = 2

/**
 * Whether small slices keep the slabs of Node's Buffer pool alive. Buffer.from and allocUnsafe cut
 * small Buffers out of a slab (Buffer.poolSize); a slab that is used up lives on as long as one
 * slice of it does. The slab in use is looked at every second frame, followed weakly, and counted
 * as kept if it is still there two major GCs after it was left. Nothing is kept alive by following
 * it, and never more than a few are followed.
 *
 * @param {{ majors: () => number, slab?: () => ArrayBufferLike }} dependencies majors: major GCs so
 *   far; slab: the one in use
 * @returns {import('./collector').Collector}
 */
function bufferPool ({ majors, slab = () => Buffer.allocUnsafe(1).buffer }) {
  /**
   * @type {{ ref: WeakRef<ArrayBufferLike>, leftAt: number }[]} slabs that were left, oldest first
   */
  const left = []
  /** @type {WeakRef<ArrayBufferLike> | undefined} */
  let current
  let followed = 0
  let kept = 0
  const look = () => {
    const inUse = slab()
    if (current?.deref() === inUse) return
    if (current && left.length < FOLLOWED) left.push({ ref: current, leftAt: majors() })
    current = new WeakRef(inUse)
  }
  return {
    fields: ['bufferPoolBytes', 'bufferSlabsFollowed', 'bufferSlabsKept'],
    read (values, { count }) {
      if (count % EVERY_FRAMES === 0 || !current) look()
      while (left.length > 0 && majors() - left[0].leftAt > MAJORS) {
        followed++
        if (left.shift()?.ref.deref() !== undefined) kept++
      }
      values.bufferPoolBytes = Buffer.poolSize
      values.bufferSlabsFollowed = followed
      values.bufferSlabsKept = kept
    }
  }
}

module.exports = { bufferPool }
