'use strict'

/**
 * `npm run bench:ratios`: what the paths that run all the time cost, as ratios to plain work done in the same run – a machine
 * that is twice as slow is so at both. `--check` (a part of `npm test`) fails where a ratio is more than a fifth above that of
 * bench/ratios.json; `--write` puts the measured ones there, for this version of Node.
 *
 *   frame     the agent reads and encodes a frame; to encoding it and one read of /proc
 *   ingest    the exporter takes and judges a recording; to parsing its lines
 *   scrape    /metrics of 20 targets; to encoding the same values as JSON
 */

const fs = require('node:fs')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { gunzipSync } = require('node:zlib')
const { Guard } = require('../agent/guard')
const { collectors } = require('../agent/collect')
const { exporterState } = require('../test/support/exporter-state')
const { createMetrics } = require('../exporter/expose/metrics')
const { replay } = require('../exporter/recording/replay')

const FILE = path.join(__dirname, 'ratios.json')
const RECORDING = path.join(__dirname, '../test/recordings/20-semi-space-starvation-broken.ndjson.gz')
const ROUNDS = 15
const ATTEMPTS = 6
const WORSE = 1.2

const { values: given } = parseArgs({ options: { check: { type: 'boolean', default: false }, write: { type: 'boolean', default: false } } })

/**
 * The quickest of many rounds, which take turns: what disturbs, disturbs both.
 * @param {() => unknown} work @param {() => unknown} plain @returns {Promise<number>} ratio
 */
async function ratio (work, plain) {
  const quickest = [Infinity, Infinity]
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, run] of [work, plain].entries()) {
      const began = performance.now()
      await run()
      quickest[i] = Math.min(quickest[i], performance.now() - began)
    }
  }
  return quickest[0] / quickest[1]
}

/** @param {number} times @param {() => unknown} work */
const repeated = (times, work) => () => { for (let i = 0; i < times; i++) work() }

async function frame () {
  const guard = new Guard()
  const all = collectors({ isMainThread: true, frameMs: 1000, guarded: guard.wrap.bind(guard), majors: () => 0 })
  for (const { start } of all) start?.()
  let count = 0
  const read = () => {
    const values = {}
    // Frames within one second: what is read by the clock is read once.
    const tick = { count: ++count, nowSeconds: count / 1000 }
    for (const collector of all) collector.read(values, tick)
    return values
  }
  const values = read()
  const statm = fs.openSync('/proc/self/statm')
  const buffer = Buffer.alloc(4096)
  const found = await ratio(
    repeated(200, () => JSON.stringify(read())),
    repeated(200, () => { JSON.stringify(values); fs.readSync(statm, buffer, 0, 4096, 0) })
  )
  for (const { stop } of all) stop?.()
  return found
}

async function ingest () {
  const lines = gunzipSync(fs.readFileSync(RECORDING)).toString().trim().split('\n')
  return ratio(() => replay(RECORDING), repeated(3, () => lines.map(line => JSON.parse(line))))
}

async function scrape () {
  const { targets: [target] } = await replay(RECORDING)
  const targets = Array(20).fill(target)
  const metrics = createMetrics({
    targets: () => targets, state: () => exporterState({ targets: 20 }), compat: true
  })
  return ratio(() => metrics.text(), repeated(20, () => JSON.stringify(targets.map(({ values, verdicts }) => ({ values, verdicts })))))
}

async function main () {
  const major = process.versions.node.split('.')[0]
  /** @type {Record<string, Record<string, number>>} */
  const known = fs.existsSync(FILE) ? JSON.parse(fs.readFileSync(FILE, 'utf8')) : {}
  const limits = known[major] ?? known[Math.max(...Object.keys(known).map(Number))] ?? {}
  /** @type {Record<string, number>} */
  const measured = {}
  for (const [name, measure] of Object.entries({ frame, ingest, scrape })) {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      measured[name] = Math.min(measured[name] ?? Infinity, await measure())
      if (!given.write && !(measured[name] > WORSE * limits[name])) break
    }
    const limit = limits[name] === undefined ? '' : `, ${(100 * (measured[name] / limits[name] - 1)).toFixed(0)} % from the ${limits[name].toFixed(2)} of bench/ratios.json`
    console.log(`${name}: ${measured[name].toFixed(2)}${limit}`)
  }
  if (given.write) {
    known[major] = Object.fromEntries(Object.entries(measured).map(([name, value]) => [name, Number(value.toFixed(3))]))
    fs.writeFileSync(FILE, JSON.stringify(known, null, 2) + '\n')
  }
  const worse = given.check ? Object.keys(measured).filter(name => measured[name] > WORSE * limits[name]) : []
  for (const name of worse) console.log(`${name} costs more than a fifth more than it did: make it cheaper, or run npm run bench:ratios -- --write and say why`)
  process.exit(worse.length > 0 ? 1 : 0)
}

main()
