'use strict'

const fs = require('node:fs')
const { Command } = require('commander')
const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { attemptOf, writeAttempt, STATUS } = require('./try/attempt')
const { chooseFix } = require('./try/choose-fix')
const { Interruption } = require('./watch/interruption')
const { err } = require('./program/output')
const { readTryOptions } = require('./try/try-options')
const { tryRun } = require('./try/try-run')
const { makeTemporaryFolder } = require('./program/temporary-folder')
const { UsageError } = require('./program/usage-error')

/**
 * @param {string} text
 * @param {string[]} before
 */
const collect = (text, before = []) => [...before, text]

const command = new Command('try')
  .description(
    'Run a command, apply the fix for its finding, run it again, and compare both.'
  )
  .argument('<command...>', 'the command, after --')
  .passThroughOptions()
  .usage('[options] -- <command...>')
  .option(
    '--for <TIME>',
    'end each run after this time, such as 90, 90s or 5m (default: when the command ends; with ' +
      '--load ten seconds after the load)'
  )
  .option(
    '--load <COMMAND>',
    "shell command of a load generator, started when the app listens, such as 'autocannon -j -d " +
      "40 localhost:3000'"
  )
  .option('--repeat <N>', 'number of runs before the fix, and of runs with it, in turns', '1')
  .option(
    '--memory <SIZE>',
    'limit the memory of each run by a cgroup, such as 512Mi; needs Linux and root'
  )
  .option('--diagnosis <ID>', 'finding to fix, suspected or confirmed (default: the primary ' +
    'finding)')
  .option(
    '--fix <N>',
    'apply the Nth fix of the finding, as memwatch run lists them (default: the first that can ' +
      'be applied)'
  )
  .option(
    '--with <CHANGE>',
    'apply this change for any finding: a flag of node, or NAME=VALUE; may be repeated',
    collect
  )
  .option(
    '--keep <DIR>',
    'folder for recordings and output (default: a new folder in the temporary directory)'
  )
  .option('--json', 'print the result as JSON on stdout, and nothing else')
  .addHelpText(
    'after',
    `
memwatch applies fixes that work from outside: flags by NODE_OPTIONS or the command line,
environment variables, and jemalloc by LD_PRELOAD if the loader finds it. Apply changes of code,
image or container yourself, and measure them with memwatch compare. The stdout of the command is
stored beside the recordings. Ctrl-C ends the runs, keeps the recordings, and prints the result so
far.

try needs load on the app, in both runs. It shows costs per request if it knows the number of
requests. It reads the number from the output of --load (autocannon -j, wrk --latency or hey), or
from the last line of the app's output, such as {"requests": 1200}.

Exit status:
  0  the finding disappears with the fix, in every run; with --with: no finding with the change
  2  an option is invalid
  3  no finding is confirmed, so try applied no fix
  4  try cannot apply any fix of the finding from outside the app
  5  the finding remains with the fix, the fix has no effect, or the command failed only with it
  7  no Node.js process reported
  126, 127  the command cannot be started; 128 + N after signal N, such as 130 after Ctrl-C

Examples:
  $ memwatch try --for 60 -- node server.js
  $ memwatch try --memory 512Mi --repeat 3 \\
      --load 'autocannon -j -c 50 -d 40 http://localhost:3000' -- node server.js
  $ memwatch try --diagnosis allocator-fragmentation --fix 2 --for 60 -- npm start
  $ memwatch try --with --max-semi-space-size=16 --with LD_PRELOAD=libjemalloc.so.2 \\
      --for 60 -- node server.js
  $ memwatch compare --json DIR/before DIR/after        compare the kept recordings again`
  )
  .action(async (words, given) => {
    process.exitCode = await tryFix(words, given)
  })

/**
 * @param {string[]} words the command
 * @param {import('./try/try-options').Given} given
 * @returns {Promise<number>} exit status
 * @throws {UsageError}
 */
async function tryFix (words, given) {
  const options = readTryOptions(given)
  const interruption = new Interruption()
  const folder = options.keep ?? makeTemporaryFolder('memwatch-try-')
  const plan = { ...options, folder, abort: interruption.signal }
  /** @type {Record<'before' | 'after', import('./comparison/measure').Run[]>} */
  const runs = { before: [], after: [] }
  /** @type {import('./try/choose-fix').Chosen | undefined} */
  let chosen
  try {
    for (let number = 1; number <= plan.repeat; number++) {
      for (const side of /** @type {const} */ (['before', 'after'])) {
        // There is no fix to try, so no further run is needed.
        if (interruption.by || (chosen && !chosen.applied)) break
        const change =
          side === 'before' || !chosen?.applied ? { command: words, env: {} } : chosen.applied
        const { run, notStarted, loadError } = await tryRun(plan, {
          side,
          number,
          ...change,
          like: runs.before[0]?.target ?? undefined
        })
        if (loadError) throw new UsageError(loadError.message)
        if (notStarted) {
          if (!options.keep) fs.rmSync(folder, { recursive: true })
          return notStarted
        }
        // An interrupted run is reported only if there is no other run.
        if (!interruption.by || runs[side].length === 0) runs[side].push(run)
        if (!chosen && !interruption.by) chosen = announce(chooseFix(run, words, options))
      }
    }
  } finally {
    interruption.stop()
  }
  const attempt = attemptOf(runs, chosen, folder, interruption)
  writeAttempt(attempt, Boolean(given.json))
  return attempt.outcome === 'interrupted' ? interruption.status : STATUS[attempt.outcome]
}

/** @param {import('./try/choose-fix').Chosen} chosen */
function announce (chosen) {
  const { verdict, fix, skipped } = chosen
  const say = (/** @type {string} */ text) => err.say(`memwatch: ${text}`)
  if (verdict) say(`${verdict.diagnosis} ${verdict.state}: ${verdict.summary}`)
  for (const { title, reason } of skipped) say(`not tried: ${title}: ${reason}`)
  if (fix) {
    say(
      pasteLine(fix) === fix.title
        ? `trying: ${fix.title}`
        : `trying: ${fix.title} (${pasteLine(fix)})`
    )
  }
  return chosen
}

module.exports = { command }
