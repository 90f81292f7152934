'use strict'

const { defaultSocketPath } = require('@memwatch/agent/protocol/socket')
const { program } = require('../../cli/memwatch')
const { exitStatuses } = require('../../cli/program/exit-statuses')
const { table } = require('../markdown')
const { DEFAULT_SOCKET } = require('./default-socket')
const { page } = require('./page')

/** Width of a block of code on a page, in columns. */
const HELP_WIDTH = 96

/**
 * @param {import('commander').Command} command
 * @returns {string} its --help, the same on every machine
 */
function helpOf (command) {
  let text = ''
  const socket = command.options.find(({ long }) => long === '--socket')
  if (socket) {
    socket.description = socket.description.replace(defaultSocketPath(), DEFAULT_SOCKET)
  }
  command.configureOutput({
    getOutHelpWidth: () => HELP_WIDTH,
    getOutHasColors: () => false,
    writeOut: chunk => { text += chunk }
  })
  command.outputHelp()
  return text.trim()
}

const commands = () =>
  page(
    'Command line',
    'The package `@memwatch/cli` has one command, `memwatch`. `memwatch COMMAND --help` prints ' +
      'the texts below. [Configuration](config.md) lists the variables and the config file.',
    ...program.commands.map(command =>
      `## ${command.name()}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\``),
    '## Exit status\n\nThe same for every command.',
    table(['status', 'meaning'], exitStatuses.map(({ status, meaning }) => [status, meaning]))
  )

module.exports = { commands }
