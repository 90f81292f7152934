'use strict'

const { dashboard, lines, number } = require('./panels')

const INSTANCE = 'job=~"$job", instance=~"$instance"'
/** @param {string} metric */
const perSecond = metric => `rate(${metric}[$__rate_interval])`

/**
 * For apps that expose prom-client's default metrics, with or without memwatch: it answers the
 * questions of the well-known dashboards for these metrics, and states what each panel cannot show.
 */
module.exports = () =>
  dashboard({
    uid: 'memwatch-nodejs',
    title: 'memwatch / Node.js by prom-client',
    description:
      "What prom-client's default metrics show of a Node.js process, under the names that other " +
        'dashboards use as well.',
    variables: [
      ['job', 'label_values(nodejs_version_info, job)'],
      ['instance', 'label_values(nodejs_version_info{job=~"$job"}, instance)']
    ],
    rows: [
      [
        'Now',
        [
          number({
            title: 'Processes',
            description: 'Processes that expose these metrics.',
            unit: 'short',
            queries: [[`count(nodejs_version_info{${INSTANCE}})`]]
          }),
          number({
            title: 'Restarts in an hour',
            description:
              'Processes that began anew. Any that no deployment explains was a crash or a kill.',
            unit: 'short',
            queries: [[`sum(changes(process_start_time_seconds{${INSTANCE}}[1h]))`]],
            thresholds: [
              [null, 'green'],
              [1, 'orange']
            ]
          }),
          number({
            title: 'CPU',
            description: 'Cores in use. A Node.js process uses one for JavaScript.',
            unit: 'short',
            queries: [[`sum(${perSecond(`process_cpu_seconds_total{${INSTANCE}}`)})`]]
          }),
          number({
            title: 'RSS',
            description: 'Resident memory of all of them.',
            unit: 'bytes',
            queries: [[`sum(process_resident_memory_bytes{${INSTANCE}})`]]
          }),
          number({
            title: 'Time in GC',
            description: 'A lower bound, as prom-client does not see every GC. More than 5 % is worth a look.',
            unit: 'percentunit',
            queries: [
              [
                'max(sum by (job, instance) ' +
                  `(${perSecond(`nodejs_gc_duration_seconds_sum{${INSTANCE}}`)}))`
              ]
            ],
            thresholds: [
              [null, 'green'],
              [0.05, 'orange'],
              [0.2, 'red']
            ]
          }),
          number({
            title: 'Event loop lag, p99',
            description: 'One turn in a hundred takes this long. Above 100 ms users notice.',
            unit: 's',
            queries: [[`max(nodejs_eventloop_lag_p99_seconds{${INSTANCE}})`]],
            thresholds: [
              [null, 'green'],
              [0.1, 'orange'],
              [0.5, 'red']
            ]
          })
        ]
      ],
      [
        'Memory',
        [
          lines({
            title: 'Memory',
            description:
              'RSS, heap, and what is outside of it. The gap between RSS and the rest is ' +
                'malloc, code and stacks: these metrics cannot tell which.',
            unit: 'bytes',
            queries: [
              [`sum(process_resident_memory_bytes{${INSTANCE}})`, 'RSS'],
              [`sum(nodejs_heap_size_total_bytes{${INSTANCE}})`, 'heap'],
              [`sum(nodejs_heap_size_used_bytes{${INSTANCE}})`, 'heap used'],
              [`sum(nodejs_external_memory_bytes{${INSTANCE}})`, 'external']
            ]
          }),
          lines({
            title: 'Heap used',
            description:
              'Live objects and garbage together. A leak shows as a floor that rises over ' +
                'hours; the heap limit is not among these metrics.',
            unit: 'bytes',
            queries: [[`nodejs_heap_size_used_bytes{${INSTANCE}}`, '{{instance}}']]
          }),
          lines({
            title: 'Heap spaces, used',
            description:
              'Used heap by space, garbage included. Bad: old or large_object whose floor only ' +
                'rises.',
            unit: 'bytes',
            stacked: true,
            queries: [
              [`sum by (space) (nodejs_heap_space_size_used_bytes{${INSTANCE}})`, '{{space}}']
            ]
          }),
          lines({
            title: 'Heap spaces, committed',
            description:
              'Heap taken from the system by space. new that stays at 1 to 4 MB under load: see ' +
                '--max-semi-space-size.',
            unit: 'bytes',
            stacked: true,
            queries: [
              [`sum by (space) (nodejs_heap_space_size_total_bytes{${INSTANCE}})`, '{{space}}']
            ]
          })
        ]
      ],
      [
        'Time',
        [
          lines({
            title: 'GC by kind',
            description: 'Share of time in GC pauses, of those that prom-client saw.',
            unit: 'percentunit',
            stacked: true,
            queries: [
              [
                `sum by (kind) (${perSecond(`nodejs_gc_duration_seconds_sum{${INSTANCE}}`)})`,
                '{{kind}}'
              ]
            ]
          }),
          lines({
            title: 'Event loop lag',
            description: 'How long turns of the loop take. Bad: p99 above 100 ms.',
            unit: 's',
            queries: [
              [`max(nodejs_eventloop_lag_p50_seconds{${INSTANCE}})`, 'p50'],
              [`max(nodejs_eventloop_lag_p99_seconds{${INSTANCE}})`, 'p99'],
              [`max(nodejs_eventloop_lag_seconds{${INSTANCE}})`, 'now']
            ],
            thresholds: [
              [null, 'text'],
              [0.1, 'red']
            ]
          }),
          lines({
            title: 'CPU by mode',
            description: 'Cores in use. Bad: near the CPU limit, or much system time.',
            unit: 'short',
            stacked: true,
            queries: [
              [`sum(${perSecond(`process_cpu_user_seconds_total{${INSTANCE}}`)})`, 'user'],
              [`sum(${perSecond(`process_cpu_system_seconds_total{${INSTANCE}}`)})`, 'system']
            ]
          }),
          lines({
            title: 'Active handles, requests and resources',
            description: 'What keeps the loop alive. Bad: a number that only grows.',
            unit: 'short',
            queries: [
              [`sum(nodejs_active_handles_total{${INSTANCE}})`, 'handles'],
              [`sum(nodejs_active_requests_total{${INSTANCE}})`, 'requests'],
              [`sum(nodejs_active_resources_total{${INSTANCE}})`, 'resources']
            ]
          })
        ]
      ]
    ]
  })
