'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { closest } = require('fastest-levenshtein')
const { knownBugs } = require('../engine/known-bugs')
const { allRuns } = require('./realworld/cases')
const { runCase } = require('./realworld/run-case')

const HELP = `npm run bench:known-bugs -- [options]

Runs the case of each known bug of engine/known-bugs at a version that has the bug and at one that
has not. A bug counts as reproduced when a verdict names it at the first, and none at the second.
Dates and versions go to engine/known-bugs/reproduced.json; npm run generate puts them into
docs/known-bugs.md.

  --only ID,ID   these bugs (default: all)
  --missing      those that are not in reproduced.json
  --lanes N      so many at once (default: 2)
  --list         print the bugs, and run nothing
  --help

Packages and Node.js binaries are installed by npm into the tools folder. Memory limits need
cgroups, and so root on Linux. Ends with 1 when a bug was not reproduced, 2 for a wrong option.

  npm run bench:known-bugs -- --only debug,blob-stream
  npm run bench:known-bugs -- --missing`

const RESULTS = path.join(__dirname, '../engine/known-bugs/reproduced.json')
/**
 * Minimum duration of a run with a fixed version. The run also lasts longer than the bug needed to
 * appear.
 */
const LEAST_FIXED_SECONDS = 45
const LONGER_SECONDS = 15

/** @typedef {import('../engine/known-bugs/define-known-bug').KnownBug} KnownBug */
/** @typedef {import('../engine/known-bugs').Reproduced} Reproduced */

/** Error for a mistake of the caller: the bench prints only its message. */
class UsageError extends Error {}

function readOptions () {
  try {
    return parseArgs({
      options: {
        only: { type: 'string' },
        missing: { type: 'boolean', default: false },
        lanes: { type: 'string', default: '2' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false }
      }
    }).values
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/** @returns {Record<string, Reproduced>} */
const readResults = () => JSON.parse(fs.readFileSync(RESULTS, 'utf8'))

/**
 * @param {string} id
 * @param {Reproduced | null} result result; null if the bug was not reproduced
 */
function keep (id, result) {
  const { [id]: _, ...others } = readResults()
  const all = Object.entries(result ? { ...others, [id]: result } : others)
    .sort(([a], [b]) => a < b ? -1 : 1)
  fs.writeFileSync(`${RESULTS}.part`, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
  fs.renameSync(`${RESULTS}.part`, RESULTS)
}

/**
 * @param {ReturnType<typeof readOptions>} options
 * @returns {Readonly<KnownBug>[]}
 * @throws {UsageError}
 */
function choose ({ only, missing }) {
  const ids = knownBugs.map(({ id }) => id)
  const wanted = only?.split(',') ?? ids
  for (const id of wanted) {
    if (ids.includes(id)) continue
    throw new UsageError(`--only: no bug called ${id}; did you mean ${closest(id, ids)}?`)
  }
  const results = readResults()
  return knownBugs.filter(({ id }) => wanted.includes(id) && !(missing && results[id]))
}

/**
 * @param {Readonly<KnownBug>} bug
 * @returns {Promise<{ result: Reproduced | null, text: string }>}
 * @throws {Error} if a case cannot be run
 */
async function reproduce ({ id }) {
  const runs = allRuns().filter(run => run.case === id)
  const [leaky, fixed] = ['leaky', 'fixed'].map(form => runs.find(run => run.form === form))
  if (!leaky || !fixed) throw new Error(`bench/realworld/leaks has no case ${id}`)
  const seen = await runCase(leaky, { untilKnown: id })
  const named = seen.knownBugs.filter(bug => bug.id === id)
  if (named.length === 0) return { result: null, text: `not named at ${leaky.label}` }
  const likely = named.some(bug => bug.likely)
  const afterSeconds = Math.round(Math.min(...named.map(({ seconds }) => seconds)))
  const seconds = Math.max(LEAST_FIXED_SECONDS, afterSeconds + LONGER_SECONDS)
  const control = await runCase(fixed, { seconds })
  if (control.knownBugs.some(bug => bug.id === id)) {
    return { result: null, text: `named at ${fixed.label}, too` }
  }
  const date = new Date().toISOString().slice(0, 10)
  return {
    result: { date, leaky: leaky.label, fixed: fixed.label, likely, afterSeconds },
    text: `named after ${afterSeconds} s${likely ? ' as the likely cause' : ''}`
  }
}

async function main () {
  const options = readOptions()
  if (options.help) return console.log(HELP)
  const lanes = Number(options.lanes)
  if (!(Number.isInteger(lanes) && lanes > 0)) {
    throw new UsageError(`--lanes: expected a whole number above 0, got ${options.lanes}`)
  }
  const bugs = choose(options)
  if (options.list) {
    for (const { id, title } of bugs) console.log(`${id}: ${title}`)
    return
  }
  const waiting = [...bugs]
  let done = 0
  async function lane () {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      const { id } = bug
      const { result, text } = await reproduce(bug)
        .catch(error => ({ result: null, text: `FAILED: ${error.message}` }))
      keep(id, result)
      console.log(`${++done}/${bugs.length} ${id}: ${text}`)
      if (!result) process.exitCode = 1
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

main().catch(error => {
  if (!(error instanceof UsageError)) throw error
  console.error(`bench:known-bugs: ${error.message}`)
  process.exitCode = 2
})
