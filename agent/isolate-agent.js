'use strict'

const path = require('node:path')
const { isMainThread } = require('node:worker_threads')
const {
  clearImmediate,
  clearInterval,
  nowMs,
  nowUnixMs,
  setImmediate,
  setInterval,
  stringifyJson
} = require('./primordials')
const { PROTOCOL_VERSION, MAX_LINE_BYTES, NO_VALUES } = require('./protocol/frame')
const { defaultSocketPath, isOwnFolder } = require('./protocol/socket')
const { encode } = require('./encode')
const { Guard, attempt } = require('./guard')
const { gc, noOwnGc } = require('./collect/gc')

/**
 * Agent of this isolate: one unref'd timer, collect -> encode -> send. begin.js calls `load` piece
 * by piece, `run`, `bye` and `stop`.
 */
class Agent {
  #config
  #guard = new Guard()
  #ownGc = noOwnGc()
  #pauses
  /** The collector of GCs stays last. @type {import('./collect/collector').Collector[]} */
  #collectors
  /** @type {import('./allocator-access').AllocatorAccess | undefined} */
  #access
  /** Created with the transport, at the first attempt to connect. @type {Sessions | undefined} */
  #sessions
  /** @type {import('./transport').Transport | undefined} */
  #transport

  #collectSeconds = 0
  /** Number of frames begun, and of messages sent. */
  #count = 0
  #sequence = 0
  #framesTooLong = 0
  /** Values of a frame that was too long: the next frame sends them. */
  #unsent = { ...NO_VALUES }

  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {NodeJS.Immediate | undefined} */
  #immediate
  #dueSeconds = 0
  #onTimer
  #tick

  /**
   * @param {import('./protocol/config').Config} config
   * @param {import('./collect/gc-start').StartedGcs} gcs
   */
  constructor (config, gcs) {
    const wrap = this.#guard.wrap.bind(this.#guard)
    this.#config = config
    // A new hello must name the new counter of GCs.
    this.#pauses = gc(gcs, wrap, this.#ownGc, () => this.#transport?.reconnect())
    this.#collectors = [this.#pauses]
    this.#tick = this.#metered('tick', () => {
      this.#transport?.tick(this.#dueSeconds)
      this.#send(this.#dueSeconds)
    })
    // Node delivers the GCs of a turn before its immediates, so a frame read in an immediate counts
    // all of them. setImmediate gets no arguments: Node.js passes them by the iterator of arrays,
    // which the app may replace.
    this.#onTimer = () => {
      this.#dueSeconds = nowMs() / 1000
      this.#immediate = setImmediate(this.#tick)
    }
    this.bye = wrap('bye', (/** @type {number} */ exitCode) => this.#sayBye(exitCode))
    this.stop = wrap('stop', () => this.#stop())
  }

  /**
   * Loads all modules, and connects.
   * @returns {Generator<unknown, void>} pauses after each piece
   */
  * load () {
    const wrap = this.#guard.wrap.bind(this.#guard)
    yield require('node:net')
    yield require('./transport')
    yield require('./sessions')
    yield wrap('connect', () => this.#connect())()
    const loading = require('./collect').collectors({
      isMainThread,
      frameMs: this.#frameMs,
      guarded: wrap,
      metered: (what, work) => this.#metered(what, work),
      majors: this.#pauses.majors,
      ownGc: this.#ownGc,
      access: this.#access,
      memoryLimitBytes: this.#config.memoryLimitBytes
    })
    const add = wrap('start', collector => this.#add(collector))
    const next = wrap('load', () => loading.next())
    for (let piece = next(); piece && !piece.done; piece = next()) {
      if (piece.value) add(piece.value)
      yield
    }
    // The hello is as expensive as all collectors together: load its parts first.
    yield require('./identity')
    yield process.allowedNodeEnvironmentFlags
    if (this.#config.tokenFile) yield require('node:crypto')
    yield wrap('hello', () => this.#sessions?.hello())()
    yield * this.#readInPieces(wrap)
  }

  /**
   * Reads all values once, with pauses: the first read of each collector is expensive, because V8
   * compiles its code. The values stay unsent, so the first frame completes them. Reading the GCs
   * would also count a turn of their self-check.
   * @param {Guard['wrap']} wrap
   */
  * #readInPieces (wrap) {
    const tick = { count: this.#count++, nowSeconds: nowMs() / 1000 }
    for (const collector of this.#collectors) {
      if (collector !== this.#pauses) {
        yield wrap('collect', () => collector.read(this.#unsent, tick))()
      }
    }
  }

  /** Sends the first frame now, and then one each interval. */
  run () {
    this.#onTimer()
    this.#timer = setInterval(this.#onTimer, this.#frameMs)
  }

  get #frameMs () {
    return this.#config.intervalSeconds * 1000
  }

  /**
   * Guards work, and counts its time as the agent's.
   * @param {string} what
   * @param {() => void} work
   */
  #metered (what, work) {
    return this.#guard.wrap(what, () => {
      const began = nowMs()
      try {
        work()
      } finally {
        this.#collectSeconds += (nowMs() - began) / 1000
      }
    })
  }

  #connect () {
    const { allocatorAccess, socket } = this.#config
    if (allocatorAccess !== 'off' && isMainThread) {
      this.#access ??= require('./allocator-access').allocatorAccess()
    }
    const sessions = this.#sessions ??= new (require('./sessions').Sessions)({
      config: this.#config,
      guard: this.#guard,
      access: this.#access,
      pauses: this.#pauses,
      ownGc: this.#ownGc,
      sendFrame: (nowSeconds, isOnDemand) => this.#send(nowSeconds, isOnDemand)
    })
    const begin = this.#guard.wrap('begin', () => sessions.begin())
    this.#transport ??= new (require('./transport').Transport)(socket, begin, () => this.#isSafe())
    this.#transport.tick(nowMs() / 1000)
  }

  /** Another user may have created the socket in the system's temporary folder, to read frames. */
  #isSafe () {
    const { socket } = this.#config
    const isDefault = 'path' in socket && socket.path === defaultSocketPath()
    return !isDefault || isOwnFolder(path.dirname(defaultSocketPath()))
  }

  /** @param {import('./collect/collector').Collector} collector */
  #add (collector) {
    this.#collectors.splice(-1, 0, collector)
    collector.start?.()
  }

  /**
   * @param {number} nowSeconds due time: the timer fired then
   * @param {boolean} [isOnDemand] include all expensive values
   */
  #send (nowSeconds, isOnDemand) {
    const values = this.#unsent
    const collectors = this.#collectors
    const tick = { count: this.#count++, nowSeconds, isOnDemand }
    // All of it is one function, without copies for the line below: code that runs once a second is
    // cold, and each further function is expensive.
    for (let i = 0; i < collectors.length; i++) {
      try {
        collectors[i].read(values, tick)
      } catch (error) {
        this.#guard.caught('collect', error)
      }
    }
    values.agentErrors = this.#guard.errors
    values.framesDropped = this.#framesTooLong + (this.#transport?.dropped ?? 0)
    values.collectSeconds = this.#collectSeconds
    const line =
      stringifyJson({
        v: PROTOCOL_VERSION,
        type: 'frame',
        sequence: ++this.#sequence,
        atUnixMs: nowUnixMs(),
        uptimeSeconds: Math.round(nowMs()) / 1000,
        values
      }) + '\n'
    if (line.length <= MAX_LINE_BYTES && this.#transport) {
      this.#unsent = { ...NO_VALUES }
      // Peaks continue while frames wait, as the transport may drop these frames.
      if (this.#transport.write(line)) {
        for (let i = 0; i < collectors.length; i++) collectors[i].sent?.()
      }
    } else {
      this.#framesTooLong++
    }
  }

  /** @param {number} exitCode */
  #sayBye (exitCode) {
    if (!this.#transport) this.#guard.wrap('connect', () => this.#connect())()
    this.#transport?.finish()
    this.#send(nowMs() / 1000)
    const sequence = ++this.#sequence
    this.#transport?.write(encode('bye', { sequence, atUnixMs: nowUnixMs(), exitCode }))
  }

  #stop () {
    clearInterval(this.#timer)
    clearImmediate(this.#immediate)
    for (const collector of this.#collectors) attempt('stop', () => collector.stop?.())
    this.#transport?.stop()
  }
}

/** @typedef {import('./sessions').Sessions} Sessions */

module.exports = { Agent }
