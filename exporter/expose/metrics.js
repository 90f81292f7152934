'use strict'

const { Registry } = require('prom-client')
const { targetMetrics } = require('../catalog/target-metrics')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { signalsOf } = require('../signals')

/**
 * A prom-client registry whose metrics are read afresh at each scrape, from the targets that are there then: a target that
 * vanished has vanished, and nothing is kept twice.
 *
 * @param {object} source
 * @param {() => import('../series/target').Target[]} source.targets
 * @param {() => import('../catalog/exporter-metrics').ExporterState} source.state
 * @param {boolean} source.compat with prom-client's names
 * @param {() => number} [source.now] wall clock in ms
 * @returns {{ text: (accept?: string) => Promise<{ contentType: string, body: string }> }}
 */
function createMetrics ({ targets, state, compat, now = Date.now }) {
  const rows = compat ? [...targetMetrics, ...compatMetrics] : targetMetrics
  return {
    async text (accept = '') {
      // Content negotiation by hand: one header, two formats.
      const openMetrics = accept.includes('application/openmetrics-text')
      const registry = new Registry()
      registry.setContentType(/** @type {any} */ (openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE))
      const at = targets().filter(target => target.frame).map(target => {
        const window = target.window()
        return { target, labels: { target: target.name, thread: target.thread }, context: { nowUnixMs: now(), signal: signalReader(window) } }
      })
      for (const row of rows) {
        const samples = at.flatMap(({ target, labels, context }) => asSamples(row.read(target, context))
          .map(sample => ({ ...sample, labels: { ...labels, ...sample.labels } })))
        if (samples.length > 0) registry.registerMetric(constMetric(row, samples))
      }
      for (const row of exporterMetrics) registry.registerMetric(constMetric(row, asSamples(row.read(state()))))
      return { contentType: registry.contentType, body: await registry.metrics() }
    }
  }
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
 * What prom-client's registry asks of a metric: a name and get(). Values that were computed elsewhere need no more.
 * @param {{ name: string, type: string, help: string }} row
 * @param {import('../catalog/metric').Sample[]} samples
 * @returns {any}
 */
function constMetric ({ name, type, help }, samples) {
  const values = samples.map(({ labels = {}, value, suffix = '' }) => ({ labels, value, metricName: name + suffix }))
  return { name, get: async () => ({ name, help, type, values, aggregator: 'sum' }) }
}

module.exports = { createMetrics }
