'use strict'

const { memoryUsage } = require('../primordials')
const { getHeapSpaceStatistics, getHeapStatistics } = require('../v8-functions')

/** Interval of readings of array buffers: memoryUsage() also reads RSS, from a file. */
const ARRAY_BUFFERS_EVERY_FRAMES = 5
/** V8 subtracts freed array buffers when it allocates one. That takes 3 µs: not for less. */
const MUCH_BYTES = 8 * 2 ** 20
const allocateOne = Reflect.construct.bind(Reflect, ArrayBuffer, [1])

/**
 * memoryUsage() throws without /proc, as it also reads RSS.
 * @returns {number | undefined} bytes
 */
function readArrayBuffers () {
  try {
    return memoryUsage().arrayBuffers
  } catch {
    return undefined
  }
}

/** V8's totals and spaces. @returns {import('./collector').Collector} */
function heap () {
  /** External memory at the last reading of array buffers. @type {number | undefined} */
  let readAtBytes
  /** @type {number | undefined} */
  let arrayBuffersBytes = 0
  /** Spaces in each frame: these, and all once used. */
  const used = new Set(['new_space', 'old_space', 'large_object_space', 'code_space'])
  return {
    fields: [
      'heapUsedBytes', 'heapTotalBytes', 'heapPhysicalBytes', 'heapExecutableBytes',
      'heapSizeLimitBytes', 'heapAllocatedBytes', 'externalBytes', 'arrayBuffersBytes',
      'mallocedBytes', 'peakMallocedBytes', 'globalHandlesBytes', 'nativeContexts',
      'detachedContexts', 'spaces'
    ],
    read (values, { count, isOnDemand }) {
      if ((readAtBytes ?? 0) > MUCH_BYTES) allocateOne()
      const heap = getHeapStatistics()
      values.heapUsedBytes = heap.used_heap_size
      values.heapTotalBytes = heap.total_heap_size
      values.heapPhysicalBytes = heap.total_physical_size
      values.heapExecutableBytes = heap.total_heap_size_executable
      values.heapSizeLimitBytes = heap.heap_size_limit
      // V8's unsigned count underflows to nearly 2^64 if more memory is released than registered;
      // the exporter rejects such a number.
      values.externalBytes =
        heap.external_memory <= Number.MAX_SAFE_INTEGER ? heap.external_memory : undefined
      if (readAtBytes === undefined || isOnDemand || count % ARRAY_BUFFERS_EVERY_FRAMES === 2) {
        if (readAtBytes !== heap.external_memory) arrayBuffersBytes = readArrayBuffers()
        readAtBytes = heap.external_memory
        values.arrayBuffersBytes = arrayBuffersBytes
      }
      values.mallocedBytes = heap.malloced_memory
      values.peakMallocedBytes = heap.peak_malloced_memory
      values.globalHandlesBytes = heap.used_global_handles_size
      values.nativeContexts = heap.number_of_native_contexts
      values.detachedContexts = heap.number_of_detached_contexts
      if (heap.total_allocated_bytes !== undefined) {
        values.heapAllocatedBytes = heap.total_allocated_bytes
      }
      /** @type {Record<string, import('../protocol/frame').SpaceRow>} */
      const spaces = {}
      for (const {
        space_name: name,
        space_used_size: usedBytes,
        space_size: size,
        space_available_size: available,
        physical_space_size: physical
      } of getHeapSpaceStatistics()) {
        if (size === 0 && !used.has(name)) continue
        used.add(name)
        spaces[name] = [usedBytes, size, available, physical]
      }
      values.spaces = spaces
    }
  }
}

module.exports = { heap }
