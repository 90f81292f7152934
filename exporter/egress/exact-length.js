'use strict'

/** A stored file is not as long as its record says: every attempt would fail. */
class LengthError extends Error {
  isFinal = true
}

/** Counts a stream, a step of `pipeline`, and lets no other length pass than the expected one. */
class ExactLength {
  #expected
  #passed = 0
  /** @type {LengthError | undefined} */
  failure

  /** @param {number} expected bytes */
  constructor (expected) {
    this.#expected = expected
  }

  /** True once all bytes were passed on. */
  get isComplete () {
    return this.#passed === this.#expected
  }

  /**
   * @param {AsyncIterable<Buffer>} chunks
   * @returns {AsyncGenerator<Buffer>}
   * @throws {LengthError}
   */
  async * pass (chunks) {
    for await (const chunk of chunks) {
      this.#passed += chunk.length
      yield chunk
    }
    if (!this.isComplete) {
      const text = `the stored file has ${this.#passed} of ${this.#expected} bytes`
      throw this.failure = new LengthError(text)
    }
  }
}

module.exports = { ExactLength }
