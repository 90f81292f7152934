'use strict'

const { createHash } = require('node:crypto')
const { Readable } = require('node:stream')
const { setTimeout: wait } = require('node:timers/promises')
const { gzipSync } = require('node:zlib')
const { options, chooseText, ConfigError } = require('@memwatch/exporter/config')
const { readConfigFile } = require('@memwatch/exporter/config-file')
const { openDestination } = require('@memwatch/exporter/egress/destination')
const { triageKey } = require('@memwatch/exporter/egress/object-keys')
const { tar } = require('./tar')

/** Upper bound of attempts to send a file, because somebody waits for the command. */
const ATTEMPTS = 3
const DELAY_MS = 2000

/** Options of the exporter, by their names in its table. */
const NAMES = /** @type {const} */ ([
  'shipTo', 'shipSnapshots', 'shipCredentials', 'shipHttp', 's3Endpoint', 's3Region'
])

/**
 * @typedef {{ name: string, mode: number, content: Buffer, isSnapshot?: boolean }} File isSnapshot:
 *   true for a heap snapshot, which contains all strings of the app
 */

/** @param {import('commander').Command} command command that has --config */
function withShippingOptions (command) {
  for (const name of NAMES) {
    const { flag, help, env, default: usual } = options[name]
    // The help text of the exporter is about captures, so it is adapted.
    const text = help.replace('finished captures', 'the file, too,')
    command.option(flag, `${text} [${env}] (default: ${usual || 'none'})`)
  }
  return command
}

/**
 * @param {Record<string, any>} given flags as text, and the config file
 * @param {{ delayMs?: number }} [times] delay between two attempts
 * @returns {ReturnType<typeof createShip> | undefined} undefined without --ship-to
 * @throws {ConfigError} if the address or its credentials cannot be used
 */
function openShipping (given, { delayMs = DELAY_MS } = {}) {
  const { shipTo, shipSnapshots, ...config } = readShippingConfig(given)
  if (!shipTo) return undefined
  return createShip(openDestination({ shipTo, ...config }), { shipSnapshots, delayMs })
}

/**
 * @param {import('@memwatch/exporter/egress/send').Send} send
 * @param {{ shipSnapshots: boolean, delayMs: number }} options
 */
const createShip = (send, { shipSnapshots, delayMs }) =>
  /**
   * @param {object} of
   * @param {string} of.target name of the app
   * @param {number} of.pid
   * @param {readonly File[]} of.files
   * @param {AbortSignal} of.signal
   * @returns {Promise<{ key: string, omitted: number }>} omitted: number of heap snapshots that
   *   were not sent
   * @throws {Error} with the reason of the last attempt
   */
  async ({ target, pid, files, signal }) => {
    const shipped = files.filter(({ isSnapshot }) => shipSnapshots || !isSnapshot)
    const content = gzipSync(tar(shipped))
    const key = triageKey({ target, pid, atUnixMs: Date.now() })
    const body = {
      bytes: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
      mediaType: 'application/gzip',
      open: () => Readable.from([content])
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await send(key, body, signal)
        return { key, omitted: files.length - shipped.length }
      } catch (error) {
        const { isFinal } = /** @type {Error & { isFinal?: boolean }} */ (error)
        if (isFinal || attempt === ATTEMPTS || signal.aborted) throw error
        await wait(delayMs, undefined, { signal })
      }
    }
  }

/**
 * @param {Record<string, any>} given
 * @returns {Pick<import('@memwatch/exporter/config').Config, typeof NAMES[number]>}
 * @throws {ConfigError}
 */
function readShippingConfig (given) {
  const file = readConfigFile(given.config)
  return /** @type {any} */ (Object.fromEntries(NAMES.map(name => {
    const option = options[name]
    const { text, from } = chooseText(option, { given: given[option.key], file })
    try {
      return [name, option.read(text)]
    } catch (error) {
      throw new ConfigError(`${from}: ${/** @type {Error} */ (error).message}`)
    }
  })))
}

module.exports = { withShippingOptions, openShipping }
