'use strict'

/**
 * OpenTelemetry's name of a row of the metric tables. A row has the name that the semantic
 * conventions (1.44) define for its metric, if there is one. Other names are derived from the
 * Prometheus name, so that Prometheus derives the same name from them again:
 * `memwatch_live_heap_bytes` is `memwatch.live_heap` in `By`.
 *
 * @typedef {object} OtelForm
 * @property {string} name
 * @property {string} unit UCUM unit
 * @property {'gauge' | 'counter' | 'updowncounter' | 'histogram'} instrument
 * @property {boolean} [integer] true if the conventions define it as an integer
 * @property {Readonly<Record<string, string>>} [attributes] names of attributes for labels that
 *   have other names in OpenTelemetry
 * @property {(value: string) => string} [value] converts the values of such labels
 * @property {Readonly<Record<string, string>>} [always] attributes of all points of the metric
 * @property {boolean} [startUnknown] true if its count may begin before the process
 * @typedef {Partial<OtelForm>} OtelOverride
 *
 * @typedef {{ name: string, type: 'gauge' | 'counter' | 'histogram', otel?: OtelOverride }}
 *   NamedRow
 */

/** Version of the semantic conventions. */
const SEMCONV_VERSION = '1.44.0'

/** Namespaces: in derived names a dot follows each of these. */
const NAMESPACES = [
  'exporter',
  'target',
  'verdict',
  'suspect',
  'rss',
  'malloc',
  'allocator',
  'container',
  'memory_pressure',
  'cpu_pressure',
  'cpu',
  'heap',
  'live_heap',
  'semi_space',
  'gc',
  'event_loop',
  'thread',
  'agent'
]

/** Final words of Prometheus names that are units, with their UCUM units. */
const UNITS = Object.freeze({ bytes_per_second: 'By/s', bytes: 'By', seconds: 's', ratio: '1' })

/**
 * @param {string} name of a Prometheus metric
 * @returns {{ name: string, unit: string }}
 */
function derived (name) {
  const plain = name.replace(/_total$/, '')
  const [word, unit] = Object.entries(UNITS).find(([word]) => plain.endsWith(`_${word}`)) ?? [
    '',
    ''
  ]
  const rest = plain.slice('memwatch_'.length, word === '' ? undefined : -word.length - 1)
  const namespace = NAMESPACES.find(namespace => rest.startsWith(`${namespace}_`))
  return {
    name: `memwatch.${namespace ? `${namespace}.${rest.slice(namespace.length + 1)}` : rest}`,
    unit
  }
}

/**
 * @param {NamedRow} row
 * @returns {OtelForm | undefined} undefined for metrics that exist under prom-client's names only
 */
function otelOf ({ name, type, otel }) {
  const ours = name.startsWith('memwatch_')
  if (!ours && !otel) return undefined
  const plain = ours ? derived(name) : { name: '', unit: derived(`memwatch_${name}`).unit }
  return { ...plain, instrument: type, ...otel }
}

module.exports = { otelOf, SEMCONV_VERSION }
