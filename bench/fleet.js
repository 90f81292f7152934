'use strict'

/**
 * `npm run bench:fleet` measures the load of a fleet on Prometheus. It serves real series of five
 * lab apps, multiplied to the given number of targets, to a real Prometheus with the recording
 * rules. Then it times every query of the fleet dashboard and every alert rule.
 *
 *   npm run bench:fleet -- --targets 2000 --minutes 3
 */

const { median, max } = require('simple-statistics')
const { diagnoses } = require('../engine/diagnoses')
const { dashboards, filled } = require('../scripts/dashboards')
const { alertRules, recordedRules, rulesYaml } = require('../scripts/alerts/index')
const { findTools, MISSING } = require('../scripts/system-tools')
const { startExporter, eventually } = require('../test/support/exporter')
const { startPrometheus } = require('../test/support/prometheus')
const { tellRecording } = require('../test/support/recorded-agent')
const { parseOptions } = require('./options')
const { rssOf } = require('./process-reading')
const { serveMetrics } = require('./served-metrics')

const APPS = [
  'healthy-steady',
  'semi-space-starvation',
  'allocator-fragmentation',
  'oversized-heap',
  'js-heap-leak'
]
/** Targets served by each exporter. */
const TARGETS_EACH = 20
const REPEATS = 5
const SCRAPE_SECONDS = 15

const given = parseOptions(__filename, {
  targets: { type: 'string', default: '2000' },
  minutes: { type: 'string', default: '3' }
})
const exporters = Math.ceil(Number(given.targets) / TARGETS_EACH)

/**
 * Lines of each app's target, and lines without a target.
 * @returns {Promise<{ own: string[], byApp: string[][] }>}
 */
async function realSeries () {
  const exporter = await startExporter()
  const connections = []
  for (const [i, app] of APPS.entries()) {
    connections.push(await tellRecording(exporter, app, { pid: 100_000 + i, name: `app-${i}` }))
  }
  const lines = (await exporter.metrics())
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
  for (const connection of connections) connection.destroy()
  await exporter.stop()
  return {
    own: lines.filter(line => !line.includes('target="')),
    byApp: APPS.map((_, i) => lines.filter(line => line.includes(`target="app-${i}"`)))
  }
}

async function main () {
  const tools = findTools()
  if (!tools) throw new Error(MISSING)
  const { own, byApp } = await realSeries()
  // Served values change a little, like real counters, so that Prometheus compresses them as usual.
  const text = (/** @type {number} */ exporter, /** @type {number} */ scrapes) => Array.from({ length: TARGETS_EACH }, (_, i) => {
    const app = (exporter + i) % APPS.length
    return byApp[app].map(line => {
      const named = line.replace(`target="app-${app}"`, `target="app-${app}-${i}"`)
      const at = named.lastIndexOf(' ')
      return /_(total|count|sum|bucket)\{/.test(named)
        ? `${named.slice(0, at)} ${Number(named.slice(at + 1)) + scrapes}`
        : named
    }).join('\n')
  }).join('\n') + '\n' + own.join('\n') + '\n'
  const { port, close } = await serveMetrics(text)
  const prometheus = await startPrometheus({
    file: tools.prometheus,
    rules: rulesYaml(
      { groups: [...recordedRules().groups, ...alertRules({ diagnoses }).groups] },
      'a bench'
    ),
    jobs: Array.from({ length: exporters }, (_, i) => ({
      target: `127.0.0.1:${port}`,
      path: `/e${i}/metrics`,
      labels: { instance: `10.0.${i >> 8}.${i & 255}:16369` }
    })),
    job: 'shop/memwatch',
    intervalSeconds: SCRAPE_SECONDS
  })
  try {
    console.log(
      `${exporters} exporters with ${TARGETS_EACH} targets each, ` +
        `${byApp.reduce((sum, lines) => sum + lines.length, 0) / APPS.length} series a target; ` +
          `${given.minutes} minutes …`
    )
    await new Promise(resolve => setTimeout(resolve, 60_000 * Number(given.minutes)))
    await eventually(
      () => prometheus.query('count(memwatch_target_up)'),
      ([sample]) => Number(sample?.value[1]) === exporters * TARGETS_EACH,
      60_000
    )
    const rss = rssOf(/** @type {number} */ (prometheus.pid))
    const [series] = await prometheus.query('prometheus_tsdb_head_series or vector(0)')
    console.log(
      `Prometheus holds ${(rss / 2 ** 30).toFixed(2)} ` +
        `GiB${Number(series.value[1]) > 0 ? `, ${series.value[1]} series` : ''}`
    )
    const queries = [
      ...dashboards
        .fleet()
        .panels.filter(({ type }) => type !== 'row')
        .flatMap(({ title, targets }) =>
          targets.map(({ expr, format }) => ({
            title,
            expr: filled(expr),
            range: format !== 'table'
          }))
        ),
      ...alertRules({ diagnoses }).groups.flatMap(({ rules }) =>
        rules.map(({ alert, expr }) => ({ title: alert, expr, range: false }))
      ),
      ...recordedRules().groups.flatMap(({ rules }) =>
        rules.map(({ record, expr }) => ({ title: record, expr, range: false }))
      )
    ]
    const rows = []
    for (const { title, expr, range } of queries) {
      const ms = []
      let size = 0
      for (let i = 0; i < REPEATS; i++) {
        const began = performance.now()
        size = (
          range
            ? await prometheus.queryRange(expr, 60 * Number(given.minutes), SCRAPE_SECONDS)
            : await prometheus.query(expr)
        ).length
        ms.push(performance.now() - began)
      }
      rows.push({ title, median: median(ms), longest: max(ms), size })
      console.log(
        `${median(ms).toFixed(0).padStart(6)} ms, at most ${max(ms).toFixed(0).padStart(5)} ms, ` +
          `${String(size).padStart(6)} results  ${title}`
      )
    }
    const slowest = max(rows.map(row => row.median))
    console.log(`slowest: ${slowest.toFixed(0)} ms`)
    if (slowest > 2000) process.exitCode = 1
  } finally {
    await prometheus.stop()
    close()
  }
}

main()
