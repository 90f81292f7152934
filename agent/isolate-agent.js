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
 * Watches this isolate: one unref'd timer, collect -> encode -> send. begin.js leads it through its
 * states: `load` piece by piece, `run`, `bye`, `stop`.
 */
class Agent {
  #config
  #guard = new Guard()
  #ownGc = noOwnGc()
  #pauses
  /** That of GCs stays the last. @type {import('./collect/collector').Collector[]} */
  #collectors
  /** @type {import('./allocator-access').AllocatorAccess | undefined} */
  #access
  /** With the transport, from the first attempt to connect. @type {Sessions | undefined} */
  #sessions
  /** @type {import('./transport').Transport | undefined} */
  #transport

  #collectSeconds = 0
  /** Frames begun, and messages of the wire. */
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
    // The hello names the counter: it is said again.
    this.#pauses = gc(gcs, wrap, this.#ownGc, () => this.#transport?.reconnect())
    this.#collectors = [this.#pauses]
    this.#tick = this.#metered('tick', () => {
      this.#transport?.tick(this.#dueSeconds)
      this.#send(this.#dueSeconds)
    })
    // Node hands out the GCs of a turn before its immediates: read in one, a frame knows of all
    // that were before it. Without arguments: Node.js hands those on by the iterator of arrays,
    // which the app may replace.
    this.#onTimer = () => {
      this.#dueSeconds = nowMs() / 1000
      this.#immediate = setImmediate(this.#tick)
    }
    this.bye = wrap('bye', (/** @type {number} */ exitCode) => this.#sayBye(exitCode))
    this.stop = wrap('stop', () => this.#stop())
  }

  /**
   * Loads all that is needed, and connects.
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
    // The hello is as expensive as all collectors together: what it is made of is loaded first.
    yield require('./identity')
    yield process.allowedNodeEnvironmentFlags
    if (this.#config.tokenFile) yield require('node:crypto')
    yield wrap('hello', () => this.#sessions?.hello())()
  }

  /** Sends the first frame, and one each interval from then on. */
  run () {
    this.#onTimer()
    this.#timer = setInterval(this.#onTimer, this.#frameMs)
  }

  get #frameMs () {
    return this.#config.intervalSeconds * 1000
  }

  /**
   * Guarded, and counted as time that the agent took.
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
      sendFrame: (nowSeconds, look) => this.#send(nowSeconds, look)
    })
    const begin = this.#guard.wrap('begin', () => sessions.begin())
    this.#transport ??= new (require('./transport').Transport)(socket, begin, () => this.#isSafe())
    this.#transport.tick(nowMs() / 1000)
  }

  /** In the system's temporary folder anybody could have been there first, to read along. */
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
   * @param {number} nowSeconds when the frame was due and its timer fired
   * @param {boolean} [look] with all that is expensive
   */
  #send (nowSeconds, look) {
    const values = this.#unsent
    const collectors = this.#collectors
    const tick = { count: this.#count++, nowSeconds, look }
    // In one function, and the line below without copies: what runs once a second is cold, and each
    // function more is expensive.
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
      // Figures of the time since the last frame go on while frames wait, which may be given up.
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
