'use strict'

const { dashboard, lines, number, list } = require('./panels')

const EXPORTER = 'job=~"$job", instance=~"$instance"'
/** @param {string} metric */
const perSecond = metric => `rate(${metric}[$__rate_interval])`

/** Dashboard of memwatch itself: exporters, and the agents connected to them. */
module.exports = () =>
  dashboard({
    uid: 'memwatch-exporter',
    title: 'memwatch / exporter',
    description:
      'The exporters of memwatch: received frames, evaluations, scrapes, and the memory and CPU ' +
      'that they use.',
    variables: [
      ['job', 'label_values(memwatch_exporter_info, job)'],
      ['instance', 'label_values(memwatch_exporter_info{job=~"$job"}, instance)']
    ],
    rows: [
      [
        'Now',
        [
          number({
            title: 'Exporters',
            description: 'Exporters that answer. If you run more, one is down, or Prometheus ' +
              'does not scrape it.',
            unit: 'short',
            queries: [[`count(memwatch_exporter_info{${EXPORTER}}) or vector(0)`]]
          }),
          number({
            title: 'Targets',
            description: 'Watched main threads and workers.',
            unit: 'short',
            queries: [[`sum(memwatch_exporter_targets{${EXPORTER}})`]]
          }),
          number({
            title: 'Connections',
            description: 'Connections of agents. If targets are more, some agents are silent.',
            unit: 'short',
            queries: [[`sum(memwatch_exporter_connections{${EXPORTER}})`]]
          }),
          number({
            title: 'Frames',
            description: 'Accepted frames a second, normally one for each target. With fewer ' +
              'frames, agents drop some.',
            unit: 'ops',
            queries: [[`sum(${perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`)})`]]
          }),
          number({
            title: 'Lines rejected',
            description:
              'Rejected lines a second. If there are any, agent and exporter have different ' +
              'versions, or another program uses the socket.',
            unit: 'ops',
            queries: [[`sum(${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)})`]],
            thresholds: [
              [null, 'green'],
              [0.01, 'orange']
            ]
          }),
          number({
            title: 'Failed diagnoses',
            description:
              'Evaluations of diagnoses that failed with an error. Their verdict is unknown. ' +
              'Report this bug.',
            unit: 'short',
            queries: [[`sum(increase(memwatch_exporter_diagnosis_errors_total{${EXPORTER}}[1h]))`]],
            thresholds: [
              [null, 'green'],
              [1, 'red']
            ]
          })
        ]
      ],
      [
        'Resource use',
        [
          lines({
            title: 'Memory',
            description: 'Resident memory of each exporter. Near the limit the exporter needs ' +
              'more memory.',
            unit: 'bytes',
            queries: [
              [`memwatch_exporter_resident_memory_bytes{${EXPORTER}}`, '{{instance}}'],
              [`memwatch_exporter_memory_limit_bytes{${EXPORTER}}`, 'limit of {{instance}}']
            ]
          }),
          lines({
            title: 'Time of a scrape',
            description: 'Time that Prometheus waits for /metrics. It must stay below the scrape ' +
              'timeout.',
            unit: 's',
            queries: [
              [
                `scrape_duration_seconds{${EXPORTER}} and on (job, instance) ` +
                  'memwatch_exporter_info',
                '{{instance}}'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [5, 'orange'],
              [10, 'red']
            ]
          }),
          lines({
            title: 'Series',
            description: 'Series of a scrape, at most about 250 for each target.',
            unit: 'short',
            queries: [
              [
                `scrape_samples_scraped{${EXPORTER}} and on (job, instance) memwatch_exporter_info`,
                '{{instance}}'
              ]
            ]
          }),
          lines({
            title: 'CPU and event loop',
            description:
              'Share of a core that each exporter uses, and share of time in which its event ' +
              'loop is busy. Above 80 % the exporter reduces the resolution.',
            unit: 'percentunit',
            queries: [
              [
                perSecond(`memwatch_exporter_cpu_seconds_total{${EXPORTER}}`),
                'CPU of {{instance}}'
              ],
              [
                perSecond(`memwatch_exporter_event_loop_active_seconds_total{${EXPORTER}}`),
                'loop of {{instance}}'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [0.8, 'orange'],
              [0.98, 'red']
            ]
          }),
          lines({
            title: 'History',
            description:
              'Size of the stored history of hours and days: at most 32 MiB in memory, and at ' +
              'most --data-max on disk. Sign of a problem: it grows in memory, but not on disk.',
            unit: 'bytes',
            queries: [[`memwatch_exporter_history_bytes{${EXPORTER}}`, '{{where}}, {{instance}}']]
          }),
          lines({
            title: 'Frames by exporter',
            description: 'Accepted frames a second, normally one for each target.',
            unit: 'ops',
            queries: [[perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`), '{{instance}}']]
          })
        ]
      ],
      [
        'Problems',
        [
          lines({
            title: 'Lines rejected, by reason',
            description:
              'Rejected lines a second. The runbook MemwatchLinesRejected explains each reason.',
            unit: 'ops',
            queries: [
              [
                'sum by (reason) ' +
                  `(${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)}) > 0 or ` +
                    `sum(${perSecond(`memwatch_exporter_lines_rejected_total{${EXPORTER}}`)}) == 0`,
                '{{reason}}'
              ]
            ]
          }),
          lines({
            title: 'Level of overload',
            description:
              'Level 0: no overload. 1: the exporter evaluates healthy targets less often. 2: it ' +
              'skips four of five of their frames. 3: it rejects new targets. Targets with a ' +
              'finding lose nothing.',
            unit: 'short',
            most: 3,
            queries: [[`memwatch_exporter_load_level{${EXPORTER}}`, '{{instance}}']],
            thresholds: [
              [null, 'text'],
              [1, 'orange'],
              [3, 'red']
            ]
          }),
          lines({
            title: 'Skipped frames, dropped history',
            description:
              'Frames that the overloaded exporter skipped, and parts of histories that it ' +
              'dropped, a second. If there are any, give the exporter more CPU, memory or disk.',
            unit: 'ops',
            queries: [
              [
                perSecond(`memwatch_exporter_frames_shed_total{${EXPORTER}}`),
                'frames, {{instance}}'
              ],
              [
                perSecond(`memwatch_exporter_history_dropped_total{${EXPORTER}}`),
                'history, {{instance}}'
              ],
              [perSecond(`memwatch_exporter_history_torn_total{${EXPORTER}}`), 'torn, {{instance}}']
            ]
          }),
          lines({
            title: 'Frames dropped by agents',
            description:
              'The ten agents that drop the most frames: their exporter was away, or is too slow.',
            unit: 'ops',
            queries: [
              [
                `topk(10, ${perSecond(`memwatch_agent_frames_dropped_total{${EXPORTER}}`)})`,
                '{{target}} {{thread}}'
              ]
            ]
          }),
          list({
            title: 'Silent agents',
            description: 'Threads that stopped sending frames in the last five minutes, without ' +
              'a goodbye.',
            unit: 'short',
            span: 12,
            columns: ['target', 'thread', 'instance'],
            noValue: 'None.',
            queries: [[`memwatch_target_up{${EXPORTER}} == 0`]]
          }),
          list({
            title: 'Causes of silence',
            description:
              'Running processes that send no frames. loop_blocked: synchronous work blocks the ' +
              'event loop. waiting: the event loop waits in a synchronous call. stopped: a ' +
              'debugger or SIGSTOP stopped the process.',
            unit: 's',
            span: 12,
            columns: ['target', 'cause', 'instance'],
            value: 'since',
            noValue: 'None.',
            queries: [[`memwatch_target_silence_seconds{${EXPORTER}}`]]
          }),
          lines({
            title: 'Saving to disk',
            description:
              'At 1 the exporter saves histories. At 0 it has no folder for them (--data-dir), or ' +
              'the disk is full or read-only; the log has the reason.',
            unit: 'short',
            most: 1,
            queries: [[`memwatch_exporter_history_saving{${EXPORTER}}`, '{{instance}}']]
          }),
          list({
            title: 'Versions',
            description: 'Agents by version and exporter. All agents should have the version of ' +
              'their exporter.',
            unit: 'short',
            span: 12,
            columns: ['instance', 'agent_version', 'node_version'],
            value: 'threads',
            queries: [
              [
                'count by (instance, agent_version, node_version) ' +
                  `(memwatch_target_info{${EXPORTER}})`
              ]
            ]
          })
        ]
      ]
    ]
  })
