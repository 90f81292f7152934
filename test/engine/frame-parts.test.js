'use strict'

const { heapResident, outsideHeap, nativeMemory } = require('../../engine/memory/frame-parts')
const { scanOf } = require('../../engine/memory/scan')
const { NO_WORKERS } = require('../../engine/history/tracks')

const MIB = 2 ** 20
/** A process with 20 MiB outside its heap, of which 2 are Buffers; V8 counts 30 of its 40 MiB. */
const VALUES = {
  rssBytes: 100 * MIB,
  rssAnonBytes: 60 * MIB,
  heapPhysicalBytes: 30 * MIB,
  heapTotalBytes: 50 * MIB,
  externalBytes: 2 * MIB,
  residentBytes: { malloc_heap: 15 * MIB, malloc_arenas: 4 * MIB, stacks: MIB, other: 40 * MIB }
}
const SCAN = scanOf(VALUES, { allocator: 'glibc' }, NO_WORKERS)

/** @param {Record<string, number>} changes in MiB since the scan */
function later (changes) {
  /** @type {Record<string, any>} */
  const values = { ...VALUES }
  for (const [name, mib] of Object.entries(changes)) values[name] += mib * MIB
  return {
    outside: Number(outsideHeap(values, NO_WORKERS, SCAN)) / MIB,
    heap: heapResident(values, NO_WORKERS, SCAN) / MIB,
    native: Number(nativeMemory(values, NO_WORKERS, SCAN)) / MIB
  }
}

describe('memory outside the heap after a scan', () => {
  it.each(/** @type {[string, Record<string, number>, number][]} */ ([
    ['is that of the scan', {}, 20],
    ['grows with native memory, although the heap could be larger', { rssAnonBytes: 5 }, 25],
    ['does not grow with the heap', { rssAnonBytes: 5, heapPhysicalBytes: 5 }, 20],
    ['does not grow with pages that V8 no longer counts', { heapPhysicalBytes: -20 }, 20],
    [
      'grows at most as all memory does',
      { rssAnonBytes: 3, heapPhysicalBytes: -20, heapTotalBytes: -20 },
      23
    ],
    ['does not shrink with pages that V8 counts again', { heapPhysicalBytes: 8 }, 20],
    ['does not shrink with pages that V8 returns', { rssAnonBytes: -8 }, 20],
    ['shrinks with freed Buffers', { rssAnonBytes: -1, externalBytes: -1 }, 19],
    ['keeps freed Buffers whose memory malloc retains', { externalBytes: -1 }, 20],
    ['is at most what V8 does not count', { rssAnonBytes: -15 }, 15]
  ]))('%s', (_, changes, mib) => {
    const { outside, heap, native } = later(changes)
    expect(outside).toBe(mib)
    expect(heap).toBe(60 + (changes.rssAnonBytes ?? 0) - mib)
    expect(native).toBe(mib - 2 - (changes.externalBytes ?? 0))
  })
  it('leaves out heaps of workers that began to report', () => {
    const values = {
      ...VALUES,
      rssAnonBytes: 90 * MIB,
      workerThreads: 1,
      residentBytes: { ...VALUES.residentBytes, other: 70 * MIB }
    }
    const scan = scanOf(values, { allocator: 'glibc' }, NO_WORKERS)
    const workers = { ...NO_WORKERS, count: 1, heapBytes: 15 * MIB }
    expect(outsideHeap(values, NO_WORKERS, scan)).toBe(40 * MIB)
    expect(outsideHeap(values, workers, scan)).toBe(25 * MIB)
  })
})

it.each([
  // Node's own 12 MiB and 2 MiB of Buffers lie outside, the rest may be heap.
  ['in the heap as far as V8 may hold it', {}, 14],
  ['outside if V8 holds less', { heapTotalBytes: 35 * MIB }, 25],
  ['outside at most as far as V8 does not count it', { heapPhysicalBytes: 50 * MIB }, 10]
])('before the first scan memory is %s', (_, changes, mib) => {
  const values = { ...VALUES, ...changes }
  expect(Number(outsideHeap(values, NO_WORKERS)) / MIB).toBe(mib)
  expect(heapResident(values, NO_WORKERS) / MIB).toBe(60 - mib)
})

it('is unknown without the anonymous memory of the process', () => {
  const values = { ...VALUES, rssAnonBytes: undefined }
  expect(outsideHeap(values, NO_WORKERS, SCAN)).toBeUndefined()
  expect(heapResident(values, NO_WORKERS, SCAN)).toBe(30 * MIB)
})
