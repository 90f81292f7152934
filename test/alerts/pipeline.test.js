'use strict'

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { once } = require('node:events')
const { parse } = require('yaml')
const { diagnoses } = require('../../engine/diagnoses')
const { alertRules, rulesYaml } = require('../../scripts/alerts/index')
const { eventually } = require('../support/exporter')
const { startPrometheus } = require('../support/prometheus')
const { startAlertmanager, TIMING } = require('../support/alertmanager')
const { startWebhook } = require('../support/webhook')
const { describeWithTools } = require('../support/tools')
const { defined } = require('../support/defined')

const FIX = 'NODE_OPTIONS="--enable-source-maps --max-semi-space-size=16"'

/**
 * An exporter whose /metrics are set by the test: exporter.set('memwatch_target_up{target="api"}',
 * 0).
 */
async function startFakeExporter () {
  /** @type {Map<string, number>} */
  const samples = new Map()
  const server = http.createServer((_, response) => {
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end([...samples].map(([series, value]) => `${series} ${value}\n`).join(''))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const series = (name, target, diagnosis, more) =>
    `${name}{target="${target}",thread="main",diagnosis="${diagnosis}",${more}}`
  return {
    address: `127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`,
    /**
     * @param {string} series
     * @param {number} value
     */
    set: (series, value) => samples.set(series, value),
    /**
     * @param {string} target
     * @param {{ id: string, severity: string, runbook?: string }} diagnosis
     * @param {'ok' | 'suspected' | 'confirmed'} state
     */
    judge (target, { id, severity, runbook }, state) {
      for (const each of ['suspected', 'confirmed']) {
        samples.set(
          series('memwatch_diagnosis', target, id, `state="${each}"`),
          each === state ? 1 : 0
        )
      }
      const info = series(
        'memwatch_verdict_info',
        target,
        id,
        `severity="${severity}",fix="${FIX.replaceAll('"', '\\"')}",runbook="${runbook}"`
      )
      if (state === 'confirmed') samples.set(info, 1)
      else samples.delete(info)
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  }
}

describeWithTools('from a verdict to a page', tools => {
  /** @type {(() => unknown)[]} functions that stop what was started, the last started first */
  let stops = []
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop()
    stops = []
  }, 30_000)

  /** @param {(webhookUrl: string) => object} [alertmanagerConfig] */
  async function startAll (alertmanagerConfig) {
    const exporter = await startFakeExporter()
    stops.push(exporter.stop)
    const webhook = await startWebhook()
    stops.push(webhook.stop)
    const alertmanager = await startAlertmanager({
      file: tools.alertmanager,
      webhookUrl: webhook.url,
      config: alertmanagerConfig?.(webhook.url)
    })
    stops.push(alertmanager.stop)
    const prometheus = await startPrometheus({
      file: tools.prometheus,
      // The shipped rules, with shorter intervals.
      rules: rulesYaml(alertRules({ diagnoses, forSeconds: 2, keepFiringForSeconds: 2 }), 'a test'),
      targets: [exporter.address],
      job: 'shop/memwatch',
      labels: { namespace: 'shop', pod: 'api-7d9f' },
      alertmanagerUrl: alertmanager.url
    })
    stops.push(prometheus.stop)
    return { exporter, webhook, alertmanager, prometheus }
  }
  const diagnosisOf = id => diagnoses.find(diagnosis => diagnosis.id === id)

  it('each diagnosis fires once confirmed, with fix and runbook, and resolves', async () => {
    const { exporter, webhook, prometheus } = await startAll()
    // Opportunities have no runbook and must not page.
    const alerting = diagnoses.filter(({ runbook }) => runbook !== undefined)
    const opportunities = diagnoses.filter(({ runbook }) => runbook === undefined)
    expect(opportunities.map(({ opportunity }) => opportunity)).toEqual(
      opportunities.map(() => true)
    )
    // One process for each diagnosis, which is also the name of its target.
    const judgeAll = state => {
      for (const diagnosis of diagnoses) exporter.judge(diagnosis.id, diagnosis, state)
    }
    judgeAll('suspected')
    await eventually(
      () => prometheus.query('memwatch_diagnosis{state="suspected"} == 1'),
      samples => samples.length === diagnoses.length
    )
    expect(await prometheus.alerts()).toEqual([])

    judgeAll('confirmed')
    for (const { id, title, severity, runbook } of alerting) {
      const firing = await webhook.next(
        ({ status, labels }) => status === 'firing' && labels.target === id,
        20_000
      )
      expect(firing.labels).toEqual({
        alertname: runbook,
        severity,
        diagnosis: id,
        fix: FIX,
        target: id,
        thread: 'main',
        job: 'shop/memwatch',
        instance: exporter.address,
        namespace: 'shop',
        pod: 'api-7d9f',
        service_name: id
      })
      expect(firing.annotations).toMatchObject({ summary: `${title}.`, fix: FIX })
      expect(firing.annotations.runbook_url).toMatch(new RegExp(`^https://.+/${runbook}\\.md$`))
      // The alert's sentence is complete although none of its metrics exists.
      expect(firing.annotations.description).toMatch(
        new RegExp(`^${id} \\(main\\): .+ unknown.+Fix: NODE_OPTIONS`)
      )
      expect(firing.annotations.description).not.toMatch(/<|error/)
    }

    judgeAll('ok')
    for (const { id, runbook } of alerting) {
      const resolved = await webhook.next(
        ({ status, labels }) => status === 'resolved' && labels.target === id,
        20_000
      )
      expect(resolved.labels).toMatchObject({ alertname: runbook, fix: FIX })
    }
    expect(
      new Set(webhook.received.map(({ labels }) => `${labels.target} ${labels.alertname}`)).size
    ).toBe(alerting.length)
  }, 90_000)

  it('a leak pages, and the Alertmanager example inhibits others of its process', async () => {
    const { exporter, webhook, alertmanager } = await startAll(webhookUrl => {
      const example = parse(
        fs.readFileSync(path.join(__dirname, '../../alerts/alertmanager.example.yaml'), 'utf8')
      )
      const routes = example.route.routes.map(route => ({ ...route, ...TIMING }))
      const receivers = example.receivers.map(({ name, ...ways }) =>
        Object.keys(ways).length === 0
          ? { name }
          : { name, webhook_configs: [{ url: webhookUrl, send_resolved: true }] }
      )
      return { ...example, route: { ...example.route, ...TIMING, routes }, receivers }
    })
    const rejected = 'memwatch_exporter_lines_rejected_total{reason="not_json"}'
    exporter.set(rejected, 0)
    exporter.judge('api', defined(diagnosisOf('js-heap-leak')), 'confirmed')
    const leak = await webhook.next(
      ({ labels }) => labels.alertname === 'MemwatchJsHeapLeak',
      20_000
    )
    expect(leak.receiver).toBe('pager')

    exporter.set(rejected, 1000)
    exporter.judge('api', defined(diagnosisOf('semi-space-starvation')), 'confirmed')
    exporter.judge('mailer', defined(diagnosisOf('semi-space-starvation')), 'confirmed')
    exporter.set('memwatch_target_up{target="cron",thread="main"}', 0)
    const ticket = await webhook.next(({ labels }) => labels.target === 'mailer', 20_000)
    expect(ticket).toMatchObject({
      receiver: 'tickets',
      labels: { alertname: 'MemwatchSemiSpaceStarvation' }
    })
    expect(
      await webhook.next(({ labels }) => labels.alertname === 'MemwatchAgentSilent', 20_000)
    ).toMatchObject({ receiver: 'tickets', labels: { target: 'cron' } })

    const known = async () => (await fetch(`${alertmanager.url}/api/v2/alerts`)).json()
    const alerts = await eventually(known, alerts => alerts.length === 5)
    const hushed = alerts
      .filter(({ status }) => status.state === 'suppressed')
      .map(({ labels }) => `${labels.alertname} ${labels.target}`)
    expect(hushed).toEqual(['MemwatchSemiSpaceStarvation api'])
    expect(
      alerts.find(({ labels }) => labels.alertname === 'MemwatchLinesRejected').receivers
    ).toEqual([{ name: 'nobody' }])

    await exporter.stop()
    const down = await webhook.next(
      ({ labels }) => labels.alertname === 'MemwatchExporterDown',
      20_000
    )
    expect(down).toMatchObject({
      receiver: 'tickets',
      labels: { namespace: 'shop', pod: 'api-7d9f' }
    })
    expect(
      webhook.received.map(({ labels }) => `${labels.alertname} ${labels.target}`)
    ).not.toContain('MemwatchSemiSpaceStarvation api')
    expect(webhook.received.map(({ labels }) => labels.alertname)).not.toContain(
      'MemwatchLinesRejected'
    )
  }, 90_000)
})
