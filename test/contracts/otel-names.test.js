'use strict'

const fs = require('node:fs')
const conventions = require('@opentelemetry/semantic-conventions/incubating')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { otelOf } = require('../../exporter/catalog/otel')
const { otelMetrics } = require('../../exporter/catalog/otel-metrics')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { prometheusName } = require('../support/prometheus-names')

const rows = [...targetMetrics, ...compatMetrics, ...otelMetrics, ...exporterMetrics].flatMap(
  row => {
    const named = { name: '', ...row }
    const form = otelOf(named)
    return form ? [{ row: named, form }] : []
  }
)
const isOurs = ({ form }) => form.name.startsWith('memwatch.')

it.each(rows.filter(isOurs).map(({ row, form }) => [form.name, row.name, form]))(
  '%s is %s in Prometheus, by OTLP and by the Collector',
  (_, name, form) => {
    expect(prometheusName(form)).toBe(name)
  }
)

it('standard metrics have the names that Prometheus users know from OpenTelemetry', () => {
  const names = Object.fromEntries(
    rows.filter(row => !isOurs(row)).map(({ form }) => [form.name, prometheusName(form)])
  )
  expect(names).toMatchObject({
    'v8js.gc.duration': 'v8js_gc_duration_seconds',
    'v8js.memory.heap.used': 'v8js_memory_heap_used_bytes',
    'v8js.memory.heap.space.size': 'v8js_memory_heap_space_size_bytes',
    'v8js.memory.heap.space.available_size': 'v8js_memory_heap_space_available_size_bytes',
    'v8js.memory.heap.space.physical_size': 'v8js_memory_heap_space_physical_size_bytes',
    'v8js.resource.active': 'v8js_resource_active',
    'nodejs.eventloop.delay.p99': 'nodejs_eventloop_delay_p99_seconds',
    'nodejs.eventloop.time': 'nodejs_eventloop_time_seconds_total',
    'nodejs.eventloop.utilization': 'nodejs_eventloop_utilization_ratio',
    'process.cpu.time': 'process_cpu_time_seconds_total',
    'process.memory.usage': 'process_memory_usage_bytes',
    'process.thread.count': 'process_thread_count',
    'process.unix.file_descriptor.count': 'process_unix_file_descriptor_count',
    'process.uptime': 'process_uptime_seconds',
    'container.memory.usage': 'container_memory_usage_bytes',
    'container.memory.working_set': 'container_memory_working_set_bytes'
  })
})

it('standard names and attributes are in the conventions and not deprecated', () => {
  const deprecated = new Set(
    [
      ...fs
        .readFileSync(
          require
            .resolve('@opentelemetry/semantic-conventions/incubating')
            .replace('index-incubating.cjs', 'experimental_metrics.d.cts'),
          'utf8'
        )
        .matchAll(/\/\*\*((?:(?!\*\/)[^])*?)\*\/\s*(?:declare|export) const (METRIC_\w+)/g)
    ]
      .filter(([, text]) => text.includes('@deprecated'))
      .map(([, , constant]) => conventions[constant])
  )
  expect(deprecated).toContain('v8js.memory.heap.limit')
  /** @returns {Set<unknown>} */
  const known = kind =>
    new Set(
      Object.entries(conventions)
        .filter(([constant]) => constant.startsWith(kind))
        .map(([, value]) => value)
    )
  const [metrics, attributes] = [known('METRIC_'), known('ATTR_')]
  for (const { form } of rows) {
    if (!form.name.startsWith('memwatch.')) {
      expect([form.name, metrics.has(form.name), deprecated.has(form.name)]).toEqual([
        form.name,
        true,
        false
      ])
    }
    for (const name of [
      ...Object.values(form.attributes ?? {}),
      ...Object.keys(form.always ?? {})
    ]) {
      if (!name.startsWith('memwatch.')) expect([name, attributes.has(name)]).toEqual([name, true])
    }
  }
})

it('rows with one name have the same unit and kind, and differ in attributes', () => {
  const byName = rows.reduce(
    (map, row) => map.set(row.form.name, [...(map.get(row.form.name) ?? []), row]),
    new Map()
  )
  for (const [name, same] of byName) {
    expect([
      name,
      new Set(same.map(({ form }) => `${form.unit} ${form.instrument} ${form.integer}`)).size
    ]).toEqual([name, 1])
    expect([name, new Set(same.map(({ form }) => JSON.stringify(form.always))).size]).toEqual([
      name,
      same.length
    ])
  }
})

it('a metric with a name of prom-client is served under this name', () => {
  const served = compatMetrics.map(({ name }) => name)
  expect(
    targetMetrics
      .flatMap(({ promClient = [] }) => promClient)
      .filter(name => !served.includes(name))
  ).toEqual([])
})
