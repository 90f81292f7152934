'use strict'

/**
 * `npm run bench:published` measures published results of fixes again, by `memwatch try` and
 * `memwatch compare` on similar lab apps. Each kind of run repeats several times, in turns, in a
 * memory cgroup like the published container. With --write it writes both figures side by side into
 * docs/published.md.
 *
 *   npm run bench:published -- --nodes /path/to/node20:/path/to/node24 --write
 *   npm run bench:published -- --cases buffers --repeat 5
 *
 * Some fifteen minutes a Node in one lane. Results in --out are not measured again, so an
 * interrupted bench continues; --recorded runs nothing and compares these results.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { findApp } = require('../lab')
const { compare } = require('../cli/comparison/compare')
const { measure, recordingsAt } = require('../cli/comparison/measure')
const { renderComparison } = require('../cli/comparison/render')
const { terminalText } = require('../cli/text/terminal')
const { parseOptions } = require('./options')
const { cases } = require('./published-cases')
const { publishedPage } = require('./published-page')

const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  cases: { type: 'string', default: cases.map(({ id }) => id).join(',') },
  repeat: { type: 'string', default: '3' },
  lanes: { type: 'string', default: '1' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-published') },
  recorded: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false }
})
const repeat = Number(given.repeat)

/** @typedef {import('./published-cases').Case} Case */
/** @typedef {import('./published-cases').Variant} Variant */
/** @typedef {{ case: Case, node: string, major: string, folder: string }} Job */

/** @param {string} node */
const majorOf = node =>
  execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }).trim()
/** @param {string} side folder with the runs */
const runsIn = side => fs.existsSync(side) ? recordingsAt(side).length : 0

/** Performs all missing runs of a case on one Node. @param {Job} job */
async function run ({ case: { app: id, memoryMb, seconds, byTry, variants }, node, folder }) {
  const app = findApp(id)
  if (!app) throw new Error(`no app ${id}`)
  const kept = path.join(folder, 'try')
  if (byTry && runsIn(path.join(kept, 'after')) < repeat) {
    fs.rmSync(kept, { recursive: true, force: true })
    await memwatch(
      [
        'try',
        '--json',
        '--memory',
        `${memoryMb}Mi`,
        '--for',
        String(seconds),
        '--repeat',
        String(repeat),
        '--diagnosis',
        String(app.diagnosis),
        '--keep',
        kept,
        '--',
        node,
        app.script
      ],
      path.join(folder, 'try.json')
    )
  }
  for (let number = 1; number <= repeat; number++) {
    for (const { id: variant, args = [], env = {} } of variants) {
      const file = path.join(folder, variant, `${number}.ndjson.gz`)
      if (fs.existsSync(`${file}.out`)) continue
      fs.mkdirSync(path.dirname(file), { recursive: true })
      await memwatch(
        [
          'simulate',
          id,
          '--node',
          node,
          '--memory',
          String(memoryMb),
          '--for',
          String(seconds),
          '--record',
          file,
          ...args
        ],
        `${file}.part`,
        env
      )
      fs.renameSync(`${file}.part`, `${file}.out`)
    }
  }
}

/**
 * @param {string[]} args
 * @param {string} stdout descriptor of a file
 * @param {Record<string, string>} [env]
 */
async function memwatch (args, stdout, env = {}) {
  const out = fs.openSync(stdout, 'w')
  const child = spawn(process.execPath, [MEMWATCH, ...args], {
    stdio: ['ignore', out, 'ignore'],
    env: { ...process.env, NODE_OPTIONS: '', ...env }
  })
  await once(child, 'close')
  fs.closeSync(out)
}

/**
 * Reads the summary that the app printed.
 * @param {string} recording
 * @returns {import('../engine/recording/format').Work | undefined}
 */
function workOf (recording) {
  if (!fs.existsSync(`${recording}.out`)) return undefined
  const summary = fs
    .readFileSync(`${recording}.out`, 'utf8')
    .split('\n')
    .find(line => line.startsWith('{"lab"'))
  const { requests } = JSON.parse(summary ?? '{}')
  return requests === undefined ? undefined : { requests }
}

/** @param {string} side */
const measured = async side =>
  Promise.all(recordingsAt(side).map(file => measure(file, { work: workOf(file) })))

/**
 * Compares each variant with its runs before.
 * @param {Job} job
 * @returns {Promise<import('./published-page').Result[]>}
 */
async function results ({ case: published, major, folder }) {
  const pairs = [
    ...(published.byTry
      ? [{ variant: published.byTry, before: 'try/before', after: 'try/after' }]
      : []),
    ...published.variants
      .flatMap(variant =>
        variant.against ? [{ variant, before: variant.against, after: variant.id }] : []
      )
  ]
  return Promise.all(
    pairs
      .filter(({ after }) => runsIn(path.join(folder, after)) > 0)
      .map(async ({ variant, before, after }) => ({
        published,
        variant,
        node: major,
        comparison: compare(
          await measured(path.join(folder, before)),
          await measured(path.join(folder, after))
        )
      }))
  )
}

async function main () {
  const jobs = given.nodes.split(':').flatMap(node => {
    const major = majorOf(node)
    return cases
      .filter(
        ({ id, fromNode }) => given.cases.split(',').includes(id) && Number(major) >= fromNode
      )
      .map(published => ({
        case: published,
        node,
        major,
        folder: path.join(given.out, `${major}-${published.id}`)
      }))
  })
  const waiting = [...jobs]
  const startedAt = Date.now()
  let done = 0
  async function lane () {
    for (let job = waiting.shift(); job; job = waiting.shift()) {
      fs.mkdirSync(job.folder, { recursive: true })
      if (!given.recorded) await run(job)
      for (const { variant, node, comparison } of await results(job)) {
        console.log(
          terminalText([
            '',
            `Node ${node}, ${job.case.title}: ${variant.title}`,
            ...renderComparison(comparison)
          ])
        )
      }
      const minutes = (Date.now() - startedAt) / 60_000
      console.log(
        `${++done}/${jobs.length} after ${minutes.toFixed(0)} min, about ` +
          `${((minutes / done) * (jobs.length - done)).toFixed(0)} min to go`
      )
    }
  }
  await Promise.all(Array.from({ length: Number(given.lanes) }, lane))
  const all = (await Promise.all(jobs.map(results))).flat()
  if (given.write) {
    fs.writeFileSync(path.join(__dirname, '../docs/published.md'), publishedPage(all))
  }
}

main()
