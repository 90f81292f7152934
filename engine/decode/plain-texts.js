'use strict'

const { plainText } = require('@memwatch/agent/protocol/text-rules')

/**
 * Replaces unsafe characters in texts of files. Reports, logs and responses of a Prometheus server
 * are as untrusted as messages of agents. Decoding rejects such messages, but a stray character
 * must not reject a whole file.
 * @template T
 * @param {T} value parsed JSON, or the object that a reader built from a file
 * @returns {T} a copy in which all strings and keys are plain
 */
function plainTexts (value) {
  if (typeof value === 'string') return /** @type {T} */ (plainText(value))
  if (Array.isArray(value)) return /** @type {T} */ (value.map(plainTexts))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [plainText(key), plainTexts(item)])
  return /** @type {T} */ (Object.fromEntries(entries))
}

module.exports = { plainTexts }
