'use strict'

const { GROWTH } = require('../alerts/recording-rules')
const { dashboard, lines, number, bars, list } = require('./panels')

const JOB = 'job=~"$job"'
/** Labels of a thread of a process that is watched by an exporter. */
const THREAD = 'job, instance, target, thread'

/**
 * Dashboard of all processes: findings, effects of fixes, and unsuitable limits. Its sums are
 * recorded, so that thousands of processes cost little.
 */
module.exports = () =>
  dashboard({
    uid: 'memwatch-fleet',
    title: 'memwatch / fleet',
    description:
      'All watched Node.js processes: findings, predicted savings of the fixes, and memory ' +
      'limits that are too large or too small.',
    variables: [['job', 'label_values(memwatch_target_up, job)']],
    from: 'now-6h',
    rows: [
      [
        'Now',
        [
          number({
            title: 'Processes',
            description:
              'Running processes with an agent. If you run more, some have no agent, or ' +
              'Prometheus does not scrape their exporter.',
            unit: 'short',
            queries: [[`count(memwatch_target_up{${JOB}, thread="main"} == 1) or vector(0)`]]
          }),
          number({
            title: 'Confirmed findings',
            description:
              'Findings with sufficient evidence. The tables below list their targets.',
            unit: 'short',
            queries: [
              [`sum(fleet:memwatch_diagnosis:sum{${JOB}, state="confirmed"}) or vector(0)`]
            ],
            thresholds: [
              [null, 'green'],
              [1, 'orange']
            ]
          }),
          number({
            title: 'Suspected findings',
            description: 'Findings with too little evidence so far. Later they are confirmed or ' +
              'withdrawn.',
            unit: 'short',
            queries: [[`sum(fleet:memwatch_diagnosis:sum{${JOB}, state="suspected"}) or vector(0)`]]
          }),
          number({
            title: 'Savings of memory',
            description:
              'Predicted reduction of RSS by the first fix of each confirmed finding, in total. ' +
              'It includes opportunities.',
            unit: 'bytes',
            queries: [[`sum(fleet:memwatch_verdict_saving_bytes:sum{${JOB}}) or vector(0)`]]
          }),
          number({
            title: 'Silent',
            description:
              'Targets that stopped sending frames in the last five minutes, without a goodbye: ' +
              'the process was killed, hangs, or lost its connection.',
            unit: 'short',
            queries: [[`count(memwatch_target_up{${JOB}} == 0) or vector(0)`]],
            thresholds: [
              [null, 'green'],
              [1, 'red']
            ]
          }),
          number({
            title: 'Memory in use',
            description: 'Resident memory of all watched processes.',
            unit: 'bytes',
            queries: [[`sum(memwatch_rss_bytes{${JOB}})`]]
          })
        ]
      ],
      [
        'Findings',
        [
          list({
            title: 'Findings by saved memory',
            description:
              'Confirmed findings that waste memory, with their fix. The first row saves the ' +
              'most memory.',
            unit: 'bytes',
            span: 24,
            height: 7,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix'],
            value: 'saves',
            widths: { target: 180, thread: 90, diagnosis: 240, severity: 90, fix: 780 },
            noValue: 'No finding wastes memory.',
            queries: [
              [
                `sort_desc(max by (${THREAD}, diagnosis) ` +
                  `(memwatch_verdict_saving_bytes{${JOB}}) * on (${THREAD}, diagnosis) ` +
                    `group_left (fix, severity) topk by (${THREAD}, diagnosis) (1, ` +
                      `memwatch_verdict_info{${JOB}}))`
              ]
            ]
          }),
          list({
            title: 'All findings',
            description:
              'All confirmed findings, also those that cost CPU time or delay requests.',
            unit: 'short',
            span: 12,
            height: 9,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix'],
            widths: { target: 110, thread: 70, diagnosis: 210, severity: 80 },
            noValue: 'No finding.',
            queries: [[`memwatch_verdict_info{${JOB}}`]]
          }),
          bars({
            title: 'Nearest to their memory limit',
            description:
              'Lowest RSS of the last quarter of an hour, divided by the container limit. Above ' +
              '90 % a busy minute can reach the limit, and the kernel kills the process.',
            unit: 'percentunit',
            span: 12,
            height: 9,
            queries: [
              [
                `topk(10, max by (job, instance, target) (memwatch:rss_bytes:min15m{${JOB}}) / ` +
                  `max by (job, instance, target) (memwatch_container_limit_bytes{${JOB}}))`,
                '{{target}}'
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.75, 'orange'],
              [0.9, 'red']
            ]
          })
        ]
      ],
      [
        'Deaths',
        [
          bars({
            title: 'Deaths in the last hour, by cause',
            description:
              'Causes of death, without clean exits. Investigate each oom_kill and heap_oom. A ' +
              'liveness probe killed the hung processes.',
            unit: 'short',
            span: 8,
            queries: [
              [
                `sum by (reason) (increase(memwatch_target_exits_total{${JOB}, ` +
                  'reason!="clean"}[1h]))',
                '{{reason}}'
              ]
            ]
          }),
          list({
            title: 'Last death of each process name',
            description: 'Cause of death of the last process of each name.',
            unit: 'short',
            span: 16,
            columns: ['target', 'reason', 'sure', 'text'],
            widths: { target: 110, reason: 90, sure: 80 },
            noValue: 'No process has died.',
            queries: [[`topk(20, memwatch_target_last_exit_timestamp_seconds{${JOB}})`]]
          })
        ]
      ],
      [
        'Diagnoses',
        [
          bars({
            title: 'Findings by diagnosis',
            description:
              'Number of threads with each finding. If many threads share a finding, fix it in ' +
              'the base image.',
            unit: 'short',
            span: 8,
            noValue: 'No finding.',
            queries: [
              [
                `sum by (diagnosis) (fleet:memwatch_diagnosis:sum{${JOB}, state="confirmed"}) > 0`,
                '{{diagnosis}}'
              ]
            ]
          }),
          bars({
            title: 'Savings by diagnosis',
            description: 'Predicted reduction of RSS by the fixes of each diagnosis, in total.',
            unit: 'bytes',
            span: 8,
            noValue: 'No finding wastes memory.',
            queries: [
              [
                `sum by (diagnosis) (fleet:memwatch_verdict_saving_bytes:sum{${JOB}})`,
                '{{diagnosis}}'
              ]
            ]
          }),
          lines({
            title: 'Findings over time',
            description:
              'Confirmed findings by diagnosis. If their number rises after a deployment, the ' +
              'deployment caused them.',
            unit: 'short',
            span: 8,
            stacked: true,
            noValue: 'No finding.',
            queries: [
              [
                `sum by (diagnosis) (fleet:memwatch_diagnosis:sum{${JOB}, state="confirmed"}) > 0`,
                '{{diagnosis}}'
              ]
            ]
          })
        ]
      ],
      [
        'By version',
        [
          lines({
            title: 'Live heap growth by version, per hour',
            description:
              'Median growth of the live heap of processes older than an hour. If a version ' +
              'grows faster than the previous one, it introduced a leak.',
            unit: 'bytes',
            noValue: 'No process is older than an hour.',
            queries: [
              [
                `3600 * topk(10, ${GROWTH}:median{${JOB}})`,
                '{{service_name}} {{service_version}}'
              ]
            ]
          }),
          list({
            title: 'Growth that began with a version',
            description:
              'Workloads whose live heap grows faster or slower with the newest version than ' +
              'with the previous one, per hour.',
            unit: 'bytes',
            columns: ['service_name', 'service_version', 'previous_version'],
            value: 'grows',
            noValue: 'None.',
            queries: [[`3600 * ${GROWTH}:since{${JOB}}`]]
          }),
          bars({
            title: 'Findings by version',
            description:
              'Confirmed findings of each workload by version: the twenty most frequent. If only ' +
              'the new version has a finding, this version introduced it.',
            unit: 'short',
            span: 24,
            height: 6,
            noValue: 'No finding.',
            queries: [
              [
                'topk(20, sum by (namespace, service_name, service_version, diagnosis) ' +
                  `(workload:memwatch_verdicts:count{${JOB}}))`,
                '{{service_name}} {{service_version}} {{diagnosis}}'
              ]
            ]
          })
        ]
      ],
      [
        'Time',
        [
          lines({
            title: 'Most time in GC',
            description:
              'Share of time in GC pauses: the ten highest. Above 5 % search for the cause; ' +
              'above 20 % users notice the pauses.',
            unit: 'percentunit',
            queries: [
              [`topk(10, memwatch:gc_pause_seconds:rate5m{${JOB}})`, '{{target}} {{thread}}']
            ],
            thresholds: [
              [null, 'text'],
              [0.05, 'orange'],
              [0.2, 'red']
            ]
          }),
          lines({
            title: 'Busiest event loops',
            description:
              'Share of time in which the event loop was busy: the ten highest. Above 90 % there ' +
              'is no reserve for a higher load.',
            unit: 'percentunit',
            most: 1,
            queries: [
              [`topk(10, memwatch:event_loop_active:rate5m{${JOB}})`, '{{target}} {{thread}}']
            ],
            thresholds: [
              [null, 'text'],
              [0.9, 'red']
            ]
          })
        ]
      ],
      [
        'Versions, allocators and limits',
        [
          bars({
            title: 'Node.js versions',
            description:
              'Threads by version of Node.js. In small containers Node.js 20 and 24 each choose ' +
              'a smaller new space than the version before.',
            unit: 'short',
            span: 12,
            height: 5,
            queries: [
              [`sum by (node_version) (fleet:memwatch_targets:count{${JOB}})`, '{{node_version}}']
            ]
          }),
          bars({
            title: 'Allocators',
            description:
              'Threads by allocator. In apps with short-lived Buffers of mixed sizes, glibc ' +
              'keeps freed memory.',
            unit: 'short',
            span: 12,
            height: 5,
            queries: [
              [`sum by (allocator) (fleet:memwatch_targets:count{${JOB}})`, '{{allocator}}']
            ]
          }),
          list({
            title: 'Limits that are too large',
            description:
              'Containers whose process used at most half of the limit in the last day, with the ' +
              'unused memory. With less than a day of data the maximum may be missing.',
            unit: 'bytes',
            span: 12,
            columns: ['target', 'instance'],
            value: 'unused',
            noValue: 'None.',
            queries: [
              [
                'topk(20, (max by (job, instance, target) ' +
                  `(memwatch_container_limit_bytes{${JOB}}) - max by (job, instance, target) ` +
                    `(memwatch:rss_bytes:max1d{${JOB}})) and max by (job, instance, target) ` +
                      `(memwatch:rss_bytes:max1d{${JOB}}) < 0.5 * max by (job, instance, ` +
                        `target) (memwatch_container_limit_bytes{${JOB}}))`
              ]
            ]
          }),
          list({
            title: 'Limits that are too small',
            description:
              'Containers whose process used more than 90 % of the limit in the last day. A ' +
              'busier hour can reach the limit, and the kernel kills the process.',
            unit: 'percentunit',
            span: 12,
            columns: ['target', 'instance'],
            value: 'of the limit',
            noValue: 'None.',
            queries: [
              [
                `topk(20, max by (job, instance, target) (memwatch:rss_bytes:max1d{${JOB}}) / ` +
                  `max by (job, instance, target) (memwatch_container_limit_bytes{${JOB}}) > 0.9)`
              ]
            ]
          })
        ]
      ]
    ]
  })
