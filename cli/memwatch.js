#!/usr/bin/env node
'use strict'

require('./program/node-floor')
const { Command, CommanderError } = require('commander')
const { version } = require('@memwatch/exporter/package.json')
const { ConfigError } = require('@memwatch/exporter/config')
const { endWhenAsked } = require('./program/end-when-asked')
const { exitStatusText } = require('./program/exit-statuses')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')
const { usageText } = require('./program/usage-text')

/** Exit status of an invalid command line. */
const USAGE_STATUS = 2
/** Commands in the order of --help; each is a file. */
const COMMANDS = [
  'run',
  'try',
  'gate',
  'simulate',
  'diagnose',
  'compare',
  'attach',
  'detach',
  'triage',
  'top',
  'fleet',
  'last-death',
  'capture',
  'retainers',
  'fix',
  'trim',
  'plan',
  'right-size',
  'audit',
  'doctor',
  'mcp',
  'exporter',
  'install-agent',
  'completion'
]

/**
 * Creates the program with some of its commands. Only the requested command is loaded, because
 * loading all takes seconds on a tenth of a core.
 * @param {readonly string[]} names of commands
 */
function programWith (names) {
  const program = new Command('memwatch')
    .description(
      'Names the memory problem of a Node.js process, how sure the finding is, and the change ' +
        'that fixes it.'
    )
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError('(memwatch --help lists the commands, memwatch COMMAND --help its options)')
    .addHelpText(
      'after',
      `
${exitStatusText()}

Examples:
  $ memwatch run -- node server.js            watch an app from start to end, then read the report
  $ memwatch try --for 60 -- node server.js   apply the fix, run again, and compare
  $ memwatch gate --baseline main.json -- node app.js   in CI: is memory worse than on main
  $ memwatch simulate semi-space-starvation   watch memwatch find a real problem
  $ memwatch diagnose app.recording.gz        diagnose a recording
  $ memwatch diagnose app.log                 without an agent: --trace-gc logs, reports, Prometheus
  $ memwatch compare before.gz after.gz       the effect of a change, and its prediction
  $ memwatch attach 4711                      load the agent into a running process
  $ memwatch detach 4711                      stop the agent in this process
  $ memwatch triage 4711                      watch a process for a minute, and write one file
  $ memwatch top                              targets of an exporter, worst first
  $ memwatch fleet --prometheus URL           findings of a fleet by workload, with savings
  $ memwatch last-death shop                  cause of death of the last process of that name
  $ memwatch capture shop heap_profile        lines that allocate the surviving objects
  $ memwatch retainers shop.heapsnapshot      objects that pile up in a snapshot, and their holders
  $ memwatch fix shop --format kubernetes     the recommended change, as a patch
  $ memwatch trim shop                        return what malloc retains, without a restart
  $ memwatch plan shop --node 24              heap sizes after an upgrade, with another limit or flag
  $ memwatch right-size shop                  request, limit and heap, from days of a workload
  $ memwatch audit package-lock.json          known memory bugs of the versions in use
  $ memwatch doctor shop                      check exporter, agent, limits and the fix
  $ memwatch mcp                              the same facts for an AI assistant, over stdio
  $ memwatch exporter                         the sidecar: metrics for Prometheus, a JSON API
  $ memwatch install-agent /run/memwatch      the agent in a folder that another container mounts
  $ source <(memwatch completion bash)        complete commands, options, targets; zsh and fish, too`
    )
  for (const name of names) program.addCommand(require(`./${name}`).command)
  for (const command of program.commands) {
    command.showHelpAfterError(
      `(memwatch ${command.name()} --help lists its arguments and options, with examples)`
    )
  }
  for (const command of [program, ...program.commands]) {
    command.configureOutput({
      writeOut: text => out.text(text),
      writeErr: text => err.text(text),
      outputError: (text, write) =>
        write(usageText(text, command.options) + hintOf(command.name(), text))
    })
    command.exitOverride()
  }
  return program
}

/**
 * Explains a flag of Node.js among the options of memwatch.
 * @param {string} name name of the command
 * @param {string} text text of commander's error
 * @returns {string} a line, or an empty text
 */
function hintOf (name, text) {
  const [, option, flag] = /unknown option '((--[\w-]+).*)'/.exec(text) ?? []
  const startsNode = ['run', 'try', 'gate'].includes(name)
  if (!startsNode || !process.allowedNodeEnvironmentFlags.has(flag)) return ''
  return `(flags of Node.js follow the command: memwatch ${name} -- node ${option} server.js)\n`
}

/** Executes the command line of this process. @returns {Promise<void>} never rejects */
async function main () {
  const [, , name, argument] = process.argv
  // A completion script needs all commands.
  const needsAll = name === 'completion' && argument !== 'targets'
  const asked = COMMANDS.filter(known => known === name && !needsAll)
  if (asked[0] === 'exporter') endWhenAsked()
  try {
    await programWith(asked.length > 0 ? asked : COMMANDS).parseAsync()
  } catch (error) {
    fail(error)
  }
}

/**
 * Prints an error and sets the exit status: 2 for every command line that is invalid.
 * @param {unknown} error
 */
function fail (error) {
  if (error instanceof CommanderError) {
    // Commander has already printed the error. It also throws after --help and --version.
    process.exitCode = error.exitCode === 0 ? 0 : USAGE_STATUS
  } else if (error instanceof ConfigError || error instanceof UsageError) {
    err.say(`memwatch: ${error.message}`)
    process.exitCode = USAGE_STATUS
  } else {
    err.text(String(/** @type {Error} */ (error)?.stack ?? error))
    process.exit(1)
  }
}

if (require.main === module) main()

module.exports = { main, get program () { return programWith(COMMANDS) } }
