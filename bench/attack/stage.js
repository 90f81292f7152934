'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { spawnExporter } = require('../../test/support/exporter-process')
const { createContainerGroup } = require('../../exporter/process/container-group')
const { readChart } = require('./chart')
const { request } = require('./request')
const { EXPORTER, LOOPBACK, OPERATOR, PORT, PROMETHEUS } = require('./places')

const AGENT = require.resolve('memwatch/agent')
const TOKEN = 'a-token-that-only-the-operator-knows'
/** Time limit of a start, which takes seconds with a tenth of a core. */
const START_TIMEOUT_MS = 60_000
const SAMPLE_EVERY_MS = 200
/** Time after an attack within which the exporter and its agents must recover. */
const SETTLE_MS = 60_000
const ASK_TIMEOUT_MS = 30_000
/** UIDs of two pods on a node: the attacker's, and the well-behaved app's. */
const PODS = {
  attacker: '0d4b1c3e-5a8f-4c6e-9b1a-6f2e8d7c0a66',
  good: '0d4b1c3e-5a8f-4c6e-9b1a-6f2e8d7c0a01'
}

/**
 * @typedef {import('./chart').Mode} Mode
 *
 * @typedef {object} Probes
 * @property {number} asked
 * @property {number} longestMs
 * @property {string[]} failures
 *
 * @typedef {object} Measured measurements of one attack
 * @property {number} rssPeakBytes VmHWM of the exporter
 * @property {number} groupPeakBytes peak memory of its cgroup, including the page cache
 * @property {number} memoryBytes limit
 * @property {Probes} probes
 * @property {Probes} scrapes
 * @property {number} goodFrames frames accepted from the well-behaved agent during the attack
 * @property {number} goodLost missing frames of that agent
 * @property {string[]} broke violated conditions of those that must hold under every attack
 */

/**
 * An exporter as the chart starts it, with a well-behaved app and a prober.
 * @param {object} options
 * @param {Mode} options.mode
 * @param {string} options.node binary
 * @param {boolean} [options.hasToken]
 * @param {(folder: string) => void} [options.prepareData] of the data folder, before the
 *   exporter starts
 */
async function startStage ({ mode, node, hasToken = true, prepareData = () => {} }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-attack-'))
  const at = (/** @type {string} */ name) => path.join(folder, name)
  fs.writeFileSync(at('token'), TOKEN, { mode: 0o600 })
  fs.mkdirSync(at('data'), { mode: 0o700 })
  for (const uid of Object.values(PODS)) {
    fs.mkdirSync(path.join(at('pods'), uid), { recursive: true })
  }
  prepareData(at('data'))

  const chart = readChart(mode)
  const group = createContainerGroup({
    memoryBytes: chart.memoryBytes,
    cores: chart.cores,
    name: 'attack'
  })
  const env = {
    ...chart.env,
    MEMWATCH_DATA_DIR: at('data'),
    MEMWATCH_SOCKET: '',
    MEMWATCH_SOCKET_DIR: mode === 'node' ? at('pods') : '',
    MEMWATCH_TOKEN_FILE: hasToken ? at('token') : ''
  }
  /** @type {(() => Promise<void> | void)[]} */
  const toStop = [() => fs.rmSync(folder, { recursive: true, force: true }), () => group.remove()]
  const stop = async () => {
    for (const work of toStop.splice(0).reverse()) await work()
  }

  try {
    const starting = spawnExporter({
      node,
      nodeArgs: flagsFor(node, chart),
      folder,
      args: ['--listen', `0.0.0.0:${PORT}`],
      env,
      ownProcessNamespace: true,
      wrap: group.wrap
    })
    const exporter = await inTime(starting, START_TIMEOUT_MS, 'it does not start')
    toStop.push(() => exporter.stop('SIGKILL'))
    const life = { ended: false, stopping: false, how: '' }
    exporter.ended.then(([code, signal]) => {
      life.ended = true
      life.how = `ended with ${signal ?? code}: ${firstLine(exporter.output())}`
    })

    const socketOf = (/** @type {keyof typeof PODS} */ pod) =>
      mode === 'node' ? path.join(at('pods'), PODS[pod], 'exporter.sock') : exporter.socket.path
    const appEnv = {
      MEMWATCH_SOCKET: socketOf('good'),
      ...(mode === 'sidecar' && { MEMWATCH_TOKEN_FILE: at('token') })
    }
    /**
     * @param {string} name
     * @param {NodeJS.ProcessEnv} [more]
     */
    const startApp = async (name, more = {}) => {
      const app = await startWatchedApp({ ...appEnv, MEMWATCH_NAME: name, ...more })
      toStop.push(app.stop)
      return app
    }
    /**
     * Requests of the operator to the API, with the token.
     * @param {string} at below the API
     * @param {object} [more]
     */
    const api = async (at, more) => {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const from = hasToken ? OPERATOR : LOOPBACK
      return request({ from, path: `/api/v1/${at}`, headers, timeoutMs: ASK_TIMEOUT_MS, ...more })
    }
    const scrape = () => request({ from: PROMETHEUS, path: '/metrics', timeoutMs: ASK_TIMEOUT_MS })
    const target = async (/** @type {number} */ pid) => {
      const { status, text } = await api('targets?limit=1000')
      if (status !== 200) throw new Error(`/api/v1/targets answers ${status}: ${firstLine(text)}`)
      return JSON.parse(text).find(
        (/** @type {any} */ found) => found.pid === pid && found.thread === 'main'
      )
    }
    /**
     * @param {number} pid
     * @param {(found: any) => boolean} accept
     * @param {number} timeoutMs
     */
    const awaitTarget = async (pid, accept, timeoutMs) => {
      /** @type {any} */
      let found
      let trouble = 'nothing is known of it'
      for (
        const deadline = Date.now() + timeoutMs;
        Date.now() < deadline && !life.ended;
        await wait(500)
      ) {
        try {
          found = await target(pid)
          if (found && accept(found)) return found
        } catch (error) {
          trouble = /** @type {Error} */ (error).message
        }
      }
      throw new Error(
        life.ended
          ? life.how
          : found
            ? `still ${JSON.stringify({ up: found.up, silence: found.silence, uptimeSeconds: found.uptimeSeconds, framesLost: found.framesLost })}`
            : trouble
      )
    }

    const good = await startApp('good')
    await awaitTarget(good.pid, ({ uptimeSeconds }) => uptimeSeconds >= 3, SETTLE_MS)
    const probes = startProber(chart.probeTimeoutMs)
    toStop.push(probes.stop)
    let rssPeakBytes = 0
    const sampler = setInterval(() => {
      rssPeakBytes = Math.max(rssPeakBytes, ...group.pids().map(readPeakRss))
    }, SAMPLE_EVERY_MS)
    toStop.push(() => clearInterval(sampler))

    return {
      mode,
      folder,
      host: EXPORTER,
      token: TOKEN,
      tokenFile: at('token'),
      good,
      /** True once the exporter has ended. */
      get ended () {
        return life.ended
      },
      exporterEnded: exporter.ended,
      socketOf,
      startApp,
      api,
      scrape,
      awaitTarget,
      stop,
      /** Checks after an attack. @returns {Promise<Measured>} */
      async measure () {
        /** @type {string[]} */
        const broke = []
        /** @type {any} */
        let after
        try {
          const sinceSeconds = good.aliveSeconds()
          after = await awaitTarget(
            good.pid,
            ({ up, uptimeSeconds }) => up && uptimeSeconds >= sinceSeconds - 1,
            SETTLE_MS
          )
        } catch (error) {
          broke.push(life.ended ? life.how : `the well-behaved agent: ${/** @type {Error} */ (error).message}`)
        }
        await probes.stop()
        const { oomKills = 0, maxUsageBytes = NaN } = group.stats() ?? {}
        if (oomKills > 0) broke.push(`${oomKills} processes killed for memory`)
        if (good.hasEnded()) broke.push('the well-behaved app ended')
        if (probes.probes.failures.length > 0) {
          broke.push(
            `${probes.probes.failures.length} of ${probes.probes.asked} probes failed: ` +
              `${countEach(probes.probes.failures)}`
          )
        }
        const goodLost = after ? after.framesLost + (after.values.framesDropped ?? 0) : NaN
        if (goodLost > 0) {
          const { text } = await scrape().catch(() => ({ text: '' }))
          const shed =
            /^memwatch_exporter_frames_shed_total (\d+)/m.exec(text)?.[1] ?? 'an unknown number'
          broke.push(
            `${goodLost} frames of the well-behaved agent lost; of all agents' frames ${shed} ` +
              'left unread under load'
          )
        }
        return {
          rssPeakBytes,
          groupPeakBytes: maxUsageBytes,
          memoryBytes: chart.memoryBytes,
          probes: probes.probes,
          scrapes: probes.scrapes,
          goodFrames: after ? Math.round(after.uptimeSeconds) : 0,
          goodLost,
          broke
        }
      }
    }
  } catch (error) {
    const { oomKills = 0 } = group.stats() ?? {}
    await stop()
    throw oomKills > 0
      ? new Error(`it does not start: ${oomKills} processes killed for memory`)
      : error
  }
}

/** @typedef {Awaited<ReturnType<typeof startStage>>} Stage */

/**
 * Flags of the image. A Node.js that does not accept a percentage gets the same size in MiB.
 * @param {string} node
 * @param {{ nodeArgs: string[], memoryBytes: number }} chart
 */
function flagsFor (node, { nodeArgs, memoryBytes }) {
  return nodeArgs.map(flag => {
    const [, percent] = /^--max-old-space-size-percentage=(\d+)$/.exec(flag) ?? []
    if (!percent || acceptsFlag(node, flag)) return flag
    return `--max-old-space-size=${Math.floor(((memoryBytes / 2 ** 20) * Number(percent)) / 100)}`
  })
}

/**
 * @param {string} node
 * @param {string} flag
 */
function acceptsFlag (node, flag) {
  try {
    execFileSync(node, [flag, '-e', '0'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** A real app with the agent. @param {NodeJS.ProcessEnv} env */
async function startWatchedApp (env) {
  const { MEMWATCH_NAME: name } = env
  const child = spawn(process.execPath, ['-r', AGENT, path.join(__dirname, 'app.js')], {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const bornMs = Date.now()
  const ended = once(child, 'close')
  child.stderr.resume()
  const [text] = await once(child.stdout, 'data')
  return {
    name,
    pid: /** @type {number} */ (child.pid),
    port: Number(text),
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    aliveSeconds: () => (Date.now() - bornMs) / 1000,
    /** @param {NodeJS.Signals} signal */
    kill: signal => child.kill(signal),
    async stop () {
      child.kill('SIGKILL')
      await ended
    }
  }
}

/** @param {number} timeoutMs */
function startProber (timeoutMs) {
  /** @type {Probes} */
  const probes = { asked: 0, longestMs: 0, failures: [] }
  /** @type {Probes} */
  const scrapes = { asked: 0, longestMs: 0, failures: [] }
  const child = fork(path.join(__dirname, 'prober.js'), [String(timeoutMs)])
  child.on('message', (/** @type {any} */ { path, ms, failure }) => {
    const count = path === '/metrics' ? scrapes : probes
    count.asked++
    count.longestMs = Math.max(count.longestMs, ms)
    if (failure) count.failures.push(failure)
  })
  const ended = once(child, 'exit')
  return {
    probes,
    scrapes,
    async stop () {
      if (child.connected) child.disconnect()
      await ended
    }
  }
}

/**
 * @param {number} pid
 * @returns {number} bytes; 0 if the process is gone
 */
function readPeakRss (pid) {
  try {
    return (
      1024 *
      Number(/VmHWM:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
    )
  } catch {
    return 0
  }
}

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {string} message
 * @returns {Promise<T>}
 */
function inTime (promise, ms, message) {
  const controller = new AbortController()
  const late = wait(ms, undefined, { signal: controller.signal }).then(() => {
    throw new Error(`${message} in ${ms / 1000} s`)
  })
  late.catch(() => {})
  return Promise.race([promise, late]).finally(() => controller.abort())
}

/**
 * @param {string[]} items
 * @returns {string} text such as "3 × ECONNRESET"
 */
function countEach (items) {
  return [...new Set(items)]
    .map(item => `${items.filter(one => one === item).length} × ${item}`)
    .join(', ')
}

/** The relevant part of a process's output. @param {string} text */
function firstLine (text) {
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
  const fatal = lines.find(line => /FATAL|Error/.test(line)) ?? lines[0] ?? 'nothing was printed'
  return fatal.slice(0, 300)
}

module.exports = { startStage, startWatchedApp, inTime, PODS, TOKEN }
