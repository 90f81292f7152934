'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { Installed, PRELOADED, bytesBelow, writeApp } = require('../install/installed')
const { folders, nameOf } = require('../../scripts/packages')
const { version } = require('../../package.json')

const ROOT = path.join(__dirname, '../..')
/** Limit of `unpackedSize` in `npm pack -w agent --dry-run --json`: the sum of all files. */
const MOST_AGENT_BYTES = 256_000
const MOST_COMMAND_LINE_BYTES = 30_000_000
/** Modules that the command line loads on use. */
const ABSENT = ['lab', 'mcp', 'otlp']

// Installs the packed files in an empty folder, as a user of this machine's Node.js would. npm run
// test:install covers every Node.js and package manager.
describe('packed and installed in the folder of an app', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-install-'))
  const modules = path.join(folder, 'node_modules')
  const packed = name => `file:${path.join(folder, 'packed', `memwatch-${name}-${version}.tgz`)}`
  const installed = new Installed(folder, process.execPath)

  beforeAll(() => {
    const inFolders = folders.filter(name => !ABSENT.includes(name))
    writeApp(folder, {
      dependencies: {
        ...Object.fromEntries(inFolders.map(name => [nameOf(name), packed(name)])),
        memwatch: packed('agent')
      }
    })
    fs.mkdirSync(path.join(folder, 'packed'))
    execFileSync('npm', [
      'pack', '--silent', '--pack-destination', path.join(folder, 'packed'),
      ...inFolders.flatMap(name => ['-w', name])
    ], { cwd: ROOT })
    execFileSync('npm', [
      'install', '--silent', '--engine-strict', '--prefer-offline', '--no-audit', '--no-fund'
    ], { cwd: folder })
  }, 120_000)
  afterEach(() => installed.stop())
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

  it('reports on an app that it runs', () => installed.checkRun(), 60_000)

  it('its exporter gets frames of preloaded apps', () => installed.checkApps(PRELOADED), 60_000)

  it('has the licence of each package, no tests, and the documented size', () => {
    const files = fs.readdirSync(path.join(modules, '@memwatch'), { recursive: true }).map(String)
    for (const name of ['agent', 'allocator', 'cli', 'engine', 'exporter']) {
      expect(files).toEqual(
        expect.arrayContaining([`${name}/LICENSE`, `${name}/README.md`, `${name}/package.json`])
      )
    }
    expect(files.filter(file => /\.d\.m?ts$|tsconfig|\.test\.js/.test(file))).toEqual([])
    expect(bytesBelow(path.join(modules, 'memwatch'))).toBeLessThan(MOST_AGENT_BYTES)
    expect(bytesBelow(modules)).toBeLessThan(MOST_COMMAND_LINE_BYTES)
    for (const scope of ['@modelcontextprotocol', '@opentelemetry']) {
      expect(fs.existsSync(path.join(modules, scope))).toBe(false)
    }
  })

  it.each([
    ['exporter', ['exporter', '--otlp', 'http://127.0.0.1:4318'], 'npm install @memwatch/otlp'],
    ['mcp', ['mcp'], 'npm install @memwatch/mcp'],
    ['simulate', ['simulate', 'healthy'], 'npm install @memwatch/lab']
  ])('%s names the package to install if a part is absent', async (_, args, advice) => {
    const { code, stderr } = await installed.run('memwatch', args)
    expect(stderr).toContain(advice)
    expect(stderr.trim().split('\n').length).toBe(1)
    expect(code).toBe(2)
  })

  it('the agent’s command starts the command line, or names its package', async () => {
    const command = path.join(modules, 'memwatch/command.js')
    expect(await installed.run('node', [command, '--version'])).toMatchObject({
      code: 0,
      stdout: `${version}\n`
    })
    const away = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-alone-'))
    fs.cpSync(path.dirname(command), away, { recursive: true })
    const { code, stderr } = await new Installed(away, process.execPath)
      .run('node', ['command.js', 'run'])
    fs.rmSync(away, { recursive: true })
    expect(stderr).toContain('npm install --save-dev @memwatch/cli')
    expect(code).toBe(2)
  })
})
