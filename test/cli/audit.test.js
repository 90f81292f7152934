'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { execFile, execFileSync } = require('node:child_process')
const { readNpm, readPnpm, readYarn } = require('../../cli/audit/lockfile')
const { MEMWATCH } = require('../support/memwatch')

/** @type {string} */
let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-audit-')) })
afterEach(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string[]} args
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
const audit = (...args) => new Promise(resolve => {
  execFile(process.execPath, [MEMWATCH, 'audit', ...args], { cwd: folder }, (error, stdout, stderr) =>
    resolve({ code: Number(error?.code ?? 0), stdout, stderr }))
})
/**
 * @param {string} name
 * @param {string | object} content
 */
const write = (name, content) => fs.writeFileSync(
  path.join(folder, name), typeof content === 'string' ? content : JSON.stringify(content))
/** A lockfile as npm 7 writes it. @param {Record<string, string>} packages */
const lockfile = packages => ({
  lockfileVersion: 3,
  packages: Object.fromEntries([
    ['', { name: 'shop' }],
    ...Object.entries(packages).map(([name, version]) => [`node_modules/${name}`, { version }])
  ])
})
/** A version without a known bug. */
const NODE = ['--node', '24.21.0']
const LEAKY = [{ name: 'debug', version: '4.2.0' }, { name: '@napi-rs/canvas', version: '0.1.70' }]

describe('memwatch audit', () => {
  it('names the known bugs of a lockfile, and ends with 3', async () => {
    write('package-lock.json', lockfile({ debug: '4.2.0', lodash: '4.17.21' }))
    const { code, stdout, stderr } = await audit(...NODE)
    expect([code, stderr]).toEqual([3, ''])
    expect(stdout).toContain('package-lock.json: Node.js 24.21.0 (--node), 2 packages: 1 known bug\n')
    expect(stdout).toContain('debug keeps each instance it made (debug 4.2.0)')
    expect(stdout).toContain('Fixed in debug 4.3.0.')
    expect(stdout).toContain('https://github.com/debug-js/debug/issues/678')
  })

  it('ends with 0 if every version is fixed, even if it lists traps', async () => {
    write('package-lock.json', lockfile({ debug: '4.3.0', 'express-session': '1.18.1' }))
    const { code, stdout } = await audit('package-lock.json', ...NODE, '--json')
    const { bugs, packages } = JSON.parse(stdout)
    expect([code, packages]).toEqual([0, 2])
    expect(bugs.every(({ kind }) => kind === 'trap')).toBe(true)
    expect(bugs.map(({ id }) => id)).toContain('express-session')
  })

  it('reads the version of Node.js from --node, from .nvmrc, or from its own process', async () => {
    write('package-lock.json', lockfile({}))
    write('.nvmrc', 'v24.17.0\n')
    const byFile = JSON.parse((await audit('--json')).stdout)
    expect([byFile.node, byFile.nodeFrom]).toEqual(['24.17.0', '.nvmrc'])
    expect(byFile.bugs.map(({ id }) => id)).toContain('blob-stream')
    const byOption = JSON.parse((await audit('--json', '--node', 'v24.20.0')).stdout)
    expect(byOption.bugs.map(({ id }) => id)).not.toContain('blob-stream')
    write('.nvmrc', 'lts/*\n')
    expect(JSON.parse((await audit('--json')).stdout).node).toBe(process.versions.node)
  })

  it.each([
    ['an option', ['--node', 'latest'], /--node: expected a version such as 24\.17\.0, got latest/],
    ['a folder without one', ['.'], /has no lockfile; name one, such as package-lock\.json/],
    ['an unknown file name', ['notes.txt'], /notes\.txt: expected a lockfile: package-lock\.json/],
    ['what is no JSON', ['package-lock.json'], /cannot read package-lock\.json/],
    ['no file and no exporter', ['shop', '--url', 'http://127.0.0.1:1'], /no exporter answers/]
  ])('ends with 2 for %s', async (_, args, message) => {
    if (args[0] === 'package-lock.json') write('package-lock.json', '{"packages"')
    if (args[0] === 'notes.txt') write('notes.txt', 'x')
    if (args[0] === '--node') write('package-lock.json', lockfile({}))
    const { code, stderr } = await audit(...args)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr.split('\n').length).toBeLessThan(4)
  })

  it.each(['./missing', '/missing/folder', 'package-lock.json', 'yarn.lock'])(
    'reports that %s is missing, without asking an exporter', async name => {
      const { code, stderr } = await audit(name)
      expect([code, stderr]).toEqual([2, `memwatch: cannot read ${name}: no such file\n`])
    })

  it('refuses a FIFO and a file that is too large, at once', async () => {
    execFileSync('mkfifo', [path.join(folder, 'yarn.lock')])
    const fifo = await audit('yarn.lock')
    expect([fifo.code, fifo.stderr]).toEqual([2, expect.stringContaining('expected a regular file')])
    write('pnpm-lock.yaml', '')
    fs.truncateSync(path.join(folder, 'pnpm-lock.yaml'), 65 * 2 ** 20)
    const large = await audit('pnpm-lock.yaml')
    expect([large.code, large.stderr]).toEqual([2, expect.stringContaining('at most')])
  })
})

describe('a lockfile', () => {
  it.each([
    ['npm 5', readNpm, JSON.stringify({
      lockfileVersion: 1,
      dependencies: {
        log: { version: 'npm:debug@4.2.0' },
        parent: { version: '1.0.0', dependencies: { '@napi-rs/canvas': { version: '0.1.70' } } }
      }
    }), [LEAKY[0], { name: 'parent', version: '1.0.0' }, LEAKY[1]]],
    ['npm 7', readNpm, JSON.stringify({
      packages: {
        '': { name: 'shop', version: '1.0.0' },
        'node_modules/log': { name: 'debug', version: '4.2.0' },
        'node_modules/a/node_modules/@napi-rs/canvas': { version: '0.1.70' },
        'packages/own': { name: 'own', version: '1.0.0' },
        'node_modules/own': { resolved: 'packages/own', link: true }
      }
    }), LEAKY],
    ['pnpm 7', readPnpm, `lockfileVersion: 5.4

packages:

  /debug/4.2.0_supports-color@7.2.0:
    resolution: {integrity: sha512-x}
    dependencies:
      ms: 2.1.3

  /@napi-rs/canvas/0.1.70:
    resolution: {integrity: sha512-x}
`, LEAKY],
    ['pnpm 8', readPnpm, `lockfileVersion: '6.0'
packages:

  /debug@4.2.0(supports-color@7.2.0):
    resolution: {integrity: sha512-x}

  /@napi-rs/canvas@0.1.70:
    resolution: {integrity: sha512-x}
`, LEAKY],
    ['pnpm 9', readPnpm, `lockfileVersion: '9.0'

importers:

  .:
    dependencies:
      debug:
        specifier: 4.2.0
        version: 4.2.0

packages:

  debug@4.2.0:
    resolution: {integrity: sha512-x}

  '@napi-rs/canvas@0.1.70':
    resolution: {integrity: sha512-x}

snapshots:

  debug@4.2.0:
    dependencies:
      ms: 2.1.3
`, LEAKY],
    ['Yarn 1', readYarn, `# THIS IS AN AUTOGENERATED FILE. DO NOT EDIT THIS FILE DIRECTLY.
# yarn lockfile v1


"@napi-rs/canvas@^0.1.70":
  version "0.1.70"
  resolved "https://registry.example/x.tgz"

debug@^4.1.0, debug@^4.2.0:
  version "4.2.0"
  dependencies:
    ms "2.1.2"

"log@npm:debug@^4.2.0":
  version "4.2.0"
`, [LEAKY[1], LEAKY[0], LEAKY[0]]],
    ['Yarn 4', readYarn, `# This file is generated by running "yarn install"
__metadata:
  version: 8
  cacheKey: 10c0

"@napi-rs/canvas@npm:^0.1.70":
  version: 0.1.70
  resolution: "@napi-rs/canvas@npm:0.1.70"

"debug@npm:^4.1.0, debug@npm:^4.2.0":
  version: 4.2.0
  dependencies:
    ms: "npm:2.1.2"
`, [LEAKY[1], LEAKY[0]]]
  ])('of %s is read', (_, read, text, packages) => {
    expect(read(text)).toEqual(packages)
  })

  it.each([
    [readNpm, '{}'], [readNpm, 'null'], [readNpm, '[]'], [readPnpm, 'packages:'], [readYarn, 'debug:']
  ])('is refused by %p if it is invalid: %s', (read, text) => {
    expect(() => read(text)).toThrow(/it (has|lacks)/)
  })

  it('with hostile content is read in bounded time, and yields only texts', () => {
    const started = performance.now()
    expect(readNpm(JSON.stringify({ packages: { 'node_modules/a': null, 'node_modules/b': { version: 3 } } })))
      .toEqual([])
    const nested = `${'{"dependencies":{"a":'.repeat(300)}1${'}}'.repeat(300)}`
    expect(() => readNpm(nested)).toThrow(/are nested deeper than/)
    expect(readPnpm(`lockfileVersion: 9\npackages:\n${'  a@1:b'.repeat(200_000)}\n`)).toEqual([])
    expect(readYarn(`# yarn lockfile v1\n${'a@'.repeat(500_000)}\n${'  version'.repeat(100_000)}`)).toEqual([])
    expect(performance.now() - started).toBeLessThan(10_000)
  })
})
