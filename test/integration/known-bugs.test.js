'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { readMallocAddons } = require('../../exporter/captures/installed-packages')
const { LEAKY_NODE } = require('../../scripts/fetch-node')
const { toolsFolder } = require('../../scripts/tools-folder')
const { spawnWatched } = require('../support/agent-collector')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')
const { runnersWith } = require('../support/tools')

/** Known memory bugs in real processes: in installed packages, and in Node.js itself. */

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-known-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))
/**
 * @param {string} name
 * @param {object} manifest
 */
function install (name, manifest) {
  const at = path.join(folder, 'node_modules', name)
  fs.mkdirSync(at, { recursive: true })
  fs.writeFileSync(path.join(at, 'package.json'), JSON.stringify({ name, ...manifest }))
}
fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'shop' }))
install('debug', { version: '4.2.0' })
install('axios', { version: '0.22.0' })
install('multer', { version: { hostile: true } })
install('@shop/native', { version: '3.2.1' })
const ADDON = path.join(__dirname, `../../allocator/prebuilt/${process.platform}-${process.arch}.node`)
const hasAddon = fs.existsSync(ADDON)
if (hasAddon) fs.copyFileSync(ADDON, path.join(folder, 'node_modules/@shop/native/native.node'))
install('@shop/fast', { version: '1.0.0' })
// The loader ignores data after the last section, so the test appends a message of mimalloc to the
// file.
if (hasAddon) {
  fs.writeFileSync(path.join(folder, 'node_modules/@shop/fast/fast.node'),
    Buffer.concat([fs.readFileSync(ADDON), Buffer.alloc(2 ** 20), Buffer.from('mimalloc: error: ')]))
}
fs.writeFileSync(path.join(folder, 'app.js'), `
  if (${hasAddon}) require('@shop/native/native.node')
  if (${hasAddon}) require('@shop/fast/fast.node')
  setInterval(() => {}, 1000)`)
fs.mkdirSync(path.join(folder, 'node_modules/mem'))
fs.symlinkSync('/etc/passwd', path.join(folder, 'node_modules/mem/package.json'))

const leakyNode = path.join(
  toolsFolder(), 'nodes', LEAKY_NODE,
  'node_modules', `node-${process.platform}-${process.arch}`, 'bin/node'
)
const withLeakyNode = runnersWith('known bugs of a Node.js that leaks', fs.existsSync(leakyNode)
  ? undefined
  : `Node.js ${LEAKY_NODE} is not in ${toolsFolder()}: node scripts/setup-tools.js fetches it`)

describe('memwatch audit TARGET', () => {
  /** @type {Awaited<ReturnType<typeof startExporter>>} */
  let exporter
  /** @type {ReturnType<typeof spawnWatched>} */
  let app
  beforeAll(async () => {
    exporter = await startExporter()
    app = spawnWatched({
      args: [path.join(folder, 'app.js')],
      socket: exporter.socket.path,
      cwd: folder,
      env: { MEMWATCH_NAME: 'shop' },
      timeoutMs: 60_000
    })
    await eventually(() => exporter.exporter.targets[0]?.frame, Boolean)
  })
  afterAll(async () => {
    app.child.kill('SIGKILL')
    await app.ended
    await exporter.stop()
  })
  const audit = (/** @type {string[]} */ ...args) =>
    memwatch(['audit', ...args, '--url', exporter.url])

  it('names bugs of the installed versions, and ends with 3', async () => {
    const { code, stdout, stderr } = await audit('shop', '--json')
    expect([code, stderr]).toEqual([3, ''])
    const { node, packages, addons, bugs } = JSON.parse(stdout)
    expect(node).toBe(process.versions.node)
    if (hasAddon) expect(addons).toContainEqual({ name: '@shop/native', version: '3.2.1' })
    expect(packages).toBeGreaterThanOrEqual(2)
    expect(bugs).toContainEqual(expect.objectContaining({
      id: 'debug', version: '4.2.0', fixedIn: '4.3.0', kind: 'bug'
    }))
    expect(bugs.filter(({ id, version }) => id === 'axios-cancel-token' && version === '0.22.0'))
      .toEqual([])
  })

  it('recognizes loaded addons with their own malloc by their files', () => {
    const [{ hello }] = exporter.exporter.targets
    expect(readMallocAddons(hello)).toEqual(hasAddon ? ['@shop/fast'] : [])
  })

  it('ends with 2 for an unknown target', async () => {
    const { code, stderr } = await audit('nobody')
    expect([code, stderr]).toEqual([2, expect.stringContaining('unknown target; known targets: shop')])
  })
})

withLeakyNode.describe(`an app on Node.js ${LEAKY_NODE} that streams Blobs`, () => {
  const STREAM_BLOBS = `
    const body = Buffer.alloc(100_000, 7)
    const upload = () => new Response(new Blob([body]).stream()).arrayBuffer()
    setInterval(() => { for (let i = 0; i < 3; i++) upload() }, 50)`

  it('shows its known bug as the likely cause, with thread and fixed version', async () => {
    fs.writeFileSync(path.join(folder, 'upload.js'), STREAM_BLOBS)
    const { stdout } = await memwatch([
      'run', '--for', '80', '--json', '--', leakyNode, path.join(folder, 'upload.js')
    ])
    const [{ headline, verdicts }] = JSON.parse(stdout).targets
    const notes = verdicts.flatMap(({ knownBugs }) => knownBugs)
    expect(notes).toContainEqual(expect.objectContaining({
      id: 'blob-stream',
      package: 'node',
      version: LEAKY_NODE,
      fixedIn: '24.20.0',
      thread: 'https://github.com/nodejs/node/issues/63574',
      likely: true
    }))
    expect(headline.text).toContain('This is likely the cause: a suspect leads there.')
  }, 180_000)
})
