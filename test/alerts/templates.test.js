'use strict'

const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { once } = require('node:events')
const { parse } = require('yaml')
const { eventually } = require('../support/exporter')
const { startAlertmanager, TIMING } = require('../support/alertmanager')
const { describeWithTools } = require('../support/tools')

const ALERTS = path.join(__dirname, '../../alerts')
const labels = {
  job: 'shop/memwatch',
  instance: '10.0.0.7:16369',
  namespace: 'shop',
  pod: 'api-7d9f',
  target: 'api',
  thread: 'main'
}
const annotations = {
  summary: 'Live JS heap keeps growing.',
  description: 'api (main): live JS heap keeps growing. Now: live heap 240MiB.',
  fix: 'NODE_OPTIONS="--max-old-space-size=512"',
  runbook_url: 'https://runbooks.example.org/MemwatchJsHeapLeak.md',
  dashboard_url: 'https://grafana.example.org/d/memwatch-process?var-target=api'
}

describeWithTools('notifications of the Alertmanager example', tools => {
  /** @type {{ path: string, body: any }[]} */
  const posts = []
  const server = http.createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    posts.push({ path: String(request.url), body: JSON.parse(Buffer.concat(chunks).toString()) })
    response.writeHead(request.url === '/pagerduty' ? 202 : 200).end('ok')
  })
  /** @type {Awaited<ReturnType<typeof startAlertmanager>>} */
  let alertmanager
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const own = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
    const example = parse(fs.readFileSync(path.join(ALERTS, 'alertmanager.example.yaml'), 'utf8'))
    const receivers = example.receivers.map(
      ({ slack_configs: slack, pagerduty_configs: pagerduty, ...rest }) => ({
        ...rest,
        ...(slack && {
          slack_configs: slack.map(config => ({ ...config, api_url: `${own}/slack` }))
        }),
        ...(pagerduty && {
          pagerduty_configs: pagerduty.map(config => ({ ...config, url: `${own}/pagerduty` }))
        })
      })
    )
    const routes = example.route.routes.map(route => ({ ...route, ...TIMING }))
    alertmanager = await startAlertmanager({
      file: tools.alertmanager,
      config: {
        ...example,
        templates: [path.join(ALERTS, 'templates/*.tmpl')],
        route: { ...example.route, ...TIMING, routes },
        receivers
      }
    })
  }, 70_000)
  afterAll(async () => {
    await alertmanager?.stop()
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }, 30_000)

  /**
   * @param {object} more labels
   * @param {string} way
   * @param {object} [times]
   */
  async function sent (more, way, times = {}) {
    const before = posts.length
    const response = await fetch(`${alertmanager.url}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify([{ labels: { ...labels, ...more }, annotations, ...times }])
    })
    expect(response.status).toBe(200)
    const post = await eventually(
      () => posts.slice(before).find(({ path }) => path === way),
      Boolean
    )
    return post.body
  }

  it('a page names the process, the problem, the fix and the runbook', async () => {
    const page = await sent({ alertname: 'MemwatchJsHeapLeak', severity: 'critical' }, '/pagerduty')
    expect(page).toMatchObject({
      event_action: 'trigger',
      payload: {
        summary: 'api in shop: Live JS heap keeps growing.',
        severity: 'critical',
        class: 'MemwatchJsHeapLeak',
        component: 'api',
        group: 'shop',
        custom_details: { fix: annotations.fix }
      },
      links: [
        { href: annotations.runbook_url, text: 'Runbook' },
        { href: annotations.dashboard_url, text: 'Dashboard' }
      ]
    })
    expect(page.payload.custom_details.what).toContain(
      `${annotations.description}\nFix: ${annotations.fix}\nRunbook: `
    )
  }, 30_000)

  it('a ticket in the chat contains the same, and reports the resolution', async () => {
    const more = { alertname: 'MemwatchSemiSpaceStarvation', severity: 'warning', target: 'mailer' }
    const firing = (await sent(more, '/slack')).attachments[0]
    expect(firing).toMatchObject({
      title: 'mailer in shop: Live JS heap keeps growing.',
      title_link: annotations.dashboard_url,
      color: 'warning'
    })
    expect(firing.text).toContain(`Fix: ${annotations.fix}`)
    const resolved = (
      await sent(more, '/slack', { endsAt: new Date(Date.now() - 1000).toISOString() })
    ).attachments[0]
    expect(resolved).toMatchObject({
      title: 'Resolved: mailer in shop: Live JS heap keeps growing.',
      color: 'good'
    })
    expect(resolved.text).not.toContain('Fix:')
  }, 30_000)
})
