'use strict'

const path = require('node:path')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const { diagnoses } = require('../../engine/diagnoses')
const { alertRules, rulesYaml } = require('../../scripts/alerts/index')
const { apps } = require('@memwatch/lab')
const { createMemoryGroup } = require('../../exporter/process/memory-group')
const { startExporter } = require('../support/exporter')
const { startPrometheus } = require('../support/prometheus')
const { startAlertmanager } = require('../support/alertmanager')
const { startWebhook } = require('../support/webhook')
const { describeWithTools } = require('../support/tools')
const { defined } = require('../support/defined')

const AGENT = path.join(__dirname, '../../agent/index.js')
const app = defined(apps.find(({ id }) => id === 'semi-space-starvation'))

describeWithTools('a starving app pages until it gets the fix', tools => {
  /** @type {(() => unknown)[]} functions that stop what was started, the last started first */
  const stops = []
  afterAll(async () => { for (const stop of stops.reverse()) await stop() }, 30_000)

  it('exporter → Prometheus → Alertmanager → webhook: firing with the fix and the runbook, then resolved', async () => {
    const exporter = await startExporter()
    const webhook = await startWebhook()
    const alertmanager = await startAlertmanager({
      file: tools.alertmanager,
      webhookUrl: webhook.url
    })
    stops.push(exporter.stop, webhook.stop, alertmanager.stop)
    const prometheus = await startPrometheus({
      file: tools.prometheus,
      // The shipped rules, with shorter times.
      rules: rulesYaml(alertRules({ diagnoses, forSeconds: 3, keepFiringForSeconds: 3 }), 'a test'),
      targets: [`127.0.0.1:${exporter.port}`],
      alertmanagerUrl: alertmanager.url
    })
    stops.push(prometheus.stop)

    const group = createMemoryGroup({ limitBytes: app.memoryLimitBytes, name: 'alert-test' })
    stops.push(() => group.remove())
    // The app runs without a memory cgroup: flags set the sizes that V8 would choose in one.
    const sizing = group.supported ? [] : ['--max-semi-space-size=1', '--max-old-space-size=256']
    const start = (...flags) => {
      const { command, args } = group.wrap(process.execPath, [
        '--require',
        AGENT,
        ...sizing,
        ...flags,
        app.script
      ])
      const child = spawn(command, args, {
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          MEMWATCH_SOCKET: exporter.socket.path,
          MEMWATCH_NAME: 'api'
        },
        stdio: 'ignore'
      })
      const stop = async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      stops.push(stop)
      return stop
    }

    const stopStarving = start()
    const isOurs = alert =>
      alert.labels.alertname === 'MemwatchSemiSpaceStarvation' && alert.labels.target === 'api'
    const firing = await webhook.next(alert => isOurs(alert) && alert.status === 'firing', 90_000)
    expect(firing.labels).toMatchObject({
      severity: 'warning',
      thread: 'main',
      diagnosis: 'semi-space-starvation'
    })
    // On a slow machine more jobs are in flight, and the fix holds their objects with 64 MiB.
    expect(firing.annotations.fix).toMatch(/^NODE_OPTIONS=--max-semi-space-size=(8|16|32|64)$/)
    expect(firing.annotations.description).toContain(firing.annotations.fix)
    expect(firing.annotations.runbook_url).toMatch(/MemwatchSemiSpaceStarvation\.md$/)
    expect(
      await prometheus.query('memwatch_diagnosis{diagnosis="js-heap-leak",state="confirmed"} == 1')
    ).toEqual([])

    await stopStarving()
    start(firing.annotations.fix.replace('NODE_OPTIONS=', ''))
    const resolved = await webhook.next(
      alert => isOurs(alert) && alert.status === 'resolved',
      60_000
    )
    expect(resolved.labels.target).toBe('api')
    // The alert resolves while the process still runs, so the process is healthy.
    expect(await prometheus.query('memwatch_target_up{target="api"} == 1')).toHaveLength(1)
  }, 240_000)
})
