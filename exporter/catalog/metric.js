'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')

/**
 * A row of the metric table: one Prometheus metric, and the function that reads it.
 *
 * @typedef {import('@memwatch/engine/history/target').Target} Target
 * @typedef {import('@memwatch/agent/protocol/frame').NumberField} Field
 * @typedef {Record<string, string | number>} Labels
 * @typedef {{ labels?: Labels, value: number }} Sample
 *
 * One histogram of a metric. `counts`: one per bound, and one for values above the last bound; not
 * cumulative.
 * @typedef {{ labels: Labels, sum: number, counts: readonly number[] }} HistogramRow
 * @typedef {readonly Sample[] | readonly HistogramRow[] | number | undefined} Reading
 *
 * Bounds of a histogram: all bounds in frames, and the bounds that are exposed as series.
 * @typedef {{ bounds: readonly number[], exposed: readonly number[] }} Buckets
 *
 * A metric of every target; the labels `target` and `thread` are added.
 * @typedef {object} TargetMetric
 * @property {string} name
 * @property {'gauge' | 'counter' | 'histogram'} type
 * @property {string} help
 * @property {Field} [field] name of a field that is exposed unchanged
 * @property {(target: Target, context: Context) => Reading} read returns undefined or an empty list
 *   if the target lacks the metric; HistogramRow[] for a histogram
 * @property {readonly string[]} [promClient] prom-client's name of the same metric, or of its
 *   counterpart
 * @property {import('./otel').OtelOverride} [otel] its name in OpenTelemetry, if it differs
 * @property {Buckets} [histogram] bounds, for a histogram
 *
 * @typedef {object} Context
 * @property {number} nowUnixMs
 * @property {import('@memwatch/engine/history/window').Window} window window of the target being
 *   read
 * @property {(name: import('@memwatch/engine/signals/index').FigureName) => number | null} signal
 *   reads a signal of the target
 */

/** Other names of a row. @typedef {Pick<TargetMetric, 'promClient' | 'otel'>} OtherNames */

/**
 * A metric with the value of one field.
 * @param {string} name
 * @param {'gauge' | 'counter'} type
 * @param {import('@memwatch/agent/protocol/frame').NumberField} field
 * @param {string} help
 * @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const fieldMetric = (name, type, field, help, names) => ({
  name,
  type,
  help,
  field,
  ...names,
  read: target => target.values[field]
})

/**
 * A metric with the value of one signal.
 * @param {string} name
 * @param {import('@memwatch/engine/signals/index').FigureName} signal
 * @returns {TargetMetric}
 */
const signalMetric = (name, signal) => ({
  name,
  type: 'gauge',
  help: require('@memwatch/engine/signals/index').figures[signal].help,
  read: (_, context) => context.signal(signal) ?? undefined
})

/**
 * A metric for each heap space in use, under prom-client's short name for the space: `new` for
 * `new_space`. Half of the spaces are empty in most processes, and would only add series.
 * @param {string} name
 * @param {keyof typeof SPACE_ROW} column of the `spaces` rows
 * @param {string} help
 * @param {string} otelName
 * @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const spaceMetric = (name, column, help, otelName, names) => ({
  name,
  type: 'gauge',
  help,
  otel: {
    name: otelName,
    instrument: 'updowncounter',
    integer: true,
    attributes: { space: 'v8js.heap.space.name' },
    value: space => `${space}_space`
  },
  ...names,
  read: ({ values }) =>
    Object.entries(values.spaces ?? {})
      .filter(([, row]) => row[SPACE_ROW.sizeBytes] > 0)
      .map(([space, row]) => ({
        labels: { space: space.replace(/_space$/, '') },
        value: row[SPACE_ROW[column]]
      }))
})

/**
 * CPU time by mode.
 * @param {string} name
 * @param {string} help
 * @param {import('@memwatch/agent/protocol/frame').NumberField} user
 * @param {import('@memwatch/agent/protocol/frame').NumberField} system
 * @param {OtherNames} [names]
 * @returns {TargetMetric}
 */
const cpuMetric = (name, help, user, system, names) => ({
  name,
  type: 'counter',
  help,
  ...names,
  read: ({ values: { [user]: userSeconds, [system]: systemSeconds } }) =>
    userSeconds === undefined || systemSeconds === undefined
      ? undefined
      : [
          { labels: { mode: 'user' }, value: userSeconds },
          { labels: { mode: 'system' }, value: systemSeconds }
        ]
})

/**
 * A histogram whose buckets come from frames.
 * @param {string} name
 * @param {string} help
 * @param {Buckets & OtherNames & { rows: (target: Target) => HistogramRow[] }} source
 * @returns {TargetMetric}
 */
const histogramMetric = (name, help, { bounds, exposed, rows, ...names }) => ({
  name,
  type: 'histogram',
  help,
  ...names,
  histogram: { bounds, exposed },
  read: rows
})

module.exports = { fieldMetric, signalMetric, spaceMetric, cpuMetric, histogramMetric }
