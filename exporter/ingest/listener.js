'use strict'

const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { defaultSocketPath, isOwnFolder } = require('memwatch/config')
const { MAX_LINE_BYTES, PROTOCOL_VERSION } = require('memwatch/frame')
const { makeFolder } = require('../make-folder')
const { LineSplitter } = require('./lines')
const { decode } = require('./decode')

/** A peer that sends no hello this long after connecting is no agent. */
const HELLO_TIMEOUT_MS = 10_000
/** How an agent's frames begin: what can be done without need not be parsed. */
const FRAME = `{"v":${PROTOCOL_VERSION},"type":"frame"`
/** After so much silence the kernel asks whether the peer is still there, ten times a second apart. */
const KEEP_ALIVE_MS = 10_000
/** Unfinished lines of all connections together: what many slow peers could make the exporter hold. */
const MAX_UNFINISHED_BYTES = 16 * 2 ** 20
/** Frames that a connection may send at once, as after a pause of the exporter, and then each second: an agent sends ten at most. */
const BURST_FRAMES = 300
const FRAMES_PER_SECOND = 20
/** After this many rejected lines a connection is closed: what sends them is broken or hostile. */
const MAX_REJECTS = 100

/**
 * What a connection's messages are given to.
 * @typedef {object} Sink
 * @property {(hello: import('./decode').HelloMessage, send: (line: string) => void) => Session | import('./decode').RejectReason} open
 *   send: to the agent
 * @property {(session: Session, count: number) => boolean} [sheds] whether a frame can be done without, unread; count: of those before it
 * @property {(message: import('./decode').CaptureMessage, socket: net.Socket, rest: Buffer) => boolean} [capture] is given a connection that brings
 *   a part of a capture, and what came with its line; false for one that nobody asked for
 * @property {(reason: import('./decode').RejectReason) => void} reject counts a line that was not taken
 * @property {(hello: string) => { line: (line: string) => void, closed: () => void } | undefined} [record] is given the
 *   lines of a session, word for word
 *
 * One agent's connection, once it has said hello.
 * @typedef {object} Session
 * @property {import('../series/target').Target} target
 * @property {(frame: import('./decode').FrameMessage) => import('./decode').RejectReason | undefined} frame
 * @property {(bye: import('./decode').ByeMessage) => void} bye
 * @property {(answer: import('./decode').AnswerMessage) => void} answer
 * @property {(timedOut: boolean) => void} closed the connection ended, with or without a bye; timedOut: nobody answered any more
 */

/** Accepts agents' connections and turns their bytes into sessions of messages. */
class Listener {
  #sink
  #maxConnections
  #server
  /** @type {Set<net.Socket>} */
  #sockets = new Set()
  #unfinishedBytes = 0
  /** @type {string | undefined} */
  #ownPath

  /**
   * @param {Sink} sink
   * @param {{ maxConnections?: number }} [options]
   */
  constructor (sink, { maxConnections = 4096 } = {}) {
    this.#sink = sink
    this.#maxConnections = maxConnections
    this.#server = net.createServer(socket => this.#accept(socket))
  }

  /** Connections that are open now. */
  get connections () {
    return this.#sockets.size
  }

  /**
   * @param {import('./address').Address} address
   * @returns {Promise<import('./address').Address>} the address in use; a TCP port of 0 is filled in
   * @throws {Error} code EADDRINUSE when another exporter answers there, or what the system said
   */
  async listen (address) {
    if ('path' in address) {
      const folder = path.dirname(address.path)
      makeFolder(folder)
      // In the system's temporary folder anybody could have been there first; a folder that the operator names is taken at his word.
      if (address.path === defaultSocketPath() && !isOwnFolder(folder)) {
        throw Object.assign(new Error(`${folder} belongs to another user, is a symbolic link, or others may write to it: remove it, or name another --socket`), { code: 'EACCES' })
      }
      await unlinkStale(address.path)
    }
    await new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(address, () => resolve(undefined))
    })
    if ('path' in address) {
      this.#ownPath = address.path
      // Group access lets an app under another uid connect where the directory's fsGroup is shared; others stay out.
      fs.chmodSync(address.path, 0o660)
      return address
    }
    const bound = /** @type {net.AddressInfo} */ (this.#server.address())
    return { host: bound.address, port: bound.port }
  }

  /** Resolves when no connection is open. */
  async drained () {
    while (this.#sockets.size > 0) await Promise.all([...this.#sockets].map(socket => once(socket, 'close')))
  }

  /** Stop accepting, drop all connections, remove the socket file. */
  async close () {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise(resolve => this.#server.close(resolve))
    if (this.#ownPath) fs.rmSync(this.#ownPath, { force: true })
  }

  /** @param {net.Socket} socket */
  #accept (socket) {
    if (this.#sockets.size >= this.#maxConnections) {
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.setKeepAlive(true, KEEP_ALIVE_MS) // of TCP: a machine that is gone closes nothing
    const lines = new LineSplitter({ maxBytes: MAX_LINE_BYTES })
    /** @type {Session | undefined} */
    let session
    /** @type {ReturnType<NonNullable<Sink['record']>>} */
    let record
    let rejects = 0
    const allowance = new Allowance()
    let frames = 0
    /** @param {import('./decode').RejectReason} reason */
    const reject = reason => {
      this.#sink.reject(reason)
      if (++rejects >= MAX_REJECTS) socket.destroy()
    }
    /** @type {import('./decode').CaptureMessage | undefined} */
    let capture
    /** @param {string} line @returns {boolean | void} true: what follows are the bytes of a capture */
    const take = line => {
      if (socket.destroyed) return
      if (session && line.startsWith(FRAME) && this.#sink.sheds?.(session, frames++)) return
      const decoded = decode(line)
      if (!decoded.ok) return reject(decoded.reason)
      const { message } = decoded
      if (message.type === 'hello') {
        if (session) return reject('hello_repeated')
        const opened = this.#sink.open(message, line => { socket.write(line) })
        if (typeof opened === 'string') return reject(opened)
        session = opened
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
      if (!allowance.take()) return reject('too_fast')
      record?.line(line)
      if (message.type === 'bye') return session.bye(message)
      const refused = session.frame(message)
      if (refused) reject(refused)
    }
    socket.setTimeout(HELLO_TIMEOUT_MS, () => socket.destroy())
    /** @param {Buffer} chunk */
    const read = chunk => {
      const before = lines.pendingBytes
      const rest = lines.push(chunk, take, () => reject('line_too_long'))
      if (capture && rest) {
        socket.off('data', read).pause()
        if (!this.#sink.capture?.(capture, socket, rest)) socket.destroy()
      }
      this.#unfinishedBytes += lines.pendingBytes - before
      if (this.#unfinishedBytes > MAX_UNFINISHED_BYTES) {
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
      this.#sockets.delete(socket)
      this.#unfinishedBytes -= lines.pendingBytes
      record?.closed()
      session?.closed(timedOut)
    })
  }
}

/** How many frames a connection may send now. A token bucket. */
class Allowance {
  #frames = BURST_FRAMES
  #atMs = performance.now()

  /** @returns {boolean} whether one more is allowed */
  take () {
    const nowMs = performance.now()
    this.#frames = Math.min(BURST_FRAMES, this.#frames + (nowMs - this.#atMs) / 1000 * FRAMES_PER_SECOND)
    this.#atMs = nowMs
    if (this.#frames < 1) return false
    this.#frames--
    return true
  }
}

/**
 * A socket file that nobody answers on is what a killed exporter left behind.
 * @param {string} file
 */
async function unlinkStale (file) {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat) return
  if (!stat.isSocket()) throw Object.assign(new Error(`${file} exists and is not a socket`), { code: 'EEXIST' })
  const answered = await new Promise(resolve => {
    const probe = net.connect({ path: file })
    probe.once('connect', () => { probe.destroy(); resolve(true) })
    probe.once('error', () => resolve(false))
  })
  if (answered) throw Object.assign(new Error(`another exporter is listening on ${file}`), { code: 'EADDRINUSE' })
  fs.rmSync(file, { force: true })
}

module.exports = { Listener }
