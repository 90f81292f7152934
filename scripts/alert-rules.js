'use strict'

const { stringify } = require('yaml')

/** How long a finding must stand before it pages (critical) or makes a ticket (warning, info), in seconds. */
const FOR_SECONDS = { critical: 60, warning: 120, info: 300 }

/**
 * What an alert says beside its sentence, by diagnosis: `expr` is asked while it fires, with `$` for the labels of its thread.
 * RSS is known on the main thread only. Rates go back as far as a warning has waited: further, and a young process would seem
 * to do less than it does. A diagnosis that is not listed here shows RSS.
 * @type {Record<string, { text: string, expr: string, format: keyof typeof FORMATS, missing?: string }[]>}
 */
const NUMBERS = {
  'js-heap-leak': [
    { text: 'live heap', expr: 'memwatch_live_heap_bytes{$}', format: 'bytes' },
    { text: 'heap size limit', expr: 'memwatch_heap_size_limit_bytes{$}', format: 'bytes' },
    { text: 'growth', expr: 'memwatch_live_heap_growth_bytes_per_second{$}', format: 'bytesPerSecond' },
    { text: 'time to the limit', expr: 'round((memwatch_heap_size_limit_bytes{$} - memwatch_live_heap_bytes{$}) / (memwatch_live_heap_growth_bytes_per_second{$} > 0))', format: 'duration' }
  ],
  'semi-space-starvation': [
    { text: 'largest semi-space', expr: 'memwatch_semi_space_max_bytes{$}', format: 'bytes' },
    { text: 'GC pauses', expr: 'sum(rate(memwatch_gc_pause_seconds_sum{$}[2m]))', format: 'ratio' },
    { text: 'scavenges', expr: 'sum(rate(memwatch_gc_pause_seconds_count{$,kind=\\"minor\\"}[2m]))', format: 'perSecond' }
  ],
  'allocator-fragmentation': [
    { text: 'kept by malloc', expr: 'memwatch_allocator_retained_bytes{$}', format: 'bytes' },
    { text: 'RSS', expr: 'memwatch_rss_bytes{$}', format: 'bytes' },
    { text: 'container limit', expr: 'memwatch_container_limit_bytes{$}', format: 'bytes', missing: 'none' }
  ]
}
const OTHER_NUMBERS = [{ text: 'RSS', expr: 'memwatch_rss_bytes{$}', format: /** @type {const} */ ('bytes') }]

/** Template pipelines by format. A ratio is of wall time. */
const FORMATS = {
  bytes: 'humanize1024 }}B',
  bytesPerSecond: 'humanize1024 }}B/s',
  ratio: 'humanizePercentage }} of the time',
  perSecond: 'humanize }}/s',
  duration: 'humanizeDuration }}'
}

/**
 * A number in a description: asked when the alert is rendered, and a word in its place where there is none, so that a missing
 * series never spoils the sentence.
 * @param {{ text: string, expr: string, format: keyof typeof FORMATS, missing?: string }} number
 */
function numberTemplate ({ text, expr, format, missing = 'unknown' }) {
  const matchers = ['job', 'instance', 'target', 'thread']
  // Numbered, so that every selector of the query is given the same labels.
  const query = expr.replaceAll('$', matchers.map((name, i) => `${name}=%[${i + 1}]q`).join(','))
  return `${text} {{ with printf "${query}" ${matchers.map(name => `$labels.${name}`).join(' ')} | query }}{{ . | first | value | ${FORMATS[format]}{{ else }}${missing}{{ end }}`
}

/**
 * @typedef {object} AlertOptions
 * @property {readonly Pick<import('../exporter/diagnoses/define-diagnosis').Diagnosis, 'id' | 'title' | 'severity' | 'runbook'>[]} diagnoses
 * @property {number} [forSeconds] instead of the defaults by severity
 * @property {number} [keepFiringForSeconds] how long an alert outlives a gap in its series
 * @property {string} [selector] more label matchers, as in `namespace="shop"`
 * @property {string} [jobSelector] which scrape jobs are exporters of memwatch
 * @property {string} [runbookBaseUrl]
 */

/**
 * The alert rules: one per diagnosis, and three that watch memwatch itself.
 * @param {AlertOptions} options
 * @returns {{ groups: { name: string, rules: object[] }[] }} as a Prometheus rules file
 */
function alertRules ({
  diagnoses, forSeconds, keepFiringForSeconds = 300, selector = '', jobSelector = 'job=~".*memwatch.*"',
  runbookBaseUrl = 'https://github.com/memwatch/memwatch/blob/main/alerts/runbooks'
}) {
  const matchers = (/** @type {string[]} */ ...own) => {
    const all = [...own, selector].filter(Boolean).join(', ')
    return all && `{${all}}`
  }
  /** @param {string} alert @param {'critical' | 'warning' | 'info'} severity @param {string} expr @param {Record<string, string>} annotations */
  const rule = (alert, severity, expr, annotations) => ({
    alert,
    expr,
    for: `${forSeconds ?? FOR_SECONDS[severity]}s`,
    keep_firing_for: `${keepFiringForSeconds}s`,
    labels: { severity },
    annotations: { ...annotations, runbook_url: `${runbookBaseUrl}/${alert}.md` }
  })

  const found = diagnoses.flatMap(({ id, title, severity, runbook }) => {
    if (runbook === undefined) return [] // an opportunity calls nobody
    // Aggregated `without`, so that namespace, pod and whatever else the scrape adds stay on the alert.
    const confirmed = `max without (state) (memwatch_diagnosis${matchers(`diagnosis="${id}"`, 'state="confirmed"')}) == 1`
    const fix = `max without (severity, runbook) (memwatch_verdict_info${matchers(`diagnosis="${id}"`)})`
    return [rule(runbook, severity,
      // The fix travels as a label; without one the alert fires all the same. topk: two fixes at once must not stop the join.
      `(${confirmed})\n  * ignoring (fix) group_left (fix)\n  topk without (fix) (1, ${fix})\nor ignoring (fix)\n(${confirmed})`, {
        summary: `${title}.`,
        description: `{{ $labels.target }} ({{ $labels.thread }}): ${lowerFirst(title)}. ` +
          `Now: ${(NUMBERS[id] ?? OTHER_NUMBERS).map(numberTemplate).join(', ')}. ` +
          'The evidence, and what was ruled out: /api/v1/diagnoses of the exporter at {{ $labels.instance }}.' +
          '{{ if $labels.fix }} Fix: {{ $labels.fix }}{{ end }}',
        fix: '{{ if $labels.fix }}{{ $labels.fix }}{{ else }}see /api/v1/diagnoses{{ end }}'
      })]
  })

  return {
    groups: [
      { name: 'memwatch-diagnoses', rules: found },
      {
        name: 'memwatch-self',
        rules: [
          rule('MemwatchAgentSilent', 'warning', `memwatch_target_up${matchers()} == 0`, {
            summary: 'A watched Node.js process fell silent without saying goodbye.',
            description: '{{ $labels.target }} ({{ $labels.thread }}) sends nothing any more: it was killed, it hangs, or its connection is lost.',
            fix: 'Look whether the process lives: kubectl describe pod shows OOMKilled and restarts.'
          }),
          rule('MemwatchExporterDown', 'warning', `up${matchers(jobSelector)} == 0`, {
            summary: 'A memwatch exporter cannot be scraped.',
            description: '{{ $labels.instance }} ({{ $labels.job }}) does not answer: what it watches is not judged by anyone. The apps themselves are not affected.',
            fix: 'Restart the exporter container and read its last log lines.'
          }),
          rule('MemwatchLinesRejected', 'info', `increase(memwatch_exporter_lines_rejected_total${matchers()}[5m]) > 10`, {
            summary: 'A memwatch exporter rejects lines that it is sent.',
            description: '{{ $labels.instance }} rejected {{ $value | humanize }} lines in 5 minutes ({{ $labels.reason }}): agent and exporter of different versions, or something else that talks to the socket.',
            fix: 'Bring agent and exporter to the same version.'
          })
        ]
      }
    ]
  }
}

/** Not of a name: JS heap, GC. @param {string} text */
const lowerFirst = text => /^[A-Z][a-z ]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text

/** The rules as the committed file has them. @param {AlertOptions} options */
function alertRulesYaml (options) {
  return `# Generated by npm run generate; do not edit. Prometheus 2.42 or later (keep_firing_for).\n${stringify(alertRules(options), { lineWidth: 0 })}`
}

module.exports = { alertRules, alertRulesYaml }
