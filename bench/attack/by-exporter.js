'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { quantile } = require('simple-statistics')
const { inTime, startWatchedApp } = require('./stage')

const BEHAVIOURS = [
  'empty lines',
  'scan commands',
  'capture commands',
  'nested JSON',
  'one endless line',
  'random bytes',
  'one byte at a time',
  'closes at once',
  'never reads'
]
const REQUESTS_PER_SECOND = 50
const REQUEST_TIMEOUT_MS = 10_000
/** Upper bound of repeated rounds after one in which the app answered more slowly. */
const MOST_REPEATS = 2
/**
 * Largest differences in an app's latency and throughput. Two rounds with silent exporters differ
 * by less. Clients would notice larger differences.
 */
const MORE = { p50Ms: 5, p99Ms: 100, servedRatio: 0.97, endMs: 2000 }

/**
 * @typedef {{ behaviour: string, asked: number, served: number, p50Ms: number, p99Ms: number,
 *   cpuSeconds: number, endMs: number }} Turn
 */

/**
 * Runs a watched app under load, with an exporter of the given behaviour.
 * @param {string} behaviour
 * @param {number} seconds
 * @returns {Promise<Turn>}
 */
async function turn (behaviour, seconds) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-impostor-'))
  const socket = path.join(folder, 's')
  const impostor = fork(path.join(__dirname, 'impostor.js'), [socket, behaviour])
  const impostorEnded = once(impostor, 'exit')
  await once(impostor, 'message')
  const app = await startWatchedApp({ MEMWATCH_SOCKET: socket, MEMWATCH_NAME: 'shop' })
  const agent = new http.Agent({ keepAlive: true })
  /** @type {number[]} */
  const ms = []
  const due = REQUESTS_PER_SECOND * seconds
  try {
    await wait(1500) // Wait until the agent is connected.
    const under = []
    const began = performance.now()
    for (let i = 0; i < due; i++) {
      await wait(Math.max(0, began + (1000 * i) / REQUESTS_PER_SECOND - performance.now()))
      under.push(
        timed(app.port, agent).then(took => {
          if (took !== undefined) ms.push(took)
        })
      )
    }
    await Promise.all(under)
    const cpuSeconds = readCpu(app.pid)
    const killedMs = performance.now()
    app.kill('SIGTERM')
    await inTime(app.ended, 60_000, 'the app does not end').catch(() => {})
    return {
      behaviour,
      asked: due,
      served: ms.length,
      p50Ms: ms.length > 0 ? quantile(ms, 0.5) : Infinity,
      p99Ms: ms.length > 0 ? quantile(ms, 0.99) : Infinity,
      cpuSeconds,
      endMs: performance.now() - killedMs
    }
  } finally {
    agent.destroy()
    await app.stop()
    if (impostor.connected) impostor.disconnect()
    await impostorEnded
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * @param {number} port
 * @param {http.Agent} agent
 * @returns {Promise<number | undefined>} ms; undefined without an answer
 */
function timed (port, agent) {
  const began = performance.now()
  return new Promise(resolve => {
    const asked = http.get(
      { host: '127.0.0.1', port, agent, timeout: REQUEST_TIMEOUT_MS },
      response => {
        response
          .resume()
          .on('end', () => resolve(performance.now() - began))
          .on('error', () => resolve(undefined))
      }
    )
    asked.on('timeout', () => asked.destroy())
    asked.on('error', () => resolve(undefined))
  })
}

/**
 * @param {number} pid
 * @returns {number} seconds, of a machine with 100 ticks a second: proc(5)
 */
function readCpu (pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/**
 * @param {Turn} one
 * @param {Turn[]} silent
 */
function isHarmless ({ asked, served, p50Ms, p99Ms, endMs }, silent) {
  const worst = (/** @type {'p50Ms' | 'p99Ms' | 'endMs'} */ name) =>
    Math.max(...silent.map(one => one[name]))
  return (
    p50Ms <= worst('p50Ms') + MORE.p50Ms &&
    p99Ms <= worst('p99Ms') + MORE.p99Ms &&
    endMs <= worst('endMs') + MORE.endMs &&
    served >= asked * MORE.servedRatio
  )
}

/**
 * Hostile exporters, compared with a silent one that is measured before and after them.
 * @param {import('./attacks').Options} options
 */
async function impostors ({ seconds, say }) {
  const each = Math.max(3, Math.round(seconds / 3))
  const measure = (/** @type {string} */ behaviour) => {
    say(`impostor: ${behaviour}`)
    return turn(behaviour, each)
  }
  const turns = [await measure('silent')]
  for (const behaviour of BEHAVIOURS) turns.push(await measure(behaviour))
  turns.push(await measure('silent'))
  const silent = turns.filter(({ behaviour }) => behaviour === 'silent')
  let repeated = 0
  for (const [i, { behaviour }] of turns.entries()) {
    if (behaviour === 'silent') continue
    // A busy machine slows single rounds. An impostor that harms the app slows every round.
    for (let more = 0; more < MOST_REPEATS && !isHarmless(turns[i], silent); more++, repeated++) {
      turns[i] = await measure(behaviour)
    }
  }
  const claims = turns
    .filter(one => !silent.includes(one))
    .map(one => ({
      text: `${one.behaviour}: the app answers as with a silent impostor`,
      held: isHarmless(one, silent),
      detail: `${one.served} of ${one.asked}, p50 ${one.p50Ms.toFixed(1)} ms, p99 ` +
        `${one.p99Ms.toFixed(0)} ms, ends in ${one.endMs.toFixed(0)} ms`
    }))
  return {
    tried: `${BEHAVIOURS.length} impostors, each for ${each} s, at ${REQUESTS_PER_SECOND} ` +
      `requests a second to the app; ${repeated} runs repeated`,
    claims,
    turns
  }
}

module.exports = { impostors }
