'use strict'

/**
 * `npm run bench:overhead` measures the cost of memwatch for an app, beside that of other tools.
 * The same app runs with nothing, with nothing again (a difference of that size is noise), and with
 * memwatch and an exporter. It also runs with three other tools: prom-client's default metrics
 * scraped each second, OpenTelemetry's runtime metrics by OTLP each second, and dd-trace's runtime
 * metrics. Rounds are interleaved, and each begins with another variant. With --write the medians
 * and the spread of the differences to "nothing" in the same round go into docs/overhead.md.
 *
 * The cost of a GC, and of a second of the agent, is below the noise of those rounds: npm run
 * bench:overhead-work measures this cost with a fixed amount of work.
 *
 *   npm run bench:overhead -- --nodes /path/to/node20:/path/to/node24 --rounds 7 --write
 *   npm run bench:overhead -- --variants memwatch --apps api --rounds 3
 *
 * The first run installs the other tools into bench/overhead (some 160 MB). A round takes about ten
 * seconds for each variant and app. Results in --out are not measured again; --recorded runs
 * nothing, and shows these results.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { freePort } = require('../test/support/free-port')
const { parseOptions } = require('./options')
const { FOLDER, installCompared, scrapeEachSecond, startSinks } = require('./overhead-sinks')
const { overheadPage } = require('./overhead-page')
const { profileFlags, shareOf } = require('./overhead-share')

const VARIANTS = ['none', 'none-again', 'memwatch', 'prom-client', 'opentelemetry', 'dd-trace']
const APPS = ['api', 'allocating', 'idle']
const WARM_SECONDS = 2
/**
 * Duration for an idle app: long enough for V8's cleanup after the start, and for rare readings.
 */
const IDLE_WARM_SECONDS = 15
const IDLE_SECONDS = 30

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  variants: { type: 'string', default: VARIANTS.slice(1).join(',') },
  apps: { type: 'string', default: APPS.join(',') },
  rounds: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '5' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-overhead') },
  recorded: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false }
})
const variants = ['none', ...given.variants.split(',')]
for (const variant of variants) {
  if (!VARIANTS.includes(variant)) {
    throw new Error(`--variants: expected some of ${VARIANTS.join(', ')}, got ${variant}`)
  }
}
for (const app of given.apps.split(',')) {
  if (!APPS.includes(app)) {
    throw new Error(`--apps: expected some of ${APPS.join(', ')}, got ${app}`)
  }
}
fs.mkdirSync(given.out, { recursive: true })

/**
 * @typedef {object} Run costs of one app with one variant
 * @property {string} node
 * @property {string} app
 * @property {string} variant
 * @property {number} round
 * @property {number} startedMs time from the start of the process to listening
 * @property {number} rss bytes at the end
 * @property {number} anon anonymous part of that, in bytes
 * @property {number} heapTotal
 * @property {number} cpuShare share of a core
 * @property {number | null} loopsPerSecond
 * @property {number} [requestsPerSecond]
 * @property {number} [cpuMicrosPerRequest]
 * @property {number} [p50Ms]
 * @property {number} [p99Ms]
 */

/** @typedef {{ node: string, app: string } & ReturnType<typeof shareOf>} Share */

/**
 * Closed-loop load from another process.
 * @param {number} port
 * @param {number} seconds
 * @returns {Promise<any>} autocannon's result
 */
async function load (port, seconds) {
  const child = spawn(
    process.execPath,
    [
      path.join(FOLDER, 'node_modules/autocannon/autocannon.js'),
      '-c',
      '16',
      '-d',
      String(seconds),
      '-j',
      '-n',
      `http://127.0.0.1:${port}/rows/7`
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] }
  )
  let text = ''
  child.stdout.on('data', chunk => { text += chunk })
  await once(child, 'close')
  return JSON.parse(text)
}

/**
 * @param {string} node
 * @param {string} major
 * @param {string} app
 * @param {string} variant
 * @param {number} round
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Run>}
 */
async function runOnce (node, major, app, variant, round, env) {
  const scrapePort = await freePort()
  const child = spawn(
    node,
    ['-r', path.join(FOLDER, 'variants', `${variant}.js`), path.join(FOLDER, 'app.js'), app],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { ...process.env, ...env, SCRAPE_PORT: String(scrapePort), NODE_OPTIONS: '' }
    }
  )
  const ask = async () => {
    child.send('report')
    const [report] = await once(child, 'message')
    return { ...report, at: performance.now() }
  }
  const scrape = variant === 'prom-client' ? scrapeEachSecond(scrapePort) : undefined
  try {
    const [{ port, startedMs }] = await once(child, 'message')
    const seconds = Number(given.seconds)
    if (app === 'idle') await wait(1000 * IDLE_WARM_SECONDS)
    else await load(port, WARM_SECONDS)
    const before = await ask()
    const loaded = app === 'idle' ? await wait(1000 * IDLE_SECONDS) : await load(port, seconds)
    const after = await ask()
    const status = fs.readFileSync(`/proc/${child.pid}/status`, 'latin1')
    const took = (after.at - before.at) / 1000
    const cpu = after.cpuSeconds - before.cpuSeconds
    return {
      node: major,
      app,
      variant,
      round,
      startedMs,
      rss: after.rss,
      anon: Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) * 1024,
      heapTotal: after.heapTotal,
      cpuShare: cpu / took,
      loopsPerSecond: after.loops === null ? null : (after.loops - before.loops) / took,
      ...(loaded && {
        requestsPerSecond: loaded.requests.average,
        cpuMicrosPerRequest: cpu / loaded.requests.total * 1e6,
        p50Ms: loaded.latency.p50,
        p99Ms: loaded.latency.p99
      })
    }
  } finally {
    clearInterval(scrape)
    child.kill('SIGKILL')
    await once(child, 'close').catch(() => {})
  }
}

/**
 * A separate run, as the profiler itself takes CPU time.
 * @param {string} node
 * @param {string} app
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<ReturnType<typeof shareOf>>}
 */
async function runProfiled (node, app, env) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-profile-'))
  const child = spawn(
    node,
    [
      ...profileFlags(folder),
      '-r',
      path.join(FOLDER, 'variants/memwatch.js'),
      path.join(FOLDER, 'app.js'),
      app
    ],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { ...process.env, ...env, NODE_OPTIONS: '' }
    }
  )
  const [{ port }] = await once(child, 'message')
  await load(port, WARM_SECONDS + 2 * Number(given.seconds))
  child.send('end')
  await once(child, 'close')
  const share = shareOf(folder)
  fs.rmSync(folder, { recursive: true })
  return share
}

/** Owners of the main thread's time, for each profiled Node and app. @returns {Share[]} */
const recordedShares = () =>
  fs
    .readdirSync(given.out)
    .filter(name => name.endsWith('-share.json'))
    .map(name => JSON.parse(fs.readFileSync(path.join(given.out, name), 'utf8')))

/** Results of earlier runs, in the order of the page. @returns {Run[]} */
const recorded = () =>
  fs
    .readdirSync(given.out)
    .filter(name => /-\d+\.json$/.test(name))
    .map(name => JSON.parse(fs.readFileSync(path.join(given.out, name), 'utf8')))
    .sort(
      (a, b) =>
        a.node.localeCompare(b.node) ||
        APPS.indexOf(a.app) - APPS.indexOf(b.app) ||
        VARIANTS.indexOf(a.variant) - VARIANTS.indexOf(b.variant) ||
        a.round - b.round
    )

/** @param {Run[]} runs */
function show (runs) {
  const page = overheadPage(runs, recordedShares())
  console.log(page)
  if (given.write) fs.writeFileSync(path.join(__dirname, '../docs/overhead.md'), page)
}

async function main () {
  if (given.recorded) return show(recorded())
  installCompared()
  const sinks = await startSinks()
  /** @type {Run[]} */
  const runs = []
  try {
    for (const node of given.nodes.split(':')) {
      const major = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
      for (let round = 0; round < Number(given.rounds); round++) {
        for (const app of given.apps.split(',')) {
          const one = async (/** @type {string} */ variant) => {
            const file = path.join(given.out, `${major}-${app}-${variant}-${round}.json`)
            if (!fs.existsSync(file)) {
              fs.writeFileSync(
                file,
                JSON.stringify(await runOnce(node, major, app, variant, round, sinks.env))
              )
            }
            const run = JSON.parse(fs.readFileSync(file, 'utf8'))
            runs.push(run)
            console.log(JSON.stringify(run))
          }
          // Each round begins with another variant, so that a drift does not always affect the same
          // one.
          const order = variants.map((_, i) => variants[(i + round) % variants.length])
          // Idle apps do not disturb each other, so all variants run at the same time.
          if (app === 'idle') await Promise.all(order.map(one))
          else for (const variant of order) await one(variant)
        }
      }
      for (const app of given.apps.split(',')) {
        const file = path.join(given.out, `${major}-${app}-share.json`)
        if (app !== 'idle' && !fs.existsSync(file)) {
          fs.writeFileSync(
            file,
            JSON.stringify({ node: major, app, ...(await runProfiled(node, app, sinks.env)) })
          )
        }
      }
    }
  } finally {
    sinks.stop()
  }
  show(runs)
}

main()
