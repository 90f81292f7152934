'use strict'

const { AggregatorRegistry, openMetricsContentType } = require('prom-client')

/**
 * @typedef {import('../../exporter/catalog/metric').HistogramRow} HistogramRow
 * @typedef {import('../../exporter/catalog/metric').Reading} Reading
 * @typedef {import('../../exporter/catalog/metric').Buckets} Buckets
 * @typedef {{ labels: Record<string, string | number>, value: number, metricName?: string }} Value
 * @typedef {{ name: string, type: string, help: string, histogram?: Buckets }} Row
 * @typedef {{ reading: Reading, shared?: Record<string, string> }} ReadingOfTarget
 * @typedef {{ row: Row, readings: ReadingOfTarget[] }} Metric
 */

/**
 * The samples of one classic histogram.
 * @param {string} name
 * @param {HistogramRow} row
 * @param {Buckets} buckets
 * @returns {Value[]}
 */
function expandHistogram (name, { labels, sum, counts }, { bounds, exposed }) {
  const countUpTo = end => counts.slice(0, end).reduce((total, count) => total + count, 0)
  const bucket = (le, value) => ({ metricName: `${name}_bucket`, labels: { ...labels, le }, value })
  return [
    ...exposed.map(bound => bucket(bound, countUpTo(bounds.indexOf(bound) + 1))),
    bucket('+Inf', countUpTo(counts.length)),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: countUpTo(counts.length) }
  ]
}

/**
 * @param {Row} row
 * @param {Reading} reading
 * @returns {Value[]}
 */
function expandReading ({ name, histogram }, reading) {
  if (typeof reading === 'number') return [{ labels: {}, value: reading }]
  return [...reading ?? []].flatMap(({ labels = {}, ...rest }) => 'counts' in rest
    ? expandHistogram(name, { labels, ...rest }, /** @type {Buckets} */ (histogram))
    : [{ labels, value: rest.value }])
}

/**
 * Text of metrics by prom-client's public API. The registry is made from JSON, as for the workers
 * of a cluster.
 * @param {Metric[]} metrics
 * @param {boolean} isOpenMetrics
 */
function promClientText (metrics, isOpenMetrics) {
  const families = metrics.map(({ row, readings }) => ({
    // In OpenMetrics prom-client adds the suffix of a counter itself.
    name: isOpenMetrics && row.type === 'counter' ? row.name.replace(/_total$/, '') : row.name,
    help: row.help,
    type: row.type,
    aggregator: 'first',
    values: readings.flatMap(({ reading, shared }) => expandReading(row, reading)
      .map(({ labels, ...rest }) => ({ ...rest, labels: { ...labels, ...shared } })))
  }))
  const withSamples = families.filter(({ values }) => values.length > 0)
  const registry = AggregatorRegistry.aggregate([withSamples])
  if (isOpenMetrics) registry.setContentType(openMetricsContentType)
  return registry.metrics()
}

module.exports = { promClientText }
