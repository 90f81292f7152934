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
      'thread only. A metric that the machine cannot provide is absent, not 0.\n\n' +
      'The exporter renders the text once a second for all scrapes. Beyond these limits it ' +
      'answers with 503 or 429, and `Retry-After`:',
    table(['limit', 'in all', 'for each address'], [
      ['scrapes at a time', 40, 10],
      ['scrapes a second, after a burst of a hundred', '', 10],
      ['seconds to read a scrape', 10, 10]
    ]),
    'The column prom-client has the name of the same or a similar metric of prom-client. The ' +
      'column OpenTelemetry has the data that `--otlp` sends: name, attributes, unit, and the ' +
      'instrument ' +
      `if it differs. Names of the semantic conventions (${SEMCONV_VERSION}) are used where ` +
      'they exist. The other names are those of /metrics: Prometheus turns `memwatch.live_heap` ' +
      'into `memwatch_live_heap_bytes`. Each target is a resource: `service.name`, ' +
      '`service.instance.id`, `process.pid`, `memwatch.target`, `memwatch.thread`.',
    '## Metrics of a target',
    metricTable(targetMetrics),
    '### Parts of RSS\n\nThese are the values of the label `part` of `memwatch_memory_bytes`, ' +
      'on the main thread. [Decision 0048](decisions/0048-parts-add-up-to-rss.md) says how ' +
      'memwatch computes them.',
    table(
      ['part', 'meaning'],
      Object.entries(parts).map(([part, { title, help }]) => [`\`${part}\``, `${title}: ${help}`])
    ),
    "## Under prom-client's names\n\nThe exporter serves these names for existing dashboards " +
      'and alerts. `--compat off` removes them.',
    metricTable(compatMetrics),
    '## In OpenTelemetry only',
    table(
      ['name', 'type', 'meaning'],
      otelMetrics.map(row => [otelCell(row), row.type, row.help])
    ),
    '## Events\n\n`--otlp` sends these log records, each with its resource.',
    table(
      ['event name', 'when', 'attributes'],
      [
        [
          '`memwatch.verdict`',
          'a diagnosis becomes suspected or confirmed, or ends',
          '`memwatch.diagnosis`, `memwatch.verdict.state`, `.was`, `.severity`, `.title`, ' +
            '`.impact`, `.evidence`, `.ruled_out`, `.fix`, `.runbook`'
        ],
        [
          '`memwatch.fix`',
          'the effect of an applied fix is measured',
          '`memwatch.fix.ending`, `.effect`, `.title`, `.workload`, `.id`; from the ' +
            'advice `memwatch.diagnosis`, `memwatch.verdict.title`, `memwatch.verdict.fix`'
        ],
        [
          '`memwatch.death`',
          'a process has ended',
          '`memwatch.death.reason`, `.sure`, `.id`, `.signal`, `.suspects`, ' +
            '`process.exit.code`; from its confirmed verdict `memwatch.diagnosis`, ' +
              '`memwatch.verdict.fix`'
        ]
      ]
    ),
    '## Metrics of the exporter itself',
    metricTable(exporterMetrics)
  )

module.exports = { metrics }
