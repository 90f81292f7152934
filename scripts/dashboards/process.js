'use strict'

const { dashboard, lines, number, list } = require('./panels')

const PROCESS = 'job=~"$job", instance=~"$instance", target=~"$target"'
const MAIN = `${PROCESS}, thread="main"`
/** @param {string} metric */
const perSecond = metric => `rate(${metric}[$__rate_interval])`

/**
 * Dashboard of one process: its verdict and fix first, then memory, GC and event loop as evidence.
 */
module.exports = () =>
  dashboard({
    uid: 'memwatch-process',
    title: 'memwatch / process',
    description:
      'One Node.js process: findings and fixes, parts of RSS, and the time in GC and in the ' +
      'event loop.',
    variables: [
      ['job', 'label_values(memwatch_target_up, job)'],
      ['instance', 'label_values(memwatch_target_up{job=~"$job"}, instance)'],
      ['target', 'label_values(memwatch_target_up{job=~"$job", instance=~"$instance"}, target)']
    ],
    annotations: [
      {
        name: 'Starts',
        expr: `changes(memwatch_target_start_time_seconds{${MAIN}}[1m]) > 0`,
        color: 'blue',
        title: '{{target}} started',
        text: 'A new process started, after a deployment, a restart or a crash.'
      },
      {
        name: 'Verdicts',
        expr: `memwatch_verdict_start_timestamp_seconds{${PROCESS}} * 1000`,
        color: 'red',
        title: '{{diagnosis}}',
        text: 'Confirmed on {{target}} ({{thread}}).',
        valueIsTime: true
      },
      {
        name: 'Ends',
        expr: `memwatch_target_last_exit_timestamp_seconds{${PROCESS}} * 1000`,
        color: 'dark-red',
        title: '{{target}}: {{reason}}',
        text: '{{text}}',
        valueIsTime: true
      },
      {
        name: 'OOM kills',
        expr: `increase(memwatch_container_oom_kills_total{${MAIN}}[1m]) > 0`,
        color: 'dark-red',
        title: 'OOM kill in the container of {{target}}',
        text: 'The kernel killed a process.'
      }
    ],
    rows: [
      [
        'Verdict',
        [
          list({
            title: 'Findings and fixes',
            description:
              'Confirmed findings, each with its fix. The table is empty without a finding.',
            unit: 'short',
            span: 24,
            height: 5,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix', 'ruled_out'],
            widths: { target: 120, thread: 70, diagnosis: 200, severity: 80, fix: 900 },
            noValue: 'No finding.',
            queries: [[`memwatch_verdict_info{${PROCESS}}`]]
          }),
          number({
            title: 'RSS, share of the container limit',
            description: 'RSS divided by the container limit. At 100 % the kernel kills the ' +
              'process.',
            unit: 'percentunit',
            noValue: 'no limit',
            queries: [
              [`max(memwatch_rss_bytes{${PROCESS}} / memwatch_container_limit_bytes{${PROCESS}})`]
            ],
            thresholds: [
              [null, 'green'],
              [0.75, 'orange'],
              [0.9, 'red']
            ]
          }),
          number({
            title: 'Live heap, share of the heap limit',
            description:
              'Live heap after the last major GC, divided by the heap size limit. Near 100 % V8 ' +
              'runs GCs all the time, and then aborts.',
            unit: 'percentunit',
            noValue: 'no major GC yet',
            queries: [
              [
                `max(memwatch_live_heap_bytes{${PROCESS}} / ` +
                  `memwatch_heap_size_limit_bytes{${PROCESS}})`
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.75, 'orange'],
              [0.9, 'red']
            ]
          }),
          number({
            title: 'Time in GC pauses',
            description: 'Share of time in GC pauses. Above 5 % search for the cause; above 20 % ' +
              'users notice the pauses.',
            unit: 'percentunit',
            queries: [
              [
                'max(sum by (target, thread) ' +
                  `(${perSecond(`memwatch_gc_pause_seconds_sum{${PROCESS}}`)}))`
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.05, 'orange'],
              [0.2, 'red']
            ]
          }),
          number({
            title: 'Event loop in use',
            description:
              'Share of time in which the event loop was busy. Above 90 % there is no reserve ' +
              'for a higher load.',
            unit: 'percentunit',
            queries: [
              [`max(${perSecond(`memwatch_event_loop_active_seconds_total{${PROCESS}}`)})`]
            ],
            thresholds: [
              [null, 'green'],
              [0.7, 'orange'],
              [0.9, 'red']
            ]
          }),
          number({
            title: 'Event loop delay, p99',
            description: 'One timer in a hundred was at least this late. Above 100 ms users ' +
              'notice the delay.',
            unit: 's',
            queries: [
              [
                'histogram_quantile(0.99, sum by (le) ' +
                  `(${perSecond(`memwatch_event_loop_delay_seconds_bucket{${PROCESS}}`)}))`
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.1, 'orange'],
              [0.5, 'red']
            ]
          }),
          number({
            title: 'Throttled',
            description:
              'Share of the CPU quota\'s periods in which the container was throttled. Above 5 % ' +
              'throttling prolongs pauses and blocks noticeably.',
            unit: 'percentunit',
            noValue: 'no CPU limit',
            queries: [
              [
                `max(${perSecond(`memwatch_cpu_throttled_periods_total{${PROCESS}}`)} / ` +
                  `(${perSecond(`memwatch_cpu_periods_total{${PROCESS}}`)} > 0))`
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.05, 'orange'],
              [0.25, 'red']
            ]
          })
        ]
      ],
      [
        'Memory',
        [
          lines({
            title: 'RSS breakdown',
            description:
              'Parts of RSS. Signs of a problem: a part keeps growing; allocator_retained is ' +
              'large (freed by the app, but not returned by malloc); heap_garbage is large (the ' +
              'heap limit is too high); the sum is near the container limit.',
            unit: 'bytes',
            span: 16,
            height: 11,
            stacked: true,
            limits: ['container limit', 'heap size limit'],
            queries: [
              [`sum by (part) (memwatch_memory_bytes{${PROCESS}})`, '{{part}}'],
              [`max(memwatch_container_limit_bytes{${PROCESS}})`, 'container limit'],
              [`max(memwatch_heap_size_limit_bytes{${MAIN}})`, 'heap size limit']
            ]
          }),
          lines({
            title: 'Live heap',
            description:
              'Live heap after each major GC: a leak rises in a straight line, and a cache ' +
              'levels off. The used heap above it is garbage until the next GC.',
            unit: 'bytes',
            span: 8,
            height: 11,
            limits: ['heap size limit'],
            queries: [
              [`memwatch_live_heap_bytes{${PROCESS}}`, 'live, {{thread}}'],
              [`memwatch_heap_used_bytes{${PROCESS}}`, 'used, {{thread}}'],
              [`max(memwatch_heap_size_limit_bytes{${MAIN}})`, 'heap size limit']
            ]
          }),
          lines({
            title: 'Heap spaces',
            description:
              'Committed heap of all threads, by space. Sign of a leak: old or large_object only ' +
              'grows. The space new is the new space; --max-semi-space-size sets its maximum.',
            unit: 'bytes',
            stacked: true,
            queries: [
              [`sum by (space) (memwatch_heap_space_committed_bytes{${PROCESS}})`, '{{space}}']
            ]
          }),
          lines({
            title: 'Outside the heap',
            description:
              'Buffers, other external memory of V8 objects, and freed memory that malloc ' +
              'retains. Signs of a problem: Buffers rise and fall by large amounts (they wait ' +
              'for a late GC); the retained memory stays high.',
            unit: 'bytes',
            queries: [
              [`sum(memwatch_array_buffers_bytes{${PROCESS}})`, 'Buffers'],
              [`sum(memwatch_external_bytes{${PROCESS}})`, 'external in all'],
              [`sum(memwatch_allocator_retained_bytes{${PROCESS}})`, 'retained by malloc'],
              [`sum(memwatch_malloced_bytes{${PROCESS}})`, "V8's own"]
            ]
          }),
          lines({
            title: 'Container',
            description:
              'Memory that the kernel charges to the container. Kills and evictions depend on ' +
              'the working set: keep it well below the limit.',
            unit: 'bytes',
            limits: ['container limit'],
            queries: [
              [`max(memwatch_container_working_set_bytes{${PROCESS}})`, 'working set'],
              [`max(memwatch_container_usage_bytes{${PROCESS}})`, 'usage'],
              [`max(memwatch_rss_bytes{${PROCESS}})`, 'RSS'],
              [`max(memwatch_container_limit_bytes{${PROCESS}})`, 'container limit']
            ]
          }),
          lines({
            title: 'Waiting for memory',
            description:
              'Share of time in which tasks of the container waited for memory (cgroup v2), and ' +
              'the rate at which it reached its limit. Sign of a problem: either stays above 0.',
            unit: 'percentunit',
            noValue: 'The kernel does not report it.',
            right: { legend: 'limit hits', unit: 'ops' },
            queries: [
              [perSecond(`memwatch_memory_pressure_some_seconds_total{${MAIN}}`), 'some waited'],
              [perSecond(`memwatch_memory_pressure_full_seconds_total{${MAIN}}`), 'all waited'],
              [perSecond(`memwatch_container_limit_hits_total{${MAIN}}`), 'limit hits']
            ]
          })
        ]
      ],
      [
        'Garbage collection',
        [
          lines({
            title: 'Time in GC by kind and cause',
            description:
              'Share of time in GC pauses. Kind minor is the new space, kind major the whole ' +
              'heap; cause external means Buffers. If the total is above 5 %, search for the ' +
              'cause.',
            unit: 'percentunit',
            stacked: true,
            queries: [
              [
                `sum by (kind, cause) (${perSecond(`memwatch_gc_pause_seconds_sum{${PROCESS}}`)})`,
                '{{kind}} {{cause}}'
              ]
            ]
          }),
          lines({
            title: 'Scavenges against the semi-space',
            description:
              'Scavenges a second, and the size of a semi-space. If scavenges are many and the ' +
              'semi-space stays small, raise --max-semi-space-size.',
            unit: 'ops',
            right: { legend: 'semi-space', unit: 'bytes' },
            queries: [
              [
                `sum(${perSecond(`memwatch_gc_pause_seconds_count{${PROCESS}, kind=~"minor.*"}`)})`,
                'scavenges'
              ],
              [`max(memwatch_semi_space_capacity_bytes{${PROCESS}})`, 'semi-space']
            ]
          }),
          lines({
            title: 'GCs',
            description: 'GCs a second, by kind and cause; every GC counts.',
            unit: 'ops',
            queries: [
              [
                'sum by (kind, cause) ' +
                  `(${perSecond(`memwatch_gc_pause_seconds_count{${PROCESS}}`)})`,
                '{{kind}} {{cause}}'
              ]
            ]
          }),
          lines({
            title: 'Longest GC pause',
            description:
              'Longest GC pause of each scraped second. Above 100 ms users notice the pause.',
            unit: 's',
            queries: [
              [
                `max by (kind, cause) (memwatch_gc_longest_pause_seconds{${PROCESS}})`,
                '{{kind}} {{cause}}'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [0.1, 'red']
            ]
          })
        ]
      ],
      [
        'Event loop and CPU',
        [
          lines({
            title: 'Event loops in use',
            description:
              'Share of time in which the event loop was busy, by thread. Near 100 % every ' +
              'request waits for other requests.',
            unit: 'percentunit',
            most: 1,
            queries: [
              [
                perSecond(`memwatch_event_loop_active_seconds_total{${PROCESS}}`),
                '{{target}} {{thread}}'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [0.9, 'red']
            ]
          }),
          lines({
            title: 'Event loop delay',
            description:
              'Delay of timers: median, and p99. A p99 above 100 ms with short GC pauses means ' +
              'synchronous work.',
            unit: 's',
            queries: [
              [
                'histogram_quantile(0.5, sum by (le) ' +
                  `(${perSecond(`memwatch_event_loop_delay_seconds_bucket{${PROCESS}}`)}))`,
                'p50'
              ],
              [
                'histogram_quantile(0.99, sum by (le) ' +
                  `(${perSecond(`memwatch_event_loop_delay_seconds_bucket{${PROCESS}}`)}))`,
                'p99'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [0.1, 'red']
            ]
          }),
          lines({
            title: 'CPU and throttling',
            description:
              'Cores that the process uses, and the share of periods in which the CPU quota ' +
              'throttled it. Throttling during long delays is a problem: raise the CPU limit.',
            unit: 'short',
            queries: [
              [
                `sum by (mode) (${perSecond(`memwatch_process_cpu_seconds_total{${MAIN}}`)})`,
                '{{mode}}'
              ],
              [`max(memwatch_cpu_quota_cores{${MAIN}})`, 'limit'],
              [
                `max(${perSecond(`memwatch_cpu_throttled_periods_total{${MAIN}}`)} / ` +
                  `(${perSecond(`memwatch_cpu_periods_total{${MAIN}}`)} > 0))`,
                'throttled'
              ]
            ]
          }),
          lines({
            title: 'Active resources',
            description:
              'Resources that keep the event loop alive, by type, such as sockets, timers and ' +
              'watchers. Sign of a leak: one type only grows.',
            unit: 'short',
            queries: [[`sum by (resource) (memwatch_active_resources{${PROCESS}})`, '{{resource}}']]
          })
        ]
      ],
      [
        'The agent',
        [
          lines({
            title: 'Main-thread time of the agent',
            description:
              'Share of the main thread\'s time that the agent uses, normally about 0.05 %. ' +
              'Above 0.5 % the agent has a problem.',
            unit: 'percentunit',
            queries: [
              [
                perSecond(`memwatch_agent_collect_seconds_total{${PROCESS}}`),
                '{{target}} {{thread}}'
              ]
            ],
            thresholds: [
              [null, 'text'],
              [0.005, 'red']
            ]
          }),
          lines({
            title: 'Lost frames',
            description:
              'Frames a second that the agent dropped or the exporter did not receive. Sign of a ' +
              'problem: the rate stays above 0.',
            unit: 'ops',
            queries: [
              [
                perSecond(`memwatch_agent_frames_dropped_total{${PROCESS}}`),
                'dropped, {{target}} {{thread}}'
              ],
              [
                perSecond(`memwatch_target_frames_lost_total{${PROCESS}}`),
                'lost, {{target}} {{thread}}'
              ]
            ]
          })
        ]
      ]
    ]
  })
