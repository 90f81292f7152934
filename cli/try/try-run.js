'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { createMemoryGroup } = require('@memwatch/exporter/process/memory-group')
const { measure } = require('../comparison/measure')
const { workOfApp } = require('../comparison/work-of')
const { LoadCommand } = require('../watch/load-command')
const { err } = require('../program/output')
const { tailOf } = require('../watch/output-tail')
const { Progress } = require('../watch/progress')
const { explainSpawnFailure } = require('../watch/spawn-failure')
const { watchCommand } = require('../watch/watch-command')

/** Time for which an app is watched after its load, to observe memory that is returned late. */
const SETTLE_MS = 10_000

/**
 * Settings that are the same for all runs.
 * @typedef {object} Plan
 * @property {string} folder of the recordings
 * @property {number} [forSeconds]
 * @property {string} [load]
 * @property {number} [memoryBytes]
 * @property {number} repeat
 * @property {string} [diagnosis] id of the diagnosis to fix
 * @property {AbortSignal} abort ends the running command
 *
 * @typedef {object} Trial
 * @property {'before' | 'after'} side
 * @property {number} number number of the run, from 1
 * @property {string[]} command
 * @property {Record<string, string>} env environment besides memwatch's own variables
 * @property {{ name: string, thread: string }} [like] the target to compare
 */

/**
 * Makes one run: starts the command in its memory cgroup, under its load, with a recording, and
 * then measures the recording like `memwatch compare`.
 * @param {Plan} plan
 * @param {Trial} trial
 * @returns {Promise<{ run: import('../comparison/measure').Run, notStarted?: number, loadError?:
 *   Error }>} notStarted: exit status if the command could not be started
 */
async function tryRun (
  { folder, forSeconds, load: loadWords, memoryBytes, repeat, diagnosis, abort },
  { side, number, command, env, like }
) {
  fs.mkdirSync(path.join(folder, side), { recursive: true })
  const file = path.join(folder, side, String(number))
  const { group, wrapped } = intoGroup(command, memoryBytes, `try-${side}`)
  const progress = new Progress(err, {
    label: `memwatch ${side}${repeat > 1 ? ` ${number} of ${repeat}` : ''}`,
    seconds: forSeconds
  })
  const over = new AbortController()
  const out = fs.openSync(`${file}.out`, 'w')
  /** @type {LoadCommand | undefined} */
  let load
  /** @type {Error | undefined} */
  let loadError
  /** @type {NodeJS.Timeout | undefined} */
  let settling
  try {
    const { report, spawnError } = await watchCommand({
      command: [wrapped.command, ...wrapped.args],
      shown: command,
      forSeconds,
      abort: AbortSignal.any([abort, over.signal]),
      env: { ...process.env, ...env },
      stdout: out,
      record: `${file}.ndjson.gz`,
      workOf: async () => {
        await load?.stop()
        return load?.work ?? workOfApp(tailOf(`${file}.out`))
      },
      onStart: (exporter, at) => {
        progress.start(exporter, at)
        if (loadWords === undefined) return
        load = new LoadCommand(loadWords, {
          file: `${file}.load.out`,
          exporter,
          say: text => progress.say(text),
          onEnd: error => {
            loadError = error
            if (error) over.abort()
            else if (forSeconds === undefined) settling = setTimeout(() => over.abort(), SETTLE_MS)
          }
        })
      }
    }).finally(async () => {
      await load?.stop()
      clearTimeout(settling)
      progress.stop()
    })
    for (const { reason, text } of report.deaths) if (reason !== 'clean') progress.say(text)
    const run = await measure(`${file}.ndjson.gz`, { like, diagnosis })
    return { run, notStarted: statusOfNone(command, run, spawnError), loadError }
  } finally {
    fs.closeSync(out)
    await group?.remove()
  }
}

/**
 * @param {string[]} command
 * @param {number | undefined} limitBytes undefined for no memory cgroup
 * @param {string} name name of the cgroup
 */
function intoGroup ([first, ...rest], limitBytes, name) {
  const group = limitBytes === undefined ? undefined : createMemoryGroup({ limitBytes, name })
  return { group, wrapped: group?.wrap(first, rest) ?? { command: first, args: rest } }
}

/**
 * Exit status for a command that could not be started, from spawn's error or from the shell that
 * joins a memory cgroup.
 * @param {string[]} command
 * @param {import('../comparison/measure').Run} run
 * @param {NodeJS.ErrnoException} [error]
 * @returns {number | undefined} 126 or 127; undefined if it was started
 */
function statusOfNone (command, { exit, target }, error) {
  if (error) {
    const { text, status } = explainSpawnFailure(command, error)
    err.say(text)
    return status
  }
  return !target && (exit?.code === 126 || exit?.code === 127) ? exit.code : undefined
}

module.exports = { tryRun }
