'use strict'

/**
 * `npm run bench:overhead-work` measures the CPU time of a process for the same work, at 10 to
 * 5,000 GCs in a second of work. It compares no tool, V8's GC hooks alone, memwatch, an empty
 * observer of GCs, prom-client, OpenTelemetry and dd-trace. memwatch runs with hooks or with the
 * observer, and with or without its own profiles. Measurements of throughput cannot show such small
 * differences.
 *
 * Two processes that do the same work differ by one or two percent, and by more than ten at 5,000
 * GCs a second. The smallest costs are therefore measured within one process, in slices of 20 ms.
 * The hooks are on, off, off and on in four slices; the two slices without hooks show the noise.
 * The callbacks of the agent's timers are measured one by one, because they take less time than the
 * noise of slices. "memwatch" is the sum of its hooks and callbacks. The complete agent, with its
 * socket, is also turned off and on within one process, in the same slices.
 *
 * Objects that an observer leaves behind also cost later. So the other tools, and memwatch once
 * more, are compared with a process that has none of them; slices of all processes take turns.
 * Rounds with new processes follow until the quartiles of each variant's median are close enough to
 * it: within --spread percent of CPU, or within a twentieth of a large difference. There are at
 * most --rounds.
 *
 *   --nodes A:B     Nodes, this one
 *   --rates 10,…    GCs in a second of work, 10,100,1000,5000
 *   --variants a,b  of those above, all
 *   --rounds 20     at most, for each Node and rate
 *   --spread 0.3    percent
 *   --seconds 20    of work in a round within one process, after 15 to warm up
 *   --turns 4       seconds of work of each process in a round, after one to warm up
 *   --out FOLDER    where rounds are kept; what is there is not run again
 *   --write         writes bench/overhead-work.json and the section of docs/overhead.md
 *
 * A round takes some 110 s for each rate. Other programs on the same cores slow it down.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { mean, median, sum } = require('simple-statistics')
const { freePort } = require('../test/support/free-port')
const { parseOptions } = require('./options')
const { ORDER } = require('./overhead/measurement')
const { FOLDER, installCompared, scrapeEachSecond, startSinks } = require('./overhead-sinks')
const { WORK_FILE, middleOf, withWork, workSection } = require('./overhead-work-page')

const UNIT_MICROS = 1000
const UNITS_OF_SECOND = 1e6 / UNIT_MICROS
const SLICE_UNITS = 20
const SLICES_OF_SECOND = UNITS_OF_SECOND / SLICE_UNITS
/** Variants measured within one process: files in variants/ by the line of the table. */
const WITHIN = Object.freeze({
  hooks: 'hooks', callbacks: 'memwatch-callbacks', switched: 'memwatch-switched'
})
/** Line of the comparison of two slices that both lack the variant. */
const NOISE = Object.freeze({ hooks: 'none-again', switched: 'off-again' })
/** Variant without any tool, with which others are compared. */
const BASE = 'none'
/** Variants compared with it; `none` is a second process without any tool. */
const BETWEEN = Object.freeze([
  'none',
  'memwatch',
  'memwatch-no-captures',
  'memwatch-observer',
  'empty-observer',
  'prom-client',
  'opentelemetry',
  'dd-trace'
])
const VARIANTS = [...Object.keys(WITHIN), ...BETWEEN]
/** The agent looks more closely at the event loop in the first ten seconds of a process. */
const WARM_SECONDS = 15
/**
 * The mean of blocks leaves out a fifth of them at either end (Tukey 1960), because other programs
 * on the machine can slow some slices down to half of their speed.
 */
const TRIMMED_SHARE = 0.2
/** V8's smallest semi-space: one GC for each MiB of garbage. */
const FLAGS = ['--max-semi-space-size=1']
const LEAST_ROUNDS = 5
/** Share of a large difference within which its quartiles must be for the measurement to end. */
const SETTLED_SHARE = 0.05
const CALIBRATION_OBJECTS = 5000

const given = parseOptions(__filename, {
  nodes: { type: 'string', default: process.execPath },
  rates: { type: 'string', default: '10,100,1000,5000' },
  variants: { type: 'string', default: VARIANTS.join(',') },
  rounds: { type: 'string', default: '20' },
  spread: { type: 'string', default: '0.3' },
  seconds: { type: 'string', default: '20' },
  turns: { type: 'string', default: '4' },
  out: { type: 'string', default: path.join(os.tmpdir(), 'memwatch-overhead-work') },
  write: { type: 'boolean', default: false }
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
    failed.catch(() => {}) // `end` kills the process, so the error is expected.
    return worker
  }

  /** The text of its stdout, which contains traces of V8. */
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
   * @param {number} [units] number of units in each slice
   * @returns
   *   {Promise<{ micros: number[], framesOf: number[], ownMicros: number, seconds: number }>}
   *   µs of CPU and frames of each slice, µs of the variant's own callbacks; elapsed seconds
   */
  async work (slices, units = SLICE_UNITS) {
    this.child.send({ slices, units })
    const [answer] = await once(this.child, 'message')
    return answer
  }

  /** Makes the process do one second of work, in one slice. @returns {Promise<number>} µs of CPU */
  async workOneSecond () {
    const { micros: [micros] } = await this.work(1, UNITS_OF_SECOND)
    return micros
  }

  async end () {
    clearInterval(this.scrape)
    this.child.kill('SIGKILL')
    await once(this.child, 'close')
  }
}

/**
 * Chooses the allocations and computation of a unit for a rate of GCs. They are equal for all
 * variants.
 * @param {string} node
 * @param {number} rate GCs in a second of work
 */
async function calibrate (node, rate) {
  const allocating = await Worker.start(
    node, 'none', { objects: CALIBRATION_OBJECTS, spins: 0 }, {}, ['--trace-gc']
  )
  const tracedGcs = () => (allocating.said.match(/ ms: (Scavenge|Mark-)/g) ?? []).length
  await allocating.workOneSecond()
  const before = tracedGcs()
  const allocatingMicros = (await allocating.workOneSecond()) /
    UNITS_OF_SECOND / CALIBRATION_OBJECTS
  await allocating.end()
  const objectsPerGc = UNITS_OF_SECOND * CALIBRATION_OBJECTS / (tracedGcs() - before)
  const objects = Math.round(rate * objectsPerGc * UNIT_MICROS / 1e6)
  const spinning = await Worker.start(node, 'none', { objects: 0, spins: 1e5 }, {})
  await spinning.workOneSecond()
  const spinMicros = (await spinning.workOneSecond()) / UNITS_OF_SECOND / 1e5
  await spinning.end()
  const left = Math.max(0, UNIT_MICROS - objects * allocatingMicros)
  return { objects, spins: Math.round(left / spinMicros) }
}

/** @typedef {{ more: number, of: number }} Turn CPU time in µs in addition to `of` µs */

/**
 * Processes take turns of one slice each, in a circle, so that a slow machine affects all of them
 * equally and each finds CPU caches that the others have used. (If the order were reversed after
 * each slice, the first and the last process would run twice in a row, on caches of their own.) A
 * turn has the slices of a second, because a tool's timers may run only once a second. Each turn
 * reverses the circle.
 * @param {string[]} variants that cannot be turned off
 * @param {(variant: string) => Promise<Worker>} start
 * @param {number} round
 * @returns {Promise<Record<string, Turn>>} medians of the turns, compared with nothing
 */
async function compareProcesses (variants, start, round) {
  const files = [BASE, ...variants]
  /** @type {Worker[]} */
  const workers = []
  /** @type {number[][]} CPU time of each turn in µs, by worker */
  const micros = files.map(() => [])
  try {
    const begin = round % files.length
    for (const i of [...files.keys()].map(i => (i + begin) % files.length)) {
      workers[i] = await start(files[i])
    }
    for (const worker of workers) await worker.work(SLICES_OF_SECOND)
    const circle = [...files.keys()]
    for (let turn = 0; turn < Number(given.turns); turn++) {
      for (const list of micros) list.push(0)
      circle.reverse()
      for (let slice = 0; slice < SLICES_OF_SECOND; slice++) {
        for (const i of circle) {
          micros[i][turn] += sum((await workers[i].work(1)).micros)
        }
      }
    }
  } finally {
    await Promise.all(workers.map(worker => worker?.end()))
  }
  return Object.fromEntries(variants.map((variant, i) => [
    variant,
    {
      more: median(micros[i + 1].map((own, turn) => own - micros[0][turn])),
      of: median(micros[0])
    }
  ]))
}

/** @param {number[]} values */
function trimmedMean (values) {
  const sorted = values.toSorted((a, b) => a - b)
  const left = Math.floor(sorted.length * TRIMMED_SHARE)
  return mean(sorted.slice(left, sorted.length - left))
}

/**
 * The agent is on for half of a block. A frame is much larger than the other work of a block, and
 * few blocks have one. Its cost is therefore the difference of blocks with and without one.
 * @param {keyof typeof WITHIN} variant
 * @param {(variant: string) => Promise<Worker>} start
 * @returns {Promise<Record<string, Turn>>} by line of the table; sums of a second of work
 */
async function compareSlices (variant, start) {
  const worker = await start(WITHIN[variant])
  try {
    const countSlices = (/** @type {number} */ seconds) =>
      ORDER.length * Math.round(seconds * SLICES_OF_SECOND / ORDER.length)
    await worker.work(countSlices(WARM_SECONDS))
    const { micros, framesOf, ownMicros, seconds } =
      await worker.work(countSlices(Number(given.seconds)))
    // The agent sends a frame each second of wall time, even if the process works for only a part
    // of it.
    if (variant === 'callbacks') return { callbacks: { more: ownMicros / seconds, of: 1e6 } }
    const offs = micros.filter((_, i) => !ORDER[i % ORDER.length])
    /** @type {number[]} */
    const more = []
    /** @type {number[]} */
    const moreWithFrame = []
    // The difference of two slices spreads √2 times as far as that of the means of two pairs.
    const noise = []
    for (let i = 0; i < micros.length; i += ORDER.length) {
      const [on, off, offAgain, onAgain] = micros.slice(i, i + ORDER.length)
      const hasFrame = sum(framesOf.slice(i, i + ORDER.length)) > 0
      ;(hasFrame ? moreWithFrame : more).push((on + onAgain - off - offAgain) / 2)
      noise.push((off - offAgain) * (i / ORDER.length % 2 ? 1 : -1) / Math.SQRT2)
    }
    const usual = trimmedMean(more)
    const onSlices = ORDER.filter(isOn => isOn).length
    const ofFrame = moreWithFrame.length > 0
      ? onSlices * (trimmedMean(moreWithFrame) - usual)
      : 0
    const framesPerSecond = sum(framesOf) / (seconds * onSlices / ORDER.length)
    const of = trimmedMean(offs) * SLICES_OF_SECOND
    return {
      [variant]: { more: usual * SLICES_OF_SECOND + ofFrame * framesPerSecond, of },
      [NOISE[variant]]: { more: trimmedMean(noise) * SLICES_OF_SECOND, of }
    }
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
  const spread = Math.max(Number(given.spread), SETTLED_SHARE * Math.abs(middle))
  return Math.max(most - middle, middle - from) <= spread
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
  for (let round = 0; round < Number(given.rounds); round++) {
    const isOpen = (/** @type {string} */ variant) => variants.includes(variant) &&
      !isSettled(differences, variant) &&
      !differences.some(found => found.variant === variant && found.round === round)
    const within = /** @type {(keyof typeof WITHIN)[]} */ (Object.keys(WITHIN)).filter(isOpen)
    const between = BETWEEN.filter(isOpen)
    for (const compare of [
      ...within.map(variant => () => compareSlices(variant, start)),
      ...(between.length > 0 ? [() => compareProcesses(between, start, round)] : [])
    ]) {
      const found = await compare()
      for (const [variant, { more, of }] of Object.entries(found)) {
        const share = more / of
        differences.push({ node: version, rate, round, variant, share, microsPerGc: more / rate })
        console.log(
          `Node ${version}, ${rate} GCs/s, round ${round}, ${variant}: ${(100 * share).toFixed(2)} %`
        )
      }
      fs.writeFileSync(file, JSON.stringify({ unit, differences }))
    }
  }
  return differences
}

async function main () {
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
