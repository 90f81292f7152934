'use strict'

const fs = require('node:fs')
const os = require('node:os')
const { Command } = require('commander')
const { watchCommand } = require('./watch-command')
const { renderReport } = require('./report')
const { Progress } = require('./progress')
const { UsageError, readSeconds } = require('./usage-error')
const { parseHostPort } = require('../ingest/address')

/** Exit status when --fail-on found what it was told to fail on. */
const FAILED_ON = 3

const command = withReportOptions(new Command('run'))
  .description('Run a command with the agent, watch it, and report what is wrong with its memory.')
  .argument('<command...>', 'what to run, after --')
  .passThroughOptions()
  .usage('[options] -- <command...>')
  .addHelpText('after', `
Ends with the status of the command; 128 + N when signal N ended it; 0 when --for ended it; 3 under --fail-on; 127 when it
cannot be started.
Examples:
  $ memwatch run -- node server.js
  $ memwatch run --for 60 --fail-on confirmed -- npm start
  $ memwatch run --for 60 --json -- node server.js | jq '.targets[].primary'`)
  .action(async (words, given) => { process.exitCode = await runAndReport(words, given) })

/**
 * The options that `run` and `simulate` share.
 * @param {Command} command
 */
function withReportOptions (command) {
  return command
    .option('--for <SECONDS>', 'end the command after so long')
    .option('--json', 'print the report as JSON on stdout, and nothing else; the stdout of the command goes to stderr')
    .option('--report <FILE>', 'write the report as JSON to a file, too')
    .option('--fail-on <STATE>', 'end with status 3 when a verdict is suspected or confirmed')
    .option('--listen <HOST:PORT>', 'where to serve /metrics and the API meanwhile (default: a free loopback port)')
}

/**
 * @typedef {object} ReportOptions as commander read them
 * @property {string} [for]
 * @property {boolean} [json]
 * @property {string} [report]
 * @property {string} [failOn]
 * @property {string} [listen]
 */

/**
 * @param {string[]} words the command
 * @param {ReportOptions} given
 * @param {Record<string, string>} [extraEnv] of the command
 * @returns {Promise<number>} exit status
 * @throws {UsageError}
 */
async function runAndReport (words, given, extraEnv = {}) {
  const forSeconds = given.for === undefined ? undefined : readSeconds('--for', given.for)
  const listen = given.listen === undefined ? undefined : readListen(given.listen)
  if (given.failOn !== undefined && !['suspected', 'confirmed'].includes(given.failOn)) {
    throw new UsageError(`--fail-on: expected suspected or confirmed, got ${JSON.stringify(given.failOn)}`)
  }
  const reportFile = given.report === undefined ? undefined : openReport(given.report)

  const progress = new Progress(process.stderr)
  const { report, endedByUs, spawnError } = await watchCommand({
    command: words,
    forSeconds,
    listen,
    env: { ...process.env, ...extraEnv },
    stdoutToStderr: Boolean(given.json),
    onStart: (exporter, at) => progress.start(exporter, at)
  }).finally(() => progress.stop())

  if (spawnError) {
    process.stderr.write(`memwatch: cannot run ${words[0]}: ${spawnError.code === 'ENOENT' ? 'no such command' : spawnError.message}\n`)
    return spawnError.code === 'EACCES' ? 126 : 127
  }
  const json = JSON.stringify(report, null, 2) + '\n'
  if (reportFile !== undefined) fs.writeFileSync(reportFile, json)
  const { isTTY, columns } = process.stdout
  const colour = Boolean(isTTY) && !process.env.NO_COLOR
  process.stdout.write(given.json ? json : '\n' + renderReport(report, { colour, width: Math.min(columns || 100, 120) }))
  return statusOf(report, endedByUs, given.failOn)
}

/** @param {import('./watch-command').Report} report @param {boolean} endedByUs @param {string} [failOn] */
function statusOf ({ exit, targets }, endedByUs, failOn) {
  const failing = failOn === 'suspected' ? ['suspected', 'confirmed'] : failOn === 'confirmed' ? ['confirmed'] : []
  if (targets.some(({ verdicts }) => verdicts.some(({ state }) => failing.includes(state)))) return FAILED_ON
  if (exit.signal === null) return exit.code ?? 1
  if (endedByUs) return 0
  return 128 + os.constants.signals[/** @type {NodeJS.Signals} */ (exit.signal)]
}

/** Opened before the run: a report that cannot be written must not be found out an hour later. @param {string} file */
function openReport (file) {
  try {
    return fs.openSync(file, 'w')
  } catch (error) {
    throw new UsageError(`--report: cannot write ${file}: ${/** @type {Error} */ (error).message}`)
  }
}

/** @param {string} text */
function readListen (text) {
  try {
    return parseHostPort(text)
  } catch (error) {
    throw new UsageError(`--listen: ${/** @type {Error} */ (error).message}`)
  }
}

module.exports = { command, withReportOptions, runAndReport }
