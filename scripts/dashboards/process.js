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
      'One Node.js process: what was found and what fixes it, where its memory is, and how much ' +
        'time GC and the event loop take.',
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
        text: 'A new process: a deployment, a restart or a crash.'
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
            title: 'What was found, and what fixes it',
            description:
              'Confirmed findings, each with the change to make. Empty: nothing was found.',
            unit: 'short',
            span: 24,
            height: 5,
            columns: ['target', 'thread', 'diagnosis', 'severity', 'fix', 'ruled_out'],
            widths: { target: 120, thread: 70, diagnosis: 200, severity: 80, fix: 900 },
            noValue: 'Nothing was found.',
            queries: [[`memwatch_verdict_info{${PROCESS}}`]]
          }),
          number({
            title: 'RSS of the container limit',
            description: 'At 100 % the kernel kills the process.',
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
            title: 'Live heap of the heap limit',
            description:
              'What survives full collections. Near 100 % V8 collects all the time, then aborts.',
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
            description: 'Above 5 % is worth a look, above 20 % users wait.',
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
              'Share of time in which the loop was not waiting. Above 90 % there is no reserve.',
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
            title: 'Longest block, p99',
            description: 'One in a hundred timers was this late. Above 100 ms users notice.',
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
              'Share of the periods of the CPU limit in which it stopped the container. Above 5 ' +
                '% what blocks lasts longer than the app makes it.',
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
            title: 'Where the memory is',
            description:
              'RSS by what it is for. Bad: a part that keeps growing; allocator_retained that ' +
                'is large (freed, but not given back); heap_garbage that is large (a heap limit ' +
                  'too high); the sum near the container limit.',
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
              'What survived each full collection: a leak rises in a straight line, a cache ' +
                'levels off. Used heap between is garbage on its way.',
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
              'Committed heap by space of all threads. Bad: old or large_object that only grow. ' +
                'new is the new space: its largest size is set by --max-semi-space-size.',
            unit: 'bytes',
            stacked: true,
            queries: [
              [`sum by (space) (memwatch_heap_space_committed_bytes{${PROCESS}})`, '{{space}}']
            ]
          }),
          lines({
            title: 'Outside the heap',
            description:
              'Buffers, what V8 objects keep outside the heap, and what malloc retains of freed ' +
                'memory. Bad: Buffers as a high sawtooth (they wait for a late GC); retained ' +
                  'that stays high.',
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
              'What the kernel charges the container with. Working set is what it is killed or ' +
                'evicted for. Bad: near the limit.',
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
                'times it ran into its limit. Bad: anything that lasts.',
            unit: 'percentunit',
            noValue: 'The kernel does not tell.',
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
              'Share of time. minor is the new space, major the whole heap; cause external: for ' +
                'the sake of Buffers. Above 5 % in all is worth a look.',
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
              'Scavenges a second, and the size of a semi-space. Many scavenges with a ' +
                'semi-space that stays small: raise --max-semi-space-size.',
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
            description: 'GCs a second by kind and cause, every one counted.',
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
              'The longest pause of each second that was scraped. Above 100 ms users notice.',
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
              'Share of time in which the loop was not waiting, by thread. Near 100 % every ' +
                'request waits for another.',
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
              'How late a timer fires: half of them, and one in a hundred. Bad: p99 above 100 ' +
                'ms while GC pauses are short – synchronous work.',
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
              'Cores in use by the process, and the share of periods in which the CPU limit ' +
                'stopped it. Bad: throttled at all while the loop lags.',
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
              'What keeps the loop alive, by type: sockets, timers, watchers. Bad: a type that ' +
                'only grows.',
            unit: 'short',
            queries: [[`sum by (resource) (memwatch_active_resources{${PROCESS}})`, '{{resource}}']]
          })
        ]
      ],
      [
        'The agent itself',
        [
          lines({
            title: 'Main-thread time of the agent',
            description:
              'Share of time the agent takes from the app. Around 0.05 %; above 0.5 % something ' +
                'is wrong with it.',
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
            title: 'Frames that did not arrive',
            description:
              'Frames the agent dropped or the exporter missed, a second. Bad: any that last.',
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
