'use strict'

/**
 * `npm run bench:soak` simulates two hours of a fleet in twelve minutes. 200 agents connect and
 * disconnect and send ten frames a second, like the real apps beside them. In the first half the
 * exporter is killed every six seconds. At the end the RSS of the real apps and the numbers of
 * descriptors, timers and threads must not have grown, nor the exporter's RSS over the second half.
 *
 *   npm run bench:soak -- --minutes 12
 *
 * It ends with 1 if one of them grew.
 */

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { median } = require('simple-statistics')
const { spawnExporter } = require('../test/support/exporter-process')
const { parseOptions } = require('./options')
const { descriptorsOf, rssOf, threadsOf } = require('./process-reading')
const { hello, frame, line, gcRow } = require('../test/support/frames')

const MIB = 2 ** 20
const FLAPPING = 200
/** Number of watched apps, and of unwatched ones: a single app varies by as much as the limit. */
const REAL = 4
/** Ten frames a second stand for ten seconds. */
const ACCELERATION = 10
const KILL_EVERY_MS = 60_000 / ACCELERATION
const SAMPLE_EVERY_MS = 2000
/** Largest allowed difference of an app between its first and its last tenth. */
const APP_RATIO = 0.02
/** Largest allowed difference of an exporter, with the swings of its heap. */
const EXPORTER_RATIO = 0.05
const AGENT = require.resolve('memwatch/agent')

const given = parseOptions(__filename, { minutes: { type: 'string', default: '12' } })
const runMs = 60_000 * Number(given.minutes)

/** An app whose own memory is constant. */
const APP = `
  const kept = Array.from({ length: 1000 }, (_, i) => ({ i, text: 'row ' + i }))
  setInterval(() => { for (let i = 0; i < 100; i++) kept[i].text = 'row ' + Math.random() }, 50)
`

/**
 * Agents that live for seconds, one after another, and end in all ways.
 * @param {string} socketPath
 * @param {number} number
 * @param {AbortSignal} signal
 */
async function flap (socketPath, number, signal) {
  for (let life = 0; !signal.aborted; life++) {
    const socket = net.connect(socketPath)
    socket.on('error', () => {})
    const connected = await new Promise(resolve => {
      socket.once('connect', () => resolve(true))
      socket.once('close', () => resolve(false))
    })
    if (!connected) {
      await wait(300)
      continue
    }
    const frames = 20 + Math.floor(180 * Math.random())
    socket.write(
      line(
        hello({
          pid: 10_000 + number,
          name: `flap-${number}`,
          startedAtUnixMs: Date.now(),
          intervalSeconds: 0.1
        })
      ) + '\n'
    )
    for (let sequence = 1; sequence <= frames && !socket.destroyed && !signal.aborted; sequence++) {
      const values = {
        rssBytes: (80 + 20 * Math.random()) * MIB,
        heapUsedBytes: 30 * MIB,
        heapSizeLimitBytes: 256 * MIB,
        gc: { 'minor/ordinary': gcRow(sequence, sequence / 1000) }
      }
      socket.write(
        line(frame({ sequence, atUnixMs: Date.now(), uptimeSeconds: sequence, values })) + '\n'
      )
      await wait(100)
    }
    if (life % 3 === 0) {
      socket.write(
        line({ type: 'bye', sequence: frames + 1, atUnixMs: Date.now(), exitCode: life % 2 }) + '\n'
      )
    }
    if (life % 3 === 1) socket.destroy()
    else socket.end()
  }
}

/** First and last tenth of the samples. @param {number[]} samples */
const ends = samples => [
  median(samples.slice(Math.floor(samples.length / 10), Math.ceil(samples.length / 5))),
  median(samples.slice(-Math.ceil(samples.length / 10)))
]
/** @param {number} bytes */
const mib = bytes => `${(bytes / MIB).toFixed(1)} MiB`

async function main () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-soak-'))
  const start = () => spawnExporter({ folder, args: ['--data-dir', path.join(folder, 'data')] })
  let exporter = await start()
  const apps = Array.from({ length: REAL }, (_, i) =>
    spawn(process.execPath, ['-r', AGENT, '-e', APP], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_SOCKET: exporter.socket.path,
        MEMWATCH_NAME: `real-${i}`,
        MEMWATCH_INTERVAL_SECONDS: String(1 / ACCELERATION)
      },
      stdio: 'ignore'
    })
  )
  const appsEnded = apps.map(app => once(app, 'close'))
  /** Growth of unwatched apps, which is also allowed for watched ones. */
  const controls = apps.map(() =>
    spawn(process.execPath, ['-e', APP], {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: 'ignore'
    })
  )
  const controlsEnded = controls.map(control => once(control, 'close'))
  const abort = new AbortController()
  const flapping = Array.from({ length: FLAPPING }, (_, i) =>
    flap(exporter.socket.path, i, abort.signal)
  )
  const began = performance.now()
  const phase = { lives: false }
  /** @type {Record<string, number[]>} */
  const samples = {}
  const sample = (/** @type {string} */ what, /** @type {number} */ value) => (samples[what] ??= []).push(value)
  const timer = setInterval(() => {
    const pids = apps.map(({ pid }) => /** @type {number} */ (pid))
    sample('watched apps, RSS', median(pids.map(rssOf)))
    sample('watched apps, descriptors', Math.max(...pids.map(descriptorsOf)))
    sample('watched apps, threads', Math.max(...pids.map(threadsOf)))
    sample('unwatched apps, ' +
      'RSS', median(controls.map(({ pid }) => rssOf(/** @type {number} */ (pid)))))
    if (phase.lives) sample('exporter RSS', rssOf(exporter.pid))
  }, SAMPLE_EVERY_MS)

  let kills = 0
  while (performance.now() - began < runMs / 2) {
    await wait(KILL_EVERY_MS)
    await exporter.stop('SIGKILL')
    kills++
    exporter = await start()
  }
  phase.lives = true
  console.log(`${kills} kills in ${Number(given.minutes) / 2} minutes; now it lives`)
  await wait(runMs / 2)
  clearInterval(timer)
  const before = descriptorsOf(exporter.pid)
  abort.abort()
  await Promise.all(flapping)
  await wait(2000)
  const after = descriptorsOf(exporter.pid)
  const exported = await (await fetch(`${exporter.url}/metrics`)).text()
  const connections = Number(/^memwatch_exporter_connections (\d+)/m.exec(exported)?.[1])
  const dropped = [
    ...exported.matchAll(
      /^memwatch_agent_frames_dropped_total\{target="real-\d",thread="main"\} (\d+)/gm
    )
  ].map(([, count]) => Number(count))
  console.log(
    `${exported.split('\n').length} lines of metrics at the end; descriptors ${before} with ` +
      `${FLAPPING} agents, ${after} without; frames that the real apps dropped: ` +
        `${dropped.join(', ')}`
  )

  let fine = connections === REAL && after <= before - FLAPPING / 2
  const grewOf = (/** @type {string} */ what) => { const [first, last] = ends(samples[what]); return last / first - 1 }
  const plain = grewOf('unwatched apps, RSS')
  for (const [what, values] of Object.entries(samples)) {
    const [first, last] = ends(values)
    const most =
      what === 'exporter RSS'
        ? EXPORTER_RATIO
        : what.startsWith('unwatched')
          ? Infinity
          : what.endsWith('RSS')
            ? Math.max(0, plain) + APP_RATIO
            : 0
    const grew = grewOf(what)
    const good = grew <= most
    fine &&= good
    console.log(
      [
        good ? 'right' : 'WRONG',
        what,
        what.endsWith('RSS') ? `${mib(first)} → ${mib(last)}` : `${first} → ${last}`,
        `${(100 * grew).toFixed(1)} %`
      ].join('\t')
    )
  }
  for (const app of [...apps, ...controls]) app.kill('SIGKILL')
  await Promise.all([...appsEnded, ...controlsEnded])
  await exporter.stop()
  fs.rmSync(folder, { recursive: true, force: true })
  console.log(fine ? 'right' : 'WRONG')
  process.exitCode = fine ? 0 : 1
}

main()
