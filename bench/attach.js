'use strict'

/**
 * `npm run bench:attach` attaches to a server under load and detaches, in rounds. The control is an
 * identical server under the same load at the same time, without an attach. No request may be lost,
 * and nothing may remain: port, descriptors, handles, memory.
 *
 *   npm run bench:attach                              100 rounds on Node.js 18, 20, 22, 24, 26
 *   npm run bench:attach -- --node 22.23.3 --rounds 1000
 *   taskset -c 0 npm run bench:attach -- --server-cpu 1    the servers have a core of their own
 *
 * A round ends when main thread and worker have sent a frame, and detach has ended. Every fourth
 * round is followed by a pause of the same length. Latencies of the two servers are compared
 * window by window, in rounds and in pauses: the pauses show the noise. Memory of both is read
 * before the first attach, and between the rounds, each time after full GCs. Intervals hold 95 % of
 * 1,000 samples of the windows or readings, drawn with replacement (bootstrap, Efron 1979). Ends
 * with 1 when a request is lost, something remains, or memory grows with the rounds. Prints the
 * rows of the table in docs/attach.md.
 */

const fs = require('node:fs')
const path = require('node:path')
const { fork } = require('node:child_process')
const { on, once } = require('node:events')
const { setTimeout: wait } = require('node:timers/promises')
const { median, quantileSorted } = require('simple-statistics')
const { attach, detach } = require('../exporter/attachment/attachment')
const { listenersAround } = require('../exporter/attachment/listeners')
const { Subject } = require('../exporter/attachment/subject')
const { theilSen } = require('../engine/statistics/theil-sen')
const { fetchNode } = require('../scripts/fetch-node')
const { startExporter } = require('../test/support/exporter')
const { parseOptions } = require('./options')

const VERSIONS = '18.20.8,20.20.2,22.23.3,24.21.0,26.10.0'
/** Longest wait for the first frames of the agent. */
const HEARD_MS = 10_000
const PAUSE_EVERY_ROUNDS = 4
/**
 * Time before the first round, in which V8 compiles the servers' code, and memory becomes stable.
 */
const SETTLE_MS = 10_000
/** Number of memory readings before the first attach, and the time between them. */
const READINGS_BEFORE = 5
const READ_AGAIN_MS = 1000
/** Number of rounds before measuring, until V8 has compiled their code. */
const WARM_ROUNDS = 10
/** Number of rounds after a memory reading, which has made V8 discard that code. */
const WARM_AGAIN_ROUNDS = 3
/** Number of memory readings between the rounds. */
const READINGS = 20
/**
 * Upper bound of the heap that may remain: Node.js' own modules that the agent used, and their
 * compiled code, about 1 MiB in each thread.
 */
const MOST_LEFT_BYTES = 3 * 1024 ** 2
/**
 * Upper bounds of growth per round. V8 keeps some hundred bytes of lists of code; an agent that
 * remained would take a hundred KiB.
 */
const MOST_HEAP_PER_ROUND_BYTES = 1024
const MOST_RSS_PER_ROUND_BYTES = 4096
/** Node.js' own port may be in use by others. */
const INSPECTOR_PORT = 9329
const RESAMPLES = 1000
/** Ratio of the bounds of neighbouring latency buckets. */
const BUCKET_RATIO = 1.02
const LEAST_MS = 0.01
const BUCKETS = 1000

const given = parseOptions(__filename, {
  node: { type: 'string', default: VERSIONS },
  rounds: { type: 'string', default: '100' },
  'server-cpu': { type: 'string' }
})

/** A server with its load. */
class Served {
  /** Readings of its memory, in bytes. @type {{ rss: number, heapUsed: number }[]} */
  readings = []
  #app
  #load
  #port = 0

  /**
   * @param {string} node path of its binary
   * @param {number} inspectorPort
   */
  constructor (node, inspectorPort) {
    const cpu = given['server-cpu']
    const args = [`--inspect-port=${inspectorPort}`]
    this.#app = fork(path.join(__dirname, 'attach-app.js'), {
      // taskset replaces itself by Node.js, so the process id is that of the server.
      ...(cpu === undefined
        ? { execPath: node, execArgv: args }
        : { execPath: 'taskset', execArgv: ['-c', cpu, node, ...args] }),
      // Node.js reports its inspector on stderr.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc']
    })
  }

  async start () {
    [{ port: this.#port }] = await once(this.#app, 'message')
    this.#load = fork(path.join(__dirname, 'attach-load.js'), [String(this.#port)])
    return this
  }

  get pid () {
    return /** @type {number} */ (this.#app.pid)
  }

  /** @param {string} what */
  async ask (what) {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/${what}`, {
      headers: { connection: 'close' }
    })
    return await answer.json()
  }

  /** @param {string} phase phase of all requests from now on */
  enter (phase) {
    this.#load?.send(phase)
  }

  async read () {
    this.enter('reading')
    this.readings.push(await this.ask('memory'))
  }

  /**
   * Text with the last memory reading of this server, relative to that of its control.
   * @param {Served} control
   */
  aboveText (control) {
    const [last, other] = [this, control].map(({ readings }) => readings[readings.length - 1])
    const texts = /** @type {const} */ (['heapUsed', 'rss']).map(figure =>
      `${figure} ${mib(last[figure])} MiB, control ${mib(other[figure])}`)
    return texts.join('; ')
  }

  /**
   * Ends the load.
   * @returns {Promise<{ taken: Record<string, number[]>, lost: number, sent: number }>}
   */
  async rest () {
    this.#load?.send('end')
    const [counts] = await once(/** @type {any} */ (this.#load), 'message')
    return counts
  }

  async stop () {
    this.#app.kill()
    await once(this.#app, 'exit')
  }
}

/** @param {number} bytes */
const mib = bytes => (bytes / 2 ** 20).toFixed(2)

/** @param {number} pid */
const descriptorsOf = pid => fs.readdirSync(`/proc/${pid}/fd`).length

/**
 * Bootstrap of a figure of pairs: its value, and the interval that holds 95 % of the resamples. It
 * is reproducible.
 * @template Pair
 * @param {Pair[]} pairs
 * @param {(pairs: Pair[]) => number} figure
 */
function bootstrap (pairs, figure) {
  let seed = 1
  /** Park and Miller's minimal generator. */
  const random = () => (seed = seed * 48_271 % 2_147_483_647) / 2_147_483_647
  const figures = Array.from({ length: RESAMPLES }, () =>
    figure(pairs.map(() => pairs[Math.floor(random() * pairs.length)]))
  ).sort((a, b) => a - b)
  const [least, most] = [0.025, 0.975].map(share => quantileSorted(figures, share))
  return { value: figure(pairs), least, most }
}

/**
 * @param {number[]} values milliseconds
 * @returns {number[]} counts by bucket
 */
function bucketsOf (values) {
  const counts = Array(BUCKETS).fill(0)
  for (const ms of values) {
    const bucket = Math.log(Math.max(1, ms / LEAST_MS)) / Math.log(BUCKET_RATIO)
    counts[Math.min(BUCKETS - 1, Math.round(bucket))]++
  }
  return counts
}

/**
 * @param {number[][]} windows counts by bucket
 * @returns {number} milliseconds
 */
function p99Of (windows) {
  const sums = Array(BUCKETS).fill(0)
  let all = 0
  for (const counts of windows) {
    for (let i = 0; i < BUCKETS; i++) {
      sums[i] += counts[i]
      all += counts[i]
    }
  }
  let seen = 0
  return LEAST_MS * BUCKET_RATIO ** sums.findIndex(count => (seen += count) >= 0.99 * all)
}

/**
 * Difference of the 99th percentiles of two servers, over the windows of one kind.
 * @param {Record<string, number[]>} taken by window, of the server with rounds
 * @param {Record<string, number[]>} control
 * @param {string} kind
 */
function compareWindows (taken, control, kind) {
  const names = Object.keys(taken).filter(name => name.startsWith(kind) && control[name])
  const pairs = names.map(name => [bucketsOf(taken[name]), bucketsOf(control[name])])
  const figure = (/** @type {number[][][]} */ drawn) =>
    p99Of(drawn.map(([own]) => own)) - p99Of(drawn.map(([, other]) => other))
  return {
    own: p99Of(pairs.map(([own]) => own)),
    control: p99Of(pairs.map(([, other]) => other)),
    difference: bootstrap(pairs, figure)
  }
}

/**
 * Memory of a server relative to its control: gain since before the first attach, and growth per
 * round.
 * @param {Served} own
 * @param {Served} control
 * @param {'rss' | 'heapUsed'} figure
 * @param {number} everyRounds
 */
function compareMemory (own, control, figure, everyRounds) {
  const above = own.readings.map((reading, i) => reading[figure] - control.readings[i][figure])
  const before = above.slice(0, READINGS_BEFORE)
  const after = above.slice(READINGS_BEFORE)
  const level = median(before)
  const slopeOf = (/** @type {{ round: number, bytes: number }[]} */ readings) => theilSen(
    readings.map(({ round }) => round), readings.map(({ bytes }) => bytes)
  )?.slope ?? 0
  return {
    gained: bootstrap(after, drawn => median(drawn) - level),
    perRound: bootstrap(
      after.map((bytes, i) => ({ bytes, round: i * everyRounds })),
      drawn => slopeOf(drawn.toSorted((a, b) => a.round - b.round))
    )
  }
}

/**
 * @param {{ value: number, least: number, most: number }} figure
 * @param {string} unit
 * @param {number} [per]
 */
const show = ({ value, least, most }, unit, per = 1) =>
  `${(value / per).toFixed(2)} ${unit} (${(least / per).toFixed(2)} to ${(most / per).toFixed(2)})`

/**
 * Waits for the next frame of the main thread, and of the worker.
 * @param {import('../exporter/exporter').Exporter} exporter
 * @param {number} pid
 */
async function hear (exporter, pid) {
  const threads = new Set()
  const signal = AbortSignal.timeout(HEARD_MS)
  for await (const [{ hello, thread }] of on(exporter, 'frame', { signal })) {
    if (hello.pid === pid && threads.add(thread).size === 2) return
  }
}

/**
 * @param {string} version
 * @param {number} rounds
 * @param {Awaited<ReturnType<typeof startExporter>>} exporter
 * @returns {Promise<{ holds: boolean, row: string }>} whether every claim holds
 */
async function measure (version, rounds, { exporter, socket: { path: socket } }) {
  const node = version === process.versions.node ? process.execPath : fetchNode(version)
  const own = await new Served(node, INSPECTOR_PORT).start()
  const control = await new Served(node, INSPECTOR_PORT + 1).start()
  const both = [own, control]
  const enter = (/** @type {string} */ phase) => both.forEach(served => served.enter(phase))
  const read = async () => await Promise.all(both.map(served => served.read()))
  const subject = new Subject(own.pid)
  subject.check()

  const round = async (/** @type {number | string} */ number) => {
    const began = performance.now()
    enter(`round ${number}`)
    const heard = hear(exporter, own.pid)
    await attach(subject, { socket })
    const attachMs = performance.now() - began
    await heard
    await detach(subject)
    const ms = performance.now() - began
    if (Number(number) % PAUSE_EVERY_ROUNDS === 0) {
      enter(`pause ${number}`)
      await wait(ms)
    }
    return attachMs
  }
  await wait(SETTLE_MS)
  for (let i = 0; i < READINGS_BEFORE; i++) {
    await read()
    await wait(READ_AGAIN_MS)
  }
  const before = descriptorsOf(own.pid)
  const resources = await own.ask('resources')
  const warm = async (/** @type {number} */ count) => {
    for (let number = 0; number < count; number++) await round('warm')
    enter('warm')
  }
  await warm(WARM_ROUNDS)
  const everyRounds = Math.max(1, Math.floor(rounds / READINGS))
  const attachMs = []
  for (let number = 0; number < rounds; number++) {
    attachMs.push(await round(number))
    if ((number + 1) % everyRounds === 0) {
      await read()
      console.error(`${number + 1} rounds: ${own.aboveText(control)}`)
      await warm(WARM_AGAIN_ROUNDS)
    }
  }
  const [{ taken, lost, sent }, other] = await Promise.all(both.map(served => served.rest()))
  await wait(500) // The server closes its connections in this time.
  const after = descriptorsOf(own.pid)
  const left = await own.ask('resources')
  const isOpen = listenersAround(own.pid)
    .some(({ isOwn, port }) => isOwn && port === INSPECTOR_PORT)
  await Promise.all(both.map(served => served.stop()))

  const count = (/** @type {string[]} */ list, /** @type {string} */ name) =>
    list.filter(item => item === name).length
  const more = [...new Set(left)].filter(name => count(left, name) > count(resources, name))
  const [heap, rss] = /** @type {const} */ (['heapUsed', 'rss'])
    .map(figure => compareMemory(own, control, figure, everyRounds))
  const inRounds = compareWindows(taken, other.taken, 'round')
  const inPauses = compareWindows(taken, other.taken, 'pause')
  const p99 = (/** @type {typeof inRounds} */ { own, control, difference }) =>
    `p99 ${own.toFixed(2)} ms, control ${control.toFixed(2)} ms: ${show(difference, 'ms')}`
  console.log(`
Node.js ${version}: ${rounds} rounds, attached within ${median(attachMs).toFixed(0)} ms (median)
  requests     ${sent} sent, ${lost} lost; control ${other.sent} sent, ${other.lost} lost
  in rounds    ${p99(inRounds)}
  in pauses    ${p99(inPauses)}
  descriptors  ${before} before (with the load's), ${after} after
  handles      ${more.length === 0 ? 'none more' : `more ${more.join(', ')}`}
  port         ${isOpen ? 'open' : 'closed'}
  heap used    ${show(heap.gained, 'KiB', 1024)} more than the control since before the first attach,
               ${show(heap.perRound, 'KiB', 1024)} each round
  RSS          ${show(rss.gained, 'MiB', 2 ** 20)}, as well,
               ${show(rss.perRound, 'KiB', 1024)} each round`)
  const holds = lost === 0 && more.length === 0 && !isOpen && after <= before &&
    heap.gained.value < MOST_LEFT_BYTES &&
    heap.perRound.least <= MOST_HEAP_PER_ROUND_BYTES &&
    rss.perRound.least <= MOST_RSS_PER_ROUND_BYTES
  const row = [
    version, sent, show(inRounds.difference, 'ms'), show(inPauses.difference, 'ms'),
    show(heap.perRound, 'KiB', 1024), show(rss.perRound, 'KiB', 1024),
    show(rss.gained, 'MiB', 2 ** 20)
  ]
  return { holds, row: `| ${row.join(' | ')} |` }
}

async function main () {
  const exporter = await startExporter()
  const measured = []
  for (const version of given.node.split(',')) {
    measured.push(await measure(version, Number(given.rounds), exporter))
  }
  await exporter.stop()
  console.log(`\n${measured.map(({ row }) => row).join('\n')}`)
  const holds = measured.every(({ holds }) => holds)
  console.log(holds ? '\nEvery claim holds.' : '\nA claim does not hold.')
  process.exitCode = holds ? 0 : 1
}

main()
