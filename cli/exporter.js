'use strict'

const { Command } = require('commander')
const { Exporter } = require('@memwatch/exporter/exporter')
const {
  options, clientOptions, chooseText, readConfig, ConfigError
} = require('@memwatch/exporter/config')
const { readConfigFile } = require('@memwatch/exporter/config-file')
const { DataFolder } = require('@memwatch/exporter/data-folder/data-folder')
const { formatAddress } = require('@memwatch/exporter/ingest/address')
const { stopWhenAsked } = require('./program/end-when-asked')
const { err } = require('./program/output')
const { stay, staysOnFailure } = require('./program/stay')

const command = new Command('exporter')
  .description('Run the exporter, to which agents connect and which Prometheus scrapes.')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Each option can be a flag, an environment variable or a key of a JSON file (--data-dir is the key
dataDir). The flag overrides the variable, and the variable overrides the file.

Examples:
  $ memwatch exporter --config /etc/memwatch.config.json
      with {"listen": "0.0.0.0:16369", "dataDir": "/var/lib/memwatch", "maxTargets": 200}
  $ memwatch exporter --listen 0.0.0.0:16369 --socket /run/memwatch/exporter.sock \\
      --token-file /run/secrets/memwatch --data-dir /var/lib/memwatch
  $ MEMWATCH_SOCKET=/run/memwatch/exporter.sock node -r memwatch/agent app.js`
  )
  .action(run)

for (const option of [...Object.values(options), clientOptions.config]) {
  command.option(
    option.flag,
    `${option.help} [${option.env}] (default: ${option.default || 'none'})`
  )
}

/** @typedef {import('@memwatch/exporter/config').ConfigFile} ConfigFile */

/** @param {Record<string, string>} given */
async function run (given) {
  /** @type {ConfigFile | undefined} */
  let file
  try {
    file = readConfigFile(given.config)
    await start(given, file)
  } catch (error) {
    if (!(error instanceof ConfigError) || !staysOnFailure(given, file)) throw error
    await stay(error, chooseText(options.listen, { given: given.listen, file }).text)
  }
}

/**
 * @param {Record<string, string>} given
 * @param {ConfigFile} [file]
 * @throws {ConfigError}
 */
async function start (given, file) {
  const { dataDir, ...config } = readConfig(given, process.env, file)
  const dataFolder = dataDir === undefined
    ? undefined
    : await openFolder(dataDir, staysOnFailure(given, file))
  try {
    const exporter = new Exporter({ ...config, dataFolder })
    const { socket, listen } = await exporter.start().catch(error => {
      throw new ConfigError(error.message)
    })
    const url = `http://${formatAddress(listen).slice('tcp://'.length)}`
    err.say(
      `memwatch exporter: agents connect at ${formatAddress(socket)}, page at ${url}, metrics ` +
        `at ${url}/metrics`
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
 * @param {boolean} stays true: continue without history if the folder is unusable
 * @returns {Promise<DataFolder | undefined>} folder; undefined to continue without one
 * @throws {ConfigError}
 */
async function openFolder (folder, stays) {
  try {
    return await DataFolder.open(folder)
  } catch (error) {
    if (!(error instanceof ConfigError) || !stays) throw error
    err.say(`memwatch exporter: ${error.message}`)
    err.say(
      'memwatch exporter: stores histories, deaths and captures only in memory, until it ends ' +
        `(${options.onFailure.env}=stay)`
    )
  }
}

module.exports = { command }
