'use strict'

const { stringifyJson } = require('../primordials')

/**
 * An exporter proves that it knows the shared token without sending it: the process at the other
 * end of the socket must not learn it. The proof is an HMAC-SHA256 over the command, the process,
 * the nonce of the hello and the number of the command. An agent accepts growing numbers only, so
 * each proof is good for one command, once.
 *
 * @typedef {object} Asked
 * @property {string} id
 * @property {string} command
 * @property {unknown} [args]
 * @property {number} pid
 * @property {number} startedAtUnixMs
 * @property {string | undefined} nonce
 * @property {number} sequence
 */

/**
 * @param {string} token
 * @param {Asked} asked
 * @returns {string} hexadecimal
 */
function computeProof (
  token, { id, command, args = null, pid, startedAtUnixMs, nonce = '', sequence }
) {
  const text = stringifyJson([id, command, args, pid, startedAtUnixMs, nonce, sequence])
  return require('node:crypto').createHmac('sha256', token).update(text).digest('hex')
}

/**
 * Compares in constant time.
 * @param {unknown} proof
 * @param {Parameters<typeof computeProof>} expected
 * @returns {boolean}
 */
function isProof (proof, ...expected) {
  if (typeof proof !== 'string') return false
  const right = Buffer.from(computeProof(...expected))
  const claimed = Buffer.from(proof)
  return claimed.length === right.length && require('node:crypto').timingSafeEqual(claimed, right)
}

/**
 * An unpredictable nonce, so that no proof of another connection fits this one.
 * @returns {string} 32 hexadecimal digits
 */
const newNonce = () => require('node:crypto').randomBytes(16).toString('hex')

module.exports = { computeProof, isProof, newNonce }
