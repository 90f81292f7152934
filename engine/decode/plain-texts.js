'use strict'

const { plainText } = require('@memwatch/agent/protocol/text-rules')

/**
 * Makes texts of files plain, as the border demands of texts from agents: reports, logs and the
 * answers of a Prometheus are strangers' texts, too, and a stray character must not lose them.
 * @template T
 * @param {T} value of JSON, or what a reader made of a file
 * @returns {T} a copy in which every string is plain, and every key
 */
function plainTexts (value) {
  if (typeof value === 'string') return /** @type {T} */ (plainText(value))
  if (Array.isArray(value)) return /** @type {T} */ (value.map(plainTexts))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [plainText(key), plainTexts(item)])
  return /** @type {T} */ (Object.fromEntries(entries))
}

module.exports = { plainTexts }
