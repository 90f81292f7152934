'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')
const { spawnBounded, environment } = require('../support/agent-collector')
const { installAgent, makeToken } = require('../../cli/install-agent')

let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-install-')) })
afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * Modes of all files and folders below.
 * @param {string} at
 * @returns {Record<string, string>}
 */
const modes = at =>
  Object.fromEntries(
    fs
      .readdirSync(at, { recursive: true })
      .map(name => [name, (fs.statSync(path.join(at, String(name))).mode & 0o777).toString(8)])
  )

it('copies the agent with read access for all users, under any umask', () => {
  const before = process.umask(0o077)
  try {
    installAgent(folder)
  } finally {
    process.umask(before)
  }
  const found = modes(path.join(folder, 'agent'))
  expect(found).toMatchObject({
    'index.js': '444',
    collect: '755',
    'collect/gc.js': '444',
    'package.json': '444',
    'node_modules/@memwatch/allocator/index.js': '444',
    'node_modules/@memwatch/allocator/prebuilt/linux-x64.node': '444',
    'node_modules/@memwatch/allocator/prebuilt/linux-arm64.node': '444'
  })
  expect(Object.keys(found).filter(name => /\.(c|h|sh|md)$/.test(name))).toEqual([])
  expect(fs.readdirSync(folder).sort()).toEqual([
    'agent',
    fs.readlinkSync(path.join(folder, 'agent'))
  ])
})

it('a second run changes nothing; another version replaces it at once, and old files stay', () => {
  const { link } = installAgent(folder)
  const first = fs.realpathSync(link)
  const { ino } = fs.statSync(first)
  installAgent(folder)
  expect([fs.realpathSync(link), fs.statSync(first).ino]).toEqual([first, ino])
  fs.renameSync(first, path.join(folder, 'agent-0.0.1-other'))
  fs.rmSync(link)
  fs.symlinkSync('agent-0.0.1-other', link)
  installAgent(folder)
  expect([
    fs.realpathSync(link),
    fs.existsSync(path.join(folder, 'agent-0.0.1-other', 'index.js'))
  ]).toEqual([first, true])
})

it('creates a token once, readable by its user and group', () => {
  const file = makeToken(folder)
  const token = fs.readFileSync(file, 'utf8')
  expect([token.trim().length, fs.statSync(file).mode & 0o777]).toEqual([43, 0o440])
  makeToken(folder)
  expect(fs.readFileSync(file, 'utf8')).toBe(token)
})

it('reports a problem of the folder, and ends with 2', async () => {
  const none = path.join(folder, 'none')
  expect(await memwatch(['install-agent', none])).toMatchObject({
    code: 2,
    stderr: `memwatch: <folder>: cannot write to ${none}: no such folder; create it first\n`
  })
  expect(await memwatch(['install-agent', __filename])).toMatchObject({
    code: 2,
    stderr: `memwatch: <folder>: cannot write to ${__filename}: the path is not a folder\n`
  })
})

// Needs root, to switch to another user.
const asRoot = process.getuid?.() === 0 ? it : it.skip
asRoot('an app of another user reports through it, and obeys commands by the token', async () => {
  fs.chmodSync(folder, 0o777)
  await memwatch(['install-agent', folder])
  const token = path.join(folder, 'token')
  const exporter = await startExporter({
    socket: { path: path.join(folder, 'exporter.sock') },
    token: fs.readFileSync(token, 'utf8').trim()
  })
  const [uid, gid] = [12345, 65532]
  for (const name of ['token', 'exporter.sock']) fs.chownSync(path.join(folder, name), 65532, gid)
  // The child's user must be able to read this Node.js; its code needs no file.
  const app = spawnBounded(
    process.execPath,
    ['--require', path.join(folder, 'agent/index.js'), '-e', 'setInterval(() => {}, 1000)'],
    {
      uid,
      gid,
      cwd: '/',
      env: environment({
        MEMWATCH_SOCKET: path.join(folder, 'exporter.sock'),
        MEMWATCH_TOKEN_FILE: token,
        MEMWATCH_NAME: 'shop',
        MEMWATCH_INTERVAL_SECONDS: '0.2'
      })
    }
  )
  try {
    await eventually(() => exporter.exporter.targets[0]?.frame, Boolean)
    const { code, stdout } = await memwatch([
      'capture',
      'shop',
      'report',
      '--url',
      exporter.url,
      '--token-file',
      token
    ])
    expect([code, stdout]).toEqual([0, expect.stringContaining('report')])
    const { code: refused } = await memwatch(['capture', 'shop', 'report', '--url', exporter.url])
    expect(refused).not.toBe(0)
  } finally {
    app.child.kill('SIGKILL')
    await app.ended
    await exporter.stop()
  }
})
