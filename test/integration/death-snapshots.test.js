'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const Ajv = require('ajv/dist/2020').default
const { DataFolder } = require('../../exporter/data-folder/data-folder')
const { report: schema } = require('../../exporter/expose/schemas')
const { NODES, spawnWatched, versionOf } = require('../support/agent-collector')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch, MEMWATCH } = require('../support/memwatch')

/** @type {string[]} */
const folders = []
afterAll(() => folders.forEach(folder => fs.rmSync(folder, { recursive: true })))

/** @param {string} name */
function makeFolder (name) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), name)))
  folders.push(folder)
  return folder
}

const SNAPSHOT = '--heapsnapshot-near-heap-limit=1'
const SMALL_HEAP = '--max-old-space-size=40'
/**
 * An app that retains orders until its heap is full, over many turns of the loop, so that the agent
 * can report.
 */
const APP = `
const orders = new Map()
class Order { constructor (n) { this.n = n; this.rows = Array.from({ length: 50 }, (_, row) => row + n / 7) } }
setInterval(() => { for (let i = 0; i < 200; i++) orders.set(orders.size, new Order(i)) }, 10)
`
const HELD = /[\d,]+ Order objects, \d+ MiB, held by Map `orders` in .*app\.js:\d+/

/** Writes an app to a folder of its own. @param {string} [code] */
function writeApp (code = APP) {
  const folder = makeFolder('death-snapshot-app-')
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "name": "shop" }')
  fs.writeFileSync(path.join(folder, 'app.js'), code)
  return folder
}

const hasFlag = (node, flag) =>
  execFileSync(node, ['--v8-options'], { encoding: 'utf8' }).includes(`${flag} `)

const snapshotsIn = folder => fs.readdirSync(folder).filter(name => name.endsWith('.heapsnapshot'))

/**
 * Runs a command under `memwatch run` until it ends.
 * @param {string} cwd
 * @param {string[]} command
 * @returns {Promise<{ report: any, stdout: string }>} report: valid by its schema
 */
async function runWatched (cwd, command) {
  const file = path.join(cwd, 'report.json')
  const child = spawn(process.execPath, [MEMWATCH, 'run', '--report', file, '--', ...command], {
    cwd, env: { ...process.env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'pipe']
  })
  let stdout = ''
  child.stdout.on('data', chunk => { stdout += chunk })
  child.stderr.resume()
  await once(child, 'close')
  const report = JSON.parse(fs.readFileSync(file, 'utf8'))
  expect(new Ajv().compile(schema)(report)).toBe(true)
  return { report, stdout }
}

describe.each(NODES.map(node => [versionOf(node), node]))('memwatch run, on Node %s', (_, node) => {
  /** @typedef {(cwd: string) => { flags: string[], written: string }} Place */
  /** @type {[string, Place][]} */
  const places = [
    ['the working directory', folder => ({ flags: [SNAPSHOT], written: folder })],
    ['the folder of --diagnostic-dir', () => {
      const written = makeFolder('diagnostics-')
      return { flags: [SNAPSHOT, `--diagnostic-dir=${written}`], written }
    }]
  ]
  if (hasFlag(node, '--heap-snapshot-on-oom')) {
    places.push(['the working directory by V8 itself', folder => ({
      flags: ['--heap-snapshot-on-oom'], written: folder
    })])
  }
  it.each(places)('names the holder in a full heap by a snapshot in %s', async (_, place) => {
    const cwd = writeApp()
    const { flags, written } = place(cwd)
    const command = [node, SMALL_HEAP, ...flags, 'app.js']
    const { report, stdout } = await runWatched(cwd, command)
    const [snapshot] = snapshotsIn(written)
    const [death] = report.deaths
    expect(death).toMatchObject({
      reason: 'heap_oom',
      holders: { file: path.join(written, snapshot), captureId: null, refused: null }
    })
    expect(death.holders.piles[0].text).toMatch(/[\d,]+ Order objects, .* held by Map `orders`/)
    expect(death.holders.piles[0].path).toContainEqual('variable orders → Map')
    const leaks = report.targets[0].verdicts.filter(({ diagnosis, state }) =>
      ['js-heap-leak', 'heap-limit-thrash'].includes(diagnosis) &&
      ['suspected', 'confirmed'].includes(state))
    const textOf = ({ holders }) => holders?.piles[0].text
    expect(leaks.map(textOf)).toEqual(leaks.map(() => textOf(death)))
    // The snapshot stays in the folder that the operator chose for V8.
    expect(snapshotsIn(written)).toEqual([snapshot])
    expect(stdout.replace(/\s+/g, ' ')).toMatch(/[\d,]+ Order objects, .* held by Map `orders`/)
  }, 120_000)
})

it('memwatch run names the holder even for a process that never reported', async () => {
  const loop = APP.replace('setInterval(() => {', 'while (true) {').replace('}, 10)', '}')
  const cwd = writeApp(loop.replace('class', 'exports.find = n => orders.get(n)\nclass'))
  const command = [process.execPath, SNAPSHOT, SMALL_HEAP, 'app.js']
  const { report, stdout } = await runWatched(cwd, command)
  expect(report.targets).toEqual([])
  expect(report.ending.holders.piles[0].text).toMatch(HELD)
  expect(report.ending.advice).not.toContain('--heapsnapshot-near-heap-limit')
  expect(stdout.replace(/\s+/g, ' ')).toMatch(/[\d,]+ Order objects, .* held by Map `orders`/)
}, 60_000)

describe('an exporter', () => {
  /** @type {Awaited<ReturnType<typeof startExporter>>} */
  let exporter
  afterEach(() => exporter.stop())
  const json = async at => (await fetch(`${exporter.url}/api/v1/${at}`)).json()

  /**
   * Starts an app that dies while the exporter watches it.
   * @param {string[]} flags
   * @param {object} [env]
   */
  async function die (flags, env = {}) {
    const cwd = writeApp()
    const { ended } = spawnWatched({
      node: NODES[0],
      args: [SNAPSHOT, SMALL_HEAP, ...flags, path.join(cwd, 'app.js')],
      socket: exporter.socket.path,
      env: { MEMWATCH_NAME: 'shop', MEMWATCH_INTERVAL_SECONDS: '0.2', ...env },
      timeoutMs: 60_000
    })
    await ended
  }
  const explained = () => eventually(
    () => json('deaths'), ([death]) => Boolean(death?.holders), 60_000
  )

  it('finds the snapshot in a mounted volume, and retains its finding across a restart', async () => {
    const snapshotDir = makeFolder('volume-')
    const dataDir = makeFolder('memwatch-data-')
    exporter = await startExporter({
      autoCaptures: false, snapshotDir, dataFolder: new DataFolder(dataDir)
    })
    await die([`--diagnostic-dir=${snapshotDir}`])
    const [death] = await explained()
    expect(death.holders.piles[0].text).toMatch(HELD)
    expect(death.advice ?? '').not.toContain('--heapsnapshot-near-heap-limit')
    const { stdout } = await memwatch(['last-death', 'shop', '--url', exporter.url])
    expect(stdout).toContain(`Held, by a heap snapshot that V8 wrote: ${snapshotDir}`)
    expect(stdout).toContain(death.holders.piles[0].text)

    await exporter.stop()
    exporter = await startExporter({
      autoCaptures: false, dataFolder: new DataFolder(dataDir)
    })
    expect((await json('deaths'))[0].holders).toEqual(death.holders)
  }, 120_000)

  it('makes names from a snapshot plain', async () => {
    exporter = await startExporter({ autoCaptures: false })
    const folder = makeFolder('hostile-')
    const file = path.join(folder, 'hostile.heapsnapshot')
    const evil = '\u001b[2J\u202egnp\n---'
    const code = `const evil = ${JSON.stringify(evil)}
      globalThis[evil] = []
      const Evil = { [evil]: class { constructor (n) { this.rows = Array(200).fill(n / 7) } } }[evil]
      for (let n = 0; n < 500; n++) globalThis[evil].push(new Evil(n))
      require('v8').writeHeapSnapshot(process.argv[1])`
    execFileSync(process.execPath, ['-e', code, file])
    const { retainersOf } = require('../../exporter/captures/retainers')
    const { refused, piles: [pile] } = await retainersOf(file)
    expect(refused).toBe(null)
    expect(pile.count).toBe(500)
    expect(pile.text).toContain('[2J')
    for (const text of [pile.text, pile.className, ...pile.path]) {
      // eslint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u001f\u202a-\u202e]/)
    }
  })

  it('gives the reason for an unreadable snapshot', async () => {
    exporter = await startExporter({ autoCaptures: false, snapshotDir: makeFolder('volume-') })
    const { findSnapshotFiles } = require('../../exporter/deaths/snapshot-files')
    const { retainersOf } = require('../../exporter/captures/retainers')
    const folder = makeFolder('volume-')
    const name = 'Heap.20260101.120000.4711.0.001.heapsnapshot'
    fs.writeFileSync(path.join(folder, name), '{"snapshot":')
    fs.symlinkSync('/etc/passwd', path.join(folder, name.replace('001', '002')))
    fs.writeFileSync(path.join(folder, name.replace('4711', '4712')), '{}')
    const hello = {
      pid: 4711, threadId: 0, startedAtUnixMs: Date.now() - 60_000, execArgv: [], nodeOptions: []
    }
    const lastFrameUnixMs = Date.now()
    const find = hello => findSnapshotFiles([folder], { hello, lastFrameUnixMs })
    const found = find(hello)
    expect(found.map(({ file }) => path.basename(file))).toEqual([name])
    expect((await retainersOf(found[0].file)).refused).toMatch(/ends within/)
    expect((await retainersOf(path.join(folder, name.replace('001', '002')))).refused).toMatch(
      /expected a regular file/
    )
    const later = { ...hello, startedAtUnixMs: Date.now() + 60_000 }
    expect(find(later)).toEqual([])
    expect(find({ ...hello, threadId: 1 })).toEqual([])
  })
})
