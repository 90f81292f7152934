'use strict'

const { dashboard, lines, number } = require('./panels')

const INSTANCE = 'job=~"$job", instance=~"$instance"'
/** @param {string} metric */
const perSecond = metric => `rate(${metric}[$__rate_interval])`

/**
 * Dashboard for apps that expose prom-client's default metrics, with or without memwatch. It shows
 * the same values as the well-known dashboards for these metrics. Descriptions of panels name the
 * facts that the metrics lack.
 */
module.exports = () =>
  dashboard({
    uid: 'memwatch-nodejs',
    title: 'memwatch / Node.js by prom-client',
    description:
      "Node.js processes by prom-client's default metrics, under the names that other dashboards " +
        'also use.',
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
              'Restarted processes. Each restart without a deployment was a crash or a kill.',
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
            description: 'Resident memory of all these processes.',
            unit: 'bytes',
            queries: [[`sum(process_resident_memory_bytes{${INSTANCE}})`]]
          }),
          number({
            title: 'Time in GC',
            description: 'Lower bound, because prom-client does not count every GC. Above 5 % ' +
              'search for the cause.',
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
            description: 'One turn of the event loop in a hundred takes at least this long. ' +
              'Above 100 ms users notice the delay.',
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
              'RSS, heap and external memory. The rest of RSS is malloc, code and stacks, which ' +
              'these metrics cannot separate.',
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
              'Live objects and garbage together. With a leak the minimum rises over hours. ' +
              'prom-client has no metric of the heap limit.',
            unit: 'bytes',
            queries: [[`nodejs_heap_size_used_bytes{${INSTANCE}}`, '{{instance}}']]
          }),
          lines({
            title: 'Heap spaces, used',
            description:
              'Used heap by space, including garbage. Sign of a leak: the minimum of old or ' +
              'large_object only rises.',
            unit: 'bytes',
            stacked: true,
            queries: [
              [`sum by (space) (nodejs_heap_space_size_used_bytes{${INSTANCE}})`, '{{space}}']
            ]
          }),
          lines({
            title: 'Heap spaces, committed',
            description:
              'Committed heap by space. If new stays at 1 to 4 MB under load, raise ' +
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
            description: 'Share of time in the GC pauses that prom-client counted.',
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
            description: 'Duration of turns of the event loop. Above 100 ms (p99) users notice ' +
              'the delay.',
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
            description: 'Cores in use, by user and system time. Near the CPU limit the ' +
              'container is throttled.',
            unit: 'short',
            stacked: true,
            queries: [
              [`sum(${perSecond(`process_cpu_user_seconds_total{${INSTANCE}}`)})`, 'user'],
              [`sum(${perSecond(`process_cpu_system_seconds_total{${INSTANCE}}`)})`, 'system']
            ]
          }),
          lines({
            title: 'Active handles, requests and resources',
            description: 'Handles, requests and resources that keep the event loop alive. Sign ' +
              'of a leak: a number only grows.',
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
