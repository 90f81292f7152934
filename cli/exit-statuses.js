'use strict'

const { wrap } = require('./text/wrap')

/**
 * Exit statuses, the same for every command.
 * @type {readonly { status: string, meaning: string }[]}
 */
const exitStatuses = Object.freeze([
  { status: '0', meaning: 'done, and nothing to fail on' },
  {
    status: '1',
    meaning: 'fix, trim, capture: refused or not possible; last-death: no process has died; ' +
      'doctor: a check found a problem; any command: an error of memwatch itself'
  },
  {
    status: '2',
    meaning: 'the command line cannot be executed: an option, a file, an unknown target, or no exporter'
  },
  {
    status: '3',
    meaning: '--fail-on: a process is in that state or in a worse one; try: nothing is confirmed; ' +
      'audit: a version with a known bug is in use'
  },
  {
    status: '4',
    meaning: '--fail-on: nothing was seen; try: the finding has no fix that applies from outside'
  },
  { status: '5', meaning: 'try: the finding is still there with the fix' },
  { status: '126, 127', meaning: 'run, try: the command cannot be started' },
  { status: '128 + N', meaning: 'run, try: signal N ended the command' },
  { status: 'other', meaning: 'run: that of the command' }
])

/** @returns {string} the table in lines of a terminal */
const exitStatusText = () => ['Exit status:', ...exitStatuses.flatMap(({ status, meaning }) =>
  wrap(meaning, 84).map((line, i) => `  ${(i === 0 ? status : '').padEnd(10)}${line}`))].join('\n')

module.exports = { exitStatuses, exitStatusText }
