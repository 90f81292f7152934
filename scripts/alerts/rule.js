'use strict'

const { REPOSITORY } = require('../packages')

/**
 * Seconds for which a finding must last before it pages (critical) or makes a ticket (warning,
 * info).
 */
const FOR_SECONDS = { critical: 60, warning: 120, info: 300 }

/**
 * Options by which rules may differ from the committed files.
 * @typedef {object} RuleOptions
 * @property {number} [forSeconds] replaces the defaults by severity
 * @property {number} [keepFiringForSeconds] time for which an alert stays active during a gap in
 *   its series
 * @property {number} [graceSeconds] age below which no threshold applies to a process
 * @property {number} [memoryRatio] share of the memory limit from which growth towards it is an
 *   alert
 * @property {number} [heapRatio] share of the heap size limit from which the live heap is an alert
 * @property {string} [selector] more label matchers, as in `namespace="shop"`
 * @property {string} [jobSelector] matcher of the scrape jobs of exporters
 * @property {string} [runbookBaseUrl]
 * @property {string} [dashboardBaseUrl] of Grafana
 */

/** @type {Required<Omit<RuleOptions, 'forSeconds'>>} */
const DEFAULTS = Object.freeze({
  keepFiringForSeconds: 300,
  graceSeconds: 600,
  memoryRatio: 0.6,
  heapRatio: 0.9,
  selector: '',
  jobSelector: 'job=~".*memwatch.*"',
  runbookBaseUrl: `${REPOSITORY}/blob/main/alerts/runbooks`,
  dashboardBaseUrl: 'https://grafana.example.org'
})

/**
 * @typedef {'critical' | 'warning' | 'info'} Severity by kubernetes-mixin's meaning: page, ticket,
 *   context
 */

/** Dashboard of an alert, and its variables. */
const DASHBOARDS = {
  process:
    '/d/memwatch-process?var-job={{ $labels.job | urlquery }}&var-instance={{ $labels.instance ' +
      '| urlquery }}&var-target={{ $labels.target | urlquery }}',
  exporter:
    '/d/memwatch-exporter?var-job={{ $labels.job | urlquery }}&var-instance={{ $labels.instance ' +
      '| urlquery }}'
}

/**
 * Creates the helpers of all rules from the options.
 * @param {RuleOptions} given
 */
function ruleMaker (given) {
  const options = { ...DEFAULTS, ...given }
  return {
    options,
    /**
     * `{…}` Label matchers in braces, with the selector; empty without matchers.
     * @param {string[]} own
     */
    matchers (...own) {
      const all = [...own, options.selector].filter(Boolean).join(', ')
      return all && `{${all}}`
    },
    /**
     * @param {string} alert
     * @param {Severity} severity
     * @param {string} expr
     * @param {{ summary: string, description: string, fix: string }} annotations
     * @param {keyof typeof DASHBOARDS} [dashboard]
     */
    rule: (alert, severity, expr, annotations, dashboard = 'process') => ({
      alert,
      expr,
      for: `${options.forSeconds ?? FOR_SECONDS[severity]}s`,
      keep_firing_for: `${options.keepFiringForSeconds}s`,
      labels: { severity, ...(dashboard === 'process' && { service_name: SERVICE_NAME }) },
      annotations: {
        ...annotations,
        runbook_url: `${options.runbookBaseUrl}/${alert}.md`,
        dashboard_url: options.dashboardBaseUrl + DASHBOARDS[dashboard]
      }
    })
  }
}

/** Labels that select a series of the alert's own thread. */
const THREAD_LABELS = ['job', 'instance', 'target', 'thread']

/**
 * A template that queries Prometheus when the alert is rendered. `$` in the query stands for the
 * labels of the alert's thread.
 * @param {string} query
 * @param {string} then template for the result, which is `.`
 * @param {string} [otherwise]
 */
function asked (query, then, otherwise) {
  // Labels are numbered, so that all selectors of the query use the same ones.
  const numbered = query.replaceAll(
    '$',
    THREAD_LABELS.map((name, i) => `${name}=%[${i + 1}]q`).join(',')
  )
  return `{{ with printf "${numbered.replaceAll('"', '\\"')}" ` +
    `${THREAD_LABELS.map(name => `$labels.${name}`).join(' ')} | query ` +
      `}}${then}${otherwise === undefined ? '' : `{{ else }}${otherwise}`}{{ end }}`
}

/**
 * Name of the alert's workload, by which Alertmanager groups its processes to one notification. The
 * target name is unsuitable: a second process of an exporter with the same name is the target
 * api-2.
 */
const SERVICE_NAME = asked(
  'memwatch_target_info{$,service_name!=""}',
  '{{ . | first | label "service_name" }}',
  '{{ $labels.target }}'
)

/** Template pipelines by format. Ratios are shares of wall time. */
const FORMATS = {
  bytes: 'humanize1024 }}B',
  bytesPerSecond: 'humanize1024 }}B/s',
  ratio: 'humanizePercentage }} of the time',
  perSecond: 'humanize }}/s',
  duration: 'humanizeDuration }}',
  number: 'printf "%.3g" }}'
}

/**
 * A number in a description. A word replaces a missing number, so that the sentence is always
 * complete.
 * @param {{ text: string, expr: string, format: keyof typeof FORMATS, missing?: string }} number
 */
const numberTemplate = ({ text, expr, format, missing = 'unknown' }) =>
  `${text} ${asked(expr, `{{ . | first | value | ${FORMATS[format]}`, missing)}`

module.exports = { ruleMaker, asked, numberTemplate, DEFAULTS, FOR_SECONDS }
