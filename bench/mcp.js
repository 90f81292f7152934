'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { fetchNode } = require('../scripts/fetch-node')
const { startExporter } = require('../test/support/exporter')
const { freePort } = require('../test/support/free-port')
const { allRuns } = require('./realworld/cases')
const { install } = require('./realworld/install')

const HELP = `npm run bench:mcp -- [options]

Is the fault of an app named through the tools of memwatch mcp alone? Published leaks of
bench/realworld run under neutral names (app-1, app-2, … in no order). When memwatch has found something, or the
time of the case is over, a script makes at most five calls for each: targets, verdicts, suspects,
a capture where memwatch has taken none, audit; deaths of one that has ended. Their answers are written to app-N.json, for a judge who knows neither the app nor its packages;
key.json says afterwards what each app was, and whether the answers hold it.

  --count N          cases, evenly spaced over the list of all that have a culprit (default: 10)
  --offset N         begin so many cases later in that list (default: 0)
  --only NAME,NAME   these cases instead
  --lanes N          so many at once (default: 2)
  --out FOLDER       for the transcripts (default: a new folder in the temporary one)
  --help

Memory limits need cgroups, and so root on Linux. Ends with 1 when fewer than nine of ten faults are
in the answers, each with its diagnosis and its function, line or package.`

const AGENT = path.join(__dirname, '../agent/index.js')
const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
const MIB = 2 ** 20
const POLL_MS = 1000
/** Suspects follow a confirmed verdict within this time. */
const AFTER_CONFIRMED_MS = 40_000
const CAPTURE_SECONDS = 20
const CALL_MS = 90_000
const LEAST_SHARE_NAMED = 0.9

/** @typedef {import('./realworld/cases').Run} Run */
/** @typedef {{ tool: string, arguments: object, answer: any }} Call */

/**
 * Copies an installed case to a parent folder that does not reveal its name.
 * @param {Run} run
 * @param {string} name
 * @param {string} below folder
 */
async function prepare (run, name, below) {
  const installed = await install(`${run.case}-${run.form}`, run.packages)
  const folder = path.join(below, name)
  fs.mkdirSync(folder)
  const modules = path.join(installed, 'node_modules')
  if (fs.existsSync(modules)) execFileSync('cp', ['-a', modules, folder])
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name, private: true }))
  fs.copyFileSync(run.file, path.join(folder, 'case.js'))
  fs.copyFileSync(path.join(__dirname, 'realworld/start.js'), path.join(folder, 'start.js'))
  return folder
}

/**
 * Runs a case until memwatch has found something, or its time is over, then calls the tools.
 * @param {Run} run
 * @param {object} options
 * @param {string} options.name
 * @param {string} options.below
 * @param {Client} options.client
 * @param {Awaited<ReturnType<typeof startExporter>>} options.exporter
 * @returns {Promise<Call[]>}
 */
async function judge (run, { name, below, client, exporter }) {
  const folder = await prepare(run, name, below)
  const port = String(await freePort())
  const group = run.limitMib === null
    ? undefined
    : createMemoryGroup({ limitBytes: run.limitMib * MIB, name: `mcp-${name}` })
  const args = ['--require', AGENT, 'start.js', 'app']
  const wrapped = group?.wrap(fetchNode(run.node), args) ?? { command: fetchNode(run.node), args }
  const env = { ...process.env, NODE_OPTIONS: '', ...run.env, PORT: port }
  const app = spawn(wrapped.command, wrapped.args, {
    cwd: folder,
    env: {
      ...env,
      MEMWATCH_NAME: name,
      MEMWATCH_SOCKET: exporter.socket.path,
      // `memwatch run` sets the same variables.
      MEMWATCH_ALLOCATOR_ACCESS: 'read',
      MEMWATCH_FORCED_GC: 'allow'
    },
    stdio: 'ignore'
  })
  const ended = once(app, 'exit')
  const traffic = 'traffic' in run.of && run.of.traffic
    ? spawn(process.execPath, ['start.js', 'traffic'], { cwd: folder, env, stdio: 'ignore' })
    : undefined
  try {
    await Promise.race([found(exporter, name, run.seconds), ended])
    return await ask(client, name)
  } finally {
    traffic?.kill('SIGKILL')
    app.kill('SIGKILL')
    await ended
    await group?.remove()
  }
}

/**
 * Calls the tools like an assistant that knows only the name of the target.
 * @param {Client} client
 * @param {string} name
 * @returns {Promise<Call[]>} answers of at most five calls
 */
async function ask (client, name) {
  /** @type {Call[]} */
  const calls = []
  const call = async (/** @type {string} */ tool, /** @type {Record<string, unknown>} */ given) => {
    const { structuredContent, isError = false } =
      await client.callTool({ name: tool, arguments: given }, undefined, { timeout: CALL_MS })
    calls.push({ tool, arguments: given, answer: structuredContent })
    return !isError
  }
  await call('targets', { name })
  if (!await call('verdicts', { target: name })) {
    await call('deaths', { target: name })
    return calls
  }
  if (!await call('suspects', { target: name })) {
    await call('capture', { target: name, kind: 'heap_profile', seconds: CAPTURE_SECONDS })
  }
  await call('audit', { target: name })
  return calls
}

/**
 * Resolves when a finding is confirmed and has suspects, or when the time is over.
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 * @param {string} name
 * @param {number} seconds
 */
async function found (exporter, name, seconds) {
  let until = performance.now() + 1000 * seconds
  let isConfirmed = false
  while (performance.now() < until) {
    const response = await exporter.get(`/api/v1/diagnoses?target=${name}`)
    const [judged] = /** @type {any[]} */ (await response.json())
    // A finding of severity info is no fault.
    const confirmed = judged?.verdicts.find((/** @type {any} */ { state, severity, opportunity }) =>
      state === 'confirmed' && severity !== 'info' && !opportunity)
    if (confirmed?.suspects) return
    if (confirmed && !isConfirmed) {
      isConfirmed = true
      until = performance.now() + AFTER_CONFIRMED_MS
    }
    await wait(POLL_MS)
  }
}

/**
 * Looks for the diagnosis and the culprit of a case in the answers.
 * @param {Run} run
 * @param {Call[]} calls
 */
function check ({ case: id, file, expect, culprit }, calls) {
  const answerOf = (/** @type {string} */ name) =>
    calls.find(({ tool }) => tool === name)?.answer ?? {}
  const verdicts = answerOf('verdicts')
  const captured = ['suspects', 'capture'].flatMap(name => answerOf(name).suspects?.sites ?? [])
  const lines = fs.readFileSync(file, 'utf8').split('\n')
  const finding = verdicts.findings?.find((/** @type {any} */ { diagnosis }) => expect.includes(diagnosis))
  const sites = [...finding?.suspects?.sites ?? [], ...captured]
  const named = sites.map(({ function: name, file, line, text, package: owner, through = [] }) =>
    [name, file, text, owner, ...through, file === 'case.js' ? lines[line - 1] : ''].join(' '))
  const bugs = (finding?.knownBugs ?? []).filter((/** @type {any} */ { likely }) => likely)
  return {
    case: id,
    expect,
    headline: verdicts.headline?.text ?? verdicts.error,
    diagnosis: expect.includes(verdicts.headline?.diagnosis),
    culprit: named.some(text => culprit?.test(text)) ||
      bugs.some((/** @type {any} */ { id: bug }) => bug === id),
    bytes: calls.map(({ answer }) => JSON.stringify(answer).length)
  }
}

/**
 * @param {number[]} values
 * @returns {number[]} the items in a random order
 */
const shuffle = values => values
  .map(value => ({ value, at: Math.random() }))
  .sort((a, b) => a.at - b.at)
  .map(({ value }) => value)

async function main () {
  const { values } = parseArgs({
    options: {
      count: { type: 'string', default: '10' },
      offset: { type: 'string', default: '0' },
      only: { type: 'string' },
      lanes: { type: 'string', default: '2' },
      out: { type: 'string' },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return console.log(HELP)
  const leaky = allRuns().filter(({ form, culprit }) => form === 'leaky' && culprit !== null)
  const count = Math.min(Number(values.count), leaky.length)
  const wanted = values.only?.split(',')
  const runs = wanted
    ? leaky.filter(({ case: id }) => wanted.includes(id))
    : Array.from({ length: count }, (_, i) =>
      leaky[(Number(values.offset) + Math.floor((i * leaky.length) / count)) % leaky.length])
  const numbers = shuffle(runs.map((_, i) => i + 1))
  const out = values.out ?? fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-mcp-answers-'))
  fs.mkdirSync(out, { recursive: true })
  const below = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-mcp-apps-'))
  const exporter = await startExporter()
  const client = new Client({ name: 'bench', version: '1' })
  await client.connect(new StdioClientTransport({
    command: process.execPath, args: [MEMWATCH, 'mcp', '--url', exporter.url, '--allow-captures'], stderr: 'inherit'
  }))
  const key = /** @type {Record<string, ReturnType<typeof check>>} */ ({})
  const queue = [...runs.entries()]
  const lane = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [i, run] = next
      const name = `app-${numbers[i]}`
      const calls = await judge(run, { name, below, client, exporter })
      fs.writeFileSync(path.join(out, `${name}.json`), `${JSON.stringify(calls, null, 1)}\n`)
      key[name] = check(run, calls)
      fs.writeFileSync(path.join(out, 'key.json'), `${JSON.stringify(key, null, 1)}\n`)
      console.log(`${name}: ${calls.length} calls, answers of ${key[name].bytes.join(', ')} bytes`)
    }
  }
  try {
    await Promise.all(Array.from({ length: Number(values.lanes) }, lane))
  } finally {
    await client.close()
    await exporter.stop()
    fs.rmSync(below, { recursive: true, force: true })
  }
  const named = Object.values(key).filter(({ diagnosis, culprit }) => diagnosis && culprit).length
  console.log(`${named} of ${runs.length} faults are in the answers; transcripts and key: ${out}`)
  process.exitCode = named >= LEAST_SHARE_NAMED * runs.length ? 0 : 1
}

main()
