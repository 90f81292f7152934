'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse } = require('yaml')
const { outputs } = require('../../scripts/release/assemble')
const { describeWithGoTools } = require('../support/tools')

const ROOT = path.join(__dirname, '../..')
const FOLDER = path.join(ROOT, '.github/workflows')
const workflows = Object.fromEntries(fs.readdirSync(FOLDER).map(name => [
  path.parse(name).name,
  parse(fs.readFileSync(path.join(FOLDER, name), 'utf8'))
]))
const { scripts } = require('../../package.json')

describeWithGoTools('actionlint', ({ actionlint }) => {
  it.each(Object.keys(workflows))('accepts %s.yml', name => {
    const { status, stdout, stderr } = spawnSync(
      actionlint,
      // The result must not depend on these optional tools.
      ['-no-color', '-shellcheck=', '-pyflakes=', path.join(FOLDER, `${name}.yml`)],
      { encoding: 'utf8' }
    )
    expect(stdout + stderr).toBe('')
    expect(status).toBe(0)
  })

  it('refuses an input that an action does not have', () => {
    const bad = 'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n' +
      '      - uses: actions/checkout@v6\n        with:\n          brunch: main\n'
    const { status, stdout } = spawnSync(actionlint, ['-no-color', '-'], {
      encoding: 'utf8', input: bad
    })
    expect(status).toBe(1)
    expect(stdout).toContain('brunch')
  })
})

describe('the action of the gate', () => {
  const ACTION = path.join(ROOT, 'deploy/github-action/action.yml')
  const { inputs, runs } = parse(fs.readFileSync(ACTION, 'utf8'))
  const [step] = runs.steps

  /**
   * Runs the script of the action with an npx that prints its arguments.
   * @param {Record<string, string>} given inputs
   */
  function run (given) {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-action-'))
    try {
      const npx = '#!/bin/sh\nfor word; do echo "$word"; done\n'
      fs.writeFileSync(path.join(folder, 'npx'), npx, { mode: 0o755 })
      const env = Object.fromEntries(Object.entries(step.env).map(([name, expression]) => {
        const [, input] = /inputs\.([\w-]+)/.exec(String(expression)) ?? []
        return [name, given[String(input)] ?? inputs[String(input)].default ?? '']
      }))
      const { stdout } = spawnSync('bash', ['-e', '-c', step.run], {
        encoding: 'utf8', env: { PATH: `${folder}:${process.env.PATH}`, ...env }
      })
      return stdout.trim().split('\n')
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  }

  it('passes its inputs to memwatch gate, word by word', () => {
    expect(run({ command: 'node app.js' })).toEqual([
      '--yes', '@memwatch/cli@latest', 'gate', '--for', '30', '--false-alarms', '1%',
      '--baseline', 'memwatch.baseline.json', '--', 'bash', '-c', 'exec node app.js'
    ])
    const all = {
      command: 'npm start', load: 'wrk x; y', runs: '3', junit: 'a b.xml', 'write-baseline': 'true'
    }
    expect(run(all).slice(7)).toEqual([
      '--write-baseline', 'memwatch.baseline.json', '--load', 'wrk x; y', '--runs', '3',
      '--junit', 'a b.xml', '--', 'bash', '-c', 'exec npm start'
    ])
  })

  it('uses options that the command has', () => {
    const { command } = require('../../cli/gate')
    const known = command.options.map(({ long }) => long)
    const used = [...step.run.matchAll(/ --([a-z-]+) /g), ...step.run.matchAll(/\(--([a-z-]+)/g)]
      .map(([, name]) => `--${name}`).filter(name => name !== '--yes')
    expect(used.length).toBeGreaterThan(5)
    expect(used.filter(name => !known.includes(name))).toEqual([])
  })

  it('puts no input into its script', () => {
    expect(step.run).not.toContain('$' + '{{')
  })

  describeWithGoTools('and actionlint', ({ actionlint }) => {
    it.each([
      ['accepts it', 'command: node app.js', 0, ''],
      ['refuses an input that it lacks', 'command: node app.js\n          lod: x', 1, 'lod']
    ])('%s', (_, given, status, text) => {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-action-'))
      try {
        fs.mkdirSync(path.join(folder, '.git'))
        fs.mkdirSync(path.join(folder, '.github/workflows'), { recursive: true })
        fs.cpSync(path.dirname(ACTION), path.join(folder, 'gate'), { recursive: true })
        const file = path.join(folder, '.github/workflows/a.yml')
        fs.writeFileSync(file, 'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n' +
          `      - uses: ./gate\n        with:\n          ${given}\n`)
        const found = spawnSync(
          actionlint, ['-no-color', '-shellcheck=', '-pyflakes=', file], { cwd: folder, encoding: 'utf8' }
        )
        expect({ status: found.status, text: found.stdout }).toEqual({
          status, text: text === '' ? '' : expect.stringContaining(text)
        })
      } finally {
        fs.rmSync(folder, { recursive: true })
      }
    })
  })
})

describe.each(Object.entries(workflows))('%s.yml', (_, workflow) => {
  const jobs = Object.entries(workflow.jobs)
  const steps = jobs.flatMap(([, { steps = [] }]) => steps)

  it('pins each action to a major version', () => {
    const used = steps.flatMap(({ uses }) => uses ?? [])
    expect(used.length).toBeGreaterThan(3)
    expect(used.filter(uses => !/@(v\d+|[0-9a-f]{40})$/.test(uses))).toEqual([])
  })

  it('leaves no credentials in a checkout, and has a time limit for each job', () => {
    const checkouts = steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout@'))
    expect(checkouts.length).toBeGreaterThan(0)
    for (const { with: options } of checkouts) expect(options['persist-credentials']).toBe(false)
    for (const [name, { uses, 'timeout-minutes': minutes }] of jobs) {
      expect({ [name]: uses !== undefined || minutes > 0 }).toEqual({ [name]: true })
    }
  })

  it('runs only existing scripts', () => {
    const commands = steps.flatMap(({ run = '' }) => run.split('\n'))
    const files = commands.flatMap(line => /^(?:node|bash) (\S+)/.exec(line)?.[1] ?? [])
    expect(files.filter(file => !fs.existsSync(path.join(ROOT, file)))).toEqual([])
    const named = commands.flatMap(line => /^npm run (\S+)/.exec(line)?.[1] ?? [])
    expect(named.filter(name => !(name in scripts))).toEqual([])
  })

  it('puts no value of an event into a shell command', () => {
    expect(steps.filter(({ run = '' }) => run.includes('$' + '{{'))).toEqual([])
  })
})

it('the release gives each job only the permissions that it needs', () => {
  const { release: { permissions, jobs } } = workflows
  expect(permissions).toEqual({})
  const writes = Object.fromEntries(Object.entries(jobs).map(([name, job]) => [
    name,
    Object.entries(job.permissions).filter(([, level]) => level === 'write').map(([of]) => of)
  ]))
  expect(writes).toEqual({
    test: [],
    assemble: [],
    npm: ['id-token'],
    image: ['packages', 'id-token', 'attestations'],
    chart: ['packages', 'id-token', 'attestations'],
    github: ['contents', 'id-token', 'attestations']
  })
  expect(workflows.ci.permissions).toEqual({ contents: 'read' })
})

it('the release publishes nothing before all tests have passed', () => {
  const { jobs } = workflows.release
  const needs = name => [jobs[name].needs ?? []].flat()
  const reaches = name => needs(name).includes('test') || needs(name).some(reaches)
  expect(Object.keys(jobs).filter(name => name !== 'test' && !reaches(name))).toEqual([])
  expect(jobs.test.uses).toBe('./.github/workflows/ci.yml')
})

it('the image is built for both architectures, with SBOM, provenance and attestation', () => {
  const { steps } = workflows.release.jobs.image
  const build = steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'))
  expect(build.with).toMatchObject({
    platforms: 'linux/amd64,linux/arm64', push: true, sbom: true, provenance: 'mode=max'
  })
  const attest = steps.find(({ uses = '' }) => uses.startsWith('actions/attest-build-provenance@'))
  expect(attest.with['subject-digest']).toContain(`steps.${build.id}.outputs.digest`)
})

it('jobs read existing outputs of the assembled release', () => {
  const { assemble } = workflows.release.jobs
  expect(Object.keys(assemble.outputs).sort()).toEqual(Object.keys(outputs()).sort())
  const read = [...JSON.stringify(workflows.release).matchAll(/needs\.assemble\.outputs\.([\w-]+)/g)]
    .map(([, name]) => name)
  expect([...new Set(read)].sort()).toEqual(Object.keys(assemble.outputs).sort())
})

it('CI tests each supported line of Node.js', () => {
  const { jobs: { test, agent } } = workflows.ci
  expect(test.strategy.matrix.node).toEqual([20, 22, 24])
  expect(agent.env.TEST_NODE_VERSIONS.split(',')[0]).toMatch(/^18\./)
})
