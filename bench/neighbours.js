'use strict'

/**
 * `npm run bench:neighbours` checks that the agent works beside other tools in an app. Each
 * neighbour runs for real, with an exporter. App and neighbour must work as without the agent, and
 * the agent must report. Where the agent cannot run, it must be silent and cost nothing.
 *
 *   npm run bench:neighbours all; the first run installs the tools into bench/neighbours (800 MB)
 *   npm run bench:neighbours -- --only pm2,jest
 *   npm run bench:neighbours -- --node /path/to/node24
 *
 * Ends with 1 when one of these claims fails. It prints the neighbours that could not be installed.
 */

const dgram = require('node:dgram')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { startExporter, eventually } = require('../test/support/exporter')

const FOLDER = path.join(__dirname, 'neighbours')
const MODULES = path.join(FOLDER, 'node_modules')
const AGENT = path.join(__dirname, '../agent/index.js')
const STARTED_MS = 60_000

const { values: given } = parseArgs({
  options: { node: { type: 'string', default: process.execPath }, only: { type: 'string' } }
})

/**
 * Work of every app: some garbage, so that GCs run, and an answer to the request to end.
 */
const WORK =
  'const kept = []; setInterval(() => { for (let i = 0; i < 20_000; i++) kept[i % 1000] = { i, ' +
    'text: String(i) } }, 50); process.on("SIGTERM", () => process.exit(0))'

/**
 * @typedef {object} Stage environment in which a neighbour runs
 * @property {string} folder a folder of its own, removed after the run
 * @property {Awaited<ReturnType<typeof startExporter>>} exporter
 * @property {Record<string, string>} env environment that preloads the agent by NODE_OPTIONS
 * @property {(name: string, content: string) => string} file writes one into the folder
 * @property {(command: string, args: string[], env?: Record<string, string>) => App} start
 * @property {(accept?: (target: any) => boolean) => Promise<any>} target resolves to a watched
 *   target that has reported GCs
 *
 * @typedef {object} App
 * @property {() => string} output output of both streams so far
 * @property {(pattern: RegExp) => Promise<string[]>} said waits for it
 * @property {() => Promise<number | null>} stop
 * @property {Promise<number | null>} ended its exit code
 */

/**
 * @type {Record<string, (stage: Stage) => Promise<void>>} checks of neighbours by name; each throws
 *   on a failed claim
 */
const neighbours = {
  async 'prom-client, a registry of the app' ({ file, start, target }) {
    const app = start(given.node, [
      file(
        'app.js',
        `const client = require('prom-client'); client.collectDefaultMetrics(); ${WORK}; ` +
          'setInterval(async () => console.log(await client.register.metrics()), 500)'
      )
    ])
    await target()
    await app.said(/nodejs_gc_duration_seconds_count\{kind="minor"\} [1-9]/)
    await app.stop()
  },
  async 'OpenTelemetry runtime metrics' ({ file, start, target }) {
    const app = start(given.node, [
      file(
        'app.js',
        `
      const { MeterProvider, PeriodicExportingMetricReader, ConsoleMetricExporter } = require('@opentelemetry/sdk-metrics')
      const { RuntimeNodeInstrumentation } = require('@opentelemetry/instrumentation-runtime-node')
      const { registerInstrumentations } = require('@opentelemetry/instrumentation')
      registerInstrumentations({ meterProvider: new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: new ConsoleMetricExporter(), exportIntervalMillis: 500, exportTimeoutMillis: 400 })] }), instrumentations: [new RuntimeNodeInstrumentation()] }); ${WORK}`
      )
    ])
    await target()
    await app.said(/v8js\.gc\.duration/)
    await app.stop()
  },
  async 'dd-trace runtime metrics' ({ file, start, target }) {
    const sink = dgram.createSocket('udp4')
    let heard = ''
    sink.on('message', message => { heard += message })
    sink.bind(0, '127.0.0.1')
    await once(sink, 'listening')
    const app = start(
      given.node,
      [
        file(
          'app.js',
          `require('dd-trace').init({ runtimeMetrics: true, startupLogs: false }); ${WORK}`
        )
      ],
      {
        DD_DOGSTATSD_PORT: String(sink.address().port),
        DD_DOGSTATSD_HOSTNAME: '127.0.0.1',
        DD_TRACE_ENABLED: 'true',
        DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
        DD_REMOTE_CONFIGURATION_ENABLED: 'false',
        DD_RUNTIME_METRICS_FLUSH_INTERVAL: '1000'
      }
    )
    await target()
    await eventually(() => heard, text => text.includes('runtime.node.'), STARTED_MS)
    await app.stop()
    sink.close()
  },
  async 'New Relic' ({ file, start, target }) {
    const app = start(
      given.node,
      [
        '-r',
        'newrelic',
        file('app.js', `${WORK}; console.log('agent', typeof require('newrelic').recordMetric)`)
      ],
      {
        NEW_RELIC_LICENSE_KEY: 'x'.repeat(40),
        NEW_RELIC_APP_NAME: 'shop',
        NEW_RELIC_HOST: '127.0.0.1',
        NEW_RELIC_PORT: '9',
        NEW_RELIC_LOG_ENABLED: 'false'
      }
    )
    await app.said(/agent function/)
    await target()
    await app.stop()
  },
  async '--inspect, and a profile of ours beside it' ({ file, start, target, exporter }) {
    const app = start(given.node, ['--inspect=127.0.0.1:0', file('app.js', WORK)])
    await app.said(/Debugger listening/)
    const { target: name } = await target()
    const asked = /** @type {any} */ (await (await fetch(`${exporter.url}/api/v1/targets/${name}/captures?kind=cpu_profile&seconds=1`, { method: 'POST' })).json())
    const capture = await eventually(async () => /** @type {any} */ (await (await exporter.get(`/api/v1/captures/${asked.id}`)).json()), ({ state }) => state !== 'running', 30_000)
    if (capture.state !== 'done') throw new Error(`the capture: ${capture.error}`)
    await app.stop()
  },
  async 'an ESM loader (tsx), TypeScript' ({ file, start, target }) {
    const app = start(given.node, [
      '--import',
      'tsx',
      file(
        'app.ts',
        'const words: string = \'typed\'; console.log(words); ' +
          `${WORK.replace('kept = []', 'kept: object[] = []')}`
      )
    ])
    await app.said(/typed/)
    await target()
    await app.stop()
  },
  async 'the permission model' ({ file, start, target }) {
    const flag =
      process.allowedNodeEnvironmentFlags.has('--permission') ||
      Number(execFileSync(given.node, ['-p', 'process.versions.node.split(".")[0]'])) >= 22
        ? '--permission'
        : '--experimental-permission'
    const more = execFileSync(given.node, ['--help'], { encoding: 'utf8' }).includes('--allow-net')
      ? ['--allow-net']
      : []
    const app = start(given.node, [
      flag,
      '--allow-fs-read=*',
      ...more,
      file('app.js', `${WORK}; console.log('permitted', process.permission.has('fs.write'))`)
    ])
    await app.said(/permitted false/)
    await target()
    await app.stop()
  },
  async 'esbuild, one file with the agent in it' ({ folder, file, start, target, env }) {
    const entry = file(
      'app.js',
      `require(${JSON.stringify(AGENT)}); console.log('bundled'); ${WORK}`
    )
    require(path.join(MODULES, 'esbuild')).buildSync({
      entryPoints: [entry],
      bundle: true,
      platform: 'node',
      outfile: path.join(folder, 'dist/bundle.js'),
      logLevel: 'error'
    })
    const app = start(given.node, [path.join(folder, 'dist/bundle.js')], {
      ...env,
      NODE_OPTIONS: ''
    })
    await app.said(/bundled/)
    await target()
    await app.stop()
  },
  async 'pm2, one process and a cluster' ({ folder, file, start, target, env, exporter }) {
    const home = { ...env, PM2_HOME: path.join(folder, 'pm2') }
    const pm2 = (/** @type {string[]} */ args, /** @type {Record<string, string>} */ more = {}) => start(given.node, [path.join(MODULES, 'pm2/bin/pm2'), ...args], { ...home, ...more }).ended
    try {
      await pm2(['start', file('one.js', WORK), '--name', 'one'])
      await target()
      await pm2([
        'start',
        file('many.js', `${WORK}; require('http').createServer().listen(0)`),
        '--name',
        'many',
        '-i',
        '2'
      ])
      // The daemon is not an app, so the exporter watches three processes, not four.
      for (const name of ['shop', 'shop-2', 'shop-3']) await target(({ target }) => target === name)
      if (exporter.exporter.targets.length !== 3) {
        throw new Error(`watched: ${exporter.exporter.targets.map(({ name }) => name)}`)
      }
    } finally {
      await pm2(['kill'])
    }
  },
  async 'cluster' ({ file, start, target }) {
    const app = start(given.node, [
      file(
        'app.js',
        'const cluster = require(\'node:cluster\'); if (cluster.isPrimary) { cluster.fork(); ' +
          `cluster.fork() }; ${WORK}`
      )
    ])
    for (const name of ['shop', 'shop-2', 'shop-3']) await target(({ target }) => target === name)
    await app.stop()
  },
  async 'Next.js, standalone' ({ folder, file, start, target, env }) {
    for (const name of ['next', 'react', 'react-dom']) {
      if (!fs.existsSync(path.join(MODULES, name))) throw new Error(`${name} is not installed`)
    }
    fs.mkdirSync(path.join(folder, 'app'))
    file(
      'app/layout.js',
      'export default function Layout ({ children }) { return ' +
        '<html><body>{children}</body></html> }'
    )
    file(
      'app/page.js',
      'export const dynamic = "force-dynamic"; export default function Page () { return ' +
        '<p>hello from next</p> }'
    )
    file(
      'next.config.js',
      'module.exports = { output: \'standalone\', outputFileTracingRoot: ' +
        `${JSON.stringify(folder)}, telemetry: false }`
    )
    file('package.json', '{"name":"shop","dependencies":{"next":"*","react":"*","react-dom":"*"}}')
    const built = start(
      given.node,
      [path.join(MODULES, 'next/dist/bin/next'), 'build', '--webpack'],
      { ...env, NODE_OPTIONS: '', NEXT_TELEMETRY_DISABLED: '1' }
    )
    if (await built.ended !== 0) throw new Error(built.output().slice(-1500))
    const [server] = fs
      .readdirSync(path.join(folder, '.next/standalone'), { recursive: true, encoding: 'utf8' })
      .filter(name => path.basename(name) === 'server.js' && !name.includes('node_modules'))
    const app = start(given.node, [path.join(folder, '.next/standalone', server)], {
      HOSTNAME: '127.0.0.1',
      PORT: '0'
    })
    const [, url] = await app.said(/(http:\/\/127\.0\.0\.1:\d+)/)
    await eventually(
      async () =>
        await fetch(url)
          .then(answer => answer.text())
          .catch(() => ''),
      text => text.includes('hello from next'),
      STARTED_MS
    )
    await target()
    await app.stop()
  },
  async 'Jest itself' ({ folder, file, start, exporter }) {
    file('package.json', '{"name":"shop"}')
    for (const name of ['a', 'b']) {
      file(
        `${name}.test.js`,
        'test("passes", async () => { await new Promise(resolve => setTimeout(resolve, 1500)); ' +
          'expect(1).toBe(1) })'
      )
    }
    const app = start(given.node, [
      path.join(MODULES, 'jest/bin/jest.js'),
      '--rootDir',
      folder,
      '--maxWorkers',
      '2'
    ])
    if ((await app.ended) !== 0 || !/Tests: +2 passed/.test(app.output())) {
      throw new Error(app.output())
    }
    if (/did not exit|open handle/i.test(app.output())) throw new Error(app.output())
    await eventually(() => exporter.exporter.state.frames, frames => frames > 0)
  },
  async 'Bun: says nothing, costs nothing' (stage) {
    // The install script of the package may have moved the binary.
    const places = [
      path.join(MODULES, '@oven', `bun-${os.platform()}-${os.arch()}`, 'bin/bun'),
      path.join(MODULES, 'bun/bin/bun.exe')
    ]
    await silentUnder(stage, places.find(file => fs.existsSync(file)) ?? places[0], ['-r', AGENT])
  },
  async 'Deno: says nothing, costs nothing' (stage) {
    const preload = stage.file('preload.cjs', `require(${JSON.stringify(AGENT)})`)
    await silentUnder(
      stage,
      path.join(MODULES, '@deno', `${os.platform()}-${os.arch()}-glibc`, 'deno'),
      ['run', '-A', '--preload', preload]
    )
  }
}

/**
 * Checks another runtime: its script must run and end as without the agent.
 * @param {Stage} stage
 * @param {string} runtime
 * @param {string[]} args
 */
async function silentUnder ({ file, start, exporter, env }, runtime, args) {
  if (!fs.existsSync(runtime)) throw new Error(`${path.basename(runtime)} is not to be had here`)
  const app = start(
    runtime,
    [...args, file('app.cjs', "setTimeout(() => { console.log('done'); process.exit(3) }, 1500)")],
    { ...env, NODE_OPTIONS: '' }
  )
  const code = await app.ended
  if (code !== 3 || app.output().trim() !== 'done') {
    throw new Error(`exit code ${code}: ${app.output()}`)
  }
  if (exporter.exporter.state.frames > 0) throw new Error('it was watched')
}

/**
 * @param {string} title
 * @param {(stage: Stage) => Promise<void>} work
 */
async function run (title, work) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'memwatch-neighbour-'))
  fs.symlinkSync(MODULES, path.join(folder, 'node_modules'))
  const exporter = await startExporter({ autoCaptures: false })
  const env = /** @type {Record<string, string>} */ ({ ...process.env, NODE_OPTIONS: `--require ${AGENT}`, MEMWATCH_SOCKET: 'path' in exporter.socket ? exporter.socket.path : '', MEMWATCH_NAME: 'shop', MEMWATCH_INTERVAL_SECONDS: '0.5' })
  /** @type {App[]} */
  const started = []
  try {
    await work({
      folder,
      exporter,
      env,
      file (name, content) {
        fs.writeFileSync(path.join(folder, name), content)
        return path.join(folder, name)
      },
      start (command, args, more = {}) {
        const child = spawn(command, args, { cwd: folder, env: { ...env, ...more } })
        let output = ''
        for (const stream of [child.stdout, child.stderr]) {
          stream.on('data', chunk => {
            output += chunk
          })
        }
        const ended = once(child, 'close').then(([code]) => code)
        const app = {
          output: () => output,
          ended,
          said: async (/** @type {RegExp} */ pattern) =>
            /** @type {string[]} */ (
              await eventually(() => pattern.exec(output), Boolean, STARTED_MS).catch(() => {
                throw new Error(`it did not say ${pattern}: ${output.slice(-1500)}`)
              })
            ),
          stop: async () => {
            child.kill()
            return ended
          }
        }
        started.push(app)
        return app
      },
      target: async (accept = () => true) =>
        (
          await eventually(
            async () => /** @type {any[]} */ (await (await exporter.get('/api/v1/targets')).json()),
            targets =>
              targets.some(
                target =>
                  accept(target) &&
                  target.up &&
                  Object.keys(target.values.gc ?? {}).length > 0 &&
                  !target.values.agentErrors
              ),
            STARTED_MS
          )
        ).find(accept)
    })
    console.log(`right  ${title}`)
  } catch (error) {
    process.exitCode = 1
    console.log(`WRONG  ${title}: ${/** @type {Error} */ (error).message}`)
  } finally {
    for (const app of started) await app.stop()
    await exporter.stop()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

async function main () {
  if (!fs.existsSync(MODULES)) {
    console.log('installing the neighbours into bench/neighbours …')
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], {
      cwd: FOLDER,
      stdio: 'inherit'
    })
  }
  const wanted = given.only?.split(',')
  const chosen = Object.entries(neighbours).filter(
    ([title]) => !wanted || wanted.some(word => title.toLowerCase().includes(word.toLowerCase()))
  )
  if (chosen.length === 0) throw new Error(`--only: none of ${Object.keys(neighbours).join('; ')}`)
  for (const [title, work] of chosen) await run(title, work)
}

main()
