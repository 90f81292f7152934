'use strict'

/**
 * `npm run bench:follow-up` measures the share of follow-ups that end correctly. One exporter
 * watches a fleet of a lab app, each process in a memory cgroup of its own and under another load.
 * When the finding is confirmed, each process restarts with the fix and under another load again.
 * Prints a line per process. Then it makes a change fail to arrive, in each known way. With --write
 * it writes the figures into docs/follow-up.md.
 *
 *   npm run bench:follow-up -- --apps semi-space-starvation,resource-leak --processes 5
 *   npm run bench:follow-up -- --lost         only what does not arrive
 *
 * It takes two to twenty minutes for each app, and needs root for the memory cgroups. An app whose
 * problem does not exist on the version of --node is left out. Results in --out are not made again,
 * so an interrupted bench continues.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { apps } = require('../lab')
const { findCase } = require('../engine/verdicts/case')
const { Exporter } = require('../exporter/exporter')
const { createMemoryGroup } = require('../exporter/process/memory-group')
const { parseOptions } = require('./options')

const AGENT = path.join(__dirname, '../agent/index.js')
const PAGE = path.join(__dirname, '../docs/follow-up.md')
const MARK = '<!-- figures: npm run bench:follow-up -- --write -->'
/**
 * Loads of the processes before the restart, as multiples of the app's own. No process has the same
 * load after its restart.
 */
const RATES_BEFORE = [0.7, 1, 0.8, 1.1, 0.9]
const RATES_AFTER = [1, 0.8, 1.1, 0.7, 1.2]
/** Time limits, as multiples of the time until the problem of an app is visible. */
const CONFIRM_WITHIN = 4
const END_WITHIN = 12
/** An effect that is smaller than predicted is reported after ten minutes of readings. */
const END_LEAST_SECONDS = 900
const LOST_WITHIN_MS = 60_000

const given = parseOptions(__filename, {
  apps: {
    type: 'string',
    default: apps.filter(({ diagnosis, fixedBy }) => diagnosis && fixedBy !== 'none')
      .map(({ id }) => id).join(',')
  },
  node: { type: 'string', default: process.execPath },
  processes: { type: 'string', default: '5' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-follow-up') },
  lost: { type: 'boolean', default: false },
  write: { type: 'boolean', default: false }
})
fs.mkdirSync(given.out, { recursive: true })

/**
 * @typedef {{ app: string, process: number, way: string, expected: string, ending: string, text:
 *   string }} Result
 * @typedef {{ args?: string[], nodeArgs?: string[], env?: NodeJS.ProcessEnv, limitBytes?: number,
 *   supervised?: boolean }} Form
 */

/** A fleet of one lab app, under one exporter. */
class Fleet {
  /** @type {{ child: import('node:child_process').ChildProcess, remove: () => Promise<unknown> }[]} */
  #running = []
  /** @type {import('../engine/verdicts/follow-up').FollowUp[]} */
  ended = []

  /** @param {import('../lab').LabApp} app */
  constructor (app) {
    this.app = app
    this.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-fleet-'))
    this.exporter = new Exporter({
      listen: { host: '127.0.0.1', port: 0 },
      socket: { path: path.join(this.folder, 'exporter.sock') },
      compat: false,
      maxTargets: 100,
      logLevel: 'silent'
    })
    this.exporter.on('followed', (_, followUp) => this.ended.push(followUp))
  }

  /**
   * @param {number} number number of the process
   * @param {number} rate
   * @param {Form} [form]
   */
  async start (number, rate, { args = [], nodeArgs = [], env = {}, limitBytes, supervised } = {}) {
    const group = createMemoryGroup({
      limitBytes: limitBytes ?? this.app.memoryLimitBytes,
      onParent: this.app.limitOnParent,
      name: `fleet-${number}`
    })
    const words = [given.node, ...(this.app.nodeArgs ?? []), ...nodeArgs, '-r', AGENT,
      this.app.script, '--rate', String(rate), ...args]
    // A supervisor starts the app with a clean environment, and passes signals on. The trap is in
    // single quotes, because in double quotes the child's pid would be inserted before the child
    // exists.
    const command = supervised
      ? ['sh', '-c', 'env -u NODE_OPTIONS -u LD_PRELOAD "$@" & child=$!; ' +
          "trap 'kill $child' TERM; wait $child; wait $child", 'sh', ...words]
      : words
    const wrapped = group.wrap(command[0], command.slice(1))
    const child = spawn(wrapped.command, wrapped.args, {
      stdio: 'ignore',
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_NAME: this.app.id,
        MEMWATCH_SOCKET: path.join(this.folder, 'exporter.sock'),
        ...env
      }
    })
    this.#running[number] = { child, remove: () => group.remove() }
    await once(child, 'spawn')
  }

  /** @param {number} number */
  async stop (number) {
    const { child, remove } = this.#running[number]
    if (child.exitCode === null && child.signalCode === null) {
      child.kill()
      await once(child, 'exit')
    }
    await remove()
  }

  /** The confirmed finding of the app, once a process has it. */
  get finding () {
    return this.exporter.targets.flatMap(target => findCase(target).verdicts)
      .find(({ diagnosis, state }) => diagnosis === this.app.diagnosis && state === 'confirmed')
  }

  /** Processes with the confirmed finding. */
  get found () {
    return this.exporter.targets.filter(target => findCase(target).verdicts
      .some(({ diagnosis, state }) => diagnosis === this.app.diagnosis && state === 'confirmed'))
      .length
  }

  async close () {
    await Promise.all(this.#running.map((_, number) => this.stop(number)))
    await this.exporter.stop()
    fs.rmSync(this.folder, { recursive: true })
  }
}

/**
 * @param {() => boolean} isOver
 * @param {number} withinMs
 */
async function until (isOver, withinMs) {
  const end = Date.now() + withinMs
  while (!isOver() && Date.now() < end) await wait(500)
  return isOver()
}

/**
 * The form in which a fix is applied.
 * @param {import('../lab').LabApp} app
 * @param {import('../engine/diagnoses/define-diagnosis').Change} change
 * @returns {Form}
 */
function formOf (app, { flag, env, memoryLimitBytes }) {
  if (app.fixedBy === 'code') return { args: ['--fixed'] }
  if (flag) return { nodeArgs: flag.split(' ') }
  return env ? { env } : { limitBytes: memoryLimitBytes }
}

/**
 * @param {import('../lab').LabApp} app
 * @returns {Promise<Result[]>}
 */
async function followFixes (app) {
  const count = Number(given.processes)
  const fleet = new Fleet(app)
  await fleet.exporter.start()
  try {
    for (let i = 0; i < count; i++) await fleet.start(i, RATES_BEFORE[i % RATES_BEFORE.length])
    await until(() => fleet.found === count, CONFIRM_WITHIN * app.seconds * 1000)
    const [fix] = fleet.finding?.fix ?? []
    if (!fix) {
      const expected = 'fixed_as_predicted'
      return [{ app: app.id, process: 0, way: 'fixed', expected, ending: 'not confirmed', text: '' }]
    }
    // Wait for a minute of readings: real processes also run for a while before somebody reads the
    // advice.
    await wait(60_000)
    const form = formOf(app, fix.change)
    for (let i = 0; i < count; i++) {
      await fleet.stop(i)
      await fleet.start(i, RATES_AFTER[i % RATES_AFTER.length], form)
    }
    const ends = () => fleet.ended.filter(({ diagnosis }) => diagnosis === app.diagnosis)
    const endSeconds = Math.max(END_WITHIN * app.seconds, END_LEAST_SECONDS)
    await until(() => ends().length === count, 1000 * endSeconds)
    const open = fleet.exporter.targets.flatMap(target => [...findCase(target).followUps.values()])
      .filter(({ diagnosis, ending }) => diagnosis === app.diagnosis && ending === null)
    const seen = [...ends(), ...open]
    return Array.from({ length: count }, (_, i) => ({
      app: app.id,
      process: i,
      way: 'fixed',
      expected: 'fixed_as_predicted',
      ending: seen[i]?.ending ?? 'none',
      text: seen[i]?.text ?? 'No follow-up: it was not recognised, or its work did not suffice.'
    }))
  } finally {
    await fleet.close()
  }
}

/**
 * Ways in which a change does not arrive.
 * @type {Record<string, { app: string, form: (change:
 *   import('../engine/diagnoses/define-diagnosis').Change) => Form }>}
 */
const WAYS = {
  'the command line overrides NODE_OPTIONS': {
    app: 'semi-space-starvation',
    form: ({ flag }) => ({ env: { NODE_OPTIONS: flag }, nodeArgs: ['--max-semi-space-size=2'] })
  },
  'a later option overrides it': {
    app: 'semi-space-starvation',
    form: ({ flag }) => ({ env: { NODE_OPTIONS: `${flag} --max-semi-space-size=2` } })
  },
  'its value is lower': {
    app: 'semi-space-starvation',
    form: () => ({ env: { NODE_OPTIONS: '--max-semi-space-size=2' } })
  },
  'a supervisor drops NODE_OPTIONS': {
    app: 'semi-space-starvation',
    form: ({ flag }) => ({ env: { NODE_OPTIONS: flag }, supervised: true })
  },
  'the image lacks the library': {
    app: 'allocator-fragmentation',
    form: ({ env = {} }) => ({ env: { ...env, LD_PRELOAD: '/none/libjemalloc.so.2' } })
  },
  'a supervisor drops LD_PRELOAD': {
    app: 'allocator-fragmentation',
    form: ({ env = {} }) => ({ env: { LD_PRELOAD: env.LD_PRELOAD }, supervised: true })
  },
  'only its settings come': {
    app: 'allocator-fragmentation',
    form: ({ env = {} }) => ({ env: { MALLOC_CONF: env.MALLOC_CONF } })
  },
  'the limit is raised too little': {
    app: 'container-limit-mismatch-jobs',
    form: ({ memoryLimitBytes = 0 }) => ({ limitBytes: Math.round(0.9 * memoryLimitBytes) })
  },
  'a restart without any change': { app: 'semi-space-starvation', form: () => ({}) }
}

/**
 * @param {string} id of an app
 * @returns {Promise<Result[]>}
 */
async function loseFixes (id) {
  const app = appOf(id)
  const fleet = new Fleet(app)
  await fleet.exporter.start()
  /** @type {Result[]} */
  const results = []
  try {
    await fleet.start(0, 1)
    await until(() => fleet.found === 1, CONFIRM_WITHIN * app.seconds * 1000)
    const change = fleet.finding?.fix[0]?.change
    for (const [way, { app: of, form }] of Object.entries(WAYS)) {
      if (of !== id) continue
      const expected = form({}).env || form({}).limitBytes !== undefined ? 'did_not_arrive' : 'none'
      const before = fleet.ended.length
      if (change) {
        await fleet.start(1, 1, form(change))
        const ms = expected === 'none' ? LOST_WITHIN_MS / 2 : LOST_WITHIN_MS
        await until(() => fleet.ended.length > before, ms)
        await fleet.stop(1)
      }
      const [ended] = fleet.ended.slice(before)
      const ending = change ? ended?.ending ?? 'none' : 'not confirmed'
      results.push({ app: id, process: 1, way, expected, ending, text: ended?.text ?? '' })
    }
    return results
  } finally {
    await fleet.close()
  }
}

/** @returns {string} version of --node, such as 24.1.0 */
const nodeVersion = () =>
  execFileSync(given.node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()

/** @param {string} id */
function appOf (id) {
  const app = apps.find(app => app.id === id)
  if (!app) throw new Error(`--apps: no app called ${id}`)
  return app
}

/**
 * Results of an earlier run of this bench, or new ones.
 * @param {string} name
 * @param {() => Promise<Result[]>} make
 */
async function kept (name, make) {
  const file = path.join(given.out, `${name}.json`)
  if (!fs.existsSync(file)) fs.writeFileSync(file, JSON.stringify(await make()))
  /** @type {Result[]} */
  const results = JSON.parse(fs.readFileSync(file, 'utf8'))
  for (const { app, process: number, way, ending, expected, text } of results) {
    console.log([app, number, way, ending === expected ? 'right' : 'WRONG', ending, text].join('\t'))
  }
  return results
}

/** @param {Result[]} results */
function figuresOf (results) {
  const right = (/** @type {Result[]} */ some) =>
    `${some.filter(({ ending, expected }) => ending === expected).length} of ${some.length}`
  const fixed = results.filter(({ way }) => way === 'fixed')
  const lost = results.filter(({ way }) => way !== 'fixed')
  const byApp = [...new Set(fixed.map(({ app }) => app))]
  const miss = (/** @type {Result[]} */ some) => [...new Set(some
    .filter(({ ending, expected }) => ending !== expected)
    .map(({ ending, text }) => text || ending.replaceAll('_', ' ')))].join(' ') || '–'
  return [
    `Node ${nodeVersion()}, ${os.cpus().length} cores, ${given.processes} processes: ` +
      `${right(fixed)} fixes and ${right(lost)} other restarts ended right.`,
    '',
    '| app, restarted with its fix | right endings | misses |',
    '|---|---|---|',
    ...byApp.map(app => {
      const some = fixed.filter(result => result.app === app)
      return `| ${app} | ${right(some)} | ${miss(some)} |`
    }),
    '',
    '| restart | ending | text |',
    '|---|---|---|',
    ...lost.map(({ way, ending, text }) =>
      `| ${way} | ${ending.replaceAll('_', ' ')} | ${text || '–'} |`)
  ].join('\n')
}

async function main () {
  const results = []
  if (!given.lost) {
    const major = parseInt(nodeVersion())
    for (const id of given.apps.split(',')) {
      const { fromNode = 0, toNode = Infinity } = appOf(id)
      if (major < fromNode || major > toNode) continue
      results.push(...await kept(`fixed-${id}`, () => followFixes(appOf(id))))
    }
  }
  for (const id of new Set(Object.values(WAYS).map(({ app }) => app))) {
    results.push(...await kept(`lost-${id}`, () => loseFixes(id)))
  }
  const right = results.filter(({ ending, expected }) => ending === expected).length
  console.log(`${right} of ${results.length} right`)
  if (given.write) {
    const [before] = fs.readFileSync(PAGE, 'utf8').split(MARK)
    fs.writeFileSync(PAGE, `${before}${MARK}\n\n${figuresOf(results)}\n`)
  }
  process.exitCode = right < results.length ? 1 : 0
}

main()
