'use strict'

/**
 * `npm run bench:attach`: rounds of attach and detach on a server under load. No request may be
 * lost, and nothing may remain: port, descriptors, handles, memory.
 *
 *   npm run bench:attach                              100 rounds on Node.js 18, 20, 22, 24, 26
 *   npm run bench:attach -- --node 22.23.3 --rounds 1000
 *
 * Latency is compared with pauses of the same length between the rounds; the pauses themselves, of
 * even and odd number, show the noise. Ends with 1 when a request is lost or something remains.
 */

const fs = require('node:fs')
const path = require('node:path')
const { fork } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { attach, detach } = require('../exporter/attachment/attachment')
const { listenersAround } = require('../exporter/attachment/listeners')
const { Subject } = require('../exporter/attachment/subject')
const { fetchNode } = require('../scripts/fetch-node')
const { startExporter } = require('../test/support/exporter')

const VERSIONS = '18.20.8,20.20.2,22.23.3,24.21.0,26.10.0'
/** The agent sends its first frames. */
const ATTACHED_MS = 300
/** Rounds until V8 has compiled what they run, and memory has found its level. */
const WARM_ROUNDS = 10
/** Memory that may remain: less than the code of the agent takes. */
const MOST_LEFT_BYTES = 1024 ** 2
/** Node.js' own port may be in use by others. */
const INSPECTOR_PORT = 9329

const { values: given } = parseArgs({
  options: {
    node: { type: 'string', default: VERSIONS },
    rounds: { type: 'string', default: '100' }
  }
})

/** @param {number} pid */
const descriptorsOf = pid => fs.readdirSync(`/proc/${pid}/fd`).length

/**
 * @param {number[]} values
 * @param {number} share
 */
const quantile = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))]

/** @param {number[]} values milliseconds */
const describe = (values = []) =>
  `p50 ${quantile(values, 0.5).toFixed(2)} ms, p99 ${quantile(values, 0.99).toFixed(2)} ms, ` +
    `longest ${Math.max(...values).toFixed(0)} ms of ${values.length}`

/**
 * @param {string} version
 * @param {number} rounds
 * @param {string} socket of an exporter
 * @returns {Promise<boolean>} whether every claim holds
 */
async function measure (version, rounds, socket) {
  const app = fork(path.join(__dirname, 'attach-app.js'), {
    execPath: fetchNode(version),
    execArgv: ['--expose-gc', `--inspect-port=${INSPECTOR_PORT}`],
    // Node.js reports its inspector on stderr.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc']
  })
  const [{ port }] = await once(app, 'message')
  const ask = async (/** @type {string} */ what) =>
    await (await fetch(`http://127.0.0.1:${port}/${what}`, { headers: { connection: 'close' } })).json()
  const load = fork(path.join(__dirname, 'attach-load.js'), [String(port)])
  const pid = /** @type {number} */ (app.pid)
  const subject = new Subject(pid)
  subject.check()

  const round = async (/** @type {number} */ number) => {
    const began = performance.now()
    load.send('round')
    await attach(subject, { socket })
    const attachMs = performance.now() - began
    await wait(ATTACHED_MS)
    await detach(subject)
    const ms = performance.now() - began
    load.send(number % 2 === 0 ? 'even pause' : 'odd pause')
    await wait(ms)
    return attachMs
  }
  for (let number = 0; number < WARM_ROUNDS; number++) await round(number)
  const before = { ...await ask('memory'), descriptors: descriptorsOf(pid) }
  const resources = await ask('resources')
  load.send('warm')
  const attachMs = []
  for (let number = 0; number < rounds; number++) attachMs.push(await round(number))
  load.send('end')
  const [{ taken, lost, sent }] = await once(load, 'message')
  await wait(500) // its connections close
  const after = { ...await ask('memory'), descriptors: descriptorsOf(pid) }
  const left = await ask('resources')
  const isOpen = listenersAround(pid).some(({ isOwn, port }) => isOwn && port === INSPECTOR_PORT)
  app.kill()
  await once(app, 'exit')

  const count = (/** @type {string[]} */ list, /** @type {string} */ name) =>
    list.filter(item => item === name).length
  const more = [...new Set(left)].filter(name => count(left, name) > count(resources, name))
  const grown = after.heapUsed - before.heapUsed
  console.log(`
Node.js ${version}: ${rounds} rounds, attached within ${quantile(attachMs, 0.5).toFixed(0)} ms (median)
  requests     ${sent} sent, ${lost} lost
  in rounds    ${describe(taken.round)}
  even pauses  ${describe(taken['even pause'])}
  odd pauses   ${describe(taken['odd pause'])}
  descriptors  ${before.descriptors} before (with the load's), ${after.descriptors} after
  handles      ${more.length === 0 ? 'none more' : `more ${more.join(', ')}`}
  port         ${isOpen ? 'open' : 'closed'}
  heap used    ${before.heapUsed} bytes before, ${after.heapUsed} after
  RSS          ${(before.rss / 2 ** 20).toFixed(1)} MiB before, ${(after.rss / 2 ** 20).toFixed(1)} MiB after`)
  return lost === 0 && more.length === 0 && !isOpen && grown < MOST_LEFT_BYTES &&
    after.descriptors <= before.descriptors
}

async function main () {
  const exporter = await startExporter()
  let holds = true
  for (const version of given.node.split(',')) {
    holds = await measure(version, Number(given.rounds), exporter.socket.path) && holds
  }
  await exporter.stop()
  console.log(holds ? '\nEvery claim holds.' : '\nA claim does not hold.')
  process.exitCode = holds ? 0 : 1
}

main()
