'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { parse } = require('yaml')
const { diagnoses } = require('../../exporter/diagnoses')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { REJECT_REASONS } = require('../../exporter/ingest/decode')
const { alertRules } = require('../../scripts/alert-rules')
const { describeWithTools } = require('../support/tools')

const ALERTS = path.join(__dirname, '../../alerts')
const rules = parse(fs.readFileSync(path.join(ALERTS, 'memwatch.alerts.yaml'), 'utf8')).groups.flatMap(({ rules }) => rules)
const names = rules.map(({ alert }) => alert)
const inFolder = (folder, ending) => fs.readdirSync(path.join(ALERTS, folder)).map(name => name.replace(ending, ''))

const HEADINGS = ['Meaning', 'Impact', 'Confirm', 'Fix now', 'Fix for good', 'How to tell it worked', 'False positives and look-alikes']

/** Every series name that is exposed. */
const series = new Set([...targetMetrics, ...exporterMetrics].flatMap(({ name, type }) =>
  type === 'histogram' ? ['_bucket', '_sum', '_count'].map(suffix => name + suffix) : [name]))
/** What a text names that nobody exposes. @param {string} text */
const unknownMetrics = text => (text.match(/\bmemwatch_[a-z_]+/g) ?? []).filter(name => !series.has(name))

/** @param {string} file @param {string[]} args */
function expectSuccess (file, args) {
  const { status, stdout, stderr } = spawnSync(file, args, { cwd: ALERTS, encoding: 'utf8', timeout: 20_000 })
  expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: expect.any(String) })
}

describe('alerts', () => {
  it('each has a runbook and a test of its own name, and nothing is left over', () => {
    expect(inFolder('runbooks', '.md').sort()).toEqual([...names].sort())
    expect(inFolder('tests', '.test.yaml').sort()).toEqual([...names].sort())
  })
  it.each(rules.map(rule => [rule.alert, rule]))('%s says what it is, how bad, and what to do', (alert, rule) => {
    expect(rule.labels.severity).toMatch(/^(critical|warning|info)$/)
    expect(Object.keys(rule.annotations).sort()).toEqual(['description', 'fix', 'runbook_url', 'summary'])
    expect(rule.annotations.summary).not.toContain('{{')
    expect(rule.annotations.runbook_url.endsWith(`/${alert}.md`)).toBe(true)
    expect(parseInt(rule.for)).toBeGreaterThanOrEqual(60)
    expect(parseInt(rule.keep_firing_for)).toBeGreaterThan(0)
  })
  it.each(names)('the runbook of %s has all its parts, and one command to confirm', name => {
    const text = fs.readFileSync(path.join(ALERTS, 'runbooks', `${name}.md`), 'utf8')
    expect([...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)).toEqual(HEADINGS)
    const confirm = text.split('## Confirm')[1].split('\n## ')[0]
    expect([...confirm.matchAll(/```sh\n(.+)\n```/g)]).toHaveLength(1)
  })
  it.each(rules.map(rule => [rule.alert, rule]))('%s and its runbook name only metrics that exist', (alert, { expr, annotations }) => {
    expect(unknownMetrics(expr + annotations.description)).toEqual([])
    expect(unknownMetrics(fs.readFileSync(path.join(ALERTS, 'runbooks', `${alert}.md`), 'utf8'))).toEqual([])
  })
  it('each diagnosis has its alert, of its severity, and an opportunity none', () => {
    for (const { runbook, severity, opportunity } of diagnoses) {
      expect(rules.find(({ alert }) => alert === runbook)?.labels).toEqual(opportunity ? undefined : { severity })
    }
  })
  it('the runbook of rejected lines knows every reason, and no other', () => {
    const text = fs.readFileSync(path.join(ALERTS, 'runbooks/MemwatchLinesRejected.md'), 'utf8')
    const reasons = [...text.matchAll(/^\| (`.+`) \|/gm)].flatMap(([, cell]) => cell.replaceAll('`', '').split(', '))
    expect(reasons.sort()).toEqual([...REJECT_REASONS].sort())
  })
})

describe('alert rules can be had otherwise', () => {
  const rulesOf = options => alertRules({ diagnoses, ...options }).groups.flatMap(({ rules }) => rules)
  it('by default critical ones wait a minute, warnings two, and all outlive five minutes without their series', () => {
    expect(rulesOf({}).find(({ labels }) => labels.severity === 'critical')).toMatchObject({ for: '60s', keep_firing_for: '300s' })
    expect(rulesOf({}).find(({ labels }) => labels.severity === 'warning')).toMatchObject({ for: '120s', keep_firing_for: '300s' })
  })
  it('times and the place of the runbooks', () => {
    for (const rule of rulesOf({ forSeconds: 5, keepFiringForSeconds: 7, runbookBaseUrl: 'https://wiki.example.org/memwatch' })) {
      expect(rule).toMatchObject({ for: '5s', keep_firing_for: '7s', annotations: { runbook_url: `https://wiki.example.org/memwatch/${rule.alert}.md` } })
    }
  })
  it('a selector reaches every series an alert rests on', () => {
    for (const { expr } of rulesOf({ selector: 'namespace="shop"' })) {
      const selected = expr.match(/(memwatch_[a-z_]+|\bup)(\{[^}]*\})?/g)
      expect(selected.length).toBeGreaterThan(0)
      for (const one of selected) expect(one).toContain('namespace="shop"')
    }
  })
  it('the scrape job of the exporters', () => {
    expect(rulesOf({ jobSelector: 'job="sidecars"' }).find(({ alert }) => alert === 'MemwatchExporterDown').expr).toBe('up{job="sidecars"} == 0')
  })
  it('a diagnosis that has no numbers of its own shows RSS', () => {
    const [rule] = rulesOf({ diagnoses: [{ id: 'new-one', title: 'GC never runs', severity: 'info', runbook: 'MemwatchNewOne' }] })
    expect(rule.annotations.description).toMatch(/GC never runs\. Now: RSS \{\{ with/)
    expect(rule.for).toBe('300s')
  })
})

describeWithTools('alerts under promtool and amtool', ({ promtool, amtool }) => {
  it('the rules are sound', () => expectSuccess(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', 'memwatch.alerts.yaml']))
  it.each(names)('%s fires, stays silent and resolves as its test says', name => expectSuccess(promtool, ['test', 'rules', `tests/${name}.test.yaml`]))
  it('the Alertmanager example is sound', () => expectSuccess(amtool, ['check-config', 'alertmanager.example.yaml']))
  it.each([
    ['critical', 'pager'],
    ['warning', 'tickets'],
    ['info', 'nobody']
  ])('%s goes to %s', (severity, receiver) => {
    expectSuccess(amtool, ['config', 'routes', 'test', '--config.file=alertmanager.example.yaml', `--verify.receivers=${receiver}`, `severity=${severity}`, 'alertname=MemwatchJsHeapLeak'])
  })
})
