'use strict'

const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { options: exporterOptions, clientOptions } = require('../../exporter/config')
const { FILE_NAME } = require('../../exporter/config-file')
const { variables: otlpVariables } = require('../../exporter/otlp/variables')
const { DEFAULT_SOCKET } = require('./default-socket')
const { page } = require('./page')
const { table } = require('../markdown')

/**
 * @typedef {{ env: string, flag?: string, key?: string, default: string, help: string }} OptionRow
 */

/**
 * @param {Record<string, OptionRow>} options
 */
const optionTable = options => {
  const hasFlags = Object.values(options).some(({ flag }) => flag)
  return table(
    ['environment', ...hasFlags ? ['flag', 'key'] : [], 'default', 'what it is'],
    Object.values(options).map(option => [
      `\`${option.env}\``,
      ...hasFlags
        ? [`\`${option.flag}\``, option === clientOptions.config ? '' : `\`${option.key}\``]
        : [],
      option === exporterOptions.socket || option === /** @type {any} */ (agentOptions).socket
        ? DEFAULT_SOCKET.replace(/^\S+/, path => `\`${path}\``)
        : option.default === ''
          ? 'none'
          : option === clientOptions.config ? option.default : `\`${option.default}\``,
      option.help
    ])
  )
}

const config = () =>
  page(
    'Configuration',
    'A wrong value stops the exporter at start with a message that names the option. It quietly ' +
      'disables the agent: `NODE_DEBUG=memwatch` says why.\n\n' +
      'The flag wins over the variable, the variable over the config file, the file over the ' +
      `default. The config file is \`${FILE_NAME}\` in the working folder, or the one that ` +
      '`--config` or `MEMWATCH_CONFIG` names; the exporter reads it, and every command that calls ' +
      'one. An unknown key or a wrong type ends the program with a message that names file and ' +
      'key. Paths in it are read from the working folder. A file that nobody named must belong ' +
      'to this user or root, and others may not write to it.\n\n' +
      '```json\n{ "listen": "127.0.0.1:16369", "dataDir": "/var/lib/memwatch", "maxTargets": 200, ' +
      '"autoCaptures": false }\n```',
    '## Exporter',
    optionTable(exporterOptions),
    "### With --otlp\n\nOpenTelemetry's own variables. They switch nothing on by themselves.",
    table(
      ['environment', 'what it is'],
      otlpVariables.map(({ name, help }) => [
        name
          .split(', ')
          .map(one => `\`${one}\``)
          .join(', '),
        help
      ])
    ),
    '## Commands that call an exporter',
    optionTable({ ...clientOptions, token: exporterOptions.token }),
    '## Agent',
    optionTable(/** @type {any} */ (agentOptions))
  )

module.exports = { config }
