'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse } = require('yaml')
const { diagnoses } = require('../../engine/diagnoses')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { REJECT_REASONS } = require('../../engine/decode/decode')
const { alertRules, recordedRules } = require('../../scripts/alerts/index')
const { describeWithTools } = require('../support/tools')

const ALERTS = path.join(__dirname, '../../alerts')
/** Rules in the format of Prometheus. @type {any[]} */
const rules = parse(
  fs.readFileSync(path.join(ALERTS, 'memwatch.alerts.yaml'), 'utf8')
).groups.flatMap(({ rules }) => rules)
const names = rules.map(({ alert }) => alert)
/** @type {any[]} */
const recorded = parse(
  fs.readFileSync(path.join(ALERTS, 'memwatch.rules.yaml'), 'utf8')
).groups.flatMap(({ rules }) => rules)
/** Rules that need no agent share one test and one page. */
const PROM_CLIENT = 'prom-client'
/** Names of tests that cover more than one rule. */
const OTHERS = [PROM_CLIENT, 'workloads']
/** @type {any[]} */
const promClient = parse(
  fs.readFileSync(path.join(ALERTS, `${PROM_CLIENT}.rules.yaml`), 'utf8')
).groups.flatMap(({ rules }) => rules)
const inFolder = (folder, ending) =>
  fs.readdirSync(path.join(ALERTS, folder)).map(name => name.replace(ending, ''))

const HEADINGS = [
  'Meaning',
  'Impact',
  'Confirm',
  'Fix now',
  'Permanent fix',
  'Check the result',
  'False positives and look-alikes'
]

/** Names of all exposed series. */
const series = new Set([...targetMetrics, ...exporterMetrics].flatMap(({ name, type }) =>
  type === 'histogram' ? ['_bucket', '_sum', '_count'].map(suffix => name + suffix) : [name]))
for (const { record } of recorded) series.add(record)
const METRIC = /(?<!:)\b(?:(?:memwatch|fleet)[:_]|(?:workload|thread):)[a-z0-9_:]+/g
/** Metrics in a text that do not exist. @param {string} text */
const unknownMetrics = text => (text.match(METRIC) ?? []).filter(name => !series.has(name))

/**
 * @param {string} file
 * @param {string[]} args
 */
function expectSuccess (file, args) {
  const { status, stdout, stderr } = spawnSync(file, args, {
    cwd: ALERTS,
    encoding: 'utf8',
    timeout: 60_000
  })
  expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: expect.any(String) })
}

describe('alerts', () => {
  it('each has a runbook and a test with its name, and each of these files has an alert', () => {
    expect(inFolder('runbooks', '.md').sort()).toEqual([...names].sort())
    expect(inFolder('tests', '.test.yaml').sort()).toEqual([...names, ...OTHERS].sort())
  })
  it.each(rules.map(rule => [rule.alert, rule]))(
    '%s states the problem, its severity and the remedy',
    (alert, rule) => {
      expect(rule.labels.severity).toMatch(
        /^(critical|warning|info|\{\{ if \$labels\.severity \}\}.*\{\{ else \}\}(critical|warning|info)\{\{ end \}\})$/
      )
      expect(Object.keys(rule.annotations).sort()).toEqual([
        'dashboard_url',
        'description',
        'fix',
        'runbook_url',
        'summary'
      ])
      expect(rule.annotations.dashboard_url).toMatch(
        /^https:\/\/[^/]+\/d\/memwatch-(process|exporter)\?var-job=/
      )
      expect(rule.annotations.summary).not.toContain('{{')
      expect(rule.annotations.runbook_url.endsWith(`/${alert}.md`)).toBe(true)
      expect(parseInt(rule.for)).toBeGreaterThanOrEqual(60)
      expect(parseInt(rule.keep_firing_for)).toBeGreaterThan(0)
    }
  )
  it.each(names)('the runbook of %s has all parts, and one command that confirms it', name => {
    const text = fs.readFileSync(path.join(ALERTS, 'runbooks', `${name}.md`), 'utf8')
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(HEADINGS)
    const confirm = text.split('## Confirm')[1].split('\n## ')[0]
    expect([...confirm.matchAll(/```sh\n(.+)\n```/g)]).toHaveLength(1)
  })
  it.each(rules.map(rule => [rule.alert, rule]))(
    '%s and its runbook name only metrics that exist',
    (alert, { expr, annotations }) => {
      expect(unknownMetrics(expr + annotations.description)).toEqual([])
      expect(
        unknownMetrics(fs.readFileSync(path.join(ALERTS, 'runbooks', `${alert}.md`), 'utf8'))
      ).toEqual([])
    }
  )
  it('each diagnosis has an alert with its severity, and opportunities have none', () => {
    for (const { runbook, severity: worst, opportunity } of diagnoses) {
      const severity = `{{ if $labels.severity }}{{ $labels.severity }}{{ else }}${worst}{{ end }}`
      expect(rules.find(({ alert }) => alert === runbook)?.labels).toEqual(
        opportunity ? undefined : { severity, service_name: expect.stringContaining('label') }
      )
    }
  })
  it('the runbook of rejected lines lists exactly the existing reasons', () => {
    const text = fs.readFileSync(path.join(ALERTS, 'runbooks/MemwatchLinesRejected.md'), 'utf8')
    const reasons = [...text.matchAll(/^\| (`.+`) \|/gm)].flatMap(([, cell]) =>
      cell.replaceAll('`', '').split(', ')
    )
    expect(reasons.sort()).toEqual([...REJECT_REASONS].sort())
  })
})

describe('recording rules', () => {
  it.each(recorded.map(({ record, expr }) => [record, expr]))(
    '%s is named by its aggregation level and uses existing metrics',
    (record, expr) => {
      expect(record).toMatch(/^(memwatch|fleet|workload|thread):[a-z_]+:[a-z0-9]+$/)
      expect(unknownMetrics(expr)).toEqual([])
      expect(expr).toMatch(/memwatch_/)
    }
  )
  it('accept the same selector as the alerts', () => {
    for (const { rules } of recordedRules({ selector: 'namespace="shop"' }).groups) {
      for (const { expr } of rules) {
        for (const [selected] of expr.matchAll(/(?<![:\w])memwatch_[a-z_0-9]+(\{[^}]*\})?/g)) {
          if (series.has(selected.replace(/\{.*/, ''))) {
            expect(selected).toContain('namespace="shop"')
          }
        }
      }
    }
  })
})

describe('alerts for apps without an agent', () => {
  const page = fs.readFileSync(path.join(ALERTS, `${PROM_CLIENT}.md`), 'utf8')
  const known = new Set(
    compatMetrics.flatMap(({ name, type }) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map(suffix => name + suffix) : [name]
    )
  )
  it.each(promClient.map(rule => [rule.alert, rule]))(
    '%s states its limits and uses metrics of prom-client',
    (alert, { expr, annotations }) => {
      expect(Object.keys(annotations).sort()).toEqual([
        'description',
        'fix',
        'runbook_url',
        'summary',
        'unknown'
      ])
      expect(annotations.runbook_url.endsWith(`#${alert.toLowerCase()}`)).toBe(true)
      expect(page).toContain(`\n## ${alert}\n`)
      const used = expr.match(/\b(nodejs|process)_[a-z_0-9]+/g)
      expect(used.length).toBeGreaterThan(0)
      expect(used.filter(name => !known.has(name))).toEqual([])
    }
  )
  it('has no section in its page without an alert', () => {
    expect([...page.matchAll(/^## (.+)$/gm)].map(([, name]) => name)).toEqual(
      promClient.map(({ alert }) => alert)
    )
  })
})

describe('options of the alert rules', () => {
  const rulesOf = options =>
    alertRules({ diagnoses, ...options }).groups.flatMap(({ rules }) => rules)
  it('default to a wait of one minute for critical alerts, and two minutes for others', () => {
    expect(rulesOf({}).find(({ labels }) => labels.severity === 'critical')).toMatchObject({
      for: '60s',
      keep_firing_for: '300s'
    })
    expect(rulesOf({}).find(({ labels }) => labels.severity === 'warning')).toMatchObject({
      for: '120s',
      keep_firing_for: '300s'
    })
  })
  it('set times and the address of the runbooks', () => {
    for (const rule of rulesOf({
      forSeconds: 5,
      keepFiringForSeconds: 7,
      runbookBaseUrl: 'https://wiki.example.org/memwatch'
    })) {
      expect(rule).toMatchObject({
        for: '5s',
        keep_firing_for: '7s',
        annotations: { runbook_url: `https://wiki.example.org/memwatch/${rule.alert}.md` }
      })
    }
  })
  it('apply a selector to every series in an alert', () => {
    for (const { expr } of rulesOf({ selector: 'namespace="shop"' })) {
      const selected = expr.match(/(memwatch[_:][a-z_0-9:]+|\bup)(\{[^}]*\})?/g)
      expect(selected.length).toBeGreaterThan(0)
      for (const one of selected) expect(one).toContain('namespace="shop"')
    }
  })
  it('set the scrape job of the exporters', () => {
    expect(
      rulesOf({ jobSelector: 'job="sidecars"' }).find(
        ({ alert }) => alert === 'MemwatchExporterDown'
      ).expr
    ).toBe('up{job="sidecars"} == 0')
  })
  it('set thresholds, the grace period after a start, and the address of the dashboards', () => {
    const changed = rulesOf({
      memoryRatio: 0.8,
      heapRatio: 0.7,
      graceSeconds: 60,
      dashboardBaseUrl: 'https://g.example.org'
    })
    const byName = name => changed.find(({ alert }) => alert === name)
    expect(byName('MemwatchMemoryNearLimit').expr).toContain(
      '> 0.8 * memwatch_container_limit_bytes'
    )
    expect(byName('MemwatchHeapNearLimit').expr).toContain('> 0.7 * memwatch_heap_size_limit_bytes')
    expect(byName('MemwatchHeapNearLimit').expr).toContain(
      'memwatch_target_start_time_seconds > 60'
    )
    for (const { annotations } of changed) {
      expect(annotations.dashboard_url).toMatch(/^https:\/\/g\.example\.org\/d\//)
    }
  })
  it('come from the command line, whose errors name a wrong option', () => {
    const alerts = (...args) =>
      spawnSync(process.execPath, [path.join(ALERTS, '../scripts/alerts.js'), ...args], {
        encoding: 'utf8'
      })
    expect(parse(alerts('--selector', 'namespace="shop"').stdout).groups).toHaveLength(3)
    expect(parse(alerts('--recorded').stdout)).toEqual(recordedRules())
    expect(alerts('--help').stdout).toContain('--memory-ratio')
    expect(alerts('--grace', 'soon')).toMatchObject({
      status: 2,
      stderr: '--grace: expected a number above 0, got soon\n'
    })
    expect(alerts('--nonsense')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--nonsense')
    })
  })
  it('show RSS in the alert for a diagnosis without a metric of its own', () => {
    const [rule] = rulesOf({
      diagnoses: [
        { id: 'new-one', title: 'GC never runs', severity: 'info', runbook: 'MemwatchNewOne' }
      ]
    })
    expect(rule.annotations.description).toMatch(/GC never runs\..* Now: RSS \{\{ with/)
    expect(rule.for).toBe('300s')
  })
})

describeWithTools('alerts under promtool and amtool', ({ promtool, amtool }) => {
  it.each(['memwatch.alerts.yaml', 'memwatch.rules.yaml', 'prom-client.rules.yaml'])(
    '%s passes the check of its tool',
    file => expectSuccess(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', file])
  )
  it.each([...names, ...OTHERS])('%s fires, stays silent and resolves as in its promtool test ' +
    'expects', name =>
    expectSuccess(promtool, ['test', 'rules', `tests/${name}.test.yaml`])
  )
  it('the Alertmanager example passes amtool check-config', () =>
    expectSuccess(amtool, ['check-config', 'alertmanager.example.yaml']))
  it.each([
    ['critical', 'pager'],
    ['warning', 'tickets'],
    ['info', 'nobody']
  ])('%s goes to %s', (severity, receiver) => {
    expectSuccess(amtool, [
      'config',
      'routes',
      'test',
      '--config.file=alertmanager.example.yaml',
      `--verify.receivers=${receiver}`,
      `severity=${severity}`,
      'alertname=MemwatchJsHeapLeak'
    ])
  })
})
