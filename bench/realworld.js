'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { closest } = require('fastest-levenshtein')
const { allRuns } = require('./realworld/cases')
const { realworldPage } = require('./realworld/page')
const { runCase } = require('./realworld/run-case')
const { score } = require('./realworld/score')

const HELP = `npm run bench:realworld -- [options]

Published packages with known leaks, at their leaky and at their fixed versions, and ordinary
healthy programs, each run as \`memwatch run\` does. Results are kept in
bench/realworld/results.json, one row for each case and form; a new run replaces its row.

  --only NAME,NAME   these cases (default: all)
  --form FORM,FORM   leaky, fixed, healthy (default: all)
  --missing          those without a row in results.json
  --seconds N        length of each run (default: what its case says)
  --lanes N          so many at once (default: 2)
  --write            write docs/realworld.md from all rows
  --list             print the cases, and run nothing
  --help

Packages and Node.js binaries are installed by npm into the tools folder,
~/.cache/memwatch-tools/realworld. Memory limits need cgroups, and so root on Linux.
Ends with 1 when a healthy program or a fixed version was confirmed to have a problem, or a run
could not be made; a leak that was missed stands in the page. With 2 for a wrong option.

  npm run bench:realworld -- --only debug,mem
  npm run bench:realworld -- --form healthy --lanes 1
  npm run bench:realworld -- --missing --write`

const RESULTS = path.join(__dirname, 'realworld/results.json')
const PAGE = path.join(__dirname, '../docs/realworld.md')

/** @typedef {import('./realworld/cases').Run} Run */
/** @typedef {import('./realworld/score').Row} Row */

/** Error of the caller; only its message is printed. */
class UsageError extends Error {}

const OPTIONS = Object.freeze({
  only: { type: /** @type {const} */ ('string') },
  form: { type: /** @type {const} */ ('string'), default: 'leaky,fixed,healthy' },
  missing: { type: /** @type {const} */ ('boolean'), default: false },
  seconds: { type: /** @type {const} */ ('string') },
  lanes: { type: /** @type {const} */ ('string'), default: '2' },
  write: { type: /** @type {const} */ ('boolean'), default: false },
  list: { type: /** @type {const} */ ('boolean'), default: false },
  help: { type: /** @type {const} */ ('boolean'), default: false }
})

function readOptions () {
  try {
    const { values } = parseArgs({ options: OPTIONS })
    return {
      ...values,
      seconds: values.seconds === undefined ? undefined : readCount('--seconds', values.seconds),
      lanes: readCount('--lanes', values.lanes)
    }
  } catch (error) {
    throw new UsageError(/** @type {Error} */ (error).message)
  }
}

/**
 * @param {string} option
 * @param {string} text
 * @throws {UsageError}
 */
function readCount (option, text) {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  throw new UsageError(`${option}: expected a whole number above 0, such as 2, got ${text}`)
}

/** @returns {Row[]} */
const readRows = () =>
  fs.existsSync(RESULTS) ? JSON.parse(fs.readFileSync(RESULTS, 'utf8')) : []

const keyOf = (/** @type {{ case: string, form: string }} */ { case: name, form }) =>
  `${name} ${form}`

/** @param {Row} row */
function keep (row) {
  const rows = [...readRows().filter(other => keyOf(other) !== keyOf(row)), row]
    .sort((a, b) => keyOf(a) < keyOf(b) ? -1 : 1)
  fs.writeFileSync(`${RESULTS}.part`, `${JSON.stringify(rows, null, 2)}\n`)
  fs.renameSync(`${RESULTS}.part`, RESULTS)
}

/**
 * @param {ReturnType<typeof readOptions>} options
 * @returns {Run[]}
 * @throws {UsageError}
 */
function choose ({ only, form, missing }) {
  const all = allRuns()
  const names = only?.split(',') ?? all.map(run => run.case)
  const forms = form.split(',')
  for (const name of names) {
    if (all.some(run => run.case === name)) continue
    const near = closest(name, all.map(run => run.case))
    throw new UsageError(`--only: no case called ${name}; did you mean ${near}? --list has all`)
  }
  for (const name of forms) {
    if (['leaky', 'fixed', 'healthy'].includes(name)) continue
    throw new UsageError(`--form: expected leaky, fixed or healthy, got ${name}`)
  }
  const known = new Set(readRows().filter(({ failed }) => failed === null).map(keyOf))
  return all.filter(run => names.includes(run.case) && forms.includes(run.form) &&
    !(missing && known.has(keyOf(run))))
}

const commit = () =>
  execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: __dirname, encoding: 'utf8' }).trim()

/**
 * @param {Run} run
 * @param {number} [seconds]
 * @returns {Promise<Row>}
 */
async function makeRow (run, seconds = run.seconds) {
  const { case: name, form, node, label, packages, limitMib } = run
  const base = {
    case: name,
    form,
    at: new Date().toISOString(),
    memwatch: commit(),
    node,
    label,
    packages,
    limitMib
  }
  try {
    const watched = await runCase(run, { seconds })
    return { ...base, ...score(run, watched) }
  } catch (error) {
    const failed = /** @type {Error} */ (error).message
    return {
      ...base,
      seconds: 0,
      headline: { state: 'undecided', diagnosis: null, severity: null, text: '' },
      right: false,
      suspectedSeconds: null,
      confirmedSeconds: null,
      suspects: [],
      suspect: null,
      confirmed: [],
      suspected: [],
      ended: null,
      failed
    }
  }
}

/** @param {Row} row */
function describe ({ case: name, form, headline, suspectedSeconds, confirmedSeconds, ...row }) {
  if (row.failed !== null) return `${name} ${form}: FAILED: ${row.failed}`
  const seconds = [
    suspectedSeconds !== null && `suspected at ${suspectedSeconds} s`,
    confirmedSeconds !== null && `confirmed at ${confirmedSeconds} s`,
    row.suspect !== null && form === 'leaky' && `suspect ${row.suspect}`,
    row.ended !== null && `ended: ${row.ended}`
  ].filter(Boolean)
  const finding = `${headline.state} ${headline.diagnosis ?? ''}`.trim()
  return `${name} ${form}: ${row.right ? 'right' : 'WRONG'}: ${[finding, ...seconds].join(', ')}`
}

async function main () {
  const options = readOptions()
  if (options.help) return console.log(HELP)
  const runs = choose(options)
  if (options.list) {
    for (const run of runs) console.log(`${run.case} ${run.form}: ${run.of.title} (${run.label})`)
    return
  }
  const waiting = [...runs]
  const startedAt = Date.now()
  let done = 0
  async function lane () {
    for (let run = waiting.shift(); run; run = waiting.shift()) {
      const row = await makeRow(run, options.seconds)
      keep(row)
      const minutes = ((Date.now() - startedAt) / 60_000).toFixed(0)
      console.log(`${++done}/${runs.length} after ${minutes} min  ${describe(row)}`)
      const isHarmless = row.failed === null && (row.form === 'leaky' || row.right)
      if (!isHarmless) process.exitCode = 1
    }
  }
  await Promise.all(Array.from({ length: options.lanes }, lane))
  if (options.write) fs.writeFileSync(PAGE, realworldPage(allRuns(), readRows()))
}

main().catch(error => {
  if (!(error instanceof UsageError)) throw error
  console.error(`bench:realworld: ${error.message}`)
  process.exitCode = 2
})
