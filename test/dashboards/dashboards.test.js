'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { parse } = require('yaml')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { dashboards } = require('../../scripts/dashboards')
const { parsePromql } = require('../support/promql')

const ROOT = path.join(__dirname, '../..')
const inFile = name =>
  parse(fs.readFileSync(path.join(ROOT, 'alerts', name), 'utf8')).groups.flatMap(
    ({ rules }) => rules
  )

/** Series by name, with their type. @type {Map<string, string>} */
const series = new Map(
  [...targetMetrics, ...compatMetrics, ...exporterMetrics].flatMap(({ name, type }) => {
    /** @type {[string, string][]} */
    const each =
      type === 'histogram'
        ? ['_bucket', '_sum', '_count'].map(suffix => [name + suffix, 'counter'])
        : [[name, type]]
    return each
  })
)
for (const { record } of inFile('memwatch.rules.yaml')) series.set(record, 'gauge')
// Series that Prometheus itself writes at each scrape.
for (const name of ['up', 'scrape_duration_seconds', 'scrape_samples_scraped']) {
  series.set(name, 'gauge')
}

const all = Object.entries(dashboards).map(([name, make]) => [name, make()])
const panels = all.flatMap(([name, dashboard]) =>
  dashboard.panels
    .filter(({ type }) => type !== 'row')
    .map(panel => [`${name}: ${panel.title}`, panel])
)
const expressions = [
  ...panels.flatMap(([title, { targets }]) => targets.map(({ expr }) => [`panel ${title}`, expr])),
  ...all.flatMap(([name, { annotations }]) =>
    (annotations?.list ?? []).map(({ name: title, expr }) => [`annotation ${name}: ${title}`, expr])
  ),
  ...['memwatch.alerts.yaml', 'memwatch.rules.yaml', 'prom-client.rules.yaml'].flatMap(file =>
    inFile(file).map(({ alert, record, expr }) => [`rule ${alert ?? record}`, expr])
  )
]
/** Functions that may be applied to a counter. */
const OF_COUNTERS = ['rate', 'increase', 'irate', 'changes', 'resets']

describe('expressions', () => {
  it.each(expressions)('of %s are valid PromQL with exposed metrics', (_, expr) => {
    const { error, metrics } = parsePromql(expr)
    expect({ expr, error }).toEqual({ expr, error: false })
    expect(metrics.map(({ name }) => name).filter(name => !series.has(name))).toEqual([])
  })
  it.each(expressions)('of %s use only the growth of counters', (_, expr) => {
    for (const { name, functions } of parsePromql(expr).metrics) {
      if (series.get(name) === 'counter') {
        expect({ name, functions: functions.filter(name => OF_COUNTERS.includes(name)) }).toEqual({
          name,
          functions: [expect.any(String)]
        })
      }
    }
  })
  it('with invalid PromQL or raw counters are detected', () => {
    expect(parsePromql('rate(x[5m').error).toBe(true)
    expect(parsePromql('sum by (a) (rate(x{job=~"$job"}[$__rate_interval])) / y').metrics).toEqual([
      { name: 'x', ranged: true, functions: ['rate'] }, { name: 'y', ranged: false, functions: [] }
    ])
  })
})

describe('dashboards', () => {
  it('each is a file, and each file is a dashboard', () => {
    expect(
      fs
        .readdirSync(path.join(ROOT, 'dashboards'))
        .filter(name => name.endsWith('.json'))
        .sort()
    ).toEqual(all.map(([name]) => `${name}.json`).sort())
  })
  it.each(all)('%s has data source and filters to choose, and is read-only', (name, dashboard) => {
    expect(dashboard).toMatchObject({
      uid: `memwatch-${name}`,
      editable: false,
      description: expect.stringMatching(/\.$/),
      tags: expect.arrayContaining(['memwatch'])
    })
    const [source, ...variables] = dashboard.templating.list
    expect(source).toMatchObject({ type: 'datasource', name: 'datasource', query: 'prometheus' })
    for (const variable of variables) {
      expect(variable).toMatchObject({
        type: 'query',
        multi: true,
        includeAll: true,
        allValue: '.+',
        refresh: 2,
        label: expect.stringMatching(/^[A-Z]/)
      })
      expect(series.has(String(/label_values\((\w+)/.exec(variable.query)?.[1]))).toBe(true)
    }
  })
  it('no title occurs twice', () => {
    const titles = panels.map(([title]) => title)
    expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([])
  })
  it.each(panels)('%s has descriptions, units and thresholds', (_, panel) => {
    expect(panel).toMatchObject({
      title: expect.stringMatching(/\S/),
      description: expect.stringMatching(/^[A-Z].{20,}\.$/),
      datasource: { type: 'prometheus', uid: '$' + '{datasource}' }
    })
    expect(panel.fieldConfig.defaults.unit).toMatch(/^(bytes|percentunit|s|short|ops)$/)
    // Grafana's own thresholds paint everything above 80 red.
    expect(panel.fieldConfig.defaults.thresholds.steps[0].value).toBeNull()
    expect(panel.targets.length).toBeGreaterThan(0)
  })
  it.each(panels)(
    '%s uses Grafana’s rate interval and the chosen filters',
    (_, { targets }) => {
      for (const { expr } of targets) {
        for (const [, of, range] of expr.matchAll(
          /\b(rate|increase|irate)\([^[\]]*\[([^\]]+)\]/g
        )) {
          expect([of, range]).toEqual([of, expect.stringMatching(/^(\$__rate_interval|1h)$/)])
        }
        for (const [selector] of expr.matchAll(/\{[^}]*\}/g)) {
          expect(selector).toMatch(/job=~"\$job"/)
        }
      }
    }
  )
})

describe('published dashboards for the same metric names', () => {
  // Dashboard 11159 of grafana.com and the nodejs-mixin of grafana/jsonnet-libs, with the metrics
  // that they query.
  it.each([
    'process_cpu_user_seconds_total',
    'process_cpu_system_seconds_total',
    'process_start_time_seconds',
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_seconds',
    'nodejs_eventloop_lag_p50_seconds',
    'nodejs_eventloop_lag_p99_seconds',
    'nodejs_version_info',
    'nodejs_heap_size_total_bytes',
    'nodejs_heap_size_used_bytes',
    'nodejs_external_memory_bytes',
    'nodejs_heap_space_size_total_bytes',
    'nodejs_heap_space_size_used_bytes',
    'nodejs_heap_space_size_available_bytes',
    'nodejs_active_handles_total',
    'nodejs_active_requests_total',
    'nodejs_gc_duration_seconds_sum',
    'nodejs_gc_duration_seconds_count'
  ])('find %s', name => expect(series.has(name)).toBe(true))
})
