'use strict'

const { EventEmitter } = require('node:events')
const path = require('node:path')
const { version } = require('./package.json')
const { Listener } = require('./ingest/listener')
const { PodSockets } = require('./ingest/pod-sockets')
const { Targets } = require('./series/targets')
const { evaluate } = require('./classify/evaluate')
const { InTurns } = require('./classify/in-turns')
const { createMetrics } = require('./expose/metrics')
const { createServer } = require('./expose/server')
const { attach, attachEarlier } = require('./captures/attach')
const { AutomaticCaptures } = require('./captures/automatic')
const { Captures } = require('./captures/captures')
const { CaptureStore } = require('./captures/store')
const { Commands } = require('./commands/commands')
const { DeathWatch } = require('./deaths/death-watch')
const { Deaths } = require('./deaths/deaths')
const { FlightRecorder } = require('./flight/flight-recorder')
const { Load } = require('./self-care/load')
const { Recorder } = require('./recording/recorder')
const { Webhook } = require('./expose/webhook')
const { unusedEndpoint } = require('./otlp/address')

/** How often vanished targets are looked for, and the exporter looks at itself. */
const EXPIRE_EVERY_MS = 5000
/** Of one pod of many on a node: processes and workers, those that vanished lately among them. */
const MAX_TARGETS_OF_POD = 64

/**
 * The composition root: agents' bytes in, verdicts out.
 *   listener → targets (history) → in turns → evaluate (signals, diagnoses) → verdicts → server
 *                               → death watch → deaths
 *                               → flight recorder
 *                                 verdicts → automatic captures → suspects
 *                                          → webhook
 *                               → all of it → OTLP
 *
 * Emits `frame` (target), `verdict` (target, verdict) when a diagnosis changes its state on a target, `death` (death) when a process is gone and
 * why is known, `captured` (capture) when one is complete, and `end` (target) when a target is over.
 */
class Exporter extends EventEmitter {
  #config
  /** @type {Targets} */
  #targets
  #commands
  #captures
  #automatic
  #inTurns = new InTurns(target => this.#judge(target))
  #load = new Load({ everyMs: EXPIRE_EVERY_MS })
  #deaths = new Deaths()
  /** @type {DeathWatch} */
  #deathWatch
  #flight
  #listener
  /** @type {PodSockets | undefined} */
  #podSockets
  #server
  /** @type {NodeJS.Timeout | undefined} */
  #expiry
  /** @type {Recorder | undefined} */
  #recorder
  /** @type {Webhook | undefined} */
  #webhook
  /** @type {import('./otlp/otlp').Otlp | undefined} */
  #otlp
  /** @type {Map<string, number>} */
  #rejected = new Map()
  #frames = 0
  #framesShed = 0
  #diagnosisErrors = 0
  /** Targets that an answer of the API was without. @type {WeakSet<import('./series/target').Target>} */
  #omitted = new WeakSet()
  #targetsOmitted = 0
  #ready = false

  /**
   * @param {Pick<import('./config').Config, 'listen' | 'socket' | 'compat' | 'maxTargets' | 'logLevel'> & Partial<Omit<import('./config').Config, 'dataDir'>> & {
   *   command?: string[], dataFolder?: import('./data-folder/data-folder').DataFolder }} config
   *   tokenFile: the token that was read from it; command: goes into the recording; dataFolder: that of --data-dir, opened, and closed by the caller
   * @throws {Error} when the recording cannot be opened
   */
  constructor (config) {
    super()
    this.#config = config
    const { dataFolder } = config
    if (config.record) {
      this.#recorder = new Recorder(config.record, {
        command: config.command,
        onError: error => this.#log.error(error, `recording to ${config.record} ended`)
      })
    }
    if (config.webhook) {
      this.#webhook = new Webhook({
        url: config.webhook,
        secretFile: config.webhookSecretFile,
        onFailure: ({ message }) => this.#log.warn(`--webhook: a post was given up: ${message}`)
      })
    }
    this.#targets = new Targets({ maxTargets: config.maxTargets, sightOf: target => this.#deathWatch.sightOf(target) })
    // Before anybody else hears of it.
    for (const event of ['next', 'vanish', 'end']) this.#targets.on(event, target => this.#inTurns.now(target))
    this.#commands = new Commands({ token: config.tokenFile })
    this.#captures = new Captures({
      commands: this.#commands,
      store: CaptureStore.of({ folder: dataFolder && path.join(dataFolder.path, 'captures'), quarantine: dataFolder?.quarantine, maxBytes: config.capturesMax, keepSeconds: config.capturesKeep }),
      // What reads sources takes two megabytes: most exporters never need it.
      suspectsOf: (...of) => require('./captures/suspects').suspectsOf(...of)
    })
    this.#captures.on('done', (capture, target) => this.#captured(capture, target))
    this.#automatic = config.autoCaptures === false ? undefined : new AutomaticCaptures(this.#captures)
    this.#deathWatch = new DeathWatch(this.#targets, { overNetwork: !('path' in config.socket) })
    this.#flight = new FlightRecorder({
      targets: this.#targets,
      folder: dataFolder?.path,
      quarantine: dataFolder?.quarantine,
      hold: async () => dataFolder?.hold(),
      maxBytes: config.dataMax,
      memoryBytes: () => this.#load.now.historyBytes,
      onFailure: failure => failure
        ? this.#log.error(failure, `cannot save to ${dataFolder?.path}: what is kept, is kept in memory`)
        : this.#log.info(`saving to ${dataFolder?.path} again`)
    })
    this.#deathWatch.on('death', (death, lastMinutes, target) => {
      this.#flight.death(death, this.#deaths.add(death, lastMinutes), target)
      this.#log.warn({ target: death.target, thread: death.thread, reason: death.reason, sure: death.sure }, death.text)
      this.#otlp?.died(target, death)
      this.emit('death', death)
    })
    this.#deathWatch.on('alive', id => {
      this.#deaths.retract(id)
      this.#flight.retract(id)
      this.#log.warn({ death: id }, 'who was taken for dead is back')
    })
    this.#deathWatch.on('lives', target => {
      this.#log.warn({ target: target.name, pid: target.hello.pid }, 'a goodbye came in the name of a process that lives: no death')
    })
    this.#listener = new Listener({
      open: (hello, send, podUid) => this.#open(hello, send, podUid),
      sheds: ({ target }, { count, isLarger }) => {
        const sheds = this.#load.sheds(target, count, isLarger)
        if (sheds) this.#framesShed++
        return sheds
      },
      received: bytes => { if (this.#load.received(bytes)) this.#logLoad() },
      record: hello => this.#recorder?.session(hello),
      capture: (message, socket, rest) => this.#captures.take(message, socket, rest),
      reject: reason => { this.#rejected.set(reason, (this.#rejected.get(reason) ?? 0) + 1) }
    })
    if (config.socketDir) {
      this.#podSockets = new PodSockets({
        listener: this.#listener,
        folder: config.socketDir,
        onFailure: (pod, error) => this.#log.error({ pod }, `--socket-dir: ${error.message}`)
      })
    }
    const metrics = createMetrics({ targets: () => this.#targets.all, state: () => this.state, compat: config.compat })
    this.#server = createServer({ targets: () => this.#targets.all, metrics, isReady: () => this.#ready, logLevel: config.logLevel, commands: this.#commands, captures: this.#captures, deaths: this.#deaths, deathWatch: this.#deathWatch, events: this, omit: (target, error) => this.#omit(target, error), token: config.tokenFile, trustLoopback: config.trustLoopback })
    if (config.otlp) {
      // OpenTelemetry's packages take five megabytes: only who asks for them loads them.
      const { Otlp } = require('./otlp/otlp')
      this.#otlp = new Otlp({ to: config.otlp, source: { targets: () => this.#targets.all, state: () => this.state }, log: this.#log })
    } else if (config.otlp !== undefined && unusedEndpoint(process.env)) {
      this.#log.info(`${unusedEndpoint(process.env)} is set, and not used without --otlp env`)
    }
    this.#targets.on('open', target => attachEarlier(target, this.#captures.all))
    this.#targets.on('open', target => this.#log.info({ target: target.name, thread: target.thread, node: target.hello.node }, 'target opened'))
    this.#targets.on('frame', target => this.#framed(target))
    this.#targets.on('answer', (target, answer) => this.#commands.answered(target, answer))
    this.#targets.on('vanish', target => this.#commands.gone(target))
    this.#targets.on('end', target => {
      this.#commands.gone(target)
      this.#otlp?.ended(target)
      this.#log.info({ target: target.name, thread: target.thread, exitCode: target.exitCode }, 'target ended')
      this.emit('end', target)
    })
  }

  /** @returns {import('./series/target').Target[]} all targets that are watched now */
  get targets () {
    return this.#targets.all
  }

  /** @returns {import('./catalog/exporter-metrics').ExporterState} */
  get state () {
    return {
      rejected: this.#rejected,
      frames: this.#frames,
      framesShed: this.#framesShed,
      loadLevel: this.#load.level,
      connections: this.#listener.connections,
      targets: this.#targets.all.length,
      diagnosisErrors: this.#diagnosisErrors,
      targetsOmitted: this.#targetsOmitted,
      exits: this.#deaths.exits(this.#targets.all),
      deaths: this.#deaths.lastOfEach,
      silent: this.#targets.all.flatMap(target => {
        const cause = this.#deathWatch.silenceOf(target)
        return cause ? [{ target, cause }] : []
      }),
      flight: this.#flight.state,
      captures: { counts: this.#captures.counts, bytes: this.#captures.bytes },
      webhook: this.#webhook?.counts,
      otlp: this.#otlp?.counts,
      version
    }
  }

  /**
   * @returns {Promise<{ socket: import('./ingest/address').Address, listen: { host: string, port: number } }>} where it listens
   * @throws {Error} code EADDRINUSE, EACCES …; nothing is left open then
   */
  async start () {
    // Before any agent can be back: who is known already is not restored.
    this.#restore()
    const { address: socket } = await this.#listener.listen(this.#config.socket)
    try {
      await this.#podSockets?.start()
      const { host, port } = this.#config.listen
      await this.#server.listen({ host, port })
    } catch (error) {
      await this.#podSockets?.stop()
      await this.#listener.close()
      await this.#recorder?.stop()
      throw error
    }
    this.#flight.start()
    this.#expiry = setInterval(() => this.#tidy(), EXPIRE_EVERY_MS)
    this.#expiry.unref()
    this.#deathWatch.start()
    this.#otlp?.start()
    this.#ready = true
    const bound = /** @type {import('node:net').AddressInfo} */ (this.#server.server.address())
    return { socket: /** @type {import('./ingest/address').Address} */ (socket), listen: { host: bound.address, port: bound.port } }
  }

  /** Nothing that lies in the data folder keeps the exporter from starting. */
  #restore () {
    const { dataFolder } = this.#config
    if (dataFolder?.unlocked) this.#log.warn(dataFolder.unlocked, 'data folder cannot be locked against a second exporter')
    for (const restore of [() => this.#captures.restore(), () => this.#flight.restore(this.#deaths)]) {
      try {
        restore()
      } catch (error) {
        this.#log.error(error, 'saved history or captures not restored')
      }
    }
    const unreadable = dataFolder?.quarantine.report()
    if (unreadable) this.#log.warn(unreadable, 'unreadable files moved aside')
  }

  /** @returns {Captures} */
  get captures () {
    return this.#captures
  }

  /** @returns {import('./deaths/deaths').Death[]} newest first */
  get deaths () {
    return this.#deaths.all
  }

  /** The caller started this process, and will say by `exited` how it ended. @param {number} pid */
  expectExit (pid) {
    this.#deathWatch.expectExit(pid)
  }

  /** @param {number} pid @param {import('./process/witness').Exit} exit */
  exited (pid, exit) {
    this.#deathWatch.exited(pid, exit)
  }

  /** Resolves when no agent is connected any more, and why those that left are gone is known. */
  async drained () {
    await this.#listener.drained()
    await this.#deathWatch.settled()
  }

  /**
   * Stop listening, close all connections, remove the socket file, finish the recording.
   * @param {import('./recording/format').End} [end] goes into the recording
   */
  async stop (end) {
    this.#ready = false
    clearInterval(this.#expiry)
    this.#deathWatch.stop()
    await this.#podSockets?.stop()
    await this.#listener.close()
    this.#inTurns.end()
    await this.#otlp?.stop()
    await this.#flight.stop()
    await this.#recorder?.stop(end)
    await this.#server.close()
    this.#captures.close()
    this.#webhook?.stop()
  }

  /**
   * Which pod it is says the socket that it came by, not what it says of itself; and no pod may take the room of the others.
   * @param {import('./ingest/decode').HelloMessage} said @param {(line: string) => void} send @param {string} [podUid]
   */
  #open (said, send, podUid) {
    if (podUid !== undefined && said.pod?.uid !== undefined && said.pod.uid !== podUid) return /** @type {const} */ ('wrong_pod')
    const hello = podUid === undefined ? said : { ...said, pod: { ...said.pod, uid: podUid } }
    // Who is watched already may come back.
    if (!this.#load.now.newTargets && !this.#targets.has(hello)) return /** @type {const} */ ('overloaded')
    return this.#targets.open(hello, send, podUid === undefined ? {} : { maxOfPod: MAX_TARGETS_OF_POD })
  }

  get #log () {
    return this.#server.log
  }

  #tidy () {
    this.#targets.expire()
    this.#captures.tidy()
    if (this.#load.measure()) this.#logLoad()
  }

  #logLoad () {
    this.#log.warn({ level: this.#load.level }, `load: gives up ${this.#load.now.gives}`)
  }

  /** @param {import('./series/target').Target} target @param {Error} error */
  #omit (target, error) {
    if (this.#omitted.has(target)) return
    this.#omitted.add(target)
    this.#targetsOmitted++
    this.#log.error({ target: target.name, thread: target.thread, pid: target.hello.pid, error: error.message }, 'target omitted from answers: it cannot be serialized')
  }

  /** @param {import('./captures/captures').Capture} capture @param {import('./series/target').Target} target */
  #captured (capture, target) {
    const { id, kind, error } = capture
    const which = { capture: id, target: target.name, thread: target.thread, kind }
    if (error) return this.#log.warn(which, `capture failed: ${error}`)
    attach(target, capture)
    this.#log.info(which, 'captured')
    this.emit('captured', capture)
  }

  /** @param {import('./series/target').Target} target */
  #framed (target) {
    this.#frames++
    this.#otlp?.framed(target)
    this.emit('frame', target)
    this.#inTurns.add(target)
  }

  /** @param {import('./series/target').Target} target */
  #judge (target) {
    const changed = evaluate(target, {
      everySeconds: this.#load.evaluateSeconds(target),
      onError: error => {
        this.#diagnosisErrors++
        this.#log.error(error)
      }
    })
    for (const verdict of changed) {
      this.#log.info({ target: target.name, thread: target.thread, diagnosis: verdict.diagnosis, state: verdict.state }, verdict.summary)
      if (this.#load.level === 0) this.#automatic?.changed(target, verdict)
      this.#webhook?.changed(target, verdict)
      this.#otlp?.changed(target, verdict)
      this.emit('verdict', target, verdict)
    }
  }
}

module.exports = { Exporter }
