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
      'All watched Node.js processes: who is ill, what a fix would bring, whose limits are too ' +
        'large or too small.',
    variables: [['job', 'label_values(memwatch_target_up, job)']],
    from: 'now-6h',
    rows: [
      [
        'Now',
        [
          number({
            title: 'Processes',
            description:
              'Node.js processes that are watched and alive. Fewer than you run: some have no ' +
                'agent, or their exporter is not scraped.',
            unit: 'short',
            queries: [[`count(memwatch_target_up{${JOB}, thread="main"} == 1) or vector(0)`]]
          }),
          number({
            title: 'Confirmed findings',
            description:
              'Findings that are sure. Any is worth a look; the table below says of whom.',
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
            description: 'Findings that are not sure yet: they become confirmed, or go away.',
            unit: 'short',
            queries: [[`sum(fleet:memwatch_diagnosis:sum{${JOB}, state="suspected"}) or vector(0)`]]
          }),
          number({
            title: 'Memory the fixes save',
            description:
              'Sum of what the first fix of each confirmed finding is predicted to take off ' +
                'RSS, opportunities included.',
            unit: 'bytes',
            queries: [[`sum(fleet:memwatch_verdict_saving_bytes:sum{${JOB}}) or vector(0)`]]
          }),
          number({
            title: 'Silent',
            description:
              'Processes that vanished without saying goodbye within the last five minutes: ' +
                'killed, hung, or cut off.',
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
        'Who is ill',
        [
          list({
            title: 'Findings, by memory that the fix saves',
            description:
              'Each confirmed finding that costs memory, with the change that fixes it. The ' +
                'first rows pay most.',
            unit: 'bytes',
            span: 24,
            height: 7,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix'],
            value: 'saves',
            widths: { target: 180, thread: 90, diagnosis: 240, severity: 90, fix: 780 },
            noValue: 'No finding costs memory.',
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
              'Every confirmed finding, those that cost time instead of memory included.',
            unit: 'short',
            span: 12,
            height: 9,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix'],
            widths: { target: 110, thread: 70, diagnosis: 210, severity: 80 },
            noValue: 'Nothing was found.',
            queries: [[`memwatch_verdict_info{${JOB}}`]]
          }),
          bars({
            title: 'Nearest to their memory limit',
            description:
              'The least RSS of a quarter of an hour as a share of the container limit. Above ' +
                '90 % one busy minute is enough to be killed.',
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
        'Who died',
        [
          bars({
            title: 'Ends within an hour, by reason',
            description:
              'How processes ended. Any oom_kill or heap_oom is one too many; hung ones were ' +
                'killed by a probe.',
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
            title: 'The last end of each',
            description: 'Why the last process of each name ended, in words.',
            unit: 'short',
            span: 16,
            columns: ['target', 'reason', 'sure', 'text'],
            widths: { target: 110, reason: 90, sure: 80 },
            noValue: 'Nobody has died.',
            queries: [[`topk(20, memwatch_target_last_exit_timestamp_seconds{${JOB}})`]]
          })
        ]
      ],
      [
        'What is found',
        [
          bars({
            title: 'Findings by diagnosis',
            description:
              'How many threads have each finding, now. One that many share is worth a change ' +
                'in the base image.',
            unit: 'short',
            span: 8,
            noValue: 'Nothing was found.',
            queries: [
              [
                `sum by (diagnosis) (fleet:memwatch_diagnosis:sum{${JOB}, state="confirmed"}) > 0`,
                '{{diagnosis}}'
              ]
            ]
          }),
          bars({
            title: 'Savings by diagnosis',
            description: 'What the fixes of each diagnosis would take off RSS in all.',
            unit: 'bytes',
            span: 8,
            noValue: 'No finding costs memory.',
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
              'Confirmed findings by diagnosis. A step up after a deployment names its cause.',
            unit: 'short',
            span: 8,
            stacked: true,
            noValue: 'Nothing was found.',
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
              'Median growth of the live heap of processes older than an hour. A version that ' +
                'rises above the one before it brought a leak.',
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
              'Workloads whose newest version grows otherwise than the one before: live heap, ' +
                'per hour.',
            unit: 'bytes',
            columns: ['service_name', 'service_version', 'previous_version'],
            value: 'grows',
            noValue: 'None.',
            queries: [[`3600 * ${GROWTH}:since{${JOB}}`]]
          }),
          bars({
            title: 'Findings by version',
            description:
              'Confirmed findings of each workload by version, the twenty largest. One that ' +
                'only a new version has came with it.',
            unit: 'short',
            span: 24,
            height: 6,
            noValue: 'Nothing was found.',
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
              'GC pauses as a share of time, the ten highest. Above 5 % is worth a look, above ' +
                '20 % users wait.',
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
              'Share of time in which the event loop was not waiting, the ten highest. Above 90 ' +
                '% there is no reserve.',
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
        'What runs',
        [
          bars({
            title: 'Node.js versions',
            description:
              'Threads by version of Node.js. The new space shrinks from 18 to 20 and again to ' +
                '24 where containers are small.',
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
              'Threads by allocator. glibc keeps memory that was freed where Buffers of mixed ' +
                'sizes come and go.',
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
              'Containers whose process never held more than half of their limit in a day, by ' +
                'what is unused. Less than a day of data says less.',
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
              'Containers whose process held more than 90 % of their limit within a day: one ' +
                'busy hour more, and it is killed.',
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
