'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { EventEmitter, once } = require('node:events')
const { Session } = require('node:inspector/promises')
const { brotliCompressSync, gunzipSync } = require('node:zlib')
const { Profile } = require('pprof-format')
const { attach, attachError } = require('../../exporter/captures/attach')
const { AutomaticCaptures } = require('../../exporter/captures/automatic')
const { Quarantine } = require('../../exporter/data-folder/quarantine')
const { blockingCallIn } = require('../../exporter/captures/blocking-calls')
const { cpuSuspects } = require('../../exporter/captures/cpu-suspects')
const { dataHandlers } = require('../../exporter/captures/data-handlers')
const { appFirst, heapSites, withoutReplaced } = require('../../exporter/captures/heap-sites')
const { parseBounded } = require('../../exporter/data-folder/bounded-json')
const { InlinedCallees } = require('../../exporter/captures/inlined')
const { nativeCalls } = require('../../exporter/captures/native-calls')
const { toPprof } = require('../../exporter/captures/pprof')
const { AppFiles } = require('../../exporter/captures/app-files')
const { Sources } = require('../../exporter/captures/sources')
const {
  CaptureStore,
  DEFAULT_KEEP_SECONDS,
  DEFAULT_MAX_BYTES
} = require('../../exporter/captures/store')
const { options } = require('../../exporter/config')
const { markdown, shortText } = require('../../engine/text/suspect-text')
const { Target } = require('../../engine/history/target')
const { attachedVerdicts } = require('../../engine/verdicts/attached')
const { findCase } = require('../../engine/verdicts/case')
const { CapturesPart } = require('../../exporter/parts/captures')
const { suspectsOf } = require('../../exporter/captures/suspects')
const { CommandError } = require('../../exporter/commands/commands')
const { predictedBytes } = require('../../agent/capture/heap-snapshot')
const { frame, gcRow, hello, MIB } = require('../support/frames')

let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-captures-test-')) })
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

const frameOf = (functionName, url, lineNumber = 0) => ({
  functionName,
  url,
  lineNumber,
  columnNumber: 0,
  scriptId: '1'
})
const ROOT = frameOf('(root)', '', -1)
/** A tree of a heap profile: [name, url, line, bytes, ...children]. */
const heapNode = ([name, url, line, selfSize, ...children]) => ({
  callFrame: frameOf(name, url, line),
  selfSize,
  children: children.map(heapNode)
})
const heap = (...children) => ({
  head: { callFrame: ROOT, selfSize: 0, children: children.map(heapNode) }
})

describe('suspects of a heap profile', () => {
  const APP = 'file:///srv/src/cache.js'
  it('are sites that grew between two readings, not those that are merely large', () => {
    const before = heap(['remember', APP, 41, 1000], ['serve', APP, 9, 90_000])
    const after = heap(['remember', APP, 41, 5000], ['serve', APP, 9, 90_500], ['gone', APP, 1, 0])
    const { totalBytes, sites } = heapSites(before, after)
    expect(totalBytes).toBe(4500)
    expect(
      sites.map(({ function: name, line, bytes, share }) => [name, line, bytes, share])
    ).toEqual([
      ['remember', 42, 4000, 4000 / 4500],
      ['serve', 10, 500, 500 / 4500]
    ])
  })
  it('are sites with live bytes if there is no first reading', () => {
    expect(heapSites(undefined, heap(['remember', APP, 41, 1000])).sites).toMatchObject([
      { function: 'remember', file: '/srv/src/cache.js', line: 42, share: 1 }
    ])
  })
  it('are frames of the app if a package, Node or V8 allocates for it', () => {
    const inPackage = '/srv/node_modules/@scope/lru/node_modules/deep/index.js'
    const after = heap(
      [
        'remember',
        APP,
        41,
        0,
        ['set', inPackage, 3, 1000, ['push', '', -1, 50]],
        ['concat', 'node:buffer', 500, 300]
      ],
      ['(V8 API)', '', -1, 777]
    )
    expect(
      heapSites(undefined, after).sites.map(({ function: name, bytes, via }) => [
        name,
        bytes,
        via
      ])
    ).toEqual([
      ['remember', 1050, 'deep'],
      ['remember', 300, null]
    ])
  })
  it('are never frames of the agent, or functions that it calls', () => {
    const agent = '/opt/memwatch/agent'
    const after = heap(
      ['remember', APP, 41, 1000],
      ['', `${agent}/collect/cgroup.js`, 3, 500, ['parse', '/srv/node_modules/fs/index.js', 7, 400]],
      ['preload', `file://${agent}/index.js`, 3, 500],
      ['run', `${agent}-of-the-app/index.js`, 3, 200]
    )
    expect(
      heapSites(undefined, after, agent).sites.map(({ function: name, share }) => [name, share])
    ).toEqual([
      ['remember', 1000 / 1200],
      ['run', 200 / 1200]
    ])
    expect(heapSites(undefined, after).sites).toHaveLength(5)
  })
  it('are frames of a package if no frame belongs to the app', () => {
    expect(
      heapSites(undefined, heap(['tick', '/srv/node_modules/poller/index.js', 7, 100])).sites
    ).toMatchObject([{ function: 'tick', line: 8 }])
  })
  it('are frames of Node.js, named as such, if there is nothing else', () => {
    const profile = heap(
      ['parserOnBody', 'node:_http_common', 125, 0, ['write', 'node:string_decoder', 75, 9 * MIB]],
      ['remember', APP, 41, MIB]
    )
    const found = suspectsOf(
      { kind: 'heap_profile', parts: [], diagnosis: null },
      () => profile, hello())
    expect(found?.sites.map(({ text }) => text)).toEqual([
      'remember /srv/src/cache.js:42 – 1 MiB, 10 % of the new memory still in use',
      'write node:string_decoder:76 (Node.js itself, without a call of the app) – 9 MiB, 90 % of ' +
        'the new memory still in use'
    ])
  })
  it('of growth outside the heap need enough samples, and prefer sites of the app', () => {
    const profile = heap(
      ['nextTick', 'node:internal/process/task_queues', 112, 9000],
      ['remember', APP, 41, 4000],
      ['warm', APP, 60, 2000]
    )
    // Nodes are numbered in this order: the root is 0.
    profile.head.children.forEach((child, i) => { child.id = i + 1 })
    const samples = counts => counts.flatMap((count, i) => Array(count).fill({ nodeId: i + 1 }))
    const namesOf = (diagnosis, counts) => suspectsOf(
      { kind: 'heap_profile', parts: [], diagnosis },
      () => ({ ...profile, samples: samples(counts) }),
      hello()
    )?.sites.map(({ function: name }) => name)
    expect(namesOf('native-memory-leak', [9, 4, 3])).toEqual(['remember'])
    expect(namesOf('resource-leak', [9, 4, 4])).toEqual(['remember', 'warm'])
    expect(namesOf('native-memory-leak', [9, 3, 3])).toEqual(['nextTick'])
    expect(namesOf('native-memory-leak', [3, 3, 3])).toEqual([])
    expect(namesOf('js-heap-leak', [9, 4, 3])).toEqual(['remember', 'warm', 'nextTick'])
    // Timers of Node.js are a part of any growth.
    profile.head.children[0].selfSize = 5000
    expect(namesOf('resource-leak', [9, 3, 3])).toEqual([])
  })
  it('of growth outside the heap are first those whose objects own native memory', () => {
    const fill = ['fill', APP, 20, 5000]
    const named = (diagnosis, ...others) => suspectsOf(
      { kind: 'heap_profile', parts: [], diagnosis },
      () => {
        const profile = heap(fill, ...others)
        let id = 0
        const number = (/** @type {any} */ node) => {
          node.id = id++
          node.children.forEach(number)
        }
        number(profile.head)
        const samples = Array.from({ length: 4 * id }, (_, i) => ({ nodeId: i % id }))
        return { ...profile, samples }
      },
      hello()
    )?.sites.map(({ function: name }) => name)
    const open = ['open', APP, 40, 0, ['Zlib', 'node:zlib', 200, 2000]]
    const copy = ['copy', APP, 60, 0, ['from', 'node:buffer', 300, 3000]]
    expect(named('native-memory-leak', open)).toEqual(['open', 'fill'])
    expect(named('native-memory-leak', copy, open)).toEqual(['copy', 'open', 'fill'])
    expect(named('native-memory-leak', copy)).toEqual(['fill', 'copy'])
    expect(named('js-heap-leak', open)).toEqual(['fill', 'open'])
  })
  it('of packages come after those of the app that stand out', () => {
    const parse = ['parse', '/srv/node_modules/parser/index.js', 6, 840]
    const linesOf = bytes => appFirst(
      heapSites(undefined, heap(parse, ['quote', APP, 35, bytes])).sites
    ).map(({ function: name }) => name)
    expect(linesOf(160)).toEqual(['quote', 'parse'])
    expect(linesOf(16)).toEqual(['parse', 'quote'])
    const own = ['a', 'b', 'c'].map((name, i) => [name, APP, i, 200 - i])
    expect(appFirst(heapSites(undefined, heap(parse, ...own)).sites).map(site => site.function))
      .toEqual(['a', 'b', 'parse', 'c'])
  })
  it('of Node.js itself come after sites of the app that stand out', () => {
    const decoded = ['flush', 'node:string_decoder', 90, 840]
    const linesOf = bytes => appFirst(
      heapSites(undefined, heap(decoded, ['crawl', APP, 35, bytes])).sites
    ).map(({ function: name }) => name)
    expect(linesOf(160)).toEqual(['crawl', 'flush'])
    expect(linesOf(16)).toEqual(['flush', 'crawl'])
  })
  it('name the called package and the innermost one, to which its bytes are counted', () => {
    const store = size => ['set', '/srv/node_modules/store/index.js', 9, size]
    const profile = heap(
      ['page', APP, 20, 0, ['send', '/srv/node_modules/web/send.js', 3, MIB, store(8 * MIB)]],
      ['load', APP, 30, 0, store(MIB)]
    )
    const found = suspectsOf(
      { kind: 'heap_profile', parts: [], diagnosis: null },
      () => profile, hello())
    expect(found?.sites.map(({ text }) => text.slice(0, text.indexOf(' –')))).toEqual([
      'page /srv/src/cache.js:21 (in web and store)', 'load /srv/src/cache.js:31 (in store)'
    ])
    expect(found?.packages?.map(({ package: name }) => name)).toEqual(['store'])
  })
  it.each([
    // MiB that the line of the cache allocated, and by which the live heap grew.
    ['leave out a line that allocated much more than the heap grew', 6.5, 2, true, ['keep']],
    ['keep a line that allocated up to three times as much', 5.5, 2, true, ['fill', 'keep']],
    ['keep all lines if the growth is unknown', 6.5, undefined, true, ['fill', 'keep']],
    ['keep only small lines if the heap does not grow', 0.1, 0, true, ['fill']],
    ['leave it out if the heap itself leaks', 6.5, 2, false, ['keep']],
    ['keep it if the heap leaks by more than the rest', 7, 2.2, false, ['fill', 'keep']]
  ])('%s', (_, mib, grownMib, owns, names) => {
    const fill = mib * MIB / 2
    // Two functions of one line.
    const after = heap(
      ['fill', APP, 41, fill], ['(anonymous)', APP, 41, fill], ['keep', APP, 9, 0.7 * MIB]
    )
    const heapGrowthBytes = grownMib === undefined ? undefined : grownMib * MIB
    const { totalBytes, sites } =
      withoutReplaced(heapSites(undefined, after), { heapGrowthBytes, owns })
    const found = new Set(sites.map(({ function: name }) => name))
    expect([...found].filter(name => name !== '(anonymous)').sort()).toEqual(names)
    expect(totalBytes).toBe(sites.reduce((sum, { bytes }) => sum + bytes, 0))
    expect(sites.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1)
  })
  it('name no place of few bytes', () => {
    const after = heap(['remember', APP, 41, 900, ['race', '', -1, 99], ['all', '', -1, 1]])
    const throughOf = (/** @type {any} */ profile) =>
      heapSites(undefined, profile).sites.map(({ through }) => through)
    expect(throughOf(after)).toEqual([[]])
    after.head.children[0].children[0].selfSize = 101
    expect(throughOf(after)).toEqual([['race']])
  })
})

/** A CPU profile of stacks, innermost frame last, with one millisecond each. */
function cpu (stacks, ticks = {}) {
  /** @type {any[]} */
  const nodes = [{ id: 1, callFrame: ROOT, children: [] }]
  const at = new Map()
  const samples = stacks.map(stack => stack.reduce((parent, [name, url, line]) => {
    const key = `${parent} ${name} ${url}`
    if (!at.has(key)) {
      const id = nodes.length + 1
      nodes.push({
        id,
        callFrame: frameOf(name, url, line),
        children: [],
        positionTicks: ticks[name]
      })
      nodes.find(node => node.id === parent).children.push(id)
      at.set(key, id)
    }
    return at.get(key)
  }, 1))
  return {
    nodes,
    samples,
    timeDeltas: [0, ...samples.map(() => 1000)],
    startTime: 0,
    endTime: 1000 * samples.length
  }
}
const times = (count, stack) => Array.from({ length: count }, () => stack)

describe('suspects of a CPU profile', () => {
  const APP = '/srv/src/login.js'
  const idle = ['(idle)', '', -1]
  const hash = [
    ['login', APP, 10],
    ['pbkdf2Sync', 'node:internal/crypto/pbkdf2', 60],
    ['run', '', -1]
  ]

  it('name the call of Node.js and its caller', () => {
    const { sites, busySeconds } = cpuSuspects(
      cpu([...times(50, [idle]), ...times(300, hash), [idle]])
    )
    expect(busySeconds).toBeCloseTo(0.3)
    expect(sites).toMatchObject([
      {
        function: 'login',
        file: APP,
        line: 11,
        call: 'pbkdf2Sync',
        instead: 'crypto.pbkdf2',
        share: 1
      }
    ])
    expect(sites[0].longestSeconds).toBeCloseTo(0.3)
  })
  it('name synchronous methods of zlib, which share one function of Node.js', () => {
    // The name is real: a Node.js that changed it would no longer be recognised.
    const pack = [['pack', APP, 10], [brotliCompressSync.name, 'node:zlib', 60], ['run', '', -1]]
    expect(cpuSuspects(cpu([...times(300, pack), [idle]])).sites).toMatchObject([{
      function: 'pack', call: 'a …Sync method of zlib', instead: 'the same method without Sync'
    }])
  })
  it.each(['internal/structured_clone', 'internal/worker/js_transferable'])(
    'name structuredClone if it is a function of Node: in %s',
    file => {
      expect(
        cpuSuspects(
          cpu([
            ...times(50, [
              ['copy', APP, 10],
              ['structuredClone', `node:${file}`, 12]
            ]),
            [idle]
          ])
        ).sites
      ).toMatchObject([{ function: 'copy', call: 'structuredClone' }])
    }
  )
  it('name the first function of a package that works after a wait, without the app', () => {
    const TERSER = '/srv/node_modules/terser/index.js'
    const minify = [['resume', 'node:internal/promises', 5], ['minify', TERSER, 90]]
    const stacks = [
      ...times(80, [...minify, ['parse', TERSER, 200]]),
      ...times(70, [...minify, ['walk', TERSER, 300], ['forEach', '', -1], ['visit', TERSER, 400]]),
      ...times(50, [...minify, ['encode', '/srv/node_modules/source-map/index.js', 7]])
    ]
    const { sites } = cpuSuspects(cpu([...stacks, [idle]]))
    expect(sites.map(({ function: name, via, seconds, longestSeconds }) =>
      [name, via, Math.round(1000 * seconds), Math.round(1000 * longestSeconds)])
    ).toEqual([['minify', null, 150, 150], ['encode', null, 50, 50]])
    // The caller is known: its line is the place to change.
    const called = stacks.map(stack => [['build', APP, 30], ...stack])
    expect(cpuSuspects(cpu([...called, [idle]])).sites)
      .toMatchObject([{ function: 'build', via: 'terser', share: 1 }])
  })
  it('start with the longest block, not with many short pieces', () => {
    const small = Array.from({ length: 200 }, () => [
      [['serve', APP, 20]],
      [['serve', APP, 20]],
      [idle]
    ]).flat()
    expect(
      cpuSuspects(cpu([...small, ...times(100, hash), [idle]])).sites.map(
        ({ function: name }) => name
      )
    ).toEqual(['login', 'serve'])
  })
  it('are never the agent, whose time does not count as time of the app', () => {
    const own = [['read', '/opt/memwatch/agent/collect/cgroup.js', 169], ['readSync', 'node:fs', 9]]
    const { sites, busySeconds } = cpuSuspects(
      cpu([...times(100, [idle]), ...times(50, own), ...times(20, hash), [idle]]),
      '/opt/memwatch/agent'
    )
    expect(busySeconds).toBeCloseTo(0.02)
    expect(sites.map(({ function: name, share }) => [name, share])).toEqual([['login', 1]])
  })
  it('are empty if the thread was mostly waiting', () => {
    const sitesOf = busy =>
      cpuSuspects(cpu([...times(1001 - busy, [idle]), ...times(busy, hash), [idle]])).sites.length
    expect([sitesOf(50), sitesOf(51)]).toEqual([0, 1])
  })
  it('have blocks that are not divided by a GC', () => {
    const { sites } = cpuSuspects(
      cpu([
        ...times(50, hash),
        ...times(10, [['(garbage collector)', '', -1]]),
        ...times(50, hash),
        [idle]
      ])
    )
    expect(sites[0].longestSeconds).toBeCloseTo(0.11)
  })
  it.each([[190, []], [210, ['login']]])('name a rare block of %i ms', (ms, names) => {
    const { sites } = cpuSuspects(cpu([...times(9000, [idle]), ...times(ms, hash), [idle]]))
    expect(sites.map(({ function: name }) => name)).toEqual(names)
  })
  it('name the line with most samples of the function’s own time', () => {
    const { sites } = cpuSuspects(
      cpu([...times(50, [['check', APP, 10]]), [idle]], {
        check: [
          { line: 12, ticks: 3 },
          { line: 14, ticks: 47 }
        ]
      })
    )
    expect(sites).toMatchObject([{ function: 'check', line: 14, call: null }])
  })
  it.each([
    ['const rows = JSON.parse(text)', 'JSON.parse'],
    ['if (!PATTERN.test(line)) bad++', 'a regular expression'],
    ['return rows.sort(byName)', 'sort'],
    // Calls of Node.js and of addons would be frames of their own, and this profile has none.
    ['JSON.parse(fs.readFileSync(file))', 'JSON.parse'],
    ['fs.readFileSync(file)', undefined],
    ['db.querySync(sql)', undefined],
    ['return a + b', undefined],
    // The loop itself may take the time.
    ['for (const row of rows) copy(row); return JSON.stringify(first)', undefined],
    ['for await (const row of rows) copy(JSON.parse(row))', undefined],
    ['send(Symbol.for("x"), JSON.stringify(first))', 'JSON.stringify'],
    [`${'a(); '.repeat(40)}JSON.parse(text)`, undefined]
  ])('name the call by the source line: %s', (line, call) => {
    expect(blockingCallIn(line)?.call).toBe(call)
  })
})

describe('native calls of a CPU profile', () => {
  const APP = '/srv/src/audit.js'
  const queued = [['audit', APP, 26], ['postMessage', '', -1]]
  const compressed = [['feed', APP, 50], ['Zlib', 'node:zlib', 700], ['init', '', -1]]
  const written = [
    ['serve', APP, 30],
    ['writeGeneric', 'node:internal/stream_base_commons', 150],
    ['writev', '', -1]
  ]
  const insert = [
    ['save', APP, 60],
    ['run', '/srv/node_modules/better-sqlite3/lib/statement.js', 5],
    ['run', '', -1]
  ]
  const own = [['read', '/opt/memwatch/agent/collect/cpu.js', 1], ['cpuUsage', '', -1]]

  it('are those of the app and its packages, without input, output and states of V8', () => {
    const { sites, totalSeconds } = nativeCalls(cpu([
      ...times(12, queued),
      ...times(8, insert),
      ...times(5, compressed),
      ...times(200, written),
      ...times(50, own),
      ...times(50, [['serve', APP, 30], ['RegExp: a+', '', -1]]),
      ...times(50, [['serve', APP, 30], ['(garbage collector)', '', -1]]),
      ...times(50, [['serve', APP, 30]])
    ]), '/opt/memwatch/agent')
    expect(totalSeconds).toBeCloseTo(0.025)
    expect(sites).toMatchObject([
      { function: 'audit', file: APP, line: 27, call: 'postMessage', via: null, share: expect.closeTo(0.48) },
      { function: 'save', line: 61, call: 'run', via: 'better-sqlite3', share: expect.closeTo(0.32) },
      { function: 'feed', line: 51, call: 'init', share: expect.closeTo(0.2) }
    ])
  })
  it('are calls of WebAssembly, by the function that JavaScript called', async () => {
    // (func (export "spin") (param i32) (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) 1)))))
    const { instance } = await WebAssembly.instantiate(Buffer.from(
      '0061736d01000000010501' + '60017f0003020100070801047370696e0000' +
      '0a10010e000340200041016b22000d000b0b', 'hex'))
    const spin = /** @type {(rounds: number) => void} */ (instance.exports.spin)
    const session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.start')
    const parse = () => spin(1e8)
    parse()
    const { profile } = await session.post('Profiler.stop')
    session.disconnect()
    const { sites } = nativeCalls(/** @type {any} */ (profile))
    expect(sites).toMatchObject([{
      function: 'parse',
      file: __filename,
      // Some versions know no names of functions that were compiled before the profile began.
      call: expect.stringMatching(/^(?:spin$|wasm-function|js-to-wasm)/)
    }])
    const file = 'wasm://wasm/1f'
    const allocated = [['read', APP, 9], ['malloc', file, 0]]
    const { sites: [inner] } = nativeCalls(cpu([
      ...times(3, allocated), ...times(3, [...allocated, ['scan', file, 0]])
    ]))
    expect(inner).toMatchObject({ function: 'read', call: 'malloc', share: 1 })
    // Node.js may call WebAssembly directly, for example in a timer.
    const timer = [['listOnTimeout', 'node:internal/timers', 5], ['tick', file, 0]]
    const { sites: [outer] } = nativeCalls(cpu(times(5, [...timer, ['scan', file, 0]])))
    expect(outer).toMatchObject({ function: 'tick', file, share: 1 })
  })
  it('are the own time of postMessage() of workers, for whose call V8 shows no frame', () => {
    const posted = [['audit', APP, 26], ['postMessage', 'node:internal/worker', 381]]
    const copied = [['serve', APP, 30], ['concat', 'node:buffer', 500]]
    expect(nativeCalls(cpu([...times(9, posted), ...times(90, copied)])).sites)
      .toMatchObject([{ function: 'audit', call: 'postMessage', share: 1 }])
  })
  it('need four samples and more than a seventh of the time', () => {
    const countOf = stacks => nativeCalls(cpu(stacks)).sites.length
    expect(countOf(times(3, queued))).toBe(0)
    expect(countOf(times(4, queued))).toBe(1)
    expect(countOf([...times(100, queued), ...times(17, insert)])).toBe(1)
  })
  it.each([
    ['port.postMessage(record)', ': postMessage'],
    // All functions of Node-API addons begin at one address, so V8 confuses their names.
    ['addon.resize(image)', '']
  ])('are the suspects of a native memory leak: %s', (line, call) => {
    const file = path.join(folder, 'audit.js')
    fs.writeFileSync(file, `function audit (record) {\n  ${line}\n}\n`)
    const suspects = suspectsOf(
      { kind: 'cpu_profile', parts: [], diagnosis: 'native-memory-leak' },
      () => cpu(times(50, [['audit', file, 0], ['postMessage', '', -1]])),
      hello(),
      new Sources(new AppFiles('/', [folder]))
    )
    const text = `audit ${file}:1${call} – 100 % of the time in native code, apart from input and ` +
      'output'
    expect(suspects).toMatchObject({ of: 'native seconds', sites: [{ text }] })
  })
})

describe('suspects without a name', () => {
  const FILE = '/srv/src/orders.js'
  const nested = (file, bytes = 1000) =>
    ['audit', FILE, 3, 0, ['map', '', -1, 0, ['', file, 15, bytes]]]
  const textsOf = (kind, profile) => suspectsOf(
    { kind, parts: [], diagnosis: null }, () => profile, hello()
  )?.sites.map(({ text }) => text.split(' – ')[0])
  it('are named with the nearest caller that has one, in their own file', () => {
    const orders = [`(anonymous) in audit ${FILE}:16`]
    expect(textsOf('heap_profile', heap(nested(FILE)))).toEqual(orders)
    expect(textsOf('heap_profile', heap(nested('/srv/src/rows.js'))))
      .toEqual(['(anonymous) /srv/src/rows.js:16'])
    expect(textsOf('heap_profile', heap(['', FILE, 15, 1000])))
      .toEqual([`(anonymous) ${FILE}:16`])
    const stack = [['audit', FILE, 3], ['', FILE, 15]]
    expect(textsOf('cpu_profile', cpu(times(50, stack)))).toEqual(orders)
    const native = suspectsOf(
      { kind: 'cpu_profile', parts: [], diagnosis: 'native-memory-leak' },
      () => cpu(times(50, [...stack, ['inflate', '', -1]])),
      hello()
    )
    expect(native?.sites[0].text).toContain(orders[0])
  })
  it('that several functions call are named with the one that causes most bytes', () => {
    const other = ['price', FILE, 9, 0, ['', FILE, 15, 9000]]
    const texts = textsOf('heap_profile', heap(nested(FILE), other))
    expect(texts).toEqual([`(anonymous) in price ${FILE}:16`])
  })
})

describe('data handlers of a CPU profile', () => {
  const APP = '/srv/src/syslog.js'
  const read = [['onStreamRead', 'node:internal/stream_base_commons', 170],
    ['readableAddChunkPushByteMode', 'node:internal/streams/readable', 460],
    ['emit', 'node:events', 500]]
  const handled = [...read, ['', APP, 19], ['onRecord', APP, 10], ['keep', APP, 4]]
  const ofPackage = [...read, ['parse', '/srv/node_modules/csv/index.js', 7], ['row', APP, 30]]
  const render = [['listOnTimeout', 'node:internal/timers', 500], ['render', APP, 50]]

  it('are the functions that streams call, with the time of everything that these call', () => {
    const { sites, totalSeconds } = dataHandlers(cpu([
      ...times(30, handled), ...times(10, ofPackage), ...times(90, read), ...times(90, render)
    ]))
    expect(totalSeconds).toBeCloseTo(0.04)
    expect(sites).toMatchObject([
      { function: '(anonymous)', file: APP, line: 20, share: expect.closeTo(0.75) },
      { function: 'row', line: 31, share: expect.closeTo(0.25) }
    ])
  })
  it('are the suspects of Buffers that Node.js receives as datagrams', () => {
    const received = [['onMessage', 'node:dgram', 930], ['emit', 'node:events', 500], ['', APP, 19]]
    const suspectsBeside = (/** @type {number} */ others) => suspectsOf(
      { kind: 'cpu_profile', parts: [], diagnosis: 'native-memory-leak', names: 'handlers' },
      () => cpu([...times(50, received), ...times(others, render)]),
      hello()
    )
    expect(suspectsBeside(90)).toMatchObject({
      of: 'handler seconds', sites: [{ file: APP, line: 20, share: 1 }]
    })
    expect(suspectsBeside(2000)?.sites).toEqual([])
  })
  it('are the suspects of a leak of data that Node.js allocates', () => {
    const suspects = suspectsOf(
      { kind: 'cpu_profile', parts: [], diagnosis: 'js-heap-leak' },
      () => cpu(times(50, handled)),
      hello()
    )
    const text = `(anonymous) ${APP}:20 – 100 % of the time in handlers of data that Node.js reads`
    expect(suspects).toMatchObject({ of: 'handler seconds', sites: [{ text }] })
  })
})

describe('calls that open files, of a CPU profile', () => {
  const [APP, SEND] = ['/srv/src/fonts.js', '/srv/node_modules/send/index.js']
  const opened = [['serve', APP, 9], ['open', 'node:fs', 500], ['open', '', -1]]
  const promised = [['load', APP, 30], ['open', 'node:internal/fs/promises', 600]]
  const streamed = [['save', APP, 40], ['createWriteStream', 'node:fs', 3000],
    ['WriteStream', 'node:internal/fs/streams', 400]]
  const ofPackage = [['page', APP, 50], ['stream', SEND, 700],
    ['createReadStream', 'node:fs', 2900], ['ReadStream', 'node:internal/fs/streams', 150]]
  const whole = [['read', APP, 60], ['readFileSync', 'node:fs', 440], ['openSync', 'node:fs', 550]]
  const other = [['click', APP, 70], ['open', '/srv/src/menu.js', 5]]
  const render = [['render', APP, 80]]
  const others = [...times(90, whole), ...times(90, other), ...times(900, render)]
  const suspectsAt = (/** @type {any[]} */ opens) => suspectsOf(
    { kind: 'cpu_profile', parts: [], diagnosis: 'resource-leak', names: 'opens' },
    () => cpu([...opens, ...others]),
    hello()
  )
  const share = expect.closeTo(0.5)

  it('belong to the function of the app, without files that Node.js closes itself', () => {
    const suspects =
      suspectsAt([...times(20, opened), ...times(20, promised), ...times(40, streamed)])
    expect(suspects).toMatchObject({
      of: 'opening seconds',
      sites: [
        { function: 'serve', file: APP, line: 10, share: expect.closeTo(0.25), via: null },
        { function: 'load', line: 31, share: expect.closeTo(0.25), via: null },
        // Streams close their files themselves, if they are read to their end.
        { function: 'save', line: 41, share, via: null }
      ]
    })
    expect(suspects?.sites).toHaveLength(3)
    expect(suspects?.sites[0].text).toMatch(/ – 25 % of the time in calls that open files$/)
  })
  it('may also be those that create streams', () => {
    expect(suspectsAt([...times(20, streamed), ...times(20, ofPackage)])).toMatchObject({
      sites: [
        { function: 'save', line: 41, share, via: null },
        { function: 'page', line: 51, share, via: 'send' }
      ]
    })
  })
})

describe('functions of the app inside a package', () => {
  const [OUTER, APP] = ['/srv/node_modules/fastify/lib/handle.js', '/srv/src/dispatch.js']
  const outer = ['preHandler', OUTER, 170]
  const handler = [outer, ['', APP, 3], ['dispatch', APP, 12]]
  const keep = [...handler, ['keep', APP, 6], ['addEventListener', 'node:internal/event_target', 609]]
  const send = [outer, ['send', '/srv/node_modules/fastify/lib/reply.js', 700]]
  const other = [['serve', OUTER, 9], ['other', APP, 40]]
  const calls = cpu([
    ...times(80, keep), ...times(20, handler), ...times(90, send), ...times(90, other)
  ])
  const found = (profile, heapProfile, diagnosis = 'js-heap-leak') => suspectsOf(
    { kind: 'cpu_profile', parts: [], diagnosis }, () => profile, hello(), undefined,
    { before: undefined, after: heapProfile }
  )
  const PLACE = `preHandler ${OUTER}:171`

  it('come before the package that allocates, if V8 may have inlined them', () => {
    const suspects = found(calls, heap(['preHandler', OUTER, 170, 9 * MIB], ['', APP, 40, MIB]))
    expect(suspects?.of).toBe('grown bytes')
    expect(suspects?.sites.map(({ text, inlinedIn, share }) => [text, inlinedIn, share])).toEqual([
      [`keep ${APP}:7 – perhaps: runs inside ${PLACE}, for 80 % of the time of the app's ` +
        'functions there', PLACE, 0.9],
      [`dispatch ${APP}:13 – perhaps: runs inside ${PLACE}, for 20 % of the time of the app's ` +
        'functions there', PLACE, 0.9],
      [`(anonymous) ${APP}:4 – perhaps: runs inside ${PLACE}, for 100 % of the time of the app's ` +
        'functions there', PLACE, 0.9],
      [`(anonymous) ${APP}:41 – 1 MiB, 10 % of the new memory still in use`, null, 0.1],
      [`${PLACE} – 9 MiB, 90 % of the new memory still in use`, null, 0.9]
    ])
    expect(suspects?.packages).toMatchObject([{ package: 'fastify' }, {}])
  })
  it('come first if V8 also showed allocations of their own', () => {
    const profile = heap(['preHandler', OUTER, 170, 8 * MIB], ['dispatch', APP, 12, MIB],
      ['', APP, 40, MIB])
    const sites = found(calls, profile)?.sites.map(({ text, inlinedIn }) => [text, inlinedIn])
    expect(sites?.[0]).toEqual([
      `dispatch ${APP}:13 – 1 MiB, 10 % of the new memory still in use; ` +
        `V8 may have inlined it into ${PLACE}`, null
    ])
    expect(sites?.slice(1).map(([text]) => String(text).split(' – ')[0])).toEqual([
      `keep ${APP}:7`, `(anonymous) ${APP}:4`, `(anonymous) ${APP}:41`, PLACE
    ])
  })
  it('come after others if V8 showed few allocations of their own', () => {
    const profile = heap(['preHandler', OUTER, 170, 98 * MIB], ['dispatch', APP, 12, MIB],
      ['', APP, 40, MIB])
    expect(found(calls, profile)?.sites.slice(0, 2).map(site => site.function))
      .toEqual(['keep', 'dispatch'])
    expect(found(calls, profile)?.sites[1].inlinedIn).toBe(PLACE)
  })
  it('are none if no function of the app runs there', () => {
    expect(found(cpu([...times(90, send), ...times(90, other)]),
      heap(['preHandler', OUTER, 170, 9 * MIB]))).toMatchObject({ sites: [] })
  })
  it('are not sought in code of the app', () => {
    expect(found(calls, heap(['keep', APP, 6, 9 * MIB]))).toMatchObject({ sites: [] })
  })
})

describe('suspects', () => {
  const write = profile => {
    const text = JSON.stringify(profile)
    return () => JSON.parse(text)
  }
  const files = () => new Sources(new AppFiles('/', [folder]))
  const capture = { kind: 'cpu_profile', parts: [{ part: 'profile', bytes: 1, sha256: '' }] }

  it('are located in the source, also by its source map, relative to the package', () => {
    fs.writeFileSync(path.join(folder, 'package.json'), '{}')
    fs.mkdirSync(path.join(folder, 'dist'))
    const bundle = path.join(folder, 'dist/bundle.js')
    fs.writeFileSync(bundle, 'const rows = JSON.parse(text)\n//# sourceMappingURL=bundle.js.map\n')
    fs.writeFileSync(
      `${bundle}.map`,
      JSON.stringify({ version: 3, sources: ['../src/cache.ts'], names: [], mappings: 'AAyCA' })
    )
    const read = write(
      cpu([...times(50, [['load', bundle, 0]]), [['(idle)', '', -1]]], {
        load: [{ line: 1, ticks: 50 }]
      })
    )
    const suspects = suspectsOf(/** @type {any} */ (capture), read, hello(), files())
    expect(suspects?.sites).toMatchObject([
      { function: 'load', file: 'src/cache.ts', line: 42, call: 'JSON.parse' }
    ])
    expect(shortText(suspects)).toMatch(
      /^load src\/cache\.ts:42: JSON\.parse; .* – 100 % .*, up to 0\.05 s in one or more calls in a row$/
    )
    expect(markdown(/** @type {any} */ ({ ...capture, target: 'shop', thread: 'main', pid: 1, node: '20', requestedUnixMs: 0, suspects }))).toContain('| `load` | `src/cache.ts:42` |')
  })
  it('name no function of another package of the same bundle as inlined', () => {
    const bundle = path.join(folder, 'bundle.js')
    const source = [
      'const rows = []',
      'class Other { keep (row) { rows.push(row) } }',
      'const handler = request => { store.keep(request); hold(request) }',
      'function hold (row) { rows.push(row) }'
    ]
    fs.writeFileSync(bundle, source.join('\n') + '\n//# sourceMappingURL=bundle.js.map\n')
    const inlinedOf = other => {
      fs.writeFileSync(`${bundle}.map`, JSON.stringify({
        version: 3, sources: ['src/index.ts', other], names: [], mappings: 'AAAA;ACAA;ADAA;AAAA'
      }))
      const profile = {
        head: {
          callFrame: ROOT, selfSize: 0, children: [{
            callFrame: { functionName: 'handler', url: bundle, lineNumber: 2, columnNumber: 16 },
            selfSize: 1000,
            children: []
          }]
        }
      }
      const heap = { kind: 'heap_profile', parts: [{ part: 'profile' }], diagnosis: null }
      return suspectsOf(/** @type {any} */ (heap), () => profile, hello(), files())?.sites
        .filter(({ inlinedIn }) => inlinedIn).map(({ file }) => file)
    }
    fs.writeFileSync(path.join(folder, 'package.json'), '{"name":"shop"}')
    expect(inlinedOf('src/other.ts')).toEqual(['src/other.ts'])
    expect(inlinedOf('node_modules/rows/index.ts')).toEqual(['src/index.ts'])
  })
  it.each([
    ['package.json', '{}', 'src/cache.js', 'src/cache.js'],
    ['package.json', 'not JSON', 'src/cache.js', 'src/cache.js'],
    [
      'package.json',
      'null',
      'node_modules/poller/lib/index.js',
      'node_modules/poller/lib/index.js'
    ],
    [
      'agent/package.json',
      '{"name":"@memwatch/agent"}',
      'agent/capture/send.js',
      '@memwatch/agent/capture/send.js'
    ]
  ])(
    'are classified by package, and the agent’s by name: %s %s, %s',
    (manifest, text, file, expected) => {
      for (const [name, content] of [
        [manifest, text],
        ['node_modules/poller/package.json', '{}']
      ]) {
        fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
        fs.writeFileSync(path.join(folder, name), content)
      }
      expect(files().relative(path.join(folder, file))).toBe(expected)
      expect(new Sources(undefined).relative(path.join(folder, file))).toBe(path.join(folder, file))
    }
  )
  it('of an invisible process are those of the profile, without reading a file', () => {
    const bundle = path.join(folder, 'bundle.js')
    fs.writeFileSync(bundle, 'JSON.parse(text)')
    const read = write(cpu([...times(50, [['load', bundle, 0]]), [['(idle)', '', -1]]]))
    expect(suspectsOf(/** @type {any} */ (capture), read, hello({ pid: 1, startTimeTicks: 1 }))?.sites).toMatchObject([{ file: bundle, line: 1, call: null }])
  })
  it('name a call only if its line has most of the function’s own time', () => {
    const file = path.join(folder, 'app.js')
    fs.writeFileSync(file, 'function check (text) {\n  send(JSON.stringify(text))\n}\n')
    const callOf = (own, ticks) => {
      const read = write(
        cpu(
          [
            ...times(own, [['check', file, 0]]),
            ...times(100 - own, [['check', file, 0], ['dispatch', 'node:internal/events', 700]]),
            [['(idle)', '', -1]]
          ],
          { check: ticks }
        )
      )
      const suspects = suspectsOf(/** @type {any} */ (capture), read, hello(), files())
      return suspects?.sites[0].call
    }
    const onLine = [{ line: 2, ticks: 5 }]
    expect(callOf(50, onLine)).toBe('JSON.stringify')
    expect(callOf(49, onLine)).toBe(null)
    expect(callOf(100, [...onLine, { line: 3, ticks: 3 }, { line: 1, ticks: 2 }])).toBe(
      'JSON.stringify'
    )
    expect(
      callOf(100, [...onLine, { line: 3, ticks: 4 }, { line: 1, ticks: 2 }])
    ).toBe(null)
    expect(callOf(100, [])).toBe(null)
  })
  it.each(['not JSON', '{"version":3}', '{"version":3,"sources":[],"names":[],"mappings":"!!"}'])(
    'ignore an invalid source map: %s',
    map => {
      const bundle = path.join(folder, 'bundle.js')
      fs.writeFileSync(bundle, 'x\n//# sourceMappingURL=bundle.js.map')
      fs.writeFileSync(`${bundle}.map`, map)
      expect(files().original({ file: bundle, line: 1, column: 1 })).toMatchObject({
        file: bundle,
        line: 1
      })
    }
  )
  it.each([
    ['heap_profile', ['remember', '(anonymous)']],
    ['allocation_profile', ['(anonymous)', 'remember', 'render']]
  ])('of a %s name possibly inlined functions', (kind, expected) => {
    const file = path.join(folder, 'app.js')
    fs.writeFileSync(
      file,
      'setInterval(() => { remember(); render() })\nconst kept = []; function remember () { ' +
        'kept.push({}) }\nfunction render () { return [] }\n'
    )
    const profile = heap(['', file, 0, 1000])
    profile.head.children[0].callFrame.columnNumber = 12
    const suspects = suspectsOf(/** @type {any} */ ({ ...capture, kind }), write(profile), hello(), files())
    expect(suspects?.sites.map(site => site.function)).toEqual(expected)
    expect(shortText(suspects)).toContain(
      `remember ${file}:2 – perhaps, inlined into (anonymous) ${file}:1`
    )
  })
  /**
   * Suspects of a heap profile in which an anonymous function calls one that retains objects.
   * @param {string} name of the function that retains
   * @param {string} source of two lines, with a function on each
   * @param {[number, number]} bytes of the caller, and of the function that it calls
   */
  function ofCallerAndCallee (name, source, bytes) {
    const file = path.join(folder, 'app.js')
    fs.writeFileSync(file, source)
    const profile = heap(['', file, 0, bytes[0]], [name, file, 1, bytes[1]])
    const [caller, callee] = profile.head.children
    caller.callFrame.columnNumber = 12
    callee.callFrame.columnNumber = source.split('\n')[1].indexOf('function')
    return suspectsOf(
      /** @type {any} */ ({ ...capture, kind: 'heap_profile' }), write(profile), hello(), files()
    )
  }
  it('name a function that retains before its caller, if the profile names both', () => {
    const suspects = ofCallerAndCallee(
      'remember',
      'setInterval(() => remember())\n' +
        'const kept = []; function remember () { kept.push({}) }\n',
      [1000, 600]
    )
    expect(suspects?.sites.map(site => site.function)).toEqual(['remember', '(anonymous)'])
    expect(suspects?.sites[0].text).toMatch(
      new RegExp('^remember \\S+app\\.js:2 – .*38 % of the new memory still in use.*; ' +
        'V8 may have inlined it into \\(anonymous\\)')
    )
    expect(suspects?.sites[0]).toMatchObject({ value: 600, inlinedIn: null })
    expect(suspects?.sites[0]).not.toHaveProperty('also')
  })
  it.each([
    ['retains', 'const kept = []; function remember () { kept.push({}) }'],
    ['alone allocates', 'const kept = []; function remember () { return {} }']
  ])('name a function first that %s, if its caller hardly allocates', (_, callee) => {
    const source = `setInterval(() => { remember() })\n${callee}\n`
    const suspects = ofCallerAndCallee('remember', source, [940, 60])
    expect(suspects?.sites.map(site => site.function)).toEqual(['remember', '(anonymous)'])
  })
  it('name the caller first if the function that retains has little beside it', () => {
    const suspects = ofCallerAndCallee(
      'count',
      'setInterval(() => count(grow()))\n' +
        'const counts = new Map(); function count (key) { counts.set(key, 1) }\n',
      [940, 60]
    )
    expect(suspects?.sites.map(site => site.function)).toEqual(['(anonymous)', 'count'])
  })
  it('of Node.js itself are named in a headline only if they explain most of it', () => {
    const site = (file, share) => ({ file, share, text: file })
    const sites = [site('node:internal/timers', 0.38), site('app.js', 0.2)]
    expect(shortText(/** @type {any} */ ({ sites }))).toBe('app.js')
    expect(shortText(/** @type {any} */ ({ sites: [site('node:string_decoder', 0.9)] })))
      .toBe('node:string_decoder')
  })
  it('are empty for an invalid profile', () => {
    expect(suspectsOf(/** @type {any} */ ({ kind: 'report', parts: [] }), () => '', hello())).toBe(null)
  })
})

describe('files named by a profile', () => {
  /** @type {string} */
  let app
  /** @type {import('node:child_process').ChildProcess[]} */
  let processes = []
  beforeEach(() => {
    app = path.join(folder, 'app')
    fs.mkdirSync(app)
  })
  afterEach(async () => {
    for (const child of processes) {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'close')
    }
    processes = []
  })
  const write = (name, text = 'JSON.parse(text)') => {
    const file = path.join(folder, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
    return file
  }
  /** Source files of a living process, found by its hello. */
  async function sourcesOf (args = ['-e', 'setInterval(() => {}, 1000); ' +
    'console.log()'], cwd = app) {
    const child = spawn(process.execPath, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, NODE_OPTIONS: '' }
    })
    processes.push(child)
    await once(child.stdout, 'data')
    const stat = fs.readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    return Sources.of(
      hello({
        pid: child.pid,
        startTimeTicks: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])
      })
    )
  }

  it('are read below the working directory, and by links of a package manager', async () => {
    write('app/package.json', '{}')
    write('app/node_modules/.pnpm/lru@1/node_modules/lru/index.js')
    fs.symlinkSync('.pnpm/lru@1/node_modules/lru', path.join(app, 'node_modules/lru'))
    write('app/src/cache.js')
    const sources = await sourcesOf()
    expect(
      ['src/cache.js', 'node_modules/lru/index.js', 'src/../src/cache.js'].map(name =>
        sources.text(path.join(app, name))
      )
    ).toEqual(Array(3).fill('JSON.parse(text)'))
  })
  it('are read in the workspace of the package, and in node_modules above it', async () => {
    write('package.json', '{}')
    write('app/package.json', '{}')
    const sources = await sourcesOf()
    expect([
      sources.text(write('packages/lib/index.js')),
      sources.text(write('node_modules/lru/index.js'))
    ]).toEqual(Array(2).fill('JSON.parse(text)'))
  })
  it('are read beside the script, wherever it was started', async () => {
    const script = write('srv/server.js', 'setInterval(() => {}, 1000); console.log()')
    const sources = await sourcesOf([script], '/')
    expect(sources.text(write('srv/lib/cache.js'))).toBe('JSON.parse(text)')
    expect(sources.text(write('else/where.js'))).toBeUndefined()
  })
  it('are read elsewhere only to find the package of a file', async () => {
    write('agent/package.json', '{"name":"@memwatch/agent"}')
    const file = write('agent/capture/send.js')
    const sources = await sourcesOf()
    expect([sources.relative(file), sources.text(file)]).toEqual([
      '@memwatch/agent/capture/send.js',
      undefined
    ])
  })

  const outside = '/etc/hostname'
  it.each([
    ['/proc/self/pagemap', () => '/proc/self/pagemap'],
    ['/proc/kmsg', () => '/proc/kmsg'],
    ['a file of /sys', () => '/sys/kernel/mm/transparent_hugepage/enabled'],
    ['/dev/zero', () => '/dev/zero'],
    ['the memory of another process', () => '/proc/1/mem'],
    ['a folder', () => app],
    [
      'a FIFO',
      () => {
        execFileSync('mkfifo', [path.join(app, 'fifo.js')])
        return path.join(app, 'fifo.js')
      }
    ],
    ['a file of 17 MiB', () => write('app/large.js', 'x'.repeat(17 * MIB))],
    ['a file outside', () => outside],
    ['a ladder to it', () => path.join(app, 'src') + '/../../../../../../../../..' + outside],
    [
      'an absolute link to it',
      () => {
        fs.symlinkSync(outside, path.join(app, 'link.js'))
        return path.join(app, 'link.js')
      }
    ],
    [
      'a relative link to it',
      () => {
        fs.symlinkSync('../secret', path.join(app, 'link.js'))
        write('secret')
        return path.join(app, 'link.js')
      }
    ],
    [
      'a link to a folder outside',
      () => {
        fs.symlinkSync('/etc', path.join(app, 'etc'))
        return path.join(app, 'etc/hostname')
      }
    ],
    [
      'a link to a device',
      () => {
        fs.symlinkSync('/dev/zero', path.join(app, 'zero.js'))
        return path.join(app, 'zero.js')
      }
    ],
    [
      'a link to itself',
      () => {
        fs.symlinkSync('loop.js', path.join(app, 'loop.js'))
        return path.join(app, 'loop.js')
      }
    ],
    [
      'a manifest that is a link',
      () => {
        fs.symlinkSync(outside, path.join(app, 'package.json'))
        return path.join(app, 'package.json')
      }
    ],
    ['a path of 5000 characters', () => app + '/.'.repeat(2500) + '/app.js'],
    ['no path', () => 'app.js'],
    ['nothing', () => path.join(app, 'none.js')]
  ])(
    'are not read if they are %s',
    async (_, make) => {
      expect(fs.existsSync(outside)).toBe(true)
      const file = make()
      const sources = await sourcesOf()
      expect([sources.text(file), sources.lines(file, 1, 3)]).toEqual([undefined, []])
    },
    30_000
  )
  it.each([
    ['a file outside', `//# sourceMappingURL=${outside}`],
    ['a ladder', '//# sourceMappingURL=../../../../../../../../proc/self/pagemap'],
    [
      'a ladder with encoded slashes',
      '//# sourceMappingURL=..%2f..%2f..%2f..%2f..%2fproc%2fself%2fpagemap'
    ],
    ['a file: URL', '//# sourceMappingURL=file:///proc/self/pagemap'],
    ['one that is no address', '//# sourceMappingURL=%'],
    [
      'a data: URL of more than fits',
      `//# sourceMappingURL=data:application/json;base64,${Buffer.from(`[${'[],'.repeat(1e6)}[]]`).toString('base64')}`
    ],
    ['50 MB in itself', `//# sourceMappingURL=data:application/json;base64,${'A'.repeat(50e6)}`],
    [
      'many beginnings of one, which a pattern would try one by one',
      '# sourceMappingURL=data:application/json;base64,'.repeat(300_000)
    ]
  ])(
    'do not cost much time if a source map is %s',
    async (_, comment) => {
      const file = write('app/bundle.js', `x()\n//# sourceURL=/proc/self/pagemap\n${comment}\n`)
      const sources = await sourcesOf()
      const began = performance.now()
      expect(sources.original({ file, line: 1, column: 1 })).toEqual({
        file,
        line: 1,
        column: 1,
        function: null
      })
      expect(performance.now() - began).toBeLessThan(30_000)
    },
    60_000
  )
  it('are printed but never read if a source map names them', async () => {
    const file = write('app/bundle.js', 'x()\n//# sourceMappingURL=bundle.js.map')
    write(
      'app/bundle.js.map',
      JSON.stringify({ version: 3, sources: ['/proc/self/pagemap'], names: [], mappings: 'AAAA' })
    )
    const sources = await sourcesOf()
    const { file: original } = sources.original({ file, line: 1, column: 1 })
    expect([original, sources.text(original)]).toEqual(['/proc/self/pagemap', undefined])
  })
  it('are limited to a thousand and 64 MiB for one capture', async () => {
    const large = Array.from({ length: 6 }, (_, i) => write(`app/${i}.js`, 'x'.repeat(15 * MIB)))
    const sources = await sourcesOf()
    expect(large.map(file => sources.text(file)?.length)).toEqual([
      ...Array(4).fill(15 * MIB),
      undefined,
      undefined
    ])
    const small = Array.from({ length: 1100 }, (_, i) => write(`app/small/${i}.js`))
    expect(small.filter(file => sources.text(file) !== undefined).length).toBeLessThanOrEqual(1000)
    expect(small.filter(file => sources.text(file) !== undefined).length).toBeGreaterThan(900)
  }, 60_000)
  it('are not read for a target that runs elsewhere', () => {
    const file = write('app/app.js')
    expect(Sources.of(hello({ platform: 'darwin' })).text(file)).toBeUndefined()
  })
  it('with nested calls or endless nodes end the search', () => {
    const callees = source =>
      new InlinedCallees(() => source).allOf({ file: '/srv/app.js', line: 1, column: 1 })
    const began = performance.now()
    expect(
      callees(
        'function f () {' +
          'f();'.repeat(40_000) +
          '}\n' +
          'function f () { return f() }\n'.repeat(10_000)
      )
    ).toEqual([])
    expect(callees('('.repeat(200_000))).toEqual([])
    expect(callees(`function f () { return [${'a,'.repeat(250_000)}] }`)).toEqual([])
    expect(
      new InlinedCallees(() => 'function f () { return [a, a, a, a, a, a, a, a, a, a] }', {
        headroomBytes: 20_000
      }).of({ file: '/srv/app.js', line: 1, column: 1 })
    ).toBeUndefined()
    expect(performance.now() - began).toBeLessThan(60_000)
  }, 90_000)
})

describe('untrusted JSON', () => {
  it.each(['[]', '{}', '[0]', '""'])(
    'that would fill the heap is refused before parsing: %s',
    item => {
      const text = `[${Array(500_000).fill(item).join()}]`
      expect(() => parseBounded(text, { headroomBytes: 32 * MIB })).toThrow(RangeError)
      const before = process.memoryUsage().heapUsed
      const parsed = parseBounded(text)
      // The bound holds: a parse takes no more memory than estimated.
      expect(() =>
        parseBounded(text, { headroomBytes: 2 * (process.memoryUsage().heapUsed - before) - MIB })
      ).toThrow(RangeError)
      expect(parsed).toHaveLength(500_000)
    }
  )
  it('of a real profile is accepted', () => {
    const text = JSON.stringify(
      heap(
        ...Array.from({ length: 5000 }, (_, i) => [
          `function${i}`,
          'file:///srv/app/src/cache.js',
          i,
          1000
        ])
      )
    )
    expect(parseBounded(text, { headroomBytes: 16 * text.length }).head.children).toHaveLength(5000)
  })
})

describe('functions possibly inlined into a suspect', () => {
  /**
   * @param {Record<string, string>} files
   * @param {string} text text that the suspect contains
   */
  const calleeOf = (files, text) => {
    const before = files['/srv/app.js'].slice(0, files['/srv/app.js'].indexOf(text)).split('\n')
    const found = new InlinedCallees(file => files[file]).of({ file: '/srv/app.js', line: before.length, column: /** @type {string} */ (before.at(-1)).length + 1 })
    return found && `${found.name} ${found.file}:${found.line}`
  }
  const handler = 'const handler = request => {\n  remember(request.id)\n}\n'
  const KEEPER = 'const kept = []; function remember (row) { kept.push({ row }) }\n'
  const MAKER = 'function remember (row) { return { row } }\n'
  const SLEEP = 'const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))\n'
  it.each([
    ['creates an array', KEEPER, 'const rows = [row]; remember(rows)', false],
    ['creates nothing', KEEPER, 'remember(row)', true],
    ['creates nothing, and the only callee keeps nothing', MAKER, 'remember(row).id++', true],
    ['creates only an error', KEEPER,
      "if (!row) throw new Error('no ' + row); remember(row)", true],
    ['calls one that only throws objects',
      MAKER + "function check (row) { if (!row) throw new Error('none') }\n",
      'check(row); remember(row)', true],
    ['drops the results of unknown functions', KEEPER,
      'remember(row).catch(error => log(error)); out.status(2).end()', true],
    ['uses the results of unknown functions', KEEPER, 'remember(JSON.parse(row))', false],
    ['enlarges an object by an unknown function', KEEPER,
      'Object.assign(all, row); remember(row)', false],
    ['joins strings', KEEPER, 'remember(row.first + row.last)', false],
    ['lengthens a string', KEEPER, 'text += row; remember(row)', false],
    ['adds numbers', KEEPER, 'remember(+row.id + 1)', true],
    ['copies with a rest pattern', KEEPER, 'const { id, ...rest } = row; remember(id)', false],
    ['creates a regular expression', KEEPER, 'remember(/a/g)', false],
    ['has a callback with its variables', KEEPER, 'remember(row); done.then(() => row)', false],
    ['has a callback that hides its variables', KEEPER,
      'remember(row); done.then(() => { send(row); rows.map(row => row.id) })', false],
    ['has a callback without its variables', KEEPER, 'remember(row); done.then(() => log())', true],
    ['calls another one that allocates', MAKER + 'function render (row) { return [row] }\n',
      'remember(row); render(row)', false],
    ['calls one that only sets a timer as well', SLEEP + KEEPER, 'remember(row); sleep(9)', true],
    ['calls another one that keeps', KEEPER + 'function store (row) { all[row.id] = row }\n',
      'remember(row); store(row)', false],
    ['calls a function by the name of a method',
      'class Audit { log (row) { this.rows.push({ row }) } }\n', 'console.log(row)', false],
    ['calls a method of an instance',
      'class Audit { log (row) { this.rows.push({ row }) } }\nconst audit = new Audit()\n',
      'audit.log(row)', true],
    ['has the name of an unknown method', KEEPER, 'remember(io.handler(row))', false]
  ])('are likelier than a caller or not that %s', (_, callees, body, expected) => {
    const source = `${callees}const handler = row => {\n${body} }\n`
    const lines = source.slice(0, source.indexOf('=> {\n')).split('\n')
    const found = new InlinedCallees(() => source).of({
      file: '/srv/app.js', line: lines.length, column: /** @type {string} */ (lines.at(-1)).length
    })
    expect(found).toBeDefined()
    expect(found?.isLikelier).toBe(expected)
  })
  const PARSED = 'const byKey = new Map()\nfunction made (key) { return { key } }\n'
  it.each([
    ['stores the result', 'byKey.set(key, made(key))', 'made'],
    ['stores a part of the result', 'byKey.set(key, made(key).key)', 'made'],
    ['stores it by a variable, if it is not there yet',
      'let row = byKey.get(key); if (!row) { row = made(key); byKey.set(key, row) } return row',
      'made'],
    ['stores it from either branch', 'byKey.set(key, key ? made(key) : made(1))', 'made'],
    ['stores it by way of a function that returns it', 'byKey.set(key, wrapped(key))', 'made',
      'const wrapped = key => made(key)\n'],
    ['stores the results of two functions', 'byKey.set(key, made(key)); rows[key] = copied(key)',
      undefined, 'function copied (key) { return [key] }\n'],
    ['stores what it is given', 'byKey.set(key, key); made(key)', undefined],
    ['stores a new object beside the result', 'byKey.set(key, [made(key)])', undefined],
    ['stores it after a lookup in something else',
      'if (!store.get(key)) byKey.set(key, made(key))', undefined],
    ['stores it after a lookup in something that has the name of a collection',
      'const byKey = store; if (!byKey.get(key)) byKey.set(key, made(key)); rows[key] = 1',
      undefined],
    ['stores it after a lookup in a variable that is no collection for long',
      'if (!byKey.get(key)) byKey.set(key, made(key))', undefined, 'byKey = store\n'],
    ['stores the result of an unknown function', 'byKey.set(key, parse(made(key)))', undefined],
    ['stores a number that another function computes', 'all.push(since(key))', undefined,
      'const since = start => performance.now() - start\n'],
    ['stores the length of what another function makes', 'all.push(made(key).length)', undefined],
    ['stores what another function finds', 'all.push(found(key))', undefined,
      'const found = key => rows.find(row => row.key === key)\n'],
    ['stores what another function makes once', 'all.push(clientOf(key))', undefined,
      'function clientOf (key) { return (clients[key] ??= { key }) }\n'],
    ['stores by a key that another function makes', 'byKey.set(made(key), true)', undefined],
    ['listens to an event that another function names', 'bus.on(topic(key), listener)', undefined,
      "const topic = key => 'changed ' + key\n"],
    ['waits for a time that another function computes', 'setInterval(poll, period(key))', undefined,
      'const period = key => [key, 9][1]\n'],
    ['stores a callback as well', 'all.push(made(key), () => { done++ })', undefined],
    ['stores more than one function makes', 'all.push(made(key), ...rows(key))', undefined,
      'const rows = key => [key]\n'],
    ['stores in a collection, beside a method of this name', 'byKey.set(key, key)', undefined,
      'class Labels { set (key) { this.all.push({ key }) } }\n'],
    ['stores in a variable that is a logger elsewhere', 'log.push(key)', undefined,
      'let log = all\nclass Log { push (key) { rows[key] = { key } } }\n' +
      'function other () { const log = new Log(); log.push(1) }\n']
  ])('come before a caller that %s', (_, body, expected, more = '') => {
    const source = `${PARSED}${more}const handler = key => {\n${body} }\n`
    const lines = source.slice(0, source.indexOf('=> {\n')).split('\n')
    const found = new InlinedCallees(() => source).of({
      file: '/srv/app.js', line: lines.length, column: /** @type {string} */ (lines.at(-1)).length
    })
    expect(found?.name).toBe(expected)
    expect(found?.isLikelier).toBe(expected && true)
  })
  it('are the makers of what a class stores in its own collection', () => {
    const source = 'function made (key) { return { key } }\nclass Store {\n' +
      'constructor () { this.rows = new Map() }\nadd (key) {\n' +
      'if (!this.rows.has(key)) this.rows.set(key, made(key)) }\n}\n' +
      'const store = new Store()\nconst tick = key => { store.add(key) }\n'
    const at = (/** @type {number} */ line, /** @type {number} */ column) =>
      new InlinedCallees(() => source).of({ file: '/srv/app.js', line, column })
    expect(at(4, 5)).toMatchObject({ name: 'made', isLikelier: true })
    expect(at(8, 14)).toMatchObject({ name: 'made', isLikelier: true })
  })
  it('are not looked for in a module of which only a part is imported', () => {
    const files = {
      '/srv/app.js': "const { sessions } = require('./state')\n" +
        'const login = id => { sessions.set(id, 1) }',
      '/srv/state.js': 'exports.sessions = new Map()\n' +
        'class Settings { set (key) { this.all.push({ key }) } }'
    }
    const found = new InlinedCallees(file => files[file])
      .of({ file: '/srv/app.js', line: 2, column: 15 })
    expect(found).toBe(undefined)
  })
  it.each([
    ['is a variable of the module', '', 'add'],
    ['is a variable of the caller, which hides that', 'const list = other; ', undefined]
  ])('have the name of a built-in method, in an imported class, if the object %s', (
    _, own, name
  ) => {
    const files = {
      '/srv/app.js': "const { Worklist } = require('./worklist')\nconst list = new Worklist()\n" +
        `const save = file => { ${own}list.add(file) }`,
      '/srv/worklist.js':
        'class Worklist { add (file) { this.entries.set(file.id, { file }) } }\n' +
        'module.exports = { Worklist }'
    }
    const found = new InlinedCallees(file => files[file])
      .of({ file: '/srv/app.js', line: 3, column: 14 })
    expect(found?.name).toBe(name)
  })
  it('are not likelier than a caller if they only call one that keeps', () => {
    const source = 'function journal (i) { trail.push({ i }) }\n' +
      'function save (i) { hits[i % 10] = i; journal(i) }\nconst tick = i => { save(i) }\n'
    const found = new InlinedCallees(() => source).of({ file: '/srv/app.js', line: 3, column: 14 })
    expect(found).toMatchObject({ name: 'save', isLikelier: false })
  })
  it.each([
    ['calls the others', '', 'amend', true],
    ['calls not all others', 'load(2)', 'amend', false]
  ])('come first of several that keep if the first one %s', (_, more, name, isLikelier) => {
    const source = 'const all = new Map(), trail = []\n' +
      'function load (id) { const row = { id }; all.set(id, row); return row }\n' +
      'function amend (id) { trail.push({ id, row: load(id) }) }\n' +
      `const tick = id => { amend(id); ${more} }\n`
    const found = new InlinedCallees(() => source).of({ file: '/srv/app.js', line: 4, column: 14 })
    expect(found).toMatchObject({ name, isLikelier })
  })
  it('are not likelier than an asynchronous caller, which creates a promise', () => {
    const source = `${KEEPER}async function handler (row) {\nremember(row) }\n`
    const found = new InlinedCallees(() => source).of({ file: '/srv/app.js', line: 2, column: 1 })
    expect([found?.name, found?.isLikelier]).toEqual(['remember', false])
  })
  it('are found three calls away, as methods of imported classes', () => {
    const files = {
      '/srv/app.js': "const { Store } = require('./store')\n" +
        'class House { constructor () { this.store = new Store() }\n' +
        'move (id) { this.store.record(id) } }\nconst house = new House()\n' +
        'function lift (id) { house.move(id) }\nconst tick = id => { lift(id) }',
      '/srv/store.js': 'exports.Store = class { record (id) { this.all.push({ id }) } }'
    }
    const found = new InlinedCallees(file => files[file])
      .of({ file: '/srv/app.js', line: 6, column: 14 })
    expect(found).toMatchObject({ name: 'record', file: '/srv/store.js', isLikelier: true })
  })
  it('are none in sources so deep that V8 could end the process', () => {
    const deep = times => 'throw (() => { '.repeat(times) + '})()'.repeat(times)
    const calleeIn = source => new InlinedCallees(() => source)
      .of({ file: '/srv/app.js', line: 2, column: 17 })
    const source = times => `${KEEPER}const handler = row => { remember(row); ${deep(times)} }`
    expect(calleeIn(source(100))?.name).toBe('remember')
    expect(calleeIn(source(1500))).toBe(undefined)
  })
  it.each([
    ['throws', 'throw e;'], ['callbacks', 'q(()=>1);'], ['calls in a chain', '.b(()=>1)', 'q']
  ])('take time in proportion to the source: %s', (_, piece, start = '') => {
    const took = [Infinity, Infinity]
    for (const round of [0, 1, 0, 1, 0, 1, 0, 1]) {
      const source = `${KEEPER}const handler = row => { remember(row);${start}` +
        `${piece.repeat([1, 4][round] * 2500)} }`
      const callees = new InlinedCallees(() => source, { headroomBytes: 4e9 })
      // CPU time: other processes may interrupt this one.
      const began = process.cpuUsage()
      callees.of({ file: '/srv/app.js', line: 2, column: 17 })
      took[round] = Math.min(took[round], process.cpuUsage(began).user)
    }
    expect(took[1]).toBeLessThan(10 * took[0])
  })
  it.each([
    [
      'a function that keeps',
      'const kept = []\nfunction remember (id) { kept.push(id) }\n' + handler,
      'remember /srv/app.js:2'
    ],
    [
      'one that one that is called calls',
      'const kept = new Map()\nfunction remember (id) { return store({ id }) }\nfunction store ' +
        '(row) { kept.set(row.id, row) }\n' +
        handler,
      'store /srv/app.js:3'
    ],
    [
      'one that only allocates, where the suspect does not',
      'function remember (id) { return { id } }\n' + handler,
      'remember /srv/app.js:1'
    ],
    [
      'none where nothing is kept or allocated',
      'function remember (id) { return id + 1 }\n' + handler,
      undefined
    ],
    [
      'none where it keeps things itself',
      'const kept = []\nfunction remember (id) { kept.push(id) }\nconst handler = request => { ' +
        'kept.push(request); remember(1) }\n',
      undefined
    ],
    [
      'none where what is kept is its own',
      'function remember (id) { const own = []; own.push(id); return own.length }\nconst ' +
        'handler = request => { const row = { request }; remember(row) }\n',
      undefined
    ],
    ['none in what is no JavaScript', 'const handler = (', undefined]
  ])('is %s', (_, source, expected) => {
    expect(calleeOf({ '/srv/app.js': source }, '=> {')).toBe(expected)
  })
  it.each([
    [
      "const { remember } = require('./cache')\n",
      'exports.remember = function (id) { kept.push(id) }'
    ],
    ["import { remember } from './cache.js'\n", 'export function remember (id) { kept.push(id) }']
  ])('are searched where they come from: %s', (head, cache) => {
    expect(calleeOf({ '/srv/app.js': head + handler, '/srv/cache.js': cache }, '=> {')).toBe(
      'remember /srv/cache.js:1'
    )
  })
  it('are all called functions, each once, if garbage counts as well', () => {
    const source =
      'const kept = []\nfunction remember (id) { kept.push({ id }) }\nfunction render (id) { ' +
        'return [id] }\nfunction count (id) { return id + 1 }\nconst handler = request => {\n  ' +
          'remember(1); render(2); render(count(3)); kept.push([])\n}\n'
    const callees = new InlinedCallees(() => source)
    const place = { file: '/srv/app.js', line: 5, column: 17 }
    expect([callees.allOf(place).map(({ name, line }) => [name, line]), callees.of(place)]).toEqual(
      [
        [
          ['remember', 2],
          ['render', 3]
        ],
        undefined
      ]
    )
    expect(new InlinedCallees(() => undefined).allOf(place)).toEqual([])
  })
  it('include methods of imported objects, and circular calls end', () => {
    const files = {
      '/srv/app.js':
        "const cache = require('./cache')\nconst handler = request => {\n  " +
          'cache.remember(request)\n}\n',
      '/srv/cache.js':
        "const app = require('./app')\nclass Cache { remember (row) { this.rows.push(row); " +
          'this.remember(row); app.handler(row) } }'
    }
    expect(calleeOf(files, '=> {')).toBe('remember /srv/cache.js:2')
  })
})

describe('pprof', () => {
  const decode = bytes => Profile.decode(gunzipSync(bytes))
  it('of a heap profile has the same bytes under the same names', () => {
    const profile = heap(['serve', '/srv/a.js', 1, 10, ['remember', '/srv/a.js', 41, 1000]])
    const found = decode(toPprof('heap_profile', profile, { atUnixMs: 1000, seconds: 3 }))
    const { strings } = found.stringTable
    expect(found.sample.map(({ value }) => value.map(Number)).sort()).toEqual([[10], [1000]])
    expect(found.function.map(({ name }) => strings[Number(name)])).toEqual(
      expect.arrayContaining(['serve', 'remember'])
    )
    expect(strings[Number(found.sampleType[0].type)]).toBe('inuse_space')
    expect([Number(found.timeNanos), Number(found.durationNanos)]).toEqual([1e9, 3e9])
  })
  it('of a CPU profile has the time that was not idle', () => {
    const found = decode(
      toPprof(
        'cpu_profile',
        cpu([...times(30, [['work', '/srv/a.js', 1]]), ...times(70, [['(idle)', '', -1]])]),
        { atUnixMs: 0, seconds: 1 }
      )
    )
    expect(found.sample.map(({ value }) => value.map(Number))).toEqual([[30_000_000]])
  })
})

describe('the store', () => {
  const ids = Array.from({ length: 5 }, (_, i) => `${i}0000000-0000-4000-8000-000000000000`)
  const open = (options = {}) => {
    const store = new CaptureStore(path.join(folder, 'captures'), {
      maxBytes: 1000,
      keepMs: 10_000,
      now: () => 0,
      quarantine: new Quarantine(folder),
      ...options
    })
    store.restore()
    return store
  }
  const complete = {
    kind: 'heap_profile',
    target: 'shop',
    thread: 'main',
    pid: 1,
    host: null,
    node: '20.20.2',
    startedAtUnixMs: 0,
    seconds: 5,
    diagnosis: null,
    state: 'done',
    error: null,
    errorCode: null,
    finishedUnixMs: 0,
    suspects: {
      of: 'grown bytes',
      total: 1,
      sites: [
        {
          function: 'leak',
          file: 'app.js',
          line: 1,
          value: 1,
          share: 1,
          inlinedIn: null,
          via: null,
          call: null,
          instead: null,
          longestSeconds: null,
          text: 'leak app.js:1'
        }
      ]
    }
  }
  async function * bytes (count) { for (let i = 0; i < count; i += 100) yield Buffer.alloc(100, i) }
  async function put (store, id, count, requestedUnixMs = 0) {
    const part = await store.write(id, 'profile', bytes(count))
    store.keep({ ...complete, id, requestedUnixMs, parts: [{ part: 'profile', ...part }] })
  }
  const idsIn = store => store.all.map(({ id }) => id)
  const change = (capture, changes) => {
    const file = path.join(capture, 'capture.json')
    fs.writeFileSync(
      file,
      JSON.stringify({ ...JSON.parse(fs.readFileSync(file, 'utf8')), ...changes })
    )
  }
  const replace = (file, make) => {
    fs.rmSync(file)
    make(file)
  }

  it('stores captures for this user only, and finds them again', async () => {
    await put(open(), ids[0], 300)
    const again = open()
    expect([idsIn(again), again.bytes]).toEqual([[ids[0]], 300])
    const file = again.fileOf(ids[0], 'profile')
    expect([fs.statSync(file).mode & 0o777, fs.statSync(path.dirname(file)).mode & 0o777]).toEqual([
      0o600, 0o700
    ])
  })
  it('removes the oldest capture to make room', async () => {
    const store = open()
    await put(store, ids[0], 400)
    await put(store, ids[1], 400)
    await put(store, ids[2], 400)
    expect([idsIn(store), store.bytes, fs.readdirSync(path.join(folder, 'captures'))]).toEqual([
      [ids[1], ids[2]],
      800,
      [ids[1], ids[2]]
    ])
  })
  it('refuses a capture larger than its limit', async () => {
    const store = open()
    await expect(store.write(ids[0], 'snapshot', bytes(1100))).rejects.toThrow('--captures-max')
    expect([store.bytes, fs.readdirSync(path.join(folder, 'captures', ids[0]))]).toEqual([0, []])
  })
  it('removes old captures, even after a restart', async () => {
    await put(open(), ids[0], 100, 0)
    await put(open({ now: () => 5000 }), ids[1], 100, 5000)
    expect(idsIn(open({ now: () => 10_000 }))).toEqual([ids[0], ids[1]])
    expect(idsIn(open({ now: () => 10_001 }))).toEqual([ids[1]])
  })
  it('removes unfinished captures', async () => {
    await open().write(ids[0], 'profile', bytes(100))
    expect([idsIn(open()), fs.readdirSync(path.join(folder, 'captures'))]).toEqual([[], []])
  })
  it.each([
    ['null', capture => fs.writeFileSync(path.join(capture, 'capture.json'), 'null')],
    ['a list', capture => fs.writeFileSync(path.join(capture, 'capture.json'), '[]')],
    ['no JSON', capture => fs.writeFileSync(path.join(capture, 'capture.json'), '{')],
    [
      'more than a record',
      capture => fs.writeFileSync(path.join(capture, 'capture.json'), `[${'[],'.repeat(1e6)}[]]`)
    ],
    ['a record with another id', capture => change(capture, { id: ids[1] })],
    ['a record without parts', capture => change(capture, { parts: undefined })],
    [
      'a record whose part is a path',
      capture => change(capture, { parts: [{ part: '../../x', bytes: 1, sha256: '' }] })
    ],
    ['a record of an unknown kind', capture => change(capture, { kind: '__proto__' })],
    ['a record with an invalid date', capture => change(capture, { requestedUnixMs: 9e15 })],
    [
      'a record with invalid suspects',
      capture => change(capture, { suspects: { of: 'grown bytes', total: 1, sites: [null] } })
    ],
    [
      'a folder',
      capture => replace(path.join(capture, 'capture.json'), file => fs.mkdirSync(file))
    ],
    [
      'a FIFO',
      capture => replace(path.join(capture, 'capture.json'), file => execFileSync('mkfifo', [file]))
    ],
    [
      'a link',
      capture =>
        replace(path.join(capture, 'capture.json'), file => fs.symlinkSync('/dev/zero', file))
    ],
    [
      'a part that is a FIFO',
      capture => replace(path.join(capture, 'profile'), file => execFileSync('mkfifo', [file]))
    ],
    [
      'a part that is a link',
      capture =>
        replace(path.join(capture, 'profile'), file => fs.symlinkSync('/etc/hostname', file))
    ],
    ['a part that is longer', capture => fs.appendFileSync(path.join(capture, 'profile'), 'more')]
  ])(
    '%s in place of a capture is moved aside, without other captures',
    async (_, damage) => {
      await put(open(), ids[0], 100)
      await put(open(), ids[2], 100)
      damage(path.join(folder, 'captures', ids[0]))
      expect(idsIn(open())).toEqual([ids[2]])
      expect(fs.readdirSync(path.join(folder, 'captures'))).toEqual([ids[2]])
      expect(fs.readdirSync(path.join(folder, 'unreadable'))).toEqual([
        expect.stringContaining(ids[0])
      ])
      expect(idsIn(open())).toEqual([ids[2]])
    }
  )
  it.each(['FIFO', 'link', 'nothing'])(
    'a %s that replaces a part later is not read',
    async what => {
      const store = open()
      await put(store, ids[0], 100)
      replace(store.fileOf(ids[0], 'profile'), file => {
        if (what === 'FIFO') execFileSync('mkfifo', [file])
        if (what === 'link') fs.symlinkSync('/etc/hostname', file)
      })
      expect(store.read(ids[0], 'profile')).toBeUndefined()
    }
  )
  it('makes stored texts plain, and drops unknown fields', async () => {
    await put(open(), ids[0], 100)
    change(path.join(folder, 'captures', ids[0]), { target: 'a\u001b[2J\u202eb\ud800', more: true })
    const [{ target, more }] = open().all
    expect([target, more]).toEqual(['a\ufffd[2J\ufffdb\ufffd', undefined])
  })
  it('of an exporter without a data folder exists only while it has captures', async () => {
    const store = CaptureStore.of({})
    const file = store.fileOf(ids[0], 'profile')
    expect(fs.existsSync(path.dirname(path.dirname(file)))).toBe(false)
    await put(store, ids[0], 100, Date.now())
    expect(fs.existsSync(file)).toBe(true)
    store.close()
    expect(fs.existsSync(path.dirname(path.dirname(file)))).toBe(false)
  })
  it.each(['folder', 'capture'])(
    'a link in place of a %s does not redirect a removal',
    async what => {
      await open().write(ids[0], 'profile', bytes(100))
      const at =
        what === 'folder' ? path.join(folder, 'captures') : path.join(folder, 'captures', ids[0])
      fs.renameSync(at, path.join(folder, 'elsewhere'))
      fs.symlinkSync(path.join(folder, 'elsewhere'), at)
      const store = open()
      store.remove(ids[0])
      expect([idsIn(store), fs.readdirSync(path.join(folder, 'unreadable'))]).toEqual([
        [],
        [expect.stringContaining(path.basename(at))]
      ])
      expect(
        fs.existsSync(path.join(folder, 'elsewhere', what === 'folder' ? ids[0] : '', 'profile'))
      ).toBe(true)
      await put(store, ids[1], 100)
      expect(idsIn(open())).toEqual([ids[1]])
    }
  )
  it('a folder replaced by a file makes writes fail, but not removals', async () => {
    const store = open()
    fs.writeFileSync(path.join(folder, 'captures'), '')
    await expect(put(store, ids[0], 100)).rejects.toThrow(/EEXIST|ENOTDIR/)
    expect(() => store.remove(ids[0])).not.toThrow()
  })
  it('removes the files of an incomplete capture', async () => {
    const store = open()
    const broken = (async function * () { yield Buffer.alloc(100); throw new Error('hung up') })()
    await expect(store.write(ids[0], 'profile', broken)).rejects.toThrow('hung up')
    expect(store.bytes).toBe(0)
  })
  it.each([
    ['../../etc/passwd', 'profile'],
    [ids[0], '../x'],
    ['', '']
  ])('no name leads out of the folder: %s %s', (id, part) => {
    expect(() => open().fileOf(id, part)).toThrow()
  })
})

describe('automatic captures', () => {
  /**
   * @param {any} [request]
   * @param {any} [onRefused]
   */
  function make (request, onRefused) {
    const time = { now: 0 }
    const asked = []
    /** @type {number[]} */
    const seconds = []
    /** @type {(() => void)[]} */
    const finish = []
    /** @type {string[]} */
    const counted = []
    /** @type {object[]} */
    const sampled = []
    const automatic = new AutomaticCaptures(/** @type {any} */ ({
      countSlices: async target => {
        counted.push(target.name)
        if (target.name === 'old') throw new CommandError('not_supported', 'no')
      },
      sampleHeap: async (target, args) => {
        sampled.push(args)
        if (target.name === 'old') throw new CommandError('unknown_command', 'no')
      },
      request: request ?? ((target, options) => {
        asked.push([
          target.name, options.kind, options.diagnosis, ...(options.names ? [options.names] : [])
        ])
        seconds.push(options.seconds)
        return { finished: new Promise(resolve => finish.push(() => resolve({ errorCode: null }))) }
      })
    }), { now: () => time.now, onRefused })
    return {
      automatic,
      asked,
      seconds,
      counted,
      sampled,
      time,
      next: async () => {
        finish.shift()?.()
        await new Promise(resolve => setImmediate(resolve))
      }
    }
  }
  const [a, b] = ['a', 'b'].map(name => new Target({ hello: hello(), name, thread: 'main' }))
  const leak = (state, mibPerSecond = 1) => /** @type {any} */ ({
    diagnosis: 'js-heap-leak',
    state,
    evidence: [{ signal: 'liveHeapGrowthBytesPerSecond', value: mibPerSecond * MIB }]
  })

  it('run once for a suspicion, one after another, and again after an hour', async () => {
    const { automatic, asked, time, next } = make()
    for (const state of ['unknown', 'suspected', 'confirmed', 'ok', 'suspected']) {
      automatic.changed(a, leak(state))
    }
    automatic.changed(b, { diagnosis: 'event-loop-blocked', state: 'confirmed', evidence: [] })
    automatic.changed(b, { diagnosis: 'no-such-diagnosis', state: 'confirmed', evidence: [] })
    expect(asked).toEqual([['a', 'heap_profile', 'js-heap-leak']])
    await next()
    expect(asked.slice(1)).toEqual([['b', 'cpu_profile', 'event-loop-blocked']])
    await next()
    time.now = 3_599_999
    automatic.changed(a, leak('suspected'))
    expect(asked).toHaveLength(2)
    time.now = 3_600_000
    automatic.changed(a, leak('suspected'))
    expect(asked).toHaveLength(3)
  })
  it('run no heap profile while V8 collects a full heap, unless it ends soon', async () => {
    const { automatic, asked, next } = make()
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const full = /** @type {any} */ ({
      diagnosis: 'heap-limit-thrash',
      state: 'suspected',
      severity: 'warning',
      secondsLeft: null,
      evidence: []
    })
    const found = leak('suspected')
    findCase(target).verdicts = [found, full]
    automatic.changed(target, found)
    await next()
    expect(asked).toEqual([])
    findCase(target).verdicts = [found, { ...full, secondsLeft: 40 }]
    automatic.changed(target, full)
    expect(asked).toEqual([['a', 'heap_profile', 'heap-limit-thrash']])
  })
  it('run the heap profile once the heap has room again', async () => {
    const { automatic, asked, next } = make()
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const found = leak('suspected')
    findCase(target).verdicts = [found, /** @type {any} */ ({
      diagnosis: 'heap-limit-thrash', state: 'suspected', severity: 'warning', secondsLeft: null
    })]
    automatic.changed(target, found)
    await next()
    findCase(target).verdicts = [found]
    automatic.seen(target)
    expect(asked).toEqual([['a', 'heap_profile', 'js-heap-leak']])
  })
  /**
   * @param {string[]} commands that the agent accepts
   * @param {number} [bytesPerSecond] undefined: the number of GCs is unknown
   * @returns {Target} after ninety seconds
   */
  function allocating (commands, bytesPerSecond) {
    const target = new Target({ hello: hello({ commands }), name: 'a', thread: 'main' })
    for (let i = 1; i <= 90; i++) {
      target.take(frame({
        sequence: i,
        atUnixMs: 1_760_000_000_000 + 1000 * i,
        uptimeSeconds: i,
        values: {
          spaces: { new_space: [0, 2 * MIB, MIB, 2 * MIB] },
          ...(bytesPerSecond !== undefined && {
            gc: { 'minor/ordinary': gcRow(i * bytesPerSecond / MIB, i / 1000) }
          })
        }
      }), 1_760_000_000_000 + 1000 * i)
    }
    return target
  }
  it.each([
    // A service gets at most 200 samples a second, at least 4 KiB apart.
    [['capture'], 0, 4096],
    [['capture'], 16 * MIB, 83_886],
    [['capture'], 1000 * MIB, 524_288],
    // If a person waits for the profile, it takes five times as many, at shorter intervals.
    [['capture', 'force_gc'], 0, 1024],
    [['capture', 'force_gc'], 4 * MIB, 4194],
    [['capture', 'force_gc'], 1000 * MIB, 131_072],
    [['capture', 'force_gc'], undefined, 131_072]
  ])('with %j and %d allocated bytes a second, sample leaks outside the heap every %d bytes', (
    commands, bytesPerSecond, intervalBytes
  ) => {
    const asked = []
    const { automatic } = make((_target, options) => {
      asked.push(options)
      return { finished: Promise.resolve({ errorCode: null }) }
    })
    const target = allocating(commands, bytesPerSecond)
    automatic.changed(
      target,
      /** @type {any} */ ({ diagnosis: 'resource-leak', state: 'suspected', evidence: [] })
    )
    expect(asked).toEqual([expect.objectContaining({ kind: 'heap_profile', intervalBytes })])
  })
  it.each([
    ['capture', undefined, 0.1, { seconds: 30, intervalBytes: 524_288 }],
    ['capture', undefined, 1, { seconds: 16, intervalBytes: 524_288 }],
    ['capture', undefined, 10, { seconds: 9, intervalBytes: 524_288 }],
    ['capture', 40 * MIB, 1, { seconds: 9, intervalBytes: 209_715 }],
    ['capture', 80 * MIB, 1, { seconds: 13, intervalBytes: 419_430 }],
    ['capture', 0, 0.2, { seconds: 20, intervalBytes: 131_072 }],
    ['force_gc', undefined, 0.1, { seconds: 30, intervalBytes: 131_072 }],
    ['force_gc', 0, 1, { seconds: 9, intervalBytes: 131_072 }]
  ])('with %s and %d allocated bytes a second, profile a leak of %d MiB/s for %j', (
    command, bytesPerSecond, mibPerSecond, expected
  ) => {
    const asked = []
    const { automatic } = make((_target, options) => {
      asked.push(options)
      return { finished: Promise.resolve({ errorCode: null }) }
    })
    automatic.changed(allocating([command], bytesPerSecond), leak('suspected', mibPerSecond))
    expect(asked).toEqual([expect.objectContaining(expected)])
  })
  it.each([
    ['capture', 0, 0.1, 60],
    ['capture', 16 * MIB, 0.1, 120],
    ['capture', 0, 2, 48],
    ['capture', 0, 40, 15],
    ['force_gc', 0, 40, 15]
  ])('with %s and %d allocated bytes a second, profile a leak of %d handles a second for %d s', (
    command, bytesPerSecond, value, seconds
  ) => {
    const asked = []
    const { automatic } = make((_target, options) => {
      asked.push(options)
      return { finished: Promise.resolve({ errorCode: null }) }
    })
    const target = allocating([command], bytesPerSecond)
    automatic.changed(target, /** @type {any} */ ({
      diagnosis: 'resource-leak',
      state: 'suspected',
      evidence: [
        { signal: 'socketsRise', value: 300, limit: 16 },
        { signal: 'socketsPerSecond', value, limit: 0 }
      ]
    }))
    expect(asked).toEqual([expect.objectContaining({ kind: 'heap_profile', seconds })])
  })
  it.each([
    ['no GC ran that could free it', 0, [], [['a', 'cpu_profile', 'native-memory-leak']]],
    ['heaps of other threads hold it', 1, ['silentWorkerHeapGrowthBytesPerSecond'], []]
  ])('do not profile the heap for memory outside it if %s', async (_, majors, more, expected) => {
    const { automatic, asked, next } = make()
    const grows = (value, signals = []) => /** @type {any} */ ({
      diagnosis: 'native-memory-leak',
      state: 'suspected',
      evidence: [
        { signal: 'majorsSeen', value, limit: 1 },
        ...signals.map(signal => ({ signal, value: 1, limit: 1 }))
      ]
    })
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    automatic.changed(target, grows(majors, more))
    expect(asked).toEqual(expected)
    await next()
    automatic.changed(target, grows(1))
    await next()
    // The shorter CPU profile has its turn first, at the latest now. A longer one may follow.
    expect(asked.map(([, kind]) => kind).slice(0, 2)).toEqual(['cpu_profile', 'heap_profile'])
  })
  it('profile the worker whose Buffers grow fastest, for a verdict of its main thread', async () => {
    const threads = [['main', 0, 50], ['worker-1', 1, 1], ['worker-2', 2, 2], ['other', 1, 9]]
      .map(([thread, threadId, perFrame]) => {
        const pid = thread === 'other' ? 9 : 1
        const target = new Target({
          hello: hello({ pid, threadId, commands: ['capture', 'force_gc'] }),
          name: 'a',
          thread: String(thread)
        })
        for (let t = 1; t <= 40; t++) {
          const values = { externalBytes: Number(perFrame) * t * MIB, liveHeapMajors: t }
          const at = { sequence: t, atUnixMs: 1000 * t, uptimeSeconds: t }
          target.take(frame({ ...at, values }), 1000 * t)
        }
        return target
      })
    const captured = []
    const automatic = new AutomaticCaptures(/** @type {any} */ ({
      request: target => {
        captured.push(target.thread)
        return { finished: new Promise(() => {}) }
      }
    }), { targets: () => threads })
    const ofBuffers = signals => /** @type {any} */ ({
      diagnosis: 'native-memory-leak',
      state: 'suspected',
      evidence: [
        ...signals.map(signal => ({ signal, value: 40, limit: 1 })),
        { signal: 'outsideHeapRiseBytes', value: 60, limit: 1 }
      ]
    })
    automatic.changed(threads[0], ofBuffers(['workersExternalGrowthBytesPerSecond']))
    expect(captured).toEqual(['worker-2'])
    const suspects = { of: 'grown bytes', total: 1, sites: [{ file: 'app.js', share: 1 }] }
    const captures = Object.assign(new EventEmitter(), { restore () {}, all: [] })
    const exporter = Object.assign(new EventEmitter(), { captures, targets: threads })
    new CapturesPart().start(/** @type {any} */ (exporter))
    captures.emit('done', {
      id: '1', kind: 'heap_profile', diagnosis: 'native-memory-leak', error: null, parts: [],
      suspects
    }, threads[2])
    captures.emit('done', {
      id: '2', kind: 'heap_profile', diagnosis: 'js-heap-leak', error: null, parts: [],
      suspects
    }, threads[2])
    const shownBy = target => [...findCase(target).suspects.keys()]
    expect(threads.map(shownBy)).toEqual([
      ['native-memory-leak'], [], ['native-memory-leak', 'js-heap-leak'], []
    ])
    // The captures that an exporter finds after its restart.
    const { pid, startedAtUnixMs } = threads[2].hello
    const ofWorker = { kind: 'heap_profile', thread: 'worker-2', pid, startedAtUnixMs, host: null }
    captures.all = /** @type {any} */ (['native-memory-leak', 'js-heap-leak'].map(diagnosis =>
      ({ ...ofWorker, id: diagnosis, diagnosis, error: null, parts: [], suspects })))
    const again = [threads[0], threads[1]]
      .map(({ hello, name, thread }) => new Target({ hello, name, thread }))
    for (const target of again) exporter.emit('open', target)
    expect(again.map(shownBy)).toEqual([['native-memory-leak'], []])
  })
  it('profile memory outside the heap at once if full GCs are allowed', () => {
    const { automatic, asked } = make()
    const commands = ['capture', 'force_gc']
    automatic.changed(
      new Target({ hello: hello({ commands }), name: 'a', thread: 'main' }),
      /** @type {any} */ ({ diagnosis: 'native-memory-leak', state: 'suspected', evidence: [] })
    )
    expect(asked).toEqual([['a', 'heap_profile', 'native-memory-leak']])
  })
  it.each([
    ['once', {}, ['a']],
    ['once, even if it fails', { name: 'old' }, ['old']],
    ['not by an older agent', { commands: ['capture'] }, []],
    ['not if they were counted', { values: { bufferSlabsCountedBytes: 9 } }, []],
    ['not without a suspicion', { state: 'ok' }, []],
    ['not once confirmed', { state: 'confirmed' }, []]
  ])('count the slices of slabs that stay alive: %s', (_, changes, expected) => {
    const { automatic, counted } = make()
    const { name, commands, values, state } = {
      name: 'a', commands: ['count_slices'], values: {}, state: 'suspected', ...changes
    }
    const target = new Target({ hello: hello({ commands }), name, thread: 'main' })
    findCase(target).verdicts = /** @type {any} */ ([{ diagnosis: 'buffer-pool-pinning', state }])
    for (let i = 1; i <= 9; i++) {
      target.take(frame({ sequence: i, uptimeSeconds: i, values }), 1_760_000_000_000 + 1000 * i)
      automatic.seen(target)
    }
    expect(counted).toEqual(expected)
  })
  it.each([
    ['frequent', [], undefined],
    ['12 s apart', [3, 24], 18],
    ['close together', [7, 6], 5],
    ['a minute apart', [3, 120], 30],
    ['seen once', [1, 0], undefined]
  ])('last until the next block of the event loop: %s', (_, [count, spanSeconds], expected) => {
    const { automatic, seconds } = make()
    const evidence = count === undefined
      ? []
      : [
          { signal: 'longBlocksSeen', value: count },
          { signal: 'longBlocksSpanSeconds', value: spanSeconds }
        ]
    automatic.changed(a, /** @type {any} */ ({
      diagnosis: 'event-loop-blocked', state: 'suspected', evidence
    }))
    expect(seconds).toEqual([expected])
  })
  it.each([
    ['pile up', {}, ['a']],
    ['are a confirmed leak', { state: 'confirmed' }, ['a']],
    ['hardly matter', { mib: 40 }, []],
    ['are constant', { state: 'ok' }, []],
    ['are constant, if the app may pause', { state: 'ok', pauses: true }, ['a']],
    ['are constant in a young app', { state: 'ok', pauses: true, seconds: 29 }, []],
    ['are constant and were counted', { state: 'ok', pauses: true, countedMib: 9 }, []],
    ['pile up and were counted', { countedMib: 31 }, []],
    ['piled up since the last count', { countedMib: 29 }, ['a']]
  ])('count the slices of Buffers that %s', (_, changes, expected) => {
    const { state, mib, seconds, pauses, countedMib } =
      { state: 'suspected', mib: 60, seconds: 30, pauses: false, countedMib: undefined, ...changes }
    const { automatic, counted } = make()
    const commands = ['count_slices', ...(pauses ? ['force_gc'] : [])]
    const target = new Target({ hello: hello({ commands }), name: 'a', thread: 'main' })
    findCase(target).verdicts = /** @type {any} */ ([
      { diagnosis: 'buffer-pool-pinning', state: 'ok' }, { diagnosis: 'native-memory-leak', state }
    ])
    const values = {
      arrayBuffersBytes: mib * MIB,
      rssBytes: 200 * MIB,
      ...(countedMib && { bufferSlabsCountedBytes: countedMib * MIB })
    }
    target.take(frame({ sequence: 1, uptimeSeconds: seconds, values }), 1_760_000_000_000)
    automatic.seen(target)
    expect(counted).toEqual(expected)
  })
  describe('begin a heap profile before the suspicion', () => {
    /**
     * @param {object} changes
     * @param {number} [changes.mibPerSecond] growth of RSS
     * @param {string} [changes.state] of js-heap-leak
     * @param {string[]} [changes.commands] that the agent accepts
     * @param {string} [changes.name]
     * @returns {object[]} arguments of the profiles that begin within two minutes
     */
    function profilesOf ({
      mibPerSecond = 1, state = 'unknown', commands = ['capture', 'sample_heap'], name = 'a'
    }) {
      const { automatic, asked, sampled } = make()
      const target = new Target({ hello: hello({ commands }), name, thread: 'main' })
      findCase(target).verdicts = /** @type {any} */ ([{ diagnosis: 'js-heap-leak', state }])
      for (let i = 1; i <= 120; i++) {
        target.take(frame({
          sequence: i,
          atUnixMs: 1_760_000_000_000 + 1000 * i,
          uptimeSeconds: i,
          values: {
            rssBytes: (60 + i * mibPerSecond) * MIB,
            spaces: { new_space: [0, 2 * MIB, MIB, 2 * MIB] },
            gc: { 'minor/ordinary': gcRow(2 * i, i / 1000) }
          }
        }), 1_760_000_000_000 + 1000 * i)
        automatic.seen(target)
      }
      expect(asked).toEqual([])
      return sampled
    }
    it.each([
      // 2 MiB/s: a sample each 20 KiB is a hundred a second.
      ['of a service', {}, [{ seconds: 60, intervalBytes: 20_972 }]],
      ['that a person watches', { commands: ['sample_heap', 'force_gc'] },
        [{ seconds: 60, intervalBytes: 6991 }]],
      ['whose agent fails', { name: 'old' }, [{ seconds: 60, intervalBytes: 20_972 }]],
      ['of an older agent', { commands: ['capture'] }, []],
      ['without growth', { mibPerSecond: 0.1 }, []],
      ['that is judged already', { state: 'ok' }, []],
      ['that has its own profile', { state: 'suspected' }, []]
    ])('once, if RSS grows: %s', (_, changes, expected) => {
      expect(profilesOf(changes)).toEqual(expected)
    })
  })
  it.each([
    ['not_enabled', [['a', 'no', 'js-heap-leak'], ['b', 'no', 'js-heap-leak']]],
    // The process has ended, so nothing can be changed.
    ['not_connected', []]
  ])('continue with the next target after the refusal %s', async (code, told) => {
    const asked = []
    const refused = []
    const { automatic } = make(target => {
      asked.push(target.name)
      throw new CommandError(/** @type {any} */ (code), 'no')
    }, (target, { message }, diagnosis) => refused.push([target.name, message, diagnosis]))
    automatic.changed(a, leak('suspected'))
    automatic.changed(b, leak('suspected'))
    await new Promise(resolve => setImmediate(resolve))
    await new Promise(resolve => setImmediate(resolve))
    expect(asked).toEqual(['a', 'b'])
    expect(refused).toEqual(told)
  })
  it.each([
    // In a service the heap profile of native memory takes two minutes.
    [['capture'], 0, ['cpu_profile', 'heap_profile', 'heap_profile'], 3],
    [['capture', 'force_gc'], 0, ['heap_profile', 'cpu_profile', 'heap_profile'], 3],
    // JavaScript objects own Buffers.
    [['capture'], 9, ['heap_profile', 'heap_profile'], 3],
    // V8 runs major GCs because of Buffers: a profile need not wait for one.
    [['capture'], 9, ['heap_profile', 'heap_profile'], 0],
    // V8 also counts WebAssembly memory, which grows by calls.
    [['capture', 'force_gc'], 9, ['cpu_profile', 'heap_profile', 'heap_profile'], 3, true]
  ])('with %j of a native leak, %d of 10 MiB external: %j', async (
    commands, external, kinds, majors, isWebAssembly = false
  ) => {
    const { automatic, asked, next } = make()
    const target = new Target({ hello: hello({ commands }), name: 'a', thread: 'main' })
    automatic.changed(target, {
      diagnosis: 'native-memory-leak',
      state: 'suspected',
      evidence: /** @type {any} */ ([
        { signal: 'majorsSeen', value: majors, limit: 3 },
        { signal: 'outsideHeapRiseBytes', value: 10 * MIB, limit: 1 },
        { signal: 'externalRiseBytes', value: external * MIB, limit: 1 },
        ...isWebAssembly ? [{ signal: 'webassemblyGrowthBytesPerSecond', value: MIB }] : []
      ])
    })
    await next()
    await next()
    expect(asked.map(([, kind]) => kind)).toEqual(kinds)
  })
  it.each([
    [[], true, ['heap_profile', 'heap_profile', 'handlers']],
    [[], false, ['heap_profile', 'heap_profile']],
    [[{ file: 'node:internal/buffer', share: 0.9 }], true, ['heap_profile', 'handlers']],
    [[{ file: 'app.js', share: 0.2 }], true, ['heap_profile', 'handlers']],
    [[{ file: 'app.js', share: 0.4 }], true, ['heap_profile']],
    [
      [
        { file: 'app.js', share: 0.12, through: ['node:buffer'] },
        { file: 'app.js', share: 0.1, through: ['set', 'Uint8Array'] }
      ],
      true,
      ['heap_profile']
    ],
    [
      [
        { file: 'app.js', share: 0.19, through: ['node:internal/buffer'] },
        { file: 'app.js', share: 0.2, through: ['set'] }
      ],
      true,
      ['heap_profile', 'handlers']
    ]
  ])('of Buffers whose heap profile names %j, ended: %s', async (sites, hasEnded, expected) => {
    const { automatic, asked, next } = make()
    const target = new Target({
      hello: hello({ commands: ['capture', 'force_gc'] }), name: 'a', thread: 'main'
    })
    const found = /** @type {any} */ ({
      diagnosis: 'native-memory-leak',
      state: 'suspected',
      evidence: [
        { signal: 'outsideHeapRiseBytes', value: 10 * MIB, limit: 1 },
        { signal: 'externalRiseBytes', value: 9 * MIB, limit: 1 }
      ]
    })
    automatic.changed(target, found)
    findCase(target).suspects.set(
      'native-memory-leak', /** @type {any} */ ({ kind: 'heap_profile', suspects: { sites } })
    )
    if (hasEnded) findCase(target).captured.set('heap_profile', 40)
    automatic.changed(target, found)
    await next()
    await next()
    expect(asked.map(([, kind, , names = kind]) => names)).toEqual(expected)
  })
  const DECODER = 'node:string_decoder'
  it.each([
    ['native-memory-leak', 'Node.js itself', ['node:zlib'], true],
    ['native-memory-leak', 'the app', ['app.js'], false],
    ['native-memory-leak', 'a timer of the app', ['app.js'], true, 0.3],
    ['js-heap-leak', 'nothing', [], false],
    ['js-heap-leak', 'data of Node.js', [DECODER, 'node:internal/streams/readable'], true],
    ['js-heap-leak', 'Node.js itself', ['node:internal/timers'], false],
    ['js-heap-leak', 'the app', ['app.js', DECODER], false],
    ['js-heap-leak', 'a package', ['/srv/node_modules/fastify/lib/handle.js', 'app.js'], true],
    ['native-memory-leak', 'a package', ['/srv/node_modules/fastify/lib/handle.js'], true],
    ['js-heap-leak', 'a package, and much else', ['/srv/node_modules/a/b.js'], false, 0.3]
  ])('of a %s whose heap profile names %s', async (diagnosis, _, files, isNeeded, share = 0.5) => {
    const { automatic, asked, next } = make()
    const commands = ['capture', 'force_gc']
    const target = new Target({ hello: hello({ commands }), name: 'a', thread: 'main' })
    const found = /** @type {any} */ ({
      diagnosis,
      state: 'suspected',
      evidence: [{ signal: 'majorsSeen', value: 3, limit: 3 }]
    })
    automatic.changed(target, found)
    const sites = files.map(file => ({ file, share: Number(share) }))
    findCase(target).suspects
      .set(diagnosis, /** @type {any} */ ({ kind: 'heap_profile', suspects: { sites } }))
    automatic.changed(target, found)
    await next()
    await next()
    expect(asked.map(([, kind]) => kind))
      .toEqual(isNeeded ? ['heap_profile', 'cpu_profile'] : ['heap_profile'])
  })
  it.each([
    ['nothing', [], ['heap_profile 15', 'cpu_profile 5', 'heap_profile 30']],
    ['a line', [{ file: 'app.js', share: 0.2 }], ['heap_profile 15', 'cpu_profile 5']]
  ])('of native memory takes twice as long again if %s is known', async (_, sites, expected) => {
    const { automatic, asked, seconds, next } = make()
    const commands = ['capture', 'force_gc']
    const target = new Target({ hello: hello({ commands }), name: 'a', thread: 'main' })
    const found = /** @type {any} */ ({
      diagnosis: 'native-memory-leak', state: 'suspected', evidence: []
    })
    automatic.changed(target, found)
    await next()
    // The CPU profile has run, and its result is attached.
    findCase(target).suspects
      .set('native-memory-leak', /** @type {any} */ ({ kind: 'cpu_profile', suspects: { sites } }))
    await next()
    expect(asked.map(([, kind], i) => `${kind} ${seconds[i]}`)).toEqual(expected)
  })
  it.each([
    ['cpu_profile', 2 ** 22, true],
    ['cpu_profile', 2 ** 20, false],
    ['report', 2 ** 22, false]
  ])('a %s of %d bytes is a large profile: %p', (kind, bytes, isLarge) => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    attach(target, /** @type {any} */ ({
      id: '1',
      kind,
      requestedUnixMs: target.hello.startedAtUnixMs + 40_000,
      parts: [{ part: 'profile', bytes, sha256: '' }]
    }))
    expect(findCase(target).captured.get('large_profile')).toBe(isLarge ? 40 : undefined)
  })
  it.each([
    [0.4, 'app.js', 'heap', 'heap'],
    [0.6, 'app.js', 'cpu', 'heap'],
    // A heap profile that names only Node.js itself is the weaker evidence.
    [0.4, 'node:internal/timers', 'cpu', 'cpu']
  ])(
    'of native calls with %d of the time, and of objects by %s: by the %s profile, or by the %s ' +
      'profile in the other order', (share, file, first, second) => {
      const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
      const captured = (id, of, site) => attach(target, /** @type {any} */ ({
        id,
        parts: [],
        kind: `${id}_profile`,
        diagnosis: 'native-memory-leak',
        suspects: { of, total: 1, sites: [site] }
      }))
      const heap = () => captured('heap', 'grown bytes', { file, share: 0.3 })
      const cpu = () => captured('cpu', 'native seconds', { file: 'app.js', share })
      const { suspects } = findCase(target)
      heap()
      cpu()
      expect(suspects.get('native-memory-leak')?.captureId).toBe(first)
      suspects.clear()
      cpu()
      heap()
      expect(suspects.get('native-memory-leak')?.captureId).toBe(second)
    })
  it.each([
    ['suspected', true, ['early', 'heap']], ['ok', true, [undefined, undefined]],
    ['confirmed', false, ['own', 'own']]
  ])('of handles are those of objects that pile up: %s, shared %p', (state, isShared, ids) => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const known = findCase(target)
    known.verdicts = /** @type {any} */ ([{ diagnosis: 'js-heap-leak', state, evidence: [] }])
    const suspects = { of: 'grown bytes', total: 1, sites: [{ file: 'app.js', share: 1 }] }
    const done = /** @type {any} */ ({
      kind: 'heap_profile', requestedUnixMs: 0, parts: [], suspects
    })
    if (!isShared) attach(target, { ...done, id: 'own', diagnosis: 'js-heap-leak' })
    const ofHandles = { ...done, diagnosis: 'resource-leak' }
    const shown = () => attachedVerdicts(target)[0].suspects?.captureId
    attach(target, { ...ofHandles, id: 'early', state: 'running' })
    const early = shown()
    attach(target, { ...ofHandles, id: 'early', state: 'running', suspects: null, error: 'gone' })
    attach(target, { ...ofHandles, id: 'heap' })
    expect([early, shown()]).toEqual(ids)
    attach(target, { ...ofHandles, id: 'second' })
    expect(shown()).toBe(ids[1] === 'heap' ? 'second' : ids[1])
  })
  it.each([
    ['half of the growth', {}, 0.5, 'heap'],
    ['less of it', {}, 0.4, undefined],
    ['a worker', { thread: 'worker-1' }, 1, undefined]
  ])('of native memory are those of objects that pile up, if they have %s: %j', (
    _, of, share, shown
  ) => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    findCase(target).verdicts = /** @type {any} */ ([
      { diagnosis: 'js-heap-leak', state: 'suspected', evidence: [] }
    ])
    attach(target, /** @type {any} */ ({
      id: 'heap',
      kind: 'heap_profile',
      thread: 'main',
      ...of,
      requestedUnixMs: 0,
      parts: [],
      diagnosis: 'native-memory-leak',
      suspects: { of: 'grown bytes', total: 1, sites: [{ file: 'app.js', share }] }
    }))
    expect(attachedVerdicts(target)[0].suspects?.captureId).toBe(shown)
  })
  it.each([['resource-leak', undefined], ['native-memory-leak', 'heap']])(
    'that name only Node.js itself, of %s: %s', (diagnosis, shown) => {
      const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
      const sites = [{ file: 'node:_http_common', share: 0.67 }]
      attach(target, /** @type {any} */ ({
        id: 'heap',
        parts: [],
        kind: 'heap_profile',
        diagnosis,
        suspects: { of: 'grown bytes', total: 1, sites }
      }))
      expect(findCase(target).suspects.get(diagnosis)?.captureId).toBe(shown)
    }
  )
  it.each([
    ['fileDescriptorsOfFiles', 0.4, 'opens'], ['fileDescriptorsOfFiles', 0.6, 'heap'],
    ['socketDescriptorsOpen', 0.4, 'heap']
  ])('of calls that open files, after a heap profile, with %s and %d of the growth: %s', (
    signal, share, shown
  ) => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const verdict = { diagnosis: 'resource-leak', state: 'suspected', evidence: [{ signal }] }
    findCase(target).verdicts = /** @type {any} */ ([verdict])
    for (const [id, of] of [['opens', 'opening seconds'], ['heap', 'grown bytes']]) {
      attach(target, /** @type {any} */ ({
        id,
        parts: [],
        kind: 'cpu_profile',
        diagnosis: 'resource-leak',
        suspects: { of, total: 1, sites: [{ file: 'app.js', share }] }
      }))
    }
    expect(findCase(target).suspects.get('resource-leak')?.captureId).toBe(shown)
  })
  it.each([
    ['webassemblyGrowthBytesPerSecond', 0.9, 0.4, 'calls'],
    ['webassemblyGrowthBytesPerSecond', 0.9, 0.6, 'heap'],
    ['webassemblyGrowthBytesPerSecond', 0.9, 0.6, 'calls', null],
    ['webassemblyGrowthBytesPerSecond', 0.4, 0.4, 'heap', null],
    ['outsideHeapGrowthBytesPerSecond', 0.9, 0.4, 'heap', null]
  ])('of native calls, after a heap profile, with %s, %d of the time and %d of the growth: %s', (
    signal, ofTime, ofGrowth, shown, /** @type {unknown} */ via = 'wasm-package'
  ) => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const diagnosis = 'native-memory-leak'
    const verdict = { diagnosis, state: 'suspected', evidence: [{ signal }] }
    findCase(target).verdicts = /** @type {any} */ ([verdict])
    for (const [id, of, share] of /** @type {const} */ ([
      ['calls', 'native seconds', ofTime], ['heap', 'grown bytes', ofGrowth]
    ])) {
      attach(target, /** @type {any} */ ({
        id,
        parts: [],
        kind: 'cpu_profile',
        diagnosis,
        suspects: { of, total: 1, sites: [{ file: 'app.js', share, via }] }
      }))
    }
    expect(findCase(target).suspects.get(diagnosis)?.captureId).toBe(shown)
  })
  it('that failed are named with the finding that caused them', () => {
    const captures = Object.assign(new EventEmitter(), { restore () {}, all: [] })
    const exporter = Object.assign(new EventEmitter(), { captures })
    new CapturesPart().start(/** @type {any} */ (exporter))
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    captures.emit('done', { diagnosis: 'event-loop-blocked', error: 'not JSON' }, target)
    expect(findCase(target).captureErrors.get('event-loop-blocked')).toBe('not JSON')
  })
  it('that were not possible are named with the finding, until one names lines', () => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    const known = findCase(target)
    const verdict = /** @type {any} */ ({ diagnosis: 'js-heap-leak', state: 'suspected' })
    known.verdicts = [verdict]
    const errorOf = () => attachedVerdicts(target)[0].captureError
    expect(errorOf()).toBeNull()
    attachError(target, 'js-heap-leak', 'the agent allows no capture')
    expect(errorOf()).toBe('the agent allows no capture')
    const capture = /** @type {any} */ ({
      id: '1', kind: 'heap_profile', diagnosis: 'js-heap-leak', requestedUnixMs: 0, parts: []
    })
    attach(target, { ...capture, error: 'too large', suspects: null, retainers: null })
    expect(errorOf()).toBe('too large')
    const suspects = { sites: [{ file: 'app.js' }] }
    attach(target, { ...capture, error: null, suspects, retainers: null })
    expect(errorOf()).toBeNull()
  })
})

describe('suspects of a first reading', () => {
  const make = diagnosis => {
    const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
    target.take(frame({ values: { liveHeapBytes: 100 * MIB } }), 0)
    const known = findCase(target)
    known.verdicts = /** @type {any} */ ([{ diagnosis, state: 'suspected' }])
    /** @param {object} changes */
    const capture = changes => attach(target, /** @type {any} */ ({
      id: 'new', kind: 'heap_profile', diagnosis, requestedUnixMs: 0, parts: [], state: 'running',
      ...changes
    }))
    const found = (total, file) => ({ of: 'grown bytes', total, sites: [{ file, share: 1 }] })
    const shown = () => attachedVerdicts(target)[0].suspects?.suspects.sites[0].file
    return { capture, found, shown }
  }
  it('hide earlier ones while the profile runs, and end with its failure', () => {
    const { capture, found, shown } = make('js-heap-leak')
    capture({ id: 'old', state: 'done', suspects: found(9 * MIB, 'old.js') })
    capture({ suspects: found(9 * MIB, 'first.js') })
    expect(shown()).toBe('first.js')
    capture({ state: 'failed', error: 'the process ended' })
    expect(shown()).toBe('old.js')
  })
  it('are not shown while they name Node.js itself', () => {
    const { capture, found, shown } = make('native-memory-leak')
    capture({ suspects: found(9 * MIB, 'node:internal/timers') })
    expect(shown()).toBeUndefined()
    const mixed = found(9 * MIB, 'node:internal/timers')
    mixed.sites.push({ file: 'app.js', share: 0.4 })
    capture({ suspects: mixed })
    expect(shown()).toBe('node:internal/timers')
    capture({ state: 'done', suspects: found(9 * MIB, 'node:internal/timers') })
    expect(shown()).toBe('node:internal/timers')
  })
  it('of a full heap count only if the heap grew by a twentieth', () => {
    const { capture, found, shown } = make('heap-limit-thrash')
    capture({ suspects: found(4.9 * MIB, 'noise.js') })
    expect(shown()).toBeUndefined()
    capture({ suspects: found(5.1 * MIB, 'grows.js') })
    expect(shown()).toBe('grows.js')
  })
})

it('the store has the defaults of the command line', () => {
  expect([
    options.capturesMax.read(options.capturesMax.default),
    options.capturesKeep.read(options.capturesKeep.default)
  ]).toEqual([DEFAULT_MAX_BYTES, DEFAULT_KEEP_SECONDS])
})

it('the memory for a snapshot is predicted from the sizes of the heap spaces', () => {
  expect(
    predictedBytes([
      { space_name: 'old_space', space_used_size: 10 * MIB },
      { space_name: 'large_object_space', space_used_size: 100 * MIB }
    ])
  ).toBe(520 * MIB)
})
