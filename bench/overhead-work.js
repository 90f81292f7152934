'use strict'

/**
 * `npm run bench:overhead-work`: CPU of a process for the same work with nothing, with V8's GC
 * hooks alone, with memwatch by hooks and by the observer, an empty observer of GCs, prom-client,
 * OpenTelemetry and dd-trace, at 10 to 5,000 GCs in a second of work. Measurements of throughput
 * cannot show such small differences.
 *
 * Two processes that do the same work differ by one or two percent, and by more than ten at 5,000
 * GCs a second, so the smallest costs are measured within one process, in slices of 20 ms. The
 * hooks are off in two slices of four. The callbacks of the agent's timers are measured one by one,
 * because they take less than slices differ. "memwatch" is the sum of its hooks and callbacks.
 *
 * Objects that an observer leaves behind also cost later, so the other tools, and memwatch once
 * more, are measured by pairs of processes with and without them, whose slices of a second take
 * turns. Rounds go on, with new processes, until the quartiles of a variant's median are within
 * --spread percent of it, or up to --rounds.
 *
 *   --nodes A:B     Nodes, this one
 *   --rates 10,…    GCs in a second of work, 10,100,1000,5000
 *   --variants a,b  of those above, all
 *   --rounds 20     at most, for each Node and rate
 *   --spread 0.3    percent
 *   --seconds 20    of work in a round within one process, after five to warm up
 *   --turns 4       of two processes in a round, after a slice to warm up
 *   --out FOLDER    where rounds are kept; what is there is not run again
 *   --write         writes bench/overhead-work.json and the section of docs/overhead.md
 *
 * Some three minutes a round and rate with all variants. Other programs disturb the comparison of
 * processes: the bench uses two cores.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { mean, median, sum } = require('simple-statistics')
const { freePort } = require('../test/support/free-port')
const { FOLDER, installCompared, scrapeEachSecond, startSinks } = require('./overhead-sinks')
const { WORK_FILE, middleOf, withWork, workSection } = require('./overhead-work-page')

/** Measured within one process: the name of the line, and its file in variants/. */
const WITHIN = Object.freeze({
  'none-again': 'none-again',
  hooks: 'hooks',
  callbacks: 'memwatch-callbacks'
})
/** Compared with a process that has nothing. */
const BETWEEN = Object.freeze([
  'none',
  'memwatch',
  'memwatch-observer',
  'empty-observer',
  'prom-client',
  'opentelemetry',
  'dd-trace'
])
const VARIANTS = [...Object.keys(WITHIN), ...BETWEEN]
const UNIT_MICROS = 1000
/** Slices of two processes that take turns, and those within one process. */
const LONG_SLICE = 1000
const SHORT_SLICE = 20
const WARM_SECONDS = 5
/** V8's smallest semi-space: one GC for each MiB of garbage. */
const FLAGS = ['--max-semi-space-size=1']
const LEAST_ROUNDS = 5
const CALIBRATION_OBJECTS = 5000

const { values: given } = parseArgs({
  options: {
    nodes: { type: 'string', default: process.execPath },
    rates: { type: 'string', default: '10,100,1000,5000' },
    variants: { type: 'string', default: VARIANTS.join(',') },
    rounds: { type: 'string', default: '20' },
    spread: { type: 'string', default: '0.3' },
    seconds: { type: 'string', default: '20' },
    turns: { type: 'string', default: '4' },
    out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-overhead-work') },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  }
})
const variants = given.variants.split(',')
for (const variant of variants) {
  if (!VARIANTS.includes(variant)) {
    throw new Error(`--variants: expected some of ${VARIANTS.join(', ')}, got ${variant}`)
  }
}

/** @typedef {import('./overhead-work-page').Difference} Difference */

/** A process that works on command. */
class Worker {
  /**
   * @param {string} node
   * @param {string} variant
   * @param {{ objects: number, spins: number }} unit
   * @param {NodeJS.ProcessEnv} env
   * @param {string[]} [flags]
   */
  static async start (node, variant, { objects, spins }, env, flags = []) {
    const scrapePort = await freePort()
    const child = spawn(
      node,
      [
        ...FLAGS,
        ...flags,
        '-r',
        path.join(FOLDER, 'variants', `${variant}.js`),
        path.join(FOLDER, 'work.js'),
        String(objects),
        String(spins)
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
        env: { ...process.env, ...env, SCRAPE_PORT: String(scrapePort), NODE_OPTIONS: '' }
      }
    )
    const worker = new Worker(child, variant === 'prom-client' ? scrapeEachSecond(scrapePort) : undefined)
    const failed = once(child, 'exit').then(([code]) => {
      throw new Error(`${variant} of ${node} ended with status ${code}`)
    })
    await Promise.race([once(child, 'message'), failed])
    failed.catch(() => {}) // `end` kills it
    return worker
  }

  /** Its stdout contains traces of V8. */
  said = ''

  /**
   * @param {import('node:child_process').ChildProcess} child
   * @param {NodeJS.Timeout} [scrape]
   */
  constructor (child, scrape) {
    this.child = child
    this.scrape = scrape
    child.stdout?.setEncoding('utf8').on('data', text => { this.said += text })
  }

  /**
   * @param {number} slices
   * @param {number} units of each slice
   * @returns {Promise<{ micros: Record<'on' | 'off', number[]>, ownMicros: number,
   *   seconds: number }>} µs of CPU of each slice, and of the variant's own callbacks; elapsed
   *   seconds
   */
  async slices (slices, units) {
    this.child.send({ slices, units })
    const [answer] = await once(this.child, 'message')
    return answer
  }

  /** One long slice. @returns {Promise<number>} µs of CPU */
  async work () {
    const { micros } = await this.slices(1, LONG_SLICE)
    return sum(Object.values(micros).flat())
  }

  async end () {
    clearInterval(this.scrape)
    this.child.kill('SIGKILL')
    await once(this.child, 'close')
  }
}

/**
 * Allocations and computing of a unit, chosen for the rate of GCs, and equal for all variants.
 * @param {string} node
 * @param {number} rate GCs in a second of work
 */
async function calibrate (node, rate) {
  const allocating = await Worker.start(
    node, 'none', { objects: CALIBRATION_OBJECTS, spins: 0 }, {}, ['--trace-gc']
  )
  const tracedGcs = () => (allocating.said.match(/ ms: (Scavenge|Mark-)/g) ?? []).length
  await allocating.work()
  const before = tracedGcs()
  const allocatingMicros = (await allocating.work()) / LONG_SLICE / CALIBRATION_OBJECTS
  await allocating.end()
  const objectsPerGc = LONG_SLICE * CALIBRATION_OBJECTS / (tracedGcs() - before)
  const objects = Math.round(rate * objectsPerGc * UNIT_MICROS / 1e6)
  const spinning = await Worker.start(node, 'none', { objects: 0, spins: 1e5 }, {})
  await spinning.work()
  const spinMicros = (await spinning.work()) / LONG_SLICE / 1e5
  await spinning.end()
  const left = Math.max(0, UNIT_MICROS - objects * allocatingMicros)
  return { objects, spins: Math.round(left / spinMicros) }
}

/** @typedef {{ more: number, of: number }} Turn µs of CPU more than `of` µs */

/**
 * @param {string} variant that cannot be turned off
 * @param {(variant: string) => Promise<Worker>} start
 * @param {number} round
 * @returns {Promise<Turn[]>}
 */
async function compareProcesses (variant, start, round) {
  const both = [await start('none'), await start(variant)]
  /** @type {Turn[]} */
  const turns = []
  try {
    for (const worker of both) await worker.work()
    for (let turn = 0; turn < Number(given.turns); turn++) {
      const micros = [0, 0]
      for (const i of (turn + round) % 2 ? [1, 0] : [0, 1]) micros[i] = await both[i].work()
      turns.push({ more: micros[1] - micros[0], of: micros[0] })
    }
  } finally {
    await Promise.all(both.map(worker => worker.end()))
  }
  return turns
}

/**
 * @param {keyof typeof WITHIN} variant
 * @param {(variant: string) => Promise<Worker>} start
 * @returns {Promise<Turn>} sums of a second of work
 */
async function compareSlices (variant, start) {
  const worker = await start(WITHIN[variant])
  try {
    const slicesOf = (/** @type {number} */ seconds) =>
      4 * Math.round(seconds * 1000 / SHORT_SLICE / 4)
    await worker.slices(slicesOf(WARM_SECONDS), SHORT_SLICE)
    const { micros, ownMicros, seconds } = await worker.slices(
      slicesOf(Number(given.seconds)), SHORT_SLICE
    )
    // Frames come once a second of the clock, whatever share of it the process works.
    if (variant === 'callbacks') return { more: ownMicros / seconds, of: 1e6 }
    const slicesOfSecond = 1e6 / (SHORT_SLICE * UNIT_MICROS)
    const of = mean(micros.off)
    return { more: (mean(micros.on) - of) * slicesOfSecond, of: of * slicesOfSecond }
  } finally {
    await worker.end()
  }
}

/**
 * @param {Difference[]} differences of one Node and rate
 * @param {string} variant
 */
function isSettled (differences, variant) {
  const shares = differences.filter(d => d.variant === variant).map(({ share }) => 100 * share)
  if (shares.length < LEAST_ROUNDS) return false
  const { middle, least: from, most } = middleOf(shares)
  return Math.max(most - middle, middle - from) <= Number(given.spread)
}

/**
 * @param {string} node
 * @param {number} rate
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Difference[]>}
 */
async function measure (node, rate, env) {
  const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim()
  const file = path.join(given.out, `${version}-${rate}.json`)
  const kept = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined
  const unit = kept?.unit ?? await calibrate(node, rate)
  /** @type {Difference[]} */
  const differences = kept?.differences ?? []
  const start = (/** @type {string} */ variant) => Worker.start(node, variant, unit, env)
  const gcs = rate * LONG_SLICE * UNIT_MICROS / 1e6
  for (let round = 0; round < Number(given.rounds); round++) {
    for (const variant of variants.filter(variant => !isSettled(differences, variant))) {
      if (differences.some(found => found.variant === variant && found.round === round)) continue
      const turns = BETWEEN.includes(variant)
        ? await compareProcesses(variant, start, round)
        : [await compareSlices(/** @type {keyof typeof WITHIN} */ (variant), start)]
      const share = median(turns.map(({ more, of }) => more / of))
      const microsPerGc = median(turns.map(({ more }) => more)) / gcs
      differences.push({ node: version, rate, round, variant, share, microsPerGc })
      fs.writeFileSync(file, JSON.stringify({ unit, differences }))
      console.log(
        `Node ${version}, ${rate} GCs/s, round ${round}, ${variant}: ${(100 * share).toFixed(2)} %`
      )
    }
  }
  return differences
}

async function main () {
  if (given.help) {
    const [text] = /\/\*\*[\s\S]*?\*\//.exec(fs.readFileSync(__filename, 'utf8')) ?? ['']
    return console.log(text.replace(/^\/\*\*\n| \*\/$/g, '').replace(/^ \* ?/gm, ''))
  }
  fs.mkdirSync(given.out, { recursive: true })
  installCompared()
  const sinks = await startSinks()
  /** @type {Difference[]} */
  const differences = []
  try {
    for (const node of given.nodes.split(':')) {
      for (const rate of given.rates.split(',').map(Number)) {
        differences.push(...(await measure(node, rate, sinks.env)))
      }
    }
  } finally {
    sinks.stop()
  }
  console.log(workSection(differences))
  if (!given.write) return
  fs.writeFileSync(WORK_FILE, JSON.stringify(differences, null, 1) + '\n')
  const page = path.join(__dirname, '../docs/overhead.md')
  fs.writeFileSync(page, withWork(fs.readFileSync(page, 'utf8'), differences))
}

main()
