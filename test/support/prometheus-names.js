'use strict'

/** The units of OpenTelemetry in use here, with their names in Prometheus. */
const UNIT_WORDS = { s: 'seconds', By: 'bytes', 1: '' }
const PER_WORDS = { s: 'second' }

/**
 * Name of a metric in Prometheus' OTLP receiver and the Collector: "OTLP Metric points to
 * Prometheus" of OpenTelemetry's compatibility specification, as
 * github.com/prometheus/otlptranslator does it. `npm run bench:otlp` compares with the real
 * programs.
 * @param {{ name: string, unit: string, instrument: 'gauge' | 'counter' | 'updowncounter' |
 *   'histogram' }} metric
 */
function prometheusName ({ name, unit, instrument }) {
  const [main, per] = unit.replace(/\{[^}]*\}/g, '').split('/')
  const words = name.split(/[^A-Za-z0-9:]+/)
  const unitWord = UNIT_WORDS[main] ?? main
  const perWord = per ? `per_${PER_WORDS[per] ?? per}` : ''
  for (const word of [unitWord, perWord]) if (word && !words.includes(word)) words.push(word)
  if (instrument === 'counter') {
    return [...words.filter(word => word !== 'total'), 'total'].join('_')
  }
  if (instrument === 'gauge' && unit === '1') {
    return [...words.filter(word => word !== 'ratio'), 'ratio'].join('_')
  }
  return words.join('_')
}

/** @param {string} attribute */
const prometheusLabel = attribute => attribute.replace(/[^A-Za-z0-9_]/g, '_')

module.exports = { prometheusName, prometheusLabel }
