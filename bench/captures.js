'use strict'

/**
 * `npm run bench:captures` checks that captures name the right line, and measures their cost.
 *
 *   npm run bench:captures -- --nodes /path/to/node20:/path/to/node26
 *   npm run bench:captures -- --only suspects            or automatic, throughput, addon, snapshot
 *
 *   suspects: apps of bench/suspect-apps.js. The culprit must be among the first three suspects,
 *     and a blocking call must be named.
 *   automatic: lab apps that leak or block. The same for the automatic profile beside the verdict.
 *   throughput: an HTTP API during an automatic capture, compared with the seconds before and
 *     after.
 *   addon: the same with v8-profiler-next, compiled for each Node, in an app without an inspector.
 *     Prints the refusal where it does not compile.
 *   snapshot: cost of a snapshot of a few hundred megabytes with the agent, beside V8's own.
 *
 * It ends with 1 if fewer than nine of ten leaks, or not all blocking calls, are named. Figures
 * that depend on the machine are printed, and not checked.
 */

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { median, min, max } = require('simple-statistics')
const { apps } = require('../lab')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { startExporter, eventually } = require('../test/support/exporter')
const { versionOf } = require('../test/support/agent-collector')
const { parseOptions } = require('./options')
const { rssOf } = require('./process-reading')
const { suspectApps, KEEPER } = require('./suspect-apps')

const MIB = 2 ** 20
const AGENT = path.join(__dirname, '../agent/index.js')
const AT_ONCE = 3
/**
 * Time limit of an automatic capture. A leak of the lab is suspected after tens of seconds, and
 * profiled for half a minute.
 */
const AUTOMATIC_MS = 240_000
const FIRST_SUSPECTS = 3
/** Number of interleaved windows in which throughput is measured. */
const ROUNDS = 4

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  only: { type: 'string' }
})
const nodes = given.nodes.split(':')
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-captures-'))

/**
 * @param {string} name
 * @param {string} code
 * @returns {string} path of a script in a package of its own
 */
function script (name, code) {
  const at = path.join(folder, name.replace(/\W+/g, '-'))
  fs.mkdirSync(path.join(at, 'node_modules/keeper'), { recursive: true })
  fs.writeFileSync(path.join(at, 'package.json'), '{"name":"app"}')
  fs.writeFileSync(path.join(at, 'node_modules/keeper/index.js'), KEEPER)
  fs.writeFileSync(path.join(at, 'app.js'), code)
  return path.join(at, 'app.js')
}

/**
 * Starts an app, and an exporter that watches it.
 * @param {{ node: string, args: string[], autoCaptures?: boolean, env?: object, cwd?: string,
 *   limitBytes?: number }} options
 */
async function watch ({ node, args, autoCaptures = false, env = {}, cwd, limitBytes }) {
  const exporter = await startExporter({ autoCaptures })
  const group =
    limitBytes === undefined ? undefined : createMemoryGroup({ limitBytes, name: 'captures' })
  const { command, args: wrapped } = group
    ? group.wrap(node, ['-r', AGENT, ...args])
    : { command: node, args: ['-r', AGENT, ...args] }
  const child = spawn(command, wrapped, {
    cwd,
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      MEMWATCH_SOCKET: exporter.socket.path,
      MEMWATCH_NAME: 'app',
      ...env
    },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const ended = once(child, 'close')
  const json = async (/** @type {string} */ at, /** @type {RequestInit} */ init = {}) =>
    (await fetch(`${exporter.url}/api/v1/${at}`, init)).json()
  child.stdout.resume()
  await eventually(() => json('targets'), found => found.length > 0, 60_000)
  return {
    exporter,
    child,
    json,
    /**
     * @param {string} query
     * @returns {Promise<any>}
     */
    async capture (query) {
      const asked = await json(`targets/app/captures?${query}`, { method: 'POST' })
      if (asked.code) throw new Error(asked.detail)
      return eventually(
        () => json(`captures/${asked.id}`),
        capture => capture.state !== 'running',
        900_000
      )
    },
    async stop () {
      child.kill('SIGKILL')
      await ended
      await exporter.stop()
      await group?.remove()
    }
  }
}

/**
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => Promise<void>} work work for one item; several run at the same time
 */
async function each (items, work) {
  const left = [...items]
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let item = left.shift(); item; item = left.shift()) await work(item)
    })
  )
}

/** Suspects of all captures, by kind. */
const count = { leaks: [0, 0], calls: [0, 0] }
/**
 * @param {'leaks' | 'calls'} what
 * @param {boolean} right
 */
const tally = (what, right) => {
  count[what][1]++
  if (right) count[what][0]++
}
/** @param {any} suspects */
const firstOf = suspects => (suspects?.sites ?? []).slice(0, FIRST_SUSPECTS)

/** @param {string} node */
async function suspects (node) {
  await each(suspectApps, async ({ id, kind, culprit, call, code }) => {
    const app = await watch({ node, args: [script(id, code)] })
    await wait(2000)
    const capture = await app.capture(`kind=${kind}&seconds=${kind === 'heap_profile' ? 15 : 5}`)
    await app.stop()
    const lines = code.split('\n')
    const first = firstOf(capture.suspects)
    // A closure in the line of the culprit counts as the culprit.
    const right = first.some((/** @type {any} */ site) => site.function === culprit || lines[site.line - 1]?.includes(`function ${culprit}`)) &&
      (call === undefined || first[0]?.call === call)
    tally(call === undefined ? 'leaks' : 'calls', right)
    console.log(
      `${right ? 'right' : 'WRONG'}  Node ${versionOf(node)}  ${id}: ` +
        `${capture.error ?? first[0]?.text}${right ? '' : JSON.stringify(first)}`
    )
  })
}

/** @param {string} node */
async function automatic (node) {
  const chosen = apps.filter(
    ({ diagnosis, suspect }) =>
      suspect && (diagnosis === 'js-heap-leak' || diagnosis === 'event-loop-blocked')
  )
  await each(
    chosen,
    async ({ id, diagnosis, script, nodeArgs = [], memoryLimitBytes, suspect }) => {
      const app = await watch({
        node,
        args: [...nodeArgs, script],
        autoCaptures: true,
        limitBytes: memoryLimitBytes
      })
      const began = performance.now()
      const found = await eventually(
        async () =>
          (await app.json('diagnoses'))
            .flatMap((/** @type {any} */ target) => target.verdicts)
            .find(
              (/** @type {any} */ verdict) => verdict.diagnosis === diagnosis && verdict.suspects
            )?.suspects,
        Boolean,
        AUTOMATIC_MS
      ).catch(() => undefined)
      const seconds = (performance.now() - began) / 1000
      await app.stop()
      const lines = fs.readFileSync(script, 'utf8').split('\n')
      const first = firstOf(found?.suspects)
      const right =
        suspect?.call !== undefined
          ? first[0]?.call === suspect.call
          : first.some(
            (/** @type {any} */ site) =>
              path.basename(site.file) === path.basename(script) &&
                suspect?.line?.test(lines[site.line - 1])
          )
      tally(suspect?.call === undefined ? 'leaks' : 'calls', right)
      console.log(
        `${right ? 'right' : 'WRONG'}  Node ${versionOf(node)}  ${id} after ` +
          `${seconds.toFixed(0)} s: ${first[0]?.text}${right ? '' : JSON.stringify(first)}`
      )
    }
  )
}

const API = `
const rows = Array.from({ length: 100 }, (_, i) => ({ i, name: 'row ' + i, price: i / 3 }))
require('node:http').createServer((request, response) => {
  const page = rows.filter(row => row.i % 2).map(row => ({ ...row, at: Date.now(), tags: ['a' + row.i, 'b'] }))
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(page))
}).listen(0, '127.0.0.1', function () { require('node:fs').writeFileSync(process.argv[2], String(this.address().port)) })
`

/** @param {string} node */
async function throughput (node) {
  const portFile = path.join(folder, `port-${versionOf(node)}`)
  const app = await watch({ node, args: [script('api', API), portFile] })
  const port = Number(
    await eventually(
      () => (fs.existsSync(portFile) ? fs.readFileSync(portFile, 'utf8') : ''),
      text => text !== ''
    )
  )
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
  let served = 0
  const life = { over: false }
  const client = async () => {
    while (!life.over) {
      await new Promise(resolve =>
        http
          .get({ host: '127.0.0.1', port, agent }, response => response.resume().on('end', resolve))
          .on('error', resolve)
      )
      served++
    }
  }
  const clients = Array.from({ length: 16 }, client)
  /** Measures requests per second during some work. @param {() => Promise<unknown>} work */
  const rate = async work => {
    const [from, began] = [served, performance.now()]
    await work()
    return (served - from) / (performance.now() - began) * 1000
  }
  await wait(5000)
  for (const [kind, seconds] of /** @type {const} */ ([['heap_profile', 10], ['cpu_profile', 5]])) {
    const losses = []
    for (let round = 0; round < ROUNDS; round++) {
      const before = await rate(() => wait(5000))
      const [target] = app.exporter.exporter.targets
      // The exporter analyses the capture afterwards, which slows the clients in this process, but
      // not the app.
      const { finished } = app.exporter.exporter.captures.request(target, {
        kind,
        seconds,
        diagnosis: 'bench'
      })
      const during = await rate(() => wait(1000 * seconds))
      await finished
      await wait(500)
      const after = await rate(() => wait(5000))
      losses.push(100 * (1 - during / ((before + after) / 2)))
    }
    console.log(
      `Node ${versionOf(node)}  ${kind}: throughput ${(-median(losses)).toFixed(1)} % ` +
        `(${losses.map(loss => (-loss).toFixed(1)).join(', ')})`
    )
  }
  life.over = true
  await Promise.all(clients)
  agent.destroy()
  await app.stop()
}

/** Preloaded code that makes Node.js look like a build without an inspector. */
const NO_INSPECTOR = `
const Module = require('node:module'); const load = Module._load
Module._load = function (name, ...rest) { if (/^(node:)?inspector/.test(name)) throw new Error('built without an inspector'); return load.call(this, name, ...rest) }
const v8 = require('node:v8'); delete v8.startCpuProfile; delete v8.startHeapProfile
`

/** @param {string} node */
async function addon (node) {
  const at = path.join(folder, `addon-${versionOf(node)}`)
  fs.mkdirSync(at)
  fs.writeFileSync(path.join(at, 'package.json'), '{"name":"app"}')
  fs.writeFileSync(path.join(at, 'no-inspector.js'), NO_INSPECTOR)
  const nodeRoot = path.join(path.dirname(fs.realpathSync(node)), '..')
  const installed = spawnSync(
    'npm',
    ['install', '--no-audit', '--no-fund', 'v8-profiler-next@1.10.0'],
    {
      cwd: at,
      encoding: 'utf8',
      env: {
        ...process.env,
        PATH: `${path.dirname(node)}:${process.env.PATH}`,
        ...(fs.existsSync(path.join(nodeRoot, 'include')) && { npm_config_nodedir: nodeRoot })
      }
    }
  )
  for (const { id, kind, culprit, call, code } of [
    suspectApps[0],
    ...suspectApps.filter(({ call }) => call === 'gzipSync')
  ]) {
    const file = path.join(at, `${kind}.js`)
    fs.writeFileSync(file, code)
    const app = await watch({ node, args: ['-r', path.join(at, 'no-inspector.js'), file], cwd: at })
    await wait(1000)
    // The profile has one reading only, before which V8 must have collected garbage.
    const capture = await app.capture(`kind=${kind}&seconds=${kind === 'heap_profile' ? 20 : 5}`)
    await app.stop()
    const first = firstOf(capture.suspects)
    const right =
      installed.status === 0
        ? first.some((/** @type {any} */ site) => site.function === culprit) &&
          (!call || first[0].call === call)
        : capture.errorCode === 'not_supported'
    tally(call === undefined ? 'leaks' : 'calls', right)
    console.log(
      `${right ? 'right' : 'WRONG'}  Node ${versionOf(node)}  v8-profiler-next ` +
        `${installed.status === 0 ? 'compiled' : 'does not compile'}, ${id}: ` +
          `${capture.error ?? first[0]?.text}`
    )
  }
}

const LARGE = `
const kept = []
while (process.memoryUsage().heapUsed < 220 * 2 ** 20) for (let i = 0; i < 5000; i++) kept.push({ id: i, name: 'row ' + kept.length, tags: ['a' + i, 'b'], price: i / 3 })
setInterval(() => kept.length, 100)
process.on('SIGUSR2', () => require('node:v8').getHeapSnapshot().on('end', () => process.exit()).resume())
`

/** @param {string} node */
async function snapshot (node) {
  const args = ['--max-old-space-size=1000', script('large', LARGE)]
  /**
   * Peak memory during a snapshot, above the memory before it.
   * @param {(app: Awaited<ReturnType<typeof watch>>) => Promise<any>} take
   */
  const peak = async take => {
    const app = await watch({ node, args, env: { MEMWATCH_ALLOW_SNAPSHOT: '1' } })
    const { pid = 0 } = app.child
    await wait(3000)
    const before = rssOf(pid)
    let most = before
    // A zombie has no RSS, so the result is NaN.
    const timer = setInterval(() => { try { most = Math.max(most, rssOf(pid) || 0) } catch {} }, 50)
    const taken = await take(app)
    clearInterval(timer)
    await app.stop()
    return { growth: most - before, taken }
  }
  const own = []
  const ours = []
  let bytes = 0
  for (let round = 0; round < 3; round++) {
    own.push(
      (
        await peak(async app => {
          app.child.kill('SIGUSR2')
          await once(app.child, 'close')
        })
      ).growth
    )
    const { growth, taken } = await peak(app => app.capture('kind=heap_snapshot&force=true'))
    if (taken.error) throw new Error(taken.error)
    ours.push(growth)
    bytes = taken.parts[0].bytes
  }
  const spread = (/** @type {number[]} */ values) => `${(median(values) / MIB).toFixed(0)} MiB ` +
    `(${(min(values) / MIB).toFixed(0)}–${(max(values) / MIB).toFixed(0)})`
  console.log(
    `Node ${versionOf(node)}  a snapshot of ${(bytes / MIB).toFixed(0)} MiB: RSS grows by ` +
      `${spread(ours)} with the agent, by ${spread(own)} without; the agent's share ` +
        `${((median(ours) - median(own)) / MIB).toFixed(0)} MiB`
  )
}

async function main () {
  const parts = { suspects, automatic, throughput, addon, snapshot }
  const chosen = given.only?.split(',') ?? Object.keys(parts)
  for (const part of chosen) {
    if (!Object.hasOwn(parts, part)) {
      throw new Error(`--only: nothing called ${part}; there are ${Object.keys(parts).join(', ')}`)
    }
  }
  try {
    for (const part of chosen) for (const node of nodes) await parts[/** @type {keyof typeof parts} */ (part)](node)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  console.log(`leaks ${count.leaks.join(' of ')}, calls ${count.calls.join(' of ')}`)
  const fine = count.leaks[0] >= 0.9 * count.leaks[1] && count.calls[0] === count.calls[1]
  console.log(fine ? 'right' : 'WRONG')
  process.exitCode = fine ? 0 : 1
}

main()
