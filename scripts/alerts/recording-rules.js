'use strict'

/**
 * Recording rules: the minima that alerts use, and results that fleet dashboards and `memwatch
 * fleet` would otherwise compute over thousands of targets. Names have the form
 * level:metric:operation, as Prometheus recommends.
 */

/**
 * Labels of one target. `cluster` is included, because addresses repeat if several clusters share a
 * Prometheus.
 */
const THREAD = 'cluster, job, instance, target, thread'
/** Labels of a target's identity that distinguish workloads and versions. */
const IDENTITY_LABELS = 'service_name, service_version, node_version'
/** Labels of a workload: the processes of one app in one place. */
const WORKLOAD = 'cluster, namespace, job, service_name'
const VERSION = `${WORKLOAD}, service_version`
/** Labels of the processes that run the same code. */
const ALIKE = `${VERSION}, node_version`

/** Age from which growth is measured: a younger process still fills its caches. */
const GROWN_SECONDS = 3600
/** History in which the previous version is searched. */
const VERSIONS_WINDOW = '3d'
/** Least difference of growth between two versions, in bytes per second: 1 MiB an hour. */
const LEAST_DIFFERENCE = '1048576 / 3600'
/** Least difference as a share of the growth of either version. */
const LEAST_SHARE = 0.5
/**
 * Interval of the rules of workloads. They join the series of all targets, and no alert waits for
 * them.
 */
const WORKLOADS_INTERVAL = '1m'
/** Interval of the rules of versions, which is long because they read days of history. */
const VERSIONS_INTERVAL = '2m'

const STARTS = 'workload:memwatch_target_start_time_seconds:min'
const GROWTH = 'workload:memwatch_live_heap_growth_bytes_per_second'
const FIRST_STARTS = `min_over_time(${STARTS}[${VERSIONS_WINDOW}])`
const NEWEST = `topk by (${WORKLOAD}) (1, ${FIRST_STARTS} and on (${VERSION}) ${STARTS})`
const BEFORE = `topk by (${WORKLOAD}) (1, ${FIRST_STARTS} < on (${WORKLOAD}) group_left () ${NEWEST})`
const DIFFERENCE = `abs(${GROWTH}:median - on (${VERSION}) ${GROWTH}:previous)`

/**
 * @typedef {(metric: string, ...own: string[]) => string} Of function that builds the
 *   selector of a metric, with further matchers
 * @typedef {{ record: string, expr: (of: Of) => string }} RecordedRow
 */

/** Name of the recorded identities, with which every rule of workloads is joined. */
const RECORDED_IDENTITIES = 'thread:memwatch_target_info:topk'

/**
 * One identity of each target. A restart can leave two for a moment, which would break joins.
 * @param {Of} of
 * @param {string[]} [matchers]
 */
const selectIdentities = (of, matchers = []) =>
  `topk by (${THREAD}) (1, ${of('memwatch_target_info', ...matchers)})`

/**
 * A series with labels of its target's identity.
 * @param {string} series
 * @param {string} [ofTargets] expression of the identities
 */
const identified = (series, ofTargets = RECORDED_IDENTITIES) =>
  `${series} * on (${THREAD}) group_left (${IDENTITY_LABELS}) ${ofTargets}`

/** @type {Record<string, { interval?: string, rows: readonly RecordedRow[] }>} rules by group */
const RECORDED = Object.freeze({
  'memwatch-recorded': {
    rows: [
      { record: 'memwatch:rss_bytes:min15m', expr: of => `min_over_time(${of('memwatch_rss_bytes')}[15m])` },
      { record: 'memwatch:gc_pause_seconds:rate5m', expr: of => `sum without (kind, cause) (rate(${of('memwatch_gc_pause_seconds_sum')}[5m]))` },
      { record: 'memwatch:event_loop_active:rate5m', expr: of => `rate(${of('memwatch_event_loop_active_seconds_total')}[5m])` },
      { record: 'memwatch:rss_bytes:max1d', expr: of => `max_over_time(${of('memwatch_rss_bytes')}[1d])` },
      { record: 'fleet:memwatch_diagnosis:sum', expr: of => `sum by (job, diagnosis, state) (${of('memwatch_diagnosis')})` },
      { record: 'fleet:memwatch_verdict_saving_bytes:sum', expr: of => `sum by (job, diagnosis) (${of('memwatch_verdict_saving_bytes')})` },
      { record: 'fleet:memwatch_targets:count', expr: of => `count by (job, node_version, allocator) (${of('memwatch_target_info')})` }
    ]
  },
  'memwatch-workloads': {
    interval: WORKLOADS_INTERVAL,
    rows: [
      {
        record: RECORDED_IDENTITIES,
        expr: of => `group by (${THREAD}, ${IDENTITY_LABELS}) (${selectIdentities(of)})`
      },
      {
        record: 'workload:memwatch_targets:count',
        expr: of => `count by (${ALIKE}) (${identified(`(${of('memwatch_target_up')} == 1)`)})`
      },
      {
        record: 'workload:memwatch_rss_bytes:sum',
        expr: of => `sum by (${ALIKE}) (${identified(of('memwatch_rss_bytes'))})`
      },
      {
        record: 'workload:memwatch_process_cpu_seconds:rate5m',
        expr: of => `sum by (${ALIKE}) (${identified(`sum without (mode) (rate(${of('memwatch_process_cpu_seconds_total')}[5m]))`)})`
      },
      {
        record: 'workload:memwatch_gc_pause_seconds:rate5m',
        expr: of => `sum by (${ALIKE}) (${identified(`sum without (kind, cause) (rate(${of('memwatch_gc_pause_seconds_sum')}[5m]))`)})`
      },
      {
        record: 'workload:memwatch_verdicts:count',
        expr: of => `count by (${ALIKE}, diagnosis, severity) (${identified(of('memwatch_verdict_info'))})`
      },
      {
        record: 'workload:memwatch_suspicions:count',
        expr: of => `count by (${ALIKE}, diagnosis) (${identified(of('memwatch_diagnosis', 'state="suspected"'))})`
      },
      {
        record: 'workload:memwatch_verdict_saving_bytes:sum',
        expr: of => `sum by (${ALIKE}, diagnosis) (${identified(of('memwatch_verdict_saving_bytes'))})`
      },
      {
        record: 'workload:memwatch_verdict_saving_cores:sum',
        expr: of => `sum by (${ALIKE}, diagnosis) (${identified(of('memwatch_verdict_saving_cores'))})`
      },
      {
        // The fix that most targets received. Texts contain numbers, so they differ between
        // processes.
        record: 'workload:memwatch_verdict_fixes:topk',
        expr: of => `topk by (${ALIKE}, diagnosis) (1, count by (${ALIKE}, diagnosis, fix, runbook) (${identified(of('memwatch_verdict_info'))}))`
      },
      {
        record: 'workload:memwatch_verdict_start_timestamp_seconds:min',
        expr: of => `min by (${ALIKE}, diagnosis) (${identified(of('memwatch_verdict_start_timestamp_seconds'))})`
      }
    ]
  },
  'memwatch-versions': {
    interval: VERSIONS_INTERVAL,
    rows: [
      {
        record: STARTS,
        expr: of => `min by (${VERSION}) (${identified(of('memwatch_target_start_time_seconds', 'thread="main"'), selectIdentities(of, ['service_version!=""']))})`
      },
      {
        record: `${GROWTH}:median`,
        expr: of => {
          const grown = `time() - ${of('memwatch_target_start_time_seconds', 'thread="main"')} > ${GROWN_SECONDS}`
          const growth = `(${of('memwatch_live_heap_growth_bytes_per_second', 'thread="main"')} and on (${THREAD}) ${grown})`
          // Negative growth counts as 0.
          return `clamp_min(quantile by (${VERSION}) (0.5, ${identified(growth, selectIdentities(of))}), 0)`
        }
      },
      {
        // Growth of the version before the newest running one, with the labels of the newest
        // version.
        record: `${GROWTH}:previous`,
        expr: () => [
          `0 * (${GROWTH}:median and on (${VERSION}) ${NEWEST})`,
          `+ on (${WORKLOAD}) group_left (previous_version)`,
          `label_replace(last_over_time(${GROWTH}:median[${VERSIONS_WINDOW}]) and on (${VERSION}) ${BEFORE}, "previous_version", "$1", "service_version", "(.+)")`
        ].join('\n')
      },
      {
        // Growth of the newest version, if it differs from the growth of the previous version.
        record: `${GROWTH}:since`,
        expr: () => [
          `0 * (${GROWTH}:previous`,
          `  and on (${VERSION}) ${DIFFERENCE} > ${LEAST_DIFFERENCE}`,
          ...['median', 'previous'].map(which =>
            `  and on (${VERSION}) ${DIFFERENCE} > on (${VERSION}) ${LEAST_SHARE} * ${GROWTH}:${which}`),
          `) + on (${VERSION}) group_left () ${GROWTH}:median`
        ].join('\n')
      }
    ]
  }
})

/**
 * @param {ReturnType<typeof import('./rule').ruleMaker>} maker
 * @returns {{ name: string, interval?: string, rules: { record: string, expr: string }[] }[]}
 */
const recordingGroups = ({ matchers }) =>
  Object.entries(RECORDED).map(([name, { interval, rows }]) => ({
    name,
    ...(interval && { interval }),
    rules: rows.map(({ record, expr }) => ({
      record,
      expr: expr((metric, ...own) => metric + matchers(...own))
    }))
  }))

module.exports = { recordingGroups, WORKLOAD, VERSION, GROWTH }
