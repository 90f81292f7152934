'use strict'

const NEWLINE = 0x0a

/**
 * Splits a byte stream into lines, holding at most `maxBytes` of an unfinished one. A longer line is thrown away up to its
 * newline and reported once.
 */
class LineSplitter {
  #maxBytes
  /** @type {Buffer[]} */
  #pending = []
  #pendingBytes = 0
  #skipping = false

  /** @param {{ maxBytes: number }} options */
  constructor ({ maxBytes }) {
    this.#maxBytes = maxBytes
  }

  /**
   * @param {Buffer} chunk
   * @param {(line: string) => boolean | void} onLine without the newline; true: what comes after this line is none
   * @param {() => void} onTooLong
   * @returns {Buffer | undefined} what comes after the last line, where onLine said so
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
        const whole = Buffer.concat([...this.#pending, rest])
        this.#forget()
        if (onLine(whole.toString('utf8')) === true) return chunk.subarray(start)
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
    // A copy, so that a few pending bytes do not keep a whole socket read alive.
    this.#pending.push(Buffer.from(rest))
    this.#pendingBytes += rest.length
  }

  /** Bytes of the unfinished line that are held. */
  get pendingBytes () {
    return this.#pendingBytes
  }

  #forget () {
    this.#pending = []
    this.#pendingBytes = 0
  }
}

module.exports = { LineSplitter }
