'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')
const { containerOf } = require('@memwatch/engine/history/identity')
const { pointsAfterMajors } = require('@memwatch/engine/signals/growth')
const { oldGenerationLimit, semiSpaceMax } = require('@memwatch/engine/v8/heap-sizing')

/** Window of growth before the end. */
const RISE_SECONDS = 10
/** Age below which a full heap is explained from its first frames on. */
const RISE_OF_HEAP_SECONDS = 120
/** Fewest readings after major GCs that are better than used bytes. */
const LEAST_READINGS = 3
/**
 * Time whose values a new maximum must exceed: mostly longer than between two major GCs.
 */
const RECORD_SECONDS = 60

/**
 * State of a target at its end.
 * @typedef {object} LastMoments
 * @property {number} silentSeconds from its last frame to its end
 * @property {number} intervalSeconds between its frames
 * @property {number | undefined} rssBytes
 * @property {number} rssGrowthBytesPerSecond the fastest between two frames at the end
 * @property {number} rssRecordBytes by how much it was higher at the end than ever in the minute
 *   before
 * @property {number | undefined} containerBytes what its container held: RSS or working set,
 *   whichever is more
 * @property {number | undefined} containerLimitBytes
 * @property {boolean} limitHitsRose the cgroup ran into its limit at the end
 * @property {number | undefined} heapUsedBytes
 * @property {number} heapGrowthBytesPerSecond
 * @property {number} heapRecordBytes as rssRecordBytes
 * @property {number | undefined} heapSizeLimitBytes
 * @property {number | undefined} oldBytes used heap without the new space, which does not run out
 * @property {number | undefined} oldLimitBytes part of the heap size limit outside the new space
 * @property {HeapRise | null} heapRise
 * @property {number} gcPauseRatio share of the last seconds that GCs took
 */

/**
 * Growth of the heap up to its end: of the live heap after major GCs, else of the used bytes.
 * @typedef {object} HeapRise
 * @property {number} fromBytes
 * @property {number} toBytes
 * @property {number} seconds
 * @property {number} readings after major GCs
 * @property {number} falls number of readings lower than the previous one
 */

/** @type {LastMoments} */
const UNKNOWN = Object.freeze({
  silentSeconds: 0,
  intervalSeconds: 1,
  rssBytes: undefined,
  rssGrowthBytesPerSecond: 0,
  rssRecordBytes: 0,
  containerBytes: undefined,
  containerLimitBytes: undefined,
  limitHitsRose: false,
  heapUsedBytes: undefined,
  heapGrowthBytesPerSecond: 0,
  heapRecordBytes: 0,
  heapSizeLimitBytes: undefined,
  oldBytes: undefined,
  oldLimitBytes: undefined,
  heapRise: null,
  gcPauseRatio: 0
})

/**
 * @param {import('@memwatch/engine/history/target').Target} target without a frame nothing is known of it
 * @param {number} goneAtUnixMs
 * @returns {LastMoments}
 */
function lastMoments (target, goneAtUnixMs) {
  const { values, hello } = target
  const window = target.window()
  if (!window) return UNKNOWN
  const limitHits = window.increase('containerLimitHits', RISE_SECONDS)
  return {
    silentSeconds: Math.max(0, goneAtUnixMs - target.seenAtUnixMs) / 1000,
    intervalSeconds: hello.intervalSeconds,
    rssBytes: values.rssBytes,
    rssGrowthBytesPerSecond: steepest(window.points('rssBytes', RISE_SECONDS)),
    rssRecordBytes: record(window.points('rssBytes', RECORD_SECONDS)),
    containerBytes:
      values.rssBytes === undefined
        ? undefined
        : Math.max(values.rssBytes, values.containerWorkingSetBytes ?? 0),
    containerLimitBytes: values.containerLimitBytes,
    limitHitsRose: limitHits !== null && limitHits.increase > 0,
    heapUsedBytes: values.heapUsedBytes,
    heapGrowthBytesPerSecond: steepest(window.points('heapUsedBytes', RISE_SECONDS)),
    heapRecordBytes: record(window.points('heapUsedBytes', RECORD_SECONDS)),
    heapSizeLimitBytes: values.heapSizeLimitBytes,
    oldBytes:
      values.heapUsedBytes === undefined
        ? undefined
        : values.heapUsedBytes - (values.spaces?.new_space?.[SPACE_ROW.usedBytes] ?? 0),
    oldLimitBytes:
      values.heapSizeLimitBytes === undefined
        ? undefined
        : oldGenerationLimit(
          values.heapSizeLimitBytes,
          semiSpaceMax(hello, values.heapSizeLimitBytes)
        ),
    heapRise: riseOf(window),
    gcPauseRatio: window.rate('gcPauseSeconds', RISE_SECONDS) ?? 0
  }
}

/**
 * Kills for memory in its cgroup since its last frames: from the cgroup itself, else from who
 * shares the cgroup and lives.
 * @param {Pick<import('./watched').Watched, 'target' | 'witness' | 'oomKills'>} watched
 * @param {readonly import('@memwatch/engine/history/target').Target[]} all targets
 * @returns {{ oomKills?: number, saidOomKills?: number }} oomKills: as the kernel counts;
 *   saidOomKills: as others of its cgroup say; neither where nobody counted
 */
function oomKillsSince ({ target, witness, oomKills }, all) {
  const now = witness?.oomKills()
  if (now !== undefined && oomKills !== undefined) return { oomKills: now - oomKills }
  const { containerOomKills, containerLimitBytes } = target.values
  if (containerOomKills === undefined) return {}
  const rise = Math.max(
    0,
    ...all
      .filter(
        other =>
          other !== target &&
          other.connected &&
          containerOf(other.hello) === containerOf(target.hello) &&
          other.values.containerLimitBytes === containerLimitBytes &&
          other.seenAtUnixMs > target.seenAtUnixMs
      )
      .map(({ values }) => (values.containerOomKills ?? 0) - containerOomKills)
  )
  return rise > 0 ? { saidOomKills: rise } : {}
}

/**
 * @param {import('@memwatch/engine/history/window').Window} window
 * @returns {HeapRise | null} null with fewer than two readings
 */
function riseOf (window) {
  const live = pointsAfterMajors(window, 'liveHeapBytes', RISE_OF_HEAP_SECONDS)
  const used = window.points('heapUsedBytes', RISE_OF_HEAP_SECONDS)
  const { times, values } = live.values.length >= LEAST_READINGS ? live : used
  const last = values.length - 1
  if (last < 1 || times[last] <= times[0]) return null
  return {
    fromBytes: values[0],
    // The last frame is newer than the last major GC, which may be seconds older.
    toBytes: Math.max(values[last], used.values[used.values.length - 1] ?? 0),
    seconds: Math.max(times[last], used.times[used.times.length - 1] ?? 0) - times[0],
    readings: live.values.length,
    falls: live.values.filter((value, i) => i > 0 && value < live.values[i - 1]).length
  }
}

/**
 * @param {{ times: number[], values: number[] }} points
 * @returns {number} per second; 0 where nothing rose
 */
function steepest ({ times, values }) {
  let most = 0
  for (let i = 1; i < times.length; i++) {
    const seconds = times[i] - times[i - 1]
    if (seconds > 0) most = Math.max(most, (values[i] - values[i - 1]) / seconds)
  }
  return most
}

/**
 * @param {{ values: number[] }} points
 * @returns {number} 0 where the last is no record, or the only one
 */
function record ({ values }) {
  return values.length < 2
    ? 0
    : Math.max(0, values[values.length - 1] - Math.max(...values.slice(0, -1)))
}

module.exports = { lastMoments, oomKillsSince }
