'use strict'

/**
 * Options of each command that enters a running process.
 * @typedef {{ assumeDefaultSigusr1?: boolean }} EntryOptions
 * @typedef {EntryOptions & { agent?: string, allowForcedGc?: boolean }} AttachOptions
 */

/** @param {import('commander').Command} command */
const withEntryOptions = command => command.option(
  '--assume-default-sigusr1',
  'the app does not listen to SIGUSR1: for a process whose memory this user may not read'
)

/** @param {import('commander').Command} command */
const withAttachOptions = command => withEntryOptions(command)
  .option(
    '--agent <FOLDER>',
    'folder of the agent as the process sees it (default: the one beside this command line)'
  )
  .option(
    '--allow-forced-gc',
    'let the exporter request full GCs if a leak check lacks readings of the live heap: at most ' +
      '2 % of the time'
  )

module.exports = { withEntryOptions, withAttachOptions }
