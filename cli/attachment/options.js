'use strict'

/**
 * Options of each command that enters a running process.
 * @typedef {{ assumeDefaultSigusr1?: boolean }} EntryOptions
 * @typedef {EntryOptions & { agent?: string, allowForcedGc?: boolean }} AttachOptions
 */

/** @param {import('commander').Command} command */
const withEntryOptions = command => command.option(
  '--assume-default-sigusr1',
  'attach even if memwatch cannot check the signal handlers; use it only if the app does not ' +
    'listen to SIGUSR1'
)

/** @param {import('commander').Command} command */
const withAttachOptions = command => withEntryOptions(command)
  .option(
    '--agent <FOLDER>',
    "path of the agent's folder as the process sees it (default: the agent of this command line)"
  )
  .option(
    '--allow-forced-gc',
    'let the exporter request full GCs, for at most 2 % of the time, if a leak check lacks ' +
      'readings of the live heap'
  )

module.exports = { withEntryOptions, withAttachOptions }
