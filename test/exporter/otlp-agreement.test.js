'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { gunzipSync } = require('node:zlib')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { createMetrics } = require('../../exporter/expose/metrics')
const { Otlp } = require('../../exporter/otlp/otlp')
const { Targets } = require('../../engine/history/targets')
const { exporterState } = require('../support/exporter-state')
const { startOtlpReceiver } = require('../support/otlp-receiver')
const { prometheusName, prometheusLabel } = require('../support/prometheus-names')
const { openSession } = require('../support/open-session')

const RECORDING = path.join(__dirname, '../recordings/20-js-heap-leak-broken.ndjson.gz')
/** The exporter measures these on request, not with the frame. */
const MOVING = /^memwatch_exporter_|^memwatch_target_up$/

/**
 * A series by name and labels, without those of the target.
 * @param {string} name
 * @param {Record<string, string>} labels
 */
const seriesKey = (name, { target, thread, ...labels }) =>
  name + JSON.stringify(Object.entries(labels).sort())

/**
 * @param {string} text of /metrics
 * @returns {Map<string, number>}
 */
function seriesIn (text) {
  return new Map(
    [...text.matchAll(/^(memwatch_\w+)\{(.*)\} (\S+)$/gm)].map(([, name, labels, value]) => [
      seriesKey(
        name,
        Object.fromEntries(
          [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [
            label,
            text.replaceAll('\\"', '"').replaceAll('\\n', '\n')
          ])
        )
      ),
      Number(value)
    ])
  )
}

it('memwatch’s metrics are equal in /metrics and, in Prometheus, over OTLP', async () => {
  const lines = gunzipSync(fs.readFileSync(RECORDING))
    .toString()
    .trim()
    .split('\n')
    .map(text => JSON.parse(text).line)
    .filter(Boolean)
  const targets = new Targets({ now: Date.now })
  targets.on('frame', target => evaluate(target))
  const session = openSession(targets, lines.find(({ type }) => type === 'hello'))
  for (const line of lines) if (line.type === 'frame') session.frame(line)
  const source = { targets: () => targets.all, state: () => exporterState() }
  const receiver = await startOtlpReceiver()
  const otlp = new Otlp({ to: receiver.url, source, log: { warn () {}, info () {} } })
  await otlp.exportMetrics()
  const { parts } = await createMetrics({ ...source, compat: true }).text()
  const scraped = seriesIn(Buffer.concat(parts).toString())
  const pushed = new Map()
  for (const { name, unit, kind, monotonic, points } of receiver
    .of(session.target.hello.name)
    .flatMap(({ metrics }) => metrics)) {
    const translated = prometheusName({
      name,
      unit,
      instrument: kind === 'sum' ? (monotonic ? 'counter' : 'updowncounter') : kind
    })
    for (const { attributes, value, count, sum } of points) {
      const labels = Object.fromEntries(
        Object.entries(attributes).map(([attribute, text]) => [prometheusLabel(attribute), text])
      )
      if (kind !== 'histogram') pushed.set(seriesKey(translated, labels), value)
      else {
        for (const [suffix, part] of [
          ['_count', count],
          ['_sum', sum]
        ]) {
          pushed.set(seriesKey(translated + suffix, labels), part)
        }
      }
    }
  }
  const ours = [...pushed].filter(
    ([key]) => key.startsWith('memwatch_') && !MOVING.test(key.split('[')[0])
  )
  expect(ours.length).toBeGreaterThan(50)
  expect(
    ours
      .filter(([key, value]) => scraped.get(key) !== value)
      .map(([key, value]) => [key, value, scraped.get(key)])
  ).toEqual([])
  // Metrics without a name of memwatch have one of OpenTelemetry.
  const left = [...scraped.keys()]
    .map(key => key.split('[')[0])
    .filter(
      name =>
        !/_(bucket|sum|count)$|^memwatch_exporter_/.test(name) &&
        ![...pushed.keys()].some(key => key.startsWith(`${name}[`))
    )
  expect([...new Set(left)].sort()).toEqual([
    'memwatch_active_resources',
    'memwatch_container_usage_bytes',
    'memwatch_container_working_set_bytes',
    'memwatch_event_loop_active_seconds_total',
    'memwatch_event_loop_idle_seconds_total',
    'memwatch_heap_space_committed_bytes',
    'memwatch_heap_space_physical_bytes',
    'memwatch_heap_space_used_bytes',
    'memwatch_process_cpu_seconds_total',
    'memwatch_rss_bytes',
    'memwatch_threads'
  ])
  for (const name of [
    'process_memory_usage_bytes',
    'process_cpu_time_seconds_total',
    'nodejs_eventloop_time_seconds_total',
    'v8js_memory_heap_used_bytes',
    'v8js_gc_duration_seconds_count'
  ]) {
    expect([...pushed.keys()].some(key => key.startsWith(`${name}[`))).toBe(true)
  }
  await otlp.stop()
  receiver.stop()
})
