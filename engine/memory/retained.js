'use strict'

/**
 * Share of the slack that must move before all of it counts as freed. Memory moves if Buffers fill
 * and leave it, or if malloc returns it to the system. Memory in use does not move. The threshold
 * separates apps that free memory from apps that hold it in the lab's recordings.
 */
const MOVED_SHARE = 0.12
/** Allocators whose retained memory can be measured, by a query or by the share that moves. */
const TELLABLE = Object.freeze(['glibc', 'jemalloc', 'mimalloc', 'tcmalloc'])

/**
 * Tells if memwatch can measure an allocator's retained memory. musl's malloc has no call that
 * reports its memory, and its retention was never measured.
 * @param {import('@memwatch/agent/protocol/frame').Hello['allocator']} allocator
 * @returns {boolean} true if its retained memory can be measured
 */
const canTellRetained = allocator => TELLABLE.includes(allocator)

module.exports = { canTellRetained, MOVED_SHARE }
