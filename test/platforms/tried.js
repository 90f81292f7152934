'use strict'

/** Cases for each platform: the agent alone, and the command line with apps of the lab. */

const assert = require('node:assert')
const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { startCollector, environment } = require('../support/agent-collector')
const { eventually } = require('../support/exporter')
const { SOURCES } = require('./sources')

/** @typedef {import('./rooms').Place} Place */
/** @typedef {import('./sources').Told} Told */

/** Number of frames until each source was read once, including rare ones. */
const FRAMES = 12
const LONGEST_MS = 300_000

/** An app with Buffers, GCs and a Promise; it ends on command. */
const APP = `
const kept = []
const work = setInterval(() => { kept.push(Buffer.alloc(2 ** 20, 1)); kept.length %= 32; gc() }, 100)
process.on('SIGTERM', () => { clearInterval(work); console.log('the app ended well') })
`

/**
 * Runs only the agent, in an app on the platform: it must not harm the app, and have no errors.
 * @param {Place} place
 * @param {number} [count] number of frames
 * @returns {Promise<Told & { known: string[] }>} known: names of SOURCES
 */
async function tellFacts (place, count = FRAMES) {
  const collector = await startCollector({ over: 'tcp' })
  try {
    const app = start(place, [
      place.node, '--expose-gc', '-r', path.join(place.root, 'agent/index.js'), '-e', APP
    ], { MEMWATCH_SOCKET: collector.address, MEMWATCH_ALLOCATOR_ACCESS: 'read' })
    const { hello, frames } = await collector.until(
      ([connection]) => connection?.frames.length >= count && connection, LONGEST_MS
    ).catch(error => { throw new Error(`${error.message.slice(0, 300)}\n${app.said.stderr}`) })
    app.child.kill('SIGTERM')
    const { code, stdout, stderr } = await app.ended
    assert.deepStrictEqual({ code, stdout, stderr }, {
      code: 0, stdout: 'the app ended well\n', stderr: ''
    })
    const { agentErrors, framesDropped } = frames.at(-1).values
    assert.deepStrictEqual({ agentErrors, framesDropped }, { agentErrors: 0, framesDropped: 0 })
    const values = Object.assign({}, ...frames.map(frame => frame.values))
    const told = { hello, values, fields: new Set(Object.keys(values)) }
    return { ...told, known: Object.keys(SOURCES).filter(name => SOURCES[name](told)) }
  } finally {
    await collector.stop()
  }
}

/**
 * @param {Place} place
 * @param {string[]} words
 * @param {NodeJS.ProcessEnv} [env] changes
 */
function start (place, words, env = {}) {
  const [file, ...args] = place.wrap(words)
  const child = spawn(file, args, {
    env: environment({ ...place.env, ...env }),
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const said = { stdout: '', stderr: '' }
  for (const stream of /** @type {const} */ (['stdout', 'stderr'])) {
    child[stream].setEncoding('utf8').on('data', text => { said[stream] += text })
  }
  // On SIGTERM memwatch also ends the command that it runs.
  const end = () => child.kill('SIGTERM')
  process.once('exit', end)
  const timer = setTimeout(() => child.kill('SIGKILL'), LONGEST_MS)
  const ended = once(child, 'close').then(([code]) => {
    clearTimeout(timer)
    process.removeListener('exit', end)
    return { code, ...said }
  })
  return { child, said, ended }
}

/**
 * Arguments that run the command line on the platform.
 * @param {Place} place
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env] changes
 */
const memwatch = (place, args, env) =>
  start(place, [place.node, path.join(place.root, 'cli/memwatch.js'), ...args], env)

/**
 * Runs memwatch on the platform, and reads its report.
 * @param {Place} place
 * @param {string[]} args arguments of memwatch, without --json
 * @param {NodeJS.ProcessEnv} [env] changes
 * @param {string} [expected] id of a diagnosis: the run may end once it is found
 * @returns {Promise<any>} the report of `memwatch run --json`
 */
async function report (place, args, env, expected) {
  const [command, ...rest] = args
  const running = memwatch(place, [command, '--json', ...rest], env)
  const found = new RegExp(`: ${expected} (suspected|confirmed):`)
  running.child.stderr.on('data', () => {
    if (expected && found.test(running.said.stderr)) running.child.kill('SIGTERM')
  })
  const { code, stdout, stderr } = await running.ended
  try {
    return JSON.parse(stdout)
  } catch {
    throw new Error(`memwatch ${args.join(' ')} ended with ${code}: ${stdout}${stderr.slice(-2000)}`)
  }
}

/**
 * Diagnoses about memory. Others are ignored, because on a busy machine the event loop and GCs of
 * any app are really slow.
 */
const BY_MEMORY = Object.freeze([
  'js-heap-leak', 'native-memory-leak', 'allocator-fragmentation', 'buffer-pool-pinning',
  'container-limit-mismatch'
])

/**
 * First process of a report.
 * @param {any} report
 * @returns {{ states: Record<string, string>, summaries: Record<string, string>, headline: string,
 *   parts: Record<string, number>, notKnown: string | null }} by id of the diagnosis; parts: of
 *   RSS, in bytes; notKnown: of RSS
 */
function read ({ targets: [target] }) {
  assert.ok(target, 'no process reported')
  const { verdicts, headline, memory } = target
  return {
    states: Object.fromEntries(verdicts.map(({ diagnosis, state }) => [diagnosis, state])),
    summaries: Object.fromEntries(verdicts.map(({ diagnosis, summary }) => [diagnosis, summary])),
    headline: headline.text,
    parts: Object.fromEntries((memory?.parts ?? []).map(({ part, bytes }) => [part, bytes])),
    notKnown: memory?.unknown ?? null
  }
}

/** On a busy machine the load on an app is lower, and its problem shows later. */
const PATIENCE_SECONDS = '240'

/**
 * Runs an app of the lab on that platform.
 * @param {Place} place
 * @param {string} app
 * @param {string} [expected] id of the diagnosis to wait for; without it the app runs for its full
 *   time
 * @param {string[]} [options] further options of memwatch simulate
 * @returns {Promise<ReturnType<typeof read>>} process with the expected findings
 */
async function simulate (place, app, expected, options = []) {
  const time = expected ? ['--for', PATIENCE_SECONDS] : []
  const told = read(
    await report(place, ['simulate', ...time, ...options, app], undefined, expected)
  )
  checkFound(told, expected)
  return told
}

/**
 * Expects the given memory problem and no other, or none.
 * @param {ReturnType<typeof read>} told
 * @param {string} [expected] id
 */
function checkFound ({ states, headline }, expected) {
  if (expected) assert.match(states[expected], /^(suspected|confirmed)$/, headline)
  const confirmed = BY_MEMORY.filter(id => states[id] === 'confirmed')
  assert.deepStrictEqual(confirmed.filter(id => id !== expected), [], headline)
}

/**
 * Checks that an exporter on the platform stores the frames of an app.
 * @param {Place} place
 * @param {string} volume folder for socket and history, which its user can write to
 */
async function checkExporter (place, volume) {
  const socket = path.join(volume, 'exporter.sock')
  const history = path.join(volume, 'history')
  const exporter = memwatch(place, [
    'exporter', '--listen', '127.0.0.1:0', '--socket', socket, '--data-dir', history,
    '--log-level', 'silent'
  ])
  try {
    const [, url] = await eventually(
      () => /metrics at (http:\S+)/.exec(exporter.said.stderr) ?? [exporter.child.exitCode],
      ([first]) => first !== null,
      LONGEST_MS
    )
    assert.ok(url, `the exporter ended: ${exporter.said.stderr}`)
    const app = start(place, [
      place.node, '-r', path.join(place.root, 'agent/index.js'), '-e', 'setInterval(() => {}, 100)'
    ], { MEMWATCH_SOCKET: socket, MEMWATCH_NAME: 'shop' })
    await eventually(
      () => fetch(/** @type {string} */ (url)).then(answer => answer.text(), () => ''),
      text => text.includes('memwatch_target_up{target="shop",thread="main"} 1'),
      LONGEST_MS
    )
    app.child.kill('SIGTERM')
    await app.ended
  } finally {
    exporter.child.kill('SIGTERM')
  }
  assert.strictEqual((await exporter.ended).code, 0)
  assert.notDeepStrictEqual(fs.readdirSync(history), [])
}

module.exports = { checkExporter, checkFound, memwatch, read, report, simulate, tellFacts }
