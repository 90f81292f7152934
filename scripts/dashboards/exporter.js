'use strict'

const { dashboard, lines, number, list } = require('./panels')

const EXPORTER = 'job=~"$job", instance=~"$instance"'
/** @param {string} metric */
const perSecond = metric => `rate(${metric}[$__rate_interval])`

/** memwatch itself: exporters, and the agents that talk to them. */
module.exports = () => dashboard({
  uid: 'memwatch-exporter',
  title: 'memwatch / exporter',
  description: 'memwatch itself: whether its exporters get, judge and serve what they should, and what they take.',
  variables: [
    ['job', 'label_values(memwatch_exporter_info, job)'],
    ['instance', 'label_values(memwatch_exporter_info{job=~"$job"}, instance)']
  ],
  rows: [
    ['Now', [
      number({ title: 'Exporters', description: 'Exporters that answer. Fewer than you run: one is down, or not scraped.', unit: 'short', queries: [[`count(memwatch_exporter_info{${EXPORTER}}) or vector(0)`]] }),
      number({ title: 'Targets', description: 'Threads that are watched.', unit: 'short', queries: [[`sum(memwatch_exporter_targets{${EXPORTER}})`]] }),
      number({ title: 'Connections', description: 'Connections of agents. Fewer than targets: some fell silent.', unit: 'short', queries: [[`sum(memwatch_exporter_connections{${EXPORTER}})`]] }),
      number({ title: 'Frames', description: 'Frames taken a second: one for each target. Fewer: agents drop them.', unit: 'ops', queries: [[`sum(${perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`)})`]] }),
      number({ title: 'Lines rejected', description: 'Lines that were not taken, a second. Any: versions that do not fit, or something else that talks to the socket.', unit: 'ops', queries: [[`sum(${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)})`]], thresholds: [[null, 'green'], [0.01, 'orange']] }),
      number({ title: 'Failed diagnoses', description: 'Diagnoses that failed in themselves and said unknown instead: a bug to report.', unit: 'short', queries: [[`sum(increase(memwatch_exporter_diagnosis_errors_total{${EXPORTER}}[1h]))`]], thresholds: [[null, 'green'], [1, 'red']] })
    ]],
    ['What it takes', [
      lines({ title: 'Memory', description: 'Resident memory of each exporter. Bad: near its limit.', unit: 'bytes', queries: [[`memwatch_exporter_resident_memory_bytes{${EXPORTER}}`, '{{instance}}'], [`memwatch_exporter_memory_limit_bytes{${EXPORTER}}`, 'limit of {{instance}}']] }),
      lines({ title: 'Time of a scrape', description: 'How long Prometheus waits for /metrics. Bad: near its scrape timeout.', unit: 's', queries: [[`scrape_duration_seconds{${EXPORTER}} and on (job, instance) memwatch_exporter_info`, '{{instance}}']], thresholds: [[null, 'text'], [5, 'orange'], [10, 'red']] }),
      lines({ title: 'Series', description: 'Series of a scrape: about 250 a target. Bad: a sudden rise.', unit: 'short', queries: [[`scrape_samples_scraped{${EXPORTER}} and on (job, instance) memwatch_exporter_info`, '{{instance}}']] }),
      lines({ title: 'Frames by exporter', description: 'Frames taken a second. Bad: fewer than it has targets.', unit: 'ops', queries: [[perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`), '{{instance}}']] })
    ]],
    ['What goes wrong', [
      lines({ title: 'Lines rejected, by reason', description: 'Lines that were not taken. The runbook MemwatchLinesRejected says what each reason means.', unit: 'ops', queries: [[`sum by (reason) (${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)}) > 0 or sum(${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)}) == 0`, '{{reason}}']] }),
      lines({ title: 'Frames dropped by agents', description: 'The ten agents that drop most frames: the exporter was away, or is too slow.', unit: 'ops', queries: [[`topk(10, ${perSecond(`memwatch_agent_frames_dropped_total{${EXPORTER}}`)})`, '{{target}} {{thread}}']] }),
      list({ title: 'Silent agents', description: 'Threads that vanished without a goodbye within five minutes.', unit: 'short', span: 12, columns: ['target', 'thread', 'instance'], noValue: 'None.', queries: [[`memwatch_target_up{${EXPORTER}} == 0`]] }),
      list({ title: 'Versions', description: 'Agents by version and exporter. All should be of the exporter\'s version.', unit: 'short', span: 12, columns: ['instance', 'agent_version', 'node_version'], value: 'threads', queries: [[`count by (instance, agent_version, node_version) (memwatch_target_info{${EXPORTER}})`]] })
    ]]
  ]
})
