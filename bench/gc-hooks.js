'use strict'

/**
 * `npm run bench:gc-hooks -- PART` tests the addon's GC hooks for longer than a test may take.
 *
 *   workers   starts and ends 10,000 workers, half of them terminated during GCs: each must count
 *             its own GCs, and memory must not grow. --count N; 4 to 10 minutes
 *   soak      runs 10,000,000 GCs of one app with the agent, about as many as in a day at a hundred
 *             a second: the count must equal V8's trace, and memory must not grow. --gcs N; 20
 *             minutes
 *   cost      measures the time that counting adds to a GC: scavenges with 200 counters at once and
 *             with none, the fastest of nine each. A difference above a microsecond fails. Half a
 *             minute
 *   valgrind  runs counting, stopping, workers and the live heap under valgrind: the addon must
 *             have no error and lose no memory. Needs valgrind; a minute
 *
 * --node PATH runs the part on another Node. Ends with 1 if a check fails.
 */

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const { parseArgs } = require('node:util')
const { runTraced } = require('./traced-app')

const APP = path.join(__dirname, 'gc-hooks-app.js')
const COUNTERS = 200
/** Largest allowed growth of memory in the second half of a run. */
const MOST_GROWTH_BYTES = 16 * 2 ** 20

const { values: given, positionals: [part] } = parseArgs({
  allowPositionals: true,
  options: {
    node: { type: 'string', default: process.execPath },
    count: { type: 'string', default: '10000' },
    gcs: { type: 'string', default: '10000000' }
  }
})
const mib = (/** @type {number} */ bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/**
 * @param {number[]} rss at ten moments or more of a run, in bytes
 * @returns {boolean} true: it grew in the second half
 */
function grows (rss) {
  const half = Math.floor(rss.length / 2)
  const [before, after] = [Math.min(...rss.slice(half, half + 3)), Math.min(...rss.slice(-3))]
  console.log(`RSS in the middle ${mib(before)}, at the end ${mib(after)}`)
  return after - before > MOST_GROWTH_BYTES
}

/** @returns {Promise<boolean>} */
async function workers () {
  const child = spawn(given.node, ['--expose-gc', APP, 'workers', given.count], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, NODE_OPTIONS: '' }
  })
  /** @type {number[]} */
  const rss = []
  let wrong = 0
  child.on('message', (/** @type {any} */ message) => {
    rss.push(message.rss)
    wrong = message.wrong
    console.log(`${message.ended} workers, ${wrong} with another count, ${mib(message.rss)}`)
  })
  const [code] = await once(child, 'close')
  return code === 0 && wrong === 0 && !grows(rss)
}

/** @returns {Promise<boolean>} */
async function soak () {
  const most = Number(given.gcs)
  const step = Math.ceil(most / 20)
  /** @type {number[]} */
  const rss = []
  const { hello, traced, counted } = await runTraced({
    node: given.node,
    flags: ['--max-semi-space-size=1'],
    args: [APP, 'soak'],
    onTraced (traced, child, rssBytes) {
      if (traced === most) child.send('end')
      if (traced % step !== 0) return
      rss.push(rssBytes)
      console.log(`${traced} GCs, ${mib(rssBytes)}`)
    }
  })
  console.log(`by ${hello.gcCounter}: V8 traced ${traced}, memwatch counted ${counted}`)
  return hello.gcCounter === 'hooks' && traced === counted && !grows(rss)
}

/** @returns {Promise<boolean>} */
async function valgrind () {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-valgrind-'))
  const log = path.join(folder, 'log')
  const child = spawn(
    'valgrind',
    [
      '--leak-check=full',
      '--smc-check=all-non-file',
      '--num-callers=40',
      '--keep-debuginfo=yes',
      `--log-file=${log}`,
      given.node,
      '--expose-gc',
      '--single-threaded-gc',
      APP,
      'workers',
      '4'
    ],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, NODE_OPTIONS: '' } }
  )
  let wrong = NaN
  child.on('message', (/** @type {any} */ message) => { wrong = message.wrong })
  const [code] = await once(child, 'close')
  const text = fs.readFileSync(log, 'latin1')
  fs.rmSync(folder, { recursive: true })
  // valgrind also reports errors of V8, which searches stacks for pointers, and blocks lost by
  // Node.js itself, such as 24 bytes of OpenSSL's start. A lost block has the stack of its malloc.
  const inAddon = text.split('\n').filter(line => line.includes(`${process.arch}.node`))
  const hasEnded = text.includes('ERROR SUMMARY')
  console.log(`lines about the addon in valgrind's report: ${inAddon.length}`)
  inAddon.forEach(line => console.log(line))
  return code === 0 && wrong === 0 && hasEnded && inAddon.length === 0
}

/** @returns {Promise<boolean>} */
async function cost () {
  const [none, all] = [0, COUNTERS].map(() => /** @type {number[]} */ ([]))
  for (let turn = 0; turn < 9; turn++) {
    for (const [counters, micros] of /** @type {const} */ ([[0, none], [COUNTERS, all]])) {
      const args = ['--expose-gc', '--single-threaded-gc', APP, 'cost', String(counters)]
      micros.push(Number(execFileSync(given.node, args, { env: { ...process.env, NODE_OPTIONS: '' } })))
    }
  }
  const micros = (Math.min(...all) - Math.min(...none)) / COUNTERS
  console.log(
    `a scavenge ${Math.min(...none).toFixed(1)} µs, counting it ${(1000 * micros).toFixed(0)} ns`
  )
  return micros < 1
}

const PARTS = { workers, soak, cost, valgrind }
const run = PARTS[/** @type {keyof typeof PARTS} */ (part)]
if (!run) throw new Error(`expected one of ${Object.keys(PARTS).join(', ')}, got ${part}`)
run().then(isRight => {
  console.log(isRight ? 'as it should be' : 'NOT as it should be')
  process.exitCode = isRight ? 0 : 1
})
