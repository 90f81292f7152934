'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { Command } = require('commander')
const { orRefused } = require('./attach')
const { findSubject } = require('./attachment/find-subject')
const { withAttachOptions } = require('./attachment/options')
const { Interruption } = require('./watch/interruption')
const { watchCommand } = require('./watch/watch-command')
const { watchProcess } = require('./watch/watch-process')
const { renderReport } = require('./watch/report')
const { Progress } = require('./watch/progress')
const { out, err } = require('./program/output')
const { explainSpawnFailure } = require('./watch/spawn-failure')
const { UsageError, readSeconds } = require('./program/usage-error')
const { RAN_OUT } = require('@memwatch/exporter/deaths/deaths')
const { parseHostPort } = require('@memwatch/exporter/ingest/address')
const { toJson } = require('@memwatch/engine/text/json')

/** Exit statuses under --fail-on. */
const FAIL_ON_STATUS = Object.freeze({ failed: 3, nothingSeen: 4 })
/**
 * States of a headline or a verdict that fail a run, by the argument of --fail-on.
 * @type {Record<string, readonly string[]>}
 */
const FAILING = Object.freeze({
  confirmed: ['confirmed'],
  suspected: ['confirmed', 'suspected'],
  undecided: ['confirmed', 'suspected', 'undecided']
})
/** Help text of --fail-on, with its exit statuses. */
const FAIL_ON = 'end with status 3 if a target is in this state or a worse one (confirmed, ' +
  'suspected or undecided) or ran out of memory; with 4 if no process was evaluated'

/** Help text of --verbose. */
const VERBOSE = 'print each finding with all evidence and fixes, and the checks that found nothing'

const command = withAttachOptions(withReportOptions(new Command('run')))
  .description('Run a command with the agent, watch it, and report its memory problems.')
  .argument('[command...]', 'the command, after --')
  .option(
    '--attach <PROCESS>',
    'watch this running process (id or name) instead, until Ctrl-C or --for; the process continues'
  )
  .passThroughOptions()
  .usage('[options] -- <command...>')
  .addHelpText('after', `
Run the app under load: most memory problems only show when the app is busy.

A leak check needs readings of the live heap. If it lacks them, memwatch runs full GCs in the
command, for at most 2 % of the time. MEMWATCH_FORCED_GC=off prevents them. With --attach it runs
them only with --allow-forced-gc.

Exit status: that of the command; 128 + N after signal N; 0 when --for ended the command; 126 or 127
when the command cannot be started. With --attach: 0; 1 when the process cannot be attached to.
With --fail-on: 3 when a process is in that state or a worse one; 4 when no Node.js process reported
or was evaluated. States from worst to best: confirmed, suspected, undecided (a leak check is still
open).

Examples:
  $ memwatch run -- node server.js
  $ memwatch run --for 60 --fail-on confirmed -- npm start
  $ memwatch run --for 60 --json -- node server.js | jq '.targets[].headline'
  $ memwatch run --attach 4711 --for 5m`)
  .action(async (words, given) => {
    process.exitCode = given.attach === undefined
      ? await runAndReport(words, given)
      : await orRefused('run', () => watchAndReport(words, given))
  })

/**
 * Adds the options that `run` and `simulate` share.
 * @param {Command} command
 */
function withReportOptions (command) {
  return command
    .option('--for <TIME>', 'end the command after this time, such as 90, 90s or 5m')
    .option(
      '--json',
      'print the report as JSON on stdout, and nothing else; the stdout of the command goes to ' +
        'stderr'
    )
    .option('--report <FILE>', 'also write the report as JSON to a file')
    .option(
      '--record <FILE>',
      'record everything that agents send, for memwatch diagnose; .gz compresses it'
    )
    .option('--fail-on <STATE>', FAIL_ON)
    .option('-v, --verbose', VERBOSE)
    .option(
      '--listen <HOST:PORT>',
      'address of /metrics and the API during the run (default: a free loopback port)'
    )
}

/**
 * @typedef {object} ReportOptions options in the form of commander
 * @property {string} [for]
 * @property {boolean} [json]
 * @property {string} [report]
 * @property {string} [record]
 * @property {string} [failOn]
 * @property {string} [listen]
 * @property {boolean} [verbose]
 */

/**
 * @param {string[]} words words of the command
 * @param {ReportOptions} given
 * @param {{ env?: Record<string, string>, shown?: string[] }} [more] env: environment of the
 *   command, besides memwatch's variables; shown: words of the command in the report
 * @returns {Promise<number>} exit status
 * @throws {UsageError}
 */
async function runAndReport (words, given, { env = {}, shown = words } = {}) {
  if (words.length === 0) throw new UsageError('expected a command after --, or --attach PROCESS')
  const { forSeconds, listen, reportFile } = readReportOptions(given)
  const progress = new Progress(err, { verbose: given.verbose })
  const { report, endedByUs, spawnError } = await watchCommand({
    command: words,
    forSeconds,
    listen,
    record: given.record,
    shown,
    env: { ...process.env, ...env },
    stdout: given.json ? 2 : 'inherit',
    onStart: (exporter, at) => progress.start(exporter, at)
  }).finally(() => progress.stop())

  if (spawnError) {
    const { text, status } = explainSpawnFailure(shown, spawnError)
    err.say(text)
    return status
  }
  const isOver = !endedByUs && report.exit.code !== null
  writeReport(report, given, reportFile, { isOver })
  return failOnStatus(report, given.failOn) ?? statusOf(report, endedByUs)
}

/**
 * @param {string[]} words
 * @param {ReportOptions & import('./attachment/options').AttachOptions & { attach: string }} given
 * @returns {Promise<number>} exit status
 * @throws {UsageError | import('@memwatch/exporter/attachment/refusal').Refusal}
 */
async function watchAndReport (words, given) {
  if (words.length > 0) throw new UsageError('--attach: expected no command with --attach')
  const { forSeconds, listen, reportFile } = readReportOptions(given)
  const subject = findSubject(given.attach)
  subject.check(given)
  const progress = new Progress(err, { verbose: given.verbose })
  const interruption = new Interruption()
  try {
    const { report, notDetached } = await watchProcess({
      subject,
      given,
      forSeconds,
      listen,
      record: given.record,
      abort: interruption.signal,
      onStart: (exporter, at) => progress.start(exporter, at)
    }).finally(() => progress.stop())
    if (notDetached) err.say(`memwatch run: the agent stays in the process: ${notDetached}`)
    writeReport(report, given, reportFile)
    return failOnStatus(report, given.failOn) ?? 0
  } finally {
    interruption.stop()
  }
}

/**
 * @param {ReportOptions} given
 * @returns {{ forSeconds?: number, listen?: { host: string, port: number }, reportFile?: number }}
 *   reportFile: descriptor
 * @throws {UsageError}
 */
function readReportOptions (given) {
  const forSeconds = given.for === undefined ? undefined : readSeconds('--for', given.for)
  const listen = given.listen === undefined ? undefined : readListen(given.listen)
  checkFailOn(given.failOn)
  const reportFile = given.report === undefined ? undefined : openFile('--report', given.report)
  if (given.record !== undefined) fs.closeSync(openFile('--record', given.record))
  return { forSeconds, listen, reportFile }
}

/**
 * @param {import('./watch/watch-command').Report} report
 * @param {Pick<ReportOptions, 'json' | 'verbose' | 'listen'>} given
 * @param {number} [reportFile] descriptor
 * @param {Pick<NonNullable<Parameters<typeof renderReport>[1]>, 'ended' | 'isOver'>} [how]
 */
function writeReport (report, given, reportFile, { ended, isOver } = {}) {
  if (reportFile !== undefined) fs.writeFileSync(reportFile, `${toJson(report, 2)}\n`)
  if (given.json) out.json(report, 2)
  else {
    const width = Math.min(out.columns || 100, 120)
    const lines = renderReport(report, { width, verbose: given.verbose, ended, isOver })
    const mayCapture = given.listen === undefined
    out.say('', ...lines, ...(mayCapture ? sayHowToCapture(report, ended !== undefined) : []))
  }
}

/**
 * Explains how to use `memwatch capture`, which some fixes name. It needs an exporter at a known
 * address.
 * @param {Pick<import('./watch/watch-command').Report, 'targets'>} report
 * @param {boolean} isStored true for a report on a recording or another source, which judges a
 *   process that ran before
 */
function sayHowToCapture ({ targets }, isStored) {
  const fixes = targets.flatMap(({ verdicts }) => verdicts.flatMap(({ fix }) => fix))
  if (!fixes.some(({ change }) => change.code?.includes('memwatch capture'))) return []
  return ['', isStored
    ? 'Lines of code are named only while the process runs: by memwatch run, or by an exporter.'
    : 'memwatch capture works while this command runs with --listen 127.0.0.1:16369.']
}

/**
 * @param {Pick<import('./watch/watch-command').Report, 'targets'>} report
 * @returns {boolean} true if at least one check of a process has a result
 */
const isAnyJudged = ({ targets }) =>
  targets.some(({ verdicts }) => verdicts.some(({ state }) => state !== 'unknown'))

/**
 * @param {Pick<import('./watch/watch-command').Report, 'targets' | 'deaths'>} report
 * @param {string} [failOn]
 * @returns {number | undefined} exit status; undefined without --fail-on, or if no target fails
 */
function failOnStatus (report, failOn) {
  if (failOn === undefined) return undefined
  const { targets, deaths } = report
  // A supervisor may have ended with status 0 although its worker ran out of memory.
  if (deaths.some(({ reason }) => RAN_OUT.includes(reason))) return FAIL_ON_STATUS.failed
  if (!isAnyJudged(report)) return FAIL_ON_STATUS.nothingSeen
  const isFailing = (/** @type {string} */ state) => FAILING[failOn].includes(state)
  const failed = targets.some(({ headline, verdicts }) => isFailing(headline.state) ||
    verdicts.some(({ state, opportunity }) => !opportunity && isFailing(state)))
  if (failed) return FAIL_ON_STATUS.failed
  return undefined
}

/**
 * @param {import('./watch/watch-command').Report} report
 * @param {boolean} endedByUs
 */
function statusOf ({ exit }, endedByUs) {
  if (exit.signal === null) return exit.code ?? 1
  if (endedByUs) return 0
  return 128 + os.constants.signals[/** @type {NodeJS.Signals} */ (exit.signal)]
}

/**
 * Opens an output file before the run, so that an unwritable file is an error at once and not an
 * hour later.
 * @param {string} option
 * @param {string} file
 */
function openFile (option, file) {
  try {
    return fs.openSync(file, 'w')
  } catch (error) {
    throw new UsageError(`${option}: cannot write ${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/**
 * @param {string} [failOn]
 * @throws {UsageError}
 */
function checkFailOn (failOn) {
  if (failOn === undefined || Object.hasOwn(FAILING, failOn)) return
  const got = JSON.stringify(failOn)
  throw new UsageError(`--fail-on: expected confirmed, suspected or undecided, got ${got}`)
}

/** @param {string} text */
function readListen (text) {
  try {
    return parseHostPort(text)
  } catch (error) {
    throw new UsageError(`--listen: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = {
  command,
  withReportOptions,
  runAndReport,
  writeReport,
  openFile,
  checkFailOn,
  failOnStatus,
  isAnyJudged,
  FAIL_ON_STATUS,
  FAIL_ON,
  VERBOSE
}
