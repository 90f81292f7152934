'use strict'

const { targetMetrics } = require('../catalog/target-metrics')
const { compatMetrics } = require('../catalog/compat-metrics')
const { exporterMetrics } = require('../catalog/exporter-metrics')
const { signalsOf } = require('../signals')
const { steadyUnixMs } = require('../clock')
const { Turns } = require('../turns')
const { RowTexts } = require('./row-texts')
/** The whole of prom-client has default metrics, a push gateway and OpenTelemetry in it: 5 MiB that nobody here asks for. @type {typeof import('prom-client').Registry} */
// @ts-expect-error Types are those of the whole.
const Registry = require('prom-client/lib/registry')

/** Most targets that are read, and given to prom-client, at a time: some 5 ms. */
const MOST_AT_A_TIME = 10

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
 * @returns {{ contentTypeFor: (accept: string) => string, text: (accept?: string) => Promise<{ contentType: string, length: number, parts: () => AsyncIterable<Buffer> }> }}
 *   parts: of the body, in order; length: of them all, in bytes
 */
function createMetrics ({ targets, state, compat, now = steadyUnixMs }) {
  const rows = compat ? [...targetMetrics, ...compatMetrics] : targetMetrics
  /** Cold code takes longer: it begins with one. */
  let atATime = 1
  /** @type {number | undefined} */
  let scrapeSeconds

  /** @param {boolean} openMetrics */
  async function render (openMetrics) {
    const registry = new Registry()
    registry.setContentType(/** @type {any} */ (openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE))
    const texts = new RowTexts()
    /** Whose help and type are written. @type {Set<MetricRow>} */
    const begun = new Set()
    /** @param {MetricRow} row @param {PromSample[]} values @returns {Promise<string>} its lines, and before the first of them those of its type */
    const textOf = async (row, values) => {
      if (values.length === 0) return ''
      const metric = constMetric(row, values, openMetrics)
      registry.registerMetric(metric)
      const text = await registry.getSingleMetricAsString(metric.name)
      registry.removeSingleMetric(metric.name)
      if (begun.has(row)) return withoutType(text)
      begun.add(row)
      return text
    }
    const began = performance.now()
    const turns = new Turns()
    const all = targets().filter(({ frame }) => frame)
    for (let first = 0; first < all.length;) {
      const some = all.slice(first, first + atATime).map(target => momentOf(target, now()))
      first += some.length
      // Nobody has a turn before all of them is written: the numbers of a target are of one moment.
      for (const row of rows) {
        /** @type {PromSample[]} */
        const samples = []
        for (const { target, labels, context } of some) promSamples(row, row.read(target, context), { labels, openMetrics, to: samples })
        const text = await textOf(row, samples)
        texts.write(text, text && '\n')
      }
      texts.endBatch()
      atATime = turns.over ? Math.max(1, atATime >> 1) : Math.min(2 * atATime, MOST_AT_A_TIME)
      if (turns.over) await turns.next()
    }
    // As prom-client puts them together.
    const [between, end] = openMetrics ? ['\n', '\n# EOF\n'] : ['\n\n', '\n']
    for (const row of rows) texts.write(begun.has(row) ? between.slice(1) : '')
    if (turns.over) await turns.next()
    const exporter = { ...state(), scrapeSeconds }
    const own = []
    for (const row of exporterMetrics) own.push(await textOf(row, promSamples(row, row.read(exporter), { openMetrics })))
    texts.write(own.filter(Boolean).join(between), end)
    texts.endBatch()
    if (turns.over) await turns.next()
    scrapeSeconds = (performance.now() - began) / 1000
    return { contentType: registry.contentType, length: texts.length, parts: () => texts.parts() }
  }

  return {
    contentTypeFor,
    text: (accept = '') => render(contentTypeFor(accept) === Registry.OPENMETRICS_CONTENT_TYPE)
  }
}

/** Content negotiation by hand: one header, two formats. @param {string} accept header @returns {string} */
const contentTypeFor = accept => accept.includes('application/openmetrics-text') ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE

/**
 * A target as it stands, to be read row by row.
 * @param {import('../series/target').Target} target that has a frame @param {number} nowUnixMs
 */
function momentOf (target, nowUnixMs) {
  const window = /** @type {import('../series/window').Window} */ (target.window())
  const signals = signalsOf(window)
  /** @type {import('../catalog/metric').Context} */
  const context = { nowUnixMs, window, signal: name => signals[name] }
  return { target, labels: labelsOf(target), context }
}

/** Without its first two lines. @param {string} text of a metric */
const withoutType = text => text.slice(text.indexOf('\n', text.indexOf('\n') + 1) + 1)

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
