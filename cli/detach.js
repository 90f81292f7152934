'use strict'

const { Command } = require('commander')
const { detach } = require('@memwatch/exporter/attachment/attachment')
const { findSubject } = require('./attachment/find-subject')
const { withEntryOptions } = require('./attachment/options')
const { orRefused } = require('./attach')
const { out } = require('./program/output')

const command = withEntryOptions(new Command('detach'))
  .description('Stop the agent in a running process, with its timers, observers and descriptors.')
  .argument('<process>', 'process id, or name of the app: of its package or script')
  .option('--json', 'print the result as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
memwatch enters the process as memwatch attach does, and stops the agent, also a preloaded one. The
exporter shows the target as silent until it removes the target.

Exit status: 0; 1 when the process has no agent or cannot be entered; 2 when it does not exist.

Examples:
  $ memwatch detach 4711
  $ memwatch detach shop --json`
  )
  .action(async (text, given) => {
    process.exitCode = await orRefused('detach', () => detachFrom(text, given))
  })

/**
 * @param {string} text
 * @param {import('./attachment/options').EntryOptions & { json?: boolean }} given
 */
async function detachFrom (text, given) {
  const subject = findSubject(text)
  subject.check(given)
  const { node, workers } = await detach(subject)
  const also = workers.all === 0 ? '' : `, in ${workers.reached} of ${workers.all} workers, too`
  if (given.json) out.json({ pid: subject.pid, node, workers })
  else out.say(`${subject.name}, Node ${node}: the agent has stopped${also}.`)
  return 0
}

module.exports = { command }
