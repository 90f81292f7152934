'use strict'

/**
 * `npm run bench:accuracy`: how often memwatch is right. Every lab app runs live, in a memory group as its row says, on each
 * Node given; each problem again in its fixed form. Prints a line per run, and with --write docs/accuracy.md: the confusion
 * matrix, seconds to confirm, and what each fix was predicted to bring against what it brought.
 *
 *   npm run bench:accuracy -- --nodes /path/to/node20:/path/to/node24 --write
 *   npm run bench:accuracy -- --apps js-heap-leak,healthy-idle --record-to /tmp/recordings
 *
 * An app takes about a minute, its fixed form another; all of them on one Node some forty minutes with two lanes. Results
 * that are in --out are not run again: an interrupted bench goes on where it was.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { apps } = require('../lab')
const { accuracyPage } = require('./accuracy-page')

const MEMWATCH = path.join(__dirname, '../exporter/cli/memwatch.js')
const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    apps: { type: 'string', default: apps.map(({ id }) => id).join(',') },
    lanes: { type: 'string', default: '2' },
    out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-accuracy') },
    fixed: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false }
  }
})
fs.mkdirSync(given.out, { recursive: true })

/**
 * @typedef {object} Result
 * @property {string} node major version
 * @property {string} app
 * @property {'broken' | 'fixed'} form
 * @property {string | null} expected diagnosis
 * @property {string | null} found primary of the process: of the main thread, else of a worker
 * @property {number | null} confirmedAfterSeconds
 * @property {string[]} others what else was suspected or confirmed
 * @property {string[]} opportunities confirmed
 * @property {object | null} fix the first one
 * @property {object | null} summary what the app said of itself; null when it died
 */

/** @param {string} node @param {import('../lab').LabApp} app @param {'broken' | 'fixed'} form @returns {Promise<Result>} */
async function run (node, app, form) {
  const name = `${majorOf(node)}-${app.id}-${form}`
  const resultFile = path.join(given.out, `${name}.result.json`)
  if (fs.existsSync(resultFile)) return JSON.parse(fs.readFileSync(resultFile, 'utf8'))
  const reportFile = path.join(given.out, `${name}.report.json`)
  const fix = form === 'fixed' && app.fixedBy === 'fix' ? (await run(node, app, 'broken')).fix : null
  const { flag, env } = /** @type {any} */ (fix)?.change ?? {}
  const child = spawn(process.execPath, [
    MEMWATCH, 'simulate', app.id, '--node', node, '--report', reportFile, '--record', path.join(given.out, `${name}.ndjson.gz`),
    ...form === 'fixed' && app.fixedBy === 'code' ? ['--fixed'] : [],
    ...(flag ? flag.split(' ').map(option => `--node-option=${option}`) : [])
  ], { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, NODE_OPTIONS: '', ...(flag ? {} : env) } })
  let stdout = ''
  child.stdout.on('data', chunk => { stdout += chunk })
  await once(child, 'close')
  const { targets } = JSON.parse(fs.readFileSync(reportFile, 'utf8'))
  const ill = targets.find(({ thread, primary }) => thread === 'main' && primary) ?? targets.find(({ primary }) => primary)
  const main = ill ?? targets.find(({ thread }) => thread === 'main')
  const verdicts = main?.verdicts ?? []
  const summary = stdout.split('\n').find(line => line.startsWith('{"lab"'))
  /** @type {Result} */
  const result = {
    node: majorOf(node),
    app: app.id,
    form,
    expected: form === 'broken' ? app.diagnosis : null,
    found: main ? main.primary?.diagnosis ?? null : 'nothing reported',
    confirmedAfterSeconds: main?.primary?.confirmedAfterSeconds ?? null,
    others: targets.flatMap(target => target.verdicts).filter(({ state, opportunity }) => !opportunity && ['suspected', 'confirmed'].includes(state))
      .filter(verdict => verdict.diagnosis !== main?.primary?.diagnosis).map(({ diagnosis, state }) => `${diagnosis} ${state}`),
    opportunities: verdicts.filter(({ state, opportunity }) => opportunity && state === 'confirmed').map(({ diagnosis }) => diagnosis),
    fix: main?.primary?.fix[0] ?? null,
    summary: summary ? JSON.parse(summary) : null
  }
  fs.writeFileSync(resultFile, JSON.stringify(result, null, 2))
  return result
}

/** @param {Result} result */
function isRight ({ app, form, expected, found, opportunities }) {
  const { opportunity } = apps.find(({ id }) => id === app) ?? {}
  return found === expected && (!opportunity || form !== 'broken' || opportunities.includes(opportunity))
}

/** @param {string} node */
const majorOf = node => (versions[node] ??= execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], { encoding: 'utf8' }).trim())
/** @type {Record<string, string>} */
const versions = {}

async function main () {
  const wanted = given.apps.split(',').map(id => {
    const app = apps.find(app => app.id === id)
    if (!app) throw new Error(`--apps: no app called ${id}`)
    return app
  })
  const waiting = given.nodes.split(':').flatMap(node => wanted.map(app => ({ node, app })))
  /** @type {Result[]} */
  const results = []
  const total = waiting.length
  async function lane () {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { node, app } = next
      const forms = /** @type {const} */ (given.fixed && app.fixedBy !== 'none' ? ['broken', 'fixed'] : ['broken'])
      for (const form of forms) {
        const result = await run(node, app, form)
        results.push(result)
        console.log([`${total - waiting.length}/${total}`, result.node, app.id, form, `expected ${result.expected ?? '–'}`, `found ${result.found ?? '–'}`,
          result.confirmedAfterSeconds?.toFixed(0) ?? '', isRight(result) ? 'right' : 'WRONG', result.others.join(', ') || '–', result.opportunities.join(', ')].join('\t'))
      }
    }
  }
  await Promise.all(Array.from({ length: Number(given.lanes) }, lane))
  const wrong = results.filter(result => !isRight(result)).length
  console.log(`${results.length - wrong} of ${results.length} right`)
  if (given.write) fs.writeFileSync(path.join(__dirname, '../docs/accuracy.md'), accuracyPage(results, isRight))
  process.exitCode = wrong > 0 ? 1 : 0
}

main()
