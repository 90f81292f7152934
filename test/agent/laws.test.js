'use strict'

const dgram = require('node:dgram')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const {
  AGENT,
  NODES,
  versionOf,
  environment,
  startCollector,
  spawnBounded,
  spawnWatched
} = require('../support/agent-collector')

/** Upper bound of the delay that the agent may cause at the end of a script, on a busy machine. */
const LATER_SECONDS = 1.5

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-laws-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * @param {string} name
 * @param {string} code
 * @returns {string} its path
 */
function file (name, code) {
  const at = path.join(folder, name)
  fs.mkdirSync(path.dirname(at), { recursive: true })
  fs.writeFileSync(at, code)
  return at
}

/** @type {import('../support/agent-collector').Collector[]} */
const collectors = []
afterEach(() => Promise.all(collectors.splice(0).map(collector => collector.stop())))

/** @param {Parameters<typeof startCollector>[0]} [options] */
async function collect (options) {
  const collector = await startCollector(options)
  collectors.push(collector)
  return collector
}

const LIVES_A_WHILE = "setTimeout(() => { process.exitCode = 7 }, 400); console.log('up')"
const QUICK = { MEMWATCH_INTERVAL_SECONDS: '0.1' }

/**
 * Before the agent connects, the test fills the send buffer of its socket: not even the hello fits.
 */
const fillsTheSocket = file(
  'fill.js',
  `
  const net = require('net'), fs = require('fs'), { connect } = net
  net.connect = (...args) => connect(...args).on('connect', function () {
    // TCP makes room a few times more: by the receiver's window.
    for (let refusals = 0; refusals < 8; Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)) {
      try { for (;;) fs.writeSync(this._handle.fd, Buffer.alloc(8192, '\\n')); } catch { refusals++ }
    }
  })`
)

/** @param {import('../support/agent-collector').Collector} collector */
const address = async collector => {
  const { address } = collector
  await collector.stop()
  return address
}

/**
 * @type {Record<string, (over: 'unix' | 'tcp') => Promise<{ socket: string, before?: string[],
 *   during?: () => Promise<unknown>, after?: () => void }>>}
 */
const SITUATIONS = {
  'is there': async over => {
    const collector = await collect({ over })
    return {
      socket: collector.address,
      after: () =>
        expect(collector.connections).toEqual([
          expect.objectContaining({
            hello: expect.objectContaining({ threadId: 0 }),
            bye: expect.objectContaining({ exitCode: 7 }),
            broken: []
          })
        ])
    }
  },
  'is away': async over => ({ socket: await address(await collect({ over })) }),
  'hangs, and the socket buffer is full': async over => ({
    socket: (await collect({ over, mode: 'hung' })).address, before: ['-r', fillsTheSocket]
  }),
  'dies midway': async over => {
    const collector = await collect({ over })
    return {
      socket: collector.address,
      during: () => collector.until(([first]) => first?.frames.length >= 1).then(collector.kill)
    }
  }
}

/** Expects all frames in order, each with the uptime at its reading. @param {any[]} frames */
function expectAllInOrder (frames) {
  for (let i = 1; i < frames.length; i++) {
    expect(frames[i].sequence).toBe(frames[i - 1].sequence + 1)
    const late =
      frames[i].atUnixMs -
      frames[i - 1].atUnixMs -
      1000 * (frames[i].uptimeSeconds - frames[i - 1].uptimeSeconds)
    expect(Math.abs(late)).toBeLessThan(20)
  }
}

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (version, node) => {
  const [major, minor] = version.split('.').map(Number)

  /**
   * @param {string[]} args
   * @param {string} [socket]
   * @param {NodeJS.ProcessEnv} [env]
   */
  const watched = (args, socket = path.join(folder, 'nobody.sock'), env = QUICK) =>
    spawnWatched({ node, args, socket, env })
  /**
   * @param {string[]} args
   * @param {NodeJS.ProcessEnv} [env]
   */
  const plain = (args, env) => spawnBounded(node, args, { env: environment(env) })

  describe.each(/** @type {const} */ (['unix', 'tcp']))('over %s', over => {
    it.each(Object.entries(SITUATIONS))(
      'a script ends on time and with its own exit code when the exporter %s',
      async (_, situation) => {
        const { socket, before, during, after } = await situation(over)
        const with_ = spawnWatched({
          node,
          before,
          args: ['-e', LIVES_A_WHILE],
          socket,
          env: QUICK
        })
        const without = plain(['-e', LIVES_A_WHILE])
        await during?.()
        const [{ seconds, ...end }, { seconds: plainSeconds, ...plainEnd }] = await Promise.all([
          with_.ended,
          without.ended
        ])
        expect(end).toEqual(plainEnd)
        expect(end).toEqual({ code: 7, signal: null, stdout: 'up\n', stderr: '' })
        expect(seconds).toBeLessThan(plainSeconds + LATER_SECONDS)
        after?.()
      }
    )

    it('a hung exporter gets all waiting lines complete once it reads again', async () => {
      const collector = await collect({ over, mode: 'hung' })
      const { ended, child } = spawnWatched({
        node,
        before: ['-r', fillsTheSocket],
        args: ['-e', 'setInterval(() => {}, 1000)'],
        socket: collector.address,
        env: QUICK
      })
      await collector.until(all => all[0])
      // Frames accumulate that exceed the buffer.
      await new Promise(resolve => setTimeout(resolve, 500))
      collector.wake()
      const connection = await collector.until(([first]) => first.frames.length >= 8 && first)
      child.kill()
      await ended
      expect(connection.broken).toEqual([])
      expect(connection.hello.pid).toBe(child.pid)
      expectAllInOrder(connection.frames)
    })

    it('frames that waited for an exporter arrive in order, with their own uptime', async () => {
      const collector = await collect({ over })
      const { ended, child } = watched(['-e', 'setInterval(() => {}, 1000)'], collector.address)
      await collector.until(([first]) => first?.frames.length >= 2)
      await collector.kill()
      await new Promise(resolve => setTimeout(resolve, 700))
      await collector.restart()
      const [first, second] = await collector.until(
        ([first, second]) => second?.frames.length >= 8 && [first, second]
      )
      child.kill()
      await ended
      const frames = [...first.frames, ...second.frames]
      // The kernel may accept data before it notices the end of the reader. This data is lost.
      const from = frames.findIndex(
        ({ sequence }, i) => i > 0 && sequence > frames[i - 1].sequence + 1
      )
      expect(from < 0 || frames[from].sequence - frames[from - 1].sequence <= 3).toBe(true)
      expectAllInOrder(second.frames)
    })

    it('after a long wait the agent has the newest frames, and counts dropped ones', async () => {
      const collector = await collect({ over })
      await collector.kill()
      const { ended, child } = watched(['-e', 'setInterval(() => {}, 1000)'], collector.address, {
        ...QUICK,
        MEMWATCH_INTERVAL_SECONDS: '0.1'
      })
      await new Promise(resolve => setTimeout(resolve, 5000))
      await collector.restart()
      // Wait for at least two frames that the agent read after it had connected.
      const { frames } = await collector.until(
        ([first]) =>
          first?.frames.length > 3 &&
          first.frames.at(-1).values.framesDropped === first.frames.at(-3).values.framesDropped &&
          first
      )
      child.kill()
      await ended
      const { framesDropped } = frames.at(-1).values
      expect(framesDropped).toBeGreaterThan(0)
      expect(frames[0].sequence).toBe(framesDropped + 1)
      expectAllInOrder(frames)
    })

    it('a restarted exporter gets a new hello, and counters continue', async () => {
      const collector = await collect({ over })
      const { ended, child } = watched(['-e', 'setInterval(() => {}, 1000)'], collector.address)
      await collector.until(([first]) => first?.frames.length >= 2)
      await collector.kill()
      await collector.restart()
      await collector.until(([, second]) => second?.frames.length >= 2)
      child.kill()
      await ended
      const [first, second] = collector.connections
      expect(second.hello).toEqual(first.hello)
      expect(second.frames[0].sequence).toBeGreaterThan(first.frames.at(-1).sequence)
      expect(second.frames[0].values.cpuUserSeconds).toBeGreaterThanOrEqual(
        first.frames.at(-1).values.cpuUserSeconds
      )
    })
  })

  it('a script that ends without a turn of the loop sends hello and bye', async () => {
    const collector = await collect()
    await watched(
      ['-e', 'for (const end = Date.now() + 300; Date.now() < end;); process.exit(3)'],
      collector.address
    ).ended
    const { hello, frames, bye } = await collector.until(([first]) => first?.closed && first)
    expect([hello?.pid > 0, frames.length, bye?.exitCode]).toEqual([true, 1, 3])
  })

  it('a script that ends before the agent is loaded sends nothing', async () => {
    const collector = await collect()
    const { code, stdout, stderr } = await watched(
      ['-e', 'process.exit(2)'],
      collector.address,
      {}
    ).ended
    expect([code, stdout, stderr, collector.connections]).toEqual([2, '', '', []])
  })

  it('a script that blocks from the start reports as soon as the block ends', async () => {
    // The agent loads one piece in a turn of the loop. The script lives for as many turns on a busy
    // machine, where a time would be over too early.
    const TURNS = 200
    const collector = await collect()
    await watched(
      ['-e', `
        for (const end = Date.now() + 400; Date.now() < end;);
        let turns = 0
        const timer = setInterval(() => { if (++turns === ${TURNS}) clearInterval(timer) }, 1)`],
      collector.address,
      {}
    ).ended
    const connection = await collector.until(all => all.find(({ bye }) => bye))
    expect(connection.frames.length).toBeGreaterThanOrEqual(2)
  })

  it('a script waits less than a second for a connect that nobody answers', async () => {
    // A listener that never accepts, and whose queue is full: the next connect stays pending.
    const stopped = spawnBounded(node, [
      '-e',
      `
      const server = require('net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
        console.log(server.address().port)
        process.kill(process.pid, 'SIGSTOP')
      })`
    ])
    const port = Number(await stopped.said('\n'))
    const fillers = Array.from({ length: 8 }, () =>
      net.connect({ host: '127.0.0.1', port }).on('error', () => {})
    )
    await new Promise(resolve => setTimeout(resolve, 200))
    try {
      const [{ seconds, code }, { seconds: plainSeconds }] = await Promise.all([
        watched(['-e', 'setTimeout(() => {}, 120)'], `tcp://127.0.0.1:${port}`, {
          MEMWATCH_INTERVAL_SECONDS: '60'
        }).ended,
        plain(['-e', 'setTimeout(() => {}, 120)']).ended
      ])
      expect(code).toBe(0)
      expect(seconds).toBeLessThan(plainSeconds + 1)
    } finally {
      for (const socket of fillers) socket.destroy()
      stopped.child.kill('SIGKILL')
      await stopped.ended
    }
  })

  it('a name that no server resolves does not delay the end of a script', async () => {
    const deaf = dgram.createSocket('udp4').bind(0, '127.0.0.1')
    await once(deaf, 'listening')
    const asksTheDeaf = file(`dns-${deaf.address().port}.js`, `
      const dns = require('dns'), { Resolver } = dns
      dns.Resolver = class extends Resolver {
        constructor (...args) { super(...args).setServers(['127.0.0.1:${deaf.address().port}']) }
      }`)
    const asked = once(deaf, 'message')
    try {
      const [{ seconds, code, stderr }, { seconds: plainSeconds }] = await Promise.all([
        spawnWatched({
          node,
          before: ['-r', asksTheDeaf],
          args: ['-e', 'setTimeout(() => {}, 120)'],
          socket: 'tcp://exporter.test:9'
        }).ended,
        plain(['-e', 'setTimeout(() => {}, 120)']).ended
      ])
      await asked
      expect([code, stderr]).toEqual([0, ''])
      expect(seconds).toBeLessThan(plainSeconds + 1)
    } finally {
      deaf.close()
    }
  })

  it('the agent finds an exporter by its host name', async () => {
    const collector = await collect({ over: 'tcp' })
    await watched(['-e', LIVES_A_WHILE], collector.address.replace('127.0.0.1', 'localhost')).ended
    expect(collector.connections[0]?.bye?.exitCode).toBe(7)
  })

  it('an uncaught exception ends the app with the same stack as without the agent', async () => {
    const code = "setTimeout(() => { throw new Error('of the app') }, 150)"
    const [end, plainEnd] = await Promise.all([
      watched(['-e', code]).ended,
      plain(['-e', code]).ended
    ])
    expect({ ...end, seconds: 0 }).toEqual({ ...plainEnd, seconds: 0 })
    expect(end.code).toBe(1)
    expect(end.stderr).toMatch(/Error: of the app\n {4}at /)
  })

  it('SIGTERM ends the app, or calls its handler once', async () => {
    const collector = await collect()
    const byDefault = watched(['-e', 'setInterval(() => {}, 1000)'], collector.address)
    const handled = watched(
      [
        '-e',
        "process.on('SIGTERM', () => { console.log('term'); process.exit(3) }); setInterval(() " +
          '=> {}, 1000)'
      ],
      collector.address
    )
    await collector.until(all => all.length === 2 && all.every(({ frames }) => frames.length > 0))
    byDefault.child.kill()
    handled.child.kill()
    expect(await byDefault.ended).toMatchObject({
      code: null,
      signal: 'SIGTERM',
      stdout: '',
      stderr: ''
    })
    expect(await handled.ended).toMatchObject({
      code: 3,
      signal: null,
      stdout: 'term\n',
      stderr: ''
    })
  })

  it('an invalid option turns the agent off and leaves the app alone', async () => {
    const collector = await collect()
    const end = await watched(['-e', LIVES_A_WHILE], collector.address, {
      MEMWATCH_INTERVAL_SECONDS: 'often'
    }).ended
    expect(end).toMatchObject({ code: 7, stdout: 'up\n', stderr: '' })
    expect(collector.connections).toEqual([])
  })

  it('containers of a pod are separate targets, though host name and pid are equal', async () => {
    const collector = await collect()
    const pod = {
      MEMWATCH_POD_UID: 'u-1',
      MEMWATCH_POD_NAME: 'shop-5d4c',
      MEMWATCH_POD_NAMESPACE: 'default'
    }
    await watched(['-e', LIVES_A_WHILE], collector.address, { ...pod, MEMWATCH_CONTAINER: 'app' })
      .ended
    expect(collector.connections[0].hello.pod).toEqual({
      uid: 'u-1',
      name: 'shop-5d4c',
      namespace: 'default',
      container: 'app'
    })
    const { processOf } = require('../../engine/history/identity')
    const [app, worker, none] = ['app', 'worker', undefined].map(container =>
      processOf({ ...collector.connections[0].hello, pid: 1, pod: container && { container } })
    )
    expect(new Set([app, worker, none]).size).toBe(3)
  })

  it('npm does not report, and the app that it starts reports once', async () => {
    const collector = await collect()
    file(
      'app/package.json',
      '{ "name": "started-by-npm", "scripts": { "start": "node server.js" } }'
    )
    file('app/server.js', 'setTimeout(() => {}, 300)')
    // npm's main module, run by this Node; PATH makes its children use this Node, too.
    const npm = path.join(folder, 'node_modules/npm/bin/npm-cli.js')
    if (!fs.existsSync(npm)) {
      file(
        'node_modules/npm/bin/npm-cli.js',
        `
      const { status } = require('child_process').spawnSync('/bin/sh', ['-c', require(process.cwd() + '/package.json').scripts.start], { stdio: 'inherit' })
      process.exitCode = status`
      )
    }
    const { code } = await spawnBounded(node, [npm, 'start'], {
      cwd: path.join(folder, 'app'),
      env: environment({
        ...QUICK,
        NODE_OPTIONS: `-r ${AGENT}`,
        MEMWATCH_SOCKET: collector.address,
        PATH: `${path.dirname(node)}:${process.env.PATH}`
      })
    }).ended
    expect(code).toBe(0)
    expect(collector.connections.map(({ hello }) => hello.name)).toEqual(['started-by-npm'])
  })

  it('every process of a cluster says hello', async () => {
    const collector = await collect()
    const app = file('cluster.js', `
      const cluster = require('cluster')
      if (cluster.isPrimary) for (let i = 0; i < 4; i++) cluster.fork()
      else setTimeout(() => process.exit(0), 500)`)
    const { code } = await watched([app], collector.address).ended
    expect(code).toBe(0)
    expect(new Set(collector.connections.map(({ hello }) => hello.pid)).size).toBe(5)
    expect(collector.connections).toHaveLength(5)
  })

  it('workers report values of their isolate, and none of the process', async () => {
    const { fields } = require('../../agent/protocol/frame')
    const collector = await collect()
    const app = file(
      'workers.js',
      `
      const { Worker, isMainThread } = require('worker_threads')
      if (!isMainThread) setTimeout(() => process.exit(5), 600)
      else {
        for (let i = 0; i < 7; i++) new Worker(__filename).on('exit', code => { if (code !== 5) process.exitCode = 1 })
        new Worker('setTimeout(() => {}, 600)', { eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 } })
      }`
    )
    const { code, stderr } = await watched([app], collector.address).ended
    expect([code, stderr]).toEqual([0, ''])
    const [main, ...workers] = [...collector.connections].sort(
      (a, b) => a.hello.threadId - b.hello.threadId
    )
    expect(workers.map(({ hello }) => hello.threadId)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(workers.map(({ bye }) => bye?.exitCode)).toEqual([5, 5, 5, 5, 5, 5, 5, 0])
    expect(workers[7].hello.resourceLimits.maxOldGenerationSizeMb).toBe(64)
    expect(main.hello).not.toHaveProperty('resourceLimits')
    const scopes = ({ frames }) =>
      new Set(frames.flatMap(({ values }) => Object.keys(values)).map(name => fields[name].scope))
    expect([...scopes(main)].sort()).toEqual(['isolate', 'process'])
    for (const worker of workers) expect([...scopes(worker)]).toEqual(['isolate'])
    for (const worker of workers) {
      expect(worker.frames[0].uptimeSeconds).toBeLessThan(main.frames.at(-1).uptimeSeconds)
    }
    expect(
      collector.connections
        .flatMap(({ frames }) => frames.map(({ values }) => values.agentErrors))
        .every(errors => errors === 0)
    ).toBe(true)
  })

  it('the exit code of a worker is not that of the process', async () => {
    const code =
      "new (require('worker_threads').Worker)('process.exit(9)', { eval: true }).on('exit', " +
        'code => { process.exitCode = code - 5 })'
    expect(await watched(['-e', code]).ended).toMatchObject({ code: 4, stdout: '', stderr: '' })
  })

  const imports = major > 18 || minor >= 18
  ;(imports ? it : it.skip)('loads by --import into an ES module, too', async () => {
    const collector = await collect()
    const app = file(
      'app.mjs',
      'import { setTimeout as wait } from "node:timers/promises"; await wait(300); ' +
        'process.exitCode = 4'
    )
    const end = await spawnBounded(node, ['--import', AGENT, app], {
      env: environment({ ...QUICK, MEMWATCH_SOCKET: collector.address })
    }).ended
    expect(end).toMatchObject({ code: 4, stdout: '', stderr: '' })
    expect(collector.connections).toHaveLength(1)
    expect(collector.connections[0].bye.exitCode).toBe(4)
  })

  it('only one of two installed copies reports', async () => {
    const collector = await collect()
    const copy = path.join(folder, 'copy')
    fs.cpSync(path.dirname(AGENT), copy, { recursive: true })
    const { code } = await watched(
      [
        '-r',
        path.join(copy, 'index.js'),
        '-e',
        "new (require('worker_threads').Worker)('setTimeout(() => {}, 300)', { eval: true })"
      ],
      collector.address
    ).ended
    expect(code).toBe(0)
    expect(collector.connections.map(({ hello }) => hello.threadId).sort()).toEqual([0, 1])
  })

  ;(major >= 20 ? it : it.skip)(
    'the permission model denies it some sources, and the app runs',
    async () => {
      const collector = await collect()
      const flag = major >= 22 ? '--permission' : '--experimental-permission'
      const app = file('closed.js', 'setTimeout(() => console.log("up"), 300)')
      const end = await watched(
        [flag, `--allow-fs-read=${path.dirname(AGENT)}/*`, `--allow-fs-read=${folder}/*`, app],
        collector.address
      ).ended
      expect(end).toMatchObject({ code: 0, stdout: 'up\n' })
      expect(
        end.stderr.replace(
          /^\(node:\d+\) ExperimentalWarning: Permission.*\n.*--trace-warnings.*\n/,
          ''
        )
      ).toBe('')
    }
  )
})

it('the preload parses on Node.js 10, which a global preload also reaches', () => {
  const { body } = require('acorn').parse(fs.readFileSync(AGENT, 'utf8'), {
    ecmaVersion: 2018,
    sourceType: 'script'
  })
  const [fence, ...others] = body.filter(statement => statement.type === 'TryStatement')
  expect([fence.handler?.type, others]).toEqual(['CatchClause', []])
  const outside = body.filter(
    ({ type }) => type !== 'TryStatement' && type !== 'FunctionDeclaration'
  )
  expect(JSON.stringify(outside)).not.toContain('"name":"require"')
})

it('its files contain Latin-1 only: any other character doubles V8’s memory for a file', () => {
  const agent = path.dirname(AGENT)
  const files = fs
    .readdirSync(agent, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.js'))
  expect(files.length).toBeGreaterThan(30)
  expect(
    // eslint-disable-next-line no-control-regex
    files.filter(name => /[^\x00-\xff]/.test(fs.readFileSync(path.join(agent, name), 'utf8')))
  ).toEqual([])
})
