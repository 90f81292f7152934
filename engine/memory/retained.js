'use strict'

/**
 * Share of the slack that must move before all of it counts as freed. Freed memory moves: Buffers
 * fill it and leave it, or malloc returns part of it. Memory in use does neither. The threshold
 * separates apps that free memory from apps that hold it in the lab's recordings.
 */
const MOVED_SHARE = 0.12
/** Allocators whose retained memory can be measured, by a query or by its movement. */
const TELLABLE = Object.freeze(['glibc', 'jemalloc', 'mimalloc', 'tcmalloc'])

/**
 * Tells if memwatch can measure an allocator's retained memory. musl's malloc has no call that
 * reports its memory, and its retention was never measured.
 * @param {import('@memwatch/agent/protocol/frame').Hello['allocator']} allocator
 * @returns {boolean} true if its retained memory can be measured
 */
const canTellRetained = allocator => TELLABLE.includes(allocator)

/**
 * Memory that malloc retains: freed by the app, not returned to the OS. It equals the slack if
 * malloc was queried. Otherwise native code may use the slack, so only the share that moved counts
 * as free.
 *
 * @param {{ slackBytes: number, movedBytes: number, asked: boolean }} of
 * @returns {{ bytes: number, least: number, most: number }}
 */
function retainedOf ({ slackBytes, movedBytes, asked }) {
  const moved = Math.min(slackBytes, movedBytes)
  if (asked) return { bytes: slackBytes, least: slackBytes, most: slackBytes }
  return {
    bytes: movedBytes >= MOVED_SHARE * slackBytes ? slackBytes : moved,
    least: moved,
    most: slackBytes
  }
}

module.exports = { canTellRetained, retainedOf, MOVED_SHARE }
