'use strict'

const { Command } = require('commander')
const { replay, RecordingError } = require('../recording/replay')
const { judgedTarget } = require('../expose/targets')
const { writeReport, openFile, checkFailOn, hasFailed, FAILED_ON } = require('./run')
const { UsageError } = require('./usage-error')

const command = new Command('diagnose')
  .description('Judge a recording: what run --record or the exporter wrote, by the same code as live.')
  .argument('<file>', 'the recording; .gz is unpacked')
  .option('--json', 'print the report as JSON on stdout, and nothing else')
  .option('--report <FILE>', 'write the report as JSON to a file, too')
  .option('--fail-on <STATE>', 'end with status 3 when a verdict is suspected or confirmed')
  .allowExcessArguments(false)
  .addHelpText('after', `
Ends with 0; 3 under --fail-on; 2 when the file is no recording.
Examples:
  $ memwatch run --record app.recording.gz -- node server.js
  $ memwatch diagnose app.recording.gz
  $ memwatch diagnose --json app.recording.gz | jq '.targets[].primary'`)
  .action(async (file, given) => { process.exitCode = await diagnose(file, given) })

/**
 * @param {string} file @param {{ json?: boolean, report?: string, failOn?: string }} given
 * @returns {Promise<number>} exit status
 */
async function diagnose (file, given) {
  checkFailOn(given.failOn)
  const { stderr } = process
  let shown = -1
  const replayed = await replay(file, {
    onError: error => { stderr.write(`memwatch: ${error.message}\n`) },
    onProgress: share => {
      const percent = Math.floor(share * 100)
      if (stderr.isTTY && percent > shown) stderr.write(`\r${shown = percent} % of ${file}`)
    }
  }).catch(error => {
    throw error instanceof RecordingError || error.code === 'ENOENT' ? new UsageError(error.message) : error
  })
  if (stderr.isTTY) stderr.write('\r\x1b[2K')
  if (replayed.rejected > 0) stderr.write(`memwatch: ${replayed.rejected} lines of ${file} were not taken: damaged, or of another version\n`)
  if (replayed.cut) stderr.write(`memwatch: ${file} breaks off; what it holds was judged\n`)

  const { header, end, targets } = replayed
  const report = {
    schema: /** @type {const} */ (1),
    command: header.command ?? [],
    durationSeconds: end?.durationSeconds ?? Math.max(0, ...targets.map(({ watchedSeconds }) => watchedSeconds)),
    exit: end?.exit ?? { code: null, signal: null },
    targets: targets.map(judgedTarget),
    deaths: []
  }
  writeReport(report, given, given.report === undefined ? undefined : openFile('--report', given.report))
  return hasFailed(report, given.failOn) ? FAILED_ON : 0
}

module.exports = { command }
