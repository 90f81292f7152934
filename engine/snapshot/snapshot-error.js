'use strict'

/**
 * Error for a file that is not a heap snapshot, is incomplete or inconsistent, or needs more memory
 * than allowed. Its message is one sentence for the user.
 */
class SnapshotError extends Error {
  /**
   * @param {'malformed' | 'truncated' | 'too_large' | 'other_process'} code
   * @param {string} message
   * @param {object} [numbers]
   * @param {number} [numbers.position] byte of the file at which reading stopped
   * @param {number} [numbers.predictedBytes] memory that the analysis would take
   * @param {number} [numbers.allowedBytes] memory that it may take
   */
  constructor (code, message, { position, predictedBytes, allowedBytes } = {}) {
    super(position === undefined ? message : `${message}, at byte ${position}`)
    this.code = code
    this.position = position
    this.predictedBytes = predictedBytes
    this.allowedBytes = allowedBytes
  }
}

module.exports = { SnapshotError }
