'use strict'

const { asked } = require('./rule')

/**
 * Alerts on memwatch itself.
 * @param {ReturnType<typeof import('./rule').ruleMaker>} maker
 */
function selfAlerts ({ matchers, rule, options: { jobSelector } }) {
  return [
    // SIGTERM ends an app without a handler before its goodbye. Such an exit was requested, so the
    // alert does not fire. Exits of earlier processes with the same name are ignored.
    rule('MemwatchAgentSilent', 'warning', [
      `memwatch_target_up${matchers()} == 0`,
      'unless on (job, instance, target)',
      `  max without (reason, sure, text) (memwatch_target_last_exit_timestamp_seconds${
        matchers('reason="killed"', 'text!~"SIGKILL.*"')})`,
      '  >= on (job, instance, target) max by (job, instance, target) ' +
        `(memwatch_target_start_time_seconds${matchers()})`
    ].join('\n'), {
      summary: 'A watched Node.js process stopped sending without a goodbye.',
      description: `{{ $labels.target }} ({{ $labels.thread }}) no longer sends frames. ${asked(
        'memwatch_target_last_exit_timestamp_seconds{$}',
        '{{ . | first | label "text" }}',
        asked(
          'memwatch_target_silence_seconds{$}',
          'The process is alive and silent: {{ . | first | label "cause" }}.',
          'It was killed, it hangs, or its connection is lost.'
        )
      )}`,
      fix: 'Check whether the process is alive: kubectl describe pod shows OOMKilled and restarts.'
    }),
    rule(
      'MemwatchExporterDown',
      'warning',
      `up${matchers(jobSelector)} == 0`,
      {
        summary: 'Prometheus cannot scrape a memwatch exporter.',
        description:
          '{{ $labels.instance }} ({{ $labels.job }}) does not answer, so nothing evaluates its ' +
            'targets. The apps are not affected.',
        fix: 'Restart the exporter container and read its last log lines.'
      },
      'exporter'
    ),
    rule(
      'MemwatchExporterNearLimit',
      'warning',
      `min_over_time(memwatch_exporter_resident_memory_bytes${matchers()}[10m]) > 0.9 * ` +
        `memwatch_exporter_memory_limit_bytes${matchers()}`,
      {
        summary: 'A memwatch exporter is near its own memory limit.',
        description:
          '{{ $labels.instance }} uses {{ $value | humanize1024 }}B. At its limit the kernel ' +
            'kills it, and its verdicts start again. The apps are not affected.',
        fix: 'Give the exporter more memory: 96Mi for ten targets, and 0.4Mi for each further one.'
      },
      'exporter'
    ),
    rule(
      'MemwatchFramesDropped',
      'info',
      `rate(memwatch_agent_frames_dropped_total${matchers()}[10m]) > 0.1`,
      {
        summary: 'An agent drops frames because the exporter does not accept them.',
        description:
          '{{ $labels.target }} ({{ $labels.thread }}) drops {{ printf "%.1f" $value }} frames ' +
            'a second: the exporter was away, or is too slow.',
        fix: 'Check the CPU limit of the exporter, and its restarts.'
      }
    ),
    rule(
      'MemwatchLinesRejected',
      'info',
      `increase(memwatch_exporter_lines_rejected_total${matchers()}[5m]) > 10`,
      {
        summary: 'A memwatch exporter rejects received lines.',
        description:
          '{{ $labels.instance }} rejected {{ $value | humanize }} lines in 5 minutes ({{ ' +
            '$labels.reason }}): agent and exporter have different versions, or another program ' +
            'uses the socket.',
        fix: 'Deploy agent and exporter in the same version.'
      },
      'exporter'
    ),
    rule(
      'MemwatchVersionSkew',
      'info',
      `memwatch_target_info${matchers()}\nunless on (job, instance, ` +
        `agent_version)\nlabel_replace(memwatch_exporter_info${matchers()}, "agent_version", ` +
        '"$1", "version", "(.+)")',
      {
        summary: 'Agent and exporter of memwatch have different versions.',
        description:
          '{{ $labels.target }} ({{ $labels.thread }}) has an agent {{ $labels.agent_version }}, ' +
            'and its exporter has another version: fields unknown to one of them are missing.',
        fix: 'Deploy agent and exporter in the same version.'
      }
    )
  ]
}

module.exports = { selfAlerts }
