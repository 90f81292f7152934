'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { createHash } = require('node:crypto')
const { execFileSync } = require('node:child_process')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { readConfig } = require('../../exporter/config')
const { DataFolder } = require('../../exporter/data-folder/data-folder')
const { startExporter, eventually } = require('../support/exporter')
const {
  NODES,
  environment,
  spawnBounded,
  spawnWatched,
  versionOf
} = require('../support/agent-collector')
const { memwatch } = require('../support/memwatch')
const { MIB } = require('../support/frames')
const { itInGroup } = require('../support/memory-groups')

const AGENT = require.resolve('memwatch/agent')

/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
/** @type {ReturnType<typeof spawnWatched>[]} */
let apps = []
/** Folders of the apps' sources. @type {string[]} */
let folders = []
afterEach(async () => {
  for (const { child, ended } of apps) {
    child.kill('SIGKILL')
    await ended
  }
  for (const folder of folders) fs.rmSync(folder, { recursive: true })
  apps = []
  folders = []
  await exporter.stop()
})

const json = async (at, options) => (await fetch(`${exporter.url}/api/v1/${at}`, options)).json()
/**
 * Starts an app with a source file, in which memwatch can search for inlined functions.
 * @param {string} name
 * @param {string} code
 * @param {{ node?: string, flags?: string[], env?: NodeJS.ProcessEnv }} [options]
 */
async function watched (name, code, { node = NODES[0], flags = [], env = {} } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-app-'))
  folders.push(folder)
  fs.writeFileSync(path.join(folder, 'package.json'), '{}')
  fs.writeFileSync(path.join(folder, 'app.js'), code)
  const app = spawnWatched({
    node,
    args: [...flags, path.join(folder, 'app.js')],
    socket: exporter.socket.path,
    env: { MEMWATCH_NAME: name, MEMWATCH_INTERVAL_SECONDS: '0.2', ...env },
    timeoutMs: 110_000
  })
  apps.push(app)
  await eventually(
    () => json('targets'),
    targets => targets.some(target => target.target === name && target.thread === 'main')
  )
  return app
}
/** @returns {Promise<any>} the finished capture, or the refusal */
async function captured (target, query) {
  const asked = await json(`targets/${target}/captures?${new URLSearchParams(query)}`, {
    method: 'POST'
  })
  return asked.code
    ? asked
    : eventually(
      () => json(`captures/${asked.id}`),
      ({ state }) => state !== 'running',
      // Snapshots are analysed at a low priority, beside everything else on a busy machine.
      120_000
    )
}
/** Downloads the file of a capture. @returns {Promise<Buffer>} */
const partOf = async ({ id }, part, query = '') =>
  Buffer.from(
    await (await fetch(`${exporter.url}/api/v1/captures/${id}/${part}${query}`)).arrayBuffer()
  )

/**
 * Code with two functions: one retains the given number of rows at each call, the other retains
 * none.
 * @param {number | string} rows their number, or an expression for it
 */
const leaking = rows => `
  const kept = []
  function leak () { for (let i = 0; i < ${rows}; i++) kept.push({ i, text: 'row ' + i, more: [i, i, i] }) }
  function garbage () { const rows = []; for (let i = 0; i < 4000; i++) rows.push({ i }); return rows.length }
  setInterval(() => { leak(); garbage() }, 5)
`
const LEAK = leaking(400)
/**
 * The first suspect that is not a caller into which V8 may have inlined it.
 * @param {any} suspects
 */
const culpritOf = ({ sites: [first, second] }) =>
  second?.inlinedIn === `${first.function} ${first.file}:${first.line}` ? second : first

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  beforeEach(async () => { exporter = await startExporter({ autoCaptures: false }) })
  const major = Number(versionOf(node).split('.')[0])

  it('a heap profile has two readings, and names the function that retains', async () => {
    await watched('shop', LEAK, { node })
    const capture = await captured('shop', { kind: 'heap_profile', seconds: 4 })
    expect(capture).toMatchObject({ state: 'done', error: null, suspects: { of: 'grown bytes' } })
    expect(capture.parts.map(({ part }) => part)).toEqual(['before', 'profile'])
    expect(culpritOf(capture.suspects)).toMatchObject({ function: 'leak', file: 'app.js', line: 3 })
    expect(culpritOf(capture.suspects).share).toBeGreaterThan(0.5)
    for (const { part, bytes, sha256 } of capture.parts) {
      const found = await partOf(capture, part)
      expect([found.length, createHash('sha256').update(found).digest('hex')]).toEqual([
        bytes,
        sha256
      ])
      expect(JSON.parse(found.toString()).head.children.length).toBeGreaterThan(0)
    }
  }, 60_000)

  it('a CPU profile names the blocking call', async () => {
    await watched(
      'shop',
      "function derive () { require('crypto').pbkdf2Sync('a', 'b', 200_000, 64, 'sha512') }; " +
        'setInterval(derive, 300)',
      { node }
    )
    const capture = await captured('shop', { kind: 'cpu_profile', seconds: 2 })
    expect(capture.suspects.sites[0]).toMatchObject({
      function: 'derive',
      call: 'pbkdf2Sync',
      instead: 'crypto.pbkdf2'
    })
    expect(capture.suspects.sites[0].longestSeconds).toBeGreaterThan(0.02)
  }, 60_000)

  it('a CPU profile of an idle app names no function of the agent', async () => {
    const work = 'for (const end = performance.now() + 150; performance.now() < end;);'
    await watched('shop', `function work () { ${work} }; setInterval(work, 1000)`, {
      node, env: { MEMWATCH_INTERVAL_SECONDS: '0.1' }
    })
    const { suspects } = await captured('shop', { kind: 'cpu_profile', seconds: 3 })
    expect(suspects.sites[0]).toMatchObject({ function: 'work', file: 'app.js', call: null })
    expect(suspects.sites.filter(({ file }) => file.startsWith('memwatch/'))).toEqual([])
  }, 60_000)

  it('all other captures arrive complete, from the main thread and from a worker', async () => {
    // The app retains little, as V8 needs a second of snapshot for every few megabytes of heap.
    const code = 'if (require(\'worker_threads\').isMainThread) new ' +
      `(require('worker_threads').Worker)(__filename); ${leaking(4)}`
    await watched('shop', code, { node, env: { MEMWATCH_ALLOW_SNAPSHOT: '1' } })
    await eventually(() => json('targets'), targets => targets.length === 2, 20_000)
    for (const thread of ['main', 'worker-1']) {
      const trace = await captured('shop', { kind: 'gc_trace', seconds: 1, thread })
      expect(JSON.parse(String(await partOf(trace, 'trace'))).statistics.length).toBeGreaterThan(0)
      const report = await captured('shop', { kind: 'report', thread })
      const { header, environmentVariables } = JSON.parse(String(await partOf(report, 'report')))
      expect([header.nodejsVersion, environmentVariables]).toEqual([
        `v${versionOf(node)}`,
        undefined
      ])
      const snapshot = await captured('shop', { kind: 'heap_snapshot', thread })
      expect(snapshot.error).toBe(null)
      expect(
        JSON.parse(String(await partOf(snapshot, 'snapshot'))).snapshot.node_count
      ).toBeGreaterThan(1000)
      const allocated = await captured('shop', { kind: 'allocation_profile', seconds: 1, thread })
      if (major === 18) expect(allocated.errorCode).toBe('not_supported')
      else expect(allocated.suspects.sites.map(site => site.function)).toContain('garbage')
    }
  }, 180_000)

  it('an app can end during a profile', async () => {
    const { ended } = await watched('shop', "setTimeout(() => console.log('done'), 2000)", { node })
    const asked = await json('targets/shop/captures?kind=cpu_profile&seconds=30', {
      method: 'POST'
    })
    expect(asked.state).toBe('running')
    expect(await ended).toMatchObject({ code: 0, stdout: 'done\n', stderr: '' })
    expect(
      await eventually(
        () => json(`captures/${asked.id}`),
        ({ state }) => state !== 'running'
      )
    ).toMatchObject({ state: 'failed', errorCode: 'no_answer' })
  }, 60_000)

  it('a profile stops when the exporter disappears, and another one can start', async () => {
    await watched('shop', LEAK, { node })
    await json('targets/shop/captures?kind=heap_profile&seconds=2', { method: 'POST' })
    const { socket } = exporter
    await exporter.stop()
    fs.mkdirSync(path.dirname(socket.path), { mode: 0o700 })
    exporter = await startExporter({ autoCaptures: false, socket })
    await eventually(() => json('targets'), targets => targets.length === 1, 30_000)
    // V8 has one sampling heap profiler, so the second profile proves that the first one stopped.
    const again = () => captured('shop', { kind: 'heap_profile', seconds: 1 })
    const { suspects } = await eventually(again, ({ state }) => state === 'done', 30_000)
    expect(culpritOf(suspects)).toMatchObject({ function: 'leak' })
    // The agent's allocations to read and send the profile are not suspects.
    expect(
      suspects.sites.map(({ file }) => file).filter(file => file.startsWith('memwatch/'))
    ).toEqual([])
  }, 90_000)
})

it('an app that ran out of memory leaves its suspects', async () => {
  exporter = await startExporter({ autoCaptures: false })
  const { child, ended } = await watched(
    'shop',
    `let rate = 100; process.on('SIGUSR2', () => { rate = 1500 })\n${leaking('rate')}`,
    { flags: ['--max-old-space-size=60'] }
  )
  expect(await captured('shop', { kind: 'heap_profile', seconds: 1 })).toMatchObject({
    state: 'done'
  })
  child.kill('SIGUSR2') // On this signal the app begins to use all available memory.
  await ended
  const [death] = await eventually(() => json('deaths'), deaths => deaths.length > 0)
  expect(death).toMatchObject({
    reason: 'heap_oom',
    suspects: expect.stringContaining('leak app.js:4')
  })
  const { stdout } = await memwatch(['last-death', 'shop', '--url', exporter.url])
  expect(stdout).toContain(`Suspects: ${death.suspects}`)
}, 60_000)

describe('a leak in a package', () => {
  const STORE = `'use strict'
const entries = new Map()
exports.remember = key => { entries.set(key, { key, rows: [key, key + 1, key + 2, key + 3] }) }`
  // After the profile it grows on a signal only: a heap that grew fast would take long to analyse.
  const APP = name => `const { remember } = require('${name}')
let next = 0
let grown = 0
function handle (calls) { for (let i = 0; i < calls; i++) remember(next++) }
const leak = setInterval(() => handle(60), 5)
setInterval(() => {}, 1000)
process.on('SIGUSR2', () => { clearInterval(leak); handle(20_000); console.log('grown', ++grown) })`

  /** @type {[string, string, string][]} */
  const layouts = [
    ['npm', 'tiny-store', 'node_modules/tiny-store'],
    ['npm, with a scope', '@acme/store', 'node_modules/@acme/store'],
    ['pnpm', 'tiny-store', 'node_modules/.pnpm/tiny-store@2.1.0/node_modules/tiny-store'],
    ['pnpm, with a scope', '@acme/store', 'node_modules/.pnpm/@acme+store@1.0.0/node_modules/@acme/store']
  ]
  it.each(layouts)('is named with its package: %s', async (_, name, place) => {
    exporter = await startExporter({ autoCaptures: false })
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-app-'))
    folders.push(folder)
    const store = path.join(folder, place)
    fs.mkdirSync(store, { recursive: true })
    fs.writeFileSync(path.join(store, 'package.json'), JSON.stringify({ name, main: 'index.js' }))
    fs.writeFileSync(path.join(store, 'index.js'), STORE)
    const link = path.join(folder, 'node_modules', name)
    fs.mkdirSync(path.dirname(link), { recursive: true })
    if (!fs.existsSync(link)) fs.symlinkSync(store, link)
    fs.writeFileSync(path.join(folder, 'package.json'), '{ "name": "web-shop" }')
    fs.writeFileSync(path.join(folder, 'app.js'), APP(name))
    const app = spawnWatched({
      node: NODES[0],
      // V8 assigns the bytes of an inlined function to its caller.
      args: ['--no-turbo-inlining', path.join(folder, 'app.js')],
      socket: exporter.socket.path,
      env: { MEMWATCH_NAME: 'shop', MEMWATCH_ALLOW_SNAPSHOT: '1' },
      timeoutMs: 290_000
    })
    apps.push(app)
    await eventually(() => json('targets'), targets => targets.length === 1)

    const profile = await captured('shop', { kind: 'heap_profile', seconds: 2 })
    const { packages, sites } = profile.suspects
    expect(packages[0]).toMatchObject({ package: name, share: expect.any(Number) })
    expect(packages[0].share).toBeGreaterThan(0.5)
    // The package allocates for the calling line of the app, which is the one to change.
    expect(sites[0]).toMatchObject({ file: 'app.js', package: 'web-shop', via: name, call: null })
    const isOwn = (/** @type {string} */ text) => /memwatch\/agent|@memwatch/.test(text)
    const names = [...packages.map(of => of.package), ...sites.map(({ file }) => file)]
    expect(names.filter(isOwn)).toEqual([])
    const text = async ({ id }) =>
      (await fetch(`${exporter.url}/api/v1/captures/${id}/suspects.md`)).text()
    expect(await text(profile)).toContain('| package | grown bytes | share |')

    const grow = async (/** @type {number} */ times) => {
      app.child.kill('SIGUSR2')
      await app.said(`grown ${times}`)
    }
    await grow(1)
    const snapshot = await captured('shop', { kind: 'heap_snapshot' })
    const { packages: holders, piles, sinceUnixMs } = snapshot.retainers
    expect(holders[0].package).toBe(name)
    expect([piles[0].package, sinceUnixMs]).toEqual([name, null])
    expect(piles[0].text).toMatch(/held by Map `entries` in node_modules\//)
    expect(await text(snapshot)).toContain('| package | retained bytes | share |')

    await grow(2)
    const later = await captured('shop', { kind: 'heap_snapshot' })
    expect(later.retainers.sinceUnixMs).toBe(snapshot.requestedUnixMs)
    const { text: grown, count } = later.retainers.piles[0]
    expect(grown).toMatch(/held by Map `entries` in node_modules\//)
    const { piles: [all] } = snapshot.retainers
    expect(count).not.toBe(all.count)
    expect(await text(later)).toContain('Only objects newer than')
  }, 300_000)
})

describe('a heap snapshot', () => {
  const carts = `const carts = new Map()
class Cart { constructor (n) { this.rows = Array.from({ length: 40 }, (_, row) => row + n / 7) } }
for (let n = 0; n < 2000; n++) carts.set(n, new Cart(n))
setInterval(() => carts.size, 100)`

  it('names piles and holders: in the API, as Markdown, in the terminal, and later', async () => {
    const dataFolder = new DataFolder(fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-data-')))
    folders.push(dataFolder.path)
    exporter = await startExporter({ autoCaptures: false, dataFolder })
    await watched('shop', carts, { env: { MEMWATCH_ALLOW_SNAPSHOT: '1' } })
    const snapshot = await captured('shop', { kind: 'heap_snapshot' })
    const text = expect.stringMatching(/^2,000 Cart objects, .* held by Map `carts` in .*app\.js:4/)
    expect(snapshot).toMatchObject({ state: 'done', retainers: { refused: null } })
    expect(snapshot.retainers.piles[0]).toMatchObject({ text, count: 2000, className: 'Cart' })
    expect(snapshot.retainers.piles[0].path).toContainEqual('variable carts → Map')

    const url = `${exporter.url}/api/v1/captures/${snapshot.id}/suspects.md`
    expect(await (await fetch(url)).text()).toContain('2,000 Cart objects')
    const { stdout } = await memwatch(['capture', 'shop', 'heap_snapshot', '--url', exporter.url])
    expect(stdout).toContain('2,000 Cart objects')

    await exporter.stop()
    const again = new DataFolder(dataFolder.path)
    exporter = await startExporter({ autoCaptures: false, dataFolder: again })
    expect((await json(`captures/${snapshot.id}`)).retainers).toEqual(snapshot.retainers)
  }, 180_000)

  it('that is too large for analysis is stored, with both sizes', async () => {
    exporter = await startExporter({ autoCaptures: false })
    const { retainersOf } = require('../../exporter/captures/retainers')
    const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-app-')), 'a.heapsnapshot')
    folders.push(path.dirname(file))
    execFileSync(process.execPath, ['-e', 'v8.writeHeapSnapshot(process.argv[1])', file])
    expect(await retainersOf(file, { allowedBytes: 64 * MIB })).toEqual({
      refused: expect.stringMatching(/^\d+ nodes and \d+ edges .*: \d+ MiB predicted, 64 MiB allowed$/),
      reachableBytes: null,
      sinceUnixMs: null,
      piles: [],
      packages: []
    })
  })
})

describe('a harmful capture', () => {
  itInGroup('a snapshot in a container that has no room for it is refused with the numbers, and the process lives', async () => {
    exporter = await startExporter({ autoCaptures: false })
    const group = createMemoryGroup({ limitBytes: 512 * MIB, name: 'snapshot' })
    expect([group.supported, group.reason]).toEqual([true, undefined])
    const fill =
      'const kept = []; while (process.memoryUsage().heapUsed < 300 * 2 ** 20) for (let i = 0; ' +
        'i < 10000; i++) kept.push({ i, next: { i } }); setInterval(() => kept.length, 100); ' +
          'console.log("full")'
    const { command, args } = group.wrap(process.execPath, [
      '--max-old-space-size=450',
      '-r',
      AGENT,
      '-e',
      fill
    ])
    const app = spawnBounded(command, args, {
      env: environment({
        MEMWATCH_SOCKET: exporter.socket.path,
        MEMWATCH_NAME: 'full',
        MEMWATCH_ALLOW_SNAPSHOT: '1'
      }),
      timeoutMs: 60_000
    })
    apps.push(/** @type {any} */ (app))
    await app.said('full')
    await eventually(
      () => json('targets'),
      ([target]) => target?.values.heapUsedBytes > 200 * MIB,
      30_000
    )
    const refused = await captured('full', { kind: 'heap_snapshot' })
    expect(refused).toMatchObject({ state: 'failed', errorCode: 'too_large' })
    expect(refused.error).toMatch(
      /may need \d+(\.\d+)? (MiB|GiB), and \d+ MiB are free/
    )
    const { code, stderr } = await memwatch([
      'capture',
      'full',
      'heap_snapshot',
      '--url',
      exporter.url
    ])
    expect([code, stderr]).toEqual([1, expect.stringContaining('heap_profile')])
    expect(await captured('full', { kind: 'heap_profile', seconds: 1 })).toMatchObject({
      state: 'done'
    })
    expect(app.child.exitCode).toBe(null)
    app.child.kill('SIGKILL')
    await app.ended
    await group.remove()
  }, 90_000)

  it('is refused with a reason if it is forbidden, impossible, too long, or not the first', async () => {
    exporter = await startExporter({ autoCaptures: false })
    await watched('shop', 'setInterval(() => {}, 1000)')
    await watched('closed', 'setInterval(() => {}, 1000)', { env: { MEMWATCH_CAPTURES: 'off' } })
    const ask = (target, query) => json(`targets/${target}/captures?${query}`, { method: 'POST' })
    expect(await captured('shop', { kind: 'heap_snapshot' })).toMatchObject({
      errorCode: 'snapshot_not_allowed',
      error: expect.stringContaining('MEMWATCH_ALLOW_SNAPSHOT=1')
    })
    expect(await ask('closed', 'kind=report')).toMatchObject({
      code: 'not_enabled',
      detail: expect.stringContaining('MEMWATCH_CAPTURES=off')
    })
    expect(await ask('nobody', 'kind=report')).toMatchObject({
      code: 'unknown_target',
      status: 404
    })
    expect(await ask('shop', 'kind=cpu_profile&seconds=61')).toMatchObject({
      code: 'too_long',
      status: 409
    })
    expect(await ask('shop', 'kind=everything')).toMatchObject({
      code: 'bad_arguments',
      detail: expect.stringContaining('kind')
    })
    const [first, second] = await Promise.all([
      captured('shop', { kind: 'cpu_profile', seconds: 1 }),
      ask('shop', 'kind=report')
    ])
    expect([first.state, second.code]).toEqual(['done', 'busy'])
  }, 60_000)

  it('is delayed by the command until another capture ends', async () => {
    exporter = await startExporter({ autoCaptures: false })
    await watched('shop', 'setInterval(() => {}, 1000)')
    const other = captured('shop', { kind: 'cpu_profile', seconds: 3 })
    await eventually(() => json('captures'), captures => captures.length === 1)
    const { code, stderr } = await memwatch(['capture', 'shop', 'report', '--url', exporter.url])
    expect({ code, stderr }).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('waiting for another capture')
    })
    expect((await other).state).toBe('done')
  }, 60_000)

  it('is refused if it exceeds the limit of the storage, and the app continues', async () => {
    exporter = await startExporter({ autoCaptures: false, capturesMax: MIB })
    const { child } = await watched('shop', 'setInterval(() => {}, 1000)', {
      env: { MEMWATCH_ALLOW_SNAPSHOT: '1' }
    })
    expect(await captured('shop', { kind: 'heap_snapshot' })).toMatchObject({
      state: 'failed',
      error: expect.stringContaining('--captures-max')
    })
    const [{ id }] = await json('captures')
    expect(
      (await fetch(`${exporter.url}/api/v1/captures/${id}`, { method: 'DELETE' })).status
    ).toBe(204)
    expect(await json('captures')).toEqual([])
    expect(await captured('shop', { kind: 'report' })).toMatchObject({ state: 'done' })
    expect(child.exitCode).toBe(null)
  }, 60_000)

  it('fails at once with a reason if the folder is not writable', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-data-'))
    folders.push(folder)
    const dataFolder = await DataFolder.open(folder)
    exporter = await startExporter({ autoCaptures: false, dataFolder })
    fs.writeFileSync(path.join(folder, 'captures'), 'a file where a folder should be')
    await watched('shop', 'setInterval(() => {}, 1000)')
    const began = performance.now()
    expect(await captured('shop', { kind: 'report' })).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/EEXIST|ENOTDIR/)
    })
    dataFolder.close()
    // An agent whose data nobody reads abandons the capture after thirty seconds.
    expect(performance.now() - began).toBeLessThan(15_000)
  }, 60_000)

  it('on an unexpected connection makes the exporter close it', async () => {
    exporter = await startExporter({ autoCaptures: false })
    const socket = net.connect(exporter.socket)
    socket.on('error', () => {})
    socket.write(
      '{"v":1,"type":"capture","id":"11111111-1111-4111-8111-111111111111","part":"profile"}\n' +
        'x'.repeat(MIB)
    )
    await new Promise(resolve => socket.resume().once('close', resolve))
    expect(await json('captures')).toEqual([])
  })
})

describe('automatic captures', () => {
  it('a blocked loop is profiled once; verdict, metric and command line name it', async () => {
    exporter = await startExporter()
    await watched(
      'shop',
      // CPU time, as a fast processor ends a fixed number of iterations too soon to block.
      `const { pbkdf2Sync } = require('crypto')
      function derive () {
        for (const from = process.cpuUsage(); process.cpuUsage(from).user < 600_000;) {
          pbkdf2Sync('a', 'b', 50_000, 64, 'sha512')
        }
      }
      setInterval(derive, 1000)`
    )
    const { suspects: { kind, suspects: { sites } } } = await eventually(
      async () => (await json('diagnoses'))[0]?.verdicts.find(({ diagnosis }) =>
        diagnosis === 'event-loop-blocked'),
      verdict => verdict?.suspects,
      150_000
    )
    expect([kind, sites[0]]).toEqual([
      'cpu_profile',
      expect.objectContaining({ function: 'derive', file: 'app.js', call: 'pbkdf2Sync' })
    ])
    expect(await exporter.metrics()).toMatch(
      /memwatch_suspect_info\{diagnosis="event-loop-blocked",capture="cpu_profile",suspects="derive [^"]*pbkdf2Sync/
    )
    const captures = await json('captures')
    expect(captures).toMatchObject([{ diagnosis: 'event-loop-blocked', state: 'done' }])
    const markdown = await (
      await fetch(`${exporter.url}/api/v1/captures/${captures[0].id}/suspects.md`)
    ).text()
    expect(markdown).toContain('| `derive` |')
  }, 180_000)

  it('a leak of Buffers is sampled often enough to name the allocating line', async () => {
    exporter = await startExporter()
    await watched(
      'shop',
      `const kept = []
      function remember () { kept.push(Buffer.alloc(131_072)) }
      function work () { return Array.from({ length: 200 }, (_, i) => ({ i })).length }
      setInterval(() => { remember(); work() }, 15)`,
      { env: { MEMWATCH_FORCED_GC: 'allow', MEMWATCH_INTERVAL_SECONDS: '1' } }
    )
    const leak = ([target]) =>
      target?.verdicts.find(({ diagnosis }) => diagnosis === 'native-memory-leak')
    const targets = await eventually(
      () => json('diagnoses'),
      targets => leak(targets)?.suspects,
      100_000
    )
    expect(leak(targets).suspects).toMatchObject({
      kind: 'heap_profile',
      suspects: { sites: [{ function: 'remember', file: 'app.js', line: 2 }] }
    })
  }, 120_000)
})

it('a process that runs out of heap during a profile leaves suspects, which are shipped', async () => {
  const data = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-data-'))
  const out = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-out-'))
  folders.push(data, out)
  const dataFolder = await DataFolder.open(data)
  const rule = {
    name: 'now',
    when: { signal: 'heapSizeLimitBytes', above: 0 },
    what: 'heap_profile',
    // The first reading comes after a few seconds. The process dies before the second one.
    seconds: 12
  }
  const { captureRules } = readConfig({ captureRules: JSON.stringify([rule]) }, {})
  exporter = await startExporter({ dataFolder, captureRules, shipTo: `file://${out}` })
  const { child } = await watched(
    'shop',
    `${LEAK}; process.on('SIGUSR2', () => { for (;;) leak() })`,
    { flags: ['--max-old-space-size=256'] }
  )
  const isJson = file => {
    try {
      return Boolean(JSON.parse(fs.readFileSync(file, 'utf8')))
    } catch {
      return false
    }
  }
  const captures = path.join(data, 'captures')
  await eventually(
    () => fs.readdirSync(data).includes('captures') && fs.readdirSync(captures)
      .some(id => isJson(path.join(captures, id, 'before'))),
    Boolean,
    40_000
  )
  child.kill('SIGUSR2')
  const [death] = await eventually(
    () => json('deaths?target=shop'), ([death]) => death?.suspects, 60_000)
  // The files of an ended process are not readable, so the path may be absolute.
  const suspects = expect.stringMatching(/leak \S*app\.js:3 /)
  expect(death).toMatchObject({ reason: 'heap_oom', suspects })
  const [capture] = await eventually(
    () => json('captures'), ([{ shippedUnixMs }]) => shippedUnixMs)
  expect(capture).toMatchObject({ state: 'done', rule: 'now', isPartial: true })
  const files = fs.readdirSync(out, { recursive: true, withFileTypes: true })
    .filter(file => file.isFile())
  expect(files.map(({ name }) => name).sort()).toEqual(['capture.json', 'profile.heapprofile'])
  for (const { name, parentPath } of files) {
    expect(isJson(path.join(parentPath, name))).toBe(true)
  }
  dataFolder.close()
}, 120_000)

it('a flame graph needs only files that the exporter serves', async () => {
  exporter = await startExporter({ autoCaptures: false })
  const page = await exporter.get('/flame/')
  expect([
    page.status,
    page.headers.get('content-type'),
    page.headers.get('content-security-policy')
  ]).toEqual([200, 'text/html; charset=utf-8', expect.stringContaining("default-src 'self'")])
  const names = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(2)
  const statusOf = async name => {
    const response = await exporter.get(`/flame/${name}`)
    await response.arrayBuffer() // An unread stream would delay the end of the exporter.
    return response.status
  }
  for (const name of names) expect(await statusOf(name)).toBe(200)
  for (const name of ['none.js', '..%2f..%2fpackage.json', 'release.txt']) {
    expect(await statusOf(name)).toBe(404)
  }
})

it('memwatch capture writes the capture for DevTools and for pprof', async () => {
  exporter = await startExporter({ autoCaptures: false })
  await watched('shop', LEAK)
  const folder = fs.mkdtempSync('/tmp/memwatch-capture-')
  const file = path.join(folder, 'shop.pb.gz')
  const { code, stdout } = await memwatch([
    'capture',
    'shop',
    'heap_profile',
    '--seconds',
    '2',
    '--pprof',
    '--out',
    file,
    '--url',
    exporter.url
  ])
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^heap_profile .*\n( {2}\(anonymous\) .*\n)? {2}leak app\.js:3 .*\n(.*\n)*Flame graph: http:.*\/flame\/#profileURL=/
    )
  ])
  expect(execFileSync('gzip', ['-dc', file]).toString('latin1')).toContain('inuse_space')
  expect(fs.statSync(file).mode & 0o777).toBe(0o600)
  fs.rmSync(folder, { recursive: true })
}, 60_000)
