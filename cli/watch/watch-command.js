'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { Exporter } = require('@memwatch/exporter/exporter')
const { splitNodeOptions } = require('@memwatch/agent/protocol/node-options')
const { withoutSnapshot } = require('@memwatch/exporter/deaths/advise')
const { explainExit } = require('@memwatch/exporter/deaths/explain-exit')
const { judgedTarget } = require('@memwatch/exporter/expose/targets')
const { isInForeground } = require('./foreground')
const { Leftovers } = require('./leftovers')
const { makeTemporaryFolder } = require('../program/temporary-folder')
const { UnheardProcess } = require('./unheard-process')
const { UsageError } = require('../program/usage-error')

/** Time from SIGTERM to SIGKILL for a command. */
const GRACE_MS = 10_000
/** Time for the goodbyes of agents after the end of the command. */
const FAREWELL_MS = 1000

/** @typedef {ReturnType<typeof judgedTarget>} JudgedTarget */
/**
 * The report of `memwatch run --json`; docs/report.schema.json is its schema.
 * @typedef {object} Report
 * @property {1} schema
 * @property {string[]} command
 * @property {number} durationSeconds
 * @property {{ code: number | null, signal: string | null }} exit both null if unknown, or if the
 *   command still runs
 * @property {Attached} [attached] process to which memwatch attached
 * @property {import('../sources').Told} [source] evaluated source; absent for a recording or a run
 * @property {JudgedTarget[]} targets
 * @property {import('@memwatch/exporter/deaths/deaths').Death[]} deaths deaths of its processes,
 *   the newest first
 * @property {import('@memwatch/exporter/deaths/explain-exit').Ending} [ending] end of a command
 *   that a signal ended before any of its processes reported
 */

/**
 * @typedef {object} Attached
 * @property {number} pid
 * @property {number} startedAtUnixMs start of the process
 * @property {number} atUnixMs start of the observation
 * @property {boolean} ended true if it ended while it was watched
 * @property {import('@memwatch/exporter/attachment/attachment').Workers} workers
 */

/**
 * Runs a command with the agent preloaded, and evaluates its frames in an exporter for this run.
 *
 * @param {object} options
 * @param {string[]} options.command
 * @param {string[]} [options.shown] words of the command in report and recording
 * @param {number} [options.forSeconds] time after which the command is ended
 * @param {'inherit' | number} [options.stdout] stdout of the command; a descriptor keeps memwatch's
 *   own stdout free
 * @param {AbortSignal} [options.abort] signal that ends the command
 * @param {() => Promise<import('@memwatch/engine/recording/format').Work | undefined>}
 *   [options.workOf] returns the work done by the command; called when it has ended, and stored in
 *   the recording
 * @param {{ host: string, port: number }} [options.listen] address on which metrics are served
 *   during the run
 * @param {string} [options.record] file to write a recording to
 * @param {(exporter: Exporter, listen: { host: string, port: number }) => void} [options.onStart]
 * @param {NodeJS.ProcessEnv} [options.env]
 * @returns {Promise<{ report: Report, endedByUs: boolean, spawnError?: NodeJS.ErrnoException }>}
 */
async function watchCommand ({
  command,
  shown = command,
  forSeconds,
  stdout = 'inherit',
  abort,
  workOf,
  listen = { host: '127.0.0.1', port: 0 },
  record,
  onStart,
  env = process.env
}) {
  const { folder, socket } = makeSocketFolder()
  const exporter = privateExporter({ listen, socket, record, shown })
  const targetsSoFar = collectTargets(exporter)
  const leftovers = new Leftovers(socket)
  const signals = new SignalRelay()
  const startedAt = process.hrtime.bigint()
  /** @type {import('@memwatch/engine/recording/format').End | undefined} */
  let end
  try {
    const { listen: at } = await startExporter(exporter)
    onStart?.(exporter, at)
    const { exit, endedByUsAtUnixMs, spawnError, unheard } = await runChild(command, {
      env: withAgent(env, socket),
      stdio: ['inherit', stdout, 'inherit'],
      forSeconds,
      abort,
      signals,
      exporter
    })
    await leftovers.end()
    await farewell(exporter)
    const durationSeconds = secondsSince(startedAt)
    const work = await workOf?.()
    end = { durationSeconds, exit, ...(work && { work }) }
    // A signal ends the wait for the analysis.
    await Promise.race([exporter.analysed(), signals.next()])
    const targets = targetsSoFar()
    const endedByUs = endedByUsAtUnixMs < Infinity
    const said = targets.length > 0 || endedByUs
      ? null
      : await explainUnheard(end, { exporter, signals, command, env, unheard })
    // The end of a process by --for or an abort is not a death.
    const deaths = exporter.deaths.filter(({ diedAtUnixMs }) => diedAtUnixMs < endedByUsAtUnixMs)
    const ended = { command: shown, durationSeconds, exit, targets, deaths }
    const report = { schema: /** @type {const} */ (1), ...ended, ...(said && { ending: said }) }
    return { report, endedByUs, spawnError }
  } finally {
    await exporter.stop(end)
    cleanUp(folder, signals)
  }
}

/**
 * @param {object} options
 * @param {{ host: string, port: number }} options.listen
 * @param {string} options.socket
 * @param {string} [options.record]
 * @param {string[]} options.shown words of the command in the recording
 */
const privateExporter = ({ listen, socket, record, shown }) => new Exporter({
  listen,
  socket: { path: socket },
  compat: true,
  maxTargets: 4096,
  logLevel: 'silent',
  record,
  command: shown
})

/**
 * @param {Exporter} exporter
 * @throws {UsageError} if it cannot listen
 */
async function startExporter (exporter) {
  try {
    return await exporter.start()
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/**
 * @param {Exporter} exporter exporter that starts
 * @returns {() => JudgedTarget[]} the ended targets, and the watched ones
 */
function collectTargets (exporter) {
  /** @type {JudgedTarget[]} */
  const ended = []
  /** Indexes in `ended`. @type {WeakMap<object, number>} */
  const places = new WeakMap()
  exporter.on('end', target => {
    if (!target.frame) return
    places.set(target, ended.length)
    ended.push(judgedTarget(target))
  })
  exporter.on('holders', target => {
    const at = places.get(target)
    if (at !== undefined) ended[at] = judgedTarget(target)
  })
  return () => [...ended, ...exporter.targets.filter(({ frame }) => frame).map(judgedTarget)]
}

/**
 * Explains the end of a command of which no process reported. If V8 wrote a heap snapshot, the
 * explanation has the holders in it.
 * @param {Pick<Report, 'durationSeconds' | 'exit'>} end
 * @param {object} of
 * @param {Exporter} of.exporter
 * @param {SignalRelay} of.signals signals, one of which ends the wait for the analysis
 * @param {string[]} of.command
 * @param {NodeJS.ProcessEnv} of.env
 * @param {UnheardProcess} [of.unheard] readings of the process from the kernel
 * @returns {Promise<import('@memwatch/exporter/deaths/explain-exit').Ending | null>}
 */
async function explainUnheard (
  { durationSeconds, exit }, { exporter, signals, command, env, unheard }
) {
  const rss = unheard?.rss
  const ending = explainExit({ durationSeconds, exit, rss, oomKills: unheard?.oomKills })
  if (!ending || !unheard) return ending
  const analysis = exporter.deathSnapshots.explain({
    pid: unheard.pid,
    cwd: process.cwd(),
    command,
    nodeOptions: splitNodeOptions(env.NODE_OPTIONS ?? ''),
    startedAtUnixMs: unheard.startedAtUnixMs
  })
  const holders = await Promise.race([analysis, signals.next()]) ?? null
  const advice = holders && holders.piles.length > 0
    ? withoutSnapshot(ending.advice)
    : ending.advice
  return { ...ending, advice, holders }
}

/** @param {bigint} startedAt value of process.hrtime.bigint */
const secondsSince = startedAt => Number(process.hrtime.bigint() - startedAt) / 1e9

/** @param {string} [parent] default: the system's temporary folder */
function makeSocketFolder (parent) {
  const folder = makeTemporaryFolder('memwatch-run-', parent)
  return { folder, socket: path.join(folder, 'exporter.sock') }
}

/**
 * Removes the files that the exporter of one run leaves.
 * @param {string} folder folder of its socket
 * @param {SignalRelay} signals
 */
function cleanUp (folder, signals) {
  fs.rmSync(folder, { recursive: true, force: true })
  signals.stop()
}

/**
 * Environment of the command: it preloads the agent, which reports to this exporter.
 * @param {NodeJS.ProcessEnv} env
 * @param {string} socket
 */
const withAgent = (env, socket) => ({
  MEMWATCH_ALLOCATOR_ACCESS: 'read',
  MEMWATCH_FORCED_GC: 'allow',
  ...env,
  NODE_OPTIONS: preloaded(env.NODE_OPTIONS),
  MEMWATCH_SOCKET: socket
})

/**
 * Resolves after the goodbyes of all agents, or after their time limit.
 * @param {Exporter} exporter
 */
const farewell = exporter => Promise.race([
  exporter.drained(),
  new Promise(resolve => setTimeout(resolve, FAREWELL_MS).unref())
])

/**
 * Passes signals on to the command. It listens until everything is cleaned up, so that a second
 * Ctrl-C leaves no files behind.
 */
class SignalRelay {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  child
  /** @type {Map<NodeJS.Signals, () => void>} */
  #relays = new Map()
  #onSignal = () => {}

  constructor () {
    for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
      const relay = () => {
        this.#onSignal()
        // A terminal sends Ctrl-C to the child as well, so passing it on would send it twice.
        if (signal !== 'SIGINT' || !isInForeground()) this.child?.kill(signal)
      }
      this.#relays.set(signal, relay)
      process.on(signal, relay)
    }
  }

  /** Resolves at the next signal. @returns {Promise<void>} */
  next () {
    return new Promise(resolve => { this.#onSignal = resolve })
  }

  stop () {
    for (const [signal, relay] of this.#relays) process.off(signal, relay)
  }
}

/**
 * NODE_OPTIONS with the agent's preload appended. Node.js splits it at spaces, and reads double
 * quotes with backslashes.
 * @param {string} [existing]
 */
function preloaded (existing = '') {
  const agent = require.resolve('@memwatch/agent').replace(/["\\]/g, '\\$&')
  return `${existing} --require "${agent}"`.trimStart()
}

/**
 * @param {string[]} command
 * @param {{ env: NodeJS.ProcessEnv, stdio: import('node:child_process').StdioOptions, forSeconds?:
 *   number, abort?: AbortSignal, signals: SignalRelay, exporter: Exporter }} options
 * @returns {Promise<{ exit: Report['exit'], endedByUsAtUnixMs: number, spawnError?:
 *   NodeJS.ErrnoException, unheard?: UnheardProcess }>} endedByUsAtUnixMs: time at which memwatch
 *   ended it, otherwise Infinity; unheard: readings from the kernel until it reported
 */
async function runChild ([file, ...args], { env, stdio, forSeconds, abort, signals, exporter }) {
  const child = signals.child = spawn(file, args, { env, stdio })
  const { pid } = child
  if (pid !== undefined) exporter.expectExit(pid)
  const unheard = pid === undefined
    ? undefined
    : new UnheardProcess(pid, () => exporter.targets.some(target => target.hello.pid === pid))
  let endedByUsAtUnixMs = Infinity
  /** @type {NodeJS.Timeout[]} */
  const timers = []
  const end = () => {
    if (endedByUsAtUnixMs < Infinity) return
    endedByUsAtUnixMs = Date.now()
    child.kill('SIGTERM')
    timers.push(setTimeout(() => child.kill('SIGKILL'), GRACE_MS))
  }
  if (forSeconds !== undefined) timers.push(setTimeout(end, forSeconds * 1000))
  if (abort?.aborted) end()
  else abort?.addEventListener('abort', end)
  try {
    const [code, signal] = await once(child, 'exit')
    exporter.exited(/** @type {number} */ (child.pid), { code, signal })
    return { exit: { code, signal }, endedByUsAtUnixMs, unheard }
  } catch (error) {
    return { exit: { code: null, signal: null }, endedByUsAtUnixMs, spawnError: /** @type {NodeJS.ErrnoException} */ (error) }
  } finally {
    abort?.removeEventListener('abort', end)
    unheard?.stop()
    timers.forEach(clearTimeout)
  }
}

module.exports = {
  watchCommand, privateExporter, startExporter, collectTargets, makeSocketFolder, farewell
}
