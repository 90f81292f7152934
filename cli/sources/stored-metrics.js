'use strict'

const {
  GC_KINDS, GC_PAUSE_BOUNDS_SECONDS, PAUSE_ROW, SPACE_ROW
} = require('@memwatch/agent/protocol/frame')
const { targetMetrics } = require('@memwatch/exporter/catalog/target-metrics')
const { compatMetrics } = require('@memwatch/exporter/catalog/compat-metrics')

/**
 * Converts metrics stored by Prometheus into frame fields: the inverse of the exporter's catalog.
 * Metrics under prom-client's names mean the same whether prom-client or memwatch exports them, but
 * prom-client loses GCs.
 */

/**
 * @type {ReadonlyMap<string, import('@memwatch/agent/protocol/frame').NumberField>} fields by the
 *   name of the metric, for metrics that are one field unchanged
 */
const fieldOf = new Map(
  [...compatMetrics, ...targetMetrics].flatMap(({ name, field }) =>
    field === undefined ? [] : [[name, field]]
  )
)

/** Metrics from which fields are computed, by their labels or from several series. */
const LABELLED = /** @type {const} */ ([
  'nodejs_heap_space_size_used_bytes',
  'nodejs_heap_space_size_total_bytes',
  'nodejs_heap_space_size_available_bytes',
  'memwatch_heap_space_used_bytes',
  'memwatch_heap_space_committed_bytes',
  'memwatch_heap_space_physical_bytes',
  'memwatch_semi_space_capacity_bytes',
  'memwatch_semi_space_max_bytes',
  'nodejs_gc_duration_seconds_sum',
  'nodejs_gc_duration_seconds_count',
  'memwatch_gc_pause_seconds_sum',
  'memwatch_gc_pause_seconds_count',
  'nodejs_active_resources',
  'memwatch_active_resources',
  'nodejs_version_info',
  'memwatch_target_info'
])
/** Metrics with the start time of a process. */
const STARTS = /** @type {const} */ (['memwatch_target_start_time_seconds', 'process_start_time_seconds'])

/**
 * Metrics that only Node.js processes have. memwatch's own metrics provide more fields, and exact
 * ones.
 */
const MARKERS = Object.freeze({
  own: 'memwatch_heap_used_bytes',
  promClient: 'nodejs_heap_size_used_bytes'
})
/**
 * @param {string} prefix
 * @returns {import('@memwatch/agent/protocol/frame').NumberField[]} fields provided by metrics with
 *   this prefix
 */
const fieldsOf = prefix =>
  [...fieldOf]
    .filter(([name]) => name.startsWith('memwatch_') === (prefix === 'memwatch_'))
    .map(([, field]) => field)

const metricNames = Object.freeze([...STARTS, ...fieldOf.keys(), ...LABELLED])

/** Columns of the rows of `spaces`. */
const SPACE_COLUMNS = new Map([
  ['nodejs_heap_space_size_used_bytes', SPACE_ROW.usedBytes],
  ['nodejs_heap_space_size_total_bytes', SPACE_ROW.sizeBytes],
  ['nodejs_heap_space_size_available_bytes', SPACE_ROW.availableBytes],
  ['memwatch_heap_space_used_bytes', SPACE_ROW.usedBytes],
  ['memwatch_heap_space_committed_bytes', SPACE_ROW.sizeBytes],
  ['memwatch_heap_space_physical_bytes', SPACE_ROW.physicalBytes]
])
const KINDS = new Set(Object.values(GC_KINDS))

/** The frame contains no pauses by length, because the stored metrics have other buckets. */
const NO_BUCKETS = Array(GC_PAUSE_BOUNDS_SECONDS.length + 1).fill(0)

/** @typedef {{ metric: Record<string, string>, value: number }} Sample */

/**
 * Converts samples of one moment to the values of a frame.
 * @param {Sample[]} samples samples of one target
 * @returns {{ values: import('@memwatch/agent/protocol/frame').Values, startUnixSeconds: number | undefined,
 *   semiSpaceMaxBytes: number | undefined }}
 */
function valuesOf (samples) {
  /** @type {import('@memwatch/agent/protocol/frame').Values} */
  const values = {}
  /** @type {NonNullable<typeof values.spaces>} */
  const spaces = {}
  /** @type {Record<'own' | 'plain', NonNullable<typeof values.gc>>} */
  const gc = { own: {}, plain: {} }
  /** @type {Record<string, number>} */
  const resources = {}
  /** @type {Record<string, number>} */
  const starts = {}
  let capacityBytes
  let semiSpaceMaxBytes
  for (const { metric, value } of samples) {
    const name = metric.__name__
    const field = fieldOf.get(name)
    const column = SPACE_COLUMNS.get(name)
    if (field !== undefined) values[field] = value
    else if (name === STARTS[0] || name === STARTS[1]) starts[name] = value
    else if (column !== undefined) {
      (spaces[spaceOf(metric.space)] ??= [0, 0, 0, 0])[column] = value
    } else if (name === 'memwatch_semi_space_capacity_bytes') capacityBytes = value
    else if (name === 'memwatch_semi_space_max_bytes') semiSpaceMaxBytes = value
    else if (name === 'nodejs_active_resources' && metric.type !== undefined) {
      resources[metric.type] = value
    } else if (name === 'memwatch_active_resources' && metric.resource !== undefined) {
      resources[metric.resource] = value
    } else if (
      /^(nodejs_gc_duration|memwatch_gc_pause)_seconds_(sum|count)$/.test(name) &&
      KINDS.has(/** @type {any} */ (metric.kind))
    ) {
      const row = (gc[name.startsWith('memwatch') ? 'own' : 'plain'][
        `${metric.kind}/${metric.cause ?? 'ordinary'}`
      ] ??= [0, 0, 0, NO_BUCKETS.slice()])
      row[name.endsWith('_count') ? PAUSE_ROW.count : PAUSE_ROW.sumSeconds] = value
    }
  }
  if (capacityBytes !== undefined && spaces.new_space) {
    const row = spaces.new_space
    row[SPACE_ROW.availableBytes] = capacityBytes - row[SPACE_ROW.usedBytes]
  }
  if (Object.keys(spaces).length > 0) values.spaces = spaces
  if (Object.keys(resources).length > 0) values.resources = resources
  const rows = Object.keys(gc.own).length > 0 ? gc.own : gc.plain
  if (Object.keys(rows).length > 0) values.gc = rows
  return { values, startUnixSeconds: starts[STARTS[0]] ?? starts[STARTS[1]], semiSpaceMaxBytes }
}

/** Name of a heap space; prom-client omits the suffix _space. @param {string} [space] */
const spaceOf = (space = '') => space.endsWith('_space') ? space : `${space}_space`

/**
 * Identity of a target, from the labels of its series.
 * @param {Record<string, string>[]} metrics
 * @returns {Partial<import('@memwatch/agent/protocol/frame').Hello>}
 */
function whoOf (metrics) {
  const info = metrics.find(({ __name__: name }) => name === 'memwatch_target_info')
  if (info) return { node: info.node_version, v8: info.v8_version, libc: /** @type {any} */ (info.libc), allocator: /** @type {any} */ (info.allocator) }
  const version = metrics.find(({ __name__: name }) => name === 'nodejs_version_info')?.version
  return version === undefined ? {} : { node: version.replace(/^v/, '') }
}

module.exports = { metricNames, MARKERS, fieldsOf, valuesOf, whoOf }
