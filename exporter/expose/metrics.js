'use strict'

const { targetMetrics } = require('../catalog/target-metrics')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { signalsOf } = require('../signals')
const { steadyUnixMs } = require('../clock')
const { Turns } = require('../turns')
/** The whole of prom-client has default metrics, a push gateway and OpenTelemetry in it: 5 MiB that nobody here asks for. @type {typeof import('prom-client').Registry} */
// @ts-expect-error Types are those of the whole.
const Registry = require('prom-client/lib/registry')

/** Targets whose samples are held, and given to prom-client, at a time. */
const TARGETS_AT_A_TIME = 50

/** @typedef {{ name: string, type: string, help: string }} MetricRow */
/** @typedef {{ labels?: import('../catalog/metric').Labels, sharedLabels?: import('../catalog/metric').Labels, value: number, metricName: string }} PromSample as prom-client formats it */

/**
 * A prom-client registry whose metrics are read afresh at each scrape, from the targets that are there then: a target that
 * vanished has vanished, and nothing is kept twice.
 *
 * @param {object} source
 * @param {() => import('../series/target').Target[]} source.targets
 * @param {() => import('../catalog/exporter-metrics').ExporterState} source.state
 * @param {boolean} source.compat with prom-client's names
 * @param {() => number} [source.now] ms
 * @returns {{ text: (accept?: string) => Promise<{ contentType: string, length: number, parts: () => AsyncIterable<string> }> }} parts: of the
 *   body, in order; length: of them all
 */
function createMetrics ({ targets, state, compat, now = steadyUnixMs }) {
  const rows = compat ? [...targetMetrics, ...compatMetrics] : targetMetrics
  /** Scrapers that come at the same time get the same text. @type {Map<boolean, ReturnType<typeof render>>} */
  const rendering = new Map()
  /** @type {number | undefined} */
  let scrapeSeconds

  /** @param {boolean} openMetrics */
  async function render (openMetrics) {
    const registry = new Registry()
    registry.setContentType(/** @type {any} */ (openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE))
    let length = 0
    /** Lines of each row, with the lines of its type before the first of them. @type {Map<MetricRow, string[]>} */
    const pieces = new Map()
    /** @param {MetricRow} row @param {PromSample[]} values */
    const renderRow = async (row, values) => {
      if (values.length === 0) return
      const metric = constMetric(row, values, openMetrics)
      registry.registerMetric(metric)
      const text = await registry.getSingleMetricAsString(metric.name)
      registry.removeSingleMetric(metric.name)
      const known = pieces.get(row)
      const piece = known ? text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1) : text
      length += piece.length + 1
      if (known) known.push(piece)
      else pieces.set(row, [piece])
    }
    const began = performance.now()
    const turns = new Turns()
    const all = targets().filter(({ frame }) => frame)
    for (let first = 0; first < all.length; first += TARGETS_AT_A_TIME) {
      const samples = rows.map(() => /** @type {PromSample[]} */ ([]))
      for (const target of all.slice(first, first + TARGETS_AT_A_TIME)) {
        if (turns.over) await turns.next()
        // All of a target at once, so that its numbers are of one moment.
        const window = /** @type {import('../series/window').Window} */ (target.window())
        const signals = signalsOf(window)
        /** @type {import('../catalog/metric').Context} */
        const context = { nowUnixMs: now(), window, signal: name => signals[name] }
        const labels = labelsOf(target)
        rows.forEach((row, i) => promSamples(row, row.read(target, context), { labels, openMetrics, to: samples[i] }))
      }
      for (let i = 0; i < rows.length; i++) {
        if (turns.over) await turns.next()
        await renderRow(rows[i], samples[i])
      }
    }
    const exporter = { ...state(), scrapeSeconds }
    for (const row of exporterMetrics) await renderRow(row, promSamples(row, row.read(exporter), { openMetrics }))
    scrapeSeconds = (performance.now() - began) / 1000
    // As prom-client puts them together.
    const [between, end] = openMetrics ? ['\n', '\n# EOF\n'] : ['\n\n', '\n']
    const shown = [...rows, ...exporterMetrics].filter(row => pieces.has(row))
    return {
      contentType: registry.contentType,
      length,
      async * parts () {
        const turns = new Turns()
        for (const row of shown) {
          const lines = /** @type {string[]} */ (pieces.get(row))
          for (let i = 0; i < lines.length; i++) {
            if (turns.over) await turns.next()
            const after = i < lines.length - 1 ? '\n' : row === shown[shown.length - 1] ? end : between
            yield lines[i] + after
          }
        }
      }
    }
  }

  return {
    text (accept = '') {
      // Content negotiation by hand: one header, two formats.
      const openMetrics = accept.includes('application/openmetrics-text')
      let text = rendering.get(openMetrics)
      if (!text) {
        text = render(openMetrics).finally(() => rendering.delete(openMetrics))
        rendering.set(openMetrics, text)
      }
      return text
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

/**
 * @param {MetricRow} row
 * @param {import('../catalog/metric').Sample[] | number | undefined} read
 * @param {object} options
 * @param {import('../catalog/metric').Labels} [options.labels] of all of them
 * @param {boolean} options.openMetrics
 * @param {PromSample[]} [options.to] where they are added
 */
function promSamples (row, read, { labels: sharedLabels, openMetrics, to = [] }) {
  const base = baseName(row, openMetrics)
  if (typeof read === 'number') to.push({ sharedLabels, value: read, metricName: base })
  else for (const { labels, value, suffix = '' } of read ?? []) to.push({ labels, sharedLabels, value, metricName: base + suffix })
  return to
}

/** OpenMetrics names the counter itself without the suffix of its samples. @param {MetricRow} row @param {boolean} openMetrics */
const baseName = ({ name, type }, openMetrics) => openMetrics && type === 'counter' ? name.replace(/_total$/, '') : name

/**
 * What prom-client asks of a metric: a name and get(). Values that were computed elsewhere need no more.
 * @param {MetricRow} row @param {PromSample[]} values @param {boolean} openMetrics
 * @returns {any}
 */
function constMetric (row, values, openMetrics) {
  const name = baseName(row, openMetrics)
  return { name, get: async () => ({ name, help: row.help, type: row.type, values, aggregator: 'sum' }) }
}

module.exports = { createMetrics }
