'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { closest, distance } = require('fastest-levenshtein')
const { options, clientOptions } = require('./config')
const { ConfigError } = require('./config-error')

/** Name of the file that is read from the working directory if no other file is named. */
const FILE_NAME = 'memwatch.config.json'
/** Size limit of the file, far larger than all options at their longest. */
const MOST_BYTES = 65_536

/** @typedef {import('./config').ConfigFile} ConfigFile */

/**
 * Reads the config file: a JSON object with options of the exporter and of commands that call an
 * exporter.
 * @param {string} [named] path given by --config
 * @param {object} [of]
 * @param {NodeJS.ProcessEnv} [of.env]
 * @param {string} [of.cwd]
 * @returns {ConfigFile | undefined} undefined if no file is named and the working folder has none
 * @throws {ConfigError} names file and key
 */
function readConfigFile (named, { env = process.env, cwd = process.cwd() } = {}) {
  const asked = named ?? (env[clientOptions.config.env] || undefined)
  const file = asked ?? FILE_NAME
  try {
    const at = path.resolve(cwd, file)
    const stats = fs.statSync(at, { throwIfNoEntry: asked !== undefined })
    if (!stats) return undefined
    if (asked === undefined) refuseForeign(stats)
    if (!stats.isFile() || stats.size > MOST_BYTES) {
      throw new Error(`expected a file of at most ${MOST_BYTES} bytes`)
    }
    return { file, values: readValues(JSON.parse(fs.readFileSync(at, 'utf8'))) }
  } catch (error) {
    throw new ConfigError(`${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * Refuses a file of another user that the command line did not name: anybody may create such a file
 * in a folder like /tmp.
 * @param {fs.Stats} stats
 */
function refuseForeign ({ uid, mode }) {
  const user = process.getuid?.()
  if (user !== undefined && ((uid !== user && uid !== 0) || (mode & 0o002) !== 0)) {
    throw new Error(
      'another user owns this file or may write to it, so memwatch does not read it by default; ' +
        'to read it, name it with --config FILE'
    )
  }
}

/**
 * @param {unknown} content of the file
 * @returns {Record<string, string>} values by key, in the form of a flag's value
 */
function readValues (content) {
  if (content === null || typeof content !== 'object' || Array.isArray(content)) {
    throw new Error('expected an object, such as {"listen": "127.0.0.1:16369"}')
  }
  return Object.fromEntries(Object.entries(content).map(([key, value]) => {
    if (!byKey.has(key)) throw new Error(`${key}: ${unknownKey(key)}`)
    return [key, textOf(key, value)]
  }))
}

/** @param {string} key */
function unknownKey (key) {
  const known = [...byKey.keys()]
  const nearest = closest(key, known)
  return distance(key, nearest) <= 4
    ? `no such key; did you mean ${nearest}?`
    : `no such key; known are ${known.join(', ')}`
}

/**
 * @param {string} key
 * @param {unknown} value
 * @returns {string}
 */
function textOf (key, value) {
  const [, placeholder] = /** @type {{ flag: string }} */ (byKey.get(key)).flag.split(' ')
  if (typeof value === 'string') return value
  if (key === options.captureRules.key && Array.isArray(value)) return JSON.stringify(value)
  if (placeholder === '<N>' && typeof value === 'number') return String(value)
  if (placeholder === '<on|off>' && typeof value === 'boolean') return value ? 'on' : 'off'
  const expected = placeholder === '<N>'
    ? 'a number'
    : placeholder === '<on|off>' ? 'true, false, "on" or "off"' : 'a string'
  throw new Error(`${key}: expected ${expected}, got ${JSON.stringify(value)}`)
}

const { config: _, ...fileClientOptions } = clientOptions
/** @type {Map<string, { flag: string }>} */
const byKey = new Map(
  Object.values({ ...options, ...fileClientOptions }).map(option => [option.key, option])
)

module.exports = { FILE_NAME, readConfigFile }
