'use strict'

const { stringifyJson } = require('./primordials')

/**
 * How an exporter proves to an agent that it knows the shared token, without sending it: whoever listens at the other end of the
 * socket must not learn it. HMAC-SHA256 over what is asked, of whom; a proof is of no use for another command, process or id.
 *
 * @param {string} token
 * @param {{ id: string, command: string, args?: unknown, pid: number, startedAtUnixMs: number }} asked
 * @returns {string} hexadecimal
 */
function proofOf (token, { id, command, args = null, pid, startedAtUnixMs }) {
  return require('node:crypto').createHmac('sha256', token).update(stringifyJson([id, command, args, pid, startedAtUnixMs])).digest('hex')
}

/**
 * @param {unknown} given @param {Parameters<typeof proofOf>} expected
 * @returns {boolean} compared in constant time
 */
function isProof (given, ...expected) {
  const right = Buffer.from(proofOf(...expected))
  const claimed = Buffer.from(String(given))
  return claimed.length === right.length && require('node:crypto').timingSafeEqual(claimed, right)
}

module.exports = { proofOf, isProof }
