'use strict'

const { clearTimeout, nowMs, setTimeout } = require('./primordials')

/** A command is short. */
const MAX_LINE_BYTES = 4096
/** Lines that are read within a second: an exporter sends a few an hour. */
const LINES_PER_SECOND = 10
const SECOND_MS = 1000
/** Lines that are no trusted command until the agent hangs up. */
const MOST_STRAY_LINES = 10
const NEWLINE = 0x0a

/**
 * Reads commands from a connection within a budget, so that a peer that floods the socket costs the
 * app nothing: at most ten lines a second, and ten in all that are no trusted command. Beyond the
 * first the socket is paused until the second is over, beyond the second the agent hangs up.
 */
class CommandLines {
  #socket
  #execute
  #hangUp
  /** The beginning of a line, copied: it keeps no read of the socket alive. @type {Buffer} */
  #unfinished = Buffer.alloc(0)
  /** Bytes that the kernel gave before the socket was paused: one read at most. @type {Buffer} */
  #unread = Buffer.alloc(0)
  #strayLines = 0
  #linesOfSecond = 0
  #secondBeganMs = -Infinity
  /** @type {NodeJS.Timeout | undefined} */
  #resumption

  /**
   * @param {import('node:net').Socket} socket
   * @param {(line: string) => boolean | undefined} execute returns whether the line was a trusted
   *   command
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

  /** @param {() => boolean} work returns false for a peer that must not go on */
  #fenced (work) {
    try {
      if (work()) return
    } catch {} // nothing that a peer sends leaves this fence
    this.#hangUp()
  }

  /**
   * @param {Buffer} chunk
   * @returns {boolean} false for a peer that must not go on
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
