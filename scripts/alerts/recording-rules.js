'use strict'

/**
 * Recording rules: the floors that alerts use, and results that fleet dashboards would otherwise
 * compute over thousands of targets at each refresh. Named level:metric:operation, as Prometheus
 * recommends.
 */
const RECORDED = Object.freeze([
  { record: 'memwatch:rss_bytes:min15m', metric: 'memwatch_rss_bytes', expr: (/** @type {string} */ of) => `min_over_time(${of}[15m])` },
  { record: 'memwatch:gc_pause_seconds:rate5m', metric: 'memwatch_gc_pause_seconds_sum', expr: (/** @type {string} */ of) => `sum without (kind, cause) (rate(${of}[5m]))` },
  { record: 'memwatch:event_loop_active:rate5m', metric: 'memwatch_event_loop_active_seconds_total', expr: (/** @type {string} */ of) => `rate(${of}[5m])` },
  { record: 'memwatch:rss_bytes:max1d', metric: 'memwatch_rss_bytes', expr: (/** @type {string} */ of) => `max_over_time(${of}[1d])` },
  { record: 'fleet:memwatch_diagnosis:sum', metric: 'memwatch_diagnosis', expr: (/** @type {string} */ of) => `sum by (job, diagnosis, state) (${of})` },
  { record: 'fleet:memwatch_verdict_saving_bytes:sum', metric: 'memwatch_verdict_saving_bytes', expr: (/** @type {string} */ of) => `sum by (job, diagnosis) (${of})` },
  { record: 'fleet:memwatch_targets:count', metric: 'memwatch_target_info', expr: (/** @type {string} */ of) => `count by (job, node_version, allocator) (${of})` }
])

/** @param {ReturnType<typeof import('./rule').ruleMaker>} maker */
const recordingRules = ({ matchers }) =>
  RECORDED.map(({ record, metric, expr }) => ({ record, expr: expr(metric + matchers()) }))

module.exports = { recordingRules, RECORDED }
