'use strict'

const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { apps } = require('@memwatch/lab')
const { diagnoses } = require('../../engine/diagnoses')
const { alertRules, recordedRules, rulesYaml } = require('../../scripts/alerts/index')
const { dashboards, filled, mayBeEmpty } = require('../../scripts/dashboards')
const { startExporter, eventually } = require('../support/exporter')
const { startPrometheus } = require('../support/prometheus')
const { tellRecording } = require('../support/recorded-agent')
const { describeWithTools } = require('../support/tools')
const { defined } = require('../support/defined')

const AGENT = path.join(__dirname, '../../agent/index.js')
/** Recordings of apps whose problems cost memory and time. */
const RECORDED = [
  'semi-space-starvation',
  'allocator-fragmentation',
  'js-heap-leak',
  'oversized-heap',
  'container-limit-mismatch'
]

describeWithTools('every panel against a real Prometheus', tools => {
  /** @type {(() => unknown)[]} functions that stop what was started, the last started first */
  const stops = []
  /** @type {Awaited<ReturnType<typeof startPrometheus>>} */
  let prometheus
  beforeAll(async () => {
    const exporter = await startExporter()
    stops.push(exporter.stop)
    for (const [i, app] of RECORDED.entries()) {
      const connection = await tellRecording(exporter, app, { pid: 100_000 + i })
      stops.push(() => connection.destroy())
    }
    const healthy = defined(apps.find(({ id }) => id === 'healthy-steady'))
    const child = spawn(process.execPath, ['--require', AGENT, healthy.script], {
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        MEMWATCH_SOCKET: exporter.socket.path,
        MEMWATCH_NAME: healthy.id
      },
      stdio: 'ignore'
    })
    stops.push(async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    })
    prometheus = await startPrometheus({
      file: tools.prometheus,
      rules: rulesYaml(
        {
          // Rules of workloads are evaluated once a minute, which is longer than this test.
          groups: [...recordedRules().groups, ...alertRules({ diagnoses }).groups]
            .map(({ interval, ...group }) => group)
        },
        'a test'
      ),
      targets: [`127.0.0.1:${exporter.port}`],
      job: 'shop/memwatch'
    })
    stops.push(prometheus.stop)
    // Recording rules are evaluated, the living app has reported, and rates have two samples.
    await eventually(
      () => prometheus.query('fleet:memwatch_diagnosis:sum{state="confirmed"} > 0'),
      samples => samples.length > 0,
      30_000
    )
    await eventually(
      () => prometheus.query('memwatch_rss_bytes{target="healthy-steady"}'),
      samples => samples.length > 0,
      30_000
    )
    await eventually(
      () =>
        prometheus.query(
          'rate(memwatch_exporter_frames_total[10s]) > 0 and count_over_time(up[10s]) >= 8'
        ),
      samples => samples.length > 0,
      30_000
    )
  }, 150_000)
  afterAll(async () => { for (const stop of stops.reverse()) await stop() }, 30_000)

  const panels = Object.entries(dashboards).flatMap(([name, make]) =>
    make()
      .panels.filter(({ type }) => type !== 'row')
      .map(panel => [`${name}: ${panel.title}`, panel])
  )
  it.each(panels)('%s shows data', async (_, panel) => {
    for (const { expr } of panel.targets) {
      const samples = await prometheus.query(filled(expr, { rateInterval: '10s' }))
      expect({ expr, empty: samples.length === 0 && !mayBeEmpty(panel, expr) }).toEqual({
        expr,
        empty: false
      })
    }
  })
  it('panels that are empty in a healthy fleet show data in this one', async () => {
    const shown = await Promise.all(
      panels
        .filter(
          ([, { fieldConfig }]) =>
            fieldConfig.defaults.noValue === 'No finding.' ||
            fieldConfig.defaults.noValue === 'No finding wastes memory.'
        )
        .map(async ([title, { targets }]) => [
          title,
          (await prometheus.query(filled(targets[0].expr))).length > 0
        ])
    )
    expect(shown.length).toBeGreaterThan(3)
    expect(shown.filter(([, some]) => !some)).toEqual([])
  })
})
