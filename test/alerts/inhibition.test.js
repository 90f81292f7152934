'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('yaml')
const { eventually } = require('../support/exporter')
const { startAlertmanager } = require('../support/alertmanager')
const { describeWithTools } = require('../support/tools')

const EXAMPLE = path.join(__dirname, '../../alerts/alertmanager.example.yaml')

/**
 * Labels as the rules give them: a finding, a silent agent and an exporter that is down, all of one
 * sidecar.
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

describeWithTools('which alerts of the Alertmanager example hush which', tools => {
  /** @type {Awaited<ReturnType<typeof startAlertmanager>>} */
  let alertmanager
  beforeAll(async () => {
    const example = parse(fs.readFileSync(EXAMPLE, 'utf8'))
    // Nothing is sent: what counts is what Alertmanager thinks of each alert.
    const config = { ...example, receivers: example.receivers.map(({ name }) => ({ name })) }
    alertmanager = await startAlertmanager({ file: tools.alertmanager, config })
  }, 70_000)
  afterAll(() => alertmanager?.stop(), 30_000)

  let cases = 0
  it.each([
    ['a leak hushes the lesser findings of its thread', leak, starvation, true],
    ['a leak hushes that its process fell silent', leak, silent, true],
    ['a leak leaves another thread alone', leak, { ...starvation, thread: 'worker-1' }, false],
    ['a leak leaves another process alone', leak, { ...starvation, target: 'mailer' }, false],
    [
      'a leak leaves another replica of the same name alone',
      leak,
      { ...starvation, ...otherPod },
      false
    ],
    ['a leak does not hush that the exporter is down', leak, down, false],
    ['a leak does not hush another leak', leak, { ...leak, fix: 'another' }, false],
    [
      'a leak leaves what is not of memwatch alone',
      leak,
      { ...main, alertname: 'TargetSlow', severity: 'warning' },
      false
    ],
    [
      'what is critical elsewhere hushes nothing of memwatch',
      { ...main, alertname: 'TargetGone', severity: 'critical' },
      starvation,
      false
    ],
    ['a leak that names the cause hushes what only measures it', leak, nearLimit, true],
    [
      'a leak of another process hushes no measurement',
      { ...leak, target: 'mailer' },
      nearLimit,
      false
    ],
    ['a ticket hushes no page', starvation, nearLimit, false],
    ['a measurement hushes no ticket that may name its cause', nearLimit, starvation, false],
    [
      'how a process ended hushes that one of its container was killed',
      outOfMemory,
      { ...main, alertname: 'MemwatchContainerOomKill', severity: 'critical' },
      true
    ],
    ['how a process ended hushes its silence', outOfMemory, silent, true],
    ['how a process ended leaves its diagnosis alone', outOfMemory, leak, false],
    [
      'how a process ended leaves another one alone',
      outOfMemory,
      { ...silent, target: 'mailer' },
      false
    ],
    ['an exporter that is down hushes the silence of what it watches', down, silent, true],
    [
      "an exporter that is down does not hush another one's silent agents",
      down,
      { ...silent, ...otherPod },
      false
    ],
    ['an exporter that is down leaves findings alone: they may still page', down, leak, false],
    [
      'a warning hushes nothing, not even context',
      starvation,
      { ...main, alertname: 'MemwatchNewOne', severity: 'info' },
      false
    ]
  ])('%s', async (_, source, target, hushed) => {
    // A job of its own for each case. The pair of the probe comes last and is known to hush: once
    // it has, the case is decided.
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
