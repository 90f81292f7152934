'use strict'

const { Argument, Command } = require('commander')
const { withApiOptions, callApi } = require('./program/api')
const { bashScript } = require('./completions/bash')
const { fishScript } = require('./completions/fish')
const { zshScript } = require('./completions/zsh')
const { completionTable } = require('./completions/table')
const { out } = require('./program/output')
const { UsageError } = require('./program/usage-error')

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }
/** Time limit of a request, because a person waits for the names after pressing Tab. */
const TIMEOUT_MS = 200
/** Names without a special meaning in any shell; others are not proposed. */
const PLAIN_NAME = /^[\p{L}\p{N}@_][\p{L}\p{M}\p{N}_./@+:-]*$/u

const command = withApiOptions(new Command('completion'))
  .description('Print a completion script for a shell: commands, options, diagnoses, targets.')
  .addArgument(
    new Argument('<shell>', "shell of the script; targets prints the names of an exporter's " +
      'targets, for these scripts')
      .choices([...Object.keys(SCRIPTS), 'targets'])
  )
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
Names of targets come from a running exporter, if it answers within 200 ms.

Exit status: 0; 2 for another shell.

Examples:
  $ source <(memwatch completion bash)          in ~/.bashrc
  $ source <(memwatch completion zsh)           in ~/.zshrc, after compinit
  $ memwatch completion fish | source           in ~/.config/fish/config.fish`
  )
  .action(async (/** @type {keyof typeof SCRIPTS | 'targets'} */ shell, given) => {
    if (shell === 'targets') return out.say(...await listTargets(given))
    const program = /** @type {Command} */ (command.parent)
    out.text(SCRIPTS[shell](completionTable(program)))
  })

/**
 * @param {import('./program/api').ApiOptions} given
 * @returns {Promise<string[]>} names
 */
async function listTargets (given) {
  try {
    const { body, refused } = await callApi({ ...given, timeoutMs: TIMEOUT_MS }, 'targets')
    if (refused || !Array.isArray(body)) return []
    const names = body.map(({ target }) => String(target)).filter(name => PLAIN_NAME.test(name))
    return [...new Set(names)]
  } catch (error) {
    if (error instanceof UsageError) return [] // Without an exporter, no name can be completed.
    throw error
  }
}

module.exports = { command }
