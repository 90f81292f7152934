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
    'To learn the cause start the app with memwatch: NODE_OPTIONS="--require memwatch/agent".'
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
                'humanize1024 }}B of heap: a leak, a cache that fills, or a heap limit so high ' +
                  'that V8 seldom collects.',
            fix: agent,
            unknown:
              'How far the heap limit is, and how much of this is garbage: used heap counts both.'
          }),
          rule(
            'NodejsGcTakesTime',
            `sum without (kind) (rate(${of('nodejs_gc_duration_seconds_sum')}[5m])) > 0.1`,
            {
              summary: 'A Node.js process spends more than a tenth of its time in GC pauses.',
              description:
                '{{ $labels.instance }} ({{ $labels.job }}) is in GC {{ $value | ' +
                  'humanizePercentage }} of the time at least: a new space that is too small, a ' +
                    'heap near its limit, or Buffers that wait for it.',
              fix: `Try NODE_OPTIONS="--max-semi-space-size=16". ${agent}`,
              unknown:
                'Most GCs: prom-client sees one in five or fewer where they are frequent, so ' +
                  'the share is higher. And why they ran.'
            }
          ),
          rule(
            'NodejsEventLoopLags',
            `min_over_time(${of('nodejs_eventloop_lag_p99_seconds')}[5m]) > 0.2`,
            {
              summary:
                'The event loop of a Node.js process is blocked for a fifth of a second again ' +
                  'and again.',
              description:
                '{{ $labels.instance }} ({{ $labels.job }}): one turn in a hundred takes {{ ' +
                  '$value | humanizeDuration }} or longer. Every request waits that long behind ' +
                    'it.',
              fix: `Look for synchronous calls and large JSON. ${agent}`,
              unknown: 'Whether it is GC, synchronous work, or a CPU limit that throttles.'
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
                  'beside heap and Buffers: malloc that keeps what was freed, an addon, or ' +
                    'worker threads.',
              fix: `Try jemalloc: LD_PRELOAD=libjemalloc.so.2. ${agent}`,
              unknown: 'Which of these it is, and how much jemalloc would save.'
            }
          ),
          rule('NodejsExternalMemoryGrows', grew('nodejs_external_memory_bytes', 2, 100 * MIB), {
            summary:
              'The least that a Node.js process holds in Buffers has doubled in three hours.',
            description:
              '{{ $labels.instance }} ({{ $labels.job }}) holds at least {{ $value | ' +
                'humanize1024 }}B outside the heap: Buffers that are kept, or small slices that ' +
                  'keep large ones.',
            fix: agent,
            unknown: 'Whether they are kept, or only wait for a GC.'
          }),
          rule('NodejsResourcesGrow', grew('nodejs_active_resources_total', 2, 500), {
            summary:
              'Timers, sockets or other resources of a Node.js process have doubled in three ' +
                'hours.',
            description:
              '{{ $labels.instance }} ({{ $labels.job }}) has at least {{ $value | humanize }} ' +
                'active resources. nodejs_active_resources says of which type.',
            fix: `Close what is opened: sockets, timers, watchers. ${agent}`,
            unknown: 'Whether the load has doubled as well.'
          })
        ]
      }
    ]
  }
}

module.exports = { promClientRules }
