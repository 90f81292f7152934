'use strict'

const { wrap } = require('../text/wrap')

/**
 * Exit statuses, the same for every command.
 * @type {readonly { status: string, meaning: string }[]}
 */
const exitStatuses = Object.freeze([
  { status: '0', meaning: 'success' },
  {
    status: '1',
    meaning: 'fix, trim, capture: refused or impossible; attach, detach, triage, run --attach: ' +
      'memwatch cannot attach to the process; last-death: no process has died; doctor: a check ' +
      'found a problem; right-size: no size can be recommended; any command: an error of ' +
      'memwatch itself'
  },
  {
    status: '2',
    meaning: 'an option is invalid, a file is unusable, a target does not exist, no exporter ' +
      'answers, or triage cannot send its file'
  },
  {
    status: '3',
    meaning: '--fail-on: a process is in that state or a worse one; try: no finding is confirmed; ' +
      'gate: worse than the baseline; audit: a version with a known bug is in use'
  },
  {
    status: '4',
    meaning: '--fail-on: no process was evaluated; gate: nothing was measured; triage: nothing ' +
      'was evaluated; try: no fix can be applied from outside the app'
  },
  {
    status: '5',
    meaning: 'try: the finding remains with the fix, the fix has no effect, or the command ' +
      'failed only with the fix; gate: the command failed'
  },
  { status: '6', meaning: 'gate: undecided after the last run' },
  { status: '7', meaning: 'try: no Node.js process reported' },
  { status: '126, 127', meaning: 'run, try, gate: the command cannot be started' },
  { status: '128 + N', meaning: 'run: signal N ended the command; try, gate: signal N interrupted memwatch' },
  { status: 'other', meaning: 'run: the status of the command' }
])

/** @returns {string} the table in lines of a terminal */
const exitStatusText = () => ['Exit status:', ...exitStatuses.flatMap(({ status, meaning }) =>
  wrap(meaning, 84).map((line, i) => `  ${(i === 0 ? status : '').padEnd(10)}${line}`))].join('\n')

module.exports = { exitStatuses, exitStatusText }
