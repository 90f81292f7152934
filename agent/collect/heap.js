'use strict'

const { memoryUsage } = require('../primordials')
const { getHeapSpaceStatistics, getHeapStatistics } = require('../v8-functions')

/**
 * process.memoryUsage() reads RSS as well, which opens a file: it is asked for what nobody else
 * knows, now and then.
 */
const ARRAY_BUFFERS_EVERY_FRAMES = 5

/**
 * memoryUsage() reads RSS as well, and throws where there is no /proc to read it from.
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
  /**
   * External memory, which holds them, when the array buffers were read.
   * @type {number | undefined}
   */
  let readAtBytes
  /** @type {number | undefined} */
  let arrayBuffersBytes = 0
  /** Spaces that are looked at, and those that held something: others need not travel. */
  const used = new Set(['new_space', 'old_space', 'large_object_space', 'code_space'])
  return {
    fields: [
      'heapUsedBytes',
      'heapTotalBytes',
      'heapPhysicalBytes',
      'heapExecutableBytes',
      'heapSizeLimitBytes',
      'heapAllocatedBytes',
      'externalBytes',
      'arrayBuffersBytes',
      'mallocedBytes',
      'peakMallocedBytes',
      'globalHandlesBytes',
      'nativeContexts',
      'detachedContexts',
      'spaces'
    ],
    read (values, { count, look }) {
      const heap = getHeapStatistics()
      values.heapUsedBytes = heap.used_heap_size
      values.heapTotalBytes = heap.total_heap_size
      values.heapPhysicalBytes = heap.total_physical_size
      values.heapExecutableBytes = heap.total_heap_size_executable
      values.heapSizeLimitBytes = heap.heap_size_limit
      // V8 counts it unsigned: where more was given back than taken it reads as nearly 2^64, which
      // the exporter refuses.
      values.externalBytes =
        heap.external_memory <= Number.MAX_SAFE_INTEGER ? heap.external_memory : undefined
      if (readAtBytes === undefined || look || count % ARRAY_BUFFERS_EVERY_FRAMES === 2) {
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
