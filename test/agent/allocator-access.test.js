'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const net = require('node:net')
const { once } = require('node:events')
const { createHash } = require('node:crypto')
const { execFileSync } = require('node:child_process')
const { parseMallocInfo, allocatorStatistics } = require('../../agent/collect/allocator-statistics')
const { commands } = require('../../agent/commands')
const { computeProof } = require('../../agent/protocol/proof')
const { NODES, versionOf, startCollector, spawnWatched } = require('../support/agent-collector')

const MIB = 2 ** 20
const ALLOCATOR = path.join(__dirname, '../../allocator')

/** Output of malloc_info(3) in glibc 2.36, shortened. */
const MALLOC_INFO = `<malloc version="1">
<heap nr="0">
<sizes>
  <size from="33" to="33" total="330" count="10"/>
  <size from="53233" to="53233" total="106466" count="2"/>
  <unsorted from="1233" to="32801" total="55076" count="4"/>
</sizes>
<total type="fast" count="3" size="96"/>
<total type="rest" count="17" size="174822"/>
<system type="current" size="1957888"/>
<system type="max" size="2478080"/>
<aspace type="total" size="1957888"/>
<aspace type="mprotect" size="1957888"/>
</heap>
<heap nr="1">
<sizes>
</sizes>
<total type="fast" count="0" size="0"/>
<total type="rest" count="1" size="131520"/>
<system type="current" size="135168"/>
<system type="max" size="135168"/>
<aspace type="total" size="135168"/>
<aspace type="mprotect" size="135168"/>
<aspace type="subheaps" size="1"/>
</heap>
<total type="fast" count="3" size="96"/>
<total type="rest" count="18" size="306342"/>
<total type="mmap" count="1" size="139264"/>
<system type="current" size="2093056"/>
<system type="max" size="2613248"/>
<aspace type="total" size="2093056"/>
<aspace type="mprotect" size="2093056"/>
</malloc>
`

describe('the statistics of glibc', () => {
  it('cover the main arena and those of threads, and count free chunks in whole pages', () => {
    const listed = 330 + 106_466 + 55_076
    const pages = 106_466 - 2 * 4096 + 55_076 - 4 * 4096
    expect(parseMallocInfo(MALLOC_INFO)).toEqual({
      heap_in_use: 1_957_888 - 96 - 174_822,
      heap_free_pages: pages,
      heap_fragments: listed - pages + 96,
      heap_top: 174_822 - listed,
      arenas_in_use: 135_168 - 131_520,
      arenas_free_pages: 0,
      arenas_fragments: 0,
      arenas_top: 131_520,
      mapped: 139_264
    })
  })
  it('are all 0 for a result without arenas', () => {
    expect(Object.values(parseMallocInfo('<malloc version="1">\n</malloc>'))).toEqual(Array(9).fill(0))
  })
})

describe('malloc is queried', () => {
  /**
   * @param {Parameters<typeof allocatorStatistics>[0]['readStatistics']} readStatistics
   * @param {number[]} times
   * @param {number} [seconds] duration of a reading
   */
  const readings = (readStatistics, times, seconds = 0) => {
    const collector = allocatorStatistics({ readStatistics }, () => () => seconds)
    return times.map(nowSeconds => {
      const values = nowSeconds % 10 === 0 ? { residentBytes: {} } : {}
      collector.read(values, { count: 0, nowSeconds })
      return values.allocatorBytes
    })
  }
  const jemalloc = () => ({ allocator: /** @type {const} */ ('jemalloc'), allocatedBytes: 3, activeBytes: 4, residentBytes: 6, metadataBytes: 1 })

  it('only for frames that report a scan', () => {
    expect(readings(jemalloc, [0, 5, 10])).toEqual([
      { in_use: 3, active: 4, metadata: 1 },
      undefined,
      { in_use: 3, active: 4, metadata: 1 }
    ])
  })
  it.each([
    // A query of 40 ms is 0.2 % of twenty seconds, and 0.05 % of eighty.
    ['in the first two minutes', [0, 10, 20, 30, 40, 50], [0, 10, 30, 50]],
    ['later', [200, 210, 220, 280, 290, 300], [200, 210, 290]]
  ])('less often if a query is expensive, except for the first one: %s', (_, times, expected) => {
    const answers = readings(jemalloc, times, 0.04)
    expect(times.filter((_, i) => answers[i])).toEqual(expected)
  })
  it('only once if the allocator has no statistics', () => {
    let asked = 0
    const musl = () => { asked++; return { allocator: /** @type {const} */ ('unknown') } }
    expect([...readings(musl, [0, 10, 1000]), asked]).toEqual([undefined, undefined, undefined, 1])
  })
})

describe('the addon', () => {
  const sources = ['values.h', 'addon.c', 'allocator.c', 'gc-hooks.c', 'values.c']
  const sha256 = createHash('sha256')
    .update(sources.map(name => fs.readFileSync(path.join(ALLOCATOR, name), 'utf8')).join(''))
    .digest('hex')
  it('is built from every C file in the folder', () => {
    const found = fs.readdirSync(ALLOCATOR).filter(name => /\.[ch]$/.test(name))
    expect(found.sort()).toEqual([...sources].sort())
  })
  it.each(['linux-x64', 'linux-arm64'])(
    '%s was built from these sources and needs no library',
    name => {
      const binary = fs.readFileSync(path.join(ALLOCATOR, 'prebuilt', `${name}.node`), 'latin1')
      expect(binary).toContain(sha256)
      expect(binary).not.toMatch(/libc\.|ld-linux|libpthread/)
    }
  )

  const FREES = `
    const { readStatistics, trim } = require(${JSON.stringify(ALLOCATOR)})
    const { parseMallocInfo } = require(${JSON.stringify(require.resolve('../../agent/collect/allocator-statistics'))})
    const inUse = () => { const all = parseMallocInfo(readStatistics().mallocInfo); return all.heap_in_use + all.arenas_in_use + all.mapped }
    const kept = []
    let freed = []
    const before = inUse()
    for (let i = 0; i < 2000; i++) { freed.push(Buffer.allocUnsafeSlow(40960).fill(1)); kept.push(Buffer.allocUnsafeSlow(256).fill(1)) }
    const held = inUse()
    const rss = process.memoryUsage.rss()
    freed = []
    gc()
    // The sweeper frees Buffers in its own thread.
    const whenFreed = then => setTimeout(() => process.memoryUsage().arrayBuffers < 8e6 ? then() : whenFreed(then), 20)
    whenFreed(() => {
      console.log(JSON.stringify({ allocator: readStatistics().allocator, before, held, after: inUse(), trimmed: trim(), gave: rss - process.memoryUsage.rss(), kept: kept.length }))
    })
  `
  const glibc = Boolean(/** @type {any} */ (process.report.getReport()).header.glibcVersionRuntime)
  ;(glibc ? it.each : it.skip.each)(NODES.map(node => [versionOf(node), node]))(
    'on Node %s counts what Buffers take and leave, and gives it back',
    (_, node) => {
      const { allocator, before, held, after, trimmed, gave } = JSON.parse(
        execFileSync(node, ['--expose-gc', '-e', FREES], { encoding: 'utf8' })
      )
      const taken = 2000 * 40_960
      expect([allocator, trimmed]).toEqual(['glibc', true])
      expect(held - before).toBeGreaterThan(taken)
      expect(held - before).toBeLessThan(1.05 * taken)
      expect(held - after).toBeGreaterThan(0.95 * taken)
      expect(gave).toBeGreaterThan(0.8 * taken)
    }
  )
})

describe('commands', () => {
  const NONCE = '0123456789abcdef0123456789abcdef'
  const line = (/** @type {object} */ changes = {}) => JSON.stringify({ v: 1, type: 'command', id: 'a', command: 'trim', sequence: 1, ...changes })
  let folder, server, socket
  beforeEach(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-trust-'))
    socket = path.join(folder, 'exporter.sock')
    server = net.createServer().listen(socket)
    await once(server, 'listening')
  })
  afterEach(() => {
    server.close()
    fs.rmSync(folder, { recursive: true })
  })
  /**
   * @param {object} [options]
   * @param {{ clock?: number }} [time]
   */
  const make = (
    { address = { path: socket }, trim = () => true, tokenFile = undefined } = {},
    time = {}
  ) => {
    const said = { looks: 0 }
    const rss = [300, 200]
    const { execute } = commands(
      {
        address,
        access: { trim },
        tokenFile,
        sendExtraFrame: () => {
          said.looks++
        }
      },
      { now: () => time.clock ?? 0, rss: () => (rss.shift() ?? 200) * MIB }
    )
    const connection = { nonce: NONCE, sequence: 0 }
    /**
     * @param {string} text
     * @returns {import('../../agent/protocol/frame').Answer | undefined}
     */
    const asked = text => {
      let answer
      execute(
        text,
        found => {
          answer = found
        },
        connection
      )
      return answer
    }
    return { obey: asked, said }
  }

  it('a trim sends a frame first, and reports RSS before and after', () => {
    const { obey, said } = make()
    expect(obey(line())).toEqual({
      id: 'a',
      ok: true,
      blockedSeconds: 0,
      rssBeforeBytes: 300 * MIB,
      rssAfterBytes: 200 * MIB
    })
    expect(said.looks).toBe(1)
  })
  it('run at most one trim every ten seconds', () => {
    const time = { clock: 0 }
    const { obey } = make({}, time)
    const answers = [0, 9.9, 10].map(seconds => { time.clock = seconds; return obey(line())?.ok })
    expect(answers).toEqual([true, false, true])
  })
  it.each([
    [
      'unknown to it',
      line({ command: 'restart' }),
      {},
      { id: 'a', ok: false, reason: 'unknown_command' }
    ],
    [
      'that malloc has no call for',
      line(),
      { trim: () => false },
      { id: 'a', ok: false, reason: 'not_supported' }
    ],
    [
      'from a socket that is not there',
      line(),
      { address: { path: '/nowhere/exporter.sock' } },
      { id: 'a', ok: false, reason: 'not_trusted' }
    ],
    ['of another version', line({ v: 2 }), {}, undefined],
    ['without an id', line({ id: undefined }), {}, undefined],
    ['that are none', '{"type":"frame"}', {}, undefined]
  ])('%s are refused or ignored', (_, text, options, answer) => {
    expect(make(options).obey(text)).toEqual(answer)
  })
  describe('are executed', () => {
    const asked = {
      id: 'a',
      command: 'trim',
      pid: process.pid,
      startedAtUnixMs: Math.round(performance.timeOrigin),
      nonce: NONCE,
      sequence: 1
    }
    const obeyed = (/** @type {object} */ options = {}, text = line()) => make(options).obey(text)?.ok
    it('from a socket in a folder of this user', () => {
      expect(obeyed()).toBe(true)
    })
    it('but not from a folder that others may write to', () => {
      for (const [mode, ok] of /** @type {const} */ ([[0o755, true], [0o775, false], [0o757, false], [0o1777, false]])) {
        fs.chmodSync(folder, mode)
        expect(obeyed()).toBe(ok)
      }
    })
    it('but not through a symbolic link', () => {
      const link = `${folder}-link`
      fs.symlinkSync(folder, link)
      try {
        expect(obeyed({ address: { path: path.join(link, 'exporter.sock') } })).toBe(false)
      } finally {
        fs.rmSync(link)
      }
    })
    it('but not from a folder of another user', () => {
      if (process.getuid?.() !== 0) return // only root can change the owner of a folder
      fs.chownSync(folder, 4711, 4711)
      expect(obeyed()).toBe(false)
    })
    it('if owners and modes of the socket allow it; they are read at most once a second', () => {
      const time = { clock: 0 }
      const { obey } = make({}, time)
      const command = line({ command: 'none' })
      const reasons = [
        [0, 0o700],
        [0.9, 0o777],
        [1, 0o777],
        [1.9, 0o700],
        [2, 0o700]
      ].map(([seconds, mode]) => {
        time.clock = seconds
        fs.chmodSync(folder, mode)
        return obey(command)?.reason
      })
      expect(reasons).toEqual([
        'unknown_command',
        'unknown_command',
        'not_trusted',
        'not_trusted',
        'unknown_command'
      ])
    })
    it('from any socket if the command carries a proof made with the shared token', () => {
      fs.chmodSync(folder, 0o777)
      const options = { tokenFile: path.join(folder, 'token') }
      fs.writeFileSync(options.tokenFile, 'secret\n')
      expect(obeyed(options)).toBe(false)
      expect(obeyed(options, line({ proof: computeProof('secret', asked) }))).toBe(true)
      for (const wrong of [
        { id: 'b' },
        { command: 'look' },
        { args: { kind: 'report' } },
        { pid: 1 },
        { startedAtUnixMs: 1 },
        { nonce: '' },
        { sequence: 2 }
      ]) {
        expect(obeyed(options, line({ proof: computeProof('secret', { ...asked, ...wrong }) }))).toBe(
          false
        )
      }
      expect(obeyed(options, line({ proof: computeProof('other', asked) }))).toBe(false)
      expect(
        obeyed({ tokenFile: path.join(folder, 'none') }, line({ proof: computeProof('secret', asked) }))
      ).toBe(false)
    })
  })
})

describe.each(NODES.map(node => [versionOf(node), node]))(
  'an agent on Node %s that may read malloc and trim',
  (_, node) => {
    it.each(/** @type {const} */ (['unix', 'tcp']))(
      'does not keep the app alive over %s, and offers commands on a Unix socket only',
      async over => {
        const collector = await startCollector({ over })
        try {
          const { ended } = spawnWatched({
            node,
            args: ['-e', "setTimeout(() => { process.exitCode = 7 }, 700); console.log('up')"],
            socket: collector.address,
            env: { MEMWATCH_INTERVAL_SECONDS: '0.1', MEMWATCH_ALLOCATOR_ACCESS: 'trim' }
          })
          expect(await ended).toMatchObject({ code: 7, signal: null, stdout: 'up\n', stderr: '' })
          const [{ hello, frames, broken }] = collector.connections
          expect(hello.allocatorAccess).toBe('addon')
          expect(hello.commands).toEqual(over === 'unix' ? ['look', 'trim', 'capture', 'sample_heap', 'count_slices'] : undefined)
          expect(broken).toEqual([])
          const { values } = frames.find(({ values }) => values.allocatorBytes)
          expect(values.allocatorBytes.heap_in_use).toBeGreaterThan(MIB)
        } finally {
          await collector.stop()
        }
      }
    )

    const hasFfi =
      execFileSync(node, ['-p', "process.allowedNodeEnvironmentFlags.has('--experimental-ffi')"], {
        encoding: 'utf8'
      }).trim() === 'true'
    if (hasFfi) {
      it('reads malloc by node:ffi without the addon', () => {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-ffi-'))
        try {
          fs.cpSync(path.join(__dirname, '../../agent'), folder, { recursive: true })
          const script = `
          const { allocatorAccess } = require('./allocator-access')
          const { parseMallocInfo } = require('./collect/allocator-statistics')
          const { by, readStatistics, trim } = allocatorAccess()
          console.log(JSON.stringify([by, parseMallocInfo(readStatistics().mallocInfo).heap_in_use, trim()]))`
          const [by, inUse, trimmed] = JSON.parse(
            execFileSync(node, ['--disable-warning=ExperimentalWarning', '-e', script], {
              cwd: folder,
              encoding: 'utf8'
            })
          )
          expect([by, trimmed]).toEqual(['ffi', true])
          expect(inUse).toBeGreaterThan(MIB)
        } finally {
          fs.rmSync(folder, { recursive: true })
        }
      })
    }
  }
)
