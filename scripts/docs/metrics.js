'use strict'

const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { otelOf, SEMCONV_VERSION } = require('../../exporter/catalog/otel')
const { otelMetrics } = require('../../exporter/catalog/otel-metrics')
const { parts } = require('../../engine/memory/parts')
const { page } = require('./page')
const { table } = require('../markdown')

/** Name, renamed attributes and unit. @param {any} row */
function otelCell (row) {
  const form = otelOf({ name: '', ...row })
  if (!form) return ''
  const attributes = [
    ...Object.values(form.attributes ?? {}),
    ...Object.entries(form.always ?? {}).map(([name, value]) => `${name}=${value}`)
  ]
  return `\`${form.name}\`${attributes.length > 0 ? ` {${attributes.join(', ')}}` : ''}${form.unit && ` ${form.unit}`}${form.instrument === row.type ? '' : `, ${form.instrument}`}`
}

/**
 * @param {readonly { name: string, type: string, help: string, promClient?: readonly string[] }[]}
 *   rows
 */
function metricTable (rows) {
  const promClient = rows.some(row => row.promClient)
  return table(
    ['name', 'type', ...(promClient ? ['prom-client'] : []), 'OpenTelemetry', 'meaning'],
    rows.map(row => [
      `\`${row.name}\``,
      row.type,
      ...(promClient ? [(row.promClient ?? []).map(name => `\`${name}\``).join(', ')] : []),
      otelCell(row),
      row.help
    ])
  )
}

const metrics = () =>
  page(
    'Metrics',
    'The exporter serves these metrics at `/metrics`. Metrics of a target carry the labels ' +
      '`target` and `thread` (`main` or `worker-N`); those of the process come from the main ' +
      'thread only. A number that a machine does not have is absent, not 0.\n\n' +
      'All scrapes within a second get the same text, so that no value is more than a second ' +
      'old. Beyond these limits the answer is 503 or 429, with `Retry-After`:',
    table(['limit', 'in all', 'of one address'], [
      ['scrapes at a time', 40, 10],
      ['scrapes a second, after a hundred at once', '', 10],
      ['seconds to read a scrape', 10, 10]
    ]),
    'The column prom-client has the name of the same metric there, or of its counterpart. The ' +
      'column OpenTelemetry is what `--otlp` sends: name, attributes, unit, and the instrument ' +
      `if it differs. Names of the semantic conventions (${SEMCONV_VERSION}) are used where ` +
      'they exist. The others are those of /metrics: Prometheus makes ' +
      '`memwatch_live_heap_bytes` of `memwatch.live_heap`. Each target is a resource: ' +
      '`service.name`, `service.instance.id`, `process.pid`, `memwatch.target`, ' +
      '`memwatch.thread`.',
    '## Of a target',
    metricTable(targetMetrics),
    '### Parts of RSS\n\nThe label `part` of `memwatch_memory_bytes`, on the main thread. [How ' +
      'they are known](decisions/0048-parts-add-up-to-rss.md).',
    table(
      ['part', 'meaning'],
      Object.entries(parts).map(([part, { title, help }]) => [`\`${part}\``, `${title}: ${help}`])
    ),
    "## Under prom-client's names\n\nServed unless `--compat off`, so that dashboards and " +
      'alerts that exist go on working.',
    metricTable(compatMetrics),
    '## In OpenTelemetry only',
    table(
      ['name', 'type', 'meaning'],
      otelMetrics.map(row => [otelCell(row), row.type, row.help])
    ),
    '## Events\n\nLog records of `--otlp`, each with its resource.',
    table(
      ['event name', 'when', 'attributes'],
      [
        [
          '`memwatch.verdict`',
          'a diagnosis is suspected, confirmed, or over',
          '`memwatch.diagnosis`, `memwatch.verdict.state`, `.was`, `.severity`, `.title`, ' +
            '`.impact`, `.evidence`, `.ruled_out`, `.fix`, `.runbook`'
        ],
        [
          '`memwatch.fix`',
          'a process came back with an advised change, and what became of it is measured',
          '`memwatch.fix.ending`, `.effect`, `.title`, `.workload`, `.id`; of the advice ' +
            '`memwatch.diagnosis`, `memwatch.verdict.title`, `memwatch.verdict.fix`'
        ],
        [
          '`memwatch.death`',
          'a process is gone',
          '`memwatch.death.reason`, `.sure`, `.id`, `.signal`, `.suspects`, ' +
            '`process.exit.code`; of what was confirmed on it `memwatch.diagnosis`, ' +
              '`memwatch.verdict.fix`'
        ]
      ]
    ),
    '## Of the exporter itself',
    metricTable(exporterMetrics)
  )

module.exports = { metrics }
