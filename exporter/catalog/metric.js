'use strict'

/**
 * A row of the metric table: one Prometheus metric and how it is read.
 *
 * @typedef {Record<string, string | number>} Labels
 * @typedef {{ labels?: Labels, value: number, suffix?: '_bucket' | '_sum' | '_count' }} Sample
 * @typedef {object} TargetMetric a metric of every target; the labels target and thread are added
 * @property {string} name
 * @property {'gauge' | 'counter' | 'histogram'} type
 * @property {string} help
 * @property {keyof import('memwatch/frame').Frame['values']} [field] that it is, and nothing more
 * @property {(target: import('../series/target').Target, context: Context) => Sample[] | number | undefined} read nothing where the target does not have it
 * @property {readonly string[]} [promClient] what prom-client calls it, or what it has instead
 * @property {import('./otel').OtelOverride} [otel] where OpenTelemetry has a name for it, or it needs another than its own
 * @property {HistogramSource} [histogram] of a histogram: all that the frames hold, of which /metrics shows some buckets
 * @typedef {{ labels: Labels, sum: number, counts: readonly number[] }} HistogramRow counts: one per bound and one for what lies above; not cumulative
 * @typedef {{ bounds: readonly number[], rows: (target: import('../series/target').Target) => HistogramRow[] }} HistogramSource
 * @typedef {object} Context
 * @property {number} nowUnixMs
 * @property {import('../series/window').Window} window of the target being read
 * @property {(name: import('../signals').SignalName) => number | null} signal of the target being read
 */

/** What else a row is called. @typedef {Pick<TargetMetric, 'promClient' | 'otel'>} OtherNames */

/**
 * A metric that is one field of the frames.
 * @param {string} name @param {'gauge' | 'counter'} type @param {keyof import('memwatch/frame').Frame['values']} field @param {string} help @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const fieldMetric = (name, type, field, help, names) => ({ name, type, help, field, ...names, read: target => target.values[field] })

/**
 * A metric that is one signal.
 * @param {string} name @param {import('../signals').SignalName} signal
 * @returns {TargetMetric}
 */
const signalMetric = (name, signal) => ({
  name,
  type: 'gauge',
  help: require('../signals').signals[signal].help,
  read: (_, context) => context.signal(signal) ?? undefined
})

/**
 * A metric of every heap space that V8 uses, under the short name that prom-client gave it: `new` for `new_space`. Half of them
 * are empty in most processes, and each would be a series.
 * @param {string} name @param {0 | 1 | 2 | 3} column of the `spaces` rows: used, size, available, physical @param {string} help
 * @param {string} otelName @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const spaceMetric = (name, column, help, otelName, names) => ({
  name,
  type: 'gauge',
  help,
  otel: { name: otelName, instrument: 'updowncounter', integer: true, attributes: { space: 'v8js.heap.space.name' }, value: space => `${space}_space` },
  ...names,
  read: ({ values }) => Object.entries(values.spaces ?? {}).filter(([, [, size]]) => size > 0).map(([space, row]) => ({
    labels: { space: space.replace(/_space$/, '') }, value: row[column]
  }))
})

/**
 * CPU time by mode.
 * @param {string} name @param {string} help
 * @param {keyof import('memwatch/frame').Frame['values']} user field @param {keyof import('memwatch/frame').Frame['values']} system field
 * @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const cpuMetric = (name, help, user, system, names) => ({
  name,
  type: 'counter',
  help,
  ...names,
  read: ({ values }) => values[user] === undefined
    ? undefined
    : [{ labels: { mode: 'user' }, value: values[user] }, { labels: { mode: 'system' }, value: values[system] }]
})

/**
 * A histogram whose buckets the frames hold.
 * @param {string} name @param {string} help
 * @param {HistogramSource & { exposed: readonly number[] } & OtherNames} source exposed: the bounds that are worth a series each
 * @returns {TargetMetric}
 */
const histogramMetric = (name, help, { bounds, rows, exposed, ...names }) => ({
  name,
  type: 'histogram',
  help,
  ...names,
  histogram: { bounds, rows },
  read: target => rows(target).flatMap(({ labels, sum, counts }) => histogramSamples(bounds, counts, { sum, labels, exposed }))
})

/**
 * The samples of one classic histogram.
 * @param {readonly number[]} bounds of `counts`
 * @param {readonly number[]} counts one per bound and one for what lies above; not cumulative
 * @param {{ sum: number, labels?: Labels, exposed?: readonly number[] }} options exposed: the bounds to show, a subset
 * @returns {Sample[]}
 */
function histogramSamples (bounds, counts, { sum, labels = {}, exposed = bounds }) {
  /** @type {Sample[]} */
  const samples = []
  let below = 0
  bounds.forEach((bound, i) => {
    below += counts[i]
    if (exposed.includes(bound)) samples.push({ suffix: /** @type {const} */ ('_bucket'), labels: { ...labels, le: bound }, value: below })
  })
  const count = below + counts[bounds.length]
  return [
    ...samples,
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
    { suffix: '_sum', labels, value: sum },
    { suffix: '_count', labels, value: count }
  ]
}

module.exports = { fieldMetric, signalMetric, spaceMetric, cpuMetric, histogramMetric }
