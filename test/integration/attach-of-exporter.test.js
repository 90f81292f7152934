'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { AnnotatedProcesses } = require('../../exporter/attachment/annotated')
const { NODES, environment } = require('../support/agent-collector')
const { defined } = require('../support/defined')
const { startExporter, eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')

jest.setTimeout(60_000)

const TOKEN = 'a-token-of-a-test'
/** Time added to the clock, so that each process of a test seems old enough. */
const LATER_MS = 3_600_000

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-attach-of-exporter-'))
/** @type {import('node:child_process').ChildProcess[]} */
const children = []
/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter

afterEach(async () => {
  await Promise.all(children.splice(0).map(async child => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }))
  await exporter.stop()
})
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * Starts an app, and waits until it has printed a line.
 * @param {object} [options]
 * @param {string} [options.code]
 * @param {Record<string, string>} [options.env]
 * @param {string[]} [options.args]
 */
async function start ({ code = '', env = {}, args = [] } = {}) {
  const script = path.join(folder, `app-${children.length}.js`)
  fs.writeFileSync(script, `${code};setInterval(() => {}, 1000); console.log('runs')`)
  const port = `--inspect-port=${await freePort()}`
  const child = spawn(NODES[0], [port, ...args, script], {
    env: environment(env), stdio: ['ignore', 'pipe', 'pipe']
  })
  children.push(child)
  const app = { child, pid: Number(child.pid), output: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', chunk => { app.output += chunk })
  }
  await eventually(() => app.output, output => output.includes('runs'))
  return app
}
const catching = { code: "process.on('SIGUSR1', () => {})" }

/** @param {object} [headers] */
const list = async (headers = { authorization: `Bearer ${TOKEN}` }) =>
  (await exporter.get('/api/v1/processes', headers)).json()
/** @param {number} pid */
const findProcess = async pid =>
  (await list()).processes.find((/** @type {any} */ one) => one.pid === pid)

/**
 * @param {string | number} pid
 * @param {object} [headers]
 */
async function post (pid, headers = { authorization: `Bearer ${TOKEN}` }) {
  const url = `${exporter.url}/api/v1/processes/${pid}/attach`
  const response = await fetch(url, { method: 'POST', headers })
  return { status: response.status, ...await response.json() }
}
const counted = async () =>
  (await exporter.metrics()).match(/^memwatch_exporter_attachments_total\{.*[1-9]$/gm)

describe('an exporter with --attach-on-request', () => {
  beforeEach(async () => {
    exporter = await startExporter({ attachOnRequest: true, token: TOKEN })
  })

  it('lists a process, and attaches to it on a request with the token only', async () => {
    const app = await start()
    const shown = await findProcess(app.pid)
    expect(shown).toEqual({
      pid: app.pid,
      startTimeTicks: expect.any(Number),
      name: expect.stringMatching(new RegExp(`^process ${app.pid} \\(.* app-0\\.js\\)$`)),
      startedAtUnixMs: expect.any(Number),
      refusal: null
    })
    expect(Math.abs(Date.now() - shown.startedAtUnixMs)).toBeLessThan(30_000)
    const hasToken = { authorization: `Bearer ${TOKEN}` }
    expect(await post(app.pid, {})).toMatchObject({ status: 401, code: 'unauthorized' })
    expect(await post(app.pid, { ...hasToken, origin: 'https://evil.example' }))
      .toMatchObject({ status: 403, code: 'forbidden' })
    expect(await post(app.pid, { ...hasToken, 'sec-fetch-site': 'cross-site' }))
      .toMatchObject({ status: 403, code: 'forbidden' })
    expect(app.output).not.toContain('Debugger listening')
    expect(await counted()).toBe(null)

    expect(await post(app.pid)).toEqual({
      status: 200, pid: app.pid, name: shown.name, node: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      workers: { reached: 0, all: 0 }, target: 'app-0'
    })
    expect(defined(exporter.exporter.targets[0]).hello.pid).toBe(app.pid)
    expect(await findProcess(app.pid)).toBeUndefined()
    expect(await post(app.pid)).toMatchObject({
      status: 409, code: 'not_attachable', detail: expect.stringContaining('has an agent already')
    })
    expect(app.output.match(/Debugger listening/g)).toHaveLength(1)
    expect(await counted()).toEqual([
      'memwatch_exporter_attachments_total{trigger="request",outcome="attached"} 1',
      'memwatch_exporter_attachments_total{trigger="request",outcome="refused"} 1'
    ])
  })

  it('reports why it cannot attach, and attaches to one process at a time', async () => {
    const [app, refusing] = [await start(), await start(catching)]
    const { refusal } = await findProcess(refusing.pid)
    expect(refusal).toMatch(/^process \d+ \(.*\) listens to SIGUSR1 itself/)
    expect(await post(refusing.pid)).toMatchObject({ status: 409, code: 'not_attachable', detail: refusal })
    expect(await post(2 ** 22)).toMatchObject({ status: 404, code: 'unknown_process' })
    const answers = await Promise.all([post(app.pid), post(app.pid)])
    expect(answers.map(({ status, code }) => [status, code]).sort())
      .toEqual([[200, undefined], [409, 'busy']])
  })

  it('does not attach to another process that has the same pid now', async () => {
    const app = await start()
    const { startTimeTicks } = await findProcess(app.pid)
    const attacher = defined(exporter.exporter.attacher)
    await expect(attacher.attach(app.pid, { trigger: 'request', startTimeTicks: startTimeTicks - 1 }))
      .rejects.toThrow('another one has its id')
    expect(app.output).not.toContain('Debugger listening')
  })
})

it('an exporter without the option lists no process and attaches to none', async () => {
  exporter = await startExporter()
  const app = await start({ env: { MEMWATCH_ATTACH: '1' } })
  expect(await list({})).toEqual({ isEnabled: false, processes: [] })
  expect(await post(app.pid, {})).toMatchObject({ status: 409, code: 'not_enabled' })
  expect(await exporter.metrics()).not.toContain('memwatch_exporter_attachments_total')
  expect(app.output).not.toContain('Debugger listening')
})

it('an exporter with --attach-annotated attaches once to each process that asks for it', async () => {
  exporter = await startExporter({ attachAnnotated: true })
  const asks = { env: { MEMWATCH_ATTACH: '1' } }
  const [silent, wrong, refusing, asking] = [
    await start(),
    await start({ env: { MEMWATCH_ATTACH: 'yes' } }),
    await start({ ...catching, ...asks }),
    await start(asks)
  ]
  /** @type {string[]} */
  const said = []
  const say = (/** @type {unknown} */ _, /** @type {string} */ text) => { said.push(text) }
  const attacher = defined(exporter.exporter.attacher)
  const log = /** @type {any} */ ({ info: say, warn: say })
  const young = new AnnotatedProcesses({ attacher, log })
  await young.scan()
  expect(said).toEqual([]) // Node.js may still be starting in these processes.

  const processes = new AnnotatedProcesses({ attacher, log, now: () => Date.now() + LATER_MS })
  await processes.scan(() => false)
  expect(said).toEqual([])
  await processes.scan()
  await processes.scan()
  expect(said.sort()).toEqual([
    expect.stringMatching(new RegExp(`^attached to process ${asking.pid} \\(.*\\), which asks for it`)),
    expect.stringContaining('has a wrong MEMWATCH_ATTACH: expected 0 or 1'),
    expect.stringContaining('listens to SIGUSR1 itself')
  ])
  expect(await counted()).toEqual([
    'memwatch_exporter_attachments_total{trigger="annotation",outcome="attached"} 1',
    'memwatch_exporter_attachments_total{trigger="annotation",outcome="refused"} 1'
  ])
  expect(exporter.exporter.targets.map(({ hello }) => hello.pid)).toEqual([asking.pid])
  for (const { output } of [silent, wrong, refusing]) expect(output).not.toContain('Debugger listening')
  // This exporter attaches by its own timer only: a request needs --attach-on-request.
  expect(await post(silent.pid, {})).toMatchObject({ status: 409, code: 'not_enabled' })
})
