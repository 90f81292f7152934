'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { apps } = require('@memwatch/lab')

const MEMWATCH = path.join(__dirname, '../../cli/memwatch.js')
/** A Node.js without the package of the apps. */
const WITHOUT_LAB = `
const Module = require('node:module')
const resolve = Module._resolveFilename
Module._resolveFilename = function (request, parent, ...rest) {
  const isLab = request === '@memwatch/lab' || request.startsWith('@memwatch/lab/')
  return resolve.call(this, isLab ? 'memwatch-lab-that-is-absent' : request, parent, ...rest)
}`

describe('memwatch simulate without the package of its apps', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-simulate-'))
  const hook = path.join(folder, 'without-lab.js')
  fs.writeFileSync(hook, WITHOUT_LAB)
  afterAll(() => fs.rmSync(folder, { recursive: true }))
  const memwatch = (...args) =>
    spawnSync(process.execPath, ['--require', hook, MEMWATCH, ...args], { encoding: 'utf8' })

  it('names the missing package', () => {
    const { status, stderr } = memwatch('simulate', 'healthy')
    expect(stderr).toBe(
      'memwatch: simulate: the package with the apps is missing; run npm install @memwatch/lab\n'
    )
    expect(status).toBe(2)
  })

  it('still prints its help', () => {
    const { status, stdout } = memwatch('simulate', '--help')
    expect(stdout).toContain('--node-option')
    expect(stdout).toContain('npm install @memwatch/lab')
    expect(status).toBe(0)
  })

  it('does not affect other commands, not even those that use cgroups', () => {
    const { status, stderr } = memwatch('try', '--memory', 'much', '--', 'true')
    expect(stderr).toContain('--memory')
    expect(stderr).not.toContain('@memwatch/lab')
    expect(status).toBe(2)
  })
})

describe('the names of apps', () => {
  const memwatch = (...args) =>
    spawnSync(process.execPath, [MEMWATCH, 'simulate', ...args], { encoding: 'utf8' })

  it('start with healthy if the app has neither a finding nor an opportunity', () => {
    // The command refuses --fixed, names the app, and does not start it.
    const { status, stderr } = memwatch('healthy', '--fixed')
    expect(stderr).toContain('--fixed: healthy-steady has no repaired form')
    expect(status).toBe(2)
  })

  it('are separated from their titles in --help', () => {
    const { stdout } = memwatch('--help')
    const lines = stdout.split('\n').map(line => line.trim().split(/ {2,}/))
    for (const { id, title } of apps) expect(lines).toContainEqual([id, title])
  })
})
