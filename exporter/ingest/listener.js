'use strict'

const { once } = require('node:events')
const { MAX_LINE_BYTES, PROTOCOL_VERSION } = require('@memwatch/agent/protocol/frame')
const { decode } = require('@memwatch/engine/decode/decode')
const { Endpoint } = require('./endpoint')
const { LineSplitter } = require('@memwatch/engine/decode/lines')

/** Time limit for the hello. A peer that sends no hello is not an agent. */
const HELLO_TIMEOUT_MS = 10_000
/** Start of every frame line. A frame that may be skipped is recognised without parsing it. */
const FRAME = `{"v":${PROTOCOL_VERSION},"type":"frame"`
/** Silence after which the kernel probes the peer, ten times at intervals of a second. */
const KEEP_ALIVE_MS = 10_000
/** Limits of one listener: memory that slow peers can occupy, and number of connections. */
const LIMITS = Object.freeze({ maxConnections: 4096, maxUnfinishedBytes: 16 * 2 ** 20 })
/** Limits of one pod among many: no pod can use up the share of the others. */
const POD_LIMITS = Object.freeze({ maxConnections: 64, maxUnfinishedBytes: 2 ** 20 })
/**
 * Burst and rate of frames of a target. The burst covers a pause of the exporter; an agent sends
 * ten frames a second at most. A new connection gives a target no new allowance.
 */
const BURST_FRAMES = 300
const FRAMES_PER_SECOND = 20
/** Chunk size of node:net: after a full chunk more data follows. */
const FULL_CHUNK_BYTES = 65_536
/** Length up to which a frame is ordinary. The longest frame of the lab has 2,500 characters. */
const ORDINARY_FRAME_LENGTH = 4096
/**
 * Number of rejected lines after which a connection is closed, because its sender is defective or
 * hostile.
 */
const MAX_REJECTS = 100

/**
 * Consumer of a connection's messages.
 * @typedef {object} Sink
 * @property {(hello: import('@memwatch/engine/decode/decode').HelloMessage, send: (line: string) =>
 *   void, podUid?: string) => Session | import('@memwatch/engine/decode/decode').RejectReason} open
 *   send: sends to the agent; podUid: UID of the pod from which the connection comes, known from
 *   its socket
 * @property {(session: Session, frame: { count: number, isLarger: boolean }) => boolean} [sheds]
 *   true: a frame may be skipped without reading it; count: number of earlier frames; isLarger:
 *   true if it is larger than the last frame that was read, and than ordinary frames
 * @property {(bytes: number) => void} [received] called with the number of received bytes
 * @property {(message: import('@memwatch/engine/decode/decode').CaptureMessage, socket:
 *   import('node:net').Socket, rest: Buffer) => boolean} [capture] accepts a connection that
 *   transfers a part of a capture, with the data that arrived together with its line; false if the
 *   part was not requested
 * @property {(reason: import('@memwatch/engine/decode/decode').RejectReason) => void} reject counts
 *   a rejected line
 * @property {(hello: string) => { line: (line: string) => void, closed: () => void } | undefined}
 *   [record] receives the exact lines of a session
 *
 * @typedef {import('@memwatch/engine/history/targets').Session} Session
 */

/**
 * States of a connection.
 *
 *   greeting   no line was accepted yet: a hello opens a session, or a capture begins
 *   watched    frames, a bye and answers belong to its session
 *   capturing  the following bytes belong to a capture: no more lines are read
 */
const STATES = Object.freeze({ greeting: 'greeting', watched: 'watched', capturing: 'capturing' })

/** One connection: splits its bytes into lines and handles each line. */
class Connection {
  /** @type {keyof typeof STATES} */
  #state = STATES.greeting
  #socket
  #endpoint
  #sink
  #allowanceOf
  #lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES })
  #allowance = new Allowance()
  /** Session in the state `watched`. @type {Session | undefined} */
  #session
  /** @type {ReturnType<NonNullable<Sink['record']>>} */
  #record
  /**
   * Capture message in the state `capturing`.
   * @type {import('@memwatch/engine/decode/decode').CaptureMessage | undefined}
   */
  #capture
  #rejects = 0
  #frames = 0
  /** Length in characters of the last frame that was read, at least that of an ordinary frame. */
  #frameLength = ORDINARY_FRAME_LENGTH
  #isTimedOut = false
  #take = (/** @type {string} */ line) => this.#takeLine(line)
  #read = (/** @type {Buffer} */ chunk) => this.#readChunk(chunk)

  /**
   * @param {object} options
   * @param {import('node:net').Socket} options.socket
   * @param {Endpoint} options.endpoint
   * @param {Sink} options.sink
   * @param {(target: import('@memwatch/engine/history/target').Target, fresh: Allowance) =>
   *   Allowance} options.allowanceOf returns the allowance of a target, shared by all of its
   *   connections
   */
  constructor ({ socket, endpoint, sink, allowanceOf }) {
    this.#socket = socket
    this.#endpoint = endpoint
    this.#sink = sink
    this.#allowanceOf = allowanceOf
  }

  start () {
    const socket = this.#socket
    socket.setKeepAlive(true, KEEP_ALIVE_MS) // This detects TCP peers that are gone.
    socket.setTimeout(HELLO_TIMEOUT_MS, () => socket.destroy())
    socket.on('data', this.#read)
    // The listener of 'close', which follows, passes this reason on.
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) => {
      this.#isTimedOut = code === 'ETIMEDOUT' || code === 'EHOSTUNREACH'
    })
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      this.#endpoint.unfinishedBytes -= this.#lines.heldBytes
      this.#record?.closed()
      this.#session?.closed(this.#isTimedOut)
    })
  }

  /** @param {Buffer} chunk */
  #readChunk (chunk) {
    const socket = this.#socket
    const before = this.#lines.heldBytes
    const rest = this.#lines.push(chunk, this.#take, () => this.#reject('line_too_long'))
    if (this.#capture && rest) {
      socket.off('data', this.#read).pause()
      if (!this.#sink.capture?.(this.#capture, socket, rest)) socket.destroy()
    }
    this.#endpoint.unfinishedBytes += this.#lines.heldBytes - before
    this.#sink.received?.(chunk.length)
    if (chunk.length >= FULL_CHUNK_BYTES && this.#state !== STATES.capturing) {
      // libuv reads a busy socket up to 32 times in a turn of the event loop. Other connections
      // wait meanwhile.
      socket.pause()
      setImmediate(() => socket.resume())
    }
    if (this.#endpoint.unfinishedBytes > this.#endpoint.maxUnfinishedBytes) {
      this.#reject('too_much_unfinished')
      socket.destroy()
    }
  }

  /**
   * @param {string} line
   * @returns {boolean | void} true: the following bytes belong to a capture
   */
  #takeLine (line) {
    if (this.#socket.destroyed) return
    this.#session?.heard()
    const isFrame = this.#session !== undefined && line.startsWith(FRAME)
    if (this.#session && isFrame && !this.#admits(this.#session, line)) return
    const decoded = decode(line)
    if (!decoded.ok) return this.#reject(decoded.reason)
    const { message } = decoded
    if (this.#session) return this.#takeOfSession(this.#session, message, { line, isFrame })
    if (message.type === 'hello') return this.#greet(message, line)
    if (message.type !== 'capture') return this.#reject('hello_missing')
    this.#state = STATES.capturing
    this.#capture = message
    return true
  }

  /**
   * Decides before parsing if a frame is admitted, so that frames beyond the allowance cost next to
   * nothing.
   * @param {Session} session
   * @param {string} line
   */
  #admits (session, { length }) {
    const isLarger = length > this.#frameLength
    if (this.#sink.sheds?.(session, { count: this.#frames++, isLarger })) return false
    if (!this.#allowance.take()) {
      this.#reject('too_fast')
      return false
    }
    this.#frameLength = Math.max(ORDINARY_FRAME_LENGTH, length)
    return true
  }

  /**
   * @param {import('@memwatch/engine/decode/decode').HelloMessage} hello
   * @param {string} line
   */
  #greet (hello, line) {
    const socket = this.#socket
    const opened = this.#sink.open(hello, line => { socket.write(line) }, this.#endpoint.podUid)
    if (typeof opened === 'string') {
      this.#reject(opened)
      // The exporter may not have noticed yet that the agent's previous connection broke, and the
      // agent will retry in a second.
      if (opened === 'identity_in_use') socket.destroy()
      return
    }
    this.#state = STATES.watched
    this.#session = opened
    this.#allowance = this.#allowanceOf(opened.target, this.#allowance)
    this.#record = this.#sink.record?.(line)
    socket.setTimeout(0)
  }

  /**
   * @param {Session} session
   * @param {import('@memwatch/engine/decode/decode').Message} message
   * @param {{ line: string, isFrame: boolean }} as isFrame: true if the line was admitted as a
   *   frame
   */
  #takeOfSession (session, message, { line, isFrame }) {
    if (message.type === 'hello') return this.#reject('hello_repeated')
    if (message.type === 'capture') return this.#reject('unknown_type')
    if (message.type === 'answer') return session.answer(message)
    if (!isFrame && !this.#allowance.take()) return this.#reject('too_fast')
    this.#record?.line(line)
    if (message.type === 'bye') return session.bye(message)
    const refused = session.frame(message)
    if (refused) this.#reject(refused)
  }

  /** @param {import('@memwatch/engine/decode/decode').RejectReason} reason */
  #reject (reason) {
    this.#sink.reject(reason)
    if (++this.#rejects >= MAX_REJECTS) this.#socket.destroy()
  }
}

/** Accepts agents' connections and turns their bytes into sessions of messages. */
class Listener {
  #sink
  /** @type {Set<Endpoint>} */
  #endpoints = new Set()
  /** @type {WeakMap<import('@memwatch/engine/history/target').Target, Allowance>} */
  #allowances = new WeakMap()

  /** @param {Sink} sink */
  constructor (sink) {
    this.#sink = sink
  }

  /** Number of open connections. */
  get connections () {
    return this.#sockets.length
  }

  get #sockets () {
    return [...this.#endpoints].flatMap(({ sockets }) => [...sockets])
  }

  /**
   * @param {import('./address').Address} address
   * @param {{ podUid?: string, maxConnections?: number }} [options] podUid: UID of the only pod
   *   that can reach the address
   * @returns {Promise<Endpoint>} endpoint, whose address has the actual port
   * @throws {Error} code EADDRINUSE if another exporter listens there, or an error of the system
   */
  async listen (address, { podUid, ...limits } = {}) {
    const endpoint = new Endpoint({
      ...(podUid === undefined ? LIMITS : POD_LIMITS),
      ...limits,
      podUid,
      accept: (socket, at) => this.#accept(socket, at)
    })
    await endpoint.listen(address)
    this.#endpoints.add(endpoint)
    return endpoint
  }

  /** @param {Endpoint} endpoint */
  async shut (endpoint) {
    this.#endpoints.delete(endpoint)
    await endpoint.close()
  }

  /** Resolves when no connection is open. */
  async drained () {
    while (this.connections > 0) {
      await Promise.all(this.#sockets.map(socket => once(socket, 'close')))
    }
  }

  /** Stops accepting, drops all connections and removes the socket files. */
  async close () {
    await Promise.all([...this.#endpoints].map(endpoint => endpoint.close()))
    this.#endpoints.clear()
  }

  /**
   * @param {import('node:net').Socket} socket
   * @param {Endpoint} endpoint
   */
  #accept (socket, endpoint) {
    const allowanceOf = this.#allowanceOf.bind(this)
    new Connection({ socket, endpoint, sink: this.#sink, allowanceOf }).start()
  }

  /**
   * @param {import('@memwatch/engine/history/target').Target} target
   * @param {Allowance} fresh allowance for a new target
   * @returns {Allowance}
   */
  #allowanceOf (target, fresh) {
    const allowance = this.#allowances.get(target) ?? fresh
    this.#allowances.set(target, allowance)
    return allowance
  }
}

/** Token bucket: the number of frames that a target may send now. */
class Allowance {
  #frames = BURST_FRAMES
  #atMs = performance.now()

  /** Takes a token. @returns {boolean} false if none is left */
  take () {
    const nowMs = performance.now()
    this.#frames = Math.min(
      BURST_FRAMES,
      this.#frames + ((nowMs - this.#atMs) / 1000) * FRAMES_PER_SECOND
    )
    this.#atMs = nowMs
    if (this.#frames < 1) return false
    this.#frames--
    return true
  }
}

module.exports = { Listener }
