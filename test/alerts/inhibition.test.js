'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('yaml')
const { eventually } = require('../support/exporter')
const { startAlertmanager } = require('../support/alertmanager')
const { describeWithTools } = require('../support/tools')

const EXAMPLE = path.join(__dirname, '../../alerts/alertmanager.example.yaml')

/**
 * Labels of the rules for one sidecar: a finding, a silent agent, and an exporter that is down.
 */
const sidecar = {
  job: 'shop/memwatch',
  instance: '10.0.0.7:16369',
  namespace: 'shop',
  pod: 'api-7d9f'
}
const main = { ...sidecar, target: 'api', thread: 'main' }
const leak = {
  ...main,
  alertname: 'MemwatchJsHeapLeak',
  severity: 'critical',
  diagnosis: 'js-heap-leak'
}
const starvation = {
  ...main,
  alertname: 'MemwatchSemiSpaceStarvation',
  severity: 'warning',
  diagnosis: 'semi-space-starvation'
}
const nearLimit = { ...main, alertname: 'MemwatchMemoryNearLimit', severity: 'critical' }
const silent = { ...main, alertname: 'MemwatchAgentSilent', severity: 'warning' }
const outOfMemory = { ...main, alertname: 'MemwatchOutOfMemoryExit', severity: 'critical' }
const down = { ...sidecar, alertname: 'MemwatchExporterDown', severity: 'warning' }
const otherPod = { instance: '10.0.0.8:16369', pod: 'api-c2x4' }

describeWithTools('inhibition by the Alertmanager example', tools => {
  /** @type {Awaited<ReturnType<typeof startAlertmanager>>} */
  let alertmanager
  beforeAll(async () => {
    const example = parse(fs.readFileSync(EXAMPLE, 'utf8'))
    // Alertmanager sends nothing in this test, which reads the state of each alert instead.
    const config = { ...example, receivers: example.receivers.map(({ name }) => ({ name })) }
    alertmanager = await startAlertmanager({ file: tools.alertmanager, config })
  }, 70_000)
  afterAll(() => alertmanager?.stop(), 30_000)

  let cases = 0
  it.each([
    ['a leak inhibits the lesser findings of its thread', leak, starvation, true],
    ['a leak inhibits the silence of its process', leak, silent, true],
    ['a leak does not inhibit another thread', leak, { ...starvation, thread: 'worker-1' }, false],
    ['a leak does not inhibit another process', leak, { ...starvation, target: 'mailer' }, false],
    [
      'a leak does not inhibit another replica of the same name',
      leak,
      { ...starvation, ...otherPod },
      false
    ],
    ['a leak does not inhibit the alert of an exporter that is down', leak, down, false],
    ['a leak does not inhibit another leak', leak, { ...leak, fix: 'another' }, false],
    [
      'a leak does not inhibit alerts of other software',
      leak,
      { ...main, alertname: 'TargetSlow', severity: 'warning' },
      false
    ],
    [
      'critical alerts of other software inhibit nothing of memwatch',
      { ...main, alertname: 'TargetGone', severity: 'critical' },
      starvation,
      false
    ],
    ['a leak inhibits alerts that only measure its effect', leak, nearLimit, true],
    [
      'a leak of another process inhibits no measurement',
      { ...leak, target: 'mailer' },
      nearLimit,
      false
    ],
    ['a ticket inhibits no page', starvation, nearLimit, false],
    ['a measurement inhibits no ticket that may name its cause', nearLimit, starvation, false],
    [
      'the end of a process inhibits the kill in its container',
      outOfMemory,
      { ...main, alertname: 'MemwatchContainerOomKill', severity: 'critical' },
      true
    ],
    ['the end of a process inhibits its silence', outOfMemory, silent, true],
    ['the end of a process does not inhibit its diagnosis', outOfMemory, leak, false],
    [
      'the end of a process does not inhibit the end of another one',
      outOfMemory,
      { ...silent, target: 'mailer' },
      false
    ],
    ['an exporter that is down inhibits the silence of its targets', down, silent, true],
    [
      'an exporter that is down does not inhibit silent agents of others',
      down,
      { ...silent, ...otherPod },
      false
    ],
    ['an exporter that is down does not inhibit findings, which may still page', down, leak, false],
    [
      'a warning inhibits nothing, not even context',
      starvation,
      { ...main, alertname: 'MemwatchNewOne', severity: 'info' },
      false
    ]
  ])('%s', async (_, source, target, hushed) => {
    // Each case has a job of its own. A pair of alerts that always inhibits is posted last, as a
    // probe: once it inhibits, the case is decided.
    const job = `shop/memwatch-${++cases}`
    const probe = `${job}-probe`
    const labels = [
      ...[source, target].map(labels => ({ ...labels, job })),
      ...[leak, starvation].map(labels => ({ ...labels, job: probe }))
    ]
    const response = await fetch(`${alertmanager.url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(labels.map(labels => ({ labels }))),
      signal: AbortSignal.timeout(10_000)
    })
    expect(response.status).toBe(200)
    const list = async () =>
      (
        await fetch(`${alertmanager.url}/api/v2/alerts`, { signal: AbortSignal.timeout(10_000) })
      ).json()
    const isHushed = ({ status }) => status.inhibitedBy.length > 0
    const alerts = await eventually(list, alerts =>
      alerts.some(alert => alert.labels.job === probe && isHushed(alert))
    )
    const ours = alerts.filter(alert => alert.labels.job === job)
    expect(ours).toHaveLength(2)
    expect(ours.filter(isHushed).map(({ labels }) => labels)).toEqual(
      hushed ? [{ ...target, job }] : []
    )
  })
})
