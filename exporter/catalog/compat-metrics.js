'use strict'

const {
  GC_PAUSE_BOUNDS_SECONDS,
  DELAY_BOUNDS_SECONDS,
  isOwnGc
} = require('@memwatch/agent/protocol/frame')
const { histogramQuantile, histogramDeviation } = require('@memwatch/engine/statistics/histogram')
const { fieldMetric, spaceMetric, histogramMetric } = require('./metric')
const { targetMetrics, plainGcKind } = require('./target-metrics')

/** @typedef {import('./metric').TargetMetric} TargetMetric */

/**
 * prom-client's buckets of nodejs_gc_duration_seconds, all of which are also bucket bounds in
 * frames.
 */
const GC_BUCKETS = [0.001, 0.01, 0.1, 1, 2, 5]

/**
 * A metric of memwatch under the name that prom-client uses.
 * @param {string} name
 * @returns {TargetMetric}
 */
const sameAsOurs = name => {
  const row = /** @type {TargetMetric} */ (targetMetrics.find(({ promClient }) => promClient?.includes(name)))
  return { ...row, name, otel: undefined, promClient: undefined }
}

/**
 * @param {string} statistic
 * @param {(delay: NonNullable<import('@memwatch/engine/history/recent-delay').RecentDelay['summary']>) => number}
 *   read
 * @returns {TargetMetric}
 */
const lag = (statistic, read) => ({
  name: `nodejs_eventloop_lag_${statistic}seconds`,
  type: 'gauge',
  help: `Event loop delay of the last 30 s${statistic && `, ${statistic.slice(0, -1)}`}.`,
  ...(statistic && { otel: { name: `nodejs.eventloop.delay.${statistic.slice(0, -1)}` } }),
  read: ({ recentDelay }, { window }) => {
    const delay = window.once('recentDelay', () => recentDelay.summary)
    return delay ? read(delay) : undefined
  }
})
/**
 * @param {number} quantile
 * @returns {TargetMetric}
 */
const lagQuantile = quantile =>
  lag(`p${quantile * 100}_`, delay =>
    histogramQuantile(DELAY_BOUNDS_SECONDS, delay.buckets, quantile)
  )

/**
 * Resource types of process.getActiveResourcesInfo() that are requests; the others are handles.
 * @param {string} type
 */
const isRequest = type => /Req(Wrap|Callback)?$|ReqWrap|ReqCallback/.test(type)

/**
 * @param {string} name
 * @param {string} kind
 * @param {(type: string) => boolean} accepts
 * @returns {TargetMetric[]}
 */
const resources = (name, kind, accepts) => [
  {
    name,
    type: 'gauge',
    help: `Active ${kind} by type, as process.getActiveResourcesInfo() names them.`,
    read: ({ values }) =>
      Object.entries(values.resources ?? {})
        .filter(([type]) => accepts(type))
        .map(([type, value]) => ({ labels: { type }, value }))
  },
  {
    name: `${name}_total`,
    type: 'gauge',
    help: `Total number of active ${kind}. This is a gauge, although prom-client's name ends in _total.`,
    read: ({ values }) =>
      values.resources &&
      Object.entries(values.resources)
        .filter(([type]) => accepts(type))
        .reduce((sum, [, value]) => sum + value, 0)
  }
]

/**
 * prom-client's default metrics under their own names, for existing dashboards and alerts. They
 * have the same meaning, with three differences: every GC is counted, event loop delay does not
 * include the sampling interval, and a scrape resets nothing.
 * @type {readonly TargetMetric[]}
 */
const compatMetrics = Object.freeze([
  fieldMetric(
    'process_cpu_user_seconds_total',
    'counter',
    'cpuUserSeconds',
    'User CPU time of the process.'
  ),
  fieldMetric(
    'process_cpu_system_seconds_total',
    'counter',
    'cpuSystemSeconds',
    'System CPU time of the process.'
  ),
  {
    name: 'process_cpu_seconds_total',
    type: 'counter',
    help: 'CPU time of the process.',
    read: ({ values: { cpuUserSeconds, cpuSystemSeconds } }) =>
      cpuUserSeconds === undefined || cpuSystemSeconds === undefined
        ? undefined
        : cpuUserSeconds + cpuSystemSeconds
  },
  {
    name: 'process_start_time_seconds',
    type: 'gauge',
    help: 'When the process started, Unix time.',
    read: ({ hello }) =>
      hello.threadId === 0 ? Math.round(hello.startedAtUnixMs / 1000) : undefined
  },
  sameAsOurs('process_resident_memory_bytes'),
  fieldMetric(
    'process_virtual_memory_bytes',
    'gauge',
    'virtualBytes',
    'Virtual memory of the process.',
    { otel: { name: 'process.memory.virtual', instrument: 'updowncounter', integer: true } }
  ),
  fieldMetric(
    'process_heap_bytes',
    'gauge',
    'dataBytes',
    'VmData of the process. In spite of prom-client\'s name it is not the V8 heap.'
  ),
  fieldMetric('process_open_fds', 'gauge', 'openFileDescriptors', 'Open file descriptors.', {
    otel: {
      name: 'process.unix.file_descriptor.count',
      unit: '{file_descriptor}',
      instrument: 'updowncounter',
      integer: true
    }
  }),
  fieldMetric('process_max_fds', 'gauge', 'maxFileDescriptors', 'Limit of open file descriptors.'),
  lag('', delay => delay.meanSeconds),
  lag('min_', delay => histogramQuantile(DELAY_BOUNDS_SECONDS, delay.buckets, 0)),
  lag('max_', delay => delay.longestSeconds),
  lag('mean_', delay => delay.meanSeconds),
  lag('stddev_', delay =>
    histogramDeviation(DELAY_BOUNDS_SECONDS, delay.buckets, delay.meanSeconds)
  ),
  lagQuantile(0.5),
  lagQuantile(0.9),
  lagQuantile(0.99),
  ...resources('nodejs_active_resources', 'resources', () => true),
  ...resources('nodejs_active_handles', 'handles', type => !isRequest(type)),
  ...resources('nodejs_active_requests', 'requests', isRequest),
  sameAsOurs('nodejs_heap_size_total_bytes'),
  sameAsOurs('nodejs_heap_size_used_bytes'),
  sameAsOurs('nodejs_external_memory_bytes'),
  sameAsOurs('nodejs_heap_space_size_total_bytes'),
  sameAsOurs('nodejs_heap_space_size_used_bytes'),
  spaceMetric(
    'nodejs_heap_space_size_available_bytes',
    'availableBytes',
    'Available size of a heap space.',
    'v8js.memory.heap.space.available_size'
  ),
  {
    name: 'nodejs_version_info',
    type: 'gauge',
    help: 'Node.js version: always 1.',
    read: ({ hello }) => {
      const [major, minor, patch] = hello.node.split('.')
      return [{ labels: { version: `v${hello.node}`, major, minor, patch: patch ?? '' }, value: 1 }]
    }
  },
  histogramMetric(
    'nodejs_gc_duration_seconds',
    'GC pauses by kind: major, minor, incremental or weakcb. Every GC counts.',
    {
      bounds: GC_PAUSE_BOUNDS_SECONDS,
      exposed: GC_BUCKETS,
      rows: ({ values }) => {
        /** @type {Map<string, { sum: number, counts: number[] }>} */
        const kinds = new Map()
        for (const [key, [, sum, , counts]] of Object.entries(values.gc ?? {})) {
          if (isOwnGc(key)) continue
          const kind = plainGcKind(key.split('/')[0])
          const known = kinds.get(kind)
          kinds.set(
            kind,
            known
              ? { sum: known.sum + sum, counts: known.counts.map((count, i) => count + counts[i]) }
              : { sum, counts }
          )
        }
        return [...kinds].map(([kind, { sum, counts }]) => ({ labels: { kind }, sum, counts }))
      }
    }
  )
])

module.exports = { compatMetrics }
