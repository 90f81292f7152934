'use strict'

/**
 * RSS breakdown of one moment of a history, from its tracks, for charts over time. The browser
 * loads this file unchanged.
 * @param {(track: 'rssBytes' | 'heapResidentBytes' | 'outsideHeapBytes' | 'liveHeapBytes' |
 *   'allocatorSlackBytes' | 'externalBytes') => number | null} read
 * @returns {{ live: number, garbage: number, buffers: number, retained: number, native: number,
 *   files: number } | null} bytes; their sum is RSS. null without RSS
 */
function partsOfTracks (read) {
  const rss = read('rssBytes')
  if (rss === null) return null
  const heap = Math.min(read('heapResidentBytes') ?? 0, rss)
  const outside = Math.min(read('outsideHeapBytes') ?? 0, rss - heap)
  const live = Math.min(read('liveHeapBytes') ?? 0, heap)
  const retained = Math.min(read('allocatorSlackBytes') ?? 0, outside)
  const buffers = Math.min(read('externalBytes') ?? 0, outside - retained)
  return {
    live,
    garbage: heap - live,
    buffers,
    retained,
    native: outside - retained - buffers,
    files: rss - heap - outside
  }
}

module.exports = { partsOfTracks }
