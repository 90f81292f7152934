'use strict'

const { REPOSITORY } = require('../packages')
const { ruleMaker } = require('./rule')

/** Distance to the earlier time with which a minimum is compared. */
const OFFSET = '3h'
const MIB = 2 ** 20

/**
 * Rules for apps with prom-client's default metrics and no agent yet. Each alert also states what
 * these metrics cannot show. They lose most GCs, because prom-client's observer reads only the
 * first entry of a batch. They contain no heap limit, no container limit, and no memory retained by
 * malloc.
 * @param {import('./rule').RuleOptions} [options]
 * @returns {import('./index').RulesFile}
 */
function promClientRules (options = {}) {
  const {
    matchers,
    options: { runbookBaseUrl }
  } = ruleMaker({
    ...options,
    runbookBaseUrl: options.runbookBaseUrl ?? `${REPOSITORY}/blob/main/alerts/prom-client.md`
  })
  const of = (/** @type {string} */ metric) => metric + matchers()
  const floor = (/** @type {string} */ metric, offset = '') => `min_over_time(${of(metric)}[30m]${offset})`
  // A younger process has no past to compare with: the earlier values belong to the previous
  // process, whose series has the same labels.
  const old = `time() - ${of('process_start_time_seconds')} > 4 * 3600`
  /**
   * @param {string} metric
   * @param {number} times
   * @param {number} least
   */
  const grew = (metric, times, least) =>
    `${floor(metric)} > ${times} * ${floor(metric, ` offset ${OFFSET}`)}\nand ${floor(metric)} ` +
      `- ${floor(metric, ` offset ${OFFSET}`)} > ${least}\nand ${old}`
  /**
   * @param {string} alert
   * @param {string} expr
   * @param {Record<'summary' | 'description' | 'fix' | 'unknown', string>} annotations
   */
  const rule = (alert, expr, annotations) => ({
    alert,
    expr,
    for: '10m',
    keep_firing_for: '10m',
    labels: { severity: 'warning' },
    annotations: { ...annotations, runbook_url: `${runbookBaseUrl}#${alert.toLowerCase()}` }
  })
  const agent =
    'To find the cause, start the app with memwatch: NODE_OPTIONS="--require memwatch/agent".'
  return {
    groups: [
      {
        name: 'nodejs-prom-client',
        rules: [
          rule('NodejsHeapFloorGrows', grew('nodejs_heap_size_used_bytes', 1.5, 50 * MIB), {
            summary: 'The minimum of the used heap of a Node.js process has grown by half in ' +
              'three hours.',
            description:
              '{{ $labels.instance }} ({{ $labels.job }}) uses at least {{ $value | ' +
                'humanize1024 }}B of heap. Possible causes are a leak, a cache that fills, or a ' +
                'heap limit so high that V8 rarely runs a major GC.',
            fix: agent,
            unknown:
              'The heap limit, and the share of garbage: used heap is live objects and garbage.'
          }),
          rule(
            'NodejsGcTakesTime',
            `sum without (kind) (rate(${of('nodejs_gc_duration_seconds_sum')}[5m])) > 0.1`,
            {
              summary: 'A Node.js process spends more than a tenth of its time in GC pauses.',
              description:
                'GC pauses of {{ $labels.instance }} ({{ $labels.job }}) take at least {{ $value ' +
                '| humanizePercentage }} of the time. Possible causes are a new space that is ' +
                'too small, a heap near its limit, or Buffers that wait for a GC.',
              fix: `Try NODE_OPTIONS="--max-semi-space-size=16". ${agent}`,
              unknown:
                'The causes of the GCs, and the true share, which is higher: prom-client counts ' +
                'one in five of frequent GCs, or fewer.'
            }
          ),
          rule(
            'NodejsEventLoopLags',
            `min_over_time(${of('nodejs_eventloop_lag_p99_seconds')}[5m]) > 0.2`,
            {
              summary:
                'The event loop of a Node.js process is blocked repeatedly for a fifth of a ' +
                'second.',
              description:
                '{{ $labels.instance }} ({{ $labels.job }}): one turn in a hundred takes {{ ' +
                  '$value | humanizeDuration }} or longer, and all requests wait for it.',
              fix: `Search for synchronous calls and large JSON. ${agent}`,
              unknown: 'The cause: GC, synchronous work, or throttling by a CPU limit.'
            }
          ),
          rule(
            'NodejsMemoryBesideHeap',
            `min_over_time((${of('process_resident_memory_bytes')} - ` +
              `${of('nodejs_heap_size_total_bytes')} - ` +
                `${of('nodejs_external_memory_bytes')})[30m:1m]) > ${256 * MIB}\nand ` +
                  `${of('process_resident_memory_bytes')} - ` +
                    `${of('nodejs_heap_size_total_bytes')} - ` +
                      `${of('nodejs_external_memory_bytes')} > 0.4 * ` +
                        `${of('process_resident_memory_bytes')}`,
            {
              summary: 'Much of the memory of a Node.js process is neither heap nor Buffers.',
              description:
                '{{ $labels.instance }} ({{ $labels.job }}) holds {{ $value | humanize1024 }}B ' +
                  'beside heap and Buffers. Possible causes are freed memory that malloc keeps, ' +
                  'an addon, or worker threads.',
              fix: `Try jemalloc: LD_PRELOAD=libjemalloc.so.2. ${agent}`,
              unknown: 'The cause, and the saving by jemalloc.'
            }
          ),
          rule('NodejsExternalMemoryGrows', grew('nodejs_external_memory_bytes', 2, 100 * MIB), {
            summary:
              'The minimum of the memory in Buffers of a Node.js process has doubled in three hours.',
            description:
              '{{ $labels.instance }} ({{ $labels.job }}) holds at least {{ $value | ' +
                'humanize1024 }}B outside the heap: Buffers that the app keeps, or large Buffers ' +
                'with a retained slice.',
            fix: agent,
            unknown: 'The state of the Buffers: retained by the app, or unused until the next GC.'
          }),
          rule('NodejsResourcesGrow', grew('nodejs_active_resources_total', 2, 500), {
            summary:
              'Timers, sockets or other resources of a Node.js process have doubled in three ' +
                'hours.',
            description:
              '{{ $labels.instance }} ({{ $labels.job }}) has at least {{ $value | humanize }} ' +
                'active resources. nodejs_active_resources shows their types.',
            fix: `Close each socket, timer and watcher after its use. ${agent}`,
            unknown: 'The load, which may have doubled as well.'
          })
        ]
      }
    ]
  }
}

module.exports = { promClientRules }
