'use strict'

const { SPACE_ROW } = require('@memwatch/agent/protocol/frame')
const { containerOf } = require('@memwatch/engine/history/identity')
const { pointsAfterMajors } = require('@memwatch/engine/signals/growth')
const { oldGenerationLimit, semiSpaceMax } = require('@memwatch/engine/v8/heap-sizing')

/** Window of growth before the end. */
const RISE_SECONDS = 10
/**
 * Window of the growth of the heap before the end. For a shorter life it begins at the first frame.
 */
const RISE_OF_HEAP_SECONDS = 120
/** Least number of readings after major GCs to prefer them to used bytes. */
const LEAST_READINGS = 3
/**
 * Period whose values a new maximum must exceed. It is usually longer than the time between two
 * major GCs.
 */
const RECORD_SECONDS = 60

/**
 * State of a target at its end.
 * @typedef {object} LastMoments
 * @property {number} silentSeconds time from its last frame to its end
 * @property {number} intervalSeconds interval between its frames
 * @property {number | undefined} rssBytes
 * @property {number} rssGrowthBytesPerSecond fastest growth between two frames at the end
 * @property {number} rssRecordBytes difference between RSS at the end and its maximum in the minute
 *   before; 0 if not higher
 * @property {number | undefined} containerBytes memory of its container: RSS or working set,
 *   whichever is larger
 * @property {number | undefined} containerLimitBytes
 * @property {boolean} limitHitsRose true if the cgroup reached its limit at the end
 * @property {number | undefined} heapUsedBytes
 * @property {number} heapGrowthBytesPerSecond
 * @property {number} heapRecordBytes difference between the used heap at the end and its maximum in
 *   the minute before; 0 if not higher
 * @property {number | undefined} heapSizeLimitBytes
 * @property {number | undefined} oldBytes used heap without the new space
 * @property {number | undefined} oldLimitBytes part of the heap size limit outside the new space
 * @property {HeapRise | null} heapRise
 * @property {number} gcPauseRatio share of the last seconds spent in GCs
 */

/**
 * Growth of the heap up to the end. It is the growth of the live heap by its readings after major
 * GCs or, if these are too few, the growth of the used bytes.
 * @typedef {object} HeapRise
 * @property {number} fromBytes
 * @property {number} toBytes
 * @property {number} seconds
 * @property {number} readings number of readings after major GCs
 * @property {number} liveBytesPerSecond growth of the live heap; 0 unless each of its readings is
 *   higher than the one before, and there are enough
 * @property {number} falls number of readings that are lower than the previous one
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
 * @param {import('@memwatch/engine/history/target').Target} target a target without a frame has no
 *   last moments
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
 * OOM kills in a target's cgroup since its last frames: from the cgroup itself, or, if it is not
 * visible, from living processes that share it.
 * @param {Pick<import('./watched').Watched, 'target' | 'witness' | 'oomKills'>} watched
 * @param {readonly import('@memwatch/engine/history/target').Target[]} all targets
 * @returns {{ oomKills?: number, saidOomKills?: number }} oomKills: counted by the kernel;
 *   saidOomKills: reported by other processes of the cgroup; both absent if unknown
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
    // The values in the last frame are newer than the last major GC, which may be seconds older.
    toBytes: Math.max(values[last], used.values[used.values.length - 1] ?? 0),
    seconds: Math.max(times[last], used.times[used.times.length - 1] ?? 0) - times[0],
    readings: live.values.length,
    liveBytesPerSecond: steadyGrowth(live),
    falls: live.values.filter((value, i) => i > 0 && value < live.values[i - 1]).length
  }
}

/**
 * @param {{ times: number[], values: number[] }} points
 * @returns {number} growth per second; 0 with too few readings, or unless each of them is higher
 *   than the one before
 */
function steadyGrowth ({ times, values }) {
  const last = values.length - 1
  const isSteady = values.every((value, i) => i === 0 || value > values[i - 1])
  return values.length >= LEAST_READINGS && isSteady && times[last] > times[0]
    ? (values[last] - values[0]) / (times[last] - times[0])
    : 0
}

/**
 * @param {{ times: number[], values: number[] }} points
 * @returns {number} growth per second; 0 without a rise
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
 * @returns {number} difference of the last value and the earlier maximum; 0 if the last value is
 *   not a maximum, or the only one
 */
function record ({ values }) {
  return values.length < 2
    ? 0
    : Math.max(0, values[values.length - 1] - Math.max(...values.slice(0, -1)))
}

module.exports = { lastMoments, oomKillsSince }
