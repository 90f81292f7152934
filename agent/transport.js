'use strict'

const net = require('node:net')
const { CommandLines } = require('./command-lines')
const { attempt, debug } = require('./guard')
const { descriptorOf } = require('./own-descriptor')
const { clearTimeout, nowMs, setImmediate, setTimeout } = require('./primordials')

/** Most that is kept of a line the exporter did not take at once. */
const MAX_PENDING_BYTES = 262_144
/**
 * Lines that wait while there is no connection: some twenty seconds of frames, so that an
 * exporter's restart loses none.
 */
const MAX_WAITING_LENGTH = 65_536
/** Longest wait for a connect to be answered: while it is pending, libuv keeps the loop alive. */
const CONNECT_TIMEOUT_MS = 500
/** Answers that wait for the kernel: as many as commands are read within a second. */
const MAX_ANSWERS_LENGTH = 16_384
const FIRST_RETRY_SECONDS = 1
const LAST_RETRY_SECONDS = 30
/** After it hung up on a peer that floods it, the agent leaves the socket alone for so long. */
const SHUN_SECONDS = 30

/**
 * One connection, as far as it concerns more than bytes.
 * @typedef {object} Session
 * @property {() => string} hello its first line
 * @property {(line: string, answer: (line: string) => void) => boolean | undefined} [execute]
 *   returns whether the line was a trusted command; absent where the agent takes none
 */

/**
 * The connection to the exporter. It must never hold the app back: a pending write or connect
 * request of libuv keeps the loop alive even on an unref'd socket, so lines are written straight to
 * the socket's non-blocking descriptor, and what the kernel does not take is kept here (bounded),
 * or the oldest of it dropped and counted. `tick` is called before each frame.
 *
 * idle -> connecting -> open -> idle ...; `stop` ends it.
 */
class Transport {
  /** @type {net.NetConnectOpts} */
  #address
  #begin
  #isSafe
  /** @type {Session | undefined} */
  #session
  /** @type {'idle' | 'connecting' | 'open' | 'stopped'} */
  #state = 'idle'
  /** @type {net.Socket | undefined} */
  #socket
  /** The descriptor of the socket. @type {import('./own-descriptor').OwnDescriptor | undefined} */
  #own
  /** The rest of a line that the kernel took in part. */
  #pending = Buffer.alloc(0)
  /** Whole lines that are not sent, oldest first. @type {string[]} */
  #waiting = []
  #waitingLength = 0
  /** Answers to commands of this connection. They wait beside the frames, and push none out. */
  #answers = ''
  /** Lines that were given up. */
  dropped = 0
  /** The hello is dear, so it goes with the first frame. */
  #greeted = false
  /** @type {NodeJS.Timeout | undefined} */
  #giveUp
  #retryAtSeconds = 0
  #retrySeconds = FIRST_RETRY_SECONDS

  /**
   * @param {net.NetConnectOpts} address
   * @param {() => Session | undefined} begin is called for each connection that was made;
   *   undefined: it cannot be used
   * @param {() => boolean} [isSafe] whether to connect at all, asked each time
   */
  constructor (address, begin, isSafe = () => true) {
    const { host } = /** @type {net.TcpNetConnectOpts} */ (address)
    this.#address =
      host && !net.isIP(host)
        ? { ...address, autoSelectFamily: false, lookup: require('./lookup').lookup }
        : address
    this.#begin = begin
    this.#isSafe = isSafe
  }

  /** Connect where it is time to. @param {number} nowSeconds monotonic */
  tick (nowSeconds) {
    if (this.#state === 'open') this.#flush()
    if (this.#state === 'idle' && nowSeconds >= this.#retryAtSeconds) this.#connect(nowSeconds)
  }

  /**
   * Sent now, or when there is a connection again and the exporter reads.
   * @param {string} line with its newline
   * @returns {boolean} whether it was sent now, and all that waited
   */
  write (line) {
    this.#waiting.push(line)
    this.#waitingLength += line.length
    while (this.#waitingLength > MAX_WAITING_LENGTH && this.#waiting.length > 1) {
      this.#waitingLength -= /** @type {string} */ (this.#waiting.shift()).length
      this.dropped++
    }
    return this.#send()
  }

  /**
   * Sent now, or after what waits for the kernel; given up where the connection that the command
   * came by is gone, or the exporter reads none.
   * @param {net.Socket} socket of that connection
   * @param {string} line with its newline
   */
  #answer (socket, line) {
    const length = this.#answers.length + line.length
    if (this.#socket !== socket || length > MAX_ANSWERS_LENGTH) return
    this.#answers += line
    this.#send()
  }

  /** @returns {boolean} whether all that waited was sent */
  #send () {
    if (this.#state !== 'open' || !this.#flush()) return false
    const hello = this.#greeted || !this.#session ? '' : this.#session.hello()
    const lines = this.#waiting.length === 1 ? this.#waiting[0] : this.#waiting.join('')
    if (!this.#writeNow(hello + lines + this.#answers)) return false
    this.#greeted = true
    this.#waiting = []
    this.#waitingLength = 0
    this.#answers = ''
    return true
  }

  /**
   * The app ends, and the loop will not turn again to tell that the connection is there: the kernel
   * may have made it long ago, and takes what is written then.
   */
  finish () {
    if (this.#state === 'connecting' && this.#descriptor() !== undefined) this.#open()
  }

  /** The hello has changed: the next frame goes by a new connection. */
  reconnect () {
    if (this.#state !== 'open') return
    this.#lose()
    this.#retryAtSeconds = 0
  }

  stop () {
    this.#lose()
    this.#state = 'stopped'
  }

  /** @param {number} nowSeconds */
  #connect (nowSeconds) {
    this.#state = 'connecting'
    this.#retryAtSeconds = nowSeconds + this.#retrySeconds
    this.#retrySeconds = Math.min(2 * this.#retrySeconds, LAST_RETRY_SECONDS)
    let socket
    try {
      if (!this.#isSafe()) {
        this.#state = 'idle'
        return
      }
      socket = this.#socket = net.connect(this.#address)
    } catch (error) {
      debug('connect: %s', error) // the permission model refuses, or there is nothing yet
      this.#state = 'idle'
      return
    }
    socket.unref()
    socket.on('error', error => debug('socket: %s', error))
    attempt('connect', () => this.#descriptor())
    socket.on('close', () => {
      if (this.#socket === socket) attempt('close', () => this.#lose())
    })
    socket.on('connect', () => {
      if (this.#socket === socket && this.#state === 'connecting') {
        attempt('connect', () => this.#open())
      }
    })
    // After a long block timers come first: what the kernel answered meanwhile is heard before the
    // immediate.
    this.#giveUp = setTimeout(() => setImmediate(() => {
      if (this.#socket === socket && this.#state === 'connecting') {
        attempt('connect', () => this.#lose())
      }
    }), CONNECT_TIMEOUT_MS)
    socket.on('end', () => {
      if (this.#socket === socket) attempt('end', () => this.#lose())
    })
  }

  #open () {
    clearTimeout(this.#giveUp)
    this.#state = 'open'
    this.#pending = Buffer.alloc(0)
    this.#retrySeconds = FIRST_RETRY_SECONDS
    this.#greeted = false
    const socket = this.#socket
    this.#session = this.#begin()
    if (!socket || !this.#session) return this.#lose()
    const { execute = () => false } = this.#session
    const answer = (/** @type {string} */ line) => this.#answer(socket, line)
    new CommandLines(socket, line => execute(line, answer), () => this.#shun(socket)).start()
  }

  /** @param {net.Socket} socket */
  #shun (socket) {
    debug('socket: hung up on a peer that sends no trusted commands')
    if (this.#socket !== socket) return
    this.#lose()
    this.#retryAtSeconds = nowMs() / 1000 + SHUN_SECONDS
  }

  #lose () {
    clearTimeout(this.#giveUp)
    const socket = this.#socket
    const own = this.#own
    this.#socket = undefined
    this.#session = undefined
    this.#answers = ''
    this.#own = undefined
    this.#state = 'idle'
    // To destroy it closes its descriptor: not where the app did that, and another file has the
    // number.
    if (!own || own.isOwn()) socket?.destroy()
  }

  /** @returns {boolean} true when nothing is pending any more */
  #flush () {
    if (this.#pending.length === 0) return true
    const rest = this.#pending
    this.#pending = Buffer.alloc(0)
    this.#writeBytes(rest, 0)
    return this.#pending.length === 0
  }

  #descriptor () {
    return (this.#own ??= descriptorOf(this.#socket))
  }

  /**
   * As a string it needs no Buffer of its own, and nearly always the kernel takes all of it.
   * @param {string} text
   * @returns {boolean} false when nothing of it was taken
   */
  #writeNow (text) {
    let written = 0
    try {
      written = this.#descriptor()?.write(text) ?? 0
      if (written === Buffer.byteLength(text)) return true
    } catch {} // tried once more below
    return this.#writeBytes(Buffer.from(text), written)
  }

  /**
   * @param {Buffer} bytes
   * @param {number} written how much of it
   * @returns {boolean} false when nothing of it was taken
   */
  #writeBytes (bytes, written) {
    const own = this.#descriptor()
    if (!own) return this.#writeByStream(bytes)
    try {
      while (written < bytes.length) written += own.write(bytes, written)
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') {
        debug('write: %s', error)
        this.#lose()
        return false
      }
      if (written === 0 && this.#pending.length === 0 && bytes.length > MAX_PENDING_BYTES) {
        return false
      }
      // Half a line must be completed before the next; a whole one that found no room may as well
      // wait.
      this.#pending = Buffer.from(bytes.subarray(written))
    }
    return true
  }

  /**
   * Where a socket shows no descriptor (Windows pipes): one write at a time, and whoever does not
   * take it within a tick is hung up on.
   * @param {Buffer} bytes
   */
  #writeByStream (bytes) {
    const socket = this.#socket
    if (!socket || socket.destroyed) return false
    if (socket.writableLength > 0) {
      socket.destroy()
      return false
    }
    socket.write(bytes)
    return true
  }
}

module.exports = { Transport }
