'use strict'

const { Registry } = require('prom-client')
const { targetMetrics } = require('../catalog/target-metrics')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { signalsOf } = require('../signals')

/** Longest that rendering holds the loop at a time: agents and probes wait meanwhile. */
const BLOCKED_MS = 20

/** @typedef {{ name: string, type: string, help: string }} MetricRow */

/**
 * A prom-client registry whose metrics are read afresh at each scrape, from the targets that are there then: a target that
 * vanished has vanished, and nothing is kept twice.
 *
 * @param {object} source
 * @param {() => import('../series/target').Target[]} source.targets
 * @param {() => import('../catalog/exporter-metrics').ExporterState} source.state
 * @param {boolean} source.compat with prom-client's names
 * @param {() => number} [source.now] wall clock in ms
 * @returns {{ text: (accept?: string) => Promise<{ contentType: string, parts: string[] }> }} parts: of the body, one for each metric
 */
function createMetrics ({ targets, state, compat, now = Date.now }) {
  const rows = compat ? [...targetMetrics, ...compatMetrics] : targetMetrics
  return {
    async text (accept = '') {
      // Content negotiation by hand: one header, two formats.
      const openMetrics = accept.includes('application/openmetrics-text')
      const registry = new Registry()
      registry.setContentType(/** @type {any} */ (openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE))
      /** Lines of each row, with the lines of its type before them. @type {Map<MetricRow, string[]>} */
      const pieces = new Map()
      /** @param {MetricRow} row @param {import('../catalog/metric').Sample[]} samples @param {import('../catalog/metric').Labels} [shared] */
      const render = async (row, samples, shared) => {
        if (samples.length === 0) return
        const metric = constMetric(row, samples, { shared, openMetrics })
        registry.registerMetric(metric)
        const text = await registry.getSingleMetricAsString(metric.name)
        registry.removeSingleMetric(metric.name)
        const known = pieces.get(row)
        // What a metric is stands above its first lines only.
        if (known) known.push(text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1))
        else pieces.set(row, [text])
      }
      let began = performance.now()
      for (const target of targets()) {
        if (!target.frame) continue
        // All of a target at once, so that its numbers are of one moment; then others have their turn.
        if (performance.now() - began > BLOCKED_MS) {
          await new Promise(resolve => setImmediate(resolve))
          began = performance.now()
        }
        const context = { nowUnixMs: now(), signal: signalReader(target.window()) }
        for (const row of rows) await render(row, asSamples(row.read(target, context)), labelsOf(target))
      }
      for (const row of exporterMetrics) await render(row, asSamples(row.read(state())))
      const all = [...rows, ...exporterMetrics].flatMap(row => pieces.has(row) ? /** @type {string[]} */ (pieces.get(row)).join('\n') : [])
      // As prom-client puts them together.
      const [between, end] = openMetrics ? ['\n', '\n# EOF\n'] : ['\n\n', '\n']
      return { contentType: registry.contentType, parts: all.map((text, i) => text + (i === all.length - 1 ? end : between)) }
    }
  }
}

/** prom-client formats the labels that many samples share once for each object. @type {WeakMap<import('../series/target').Target, { target: string, thread: string }>} */
const targetLabels = new WeakMap()

/** @param {import('../series/target').Target} target */
function labelsOf (target) {
  let labels = targetLabels.get(target)
  if (!labels) targetLabels.set(target, labels = { target: target.name, thread: target.thread })
  return labels
}

/** @param {import('../series/window').Window | null} window @returns {(name: import('../signals').SignalName) => number | null} */
function signalReader (window) {
  const signals = window && signalsOf(window)
  return name => signals && signals[name]
}

/** @param {import('../catalog/metric').Sample[] | number | undefined} read @returns {import('../catalog/metric').Sample[]} */
function asSamples (read) {
  return typeof read === 'number' ? [{ value: read }] : read ?? []
}

/**
 * What prom-client asks of a metric: a name and get(). Values that were computed elsewhere need no more.
 * @param {MetricRow} row
 * @param {import('../catalog/metric').Sample[]} samples
 * @param {{ shared?: import('../catalog/metric').Labels, openMetrics: boolean }} options shared: labels of all of them
 * @returns {any}
 */
function constMetric ({ name, type, help }, samples, { shared, openMetrics }) {
  // OpenMetrics names the counter itself without the suffix of its samples.
  const base = openMetrics && type === 'counter' ? name.replace(/_total$/, '') : name
  const values = samples.map(({ labels, value, suffix = '' }) => ({ labels, sharedLabels: shared, value, metricName: base + suffix }))
  return { name: base, get: async () => ({ name: base, help, type, values, aggregator: 'sum' }) }
}

module.exports = { createMetrics }
