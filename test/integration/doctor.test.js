'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { startExporter, eventually } = require('../support/exporter')
const { AGENT, environment, spawnBounded } = require('../support/agent-collector')
const { memwatch, MEMWATCH } = require('../support/memwatch')
const { asOtherUser } = require('../support/other-user')
const { freePort } = require('../support/free-port')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { describeWithTools } = require('../support/tools')
const { itInGroup } = require('../support/memory-groups')
const { checkFixes } = require('../../cli/checks/target-checks')

const isLinux = process.platform === 'linux'
const isRoot = process.getuid?.() === 0
const APP = "setInterval(() => {}, 1000); console.log('up', process.pid)"
/** Each app gets the options of this process unchanged, as doctor expects. */
const OWN_OPTIONS = process.env.NODE_OPTIONS ?? ''
const PRELOAD = `${OWN_OPTIONS} --require ${AGENT}`.trim()

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-doctor-'))
const script = path.join(folder, 'server.js')
fs.writeFileSync(script, APP)
fs.chmodSync(folder, 0o755)
/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
beforeAll(async () => { exporter = await startExporter() })
afterAll(async () => {
  await exporter.stop()
  fs.rmSync(folder, { recursive: true })
})
/** @type {ReturnType<typeof spawnBounded>[]} */
const apps = []
/** Process ids of the apps; some are children of a shell. @type {number[]} */
const pids = []
async function endApps () {
  for (const pid of pids.splice(0)) process.kill(pid, 'SIGKILL')
  for (const { child } of apps) child.kill('SIGKILL')
  await Promise.all(apps.splice(0).map(({ ended }) => ended))
}
afterEach(endApps)

/**
 * Starts a Node.js process.
 * @param {object} [options]
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {string} [options.command] a shell command, in which APP stands for node with its script
 * @param {string[]} [options.flags]
 * @param {number} [options.uid]
 * @param {(command: string, args: string[]) => { command: string, args: string[] }} [options.wrap]
 * @returns {Promise<number>} its pid
 */
async function startApp ({
  env = {}, command, flags = [], uid, wrap = (command, args) => ({ command, args })
} = {}) {
  const words = [process.execPath, ...flags, script]
  // The shell has another command after the app, so it stays its parent.
  const inner = command === undefined
    ? wrap(words[0], words.slice(1))
    : { command: '/bin/sh', args: ['-c', `${command.replace('APP', words.join(' '))}; exit $?`] }
  const app = spawnBounded(inner.command, inner.args, {
    uid,
    gid: uid,
    env: environment({
      NODE_OPTIONS: PRELOAD, MEMWATCH_SOCKET: exporter.socket.path, MEMWATCH_NAME: 'shop', ...env
    }),
    timeoutMs: 60_000
  })
  apps.push(app)
  const pid = Number(/up (\d+)/.exec(await app.said('up'))?.[1])
  pids.push(pid)
  return pid
}

/** @param {number} pid */
const isWatched = pid => eventually(
  () => exporter.exporter.targets.some(({ hello, frame }) => hello.pid === pid && frame), Boolean
)

/**
 * @param {string[]} args
 * @param {string} [url]
 */
async function doctor (args, url = exporter.url) {
  const { code, stdout, stderr } = await memwatch(['doctor', ...args, '--json', '--url', url])
  expect(stderr).toBe('')
  const { problems, sections } = JSON.parse(stdout)
  const checks = sections.flatMap(section => section.checks)
  /** @param {string} name */
  const of = name => checks.filter(({ check }) => check === name)
  return { code, problems, checks, of }
}

/**
 * @param {string} state
 * @param {RegExp} text
 */
const told = (state, text) =>
  [expect.objectContaining({ state, text: expect.stringMatching(text) })]

;(isLinux ? describe : describe.skip)('memwatch doctor', () => {
  it('finds no fault, ends with 0, and prints the effective settings', async () => {
    const pid = await startApp({ flags: ['--max-semi-space-size=8'] })
    await isWatched(pid)
    const found = await doctor([String(pid)])
    expect(found.checks.filter(({ state }) => state === 'problem')).toEqual([])
    expect([found.code, found.problems]).toEqual([0, 0])
    expect(found.of('agent')).toEqual(told('ok', new RegExp(`process ${pid} as shop`)))
    expect(found.of('socket')).toEqual(told('ok', /answers. It belongs to user/))
    expect(found.of('flags')).toEqual(told('ok', /--max-semi-space-size=8/))
    expect(found.of('limits')).toEqual(told('ok', /heap limit of V8 is \d+ MiB/))
    expect(found.of('allocator')).toEqual(told('ok', /glibc|musl/))
    expect(found.of('gc-counter')).toEqual(told('ok', /GCs/))
    expect(found.of('fix')).toEqual(told('ok', /No change is advised/))
    const text = await memwatch(['doctor', 'shop', '--url', exporter.url])
    expect(text).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('  ✓ ') })
  })

  it('reports a missing exporter, and the visible facts about the process', async () => {
    const pid = await startApp()
    const { code, of } = await doctor([String(pid)], `http://127.0.0.1:${await freePort()}`)
    expect(code).toBe(1)
    expect(of('exporter')).toEqual(told('problem', /No exporter answers at http/))
    expect(of('agent')).toEqual(told('unknown', /preloaded/))
    expect(of('limits')).toEqual(told('unknown', /until the agent reports/))
  })

  it.each([
    ['the agent is not loaded', { env: { NODE_OPTIONS: OWN_OPTIONS } }, /agent is not loaded/],
    [
      'a program between shell and app drops NODE_OPTIONS',
      { command: 'env -u NODE_OPTIONS APP' },
      /NODE_OPTIONS of process \d+ \(sh\) preloads the agent; NODE_OPTIONS of process/
    ],
    ['it is turned off', { env: { MEMWATCH_DISABLED: '1' } }, /MEMWATCH_DISABLED turns off/],
    [
      'a variable has an invalid value',
      { env: { MEMWATCH_INTERVAL_SECONDS: '0' } },
      /is off: MEMWATCH_INTERVAL_SECONDS: expected a number from 0.1 to 60/
    ],
    [
      'it connects elsewhere',
      { env: { MEMWATCH_SOCKET: path.join(folder, 'elsewhere.sock') } },
      /preloaded in process \d+, but the exporter has no target/
    ]
  ])('says that %s', async (_, options, text) => {
    const { code, of } = await doctor([String(await startApp(options))])
    expect(code).toBe(1)
    expect(of('agent')).toEqual(told('problem', text))
  })

  it('reports problems of the socket', async () => {
    const socket = path.join(folder, 'gone.sock')
    const missing = await startApp({ env: { MEMWATCH_SOCKET: socket } })
    expect((await doctor([String(missing)])).of('socket')).toEqual(told('problem', /no such file/))
    const malformed = await startApp({ env: { MEMWATCH_SOCKET: 'tcp://x' } })
    expect((await doctor([String(malformed)])).of('socket')).toEqual(
      told('problem', /MEMWATCH_SOCKET: expected a path or tcp/)
    )
    const closed = await startApp({
      env: { MEMWATCH_SOCKET: `tcp://127.0.0.1:${await freePort()}` }
    })
    expect((await doctor([String(closed)])).of('socket')).toEqual(told('problem', /no exporter listens/))
  })

  it('reports a socket folder that others may write to', async () => {
    const pid = await startApp()
    const at = path.dirname(exporter.socket.path)
    fs.chmodSync(at, 0o777)
    const { of } = await doctor([String(pid)])
    fs.chmodSync(at, 0o700)
    expect(of('socket')).toEqual(told('problem', /The agent refuses captures and trims/))
  })

  ;(isRoot ? it : it.skip)('says that the socket is closed to the user of the app', async () => {
    const pid = await startApp({ uid: 65_534, env: { NODE_OPTIONS: OWN_OPTIONS } })
    expect((await doctor([String(pid)])).of('socket')).toEqual(
      told('problem', /app's user 65534 may not connect/)
    )
  })

  it('names a flag that a later one overrides', async () => {
    const { of } = await doctor([String(await startApp({
      env: { NODE_OPTIONS: `${PRELOAD} --max-semi-space-size=16` },
      flags: ['--max_semi_space_size=1']
    }))])
    expect(of('flags')).toEqual(told(
      'problem',
      /--max-semi-space-size=16 in NODE_OPTIONS is overridden by --max-semi-space-size=1 on the command line/
    ))
  })

  it.each([
    ['MALLOC_ARENA_MAX', '2', 'env -u MALLOC_ARENA_MAX APP', /sh\) holds 2; .* no such variable/],
    ['MALLOC_ARENA_MAX', '2', 'env MALLOC_ARENA_MAX=8 APP', /sh\) holds 2; process \d+ has 8/],
    ['LD_PRELOAD', 'libdl.so.2', 'env -u LD_PRELOAD APP', /sh\) holds libdl.so.2; .* no such/],
    ['NODE_OPTIONS', `${PRELOAD} --max-semi-space-size=16`, `env NODE_OPTIONS="${PRELOAD}" APP`,
      /NODE_OPTIONS of process \d+ \(sh\) holds --max-semi-space-size=16; .* other options/]
  ])('reports that a supervisor drops or replaces %s=%s', async (name, value, command, text) => {
    const { code, of } = await doctor([String(await startApp({ env: { [name]: value }, command }))])
    expect(code).toBe(1)
    expect(of('environment')).toEqual(told('problem', text))
  })

  it('reports an LD_PRELOAD library that is not loaded, and its ignored variable', async () => {
    const { of } = await doctor([String(await startApp({
      env: { LD_PRELOAD: 'libnowhere.so.7', MALLOC_CONF: 'narenas:2' }
    }))])
    expect(of('allocator')).toEqual([
      ...told('problem', /LD_PRELOAD names libnowhere.so.7, which is not loaded/),
      ...told('problem', /MALLOC_CONF is set, and malloc is that of \w+: only jemalloc reads it/)
    ])
  })

  itInGroup('names processes without the agent that share a container limit', async () => {
    const group = createMemoryGroup({ limitBytes: 256 * 2 ** 20, name: 'doctor' })
    try {
      const pid = await startApp({ wrap: group.wrap })
      expect((await doctor([String(pid)])).of('neighbours')).toEqual(
        told('ok', /No Node.js process without the agent shares the limit of 256 MiB/)
      )
      const other = await startApp({ wrap: group.wrap, env: { NODE_OPTIONS: OWN_OPTIONS } })
      const { code, of } = await doctor([String(pid)])
      expect(code).toBe(1)
      expect(of('neighbours')).toEqual(told('problem', new RegExp(`256 MiB: process ${other} `)))
    } finally {
      await endApps()
      await group.remove()
    }
  })

  it('counts visible Node.js processes', async () => {
    await startApp()
    const { of } = await doctor([])
    expect(of('processes')).toEqual(told('ok', /^[1-9]\d* of \d+ Node.js processes have the agent/))
  })

  ;(isRoot ? it : it.skip)('checks without permission are unknown, not ok', async () => {
    const pid = await startApp()
    await isWatched(pid)
    const { ended } = spawnBounded(...asOtherUser([
      process.execPath, MEMWATCH, 'doctor', String(pid), '--url', exporter.url
    ]))
    const { stdout, stderr } = await ended
    expect({ stdout, stderr }).toMatchObject({
      stderr: '', stdout: expect.stringMatching(/\? Process \d+ belongs to user 0, and this\s+user may not read its environment/)
    })
  })

  it('prints texts of a process as plain text', async () => {
    const hostile = '\x1b]0;taken\x07\x1b[31m\n\u202e'
    const pid = await startApp({
      env: { LD_PRELOAD: `lib${hostile}.so`, MEMWATCH_SOCKET: `/tmp/${hostile}`, MALLOC_CONF: hostile }
    })
    const { stdout } = await memwatch(['doctor', String(pid), '--url', exporter.url])
    // eslint-disable-next-line no-control-regex
    expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/)
    expect(stdout).toContain('\\x1b')
  })

  it.each([
    ['an unknown target', 'nobody', /^memwatch: unknown target: nobody; known targets: /],
    ['an unknown process', '999999999', /^memwatch: no Node.js process 999999999\n/]
  ])('%s ends with 2', async (_, name, text) => {
    expect(await memwatch(['doctor', name, '--url', exporter.url])).toMatchObject({
      code: 2, stdout: '', stderr: expect.stringMatching(text)
    })
  })

  it('ends with 2 for a program other than Node.js', async () => {
    const sleeper = spawnBounded('sleep', ['60'])
    apps.push(sleeper)
    expect(await memwatch(['doctor', String(sleeper.child.pid), '--url', exporter.url]))
      .toMatchObject({ code: 2, stderr: expect.stringContaining('this process runs another program') })
  })
})

describeWithTools('memwatch doctor under jemalloc', () => {
  it('reports that it is loaded, and names a variable that it ignores', async () => {
    const { of } = await doctor([String(await startApp({
      env: { LD_PRELOAD: 'libjemalloc.so.2', MALLOC_CONF: 'narenas:2', MALLOC_ARENA_MAX: '2' }
    }))])
    expect(of('allocator')).toEqual([
      ...told('ok', /malloc is that of jemalloc \(\/.*libjemalloc/),
      ...told('problem', /MALLOC_ARENA_MAX is set.* only glibc reads it/)
    ])
  })
})

it('names a leak before other findings, and says that their fixes do not fix it', () => {
  const verdicts = [
    {
      diagnosis: 'oversized-heap',
      state: 'confirmed',
      summary: 'HEAP.',
      fix: [{ title: 'Smaller', change: { flag: '--max-old-space-size=96' } }]
    },
    {
      diagnosis: 'js-heap-leak',
      state: 'suspected',
      summary: 'The live heap grows.',
      fix: [{ title: 'Keep less', change: { code: 'cache.max = 100' } }]
    }
  ]
  const subject = /** @type {any} */ ({
    settings: { nodeOptions: [], execArgv: [] }, target: { target: 'shop' }, verdicts
  })
  expect(checkFixes(subject)).toEqual([
    {
      check: 'fix',
      state: 'unknown',
      text: 'js-heap-leak is suspected: The live heap grows. A larger heap only delays the end of a ' +
        'leak. First fix: Keep less.'
    },
    {
      check: 'fix',
      state: 'problem',
      text: expect.stringMatching(/^The process runs without the fix for oversized-heap/),
      advice: expect.stringMatching(/^It does not fix js-heap-leak, above\. memwatch fix shop/)
    }
  ])
})

;(isLinux ? describe : describe.skip)('the fix that a verdict advises', () => {
  it.each([
    ['not in force', '1', 'problem', 1],
    ['in force', '16', 'ok', 0]
  ])('is %s', async (_, size, state, code) => {
    const http = require('node:http')
    const pid = await startApp({ flags: [`--max-semi-space-size=${size}`] })
    const common = { target: 'shop', thread: 'main', pid, node: '24.1.0' }
    const answers = {
      targets: [{ ...common, up: true, silence: null, gcCounter: 'hooks', values: { heapSizeLimitBytes: 2 ** 28 } }],
      diagnoses: [{
        ...common,
        verdicts: [{
          diagnosis: 'semi-space-starvation',
          state: 'confirmed',
          fix: [{ title: 'Larger', change: { flag: '--max-semi-space-size=16' } }]
        }]
      }]
    }
    const server = http.createServer(({ url = '' }, response) =>
      response.end(JSON.stringify(answers[url.split('/').at(-1) ?? ''])))
    await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    const found = await doctor(['shop'], `http://127.0.0.1:${port}`)
    server.close()
    expect(found.of('fix')).toEqual(told(state, /fix for semi-space-starvation: .*--max-semi-space-size=16/))
    expect(found.code).toBe(code)
  })
})
