'use strict'

const { pino } = require('pino')
const { version } = require('./package.json')
const { createAttacher } = require('./attachment/create-attacher')
const { createCaptures, retainersOf } = require('./captures/create-captures')
const { steadyUnixMs } = require('./clock')
const { Commands } = require('./commands/commands')
const { DeathWatch } = require('./deaths/death-watch')
const { DeathSnapshots } = require('./deaths/death-snapshots')
const { Deaths } = require('./deaths/deaths')
const { FollowUps } = require('./follow-ups/follow-ups')
const { parts: allParts } = require('./parts')
const { GuardedEmitter } = require('./parts/guarded-emitter')
const { Lifecycle } = require('./parts/lifecycle')
const { Load, MEASURE_EVERY_MS } = require('./self-care/load')
const { Targets } = require('@memwatch/engine/history/targets')

/** Events of targets that the exporter emits again for its parts. */
const TARGET_EVENTS = ['open', 'frame', 'answer', 'vanish', 'back', 'end']

/**
 * @typedef {import('./config').Config} Config
 * @typedef {import('./data-folder/data-folder').DataFolder} DataFolder
 * @typedef {Pick<Config, 'listen' | 'socket' | 'compat' | 'maxTargets' | 'logLevel'> &
 *   Partial<Omit<Config, 'dataDir'>> & { command?: string[], dataFolder?: DataFolder }}
 *   ExporterConfig command: stored in the recording; dataFolder: folder of --data-dir, which the
 *   caller opens and closes
 */

/**
 * Composition root of the exporter: its input is the bytes of agents, its output is verdicts. It
 * holds targets, deaths and captures, and emits events. Each part subscribes by itself, and emits
 * its results on the exporter. A listener that throws is counted and does not affect the others.
 *
 *   open, frame, vanish, back, end (target)   of the targets: engine/history/targets.js
 *   answer (target, answer)                   to a command
 *   session, line, hangup                     parts/agents.js
 *   verdict (target, verdict)                 parts/judging.js
 *   death, alive, lives                       parts/deaths.js
 *   captured, captureFailed (capture, target) parts/captures.js
 *   analysis (target, file)                   parts/deaths.js: V8 wrote a heap snapshot
 *   holders (target, death?)                  parts/captures.js, parts/deaths.js: it was analysed
 *   advised (advice)                          parts/follow-ups.js: a process with a finding ended
 *   followed (target, follow-up)              parts/follow-ups.js
 *   omitted (target, error)                   parts/http.js
 *   load                                      the level of `load` changed
 */
class Exporter extends GuardedEmitter {
  #parts
  #ready = false

  /**
   * @param {ExporterConfig} config
   * @param {{ parts?: readonly (new () => import('./parts').Part)[] }} [options]
   */
  constructor (config, { parts = allParts } = {}) {
    super((error, event) => {
      this.log.error(error, `a listener of ${event} failed; further failures are only counted`)
    })
    this.config = config
    this.log = pino({ level: config.logLevel })
    this.load = new Load({ everyMs: MEASURE_EVERY_MS })
    this.commands = new Commands({ token: config.token })
    this.captures = createCaptures(config, this.commands)
    this.attacher = createAttacher(this)
    this.targetRegistry = new Targets({
      now: steadyUnixMs,
      maxTargets: config.maxTargets,
      sightOf: target => this.deathWatch.sightOf(target)
    })
    this.deathRegistry = new Deaths()
    this.followUps = new FollowUps({ targets: () => this.targets })
    this.deathSnapshots = new DeathSnapshots({ retainersOf, folder: config.snapshotDir })
    const overNetwork = !('path' in config.socket)
    this.deathWatch = new DeathWatch(this.targetRegistry, { overNetwork })
    for (const event of TARGET_EVENTS) {
      this.targetRegistry.on(event, (...args) => this.emit(event, ...args))
    }
    this.on('answer', (target, answer) => this.commands.answered(target, answer))
    for (const event of ['vanish', 'end']) this.on(event, target => this.commands.gone(target))
    this.#parts = new Lifecycle(parts, this.log)
  }

  /** @returns {import('@memwatch/engine/history/target').Target[]} all watched targets */
  get targets () {
    return this.targetRegistry.all
  }

  /** @returns {import('./deaths/deaths').Death[]} newest first */
  get deaths () {
    return this.deathRegistry.all
  }

  /** True between start and stop. */
  get isReady () {
    return this.#ready
  }

  /** @returns {import('./catalog/exporter-metrics').ExporterState} */
  get state () {
    return /** @type {any} */ ({
      version,
      targets: this.targets.length,
      loadLevel: this.load.level,
      listenerErrors: this.listenerErrors,
      ...this.#parts.state
    })
  }

  /**
   * @returns {Promise<{ socket: import('./ingest/address').Address, listen: { host: string, port:
   *   number } }>} the addresses on which it listens
   * @throws {Error} the message names the part that cannot start, the code is the system's, such as
   *   EADDRINUSE; all started parts are stopped then
   */
  async start () {
    const addresses = await this.#parts.start(this)
    this.#ready = true
    return /** @type {any} */ (addresses)
  }

  /** Announces a process whose exit the caller will report by `exited`. @param {number} pid */
  expectExit (pid) {
    this.deathWatch.expectExit(pid)
  }

  /**
   * @param {number} pid
   * @param {import('./process/witness').Exit} exit
   */
  exited (pid, exit) {
    this.deathWatch.exited(pid, exit)
  }

  /** Resolves when no agent is connected any more, and all deaths are explained. */
  async drained () {
    await this.#parts.drained()
  }

  /**
   * Resolves when the captures of ended processes are analysed, and the heap snapshots that V8
   * wrote before a death.
   */
  async analysed () {
    await Promise.all([this.captures.idle(), this.deathSnapshots.idle()])
  }

  /**
   * Stops: accepts no agents, evaluates and saves the received frames, closes all connections.
   * @param {import('@memwatch/engine/recording/format').End} [end] end of the watched command,
   *   stored in the recording
   */
  async stop (end) {
    this.#ready = false
    await this.#parts.stop(end)
  }
}

module.exports = { Exporter }
