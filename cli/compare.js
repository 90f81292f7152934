'use strict'

const { Command } = require('commander')
const { measure, recordingsAt } = require('./comparison/measure')
const { compare } = require('./comparison/compare')
const { renderComparison } = require('./comparison/render')
const { RecordingError } = require('@memwatch/engine/recording/replay')
const { SourceError } = require('./sources')
const { out, err } = require('./program/output')
const { UsageError } = require('./program/usage-error')

const command = new Command('compare')
  .description(
    'Compare two recordings: the effect of a change, and its prediction.'
  )
  .argument('<before>', 'a recording of memwatch run --record, or a folder with several runs of one kind')
  .argument('<after>', 'a recording or folder of runs after the change')
  .option('--json', 'print the comparison as JSON on stdout, and nothing else')
  .allowExcessArguments(false)
  .addHelpText(
    'after',
    `
The command compares the process with a primary verdict, or without one the process that used most
CPU. Peak RSS is the highest sample, at one sample a second. RSS after load is the median of the
second half of the last quiet phase. A quiet phase follows a busy phase and lasts at least five
seconds. It uses less than a quarter of the CPU, and less than half of the event loop time, of the
busiest tenth of the run. Several recordings for each side give medians with minimum and maximum. If
these ranges overlap, the report shows no difference.

Exit status: 0; 2 when a file is no recording.

Examples:
  $ memwatch run --record before.ndjson.gz --for 60 -- node server.js
  $ memwatch run --record after.ndjson.gz --for 60 -- node --max-semi-space-size=16 server.js
  $ memwatch compare before.ndjson.gz after.ndjson.gz
  $ memwatch compare --json kept/before kept/after | jq '.rows[0]'`
  )
  .action(async (before, after, given) => {
    process.exitCode = await compareRecordings(before, after, given)
  })

/**
 * @param {string} before
 * @param {string} after files or folders
 * @param {{ json?: boolean }} given
 * @returns {Promise<number>} exit status
 */
async function compareRecordings (before, after, given) {
  const was = await measured(before)
  const like = was.find(({ target }) => target)?.target ?? undefined
  writeComparison(compare(was, await measured(after, like)), given)
  return 0
}

/**
 * @param {string} at
 * @param {{ name: string, thread: string }} [like]
 * @throws {UsageError}
 */
async function measured (at, like) {
  try {
    const runs = []
    for (const file of recordingsAt(at)) {
      runs.push(await measure(file, { like, onProgress: progressOf(file) }))
    }
    return runs
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
    const isInput = error instanceof SourceError || error instanceof RecordingError
    throw isInput || code === 'ENOENT' ? new UsageError(message) : error
  } finally {
    err.clear()
  }
}

/**
 * Prints the progress, because the evaluation of a day's frames takes seconds.
 * @param {string} file
 * @returns {(share: number) => void}
 */
function progressOf (file) {
  let shown = -1
  return share => {
    const percent = Math.floor(share * 100)
    if (percent > shown) err.redraw(`${shown = percent} % of ${file}`)
  }
}

/**
 * @param {import('./comparison/compare').Comparison} comparison
 * @param {{ json?: boolean }} given
 */
function writeComparison (comparison, { json }) {
  if (json) out.json(comparison, 2)
  else out.say('', ...renderComparison(comparison))
}

module.exports = { command }
