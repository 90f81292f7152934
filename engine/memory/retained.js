'use strict'

/**
 * Freed memory shows by moving: Buffers came and went, or part of it was given back. Memory in use
 * does neither. Where so much of the slack moved, all of it is taken for freed. Chosen on the lab's
 * recordings, between apps that free and apps that hold.
 */
const MOVED_SHARE = 0.12
/** Allocators whose retained memory can be told: by an answer, or by that movement. */
const TELLABLE = Object.freeze(['glibc', 'jemalloc', 'mimalloc', 'tcmalloc'])

/**
 * musl's malloc has no call that says what it holds, and how it keeps memory was never measured.
 * @param {import('@memwatch/agent/protocol/frame').Hello['allocator']} allocator
 * @returns {boolean} whether a share of its memory can be called retained
 */
const canTellRetained = allocator => TELLABLE.includes(allocator)

/**
 * What malloc retains – freed by the app, and not given back – of its slack. Where malloc itself
 * was asked the slack is just that. Else it may be in use by native code: it is believed to be free
 * as far as memory was seen to move.
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
