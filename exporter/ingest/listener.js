'use strict'

const { once } = require('node:events')
const { MAX_LINE_BYTES, PROTOCOL_VERSION } = require('memwatch/frame')
const { decode } = require('./decode')
const { Door } = require('./door')
const { LineSplitter } = require('./lines')

/** A peer that sends no hello this long after connecting is no agent. */
const HELLO_TIMEOUT_MS = 10_000
/** How an agent's frames begin: what can be done without need not be parsed. */
const FRAME = `{"v":${PROTOCOL_VERSION},"type":"frame"`
/**
 * After so much silence the kernel asks whether the peer is still there, ten times a second apart.
 */
const KEEP_ALIVE_MS = 10_000
/**
 * Most that may come in by one door: what many slow peers could make the exporter hold, and how
 * many they may be.
 */
const LIMITS = Object.freeze({ maxConnections: 4096, maxUnfinishedBytes: 16 * 2 ** 20 })
/** The same for one pod of many: no pod takes what the others need. */
const POD_LIMITS = Object.freeze({ maxConnections: 64, maxUnfinishedBytes: 2 ** 20 })
/**
 * Frames that a target may send at once, as after a pause of the exporter, and then each second: an
 * agent sends ten at most. A new connection of the target gets no more.
 */
const BURST_FRAMES = 300
const FRAMES_PER_SECOND = 20
/** As node:net reads it: after such a chunk there is more to come. */
const FULL_CHUNK_BYTES = 65_536
/** The longest frame of the lab has 2,500 characters. */
const ORDINARY_FRAME_LENGTH = 4096
/** After this many rejected lines a connection is closed: what sends them is broken or hostile. */
const MAX_REJECTS = 100

/**
 * What a connection's messages are given to.
 * @typedef {object} Sink
 * @property {(hello: import('./decode').HelloMessage, send: (line: string) => void, podUid?:
 *   string) => Session | import('./decode').RejectReason} open
 *   send: to the agent; podUid: of the pod that the connection is certainly from
 * @property {(session: Session, frame: { count: number, isLarger: boolean }) => boolean} [sheds]
 *   whether a frame can be done without, unread; count: of those before it; isLarger: than the last
 *   that was read, and than most are
 * @property {(bytes: number) => void} [received] is told how much came in
 * @property {(message: import('./decode').CaptureMessage, socket: import('node:net').Socket, rest:
 *   Buffer) => boolean} [capture] is given a connection that brings a part of a capture, and what
 *   came with its line; false for one that nobody asked for
 * @property {(reason: import('./decode').RejectReason) => void} reject counts a line that was not
 *   taken
 * @property {(hello: string) => { line: (line: string) => void, closed: () => void } | undefined}
 *   [record] is given the lines of a session, word for word
 *
 * One agent's connection, once it has said hello.
 * @typedef {object} Session
 * @property {import('../series/target').Target} target
 * @property {() => void} heard its connection said something, whatever it was
 * @property
 *   {(frame: import('./decode').FrameMessage) => import('./decode').RejectReason | undefined} frame
 * @property {(bye: Partial<import('./decode').ByeMessage> & { exitCode: number }) => void} bye
 * @property {(answer: import('./decode').AnswerMessage) => void} answer
 * @property {(timedOut: boolean) => void} closed the connection ended, with or without a bye;
 *   timedOut: nobody answered any more
 */

/** Accepts agents' connections and turns their bytes into sessions of messages. */
class Listener {
  #sink
  /** @type {Set<Door>} */
  #doors = new Set()
  /** @type {WeakMap<import('../series/target').Target, Allowance>} */
  #allowances = new WeakMap()

  /** @param {Sink} sink */
  constructor (sink) {
    this.#sink = sink
  }

  /** Connections that are open now. */
  get connections () {
    return this.#sockets.length
  }

  get #sockets () {
    return [...this.#doors].flatMap(({ sockets }) => [...sockets])
  }

  /**
   * @param {import('./address').Address} address
   * @param {{ podUid?: string, maxConnections?: number }} [options] podUid: of the pod that alone
   *   can get there
   * @returns {Promise<Door>} its address is the one in use
   * @throws {Error} code EADDRINUSE when another exporter answers there, or what the system said
   */
  async listen (address, { podUid, ...limits } = {}) {
    const door = new Door({
      ...(podUid === undefined ? LIMITS : POD_LIMITS),
      ...limits,
      podUid,
      accept: (socket, at) => this.#accept(socket, at)
    })
    await door.listen(address)
    this.#doors.add(door)
    return door
  }

  /** @param {Door} door */
  async shut (door) {
    this.#doors.delete(door)
    await door.close()
  }

  /** Resolves when no connection is open. */
  async drained () {
    while (this.connections > 0) {
      await Promise.all(this.#sockets.map(socket => once(socket, 'close')))
    }
  }

  /** Stop accepting, drop all connections, remove the socket files. */
  async close () {
    await Promise.all([...this.#doors].map(door => door.close()))
    this.#doors.clear()
  }

  /**
   * @param {import('node:net').Socket} socket
   * @param {Door} door
   */
  #accept (socket, door) {
    socket.setKeepAlive(true, KEEP_ALIVE_MS) // of TCP: a machine that is gone closes nothing
    const lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES })
    /** @type {Session | undefined} */
    let session
    /** @type {ReturnType<NonNullable<Sink['record']>>} */
    let record
    let rejects = 0
    let allowance = new Allowance()
    let frames = 0
    /** Characters of the last frame that was read, or of an ordinary one. */
    let frameLength = ORDINARY_FRAME_LENGTH
    /** @param {import('./decode').RejectReason} reason */
    const reject = reason => {
      this.#sink.reject(reason)
      if (++rejects >= MAX_REJECTS) socket.destroy()
    }
    /** @type {import('./decode').CaptureMessage | undefined} */
    let capture
    /**
     * @param {string} line
     * @returns {boolean | void} true: what follows are the bytes of a capture
     */
    const take = line => {
      if (socket.destroyed) return
      session?.heard()
      const isFrame = session && line.startsWith(FRAME)
      if (session && isFrame) {
        if (this.#sink.sheds?.(session, { count: frames++, isLarger: line.length > frameLength })) {
          return
        }
        // Before it is read: what a flood sends beyond that costs nothing.
        if (!allowance.take()) return reject('too_fast')
        frameLength = Math.max(ORDINARY_FRAME_LENGTH, line.length)
      }
      const decoded = decode(line)
      if (!decoded.ok) return reject(decoded.reason)
      const { message } = decoded
      if (message.type === 'hello') {
        if (session) return reject('hello_repeated')
        const opened = this.#sink.open(message, line => { socket.write(line) }, door.podUid)
        if (typeof opened === 'string') {
          reject(opened)
          // An agent whose last connection is not known to be broken yet tries again in a second.
          if (opened === 'identity_in_use') socket.destroy()
          return
        }
        session = opened
        allowance = this.#allowanceOf(opened.target, allowance)
        record = this.#sink.record?.(line)
        socket.setTimeout(0)
        return
      }
      if (message.type === 'capture' && !session) {
        capture = message
        return true
      }
      if (!session) return reject('hello_missing')
      if (message.type === 'capture') return reject('unknown_type')
      if (message.type === 'answer') return session.answer(message)
      if (!isFrame && !allowance.take()) return reject('too_fast')
      record?.line(line)
      if (message.type === 'bye') return session.bye(message)
      const refused = session.frame(message)
      if (refused) reject(refused)
    }
    socket.setTimeout(HELLO_TIMEOUT_MS, () => socket.destroy())
    /** @param {Buffer} chunk */
    const read = chunk => {
      const before = lines.heldBytes
      const rest = lines.push(chunk, take, () => reject('line_too_long'))
      if (capture && rest) {
        socket.off('data', read).pause()
        if (!this.#sink.capture?.(capture, socket, rest)) socket.destroy()
      }
      door.unfinishedBytes += lines.heldBytes - before
      this.#sink.received?.(chunk.length)
      if (chunk.length >= FULL_CHUNK_BYTES && !capture) {
        // libuv reads a busy socket up to 32 times in a turn of the event loop: the others wait.
        socket.pause()
        setImmediate(() => socket.resume())
      }
      if (door.unfinishedBytes > door.maxUnfinishedBytes) {
        reject('too_much_unfinished')
        socket.destroy()
      }
    }
    socket.on('data', read)
    let timedOut = false
    // 'close' follows, and says the rest.
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ { code }) => { timedOut = code === 'ETIMEDOUT' || code === 'EHOSTUNREACH' })
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      door.unfinishedBytes -= lines.heldBytes
      record?.closed()
      session?.closed(timedOut)
    })
  }

  /**
   * @param {import('../series/target').Target} target
   * @param {Allowance} fresh for a target that has none
   * @returns {Allowance}
   */
  #allowanceOf (target, fresh) {
    const allowance = this.#allowances.get(target) ?? fresh
    this.#allowances.set(target, allowance)
    return allowance
  }
}

/** How many frames a target may send now. A token bucket. */
class Allowance {
  #frames = BURST_FRAMES
  #atMs = performance.now()

  /** @returns {boolean} whether one more is allowed */
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
