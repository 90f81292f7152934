'use strict'

const { clearTimeout, nowMs, setTimeout } = require('./primordials')

const MAX_LINE_BYTES = 4096
/** An exporter sends a few commands an hour. */
const LINES_PER_SECOND = 10
const SECOND_MS = 1000
/** Lines without a trusted command before the agent hangs up. */
const MOST_STRAY_LINES = 10
const NEWLINE = 0x0a

/**
 * Reads commands from a connection within a budget: a peer that floods the socket costs the app
 * hardly any time. After LINES_PER_SECOND the socket pauses until the second is over; after
 * MOST_STRAY_LINES the agent hangs up.
 */
class CommandLines {
  #socket
  #execute
  #hangUp
  /**
   * Start of an incomplete line. It is a copy, as a slice would retain a whole read.
   * @type {Buffer}
   */
  #unfinished = Buffer.alloc(0)
  /** Bytes read before the pause, one read at most. @type {Buffer} */
  #unread = Buffer.alloc(0)
  #strayLines = 0
  #linesOfSecond = 0
  #secondBeganMs = -Infinity
  /** @type {NodeJS.Timeout | undefined} */
  #resumption

  /**
   * @param {import('node:net').Socket} socket
   * @param {(line: string) => boolean | undefined} execute true: the line was a trusted command
   * @param {() => void} hangUp
   */
  constructor (socket, execute, hangUp) {
    this.#socket = socket
    this.#execute = execute
    this.#hangUp = hangUp
  }

  start () {
    const socket = this.#socket
    socket.on('data', chunk => this.#fenced(() => this.#reads(chunk)))
    socket.once('close', () => clearTimeout(this.#resumption))
  }

  /** @param {() => boolean} work false: hang up */
  #fenced (work) {
    try {
      if (work()) return
    } catch {} // no input of a peer may throw into the app
    this.#hangUp()
  }

  /**
   * @param {Buffer} chunk
   * @returns {boolean} false: hang up
   */
  #reads (chunk) {
    for (let start = 0; start < chunk.length;) {
      if (!this.#hasBudget()) {
        this.#pause(chunk.subarray(start))
        return true
      }
      const newline = chunk.indexOf(NEWLINE, start)
      const end = newline < 0 ? chunk.length : newline
      if (this.#unfinished.length + end - start > MAX_LINE_BYTES) return false
      const line = Buffer.concat([this.#unfinished, chunk.subarray(start, end)])
      this.#unfinished = newline < 0 ? line : Buffer.alloc(0)
      if (newline < 0) return true
      start = newline + 1
      this.#linesOfSecond++
      const isCommand = line.length > 0 && this.#execute(line.toString())
      if (!isCommand && ++this.#strayLines >= MOST_STRAY_LINES) return false
    }
    return true
  }

  #hasBudget () {
    const now = nowMs()
    if (now - this.#secondBeganMs >= SECOND_MS) {
      this.#secondBeganMs = now
      this.#linesOfSecond = 0
    }
    return this.#linesOfSecond < LINES_PER_SECOND
  }

  /** @param {Buffer} unread */
  #pause (unread) {
    this.#unread = unread
    this.#socket.pause()
    const restMs = Math.max(1, this.#secondBeganMs + SECOND_MS - nowMs())
    this.#resumption = setTimeout(() => this.#fenced(() => this.#resume()), restMs)
  }

  #resume () {
    if (this.#socket.destroyed) return true
    const unread = this.#unread
    this.#unread = Buffer.alloc(0)
    this.#socket.resume()
    return this.#reads(unread)
  }
}

module.exports = { CommandLines }
