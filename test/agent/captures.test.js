'use strict'

const path = require('node:path')
const { Readable } = require('node:stream')
const { heapSites } = require('../../exporter/captures/heap-sites')
const { readPieces } = require('../../agent/capture/heap-snapshot')
const { NODES, spawnBounded, versionOf } = require('../support/agent-collector')

const PIECE_BYTES = 65_536

describe('the stream of a heap snapshot', () => {
  /**
   * All data is there at once and no 'close' event follows, as in Node before 20.19.5, 22.18 and
   * 24.4.
   */
  const stream = () => new Readable({
    read () {
      for (let i = 0; i < 10; i++) this.push(Buffer.alloc(PIECE_BYTES - 1, i))
      this.push(null)
    },
    destroy () {}
  })

  it('is read to its end in pieces, even if it never emits close', async () => {
    const pieces = []
    for await (const piece of readPieces(stream())) pieces.push(piece)
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(PIECE_BYTES)
    expect(
      Buffer.concat(pieces).equals(
        Buffer.concat(Array.from({ length: 10 }, (_, i) => Buffer.alloc(PIECE_BYTES - 1, i)))
      )
    ).toBe(true)
  })
  it('ends when its reader stops', async () => {
    const left = stream()
    for await (const piece of readPieces(left)) if (piece) break
    expect(left.destroyed).toBe(true)
  })
  it('rejects if it ends too early', async () => {
    const broken = new Readable({ read () { this.destroy(new Error('no memory')) } })
    await expect(readPieces(broken).next()).rejects.toThrow('no memory')
  })
})

/**
 * Output of a program, as JSON.
 * @param {string} node
 * @param {string} code
 * @returns {Promise<any>}
 */
async function printed (node, code) {
  const { stdout, stderr } = await spawnBounded(node, ['-e', code], { cwd: __dirname }).ended
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('a heap snapshot is read to its end', async () => {
    const { most, nodes } = await printed(
      node,
      `
      const { readPieces } = require('../../agent/capture/heap-snapshot')
      const pieces = []
      async function read () { for await (const piece of readPieces(require('v8').getHeapSnapshot())) pieces.push(piece) }
      read().then(() => console.log(JSON.stringify({ most: Math.max(...pieces.map(({ length }) => length)), nodes: JSON.parse(Buffer.concat(pieces)).snapshot.node_count })))
    `
    )
    expect(most).toBeLessThanOrEqual(PIECE_BYTES)
    expect(nodes).toBeGreaterThan(1000)
  })

  it('a heap profile with short intervals ends early in an app that allocates much', async () => {
    const { waited, parts } = await printed(
      node,
      `
      const { heapProfile } = require('../../agent/capture/heap-profile')
      let gcs = 0
      let waited = 0
      const tools = { gcs: () => gcs, wait: async seconds => { waited += seconds; gcs += 1e6 } }
      async function profile () {
        const parts = []
        for await (const { part } of heapProfile({ kind: 'heap_profile', seconds: 30, intervalBytes: 8192 }, tools)) parts.push(part)
        console.log(JSON.stringify({ waited, parts }))
      }
      profile()
    `
    )
    expect({ waited, parts }).toEqual({ waited: 0.25, parts: ['before', 'profile'] })
  })

  it.each([[undefined, []], [250, [250]], [1, [250]]])(
    'a CPU profile with an interval of %p sets %j',
    async (given, set) => {
      expect(await printed(
        node,
        `
        const { Session } = require('inspector')
        const { post } = Session.prototype
        const set = []
        Session.prototype.post = function (method, params, done) {
          if (method === 'Profiler.setSamplingInterval') set.push(params.interval)
          return post.call(this, method, params, done)
        }
        const { cpuProfile } = require('../../agent/capture/cpu-profile')
        ;(async () => {
          const args = { seconds: 1, intervalMicroseconds: ${given} }
          for await (const { chunks } of cpuProfile(args, { wait: async () => {} })) {
            let text = ''
            for await (const chunk of chunks) text += chunk
            JSON.parse(text)
          }
          console.log(JSON.stringify(set))
        })()
      `
      )).toEqual(set)
    }
  )

  it.each([
    ['ends early in an app with deep call stacks that always differ', 'next', {}, 20, 'early'],
    ['is not read where little memory is left', 'next', { headroomBytes: 2 ** 20 }, 20, 'unread'],
    ['lasts its time in another busy app', '() => () => {}', {}, 2, 'whole']
  ])('a CPU profile %s', async (_, choose, args, seconds, expected) => {
    const { waited, reason } = await printed(
      node,
      `
      const functions = Array.from({ length: 100 }, (_, i) =>
        new Function('choose', 'depth', 'return depth ? choose()(choose, depth - 1) : ' + i))
      const next = () => functions[Math.floor(functions.length * Math.random())]
      const choose = ${choose}
      const timer = setInterval(() => {
        for (const end = performance.now() + 5; performance.now() < end;) choose()(choose, 200)
      }, 1)
      const { cpuProfile } = require('../../agent/capture/cpu-profile')
      let waited = 0
      const wait = seconds => {
        waited += seconds
        return new Promise(resolve => setTimeout(resolve, 1000 * seconds))
      }
      ;(async () => {
        const args = { seconds: ${seconds}, ...${JSON.stringify(args)} }
        let reason
        try {
          for await (const { chunks } of cpuProfile(args, { wait })) JSON.parse(String(chunks[0]))
        } catch (error) {
          reason = error.reason
        }
        clearInterval(timer)
        console.log(JSON.stringify({ waited, reason }))
      })()
    `
    )
    const unread = reason === 'not_supported' && 'unread'
    expect(unread || (waited === seconds ? 'whole' : 'early')).toBe(expected)
    if (!unread) expect(reason).toBeUndefined()
  }, 60_000)

  it('a CPU profile is not read if the app blocked its early end', async () => {
    const { nodes, reason } = await printed(
      node,
      `
      const functions = Array.from({ length: 100 }, (_, i) =>
        new Function('choose', 'depth', 'return depth ? choose()(choose, depth - 1) : ' + i))
      const choose = () => functions[Math.floor(functions.length * Math.random())]
      const { cpuProfile } = require('../../agent/capture/cpu-profile')
      const before = process.memoryUsage.rss()
      const wait = async () => {
        const end = performance.now() + 20_000
        while (process.memoryUsage.rss() - before < 2 ** 27 && performance.now() < end) {
          for (let i = 0; i < 1000; i++) choose()(choose, 200)
        }
      }
      ;(async () => {
        let reason
        try {
          const args = { seconds: 20, intervalMicroseconds: 250 }
          for await (const { part } of cpuProfile(args, { wait })) reason = part
        } catch (error) {
          reason = error.reason
        }
        // The profiler of the ended profile is free.
        const running = require('../../agent/capture/profilers').startCpuProfile()
        const nodes = JSON.parse(running.stop()).nodes.length
        console.log(JSON.stringify({ reason, nodes }))
      })()
    `
    )
    expect(reason).toBe('not_supported')
    expect(nodes).toBeGreaterThan(0)
    expect(nodes).toBeLessThan(1000)
  }, 60_000)

  it('a CPU profile begins with a full GC', async () => {
    const { majors } = await printed(
      node,
      `
      const { PerformanceObserver } = require('perf_hooks')
      const majors = []
      new PerformanceObserver(list => { for (const { detail, startTime } of list.getEntries()) if (detail.kind === 4) majors.push(startTime) }).observe({ entryTypes: ['gc'] })
      const began = performance.now()
      const running = require('../../agent/capture/profilers').startCpuProfile()
      const ended = performance.now()
      JSON.parse(running.stop())
      setTimeout(() => console.log(JSON.stringify({ majors: majors.filter(at => at >= began && at <= ended).length })), 20)
    `
    )
    expect(majors).toBeGreaterThanOrEqual(1)
  })

  it('a heap profile may begin before its request, and then waits less for a reading', async () => {
    const { majors, dropped, waits, named, left } = await printed(
      node,
      `
      const { EarlyProfile, heapProfile } = require('../../agent/capture/heap-profile')
      const { PerformanceObserver } = require('perf_hooks')
      let majors = 0
      new PerformanceObserver(list => { for (const { detail } of list.getEntries()) if (detail.kind === 4) majors++ }).observe({ entryTypes: ['gc'] })
      const kept = []
      function keep () { for (let i = 0; i < 1000; i++) kept.push({ i, text: ['row ' + i] }) }
      const turn = () => new Promise(resolve => setImmediate(resolve))
      const waits = []
      const tools = { gcs: () => 0, wait: async seconds => { waits.push(seconds) } }
      async function profile () {
        const unread = new EarlyProfile({ seconds: 2, intervalBytes: 1024 }, tools)
        keep()
        while (unread.isRunning) await turn()
        await turn()
        const dropped = majors
        waits.length = 0
        const early = new EarlyProfile({ seconds: 9, intervalBytes: 1024 }, { ...tools, wait: () => new Promise(() => {}) })
        keep()
        await turn()
        await turn()
        const before = majors
        const parts = heapProfile({ kind: 'heap_profile', seconds: 0.0003, intervalBytes: 1024 }, { ...tools, early })
        const [chunk] = (await parts.next()).value.chunks
        await parts.return()
        console.log(JSON.stringify({ dropped, majors: before, waits, named: chunk.includes('"keep"'), left: early.isRunning }))
        process.exit()
      }
      profile()
    `
    )
    expect({ majors, dropped, waits, named, left })
      .toEqual({ majors: 0, dropped: 0, waits: [], named: true, left: false })
  })

  it('a heap profile leaves the running heap profile of the app alone', async () => {
    const { reasons, named } = await printed(
      node,
      `
      const { Session } = require('inspector')
      const { captures } = require('../../agent/capture')
      const own = new Session()
      own.connect()
      own.post('HeapProfiler.startSampling', { samplingInterval: 1024 })
      const kept = []
      function keep () { for (let i = 0; i < 1000; i++) kept.push({ i, text: ['row ' + i] }) }
      keep()
      const agent = captures({ address: {}, allowSnapshot: false, counts: { gcs: () => 0 } })
      const args = { seconds: 0, intervalBytes: 1024 }
      async function capture () {
        const reasons = [agent.sampleHeap(args).message]
        for (const kind of ['heap_profile', 'allocation_profile']) {
          reasons.push((await agent.capture('id', { kind, ...args })).message)
        }
        own.post('HeapProfiler.getSamplingProfile', (_, { profile }) => {
          console.log(JSON.stringify({ reasons, named: JSON.stringify(profile).includes('"keep"') }))
          process.exit()
        })
      }
      capture()
    `
    )
    expect(reasons).toEqual(Array(3).fill(expect.stringMatching(/^another heap profiler runs here/)))
    expect(named).toBe(true)
  })

  it('an isolate samples its heap once, and ends that with any other capture', async () => {
    const answers = await printed(
      node,
      `
      const { captures } = require('../../agent/capture')
      const { EarlyProfile } = require('../../agent/capture/heap-profile')
      const tools = { gcs: () => 0, wait: () => new Promise(() => {}) }
      const { sampleHeap } = captures({ address: {}, allowSnapshot: false, counts: tools })
      const bad = [undefined, { seconds: 121 }, { seconds: -1 }, { seconds: 'a' }].map(args => sampleHeap(args).reason)
      const args = { seconds: 90, intervalBytes: 8192 }
      const early = new EarlyProfile(args, tools)
      const beside = [sampleHeap(args).reason, sampleHeap(args).reason]
      early.drop()
      // A fresh module: a profile may begin again.
      delete require.cache[require.resolve('../../agent/capture/heap-profile')]
      const agent = captures({ address: {}, allowSnapshot: false, counts: tools })
      const began = agent.sampleHeap(args).ok
      agent.capture('id', { kind: 'cpu_profile', seconds: 9 })
      let left
      try { left = new EarlyProfile(args, tools).isRunning } catch (error) { left = error.message }
      console.log(JSON.stringify({ bad, beside, began, left }))
      process.exit()
    `
    )
    expect(answers).toEqual({
      bad: Array(4).fill('bad_arguments'), beside: ['not_supported', 'too_soon'], began: true, left: true
    })
  })

  it.each([
    // Each slab has several temporary slices, and one that is kept.
    ['small', 'Buffer.poolSize >>> 4', 16, 0.01, 0.1],
    ['large', '(Buffer.poolSize >>> 1) - 100', 1, 0.9, 1]
  ])('slices of the Buffer pool that are %s are counted', async (_, size, each, least, most) => {
    const { answer, values, again, old, traces } = await printed(
      node,
      `
      const { captures } = require('../../agent/capture')
      const pool = require('../../agent/collect/buffer-pool').bufferPool({ majors: () => 0 })
      const kept = []
      const size = ${size}
      for (let i = 0; i < 3200; i++) {
        const slice = Buffer.allocUnsafe(size)
        if (i % ${each} === 0) kept.push(slice.subarray(0, size))
      }
      const own = [Buffer.allocUnsafeSlow(size), Object.create(Buffer.prototype)]
      own[0].constructor = null
      const seconds = performance.now() / 1000
      pool.read({}, { count: 0, nowSeconds: seconds })
      globalThis.Buffer = undefined
      const { countSlices } = captures({ address: {}, allowSnapshot: false, counts: { gcs: () => 0 } })
      const answer = countSlices()
      const values = {}
      pool.read(values, { count: 1, nowSeconds: seconds + 5 })
      const old = {}
      pool.read(old, { count: 1, nowSeconds: seconds + 3700 })
      const traces = Object.getOwnPropertySymbols(process).map(String).filter(name => name.includes('memwatch'))
      console.log(JSON.stringify({ answer, values, again: countSlices(), old, traces, kept: kept.length + own.length }))
    `
    )
    expect(answer).toEqual({ ok: true, blockedSeconds: expect.any(Number) })
    const { bufferSlabsCountedBytes: slabs, bufferSlicesCountedBytes: bytes } = values
    expect(values.bufferPoolCountedBytes / slabs).toBeGreaterThan(0.9)
    expect(slabs / values.bufferPoolBytes).toBeGreaterThan(150)
    expect(bytes / slabs).toBeGreaterThan(least)
    expect(bytes / slabs).toBeLessThanOrEqual(most)
    expect(again).toEqual({ ok: false, reason: 'too_soon', message: expect.any(String) })
    expect(old).not.toHaveProperty('bufferSlabsCountedBytes')
    expect(traces).toEqual([])
  })

  it('slices of other Buffers are counted', async () => {
    const { counted } = await printed(
      node,
      `
      const { captures } = require('../../agent/capture')
      const pool = require('../../agent/collect/buffer-pool').bufferPool({ majors: () => 0 })
      const allocate = size => Buffer.allocUnsafeSlow(size)
      Buffer.poolSize = 8192
      const kept = Array.from({ length: 90 }, () => allocate(65_536).subarray(0, 48))
      // In use, the last one by an array of another type.
      kept.push(...Array.from({ length: 10 }, () => allocate(65_536)))
      const shared = allocate(65_536)
      kept.push(shared.subarray(0, 8), new Float64Array(shared.buffer, 8))
      // So large an arena may be used without views.
      kept.push(allocate(8 * 2 ** 20).subarray(0, 48))
      const counts = { gcs: () => 0 }
      captures({ address: {}, allowSnapshot: false, counts }).countSlices()
      const counted = {}
      pool.read(counted, { count: 1, nowSeconds: performance.now() / 1000 })
      console.log(JSON.stringify({ counted, kept: kept.length }))
    `
    )
    const { bufferSlabsCountedBytes: slabs, bufferSlicesCountedBytes: slices } = counted
    expect(slabs / 65_536).toBeGreaterThan(100.9)
    expect(slabs / 65_536).toBeLessThan(103)
    expect(slices / 65_536).toBeGreaterThan(11)
    expect(slices / 65_536).toBeLessThan(13)
    expect(counted.bufferPoolCountedBytes / slabs).toBeLessThan(0.02)
  })

  it('slices are not counted in a large heap', async () => {
    const answer = await printed(
      node,
      `
      const { captures } = require('../../agent/capture')
      const large = Array.from({ length: 500_000 }, (_, i) => ({ i, text: 'row ' + i }))
      const { countSlices } = captures({ address: {}, allowSnapshot: false, counts: { gcs: () => 0 } })
      console.log(JSON.stringify({ ...countSlices(), length: large.length }))
    `
    )
    expect(answer).toMatchObject({ ok: false, reason: 'not_supported' })
  })

  it('a heap profile has no sites of the capture itself', async () => {
    const texts = await printed(
      node,
      `
      const running = require('../../agent/capture/profilers').startHeapProfile({ intervalBytes: 512, collected: false })
      const kept = []
      function keep () { for (let i = 0; i < 1000; i++) kept.push({ i, text: ['row ' + i] }) }
      const texts = Array.from({ length: 20 }, () => running.read())
      keep()
      texts.push(running.stop())
      console.log(JSON.stringify(texts))
    `
    )
    const [first, last, kept] = [texts[0], texts[19], texts[20]].map(text => JSON.parse(text))
    const folder = path.join(__dirname, '../../agent')
    expect(JSON.stringify(last)).toContain('profilers.js')
    // A reading of an almost empty profile takes at least a kilobyte.
    expect(heapSites(first, last, folder).totalBytes).toBeLessThan(8192)
    const { sites, totalBytes } = heapSites(last, kept, folder)
    expect(totalBytes).toBeGreaterThan(50_000)
    expect(sites[0].function).toBe('keep')
    expect(sites.filter(({ file }) => file.includes('agent/'))).toEqual([])
    // Without the folder they are sites.
    expect(JSON.stringify(heapSites(undefined, last).sites)).toContain('profilers.js')
  })

  it('a CPU profile of a regular expression with a backslash is JSON', async () => {
    const names = await printed(
      node,
      `
      const running = require('../../agent/capture/profilers').startCpuProfile()
      const slow = /^(a+)+\\.\\d"$/
      for (const end = Date.now() + 500; Date.now() < end;) slow.test('a'.repeat(20) + '!')
      const { nodes } = JSON.parse(running.stop())
      console.log(JSON.stringify(nodes.map(({ callFrame }) => callFrame.functionName)))
    `
    )
    expect(names).toContain('RegExp: ^(a+)+\\.\\d"$')
  })
})
