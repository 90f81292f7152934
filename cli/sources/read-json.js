'use strict'

const { plainText } = require('@memwatch/agent/protocol/text-rules')
const { parseBounded } = require('@memwatch/exporter/data-folder/bounded-json')
const { SourceError } = require('./define-source')

/** Size limit: a GC profile of an hour under load fits. */
const MOST_BYTES = 2 ** 28

/**
 * @param {import('./define-source').Input} input
 * @param {string} title description of the expected content, with its article
 * @returns {Promise<any>}
 * @throws {SourceError} if the file is incomplete, damaged or too large
 */
async function readJson ({ name, bytes }, title) {
  /** @type {Buffer[]} */
  const chunks = []
  let length = 0
  for await (const chunk of bytes()) {
    chunks.push(chunk)
    if ((length += chunk.length) > MOST_BYTES) {
      throw new SourceError(`${name}: too large for ${title}`)
    }
  }
  try {
    return parseBounded(Buffer.concat(chunks).toString('utf8'))
  } catch (error) {
    if (error instanceof RangeError) {
      throw new SourceError(
        `${name}: too large for the heap; set NODE_OPTIONS=--max-old-space-size=4096 and try again`
      )
    }
    throw new SourceError(`${name}: ${title} that is damaged or incomplete: ` +
      `${plainText(/** @type {Error} */ (error).message.slice(0, 120))}`)
  }
}

/**
 * @param {any} value
 * @returns {number | undefined} the value if it is a number that is valid in a frame
 */
const count = value =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

/**
 * @template {object} T
 * @param {T} values
 * @returns {T} object without absent values
 */
const present = values =>
  /** @type {T} */ (
    Object.fromEntries(Object.entries(/** @type {object} */ (values)).filter(([, value]) => value !== undefined))
  )

module.exports = { readJson, count, present }
