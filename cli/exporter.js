'use strict'

const { Command, Option } = require('commander')
const { Exporter } = require('@memwatch/exporter/exporter')
const { options, readConfig, ConfigError } = require('@memwatch/exporter/config')
const { DataFolder } = require('@memwatch/exporter/data-folder/data-folder')
const { formatAddress } = require('@memwatch/exporter/ingest/address')
const { stopWhenAsked } = require('./end-when-asked')
const { err } = require('./output')
const { stay, staysOnFailure } = require('./stay')

const command = new Command('exporter')
  .description('Run the exporter: agents connect to it, Prometheus scrapes it.')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Every option can be given as an environment variable; the flag wins.
Examples:
  $ memwatch exporter --listen 0.0.0.0:16369 --socket /run/memwatch/exporter.sock --token-file /run/secrets/memwatch --data-dir /var/lib/memwatch
  $ MEMWATCH_SOCKET=/run/memwatch/exporter.sock node -r memwatch/agent app.js`
  )
  .action(run)

for (const [name, option] of Object.entries(options)) {
  const flag = new Option(
    option.flag,
    `${option.help} [${option.env}] (default: ${option.default || 'none'})`
  )
  // commander derives the name from the flag: --token-file, whose value is the option `token`,
  // would be `tokenFile`, which readConfig does not know.
  command.addOption(Object.assign(flag, { attributeName: () => name }))
}

/** @param {Record<string, string>} given */
async function run (given) {
  try {
    await start(given)
  } catch (error) {
    if (!(error instanceof ConfigError) || !staysOnFailure(given)) throw error
    await stay(error, given)
  }
}

/**
 * @param {Record<string, string>} given
 * @throws {ConfigError}
 */
async function start (given) {
  const { dataDir, ...config } = readConfig(given)
  const dataFolder = dataDir === undefined ? undefined : await openFolder(dataDir, given)
  try {
    const exporter = new Exporter({ ...config, dataFolder })
    const { socket, listen } = await exporter.start().catch(error => {
      throw new ConfigError(error.message)
    })
    err.say(
      `memwatch exporter: agents at ${formatAddress(socket)}, metrics at ` +
        `http://${formatAddress(listen).slice('tcp://'.length)}/metrics`
    )
    stopWhenAsked(async () => {
      await exporter.stop()
      dataFolder?.close()
      process.exit(0)
    })
  } catch (error) {
    dataFolder?.close()
    throw error
  }
}

/**
 * @param {string} folder
 * @param {Record<string, string>} given
 * @returns {Promise<DataFolder | undefined>} undefined: it goes on without history, as --on-failure
 *   stay asks for
 * @throws {ConfigError}
 */
async function openFolder (folder, given) {
  try {
    return await DataFolder.open(folder)
  } catch (error) {
    if (!(error instanceof ConfigError) || !staysOnFailure(given)) throw error
    err.say(`memwatch exporter: ${error.message}`)
    err.say(
      'memwatch exporter: histories, deaths and captures are kept until it ends, and not in ' +
        `that folder (${options.onFailure.env}=stay)`
    )
  }
}

module.exports = { command }
