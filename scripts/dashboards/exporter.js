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
      'memwatch itself: whether its exporters get, judge and serve what they should, and what ' +
        'they take.',
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
            description: 'Exporters that answer. Fewer than you run: one is down, or not scraped.',
            unit: 'short',
            queries: [[`count(memwatch_exporter_info{${EXPORTER}}) or vector(0)`]]
          }),
          number({
            title: 'Targets',
            description: 'Threads that are watched.',
            unit: 'short',
            queries: [[`sum(memwatch_exporter_targets{${EXPORTER}})`]]
          }),
          number({
            title: 'Connections',
            description: 'Connections of agents. Fewer than targets: some fell silent.',
            unit: 'short',
            queries: [[`sum(memwatch_exporter_connections{${EXPORTER}})`]]
          }),
          number({
            title: 'Frames',
            description: 'Frames taken a second: one for each target. Fewer: agents drop them.',
            unit: 'ops',
            queries: [[`sum(${perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`)})`]]
          }),
          number({
            title: 'Lines rejected',
            description:
              'Lines that were not taken, a second. Any: versions that do not fit, or something ' +
                'else that talks to the socket.',
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
              'Diagnoses that failed in themselves and said unknown instead: a bug to report.',
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
        'What it takes',
        [
          lines({
            title: 'Memory',
            description: 'Resident memory of each exporter. Bad: near its limit.',
            unit: 'bytes',
            queries: [
              [`memwatch_exporter_resident_memory_bytes{${EXPORTER}}`, '{{instance}}'],
              [`memwatch_exporter_memory_limit_bytes{${EXPORTER}}`, 'limit of {{instance}}']
            ]
          }),
          lines({
            title: 'Time of a scrape',
            description: 'How long Prometheus waits for /metrics. Bad: near its scrape timeout.',
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
            description: 'Series of a scrape: about 250 a target. Bad: a sudden rise.',
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
              'Share of a core that each exporter takes, and of the time that its event loop is ' +
                'busy. Bad: above 80 % it gives up resolution.',
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
              'What is kept of hours and days. In memory it is at most 32 MiB, on disk what ' +
                '--data-max says. Bad: it stops to grow on disk while it grows in memory.',
            unit: 'bytes',
            queries: [[`memwatch_exporter_history_bytes{${EXPORTER}}`, '{{where}}, {{instance}}']]
          }),
          lines({
            title: 'Frames by exporter',
            description: 'Frames taken a second. Bad: fewer than it has targets.',
            unit: 'ops',
            queries: [[perSecond(`memwatch_exporter_frames_total{${EXPORTER}}`), '{{instance}}']]
          })
        ]
      ],
      [
        'What goes wrong',
        [
          lines({
            title: 'Lines rejected, by reason',
            description:
              'Lines that were not taken. The runbook MemwatchLinesRejected says what each ' +
                'reason means.',
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
            title: 'Given up under load',
            description:
              'Level 0: nothing. 1: healthy targets are judged more rarely. 2: four of five of ' +
                'their frames are left unread. 3: no new targets. Those with a finding are ' +
                  'watched as ever.',
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
            title: 'Frames shed, history given up',
            description:
              'Frames left unread under load, and parts of histories that were not kept, a ' +
                'second. Any: give the exporter more CPU, memory or disk.',
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
              'The ten agents that drop most frames: the exporter was away, or is too slow.',
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
            description: 'Threads that vanished without a goodbye within five minutes.',
            unit: 'short',
            span: 12,
            columns: ['target', 'thread', 'instance'],
            noValue: 'None.',
            queries: [[`memwatch_target_up{${EXPORTER}} == 0`]]
          }),
          list({
            title: 'Why they are silent',
            description:
              'Processes that are there and send nothing: loop_blocked works without a turn of ' +
                'its loop, waiting does not even work, stopped is a debugger or SIGSTOP.',
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
              'At 1 histories are saved. At 0 there is no folder for them (--data-dir), or its ' +
                'disk is full or read-only; the log says which.',
            unit: 'short',
            most: 1,
            queries: [[`memwatch_exporter_history_saving{${EXPORTER}}`, '{{instance}}']]
          }),
          list({
            title: 'Versions',
            description: "Agents by version and exporter. All should be of the exporter's version.",
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
