'use strict'

const { AggregationTemporality, DataPointType, ValueType } = require('@memwatch/otlp')
const { otelOf } = require('../catalog/otel')

/**
 * @typedef {import('@opentelemetry/sdk-metrics').MetricData} MetricData
 * @typedef {import('@opentelemetry/sdk-metrics').DataPoint<any>} DataPoint
 * @typedef {import('../catalog/metric').HistogramRow} HistogramRow
 * @typedef {import('../catalog/metric').Sample} Sample
 *
 * A row of a metric table in OpenTelemetry's form, without the values of a target.
 * @typedef {object} OtelRow
 * @property {any} row
 * @property {import('../catalog/otel').OtelForm} form
 * @property {MetricData['descriptor']} descriptor shared by rows of one metric
 *
 * @typedef {object} Times
 * @property {number} startUnixMs start of the counters
 * @property {number} seenUnixMs start of watching: earlier counts belong to another exporter
 * @property {number} nowUnixMs
 */

/**
 * @param {number} unixMs
 * @returns {[seconds: number, nanoseconds: number]}
 */
const hrTime = unixMs => [Math.floor(unixMs / 1000), Math.round(unixMs % 1000 * 1e6)]

/**
 * @param {readonly any[]} rows of one table or several
 * @returns {OtelRow[]} rows to be sent by OTLP
 */
function otelRows (rows) {
  /** @type {Map<string, MetricData['descriptor']>} */
  const descriptors = new Map()
  return rows.flatMap(row => {
    const form = otelOf({ name: '', ...row })
    if (!form) return []
    const { name, unit, integer } = form
    if (!descriptors.has(name)) {
      descriptors.set(name, {
        name,
        unit,
        description: row.help,
        valueType: integer ? ValueType.INT : ValueType.DOUBLE
      })
    }
    return { row, form, descriptor: /** @type {MetricData['descriptor']} */ (descriptors.get(name)) }
  })
}

/**
 * All present values of one target, cumulative. Points with equal attributes, such as two kinds of
 * minor GCs, are added up.
 * @param {readonly OtelRow[]} rows
 * @param {(row: any) => Sample[] | HistogramRow[] | number | undefined} read
 * @param {Times} times
 * @returns {MetricData[]}
 */
function metricData (rows, read, { startUnixMs, seenUnixMs, nowUnixMs }) {
  /** @type {Map<MetricData['descriptor'], { data: any, byKey: Map<string, DataPoint> }>} */
  const metrics = new Map()
  const endTime = hrTime(nowUnixMs)
  const [started, seen] = [startUnixMs, seenUnixMs].map(unixMs =>
    hrTime(Math.min(unixMs, nowUnixMs))
  )
  for (const { row, form, descriptor } of rows) {
    const found = read(row)
    const values = typeof found === 'number' ? [{ value: found }] : found ?? []
    if (values.length === 0) continue
    let metric = metrics.get(descriptor)
    if (!metric) {
      metrics.set(descriptor, (metric = { data: emptyMetric(form, descriptor), byKey: new Map() }))
    }
    for (const value of values) {
      const attributes = attributesOf(form, value.labels ?? {})
      const key = JSON.stringify(attributes)
      const known = metric.byKey.get(key)
      const of =
        'counts' in value
          ? {
              buckets: { boundaries: row.histogram.bounds, counts: [...value.counts] },
              sum: value.sum,
              count: value.counts.reduce((sum, n) => sum + n, 0)
            }
          : form.integer
            ? Math.round(value.value)
            : value.value
      const point = {
        startTime: form.startUnknown ? seen : started,
        endTime,
        attributes,
        value: known ? added(known.value, of) : of
      }
      metric.byKey.set(key, point)
    }
  }
  return [...metrics.values()].map(({ data, byKey }) => ({
    ...data,
    dataPoints: [...byKey.values()]
  }))
}

/**
 * @param {import('../catalog/otel').OtelForm} form
 * @param {MetricData['descriptor']} descriptor
 */
function emptyMetric ({ instrument }, descriptor) {
  const dataPointType = {
    gauge: DataPointType.GAUGE,
    histogram: DataPointType.HISTOGRAM,
    counter: DataPointType.SUM,
    updowncounter: DataPointType.SUM
  }[instrument]
  return {
    descriptor,
    dataPointType,
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    ...(dataPointType === DataPointType.SUM && { isMonotonic: instrument === 'counter' })
  }
}

/**
 * @param {import('../catalog/otel').OtelForm} form
 * @param {import('../catalog/metric').Labels} labels
 */
function attributesOf ({ attributes: names = {}, value = text => text, always }, labels) {
  /** @type {Record<string, string>} */
  const attributes = { ...always }
  for (const name in labels) attributes[names[name] ?? name] = value(String(labels[name]))
  return attributes
}

/**
 * Sum of two numbers, or of two histograms with the same bounds; with sign -1, their difference.
 * @param {any} one
 * @param {any} other
 * @param {1 | -1} [sign] factor of the other value
 */
function added (one, other, sign = 1) {
  if (typeof one === 'number') return one + sign * other
  return {
    buckets: { boundaries: one.buckets.boundaries, counts: one.buckets.counts.map((/** @type {number} */ n, /** @type {number} */ i) => n + sign * other.buckets.counts[i]) },
    sum: one.sum + sign * other.sum,
    count: one.count + sign * other.count
  }
}

module.exports = { otelRows, metricData, added, hrTime }
