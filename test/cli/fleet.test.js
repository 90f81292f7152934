'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { parse } = require('yaml')
const { renderCsv, renderHtml, renderMarkdown, renderText } = require('../../cli/fleet/fleet-formats')
const { fleetReport, RECORDED } = require('../../cli/fleet/fleet-report')
const { innerOf } = require('../../cli/sources/prometheus')
const { PrometheusApi } = require('../../cli/sources/prometheus-api')
const { memwatch } = require('../support/memwatch')

const SHOP = { namespace: 'shop', job: 'shop/memwatch', service_name: 'api' }
const MAIL = { namespace: 'mail', job: 'mail/memwatch', service_name: 'mailer' }
const OLD = { service_version: '4.2.0', node_version: '22.20.0' }
const NEW = { service_version: '4.3.0', node_version: '24.11.0' }
const LEAK = { diagnosis: 'js-heap-leak' }
const OVERSIZED = { diagnosis: 'oversized-heap' }
const RUNBOOK = { runbook: 'MemwatchOversizedHeap' }
const GIB = 2 ** 30

/**
 * Answers of Prometheus to the queries of the report: twenty processes of a shop, half of them with
 * a version that leaks, and a mailer.
 * @type {Record<keyof typeof RECORDED, [Record<string, string>, number][]>}
 */
const ANSWERS = {
  targets: [[{ ...SHOP, ...OLD }, 10], [{ ...SHOP, ...NEW }, 10], [{ ...MAIL, ...NEW }, 3]],
  rssBytes: [
    [{ ...SHOP, ...OLD }, 10 * GIB], [{ ...SHOP, ...NEW }, 15 * GIB], [{ ...MAIL, ...NEW }, GIB]
  ],
  cpuCores: [[{ ...SHOP, ...OLD }, 4], [{ ...SHOP, ...NEW }, 5], [{ ...MAIL, ...NEW }, 1]],
  gcCores: [[{ ...SHOP, ...OLD }, 0.2], [{ ...SHOP, ...NEW }, 0.6], [{ ...MAIL, ...NEW }, 0.1]],
  verdicts: [
    [{ ...MAIL, ...NEW, ...OVERSIZED, severity: 'info' }, 3],
    [{ ...SHOP, ...NEW, ...LEAK, severity: 'warning' }, 8],
    [{ ...SHOP, ...NEW, ...LEAK, severity: 'critical' }, 1],
    [{ ...SHOP, ...OLD, ...OVERSIZED, severity: 'info' }, 10],
    [{ ...SHOP, ...NEW, ...OVERSIZED, severity: 'info' }, 2]
  ],
  suspicions: [[{ ...SHOP, ...NEW, ...LEAK }, 1], [{ ...MAIL, ...NEW, ...LEAK }, 2]],
  savingBytes: [
    [{ ...SHOP, ...OLD, ...OVERSIZED }, 2 * GIB],
    [{ ...SHOP, ...NEW, ...OVERSIZED }, GIB / 2],
    [{ ...MAIL, ...NEW, ...OVERSIZED }, GIB / 4]
  ],
  savingCores: [[{ ...SHOP, ...OLD, ...OVERSIZED }, 0.5]],
  fixes: [
    [{ ...SHOP, ...OLD, ...OVERSIZED, ...RUNBOOK, fix: '--max-semi-space-size=8' }, 6],
    [{ ...SHOP, ...NEW, ...OVERSIZED, ...RUNBOOK, fix: '--max-semi-space-size=16' }, 2],
    [{ ...SHOP, ...NEW, ...LEAK, fix: 'Find | <b>is</b>', runbook: 'MemwatchJsHeapLeak' }, 9],
    [{ ...MAIL, ...NEW, ...OVERSIZED, fix: '=cmd|"x"!A1', runbook: 'javascript:alert(1)' }, 3]
  ],
  starts: [
    [{ ...SHOP, ...NEW, ...LEAK }, 1_760_000_000.5],
    [{ ...SHOP, ...OLD, ...OVERSIZED }, 1_750_000_000]
  ],
  growthSince: [[{ ...SHOP, service_version: '4.3.0', previous_version: '4.2.0' }, 12 * 2 ** 20 / 3600]],
  growthBefore: [[{ ...SHOP, service_version: '4.3.0', previous_version: '4.2.0' }, 0]]
}

/** @typedef {{ status?: number, body?: object | string, hangs?: boolean }} Reply */
/** @type {{ query: string, headers: http.IncomingHttpHeaders, url: string }[]} */
const asked = []
/** @type {(key: keyof typeof RECORDED) => Reply} */
let reply
/** @param {[Record<string, string>, number][]} samples */
const success = (samples, more = {}) => ({
  status: 'success',
  data: {
    resultType: 'vector',
    result: samples.map(([metric, value]) => ({ metric, value: [1_760_000_100, String(value)] }))
  },
  ...more
})
const recorded = (/** @type {keyof typeof RECORDED} */ key) => ({ body: success(ANSWERS[key]) })

/** @type {http.Server} */
let server
/** @type {string} */
let url
/** @type {string} */
let folder
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-fleet-'))
  server = http.createServer(async (request, response) => {
    const body = []
    for await (const chunk of request) body.push(chunk)
    const query = String(new URLSearchParams(Buffer.concat(body).toString()).get('query'))
    asked.push({ query, headers: request.headers, url: String(request.url) })
    const [key] = Object.entries(RECORDED).find(([, name]) => query.includes(`"${name}"`)) ?? []
    const { status = 200, body: answer, hangs } = reply(/** @type {keyof typeof RECORDED} */ (key))
    if (hangs) return
    response.statusCode = status
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  fs.rmSync(folder, { recursive: true })
})
beforeEach(() => {
  asked.length = 0
  reply = recorded
})

/** @param {string[]} args */
const fleet = (...args) => memwatch(['fleet', '--prometheus', url, ...args])
const NO_PRICES = { gibPerMonth: null, corePerMonth: null, currency: '' }

/**
 * Builds the report without starting the command.
 * @param {object} [options]
 * @param {string} [options.selector]
 * @param {import('../../cli/fleet/fleet-report').Prices} [options.prices]
 * @param {number} [options.timeoutMs]
 */
const reportOf = ({ selector = '{}', prices = NO_PRICES, timeoutMs } = {}) =>
  fleetReport(new PrometheusApi(url, { timeoutMs }), {
    matchers: innerOf(selector),
    prices,
    nowUnixMs: 1_760_000_100_000
  })
/** @type {Record<string, (report: Awaited<ReturnType<typeof reportOf>>) => string>} */
const FORMATS = {
  text: report => renderText(report, { width: 100 })
    .map(line => typeof line === 'string' ? line : line.text).join('\n'),
  markdown: renderMarkdown,
  html: renderHtml
}

describe('memwatch fleet', () => {
  it('has one finding for each workload and diagnosis, worst first', async () => {
    const { code, stdout } = await fleet('--format', 'json')
    const report = JSON.parse(stdout)
    expect(code).toBe(0)
    expect(report).toMatchObject({
      schema: 1,
      prometheus: url,
      partial: [],
      totals: {
        workloads: 2,
        targets: 23,
        findings: 4,
        rssBytes: 26 * GIB,
        cpuCores: 10,
        savingBytes: 2.75 * GIB,
        savingCores: 0.5,
        savingPerMonth: null
      }
    })
    expect(report.findings.map((/** @type {any} */ finding) => [
      finding.workload, finding.diagnosis, finding.severity, finding.state, finding.targets,
      finding.suspectedTargets, finding.ofTargets
    ])).toEqual([
      ['api', 'js-heap-leak', 'critical', 'confirmed', 9, 1, 20],
      ['api', 'oversized-heap', 'info', 'confirmed', 12, 0, 20],
      ['mailer', 'oversized-heap', 'info', 'confirmed', 3, 0, 3],
      ['mailer', 'js-heap-leak', null, 'suspected', 0, 2, 3]
    ])
    const [old, newer] = [
      { serviceVersion: '4.2.0', nodeVersion: '22.20.0' },
      { serviceVersion: '4.3.0', nodeVersion: '24.11.0' }
    ]
    expect(report.findings[1]).toMatchObject({
      savingBytes: 2.5 * GIB,
      fix: '--max-semi-space-size=8',
      fixTargets: 6,
      sinceUnixMs: 1_750_000_000_000,
      versions: [
        { ...old, targets: 10, savingBytes: 2 * GIB, savingCores: 0.5 },
        { ...newer, targets: 2, savingBytes: GIB / 2, savingCores: 0 }
      ]
    })
    expect(report.findings[0].sinceUnixMs).toBe(1_760_000_000_500)
    expect(report.workloads.map((/** @type {any} */ { workload, findings, growth }) =>
      [workload, findings, growth?.text])).toEqual([
      ['api', 2, 'since 4.3.0: live heap grows 12 MiB/h; with 4.2.0 0 MiB/h'],
      ['mailer', 2, undefined]
    ])
  })

  it('queries only series that the shipped rules record', async () => {
    await reportOf({ selector: '{namespace="shop"}' })
    const rules = parse(
      fs.readFileSync(path.join(__dirname, '../../alerts/memwatch.rules.yaml'), 'utf8')
    )
    const names = rules.groups
      .flatMap((/** @type {any} */ { rules }) => rules)
      .map((/** @type {any} */ { record }) => record)
    expect(asked.map(({ query }) => query).sort()).toEqual(
      Object.values(RECORDED).map(name => `{__name__="${name}",namespace="shop"}`).sort())
    for (const name of Object.values(RECORDED)) expect(names).toContain(name)
  })

  it('computes money from the given prices', async () => {
    const prices = { gibPerMonth: 4, corePerMonth: 30, currency: 'EUR' }
    const report = await reportOf({ prices })
    const { totals, findings } = report
    expect(totals.savingPerMonth).toBeCloseTo(2.75 * 4 + 0.5 * 30)
    expect(findings[1].savingPerMonth).toBeCloseTo(2.5 * 4 + 0.5 * 30)
    expect(findings[1].versions[1].savingPerMonth).toBeCloseTo(0.5 * 4)
    expect(FORMATS.text(report)).toMatch(/^info +shop\/api +oversized-heap .* 25\.00 EUR$/m)
    const ofMemory = await reportOf({ prices: { ...prices, corePerMonth: null } })
    expect(ofMemory.findings[1].savingPerMonth).toBeCloseTo(2.5 * 4)
  })

  it('prints a table for a terminal', async () => {
    const text = FORMATS.text(await reportOf())
    expect(text).toMatch(/^critical +shop\/api +js-heap-leak +9 of 20 \(\+1 suspected\)$/m)
    expect(text).toMatch(/^info +shop\/api +oversized-heap +12 of 20 +2560 MiB +0\.5$/m)
    expect(text).toContain('  4.2.0 on Node.js 22.20.0: 10, 4.3.0 on Node.js 24.11.0: 2')
    expect(text).toContain('fix: --max-semi-space-size=8 (of 6; others differ)')
    expect(text).toContain('shop/api since 4.3.0: live heap grows 12 MiB/h; with 4.2.0 0 MiB/h')
  })

  it('prints Markdown and HTML in which texts of processes are no markup', async () => {
    const report = await reportOf()
    const [markdown, page] = [renderMarkdown(report), renderHtml(report)]
    expect(markdown).toMatch(/\| \[js-heap-leak\]\(https:[^)]+\/MemwatchJsHeapLeak\.md\) \|/)
    const rows = markdown.split('\n').filter(line => line.startsWith('|'))
    expect(rows).toHaveLength(6)
    expect(new Set(rows.map(row => row.split('|').length)).size).toBe(1)
    expect(page).toMatch(/^<!doctype html>/)
    for (const text of [markdown, page]) {
      expect(text).not.toContain('<b>')
      expect(text).not.toContain('javascript:')
    }
  })

  it('prints CSV with a row for each version, and without formulas', async () => {
    const csv = renderCsv(await reportOf())
    const [head, ...lines] = csv.trim().split('\n')
    expect(head).toBe('cluster,namespace,job,workload,diagnosis,state,severity,service_version,' +
      'node_version,targets,saving_bytes,saving_cores,saving_per_month,fix')
    expect(lines).toHaveLength(5)
    expect(csv).toContain(',"\'=cmd|""x""!A1"')
    expect(lines[1]).toBe(',shop,shop/memwatch,api,oversized-heap,confirmed,info,4.2.0,22.20.0,10,' +
      `${2 * GIB},0.5,,'--max-semi-space-size=8`)
  })

  it('sends the token and the tenant, to the path of the URL', async () => {
    const file = path.join(folder, 'token')
    fs.writeFileSync(file, 'secret\n')
    const { stdout } = await memwatch([
      'fleet', '--prometheus', `${url}/prometheus/`, '--prometheus-token-file', file,
      '--tenant', 'shop'
    ])
    expect(stdout).toMatch(/^# Memory findings/)
    expect(asked.length).toBe(Object.keys(RECORDED).length)
    for (const { headers, url } of asked) {
      expect(url).toBe('/prometheus/api/v1/query')
      expect(headers).toMatchObject({ authorization: 'Bearer secret', 'x-scope-orgid': 'shop' })
    }
  })

  it.each(Object.keys(FORMATS))('reports a partial answer in %s', async format => {
    reply = key => key === 'rssBytes'
      ? { body: success(ANSWERS[key], { warnings: ['store 10.0.0.9 is away'] }) }
      : recorded(key)
    expect(FORMATS[format](await reportOf()))
      .toContain('Partial answer: store 10.0.0.9 is away')
  })
  it('reports a partial answer, here from missing rules, beside a CSV', async () => {
    reply = key => key === 'fixes' ? { body: success([]) } : recorded(key)
    const { code, stderr } = await fleet('--format', 'csv')
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: 'memwatch: partial answer: no series workload:memwatch_verdict_fixes:topk: load all ' +
        'rules of alerts/memwatch.rules.yaml\n'
    })
  })

  const failed = (/** @type {string} */ errorType, /** @type {string} */ error) =>
    () => ({ status: 400, body: { status: 'error', errorType, error } })
  it.each(/** @type {[string, () => Reply, RegExp][]} */ ([
    ['no recorded series', () => ({ body: success([]) }), /load .* alerts\/memwatch\.rules\.yaml/],
    ['no answer in time', () => ({ hangs: true }), /did not answer within 0\.2 s/],
    ['no permission', () => ({ status: 401, body: 'no' }), /other credentials: it answered 401/],
    ['a wrong selector', failed('bad_data', 'parse error'), /--selector: .* parse error/],
    ['a failed query', failed('timeout', 'query timed out'), /could not answer .* query timed out/],
    ['no Prometheus', () => ({ body: '<html>' }), /is it a Prometheus/]
  ]))('fails with one sentence: %s', async (_, answer, message) => {
    reply = answer
    const failure = await reportOf({ timeoutMs: 200 }).catch(error => error)
    expect(failure.constructor.name).toBe('SourceError')
    expect(failure.message).toMatch(message)
    expect(failure.message).not.toContain('\n')
  })

  it.each([
    ['--price-gib', 'cheap', '--price-gib: expected a price'],
    ['--prometheus-token-file', '/no/such/file', '--prometheus-token-file: ENOENT'],
    ['--prometheus', 'http://127.0.0.1:1', '--prometheus: cannot reach']
  ])('ends with status 2 for %s %s', async (option, value, message) => {
    const { code, stdout, stderr } = await fleet(option, value)
    expect({ code, stdout, stderr }).toEqual({
      code: 2, stdout: '', stderr: expect.stringContaining(message)
    })
  })
})
