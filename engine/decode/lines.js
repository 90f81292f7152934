'use strict'

const NEWLINE = 0x0a
const NO_BYTES = Buffer.alloc(0)

/** Initial size of the buffer for an unfinished line: large enough for most of a frame. */
const FIRST_ROOM_BYTES = 1024

/**
 * Splits a byte stream into lines. It buffers at most `maxBytes` of an unfinished line. A longer
 * line is discarded up to its newline and reported once.
 */
class LineSplitter {
  #maxBytes
  /**
   * The unfinished line, in one Buffer. A slow peer may send single bytes, and one Buffer for each
   * of them would take a hundred times as much memory.
   */
  #pending = NO_BYTES
  #pendingBytes = 0
  #skipping = false

  /** @param {{ maxBytes: number }} options */
  constructor ({ maxBytes }) {
    this.#maxBytes = maxBytes
  }

  /**
   * @param {Buffer} chunk
   * @param {(line: string) => boolean | void} onLine receives a line without its newline; returns
   *   true if the bytes after this line are not lines
   * @param {() => void} onTooLong
   * @returns {Buffer | undefined} bytes after the last line, if onLine returned true
   */
  push (chunk, onLine, onTooLong) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end)
      start = end + 1
      if (this.#skipping) {
        this.#skipping = false
      } else if (this.#pendingBytes + rest.length > this.#maxBytes) {
        this.#forget()
        onTooLong()
      } else if (this.#pendingBytes > 0) {
        this.#hold(rest)
        const line = this.#pending.toString('utf8', 0, this.#pendingBytes)
        this.#forget()
        if (onLine(line) === true) return chunk.subarray(start)
      } else if (rest.length > 0) {
        if (onLine(rest.toString('utf8')) === true) return chunk.subarray(start)
      }
    }
    const rest = chunk.subarray(start)
    if (this.#skipping || rest.length === 0) return undefined
    if (this.#pendingBytes + rest.length > this.#maxBytes) {
      this.#forget()
      this.#skipping = true
      onTooLong()
      return undefined
    }
    this.#hold(rest)
  }

  /** Bytes of the unfinished line. */
  get pendingBytes () {
    return this.#pendingBytes
  }

  /** Bytes allocated for the unfinished line. */
  get heldBytes () {
    return this.#pending.length
  }

  /**
   * Buffers the bytes of an unfinished line.
   * @param {Buffer} bytes copied, because a few bytes must not keep a whole chunk of the socket
   *   alive
   */
  #hold (bytes) {
    const length = this.#pendingBytes + bytes.length
    if (length > this.#pending.length) {
      const room = Math.min(
        this.#maxBytes,
        Math.max(FIRST_ROOM_BYTES, 2 ** Math.ceil(Math.log2(length)))
      )
      const larger = Buffer.allocUnsafeSlow(room)
      this.#pending.copy(larger, 0, 0, this.#pendingBytes)
      this.#pending = larger
    }
    bytes.copy(this.#pending, this.#pendingBytes)
    this.#pendingBytes = length
  }

  #forget () {
    this.#pending = NO_BYTES
    this.#pendingBytes = 0
  }
}

module.exports = { LineSplitter }
