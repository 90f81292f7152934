'use strict'

/**
 * `npm run bench:accuracy` measures the share of right diagnoses. Every lab app runs live on each
 * given Node, in the memory cgroup of its row. With --fixed each problem runs again in its fixed
 * form: repaired in its code, or with the printed fix. Prints a line per run. With --write it
 * writes docs/accuracy.md: the confusion matrix, the seconds to confirm, and predicted and measured
 * effects of each fix.
 *
 *   npm run bench:accuracy -- --nodes /path/to/node20:/path/to/node24 --fixed --write
 *   npm run bench:accuracy -- --apps js-heap-leak,healthy-idle
 *   npm run bench:accuracy -- --cpus 0.25 each app with a quarter of a core, for longer: the same
 *                                         must be found
 *
 * Each app and form takes about a minute. With two lanes a Node takes some forty minutes, and half
 * as much again for the fixed forms. Results and recordings in --out are not made again, so an
 * interrupted bench continues. --recorded runs nothing and judges the recordings there.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { apps } = require('../lab')
const { replayFile } = require('../cli/sources/replay-file')
const { findCase } = require('../engine/verdicts/case')
const { primaryOf } = require('../engine/verdicts/urgency')
const { readPredicted } = require('../engine/verdicts/outcome')
const { QUOTA, verdictsOf } = require('../scripts/baseline')
const { accuracyPage, isRight } = require('./accuracy-page')
const { parseOptions } = require('./options')
const { repairOf } = require('./repair')

const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  apps: { type: 'string', default: apps.map(({ id }) => id).join(',') },
  cpus: { type: 'string' },
  lanes: { type: 'string', default: '2' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-accuracy') },
  recorded: { type: 'boolean', default: false },
  fixed: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false }
})
fs.mkdirSync(given.out, { recursive: true })

/** @typedef {import('./accuracy-page').Result} Result */
/**
 * @typedef {{ name: string, node: string, app: import('../lab').LabApp, form: 'broken' | 'fixed' }}
 *   Run
 */

/**
 * @param {string} node
 * @param {import('../lab').LabApp} app
 * @param {'broken' | 'fixed'} form
 * @returns {Run}
 */
const runOf = (node, app, form) => ({
  name: `${majorOf(node)}-${app.id}-${form}${given.cpus === undefined ? '' : `@${given.cpus}`}`,
  node,
  app,
  form
})
/** @param {Run} run */
const recordingOf = ({ name }) => path.join(given.out, `${name}.ndjson.gz`)

/** @param {Run} run */
const summaryOf = ({ name }) => path.join(given.out, `${name}.summary.json`)

/**
 * Runs the app live, unless a recording exists, and judges the recording by the current code, which
 * gives the same result as live.
 * @param {Run} run
 * @returns {Promise<Result>}
 */
async function resultOf (run) {
  const { node, app, form } = run
  const broken = form === 'fixed' ? await resultOf(runOf(node, app, 'broken')) : undefined
  if (!fs.existsSync(summaryOf(run))) {
    fs.writeFileSync(summaryOf(run), JSON.stringify(await live(run, broken?.fix ?? null)))
  }
  const isSlowPod = given.cpus !== undefined && app.diagnosis !== QUOTA
  /** Last confirmed finding that did not last. @type {string | null} */
  let withdrawn = null
  const { targets } = await replayFile(recordingOf(run), {
    onVerdict: (_target, { diagnosis, state, opportunity }) => {
      if (state === 'confirmed' && !opportunity && (!isSlowPod || diagnosis !== QUOTA)) {
        withdrawn = diagnosis
      }
    }
  })
  const primaryOn = target => primaryOf(verdictsOf(target, isSlowPod))
  const ill = targets.find(target => target.thread === 'main' && primaryOn(target)) ??
    targets.find(primaryOn)
  const judged =
    ill ?? targets.find(({ thread }) => thread === (broken?.thread ?? 'main')) ?? targets[0]
  const primary = judged ? primaryOn(judged) : null
  const found = targets.flatMap(target => findCase(target).verdicts)
    .filter(({ state }) => state === 'suspected' || state === 'confirmed')
  const fix = primary?.fix[0] ?? null
  const isSuspected = app.isOnlySuspected && form === 'broken' &&
    found.some(({ diagnosis }) => diagnosis === app.diagnosis)
  return {
    node: majorOf(node),
    app: app.id,
    form,
    thread: judged?.thread ?? 'main',
    expected: form === 'broken' ? app.diagnosis : null,
    // V8 may return the memory of an idle app later, and a healthy app must never have a finding.
    found: judged
      ? (primary?.diagnosis ?? withdrawn ?? (isSuspected ? app.diagnosis : null))
      : 'nothing reported',
    confirmedAfterSeconds: primary?.confirmedAfterSeconds ?? null,
    others: found
      .filter(({ diagnosis, opportunity }) => !opportunity && diagnosis !== primary?.diagnosis)
      .map(({ diagnosis, state }) => `${diagnosis} ${state}`),
    opportunities: found
      .filter(({ opportunity }) => opportunity)
      .map(({ diagnosis }) => diagnosis),
    mayStarve: Number(given.cpus ?? Infinity) <= (app.starvesAtCores ?? 0),
    had: form === 'fixed' ? app.diagnosis : null,
    fix,
    measured: readPredicted(
      targets.find(({ thread }) => thread === (broken?.thread ?? judged?.thread)) ?? judged,
      (broken?.fix ?? fix)?.predicted ?? []
    )
  }
}

/**
 * @param {Run} run
 * @param {Result['fix']} fix printed fix
 * @returns {Promise<object>} summary that the app printed about itself
 */
async function live (run, fix) {
  const { node, app, form } = run
  const repair = form === 'fixed' ? repairOf(app, fix?.change ?? {}) : { args: [], env: {} }
  const child = spawn(
    process.execPath,
    [
      MEMWATCH,
      'simulate',
      app.id,
      '--node',
      node,
      '--record',
      recordingOf(run),
      ...(given.cpus === undefined
        ? []
        : ['--cpus', given.cpus, '--for', String(Math.round(stretch(given.cpus) * app.seconds))]),
      ...repair.args
    ],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, NODE_OPTIONS: '', ...repair.env }
    }
  )
  let stdout = ''
  child.stdout.on('data', chunk => { stdout += chunk })
  await once(child, 'close')
  return JSON.parse(stdout.split('\n').find(line => line.startsWith('{"lab"')) ?? '{"died":true}')
}

/**
 * Approximate number of cores that a lab app uses, and the longest run as a multiple of its
 * seconds.
 */
const APP_CORES = 0.5
const MOST_STRETCH = 4

/**
 * Multiple by which a run is longer: a slow pod needs more time for the same work, and so for the
 * same leak.
 * @param {string} cpus
 * @returns {number} multiple of the seconds of a run
 */
const stretch = cpus => Math.min(MOST_STRETCH, Math.max(1, APP_CORES / Number(cpus)))

/** @type {Record<string, string>} */
const majors = {}
/** @param {string} node */
const majorOf = node =>
  (majors[node] ??= execFileSync(node, ['-p', 'process.versions.node.split(".")[0]'], {
    encoding: 'utf8'
  }).trim())

async function main () {
  const wanted = given.apps.split(',').map(id => {
    const app = apps.find(app => app.id === id)
    if (!app) throw new Error(`--apps: no app called ${id}`)
    return app
  })
  const waiting = given.nodes
    .split(':')
    .flatMap(node =>
      wanted
        .filter(
          ({ fromNode = 0, toNode = Infinity }) =>
            Number(majorOf(node)) >= fromNode && Number(majorOf(node)) <= toNode
        )
        .map(app => ({ node, app }))
    )
  /** @type {Result[]} */
  const results = []
  const total = waiting.length
  async function lane () {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { node, app } = next
      /** @type {('broken' | 'fixed')[]} */
      const forms = given.fixed && app.fixedBy !== 'none' ? ['broken', 'fixed'] : ['broken']
      for (const form of forms) {
        if (given.recorded && !fs.existsSync(summaryOf(runOf(node, app, form)))) continue
        const result = await resultOf(runOf(node, app, form))
        results.push(result)
        console.log(
          [
            `${total - waiting.length}/${total}`,
            result.node,
            app.id,
            form,
            `expected ${result.expected ?? '–'}`,
            `found ${result.found ?? '–'}`,
            result.confirmedAfterSeconds?.toFixed(0) ?? '',
            isRight(result) ? 'right' : 'WRONG',
            result.mayStarve ? 'truly starves with so little CPU' : '',
            result.others.join(', ') || '–',
            result.opportunities.join(', ')
          ].join('\t')
        )
      }
    }
  }
  await Promise.all(Array.from({ length: Number(given.lanes) }, lane))
  const wrong = results.filter(result => !isRight(result)).length
  console.log(`${results.length - wrong} of ${results.length} right`)
  if (given.write) {
    fs.writeFileSync(path.join(__dirname, '../docs/accuracy.md'), accuracyPage(results))
  }
  process.exitCode = wrong > 0 ? 1 : 0
}

main()
