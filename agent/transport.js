'use strict'

const net = require('node:net')
const { CommandLines } = require('./command-lines')
const { attempt, debug } = require('./guard')
const { findDescriptor } = require('./own-descriptor')
const { clearTimeout, nowMs, setImmediate, setTimeout } = require('./primordials')

/** Most of a line that the kernel accepted in part. */
const MAX_PENDING_BYTES = 262_144
/** Lines of about twenty seconds wait for a connection: a restart of the exporter loses none. */
const MAX_WAITING_LENGTH = 65_536
/** A pending connect keeps the loop alive in libuv. */
const CONNECT_TIMEOUT_MS = 500
/** Limit of answers waiting for the kernel: those to the commands of one second. */
const MAX_ANSWERS_LENGTH = 16_384
const FIRST_RETRY_SECONDS = 1
const LAST_RETRY_SECONDS = 30
/** Before a reconnect to a peer that flooded the agent. */
const SHUN_SECONDS = 30

/**
 * Content of one connection.
 * @typedef {object} Session
 * @property {() => string} hello first line
 * @property {(line: string, answer: (line: string) => void) => boolean | undefined} [execute] true:
 *   a trusted command; absent: the agent accepts no commands
 */

/**
 * Connection to the exporter. It must never keep the app alive, but a pending write or connect of
 * libuv does so, even on an unref'd socket. So it writes straight to the non-blocking descriptor,
 * buffers a bounded rest, and drops and counts the oldest lines. `tick` runs before each frame.
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
  /** @type {import('./own-descriptor').OwnDescriptor | undefined} */
  #own
  /** Rest of a line that the kernel accepted in part. */
  #pending = Buffer.alloc(0)
  /** Whole unsent lines, oldest first. @type {string[]} */
  #waiting = []
  #waitingLength = 0
  /** Answers to commands of this connection. They wait beside the frames and displace none. */
  #answers = ''
  dropped = 0
  /** True once the hello is sent. It is expensive, so it is sent with the first frame. */
  #greeted = false
  /** @type {NodeJS.Timeout | undefined} */
  #giveUp
  #retryAtSeconds = 0
  #retrySeconds = FIRST_RETRY_SECONDS

  /**
   * @param {net.NetConnectOpts} address
   * @param {() => Session | undefined} begin called for each new connection; undefined: close it
   * @param {() => boolean} [isSafe] called before each connect; false: do not connect
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

  /** Connects when due. @param {number} nowSeconds monotonic */
  tick (nowSeconds) {
    if (this.#state === 'open') this.#flush()
    if (this.#state === 'idle' && nowSeconds >= this.#retryAtSeconds) this.#connect(nowSeconds)
  }

  /**
   * Sends the line now, or once the exporter is connected and reads.
   * @param {string} line with its newline
   * @returns {boolean} true: sent, with all waiting lines
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
   * Sends the answer now, or after the bytes that wait for the kernel. Drops it if the connection
   * of its command is closed, or too many answers wait.
   * @param {net.Socket} socket its connection
   * @param {string} line with its newline
   */
  #answer (socket, line) {
    const length = this.#answers.length + line.length
    if (this.#socket !== socket || length > MAX_ANSWERS_LENGTH) return
    this.#answers += line
    this.#send()
  }

  /** @returns {boolean} true: all waiting lines sent */
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
   * At the app's end no turn of the loop can report a new connection: try a write, as the kernel
   * may have made it already.
   */
  finish () {
    if (this.#state === 'connecting' && this.#descriptor() !== undefined) this.#open()
  }

  /** The hello has changed: the next frame needs a new connection. */
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
      debug('connect: %s', error) // denied by the permission model, or no socket yet
      this.#state = 'idle'
      return
    }
    socket.unref()
    socket.on('error', error => debug('socket: %s', error))
    attempt('connect', () => this.#descriptor())
    for (const event of ['close', 'end']) {
      socket.on(event, () => {
        if (this.#socket === socket) attempt(event, () => this.#lose())
      })
    }
    socket.on('connect', () => {
      if (this.#socket === socket && this.#state === 'connecting') {
        attempt('connect', () => this.#open())
      }
    })
    // After a long block, timers run before the loop delivers the kernel's answer; an immediate
    // runs after that.
    this.#giveUp = setTimeout(() => setImmediate(() => {
      if (this.#socket === socket && this.#state === 'connecting') {
        attempt('connect', () => this.#lose())
      }
    }), CONNECT_TIMEOUT_MS)
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
    // destroy() closes the descriptor. If the app closed it before, the number may belong to
    // another file.
    if (!own || own.isOwn()) socket?.destroy()
  }

  /** @returns {boolean} true: nothing is pending */
  #flush () {
    if (this.#pending.length === 0) return true
    const rest = this.#pending
    this.#pending = Buffer.alloc(0)
    this.#writeBytes(rest, 0)
    return this.#pending.length === 0
  }

  #descriptor () {
    return (this.#own ??= findDescriptor(this.#socket))
  }

  /**
   * Writes the string first: this needs no Buffer, and the kernel nearly always accepts it all.
   * @param {string} text
   * @returns {boolean} false: nothing was accepted
   */
  #writeNow (text) {
    let written = 0
    try {
      written = this.#descriptor()?.write(text) ?? 0
      if (written === Buffer.byteLength(text)) return true
    } catch {} // retried below
    return this.#writeBytes(Buffer.from(text), written)
  }

  /**
   * @param {Buffer} bytes
   * @param {number} written bytes accepted before
   * @returns {boolean} false: nothing was accepted
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
      // The rest of a line must precede the next line; a whole line may wait here as well.
      this.#pending = Buffer.from(bytes.subarray(written))
    }
    return true
  }

  /**
   * Writes by the stream, for sockets without a descriptor (Windows pipes): one write at a time. A
   * peer that does not accept it within a tick is disconnected.
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
