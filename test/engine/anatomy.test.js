'use strict'

const { anatomyOf, residentNow } = require('../../engine/memory/anatomy')
const { parts } = require('../../engine/memory/parts')
const { scanOf } = require('../../engine/memory/scan')
const { NO_WORKERS } = require('../../engine/history/tracks')
const { Target } = require('../../engine/history/target')
const { signalsOf } = require('../../engine/signals')
const { frame, hello, MIB } = require('../support/frames')
const { defined } = require('../support/defined')

/**
 * A process with an RSS of 200 MiB: files 40, V8 60, malloc 80, WebAssembly 10, stacks 1,
 * unexplained 9.
 */
/**
 * @param {number[]} mib
 * @returns {import('@memwatch/agent/protocol/frame').SpaceRow}
 */
const spaceRow = (...mib) =>
  /** @type {[number, number, number, number]} */ (mib.map(mb => mb * MIB))
const VALUES = {
  rssBytes: 200 * MIB,
  rssAnonBytes: 160 * MIB,
  heapTotalBytes: 60 * MIB,
  heapPhysicalBytes: 50 * MIB,
  externalBytes: 40 * MIB,
  arrayBuffersBytes: 30 * MIB,
  mallocedBytes: MIB,
  liveHeapBytes: 20 * MIB,
  spaces: {
    new_space: spaceRow(4, 20, 4, 10),
    old_space: spaceRow(30, 38, 0, 38),
    code_space: spaceRow(1, 2, 0, 2)
  },
  residentBytes: {
    malloc_heap: 60 * MIB,
    malloc_arenas: 15 * MIB,
    malloc_mapped: 5 * MIB,
    webassembly: 10 * MIB,
    stacks: MIB,
    other: 69 * MIB
  }
}
const GLIBC = {
  heap_in_use: 30 * MIB,
  heap_free_pages: 20 * MIB,
  heap_fragments: 4 * MIB,
  heap_top: 6 * MIB,
  arenas_in_use: 2 * MIB,
  arenas_free_pages: 5 * MIB,
  arenas_fragments: MIB,
  arenas_top: 7 * MIB,
  mapped: 4 * MIB
}
/** @typedef {import('@memwatch/agent/protocol/frame').Hello['allocator']} Allocator */

const mb = (/** @type {Record<string, number>} */ bytes) => Object.fromEntries(Object.entries(bytes).map(([name, value]) => [name, Math.round(value / MIB)]))
/**
 * @param {any} [changes]
 * @param {any} [scanned]
 * @param {{ allocator?: Allocator, workers?: typeof NO_WORKERS }} [of]
 */
const anatomy = (
  changes = {},
  scanned = VALUES,
  { allocator = 'glibc', workers = NO_WORKERS } = {}
) => {
  const found = anatomyOf({
    values: { ...VALUES, ...changes },
    workers,
    scan: scanned ? scanOf(scanned, { allocator }, workers) : undefined,
    allocator
  })
  if (!found) throw new Error('no RSS')
  return found
}

describe('the breakdown of RSS', () => {
  it('has the expected parts', () => {
    expect(mb(anatomy().parts)).toEqual({
      heap_live: 20,
      heap_garbage: 11,
      heap_slack: 9,
      new_space: 20, // V8 counts 10 MiB as touched; 10 more are resident.
      worker_heaps: 0,
      silent_worker_heaps: 0,
      heap_pooled: 0,
      // V8 counts WebAssembly memory as external, but it is not part of malloc's memory.
      external: 30,
      webassembly: 10,
      allocator_in_use: 0,
      allocator_retained: 0,
      allocator_unasked: 50,
      addon_malloc: 0,
      stacks: 1,
      files: 40,
      unexplained: 9
    })
  })
  it('counts other memory in V8’s address range as its empty pages, up to the mapped size', () => {
    const of = (/** @type {number} */ mib) =>
      mb(anatomy({}, { ...VALUES, v8MappedBytes: mib * MIB }).parts)
    expect(of(70)).toMatchObject({ heap_pooled: 9, unexplained: 0 })
    expect(of(64)).toMatchObject({ heap_pooled: 4, unexplained: 5 })
    expect(of(50)).toMatchObject({ heap_pooled: 0, unexplained: 9 })
  })
  it('moves pages from the pool to a growing heap, and back from a shrinking one', () => {
    const looked = { ...VALUES, v8MappedBytes: 70 * MIB }
    const after = (/** @type {number} */ mib) =>
      mb(anatomy({ heapTotalBytes: mib * MIB, heapPhysicalBytes: mib * MIB }, looked).parts)
    expect(after(65)).toMatchObject({ heap_pooled: 4 })
    expect(after(75)).toMatchObject({ heap_pooled: 0 })
    expect(after(50)).toMatchObject({ heap_pooled: 19 })
  })
  it('separates mimalloc of an addon, with its Buffers, from malloc of the process', () => {
    const residentBytes = { ...VALUES.residentBytes, mimalloc: 100 * MIB, malloc_arenas: 0 }
    const changes = { rssBytes: 285 * MIB, rssAnonBytes: 245 * MIB }
    const of = (/** @type {any} */ more, /** @type {any} */ options = {}) => mb(
      anatomy({ ...changes, ...more }, { ...VALUES, ...changes, ...more, residentBytes }, options)
        .parts)
    expect(of({})).toMatchObject({ addon_malloc: 100, external: 30, allocator_unasked: 35 })
    // 100 MiB of Buffers exceed the 65 MiB of the process's malloc.
    expect(of({ externalBytes: 110 * MIB, arrayBuffersBytes: 100 * MIB }))
      .toMatchObject({ addon_malloc: 60, external: 100, allocator_unasked: 5 })
    const grown = { rssBytes: 485 * MIB, rssAnonBytes: 445 * MIB }
    const looked = { ...VALUES, ...changes, residentBytes }
    expect(mb(anatomy(grown, looked).parts)).toMatchObject({ addon_malloc: 300 })
    expect(of({}, { allocator: 'mimalloc' })).toMatchObject({ addon_malloc: 0, external: 30 })
  })
  it('names exactly the existing parts', () => {
    expect(Object.keys(anatomy().parts).sort()).toEqual(Object.keys(parts).sort())
  })

  /** @type {[string, any, any?, any?][]} */
  const CASES = [
    ['as it is', {}],
    ['without a look', {}, null],
    [
      'on a system that reports RSS only',
      { rssAnonBytes: undefined, residentBytes: undefined },
      null
    ],
    [
      'before any heap statistics',
      {
        heapTotalBytes: undefined,
        heapPhysicalBytes: undefined,
        spaces: undefined,
        liveHeapBytes: undefined
      }
    ],
    ['after RSS fell since the scan', { rssBytes: 90 * MIB, rssAnonBytes: 50 * MIB }],
    ['after RSS rose since the scan', { rssBytes: 900 * MIB, rssAnonBytes: 860 * MIB }],
    ['after Buffers were allocated since the scan', { externalBytes: 400 * MIB }],
    ['after Buffers were freed since the scan', { externalBytes: 0 }],
    ['with a heap larger than RSS', { heapPhysicalBytes: 500 * MIB, heapTotalBytes: 500 * MIB }],
    [
      'with workers',
      {},
      VALUES,
      { workers: { ...NO_WORKERS, heapBytes: 15 * MIB, externalBytes: 5 * MIB } }
    ],
    [
      'with workers larger than RSS',
      {},
      VALUES,
      { workers: { ...NO_WORKERS, heapBytes: 900 * MIB, externalBytes: 900 * MIB } }
    ],
    ['with malloc asked', {}, { ...VALUES, allocatorBytes: GLIBC }],
    [
      'with an inconsistent answer',
      {},
      { ...VALUES, allocatorBytes: { heap_in_use: 9000 * MIB } }
    ],
    ['of an empty scan', {}, { ...VALUES, residentBytes: {} }],
    ['under mimalloc', {}, VALUES, { allocator: 'mimalloc' }],
    ['under musl', {}, VALUES, { allocator: 'musl' }]
  ]
  it.each(CASES)(
    'adds up to RSS without a negative part: %s',
    (_, changes, scanned = VALUES, options = {}) => {
      const {
        rssBytes,
        parts,
        retainedBytes: [least, most]
      } = anatomy(changes, scanned, options)
      expect(Object.values(parts).reduce((a, b) => a + b, 0)).toBeCloseTo(rssBytes, 0)
      expect(Object.entries(parts).filter(([, bytes]) => !(bytes >= 0))).toEqual([])
      expect(least).toBe(parts.allocator_retained)
      expect(most).toBeGreaterThanOrEqual(least)
      expect(most).toBeLessThanOrEqual(
        parts.allocator_retained + parts.allocator_unasked + parts.unexplained
      )
    }
  )

  it('reports what only a scan can tell, and leaves that part unexplained', () => {
    const { parts, unknown, retainedBytes } = anatomy({}, null)
    expect(unknown).toMatch(/maps/)
    expect(mb(parts)).toMatchObject({
      external: 40,
      allocator_in_use: 0,
      allocator_retained: 0,
      allocator_unasked: 0,
      unexplained: 70
    })
    expect(retainedBytes[1]).toBe(parts.unexplained)
  })
  it('is undefined without RSS, as in a worker', () => {
    expect(
      anatomyOf({
        values: { heapUsedBytes: 1 }, workers: NO_WORKERS, scan: undefined, allocator: 'glibc'
      })
    ).toBeNull()
    expect(residentNow({ values: {}, workers: NO_WORKERS })).toBeNull()
  })
  it('assigns changes since the scan to malloc', () => {
    const { parts: later } = anatomy({
      rssBytes: 230 * MIB,
      rssAnonBytes: 190 * MIB,
      externalBytes: 70 * MIB
    })
    expect(mb(later)).toMatchObject({ external: 60, allocator_unasked: 50, unexplained: 9 })
  })
  it('does not split the memory of malloc before its first answer, and says so', () => {
    const { parts, retainedBytes, unknown } = anatomy()
    expect(mb(parts)).toMatchObject({
      allocator_in_use: 0,
      allocator_retained: 0,
      allocator_unasked: 50
    })
    expect(retainedBytes.map(bytes => Math.round(bytes / MIB))).toEqual([0, 45])
    expect(unknown).toMatch(/^the free part of malloc's memory: malloc's statistics were not read/)
  })
  it('splits the memory of malloc by its answer', () => {
    const { parts, retainedBytes, unknown } = anatomy({}, { ...VALUES, allocatorBytes: GLIBC })
    // 37 MiB are in use, of which 5 have mappings of their own: 30 of these are Buffers.
    expect(mb(parts)).toMatchObject({
      external: 30,
      allocator_in_use: 7,
      allocator_retained: 43,
      allocator_unasked: 0
    })
    expect(retainedBytes.map(bytes => Math.round(bytes / MIB))).toEqual([43, 43])
    expect(unknown).toBeNull()
  })
  it('omits the advice to query malloc if it holds less than 2 % of RSS', () => {
    // All other parts take 155 MiB.
    const unknownAt = rssMib =>
      anatomy({ rssBytes: rssMib * MIB, rssAnonBytes: (rssMib - 40) * MIB }).unknown
    expect([158, 159].map(rssMib => (rssMib - 155) / rssMib >= 0.02)).toEqual([false, true])
    expect([unknownAt(158), unknownAt(159)]).toEqual([null, expect.stringContaining('not read')])
  })
  it('names the heaps of silent workers if their stacks are visible', () => {
    const silent = { ...VALUES, workerThreads: 2 }
    expect(mb(anatomy({}, silent).parts)).toMatchObject({
      worker_heaps: 0,
      silent_worker_heaps: 9,
      unexplained: 0
    })
    const reporting = count => ({ workers: { ...NO_WORKERS, count, heapBytes: 4 * MIB } })
    expect(mb(anatomy({}, silent, reporting(1)).parts)).toMatchObject({
      worker_heaps: 4,
      silent_worker_heaps: 5,
      unexplained: 0
    })
    expect(mb(anatomy({}, silent, reporting(2)).parts)).toMatchObject({
      worker_heaps: 4,
      silent_worker_heaps: 0,
      unexplained: 5
    })
  })
})

describe('an answer of malloc', () => {
  /**
   * Signals one minute after the scan in which malloc was queried.
   * @param {number} grownMib
   * @param {number} [takenMib] Buffers that take malloc's free memory in the last 20 s
   */
  const signalsAfter = (grownMib, takenMib = 0) => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    const at = (second, values) =>
      target.take(frame({ sequence: second, uptimeSeconds: second, values }), 0)
    at(1, { ...VALUES, allocatorBytes: GLIBC })
    const grown = {
      rssBytes: VALUES.rssBytes + grownMib * MIB,
      rssAnonBytes: VALUES.rssAnonBytes + grownMib * MIB
    }
    const taken = { externalBytes: VALUES.externalBytes + takenMib * MIB }
    for (let second = 2; second <= 60; second++) {
      const now = takenMib === 0 ? grown : second > 40 ? { ...grown, ...taken } : {}
      at(second, { ...VALUES, residentBytes: undefined, ...now })
    }
    return signalsOf(defined(target.window()))
  }
  it('is valid until malloc has grown by a tenth', () => {
    // At the scan malloc had 80 MiB: 7 in use, 30 of Buffers, 43 free.
    expect([8 / 88 > 0.1, 9 / 89 > 0.1]).toEqual([false, true])
    expect([signalsAfter(8), signalsAfter(9)].map(({ allocatorAsked }) => allocatorAsked)).toEqual([
      1, 0
    ])
  })
  it('that is out of date rules nothing out, because memory allocated since may be free', () => {
    expect(
      mb({
        asked: defined(signalsAfter(8).allocatorSlackBytes),
        stale: defined(signalsAfter(100).allocatorSlackBytes)
      })
    ).toEqual({ asked: 43, stale: 143 })
    expect(signalsAfter(100).allocatorSlackTrend?.rise ?? 0).toBeLessThan(MIB)
  })
  it('counts no more free memory than there was native memory in the last minute', () => {
    // 43 MiB were free in most of the minute, and Buffers fill them now. 20 MiB more may be free.
    // At most 100 MiB lay outside the heap, of which 40 were external.
    expect(mb({ slack: defined(signalsAfter(20, 44).allocatorSlackBytes) })).toEqual({ slack: 60 })
  })
})

describe('the memory of malloc', () => {
  /**
   * @param {object} [changes]
   * @param {Allocator} [allocator]
   * @param {ReturnType<typeof scanOf>} [previous]
   */
  const scan = (changes = {}, allocator = 'glibc', previous = undefined) =>
    scanOf({ ...VALUES, ...changes }, { allocator }, NO_WORKERS, previous)
  const trimmable = (/** @type {Parameters<typeof scan>} */ ...args) => Math.round(scan(...args).trimmableBytes / MIB)

  it('is split by malloc’s answer: a trim returns free pages, but not the ends of arenas', () => {
    const { asked, nativeBytes, slackBytes, heapSlackBytes, arenaSlackBytes } = scan({
      allocatorBytes: GLIBC
    })
    expect(asked).toBe(true)
    expect(mb({ nativeBytes, slackBytes, heapSlackBytes, arenaSlackBytes })).toEqual({
      nativeBytes: 7,
      slackBytes: 43,
      heapSlackBytes: 30,
      arenaSlackBytes: 13
    })
    expect(trimmable({ allocatorBytes: GLIBC })).toBe(26 + 5)
  })
  it('excludes pages from the trim that were returned before', () => {
    expect(
      trimmable({
        allocatorBytes: GLIBC,
        residentBytes: { ...VALUES.residentBytes, malloc_heap: 40 * MIB, malloc_arenas: 10 * MIB }
      })
    ).toBe(6 + 0)
  })
  it('in mappings of their own is in use, also if it belongs to an addon', () => {
    const residentBytes = { ...VALUES.residentBytes, malloc_mapped: 105 * MIB }
    const { nativeBytes, slackBytes } = scan({ allocatorBytes: GLIBC, residentBytes })
    expect(mb({ nativeBytes, slackBytes })).toEqual({ nativeBytes: 107, slackBytes: 43 })
  })
  it('is estimated from the last answer until the next one', () => {
    const first = scan({ allocatorBytes: GLIBC })
    const next = scan({ externalBytes: 50 * MIB, arrayBuffersBytes: 40 * MIB }, 'glibc', first)
    expect(next.asked).toBe(true)
    expect(
      mb({ native: next.nativeBytes, slack: next.slackBytes, trimmable: next.trimmableBytes })
    ).toEqual({ native: 7, slack: 33, trimmable: 21 })
  })
  it('counts growth since the last answer as neither free nor in use', () => {
    const first = scan({ allocatorBytes: GLIBC })
    const grown = { residentBytes: { ...VALUES.residentBytes, malloc_heap: 90 * MIB } }
    const next = scan(grown, 'glibc', first)
    expect(
      mb({ native: next.nativeBytes, slack: next.slackBytes, since: next.sinceBytes })
    ).toEqual({ native: 7, slack: 43, since: 30 })
    const rss = { rssBytes: 230 * MIB, rssAnonBytes: 190 * MIB }
    const { parts, retainedBytes } = defined(anatomyOf({
      values: { ...VALUES, ...grown, ...rss },
      workers: NO_WORKERS,
      scan: first,
      allocator: 'glibc'
    }))
    expect(mb(parts)).toMatchObject({
      allocator_in_use: 7,
      allocator_retained: 43,
      allocator_unasked: 30
    })
    expect(retainedBytes.map(bytes => Math.round(bytes / MIB))).toEqual([43, 73])
  })
  it('counts Buffers that were freed since the last answer as free', () => {
    const { parts } = defined(anatomyOf({
      values: { ...VALUES, externalBytes: 20 * MIB },
      workers: NO_WORKERS,
      scan: scan({ allocatorBytes: GLIBC }),
      allocator: 'glibc'
    }))
    expect(mb(parts)).toMatchObject({
      external: 10,
      allocator_in_use: 7,
      allocator_retained: 63,
      allocator_unasked: 0
    })
  })
  /** @type {[title: string, values: object, allocator: Allocator, mib: number][]} */
  const TRIMMABLE = [
    ['glibc without an answer: arenas keep the largest part', {}, 'glibc', 30 + 6],
    [
      'jemalloc',
      { allocatorBytes: { in_use: 40 * MIB, active: 50 * MIB, metadata: 4 * MIB } },
      'jemalloc',
      26
    ],
    ['tcmalloc', { allocatorBytes: { in_use: 40 * MIB, free_pages: 12 * MIB } }, 'tcmalloc', 12],
    [
      'mimalloc, which returns memory by itself',
      { allocatorBytes: { in_use: 40 * MIB, active: 50 * MIB } },
      'mimalloc',
      0
    ],
    ['musl, which has no trim', {}, 'musl', 0]
  ]
  it.each(TRIMMABLE)('the memory that a trim returns: %s', (_, changes, allocator, expected) => {
    expect(trimmable(changes, allocator)).toBe(expected)
  })
  it('of mimalloc is in the address range of V8’s pages', () => {
    expect(Math.round(scan({}, 'mimalloc').mallocBytes / MIB)).toBe(89)
    expect(scan({}, 'mimalloc').unexplainedBytes).toBe(0)
  })
})

/** @type {[allocator: Allocator, retainedMib: number | null, unknown: RegExp][]} */
const UNASKED = [
  ['glibc', 23, /MEMWATCH_ALLOCATOR_ACCESS=read/],
  ['musl', null, /: musl's malloc has no statistics of it$/],
  ['other', null, /: this malloc has no statistics of it$/]
]
/**
 * Signals after a minute in which Buffers come and go each second.
 * @param {number} mib size of these Buffers
 * @param {{ allocator?: Allocator }} [of]
 */
function signalsAfterChurn (mib, { allocator = 'glibc' } = {}) {
  const target = new Target({ hello: hello({ allocator }), name: 'api', thread: 'main' })
  for (let second = 1; second <= 60; second++) {
    const taken = second % 2 === 0 ? mib * MIB : 0
    target.take(frame({
      sequence: second,
      uptimeSeconds: second,
      values: {
        ...VALUES,
        externalBytes: VALUES.externalBytes + taken,
        arrayBuffersBytes: 30 * MIB + taken
      }
    }), 1000 * second)
  }
  return signalsOf(defined(target.window()))
}
it.each(UNASKED)('without an answer, memory of %s that moved is retained or unknown', (
  allocator, retainedMib, unknown
) => {
  // The app allocates and frees Buffers of 45 MiB, and malloc keeps the memory.
  const { allocatorRetainedBytes: bytes } = signalsAfterChurn(45, { allocator })
  expect(bytes === null ? null : Math.round(bytes / MIB)).toBe(retainedMib)
  expect(anatomy({}, VALUES, { allocator }).unknown).toMatch(unknown)
})

it.each([[1, 45, 1], [2, 44, 2], [8, 41, 41]])(
  'if Buffers of %d MiB come and go in %d MiB of slack, malloc retains %d MiB',
  (churnMib, slackMib, retainedMib) => {
    const { allocatorRetainedBytes, allocatorSlackBytes } = signalsAfterChurn(churnMib)
    const bytes = [allocatorSlackBytes, allocatorRetainedBytes]
    expect(bytes.map(value => Math.round(defined(value) / MIB))).toEqual([slackMib, retainedMib])
  }
)
