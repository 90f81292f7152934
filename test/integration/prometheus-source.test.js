'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const Ajv = require('ajv/dist/2020')
const { describeWithTools } = require('../support/tools')
const { eventually } = require('../support/exporter')
const { freePort } = require('../support/free-port')
const { startPrometheus } = require('../support/prometheus')
const { MEMWATCH } = require('../support/memwatch')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-prometheus-source-'))
const APP = path.join(folder, 'app.js')
// Code of the apps: objects live briefly, as in requests; one app retains some of them forever.
fs.writeFileSync(APP, `
  const recent = []
  const kept = []
  setInterval(() => {
    for (let i = 0; i < 16; i++) {
      const made = Array.from({ length: 60 }, (_, j) => ({ j, text: 'x' + j + Math.random() }))
      recent.push(made)
      if (recent.length > 320) recent.shift()
      if (process.argv[2] === 'leaks' && i < 3) kept.push(made)
    }
  }, 10)`)
const FLAGS = ['--max-semi-space-size=1', '--max-old-space-size=200']
const env = { ...process.env, NODE_OPTIONS: '' }

/** @param {string[]} args */
async function diagnose (args) {
  const child = spawn(process.execPath, [MEMWATCH, 'diagnose', ...args], { env })
  const said = { stdout: '', stderr: '' }
  for (const name of /** @type {const} */ (['stdout', 'stderr'])) child[name].on('data', chunk => { said[name] += chunk })
  const [status] = await once(child, 'close')
  return { status, ...said }
}
const found = target =>
  target.verdicts
    .filter(
      ({ state, opportunity }) => !opportunity && (state === 'suspected' || state === 'confirmed')
    )
    .map(({ diagnosis, state }) => `${diagnosis} ${state}`)

describeWithTools('memwatch diagnose --prometheus', tools => {
  /** @type {import('node:child_process').ChildProcess[]} */
  const children = []
  /** @type {Awaited<ReturnType<typeof startPrometheus>>} */
  let prometheus
  /** @type {number} a port without a listener */
  let closed
  beforeAll(async () => {
    closed = await freePort()
    const jobs = []
    for (const app of ['leaks', 'well']) {
      const file = path.join(folder, `${app}.port`)
      children.push(
        spawn(
          process.execPath,
          [
            '--require',
            path.join(__dirname, '../support/prom-client-preload.js'),
            ...FLAGS,
            APP,
            app
          ],
          { env: { ...env, METRICS_PORT_FILE: file }, stdio: 'ignore' }
        )
      )
      const port = await eventually(
        () => {
          try {
            return fs.readFileSync(file, 'utf8')
          } catch {
            return ''
          }
        },
        text => text !== ''
      )
      jobs.push({
        target: `127.0.0.1:${port}`,
        path: '/metrics',
        labels: { app, by: 'prom-client' }
      })
    }
    const watched = spawn(
      process.execPath,
      [MEMWATCH, 'run', '--', process.execPath, ...FLAGS, APP, 'leaks'],
      { env, stdio: ['ignore', 'ignore', 'pipe'] }
    )
    let said = ''
    watched.stderr.on('data', data => { said += data })
    const port = await eventually(
      () => /live at http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1],
      text => text !== undefined
    )
    children.push(watched)
    jobs.push({ target: `127.0.0.1:${port}`, path: '/metrics', labels: { by: 'memwatch' } })
    prometheus = await startPrometheus({ file: tools.prometheus, jobs, intervalSeconds: 1 })
  }, 60_000)
  afterAll(async () => {
    for (const child of children) {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    await prometheus?.stop()
    fs.rmSync(folder, { recursive: true })
  }, 30_000)

  /**
   * @param {string} by
   * @param {string[]} [more]
   */
  const judged = async (by, more = []) => {
    const { stdout, stderr } = await diagnose([
      '--json',
      '--prometheus',
      prometheus.url,
      '--selector',
      `{by="${by}"}`,
      '--since',
      '10m',
      ...more
    ])
    return stderr === '' ? JSON.parse(stdout) : { targets: [], stderr }
  }
  const instance = (report, i) => report.targets[i] ?? { verdicts: [] }

  it('suspects a leak by prom-client metrics, in the leaking app only', async () => {
    const leaking = async () => {
      const report = await judged('prom-client', [`--flags=${FLAGS.join(' ')}`])
      return {
        report,
        leaks: report.targets.filter(target => found(target).includes('js-heap-leak suspected'))
          .length
      }
    }
    // Each diagnosis starts a process, and fewer samples do not suffice.
    await eventually(
      () => prometheus.query('count_over_time(up{app="leaks"}[10m]) >= 20'),
      samples => samples.length > 0,
      60_000
    )
    const { report } = await eventually(leaking, ({ leaks }) => leaks > 0, 80_000)
    expect(report.targets).toHaveLength(2)
    expect(
      report.targets.filter(target => found(target).includes('js-heap-leak suspected'))
    ).toHaveLength(1)
    for (const target of report.targets) {
      expect(target).toMatchObject({ thread: 'main', node: process.versions.node, primary: null })
      // V8 runs so many GCs here that prom-client loses most: a check must not conclude that there
      // were few.
      expect(
        target.verdicts.find(({ diagnosis }) => diagnosis === 'semi-space-starvation').state
      ).not.toBe('ok')
      expect(target.verdicts.find(({ diagnosis }) => diagnosis === 'context-leak').state).toBe(
        'unknown'
      )
    }
    expect(report.source).toMatchObject({
      kind: 'prom-client',
      limited: expect.arrayContaining([
        { diagnosis: null, text: expect.stringMatching(/suspected at most/) }
      ])
    })
    const validate = new Ajv.Ajv2020({ strict: false }).compile(require('../../docs/report.schema.json'))
    validate(report)
    expect(validate.errors).toBe(null)
  }, 100_000)

  it('gets more from memwatch’s own metrics, without options', async () => {
    const report = await eventually(
      () => judged('memwatch'),
      report => found(instance(report, 0)).includes('js-heap-leak suspected'),
      60_000
    )
    expect(report.source.kind).toBe('memwatch-metrics')
    expect(report.targets).toMatchObject([{ thread: 'main', node: process.versions.node }])
    expect(
      report.targets[0].verdicts.find(({ diagnosis }) => diagnosis === 'context-leak').state
    ).toBe('ok')
    expect(report.source.cannotTell.map(({ diagnosis }) => diagnosis)).not.toContain(
      'native-memory-leak'
    )
  }, 80_000)

  it.each([
    [
      'nobody there',
      () => ['--prometheus', `http://127.0.0.1:${closed}`],
      /--prometheus: cannot reach http:\/\/127.0.0.1:\d+: ECONNREFUSED/
    ],
    ['no URL', () => ['--prometheus', 'localhost:9090'], /--prometheus: expected a URL such as/],
    [
      'labels that nothing has',
      () => ['--prometheus', prometheus.url, '--selector', '{job="none"}'],
      /no metrics of prom-client or memwatch match {job="none"}/
    ],
    [
      'no labels',
      () => ['--prometheus', prometheus.url, '--selector', 'up'],
      /--selector: expected labels such as '{job="api"}', got "up"/
    ],
    [
      'labels that Prometheus does not take',
      () => ['--prometheus', prometheus.url, '--selector', '{job=}'],
      /--selector: .* rejected/
    ],
    [
      'no duration',
      () => ['--prometheus', prometheus.url, '--since', 'yesterday'],
      /--since: expected a time such as/
    ],
    [
      'files beside it',
      () => ['--prometheus', prometheus.url, 'app.log'],
      /--prometheus: expected no files beside it, got "app.log"/
    ],
    ['nothing at all', () => [], /expected a file, - for stdin, or --prometheus URL/]
  ])('refuses %s with status 2 and the reason', async (_, args, message) => {
    const { status, stdout, stderr } = await diagnose(args())
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/at .*\.js:/)
  })
  it('reports a server that is not Prometheus, and sends a password as Basic authorization', async () => {
    /** @type {string | undefined} */
    let authorization
    const server = http
      .createServer((request, response) => {
        authorization = request.headers.authorization
        response.end('hello')
      })
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { status, stderr } = await diagnose([
      '--prometheus',
      `http://me:secret@127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
    ])
    server.close()
    expect(status).toBe(2)
    expect(stderr).toMatch(/expected metrics, got status 200 from .*is it a Prometheus\?/)
    expect(stderr).not.toMatch(/secret/)
    expect(authorization).toBe(`Basic ${Buffer.from('me:secret').toString('base64')}`)
  })
})
