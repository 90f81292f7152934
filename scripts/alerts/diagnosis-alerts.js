'use strict'

const { GROWTH, VERSION } = require('./recording-rules')
const { asked, numberTemplate } = require('./rule')

/**
 * @typedef {Parameters<typeof numberTemplate>[0]} Shown a number in a description; `$` stands for
 *   the labels of the alert's thread
 */

/** @type {Shown} */
const LIVE_HEAP = { text: 'live heap', expr: 'memwatch_live_heap_bytes{$}', format: 'bytes' }
/** @type {Shown} */
const HEAP_LIMIT = {
  text: 'heap size limit',
  expr: 'memwatch_heap_size_limit_bytes{$}',
  format: 'bytes'
}
/** @type {Shown} */
const HEAP = { text: 'heap', expr: 'memwatch_heap_committed_bytes{$}', format: 'bytes' }
/** @type {Shown} */
const BUFFERS = { text: 'Buffers', expr: 'memwatch_array_buffers_bytes{$}', format: 'bytes' }
/** @type {Shown} */
const RSS = { text: 'RSS', expr: 'memwatch_rss_bytes{$}', format: 'bytes' }
/** @type {Shown} */
const CONTAINER_LIMIT = {
  text: 'container limit',
  expr: 'memwatch_container_limit_bytes{$}',
  format: 'bytes',
  missing: 'none'
}
/** @type {Shown} */
const GC_PAUSES = {
  text: 'GC pauses',
  expr: 'sum(rate(memwatch_gc_pause_seconds_sum{$}[2m]))',
  format: 'ratio'
}

/**
 * Numbers of an alert by diagnosis, queried while it fires. RSS is known on the main thread only.
 * Rates have a window as long as the wait of a warning, because a longer window would lower the
 * rates of a young process. A diagnosis that is not listed here shows RSS.
 * @type {Record<string, Shown[]>}
 */
const NUMBERS = {
  'js-heap-leak': [
    LIVE_HEAP,
    HEAP_LIMIT,
    {
      text: 'growth',
      expr: 'memwatch_live_heap_growth_bytes_per_second{$}',
      format: 'bytesPerSecond'
    },
    {
      text: 'time to the limit',
      // The heap size limit contains three semi-spaces, in which objects of a leak do not stay.
      expr: 'round(clamp_min(memwatch_heap_size_limit_bytes{$} - memwatch_live_heap_bytes{$} - ' +
        '(3 * memwatch_semi_space_max_bytes{$} or 0 * memwatch_live_heap_bytes{$}), 0) / ' +
        '(memwatch_live_heap_growth_bytes_per_second{$} > 0))',
      format: 'duration'
    }
  ],
  'heap-limit-thrash': [LIVE_HEAP, HEAP_LIMIT, GC_PAUSES],
  'semi-space-starvation': [
    { text: 'largest semi-space', expr: 'memwatch_semi_space_max_bytes{$}', format: 'bytes' },
    GC_PAUSES,
    {
      text: 'scavenges',
      expr: 'sum(rate(memwatch_gc_pause_seconds_count{$,kind="minor"}[2m]))',
      format: 'perSecond'
    }
  ],
  'container-limit-mismatch': [HEAP_LIMIT, CONTAINER_LIMIT, RSS],
  'allocator-fragmentation': [
    { text: 'retained by malloc', expr: 'memwatch_allocator_retained_bytes{$}', format: 'bytes' },
    RSS,
    CONTAINER_LIMIT
  ],
  'array-buffer-pile-up': [
    BUFFERS,
    {
      text: 'GCs for Buffers',
      expr: 'sum(rate(memwatch_gc_pause_seconds_count{$,cause="external"}[2m]))',
      format: 'perSecond'
    },
    RSS
  ],
  'buffer-pool-pinning': [BUFFERS, RSS],
  'native-memory-leak': [
    RSS,
    { text: 'growth', expr: 'deriv(memwatch_rss_bytes{$}[10m]) > 0', format: 'bytesPerSecond' },
    CONTAINER_LIMIT,
    {
      text: 'time to the limit',
      expr: 'round((memwatch_container_limit_bytes{$} - memwatch_rss_bytes{$}) / ' +
        '(deriv(memwatch_rss_bytes{$}[10m]) > 0))',
      format: 'duration'
    }
  ],
  'context-leak': [LIVE_HEAP, HEAP_LIMIT],
  'event-loop-blocked': [
    {
      text: 'event loop busy',
      expr: 'rate(memwatch_event_loop_active_seconds_total{$}[2m])',
      format: 'ratio'
    },
    { text: 'GC pauses', expr: 'sum(rate(memwatch_gc_pause_seconds_sum{$}[2m]))', format: 'ratio' }
  ],
  'cpu-throttling': [
    {
      text: 'throttled periods',
      expr: 'rate(memwatch_cpu_throttled_periods_total{$}[2m]) / ' +
        'rate(memwatch_cpu_periods_total{$}[2m])',
      format: 'ratio'
    },
    { text: 'CPU limit in cores', expr: 'memwatch_cpu_quota_cores{$}', format: 'number' }
  ],
  'oversized-heap': [HEAP, LIVE_HEAP, RSS],
  'idle-heap-not-returned': [HEAP, LIVE_HEAP, RSS]
}
const OTHER_NUMBERS = [RSS]

/**
 * Text with the time since confirmation, and the ruled out diagnoses; empty if the exporter reports
 * none.
 * @param {string} id
 */
const sureness = id =>
  asked(
    `time() - memwatch_verdict_start_timestamp_seconds{$,diagnosis="${id}"}`,
    ' Confirmed for {{ . | first | value | humanizeDuration }}.'
  ) +
  asked(
    `memwatch_verdict_info{$,diagnosis="${id}"}`,
    '{{ with . | first | label "ruled_out" }} Ruled out: {{ . }}.{{ end }}'
  )

/** @param {string} record */
const growthPerHour = record =>
  `3600 * ${GROWTH}:${record} * on (${VERSION}) group_right (previous_version) ` +
    'memwatch_target_info{$}'
/** Text about growth that began with a version; empty if the previous version grew similarly. */
const SINCE_VERSION = asked(
  growthPerHour('since'),
  ' Since {{ . | first | label "service_version" }}: live heap grows ' +
    '{{ . | first | value | humanize1024 }}B/h; with {{ . | first | label "previous_version" }} ' +
      asked(growthPerHour('previous'), '{{ . | first | value | humanize1024 }}B/h.', 'unknown.')
)

/**
 * Severity of the verdict; without one the worst severity of its diagnosis.
 * @param {string} worst
 */
const severityOfVerdict = worst =>
  `{{ if $labels.severity }}{{ $labels.severity }}{{ else }}${worst}{{ end }}`

/**
 * The expression aggregates by `without`, so that namespace, pod and all other labels of the scrape
 * stay on the alert.
 * @param {ReturnType<typeof import('./rule').ruleMaker>['matchers']} matchers
 * @param {string} id
 * @returns {string} PromQL: the targets on which the diagnosis is confirmed
 */
const confirmedExpression = (matchers, id) => 'max without (state) ' +
  `(memwatch_diagnosis${matchers(`diagnosis="${id}"`, 'state="confirmed"')}) == 1`

/**
 * Creates an alert for each diagnosis that needs one.
 * @param {ReturnType<typeof import('./rule').ruleMaker>} maker
 * @param {readonly Pick<import('../../engine/diagnoses/define-diagnosis').Diagnosis, 'id' |
 *   'title' | 'severity' | 'runbook'>[]} diagnoses
 */
const diagnosisAlerts = ({ matchers, rule }, diagnoses) =>
  diagnoses.flatMap(({ id, title, severity, runbook }) => {
    if (runbook === undefined) return [] // An opportunity has no alert.
    const confirmed = confirmedExpression(matchers, id)
    const info = 'max without (runbook, ruled_out) ' +
      `(memwatch_verdict_info${matchers(`diagnosis="${id}"`)})`
    const alert = rule(
      runbook,
      severity,
      // Fix and severity are labels; without them the alert fires nevertheless. topk selects one of
      // two fixes, which would break the join.
      [
        `(${confirmed})`,
        '  * ignoring (fix, severity) group_left (fix, severity)',
        `  topk without (fix, severity) (1, ${info})`,
        'or ignoring (fix, severity)',
        `(${confirmed})`
      ].join('\n'),
      {
        summary: `${title}.`,
        description:
          `{{ $labels.target }} ({{ $labels.thread }}): ${lowerFirst(title)}.${sureness(id)} ` +
          `Now: ${(NUMBERS[id] ?? OTHER_NUMBERS).map(numberTemplate).join(', ')}. ` +
          '/api/v1/diagnoses of the exporter at {{ $labels.instance }} has the evidence.' +
          asked(
            `memwatch_suspect_info{$,diagnosis="${id}"}`,
            ' Suspects: {{ . | first | label "suspects" }}.'
          ) +
          (id === 'js-heap-leak' ? SINCE_VERSION : '') +
          '{{ if $labels.fix }} Fix: {{ $labels.fix }}{{ end }}',
        fix: '{{ if $labels.fix }}{{ $labels.fix }}{{ else }}see /api/v1/diagnoses{{ end }}'
      }
    )
    return [{ ...alert, labels: { ...alert.labels, severity: severityOfVerdict(severity) } }]
  })

/** Lowers the first letter of a text, except for names: JS heap, GC. @param {string} text */
const lowerFirst = text => /^[A-Z][a-z ]/.test(text) ? text[0].toLowerCase() + text.slice(1) : text

module.exports = { confirmedExpression, diagnosisAlerts, lowerFirst }
