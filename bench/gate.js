'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { parseArgs } = require('node:util')
const { gateRun } = require('../cli/gate/gate-run')
const { gateTables } = require('./gate/page')

const HELP = `npm run bench:gate -- [options]

False alarms and power of memwatch gate, with real processes: a worker of a queue, as it is and
with leaks of several sizes, alone and with a busy process on each core beside it. Each run is kept
as a line of bench/gate/runs.ndjson, which git ignores; --write judges them all as memwatch gate does, and writes the
tables of docs/gate.md.

  --only NAME,NAME   these series, as quiet,loaded,leak-64 (default: all)
  --seconds N        length of a run (default: 6)
  --write            write docs/gate.md from the runs that exist; run nothing
  --help

400 runs take 50 minutes. Ends with 1 when a run failed, with 2 for a wrong option.`

const RUNS = path.join(__dirname, 'gate/runs.ndjson')
const PAGE = path.join(__dirname, '../docs/gate.md')
const TABLES = /(<!-- gate: [^\n]*-->\n)[^]*(<!-- end of gate -->)/
const APP = path.join(__dirname, 'gate/app.js')

const ROUNDS = 4

/** @typedef {{ name: string, runs: number, loaded: boolean, env: Record<string, string> }} Series */

/**
 * @param {number} bytes
 * @param {string} kind
 */
const leak = (bytes, kind = 'heap') => ({
  name: `${kind === 'heap' ? 'leak' : kind}-${bytes}`,
  runs: 8,
  loaded: false,
  env: { LEAK_BYTES: String(bytes), LEAK_KIND: kind }
})

/** @type {readonly Series[]} */
const SERIES = [
  { name: 'quiet', runs: 200, loaded: false, env: {} },
  { name: 'loaded', runs: 60, loaded: true, env: {} },
  ...[64, 128, 256, 512, 1024].map(bytes => leak(bytes)),
  leak(1024, 'buffer')
]

/**
 * Starts busy processes, one for each core, with the same scheduling weight as the app.
 * @returns {() => void} function that ends them
 */
function loadCores () {
  const busy = os.cpus().map(() => spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }))
  return () => busy.forEach(child => child.kill('SIGKILL'))
}

/**
 * @param {Series} series
 * @param {{ seconds: number, folder: string, abort: AbortSignal }} options
 */
async function collect ({ name, runs, loaded, env }, { seconds, folder, abort }) {
  const release = loaded ? loadCores() : () => {}
  try {
    for (let number = 1; number <= runs / ROUNDS && !abort.aborted; number++) {
      const { run, fit, exit } = await gateRun({
        command: [process.execPath, APP],
        forSeconds: seconds,
        folder,
        abort,
        say: console.log,
        env: { ...process.env, ...env }
      }, number)
      if (abort.aborted) return
      if (!run || !fit) throw new Error(`${name}: no process reported (${JSON.stringify(exit)})`)
      fs.appendFileSync(RUNS, `${JSON.stringify({ series: name, run, node: fit.node })}\n`)
      console.log(`${name} ${number} of ${runs / ROUNDS}: ${run.readings.length} readings, ${run.requests} requests`)
    }
  } finally {
    release()
  }
}

function writePage () {
  const rows = fs.readFileSync(RUNS, 'utf8').trim().split('\n').map(line => JSON.parse(line))
  const page = fs.readFileSync(PAGE, 'utf8')
  fs.writeFileSync(PAGE, page.replace(TABLES, (_, start, end) => `${start}\n${gateTables(rows)}\n\n${end}`))
}

async function main () {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      seconds: { type: 'string', default: '6' },
      write: { type: 'boolean' },
      help: { type: 'boolean' }
    }
  })
  if (values.help) return console.log(HELP)
  if (values.write) return writePage()
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort())
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-bench-gate-'))
  try {
    const names = values.only?.split(',')
    // The bench measures in rounds, because conditions of the machine change within an hour.
    for (let round = 0; round < ROUNDS; round++) {
      for (const series of SERIES.filter(({ name }) => !names || names.includes(name))) {
        await collect(series, { seconds: Number(values.seconds), folder, abort: abort.signal })
      }
    }
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
}

main().catch(error => {
  console.error(error)
  process.exitCode = 1
})
