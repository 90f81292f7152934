'use strict'

const { execFileSync } = require('node:child_process')
const { MemoryMap } = require('../../agent/collect/memory-map')
const { mappingsReader } = require('../../agent/collect/mappings')
const { NODES, versionOf } = require('../support/agent-collector')

const MIB = 2 ** 20
const PAGE = 4096

const MAPS = `00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/node
0c5e0000-0c8e0000 rw-p 00000000 00:00 0                  [heap]
04a6d2000000-04a714000000 rw-p 00000000 00:00 0
10e3a4c40000-10e3a4c80000 rw-p 00000000 00:00 0
2de54000000-2de54040000 rw-p 00000000 00:00 0
2df54040000-2df58040000 rw-p 00000000 00:00 0
7df000000000-7df000100000 rw-p 00000000 00:00 0
7df000100000-7df080100000 ---p 00000000 00:00 0
7df080100000-7df080b00000 rw-p 00000000 00:00 0
7df080b00000-7df300100000 ---p 00000000 00:00 0
7e0000000000-7e0000b00000 rw-p 00000000 00:00 0
7e0000b00000-7e0200100000 ---p 00000000 00:00 0
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000100000-7f0004000000 ---p 00000000 00:00 0
7f0004000000-7f0004021000 rw-p 00000000 00:00 0
7f0004021000-7f0008000000 ---p 00000000 00:00 0
7f0008000000-7f000c000000 rw-p 00000000 00:00 0
7f1000001000-7f1000002000 rw-p 00000000 00:00 0
7f1000002000-7f1004000000 ---p 00000000 00:00 0
7f1800000000-7f1800001000 ---p 00000000 00:00 0
7f1800001000-7f1800801000 rw-p 00000000 00:00 0
7f1900000000-7f1900001000 ---p 00000000 00:00 0
7f1900001000-7f1901001000 rw-p 00000000 00:00 0
7f2000000000-7f2000028000 r--p 00000000 08:02 135522     /usr/lib/x86_64-linux-gnu/libc.so.6
7f2000028000-7f2000029000 rw-p 00028000 08:02 135522     /usr/lib/x86_64-linux-gnu/libc.so.6
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0          [stack]
7ffc00030000-7ffc00034000 r--p 00000000 00:00 0          [vvar]
`

/**
 * @param {string} text
 * @param {number} [pieceLength]
 */
const readMappings = (text, pieceLength = text.length || 1) => {
  const { layout, add } = mappingsReader()
  const lines = text.split(/(?<=\n)/)
  for (let i = 0; i < lines.length; i += pieceLength) add(lines.slice(i, i + pieceLength).join(''))
  return layout
}

/** @param {ReturnType<typeof readMappings>} map */
const sizes = ({ mappings }) => {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const { part, from, to } of mappings) sums[part] = (sums[part] ?? 0) + to - from
  return sums
}

describe('the reader of /proc/self/maps', () => {
  it('sums up the main arena and the arenas of threads, without similar mappings', () => {
    expect(readMappings(MAPS)).toMatchObject({
      heapBytes: 3 * MIB,
      arenaBytes: MIB + 0x21000,
      arenas: 2
    })
  })
  it('sums up writable mappings in the address range of V8, without mappings of mimalloc', () => {
    expect(readMappings(MAPS).v8Bytes).toBe(MIB / 4 + MIB / 4 + 64 * MIB)
  })
  it('recognizes stacks and WebAssembly by guards, V8’s pages by address; the rest is malloc', () => {
    expect(sizes(readMappings(MAPS))).toEqual({
      malloc_heap: 3 * MIB,
      malloc_arenas: MIB + 0x21000,
      // Two WebAssembly memories: one whose guard joined that of the next, and one that joined a
      // MiB below it.
      webassembly: 10 * MIB + 10 * MIB,
      // The kernel joined other memory to the second stack: that part is not a stack.
      stacks: 8 * MIB + 8 * MIB + 0x21000,
      malloc_mapped: 64 * MIB + PAGE + 8 * MIB + MIB + MIB,
      // Two segments of mimalloc that the kernel joined, at a low address with mimalloc's
      // alignment.
      mimalloc: 1056 * MIB
    })
  })
  it.each([1, 2, 7])('has the same result if it gets %i lines at a time', pieceLength => {
    expect(readMappings(MAPS, pieceLength)).toEqual(readMappings(MAPS))
  })
  it('also reads resident bytes from smaps', () => {
    const smaps = MAPS.split('\n')
      .filter(Boolean)
      .map(line => `${line}\nSize:  4 kB\nRss:  8 kB\nVmFlags: rd wr\n`)
      .join('')
    const { mappings } = readMappings(smaps)
    expect(sizes({ ...readMappings(smaps), mappings })).toEqual(sizes(readMappings(MAPS)))
    expect(mappings.filter(({ rssBytes }) => rssBytes === 8192).length).toBeGreaterThan(6)
    expect(readMappings(smaps, 1)).toEqual(readMappings(smaps))
  })
  it.each([
    ['a stack of 4 MiB', 0x400000, 1],
    ['a page less', 0x3ff000, 0],
    ['a page more', 0x401000, 0]
  ])('counts worker threads by their stacks: %s', (_, size, expected) => {
    const [from, at] = [0x7f0000000000, 0x7f0000001000].map(address => address.toString(16))
    const to = (0x7f0000001000 + size).toString(16)
    const { workerStacks } = readMappings(
      `${from}-${at} ---p 00000000 00:00 0 \n${at}-${to} rw-p 00000000 00:00 0 \n`
    )
    expect(workerStacks).toBe(expected)
  })
  it('finds nothing in a text that is not a map', () => {
    expect(readMappings('')).toEqual({
      mappings: [],
      heapBytes: 0,
      arenaBytes: 0,
      arenas: 0,
      v8Bytes: 0,
      workerStacks: 0
    })
    expect(readMappings('\x00garbage\n7f-zz rw-p\n').mappings).toEqual([])
  })
})

/** Most that is resident in "other", as a share of V8's heap: its code and read-only pages, too. */
const OTHER_RATIO = 1.15

/**
 * Script that prints scans of its memory, with the sizes of its Buffers, heap and WebAssembly
 * memory.
 */
const LOOKS = `
  const { MemoryMap } = require(${JSON.stringify(require.resolve('../../agent/collect/memory-map'))})
  const { processStatus } = require(${JSON.stringify(require.resolve('../../agent/collect/process-status'))})
  const held = { buffers: [], rows: [] }
  const map = new MemoryMap({ frameMs: 1000, metered: (_, work) => work })
  const status = () => {
    const values = {}
    processStatus().read(values, { count: 0, nowSeconds: 0 })
    return values
  }
  const look = () => {
    for (;;) {
      const values = status()
      map.read(values, { nowSeconds: 0, isOnDemand: true })
      // Threads of V8 give memory back meanwhile.
      if (Math.abs(status().rssAnonBytes / values.rssAnonBytes - 1) < 0.01) return values.residentBytes
    }
  }
  const before = look()
  for (let i = 0; i < 1500; i++) held.buffers.push(Buffer.allocUnsafeSlow(40960).fill(1))
  held.wasm = new WebAssembly.Memory({ initial: 320 })
  new Uint8Array(held.wasm.buffer).fill(1)
  const between = look()
  for (let i = 0; i < 2000000; i++) held.rows.push({ i })
  const result = () => ({
    before,
    between,
    after: look(),
    heap: require('v8').getHeapStatistics(),
    held: held.rows.length
  })
  // V8's threads and later tasks give back pages that V8 no longer counts. On a busy machine they
  // run late, so the process is looked at again.
  const report = looks => {
    const told = result()
    if (looks === 1 || told.after.other < ${OTHER_RATIO} * told.heap.total_heap_size) {
      console.log(JSON.stringify(told))
    } else setTimeout(report, 50, looks - 1)
  }
  report(100)
`

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('memory is in the right part: Buffers in malloc, WebAssembly apart, objects in other', () => {
    const { before, between, after, heap } = JSON.parse(
      execFileSync(node, ['-e', LOOKS], { encoding: 'utf8' })
    )
    const malloc = resident =>
      resident.malloc_heap + resident.malloc_arenas + resident.malloc_mapped
    expect(Math.abs(malloc(between) - malloc(before) - 1500 * 40_960)).toBeLessThan(8 * MIB)
    expect(between.webassembly - before.webassembly).toBe(20 * MIB)
    // The garbage collector uses some memory of malloc, too.
    expect(after.other - between.other).toBeGreaterThan(32 * MIB)
    expect(malloc(after) - malloc(between)).toBeLessThan((after.other - between.other) / 2)
    // V8's physical size omits pages that a semi-space touched earlier.
    expect(after.other).toBeGreaterThan(0.8 * heap.total_physical_size)
    expect(after.other).toBeLessThan(OTHER_RATIO * heap.total_heap_size)
  })
})

it('counted resident pages equal smaps, and sampled pages are close to it', () => {
  const app = require.resolve('../support/resident-app')
  const told = JSON.parse(execFileSync(process.execPath, [app], { encoding: 'utf8' }))
  expect(told.differenceBytes).toBeLessThan(2 * MIB)
  expect(told.mappedBytes).toBeGreaterThan(48 * MIB)
  expect(told.samples).toHaveLength(8)
  for (const bytes of told.samples) {
    expect(Math.abs(bytes / told.mappedBytes - 1)).toBeLessThan(0.2)
  }
})

describe('a scan of the memory map', () => {
  const anon = 100 * MIB
  const COUNTED = {
    malloc_heap: 30 * MIB,
    malloc_arenas: 10 * MIB,
    malloc_mapped: 5 * MIB,
    mimalloc: 0,
    webassembly: 0,
    stacks: 1 * MIB
  }

  /**
   * A collector on a simulated clock, in which only the given operations take time.
   * @param {object} [app]
   * @param {string} [app.maps]
   * @param {() => number} [app.anonBytes] during a scan
   * @param {number} [app.steps] for each window of pages
   * @param {number} [app.stepSeconds] duration of each step
   * @param {number} [app.lateSeconds] delay of each timer by a busy loop
   * @param {string} [app.closed] a file whose reads fail
   * @param {number} [app.atRestEverySeconds]
   */
  const watch = ({
    maps = MAPS,
    anonBytes = () => anon,
    steps = 1,
    stepSeconds = 0,
    lateSeconds = 0,
    closed,
    atRestEverySeconds
  } = {}) => {
    let clock = 0
    /** @type {{ at: number, work: () => void }[]} */
    const timers = []
    /** Durations for which scans blocked the app. @type {number[]} */
    const held = []
    let filesOpen = 0
    const open = (/** @type {string} */ file) => {
      if (closed && file.startsWith(closed)) { throw Object.assign(new Error('EACCES'), { code: 'EACCES' }) }
    }
    const collector = new MemoryMap(
      { frameMs: 1000, metered: (_, work) => work, atRestEverySeconds },
      {
        clock: {
          now: () => clock,
          measureCpu: () => {
            const began = clock
            return () => clock - began
          }
        },
        later (work, ms) {
          const timer = { at: clock + ms / 1000 + lateSeconds, work }
          timers.push(timer)
          return () => timers.splice(timers.indexOf(timer), 1)
        },
        read (file) {
          open(file)
          return `90000 ${anonBytes() / PAGE + 500} 500 1 0 1 0\n`
        },
        auxiliaryVector: () => AUXV,
        * lines (file) {
          open(file)
          yield file === '/proc/self/smaps' ? maps.replaceAll('\n', '\nRss:  8 kB\n') : maps
        },
        * count () {
          open('/proc/self/pagemap')
          filesOpen++
          try {
            for (let i = 0; i < steps; i++, clock += stepSeconds) yield
            return COUNTED
          } finally {
            filesOpen--
          }
        }
      }
    )
    /**
     * @param {number} nowSeconds
     * @param {boolean} [look]
     * @param {number} [rssAnonBytes]
     */
    const frame = (nowSeconds, look, rssAnonBytes = anon) => {
      for (;;) {
        const [next] = timers.sort((a, b) => a.at - b.at)
        if (!next || next.at > nowSeconds) break
        timers.shift()
        clock = Math.max(clock, next.at)
        const from = clock
        next.work()
        held.push(clock - from)
      }
      clock = Math.max(clock, nowSeconds)
      /** @type {import('../../agent/protocol/frame').Frame['values']} */
      const values = { rssAnonBytes }
      collector.read(values, { count: 0, nowSeconds, isOnDemand: look })
      return values
    }
    collector.start?.()
    return {
      collector,
      frame,
      held,
      timers,
      filesOpen: () => filesOpen,
      seenIn: (/** @type {number[]} */ ...times) => times.filter(time => frame(time).residentBytes)
    }
  }
  const AUXV = Buffer.from(new BigUint64Array([16n, 1n, 6n, BigInt(PAGE), 0n, 0n]).buffer)
  const SECONDS = Array.from({ length: 32 }, (_, i) => i)

  it('reports the resident bytes of each part, and the rest as other', () => {
    expect(watch().frame(0).residentBytes).toEqual({ ...COUNTED, other: 54 * MIB })
  })
  it('runs every five seconds while anonymous memory changes, otherwise every minute', () => {
    /**
     * Start of each scan, in seconds.
     * @type {(firstBytes: number, movedBytes: number) => number[]}
     */
    const seenWhere = (firstBytes, movedBytes) => {
      let bytes = firstBytes
      const { frame } = watch({ anonBytes: () => bytes })
      return Array.from({ length: 130 }, (_, second) => second).filter(second => {
        const seen = frame(second, false, bytes).residentBytes !== undefined
        if (seen) bytes += movedBytes
        return seen
      })
    }
    expect(seenWhere(100 * MIB, 0)).toEqual([0, 60, 120])
    expect(seenWhere(100 * MIB, 2 * MIB)).toEqual([0, 60, 120])
    expect(seenWhere(100 * MIB, 2 * MIB + PAGE).slice(0, 2)).toEqual([0, 5])
    expect(seenWhere(100 * MIB, 3 * MIB).slice(0, 4)).toEqual([0, 5, 10, 15])
    expect(seenWhere(100 * MIB, -3 * MIB).slice(0, 4)).toEqual([0, 5, 10, 15])
    expect(seenWhere(10 * MIB, MIB)).toEqual([0, 60, 120])
    expect(seenWhere(10 * MIB, MIB + PAGE).slice(0, 4)).toEqual([0, 5, 10, 15])
  })
  it('runs every ten seconds at rest if it also queries malloc', () => {
    expect(watch({ atRestEverySeconds: 10 }).seenIn(...SECONDS)).toEqual([0, 10, 20, 30])
  })
  it('runs in pieces, so that the app has its turns, and ends just before its frame', () => {
    const { frame, held, timers } = watch({
      steps: 200,
      stepSeconds: 0.0001,
      atRestEverySeconds: 0
    }) // 20 ms
    expect(frame(0.1).residentBytes).toBeDefined()
    expect(Math.max(...held)).toBeLessThan(0.0006)
    expect(held.length).toBeGreaterThan(30)
    for (let second = 1; second < 41; second++) frame(second)
    expect(timers[0].at).toBeLessThan(40.95)
    expect(timers[0].at).toBeGreaterThan(40.8)
  })
  it('is part of the following frame if a busy app delays it', () => {
    expect(
      watch({ steps: 100, stepSeconds: 0.0001, lateSeconds: 0.1 }).seenIn(
        0.1,
        ...SECONDS.slice(1, 12)
      )
    ).toEqual([3])
  })
  it('runs less often if it is slow: it takes at most 0.05 % of a core', () => {
    const times = [200.1, 210, 220, 238, 239, 240, 241, 242]
    expect(watch({ steps: 100, stepSeconds: 0.0002, atRestEverySeconds: 0 }).seenIn(...times))
      .toEqual([200.1, 241])
  })
  it('takes up to 0.2 % of a core in the first two minutes', () => {
    const times = [1, 10, 20, 21, 22, 41, 43, 119, 121, 140, 202, 203]
    expect(watch({ steps: 200, stepSeconds: 0.0002, atRestEverySeconds: 0 }).seenIn(...times))
      .toEqual([1, 22, 43, 121, 203])
  })
  it('runs at once on command, in any state', () => {
    const { frame, timers } = watch({ steps: 200, stepSeconds: 0.0001 })
    expect(frame(0.01).residentBytes).toBeUndefined()
    expect(frame(0.012, true).residentBytes).toBeDefined()
    expect(timers).toEqual([])
    expect(frame(1).residentBytes).toBeUndefined()
  })
  it('runs again in one go if memory changed between its pieces, even if it changed back', () => {
    let reads = 0
    const { frame, held } = watch({
      steps: 40,
      stepSeconds: 0.0001,
      anonBytes: () => (++reads === 8 ? 0.9 * anon : anon)
    })
    expect(frame(0.1).residentBytes).toBeDefined()
    // Two reads for each scan in pieces, and one for the scan in one go.
    expect(reads).toBe(2 * held.length + 1)
  })
  it('runs again in pieces, at most three times, if one go would block the app too long', () => {
    let reads = 0
    const { held, seenIn } = watch({
      steps: 150,
      stepSeconds: 0.0001,
      anonBytes: () => (++reads % 8 === 0 ? 0.9 * anon : anon)
    })
    expect(seenIn(0.1, 1.1, 2.1)).toEqual([2.1])
    expect(held.length).toBeGreaterThan(60)
    expect(Math.max(...held)).toBeLessThan(0.0006)
  })
  it('counts the time of refused scans in its limit, too', () => {
    let reads = 0
    let moves = true
    const { frame, seenIn } = watch({
      steps: 150, // 15 ms, three times: 0.05 % of 90 s
      stepSeconds: 0.0001,
      anonBytes: () => (moves && ++reads % 8 === 0 ? 0.9 * anon : anon),
      atRestEverySeconds: 0
    })
    expect([200.1, 201.1, 202.1].filter(time => frame(time).residentBytes)).toEqual([202.1])
    moves = false
    expect(seenIn(232, 233, 234, 290, 291, 292, 293)).toEqual([293])
  })
  it('runs again in the next frame, at most three times, if other threads change memory', () => {
    const during = [1, 0.9, 0.9, 0.97, 1.01].map(share => share * anon)
    expect(watch({ anonBytes: () => during.shift() ?? anon }).seenIn(0, 1, 2, 3, 4)).toEqual([2])
    expect(watch({ anonBytes: () => 2 * anon }).seenIn(0, 1, 2, 3, 4)).toEqual([2])
  })
  it('reads smaps, less often, if pagemap is closed', () => {
    const { frame } = watch({ closed: '/proc/self/pagemap' })
    const seen = [0, 9, 10, 20, 129, 130].map(time => frame(time))
    expect(seen.map(({ residentBytes }) => residentBytes?.malloc_heap)).toEqual([
      undefined,
      undefined,
      8192,
      undefined,
      undefined,
      8192
    ])
    expect(seen[0].mallocHeapBytes).toBe(3 * MIB)
  })
  it('does not run if /proc is closed', () => {
    const { frame, timers } = watch({ closed: '/proc' })
    expect([frame(0), frame(1), frame(2, true)]).toEqual([
      { rssAnonBytes: anon },
      { rssAnonBytes: anon },
      { rssAnonBytes: anon }
    ])
    expect(timers).toEqual([])
  })
  it('ends with the agent and closes its files', () => {
    const { collector, frame, timers, filesOpen } = watch({ steps: 200, stepSeconds: 0.0001 })
    frame(0.01)
    expect(filesOpen()).toBe(1)
    collector.stop?.()
    expect([timers, filesOpen()]).toEqual([[], 0])
  })
})
