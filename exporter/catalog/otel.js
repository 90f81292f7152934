'use strict'

/**
 * OpenTelemetry's name of a row of the metric tables. A row has a name of the semantic conventions
 * (1.44) if there is one. Others are derived from their Prometheus names, so that Prometheus forms
 * the same name again: `memwatch_live_heap_bytes` is `memwatch.live_heap` in `By`.
 *
 * @typedef {object} OtelForm
 * @property {string} name
 * @property {string} unit UCUM
 * @property {'gauge' | 'counter' | 'updowncounter' | 'histogram'} instrument
 * @property {boolean} [integer] true: the conventions define it
 * @property {Readonly<Record<string, string>>} [attributes] labels that have other names there
 * @property {(value: string) => string} [value] of those
 * @property {Readonly<Record<string, string>>} [always] attributes of all its points
 * @property {boolean} [startUnknown] true: its count may begin before the process
 * @typedef {Partial<OtelForm>} OtelOverride
 *
 * @typedef {{ name: string, type: 'gauge' | 'counter' | 'histogram', otel?: OtelOverride }}
 *   NamedRow
 */

/** Version of the semantic conventions. */
const SEMCONV_VERSION = '1.44.0'

/** A dot follows each part that belongs together. */
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
 * @returns {OtelForm | undefined} undefined for names of prom-client only
 */
function otelOf ({ name, type, otel }) {
  const ours = name.startsWith('memwatch_')
  if (!ours && !otel) return undefined
  const plain = ours ? derived(name) : { name: '', unit: derived(`memwatch_${name}`).unit }
  return { ...plain, instrument: type, ...otel }
}

module.exports = { otelOf, SEMCONV_VERSION }
