'use strict'

const fs = require('node:fs')
const { execFileSync } = require('node:child_process')
const { memoryMap } = require('../../agent/collect/memory-map')
const { readMappings } = require('../../agent/collect/mappings')
const { residentPages } = require('../../agent/collect/resident-pages')
const { NODES, versionOf } = require('../support/agent-collector')

const MIB = 2 ** 20
const PAGE = 4096

const MAPS = `00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/node
0c5e0000-0c8e0000 rw-p 00000000 00:00 0                  [heap]
10e3a4c40000-10e3a4c80000 rw-p 00000000 00:00 0
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

/** @param {ReturnType<typeof readMappings>} map */
const sizes = ({ mappings }) => {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const { part, from, to } of mappings) sums[part] = (sums[part] ?? 0) + to - from
  return sums
}

describe('what lies where, from /proc/self/maps', () => {
  it('counts the main arena and those of threads, and nothing that only looks like them', () => {
    expect(readMappings(MAPS)).toMatchObject({ heapBytes: 3 * MIB, arenaBytes: MIB + 0x21000, arenas: 2 })
  })
  it('tells stacks by their guard, WebAssembly by its own, V8’s pages by their address, and leaves the rest to malloc', () => {
    expect(sizes(readMappings(MAPS))).toEqual({
      malloc_heap: 3 * MIB,
      malloc_arenas: MIB + 0x21000,
      // One with a guard before it, which joined the next one's, and one that joined with a MiB below it.
      webassembly: 10 * MIB + 10 * MIB,
      // What the kernel joined to the second stack is not a stack.
      stacks: 8 * MIB + 8 * MIB + 0x21000,
      malloc_mapped: 64 * MIB + PAGE + 8 * MIB + MIB + MIB
    })
  })
  it('reads smaps as well, and what of it is resident', () => {
    const smaps = MAPS.split('\n').filter(Boolean).map(line => `${line}\nSize:  4 kB\nRss:  8 kB\nVmFlags: rd wr\n`).join('')
    const { mappings } = readMappings(smaps)
    expect(sizes({ ...readMappings(smaps), mappings })).toEqual(sizes(readMappings(MAPS)))
    expect(mappings.filter(({ rssBytes }) => rssBytes === 8192).length).toBeGreaterThan(6)
  })
  it('makes nothing of what is no map', () => {
    expect(readMappings('')).toEqual({ mappings: [], heapBytes: 0, arenaBytes: 0, arenas: 0 })
    expect(readMappings('\x00garbage\n7f-zz rw-p\n').mappings).toEqual([])
  })
})

/** A process in which Buffers, heap and WebAssembly hold so much, and what a look says of it. */
const LOOKS = `
  const { memoryMap } = require(${JSON.stringify(require.resolve('../../agent/collect/memory-map'))})
  const { processStatus } = require(${JSON.stringify(require.resolve('../../agent/collect/process-status'))})
  const held = { buffers: [], rows: [] }
  const map = memoryMap()
  let looks = 0
  const look = () => {
    for (;;) {
      const values = {}
      processStatus().read(values, { count: 0, nowSeconds: 0 })
      map.read(values, { nowSeconds: 1000 * ++looks })
      if (values.residentBytes) return values.residentBytes
    }
  }
  const before = look()
  for (let i = 0; i < 1500; i++) held.buffers.push(Buffer.allocUnsafeSlow(40960).fill(1))
  held.wasm = new WebAssembly.Memory({ initial: 320 })
  new Uint8Array(held.wasm.buffer).fill(1)
  const between = look()
  for (let i = 0; i < 2000000; i++) held.rows.push({ i })
  console.log(JSON.stringify({ before, between, after: look(), heap: require('v8').getHeapStatistics(), held: held.rows.length }))
`

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('memory turns up where it was taken: Buffers in malloc’s, WebAssembly in its own, objects in the rest', () => {
    const { before, between, after, heap } = JSON.parse(execFileSync(node, ['-e', LOOKS], { encoding: 'utf8' }))
    const malloc = resident => resident.malloc_heap + resident.malloc_arenas + resident.malloc_mapped
    expect(Math.abs(malloc(between) - malloc(before) - 1500 * 40_960)).toBeLessThan(8 * MIB)
    expect(between.webassembly - before.webassembly).toBe(20 * MIB)
    // The garbage collector takes some of malloc, too.
    expect(after.other - between.other).toBeGreaterThan(32 * MIB)
    expect(malloc(after) - malloc(between)).toBeLessThan((after.other - between.other) / 2)
    // V8's physical size leaves out pages that a semi-space touched earlier.
    expect(after.other).toBeGreaterThan(0.8 * heap.total_physical_size)
    expect(after.other).toBeLessThan(1.1 * heap.total_heap_size + 8 * MIB)
  })
})

describe('resident pages', () => {
  it('are those that smaps counts, and a sample of them comes near', () => {
    const bytes = 96 * MIB
    const buffer = Buffer.from(new ArrayBuffer(bytes))
    for (let at = 0; at < bytes; at += 8 * PAGE) buffer.fill(1, at, at + 4 * PAGE) // half of its pages
    const look = () => {
      const { mappings } = readMappings(fs.readFileSync('/proc/self/smaps', 'latin1'))
      const whole = residentPages()(mappings)
      const differences = /** @type {const} */ (['malloc_heap', 'malloc_mapped', 'malloc_arenas', 'stacks'])
        .map(part => Math.abs(whole[part] - mappings.reduce((sum, mapping) => mapping.part === part ? sum + mapping.rssBytes : sum, 0)))
      return { mappings, whole, differenceBytes: Math.max(...differences) }
    }
    // Threads of this process allocate between the two: the looks that came closest tell.
    const [{ mappings, whole, differenceBytes }] = Array.from({ length: 5 }, look).sort((a, b) => a.differenceBytes - b.differenceBytes)
    expect(differenceBytes).toBeLessThan(2 * MIB)
    expect(whole.malloc_mapped).toBeGreaterThan(48 * MIB)
    const sampled = residentPages({ mostWindows: 20 })
    for (let i = 0; i < 8; i++) expect(Math.abs(sampled(mappings).malloc_mapped / whole.malloc_mapped - 1)).toBeLessThan(0.2)
    expect(buffer[0]).toBe(1)
  })
})

describe('the look', () => {
  const anon = 100 * MIB
  /** @param {object} dependencies @param {number[]} times */
  const looks = (dependencies, times) => {
    const collector = memoryMap(dependencies)
    return times.map(nowSeconds => {
      /** @type {import('../../agent/frame').Frame['values']} */
      const values = { rssAnonBytes: anon }
      collector.read(values, { count: 0, nowSeconds })
      return values
    })
  }
  /** /proc with so many anonymous bytes after the look. @param {string} maps @param {() => number} after */
  const proc = (maps = MAPS, after = () => anon) => (/** @type {string} */ file) => {
    if (file === '/proc/self/statm') return `90000 ${after() / PAGE + 500} 500 1 0 1 0\n`
    if (file === '/proc/self/auxv') return auxv
    return maps
  }
  const auxv = Buffer.from(new BigUint64Array([16n, 1n, 6n, BigInt(PAGE), 0n, 0n]).buffer).toString('latin1')
  const COUNTED = { malloc_heap: 30 * MIB, malloc_arenas: 10 * MIB, malloc_mapped: 5 * MIB, webassembly: 0, stacks: 1 * MIB }

  it('is taken every ten seconds, and what is none of it is other', () => {
    const seen = looks({ read: proc(), count: () => COUNTED, now: () => 0 }, [0, 9, 10])
    expect(seen.map(({ residentBytes }) => residentBytes?.other)).toEqual([54 * MIB, undefined, 54 * MIB])
  })
  it('is taken more rarely where it is dear: half a thousandth of a core is the most', () => {
    let clock = 0
    const dear = { read: proc(), count: () => COUNTED, now: () => (clock += 0.02) } // 20 ms a look
    expect(looks(dear, [0, 39, 41]).map(({ residentBytes }) => residentBytes !== undefined)).toEqual([true, false, true])
  })
  it('is taken at once when it is asked for', () => {
    const collector = memoryMap({ read: proc(), count: () => COUNTED, now: () => 0 })
    const read = look => {
      const values = { rssAnonBytes: anon }
      collector.read(values, { count: 0, nowSeconds: 1, look })
      return values.residentBytes !== undefined
    }
    expect([read(false), read(false), read(true)]).toEqual([true, false, true])
  })
  it('is taken again a frame later where memory moved meanwhile, three times at most', () => {
    const anonAfter = [0.9, 0.97, 1.01].map(share => share * anon)
    const settles = { read: proc(MAPS, () => anonAfter.shift() ?? anon), count: () => COUNTED, now: () => 0 }
    expect(looks(settles, [0, 1, 2, 3]).map(({ residentBytes }) => residentBytes !== undefined)).toEqual([false, false, true, false])
    const restless = { read: proc(MAPS, () => 2 * anon), count: () => COUNTED, now: () => 0 }
    expect(looks(restless, [0, 1, 2, 3]).map(({ residentBytes }) => residentBytes !== undefined)).toEqual([false, false, true, false])
  })
  it('goes by smaps, rarely, where pagemap is closed', () => {
    const closed = () => { throw Object.assign(new Error('EACCES'), { code: 'EACCES' }) }
    const smaps = MAPS.split('\n').filter(Boolean).map(line => `${line}\nRss:  8 kB\n`).join('')
    const read = (/** @type {string} */ file) => proc(file === '/proc/self/smaps' ? smaps : MAPS)(file)
    const seen = looks({ read, count: closed, now: () => 0 }, [0, 10, 20, 130])
    expect(seen.map(({ residentBytes }) => residentBytes?.malloc_heap)).toEqual([undefined, 8192, undefined, 8192])
    expect(seen[0].mallocHeapBytes).toBe(3 * MIB)
  })
  it('is not taken where /proc is closed', () => {
    const closed = () => { throw Object.assign(new Error('ERR_ACCESS_DENIED'), { code: 'ERR_ACCESS_DENIED' }) }
    expect(looks({ read: closed }, [0, 1000])).toEqual([{ rssAnonBytes: anon }, { rssAnonBytes: anon }])
  })
})
