'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { HeapGraphReader } = require('../engine/snapshot/heap-graph')
const { dominate } = require('../engine/snapshot/dominators')
const { fetchNode } = require('../scripts/fetch-node')
const { fetchPackage } = require('../scripts/fetch-package')
const { cases } = require('./retainers/cases')
const { measure } = require('./retainers/measure')
const { retainersPage } = require('./retainers/page')
const {
  snapshotsOfLeak, snapshotOfWay, snapshotsOfUnseen, largeSnapshot
} = require('./retainers/snapshots')

const HELP = `npm run bench:retainers -- [options]

Heap snapshots whose true holder is known: what memwatch retainers says of each, and beside it
memlab on the same file, one after the other. Results are kept in bench/retainers/results.json, one
row for each file; a new run replaces its row.

  --only NAME,NAME   these cases (default: all, and "large", a snapshot of 550 MiB)
  --no-memlab        memwatch alone
  --write            write docs/retainers.md from all rows
  --help

Snapshots, packages, Node.js binaries and memlab are kept in the tools folder,
~/.cache/memwatch-tools. Linux only: peaks are read from /proc.
Ends with 1 when a run failed, with 2 for a wrong option.

  npm run bench:retainers -- --only debug,large
  npm run bench:retainers -- --write`

const RESULTS = path.join(__dirname, 'retainers/results.json')
const PAGE = path.join(__dirname, '../docs/retainers.md')
const MEMWATCH = path.join(__dirname, '../cli/memwatch.js')
const MEMLAB_PROCESS = path.join(__dirname, 'retainers/memlab-process.js')
const MEMLAB_VERSION = '2.0.5'
/** Heap limit of memlab, which needs more than V8's default. */
const MEMLAB_HEAP_MIB = 12_000
/**
 * Upper bound of compared objects; in a larger file only the objects of its findings are compared.
 */
const COMPARED = 1000
const LARGEST_COMPARED_BYTES = 200 * 2 ** 20
const ALIKE = 0.01

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {'published' | 'own' | 'unseen' | 'large'} kind
 * @property {string} node
 * @property {string} truth
 * @property {number} fileBytes
 * @property {{ seconds: number, cpuSeconds: number, peakBytes: number, sentence: string, isNamed:
 *   boolean, package: string | null, isPackageRight: boolean }} memwatch
 * @property {{ seconds: number, cpuSeconds: number, peakBytes: number, compared: number, alike:
 *   number, isOnPath: boolean } | { failed: string } | null} memlab
 */

/**
 * @param {import('./retainers/cases').Case | typeof LARGE} of
 * @returns {Promise<string[]>} paths of one snapshot, or of an earlier and a later one of an unseen
 *   app
 */
async function takeSnapshots (of) {
  const { name, kind } = of
  if (kind === 'large') return [largeSnapshot()]
  const version = String(of.node)
  if (kind === 'own') return [snapshotOfWay(name, fetchNode(version), version)]
  if (kind === 'unseen') return snapshotsOfUnseen(of, fetchNode(version), version)
  return [(await snapshotsOfLeak(name))[1]]
}

/**
 * @param {import('./retainers/cases').Case | typeof LARGE} of
 * @param {boolean} withMemlab
 * @returns {Promise<Row>}
 */
async function makeRow (of, withMemlab) {
  const files = await takeSnapshots(of)
  const file = files[files.length - 1]
  const told = await measure([process.execPath, MEMWATCH, 'retainers', ...files, '--json'])
  if (told.status !== 0) throw new Error(`memwatch on ${of.name}: ${told.stderr}`)
  const { findings } = JSON.parse(told.stdout)
  const [first] = findings
  const text = `${first?.sentence}\n${JSON.stringify(first?.path)}`
  const row = {
    name: of.name,
    kind: of.kind,
    node: of.node ?? '',
    truth: of.truth,
    fileBytes: fs.statSync(file).size,
    memwatch: {
      seconds: told.seconds,
      cpuSeconds: told.cpuSeconds,
      peakBytes: told.peakBytes,
      sentence: first?.sentence ?? '',
      isNamed: of.holder.test(text),
      package: first?.package ?? null,
      isPackageRight: (first?.package ?? null) === of.package
    },
    memlab: null
  }
  return withMemlab ? { ...row, memlab: await runMemlab(file, findings) } : row
}

const LARGE = Object.freeze({
  name: 'large',
  kind: /** @type {const} */ ('large'),
  node: process.versions.node,
  holder: /Map `carts`/,
  package: null,
  truth: 'carts of bench/retainers/large-app.js'
})

/**
 * @param {string} file
 * @param {any[]} findings of memwatch
 * @returns {Promise<Row['memlab']>}
 */
async function runMemlab (file, findings) {
  const main = fetchPackage('@memlab/heap-analysis', MEMLAB_VERSION, 'dist/index.js')
  const own = fs.statSync(file).size > LARGEST_COMPARED_BYTES ? new Map() : readRetained(file)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'retainers-'))
  const ids = path.join(folder, 'ids.json')
  const traced = findings.slice(0, 1).map(({ exampleId }) => exampleId)
  fs.writeFileSync(ids, JSON.stringify({ retained: [...own.keys()], traced }))
  const command = [process.execPath, `--max-old-space-size=${MEMLAB_HEAP_MIB}`, MEMLAB_PROCESS]
  const told = await measure([...command, main, file, ids])
  fs.rmSync(folder, { recursive: true })
  const { seconds, cpuSeconds, peakBytes } = told
  if (told.status !== 0) return { failed: told.stderr.trim().split('\n').at(-1) ?? '' }
  const { retainedBytes, traces } = JSON.parse(told.stdout.trim().split('\n').at(-1) ?? '')
  const alike = [...own.values()].filter((bytes, i) =>
    Math.abs(retainedBytes[i] - bytes) <= bytes * ALIKE).length
  const name = findings[0]?.holder.name ?? findings[0]?.holder.kind
  const isOnPath = Boolean(traces[0]?.includes(name))
  return { seconds, cpuSeconds, peakBytes, compared: own.size, alike, isOnPath }
}

/**
 * @param {string} file
 * @returns {Map<number, number>} retained bytes of some objects that retain others, by id
 */
function readRetained (file) {
  const reader = new HeapGraphReader({ allowedBytes: Infinity })
  reader.write(fs.readFileSync(file))
  const graph = reader.end()
  const { retainedBytes, firstChild } = dominate(graph)
  const object = graph.layout.nodeTypes.indexOf('object')
  const nodes = Array.from({ length: graph.nodeCount }, (_, n) => n)
    .filter(n => graph.nodeType[n] === object && firstChild[n + 1] > firstChild[n])
  const stride = Math.max(1, Math.floor(nodes.length / COMPARED))
  return new Map(
    nodes
      .filter((_, i) => i % stride === 0)
      .slice(0, COMPARED)
      .map(n => [graph.nodeId[n], retainedBytes[n]])
  )
}

/** @returns {Row[]} */
const readRows = () =>
  fs.existsSync(RESULTS) ? JSON.parse(fs.readFileSync(RESULTS, 'utf8')) : []

const keyOf = (/** @type {{ kind: string, name: string, node: string }} */ { kind, name, node }) =>
  `${kind} ${name} ${kind === 'own' || kind === 'unseen' ? node : ''}`

/** @param {Row} row */
function keep (row) {
  const rows = [...readRows().filter(other => keyOf(other) !== keyOf(row)), row]
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  fs.writeFileSync(`${RESULTS}.part`, `${JSON.stringify(rows, null, 2)}\n`)
  fs.renameSync(`${RESULTS}.part`, RESULTS)
}

/** @param {Row} row */
function describe ({ name, node, memwatch, memlab }) {
  const size = (/** @type {number} */ bytes) => `${Math.round(bytes / 2 ** 20)} MiB`
  const beside = !memlab
    ? ''
    : 'failed' in memlab
      ? `; memlab failed: ${memlab.failed}`
      : `; memlab ${memlab.seconds.toFixed(1)} s, ${size(memlab.peakBytes)}, ` +
        `${memlab.alike} of ${memlab.compared} alike, ${memlab.isOnPath ? 'same path' : 'OTHER PATH'}`
  return `${name} ${node}: ${memwatch.isNamed ? 'named' : 'NOT NAMED'}, package ` +
    `${memwatch.isPackageRight ? 'right' : 'WRONG'} (${memwatch.package}), ` +
    `${memwatch.seconds.toFixed(1)} s, ${size(memwatch.peakBytes)}${beside}\n  ${memwatch.sentence}`
}

async function main () {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      'no-memlab': { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) return console.log(HELP)
  const all = [...cases, LARGE]
  const names = values.only?.split(',') ?? (values.write ? [] : all.map(({ name }) => name))
  for (const name of names) {
    if (!all.some(of => of.name === name)) throw new RangeError(`--only: no case called ${name}`)
  }
  for (const of of all.filter(({ name }) => names.includes(name))) {
    try {
      const row = await makeRow(of, !values['no-memlab'] && of.kind !== 'own' && of.kind !== 'unseen')
      keep(row)
      console.log(describe(row))
    } catch (error) {
      console.error(`${of.name}: ${/** @type {Error} */ (error).message}`)
      process.exitCode = 1
    }
  }
  if (values.write) {
    const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: __dirname })
    const of = { commit: commit.toString().trim(), memlab: MEMLAB_VERSION }
    fs.writeFileSync(PAGE, retainersPage(readRows(), of))
  }
}

main().catch(error => {
  const isUsage = error instanceof RangeError || error.code?.startsWith('ERR_PARSE')
  console.error(isUsage ? error.message : error)
  process.exitCode = 2
})
