'use strict'

const { options: agentOptions } = require('@memwatch/agent/protocol/config')
const { options: exporterOptions, clientOptions } = require('../../exporter/config')
const { annotation } = require('../../exporter/attachment/annotation')
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
    ['environment', ...hasFlags ? ['flag', 'key'] : [], 'default', 'meaning'],
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
    'A wrong value stops the exporter at start with a message that names the option. A wrong ' +
      'value for the agent disables the agent without a message; `NODE_DEBUG=memwatch` prints ' +
      'the reason. Sizes are `512Mi`, `2Gi`, `512MiB` or bytes; times are `90`, `90s`, `5m`, ' +
      '`24h` or `7d`; addresses are `HOST:PORT`, with an IPv6 host in brackets. Flags, variables ' +
      'of the exporter, keys of the config file and the API accept the same forms.\n\nA flag ' +
      'overrides the variable, the variable the config file, and the file the ' +
      `default. The config file is \`${FILE_NAME}\` in the working folder, or the one that ` +
      '`--config` or `MEMWATCH_CONFIG` names. The exporter and every command that calls one read ' +
      'it. An unknown key or a wrong type ends the program with a message that names file and ' +
      'key. Relative paths in the file start at the working folder. A config file that no option ' +
      'names must belong to this user or root, and must not be writable for ' +
      'others.\n\n```json\n{ "listen": "127.0.0.1:16369", "dataDir": "/var/lib/memwatch", ' +
      '"maxTargets": 200, "autoCaptures": false }\n```',
    '## Exporter',
    optionTable(exporterOptions),
    "### With --otlp\n\nThese are OpenTelemetry's own variables. They do not enable OTLP by " +
      'themselves.',
    table(
      ['environment', 'meaning'],
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
    optionTable(/** @type {any} */ (agentOptions)),
    '## Processes without the agent',
    optionTable({ annotation })
  )

module.exports = { config }
