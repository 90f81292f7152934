'use strict'

const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { startExporter, eventually } = require('../support/exporter')
const { environment, spawnBounded, spawnWatched } = require('../support/agent-collector')
const { MIB } = require('../support/frames')
const { memwatch } = require('../support/memwatch')
const { itInGroup } = require('../support/memory-groups')

const AGENT = require.resolve('memwatch/agent')

/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
beforeEach(async () => { exporter = await startExporter() })
afterEach(() => exporter.stop())

const deathOf = name =>
  eventually(
    async () => (await (await exporter.get(`/api/v1/deaths?target=${name}`)).json())[0],
    Boolean
  )
const watched = name =>
  eventually(
    () => exporter.exporter.targets.find(target => target.name === name && target.frame),
    Boolean
  )

it.each([
  ['exits with 3', 'process.exit(3)', [], { reason: 'error', sure: 'certain', exitCode: 3 }],
  [
    'segfaults',
    "process.kill(process.pid, 'SIGSEGV')",
    [],
    { reason: expect.stringMatching(/^(crash|signal)$/), exitCode: null }
  ],
  [
    'fills its heap',
    'for (const kept = [];;) kept.push({ kept: [kept.length] })',
    ['--max-old-space-size=60'],
    { reason: 'heap_oom', exitCode: null }
  ]
])('an app that %s', async (_, code, flags, expected) => {
  const app = spawnWatched({
    args: [...flags, '-e', `setTimeout(() => { ${code} }, 700)`],
    socket: exporter.socket.path,
    env: { MEMWATCH_NAME: 'shop', MEMWATCH_INTERVAL_SECONDS: '0.2' }
  })
  await app.ended
  expect(await deathOf('shop')).toMatchObject({
    target: 'shop',
    thread: 'main',
    pid: app.child.pid,
    ...expected
  })
})

itInGroup('an OOM kill by the kernel is reported, in the terminal and to Prometheus', async () => {
  const group = createMemoryGroup({ limitBytes: 150 * MIB, name: 'death' })
  expect([group.supported, group.reason]).toEqual([true, undefined])
  const { command, args } = group.wrap(process.execPath, [
    '-r',
    AGENT,
    '-e',
    'setInterval(() => { (globalThis.kept ??= []).push(Buffer.alloc(3 * 2 ** 20, 1)) }, 20)'
  ])
  const app = spawnBounded(command, args, {
    env: environment({
      MEMWATCH_SOCKET: exporter.socket.path,
      MEMWATCH_NAME: 'shop',
      MEMWATCH_INTERVAL_SECONDS: '0.2'
    })
  })
  try {
    expect((await app.ended).signal).toBe('SIGKILL')
    const death = await deathOf('shop')
    expect(death.reason).toBe('oom_kill')
    expect(await exporter.metrics()).toContain(
      'memwatch_target_exits_total{target="shop",thread="main",reason="oom_kill"} 1'
    )

    const { death: again, lastMinutes } = await (
      await exporter.get(`/api/v1/deaths/${death.id}`)
    ).json()
    expect(again).toEqual(death)
    expect(lastMinutes.tracks.rssBytes.at(-1)).toBeGreaterThan(100 * MIB)
    expect(lastMinutes.secondsBefore.at(-1)).toBe(0)

    const said = await memwatch(['last-death', '--url', exporter.url])
    expect([said.code, said.stderr]).toEqual([0, ''])
    expect(said.stdout).toContain('killed by the kernel for memory (oom_kill')
    expect(said.stdout).toMatch(/\n +0 s +1\d\d MiB/)
    expect(await memwatch(['last-death', 'nobody', '--url', exporter.url])).toMatchObject({
      code: 1,
      stderr: 'memwatch last-death: the exporter has recorded no death of nobody\n'
    })
    expect((await exporter.get('/api/v1/deaths/none')).status).toBe(404)
  } finally {
    await group.remove()
  }
})

it('memwatch run reports the death of its command', async () => {
  const { stdout } = await memwatch([
    'run',
    '--',
    process.execPath,
    '-e',
    "setTimeout(() => process.kill(process.pid, 'SIGBUS'), 700)"
  ])
  expect(stdout).toMatch(/pid \d+: It crashed with SIGBUS;/)
})

it('a stopped app and a blocked one are distinguished, and neither is dead', async () => {
  const env = { MEMWATCH_INTERVAL_SECONDS: '0.2' }
  const stopped = spawnWatched({
    args: ['-e', 'setInterval(() => {}, 1000)'],
    socket: exporter.socket.path,
    env: { ...env, MEMWATCH_NAME: 'stopped' },
    timeoutMs: 60_000
  })
  const blocked = spawnWatched({
    args: ['-e', 'setTimeout(() => { for (;;); }, 1000)'],
    socket: exporter.socket.path,
    env: { ...env, MEMWATCH_NAME: 'blocked' },
    timeoutMs: 60_000
  })
  const waiting = spawnWatched({
    args: [
      '-e',
      'setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0), 1000)'
    ],
    socket: exporter.socket.path,
    env: { ...env, MEMWATCH_NAME: 'waiting' },
    timeoutMs: 60_000
  })
  try {
    await watched('stopped')
    stopped.child.kill('SIGSTOP')
    const silence = (list = 'targets') =>
      exporter
        .get(`/api/v1/${list}`)
        .then(response => response.json())
        .then(targets =>
          Object.fromEntries(targets.map(({ target, silence }) => [target, silence]))
        )
    expect(
      await eventually(() => silence(), ({ stopped, blocked, waiting }) =>
        Boolean(stopped && blocked && waiting)
      )
    ).toEqual({ stopped: 'stopped', blocked: 'loop_blocked', waiting: 'waiting' })
    expect(await silence('diagnoses')).toEqual(await silence())
    expect(await exporter.metrics()).toMatch(
      /memwatch_target_silence_seconds\{target="blocked",thread="main",cause="loop_blocked"\} \d/
    )
    stopped.child.kill('SIGCONT')
    expect(await eventually(() => silence(), ({ stopped }) => stopped === null)).toMatchObject({
      stopped: null
    })
    expect(exporter.exporter.deaths).toEqual([])
  } finally {
    for (const { child } of [stopped, blocked, waiting]) child.kill('SIGKILL')
    await Promise.all([stopped.ended, blocked.ended, waiting.ended])
  }
})
