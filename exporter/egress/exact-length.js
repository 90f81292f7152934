'use strict'

/** Error for a stored file whose length differs from its record: every attempt would fail. */
class LengthError extends Error {
  isFinal = true
}

/**
 * Step of `pipeline` that counts the bytes of a stream and fails unless their number is the
 * expected one.
 */
class ExactLength {
  #expected
  #passed = 0
  /** @type {LengthError | undefined} */
  failure

  /** @param {number} expected bytes */
  constructor (expected) {
    this.#expected = expected
  }

  /** True once all expected bytes have passed. */
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
