'use strict'

/**
 * `npm run bench:chaos` harms an exporter and its apps every few seconds for an hour, and counts
 * the losses. It causes kill -9, SIGSTOP, a full disk, a lack of memory, garbage input, jumping
 * clocks, and deaths of every kind.
 *
 *   npm run bench:chaos -- --minutes 60 --seed 7
 *   npm run bench:chaos -- --minutes 5 --evils 'kill -9 the exporter,SIGKILL an app'
 *
 * Ends with 1 if the exporter ended by itself, did not save again once a disk had space, or lost
 * more than ten seconds of a target to a kill. It also ends with 1 if the exporter reported a death
 * that did not happen, called an OOM kill clean, or was wrong about more than 5 % of the visible
 * deaths. Needs root, for memory cgroups and to mount a small file system.
 */

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { spawnExporter } = require('../test/support/exporter-process')
const { fuzzer } = require('./fuzz-input')
const { parseOptions } = require('./options')

const MIB = 2 ** 20
const APPS = 6
/** Time limit for all agents to reconnect after the exporter was away or stopped. */
const BACK_MS = 12_000
/** Time limit for the next save after disk space is available again. */
const SAVES_AGAIN_MS = 15_000
/** Largest loss of each target's history by a kill. */
const MOST_LOST_SECONDS = 10
const AGENT = require.resolve('memwatch/agent')

const given = parseOptions(__filename, {
  minutes: { type: 'string', default: '60' },
  seed: { type: 'string', default: String(Date.now() % 1e6) },
  evils: { type: 'string' }
})
const fuzz = fuzzer(Number(given.seed))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-chaos-'))
const dataFolder = path.join(folder, 'data')
const clockFile = path.join(folder, 'clock')
const startedMs = performance.now()
/** @param {string} text */
const say = text =>
  console.log(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}`)

/**
 * @param {string[]} command
 * @returns {boolean}
 */
function tried (...[file, ...args]) {
  try {
    execFileSync(file, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** A watched app, replaced when it ends. */
class App {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  child
  /** Reasons that are correct for the end that the bench caused. @type {string[] | undefined} */
  expected
  /**
   * @param {string} name
   * @param {string} socket
   */
  constructor (name, socket) {
    this.name = name
    this.socket = socket
  }

  start () {
    this.expected = undefined
    this.group = createMemoryGroup({ limitBytes: 200 * MIB, name: 'chaos' })
    const { command, args } = this.group.wrap(process.execPath, [
      '--max-old-space-size=60',
      '-r',
      AGENT,
      path.join(__dirname, 'chaos-app.js')
    ])
    const child = (this.child = spawn(command, args, {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_SOCKET: this.socket,
        MEMWATCH_NAME: this.name
      },
      stdio: ['pipe', 'ignore', 'ignore']
    }))
    child.stdin.on('error', () => {})
    this.bornMs = Date.now()
    this.ended = once(child, 'close')
  }

  /** @param {string} order */
  tell (order) { this.child?.stdin?.write(order + '\n') }
}

async function main () {
  fs.mkdirSync(dataFolder)
  fs.writeFileSync(clockFile, '0')
  const small = tried('mount', '-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', dataFolder)
  if (!small) say('no small file system can be mounted: the disk will not be full')
  const start = () =>
    spawnExporter({
      folder,
      args: ['--data-dir', dataFolder, '--data-max', '16MiB'],
      nodeArgs: ['-r', path.join(__dirname, 'chaos-clock.js')],
      env: { MEMWATCH_CHAOS_CLOCK: clockFile }
    })
  let exporter = await start()
  const life = { over: false }
  /** Time in which the exporter was away. */
  const away = { fromMs: Date.now(), untilMs: Date.now() + BACK_MS }
  const leave = () => { Object.assign(away, { fromMs: Date.now(), untilMs: Infinity }) }
  const back = () => { away.untilMs = Date.now() + BACK_MS }
  const count = {
    wrong: 0,
    unexpected: 0,
    staged: 0,
    seen: 0,
    right: 0,
    away: 0,
    missing: 0,
    falseDeaths: 0,
    falselyClean: 0,
    kills: 0
  }
  /** @param {typeof exporter} one */
  const mind = one => one.ended.then(([code, signal]) => {
    if (life.over || signal === 'SIGKILL' || code === 0) return
    count.unexpected++
    say(`WRONG: the exporter ended with ${signal ?? code}: ${one.output()}`)
  })
  mind(exporter)
  const metric = async (/** @type {string} */ name) => (await (await fetch(exporter.url + '/metrics')).text()).split('\n').find(line => line.startsWith(name)) ?? ''
  const json = async (/** @type {string} */ at) => (await fetch(exporter.url + at, { signal: AbortSignal.timeout(30_000) })).json()
  const apps = Array.from({ length: APPS }, (_, i) => new App(`app-${i}`, exporter.socket.path))
  for (const app of apps) app.start()
  /**
   * Processes that were stopped for a while, and have no frames of that time.
   * @type {Set<number | undefined>}
   */
  const stopped = new Set()
  let mostLost = 0

  /** Handles the end of an app, and checks the report on it. @param {App} app */
  async function reap (app) {
    const [code, signal] = await /** @type {Promise<any>} */ (app.ended)
    const pid = app.child?.pid
    const diedMs = Date.now()
    await app.group?.remove()
    if (life.over) return
    const { expected = [] } = app
    app.start()
    count.staged++
    const death = await until(async () => (await json('/api/v1/deaths')).find((/** @type {any} */ found) => found.pid === pid && found.target === app.name), 120_000)
    const unseen = diedMs > away.fromMs - 1000 && diedMs < away.untilMs
    if (unseen) count.away++
    if (!death) {
      // A process that dies unwatched and was never saved leaves no trace.
      if (!unseen) {
        count.missing++
        say(`WRONG: nothing is said of the end of ${app.name} ${pid} (${signal ?? code})`)
      }
      return
    }
    if (expected.includes('oom_kill') && death.reason === 'clean') count.falselyClean++
    if (unseen) return
    count.seen++
    if (expected.includes(death.reason)) count.right++
    else {
      say(
        `WRONG: ${app.name} ended by ${signal ?? code}, expected ${expected}, said ` +
          `${death.reason}: ${death.text}`
      )
    }
  }
  for (const app of apps) {
    (async () => {
      while (!life.over) {
        await reap(app).catch(error => {
          count.wrong++
          say(`WRONG: ${error.message}`)
        })
      }
    })()
  }

  /** Measures gaps in the last minutes of living apps. @param {string} when */
  async function countLost (when) {
    for (const { target, pid, up } of await json('/api/v1/targets').catch(() => [])) {
      if (!up || stopped.has(pid)) continue
      const { times } = await json(`/api/v1/targets/${target}/series?track=rssBytes&seconds=590`)
      let longest = 0
      for (let i = 1; i < times.length; i++) {
        longest = Math.max(longest, times[i] - times[i - 1] - 1)
      }
      // Targets of the previous exporter that the current one does not know.
      longest = Math.max(longest, times[0] - Math.max(1, times[times.length - 1] - 589))
      if (longest > mostLost) say(`${when}: ${longest.toFixed(1)} s are missing of ${target}`)
      mostLost = Math.max(mostLost, longest)
    }
  }

  const quiet = () =>
    fuzz.pick(apps.filter(app => !app.expected && Date.now() - (app.bornMs ?? 0) > 5000))
  /** @type {Record<string, () => Promise<void>>} */
  const evils = {
    'kill -9 the exporter': async () => {
      count.kills++
      leave()
      await exporter.stop('SIGKILL')
      await wait(fuzz.below(8000))
      exporter = await start()
      back()
      mind(exporter)
      await wait(10_000)
      await countLost('after a kill')
    },
    'stop the exporter': async () => {
      leave()
      exporter.child.kill('SIGSTOP')
      await wait(2000 + fuzz.below(13_000))
      back()
      exporter.child.kill('SIGCONT')
    },
    'end and start the exporter': async () => {
      leave()
      await exporter.stop('SIGTERM')
      exporter = await start()
      back()
      mind(exporter)
    },
    'fill the disk': async () => {
      if (!small) return
      try {
        fs.writeFileSync(path.join(dataFolder, 'ballast'), Buffer.alloc(64 * MIB))
      } catch {} // The write fails once the disk is full, which is the purpose of this step.
      await wait(8000 + fuzz.below(10_000))
      fs.rmSync(path.join(dataFolder, 'ballast'), { force: true })
      // Only data that was saved can count as lost: with a full disk the exporter could not save
      // the rest.
      const saves = await until(
        async () => / 1$/m.exec(await metric('memwatch_exporter_history_saving')),
        SAVES_AGAIN_MS
      )
      if (!saves) {
        throw new Error(`there is room, and after ${SAVES_AGAIN_MS} ms it does not save again`)
      }
    },
    'move the clock': async () => {
      fs.writeFileSync(clockFile, String(Math.round((fuzz.random() - 0.5) * 20 * 3_600_000)))
    },
    'send garbage': async () => {
      const socket = net.connect(exporter.socket)
      socket.on('error', () => {})
      const closed = new Promise(resolve => socket.once('close', resolve))
      for (let i = 0; i < 150; i++) socket.write(fuzz.line(5_000_000 + i))
      socket.resume().end()
      await closed
    },
    'stop an app': async () => {
      const app = quiet()
      if (!app) return
      stopped.add(app.child.pid)
      app.child.kill('SIGSTOP')
      await wait(3000 + fuzz.below(12_000))
      app.child.kill('SIGCONT')
    }
  }
  /** @type {Record<string, [reasons: string[], (app: App) => void]>} */
  const ends = {
    'SIGKILL an app': [['killed', 'signal'], app => app.child?.kill('SIGKILL')],
    'SIGSEGV an app': [['crash', 'signal'], app => app.child?.kill('SIGSEGV')],
    'SIGTERM an app': [['killed', 'signal'], app => app.child?.kill('SIGTERM')],
    'an app exits': [['clean'], app => app.tell('exit 0')],
    'an app throws': [['error'], app => app.tell('throw')],
    'an app fills its heap': [['heap_oom'], app => app.tell('heap')],
    'an app fills its container': [['oom_kill'], app => app.tell('memory')]
  }
  for (const [name, [reasons, end]] of Object.entries(ends)) {
    evils[name] = async () => {
      const app = quiet()
      if (!app) return
      app.expected = reasons
      end(app)
    }
  }

  const chosen = given.evils?.split(',') ?? Object.keys(evils)
  for (const evil of chosen) {
    if (!evils[evil]) {
      throw new Error(`--evils: nothing called ${evil}; there are ${Object.keys(evils).join(', ')}`)
    }
  }
  while (performance.now() - startedMs < 60_000 * Number(given.minutes)) {
    const evil = fuzz.pick(chosen)
    say(evil)
    await evils[evil]().catch(error => { count.wrong++; say(`WRONG: ${evil}: ${error.message}`) })
    await wait(1000 + fuzz.below(6000))
  }
  await wait(10_000)
  await countLost('at the end')
  const deaths = await json('/api/v1/deaths')
  const living = new Set(apps.map(app => app.child?.pid))
  for (const death of deaths) {
    if (
      !living.has(death.pid) ||
      death.target !== apps.find(app => app.child?.pid === death.pid)?.name
    ) { continue }
    count.falseDeaths++
    say(`WRONG: ${death.target} ${death.pid} lives, and is said to be dead: ${death.text}`)
  }
  const exported = await (await fetch(`${exporter.url}/metrics`)).text()
  say(
    exported
      .split('\n')
      .filter(line => /^memwatch_exporter_(history|resident)/.test(line))
      .join('; ')
  )
  life.over = true
  for (const app of apps) app.child?.kill('SIGKILL')
  await Promise.all(apps.map(app => app.ended))
  await exporter.stop()
  if (small) tried('umount', dataFolder)
  fs.rmSync(folder, { recursive: true, force: true })
  say(
    `${count.kills} kills of the exporter; ${count.staged} deaths, ${count.away} of them while ` +
      `it was away; of ${count.seen} others ${count.right} right, ${count.missing} not noticed; ` +
        `${count.falseDeaths} living called dead; ${count.falselyClean} kills for memory called ` +
          `clean; longest time missing ${mostLost.toFixed(1)} s; ${count.unexpected} ends of ` +
            'its own'
  )
  const fine =
    count.wrong === 0 &&
    count.unexpected === 0 &&
    mostLost <= MOST_LOST_SECONDS &&
    count.falseDeaths === 0 &&
    count.falselyClean === 0 &&
    count.missing === 0 &&
    count.right >= 0.95 * count.seen
  console.log(fine ? 'right' : 'WRONG')
  process.exitCode = fine ? 0 : 1
}

/**
 * @template T
 * @param {() => Promise<T>} ask
 * @param {number} timeoutMs
 * @returns {Promise<T | undefined>}
 */
async function until (ask, timeoutMs) {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await wait(500)) {
    const answer = await ask().catch(() => undefined)
    if (answer) return answer
  }
}

main()
