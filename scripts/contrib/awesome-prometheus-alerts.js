'use strict'

const { stringify } = require('yaml')
const { diagnoses } = require('../../engine/diagnoses')
const { alertRules } = require('../alerts/index')
const { confirmedExpression, lowerFirst } = require('../alerts/diagnosis-alerts')
const { promClientRules } = require('../alerts/prom-client-rules')
const { ruleMaker } = require('../alerts/rule')
const { REPOSITORY } = require('../packages')

/**
 * @typedef {object} Rule rule in the form of the collection awesome-prometheus-alerts
 * @property {string} name name in words, from which the collection forms the name of the alert
 * @property {string} description
 * @property {string} query PromQL
 * @property {string} severity
 * @property {string} for
 */

const SEVERITIES = ['critical', 'warning', 'info']

/**
 * @param {string} alert name such as MemwatchJsHeapLeak
 * @returns {string} name in words, such as Memwatch js heap leak
 */
function toWords (alert) {
  const [first, ...rest] = alert.match(/[A-Z][a-z0-9]*/g) ?? []
  return [first, ...rest.map(word => word.toLowerCase())].join(' ')
}

/**
 * @param {string} duration duration such as 120s
 * @returns {string} duration such as 2m
 */
const toMinutes = duration => duration.replace(/^(\d+)s$/, (_, seconds) => `${Number(seconds) / 60}m`)

/**
 * @param {{ alert: string, for: string }} rule
 * @param {string} description
 * @param {string} query
 * @param {string} severity
 * @returns {Rule}
 */
const entry = (rule, description, query, severity) => ({
  name: toWords(rule.alert),
  description,
  query: query.replace(/\s*\n\s*/g, ' '),
  severity,
  for: toMinutes(rule.for)
})

/**
 * Alerts that need no other rules: the collection contains no recording rules, and advises against
 * `up`.
 * @returns {Rule[]} rules, the most severe first
 */
function memwatchRules () {
  const { matchers } = ruleMaker({})
  const byAlert = new Map(diagnoses.map(diagnosis => [diagnosis.runbook, diagnosis]))
  const rules = /** @type {any[]} */ (alertRules({ diagnoses }).groups.flatMap(group => group.rules))
  return rules
    .filter(({ expr }) => !/\bmemwatch:|\bup\{/.test(expr))
    .map(rule => {
      const diagnosis = byAlert.get(rule.alert)
      const where = '{{ $labels.target }} on {{ $labels.instance }}'
      return diagnosis
        ? entry(
          rule,
          `${where}: ${lowerFirst(diagnosis.title)}. /api/v1/diagnoses of the exporter has the ` +
            'evidence and the fix.',
          confirmedExpression(matchers, diagnosis.id),
          diagnosis.severity
        )
        : entry(rule, `${where}: ${lowerFirst(rule.annotations.summary)}`, rule.expr,
          rule.labels.severity)
    })
    .sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity))
}

/** @returns {Rule[]} */
const promClientEntries = () =>
  /** @type {any[]} */ (promClientRules().groups.flatMap(group => group.rules)).map(rule =>
    entry(rule, rule.annotations.description, rule.expr, rule.labels.severity))

/** @returns {string} a service of the group Runtimes, for _data/rules.yml */
const awesomePrometheusAlerts = () =>
  stringify(
    {
      groups: [
        {
          name: 'Runtimes',
          services: [
            {
              name: 'Node.js',
              logo: '/images/services/node-js.svg',
              exporters: [
                {
                  name: 'siimon/prom-client',
                  slug: 'prom-client',
                  doc_url: 'https://github.com/siimon/prom-client',
                  rules: promClientEntries()
                },
                {
                  name: 'memwatch/memwatch',
                  slug: 'memwatch',
                  doc_url: REPOSITORY,
                  rules: memwatchRules()
                }
              ]
            }
          ]
        }
      ]
    },
    { lineWidth: 0 }
  )

module.exports = { awesomePrometheusAlerts, toWords }
