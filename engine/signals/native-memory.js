'use strict'

// Changes of memory outside the heap over time. A single scan shows only one moment.

const { isOwnGc } = require('@memwatch/agent/protocol/frame')
const { median, quantile } = require('../statistics/quantile')
const { bufferChurnBytes } = require('./buffers')
const { isStale, residentNow } = require('../memory/anatomy')
const { NATIVE_BASE_BYTES } = require('../memory/parts')
const { canTellRetained, MOVED_SHARE } = require('../memory/retained')

/** @typedef {import('../history/window').Window} Window */

/** Window that is long enough for a load to rise and fall. */
const NATIVE_SECONDS = 600
/**
 * Window of medians. Buffers fill and leave the same memory in turn, so the median over several
 * turns is typical.
 */
const TYPICAL_SECONDS = 60

/**
 * @param {Window} window
 * @returns {number | null} anonymous resident memory outside the V8 heap and Buffers
 */
const typicalNativeBytes = window => {
  const { values } = window.points('nativeBytes', TYPICAL_SECONDS)
  return values.length > 0 ? median(values) : null
}

/** Full GCs that are enough to judge what they free. */
const LEAST_FORCED = 5
/** Time after a GC within which native code returns what it freed. */
const RETURN_SECONDS = 4
/** Share of the falls without such a GC that a usual fall exceeds. */
const USUAL_SHARE = 0.75

/**
 * Native memory that the full GCs of memwatch free. Without them it would wait for a major GC of
 * the app, which may come late, because V8 does not count this memory.
 * @param {Window} window
 * @returns {{ eachBytes: number, perSecond: number, forced: number } | null} median of what one GC
 *   frees; bytes a second; number of these GCs. Null with too few of them
 */
const forcedFrees = window => window.once('freed by forced GCs', () => {
  // Most processes never receive such a command.
  if (!Object.keys(window.values.gc ?? {}).some(isOwnGc)) return null
  const seconds = window.settledSeconds(NATIVE_SECONDS)
  const { times: gcs } = window.pointsOnChange('forcedMajors', 'forcedMajors', seconds)
  const { times, values } = window.points('nativeBytes', seconds)
  /**
   * @param {number} next position of the first reading after a moment
   * @param {number} until
   */
  const fall = (next, until) => {
    let least = Infinity
    for (let i = next; times[i] <= until; i++) least = Math.min(least, values[i])
    return Math.max(0, values[next - 1] - least)
  }
  // Workers make this memory vary: what it usually falls by does not count.
  const usual = []
  let gc = 0
  for (let i = 1; i < times.length; i++) {
    while (gcs[gc] <= times[i - 1]) gc++
    const until = times[i] + RETURN_SECONDS
    const isForced = gcs[gc] <= until
    if (!isForced) usual.push(fall(i, until))
  }
  const usualBytes = usual.length > 0 ? quantile(usual, USUAL_SHARE) : 0
  const freed = []
  let next = 0
  for (const gc of gcs) {
    while (times[next] < gc) next++
    if (next === 0 || next === times.length) continue
    freed.push(Math.max(0, fall(next, gc + RETURN_SECONDS) - usualBytes))
  }
  if (freed.length < LEAST_FORCED) return null
  return {
    eachBytes: median(freed),
    perSecond: freed.reduce((sum, bytes) => sum + bytes, 0) / (times[times.length - 1] - times[0]),
    forced: freed.length
  }
})

/**
 * Readings of two tracks at the moments at which both have one.
 * @param {Window} window
 * @param {import('../history/tracks').TrackName} first
 * @param {import('../history/tracks').TrackName} second
 * @param {number} seconds
 * @returns {{ time: number, first: number, second: number }[]} oldest first
 */
function readingsOfBoth (window, first, second, seconds) {
  const a = window.points(first, seconds)
  const b = window.points(second, seconds)
  const readings = []
  let at = 0
  for (let i = 0; i < a.times.length; i++) {
    while (b.times[at] < a.times[i]) at++
    if (b.times[at] !== a.times[i]) continue
    readings.push({ time: a.times[i], first: a.values[i], second: b.values[at] })
  }
  return readings
}

/**
 * Memory outside the heap at each moment, with and without Buffers.
 * @param {Window} window
 * @param {number} seconds
 * @returns {{ native: number, outside: number }[]} bytes, oldest first
 */
const readingsOutside = (window, seconds) =>
  readingsOfBoth(window, 'nativeBytes', 'outsideHeapBytes', seconds)
    .map(({ first, second }) => ({ native: first, outside: second }))

/**
 * Native memory that malloc does not count as free, while its statistics are up to date.
 * @param {Window} window
 * @param {number} seconds
 * @returns {{ times: number[], values: number[] }} bytes, oldest first
 */
function nativeInUse (window, seconds) {
  const readings = readingsOfBoth(window, 'nativeBytes', 'allocatorSlackBytes', seconds)
  return {
    times: readings.map(({ time }) => time),
    values: readings.map(({ first, second }) => first - second)
  }
}

/**
 * Memory that was free, because Buffers were allocated in it: native memory fell while the total
 * outside the heap did not. Memory that malloc returned to the kernel is not counted.
 * @param {Window} window
 * @returns {number} largest such fall of native memory in the last ten minutes, without the start
 *   phase
 */
const nativeReusedBytes = window => window.overSpan('native reused', NATIVE_SECONDS, () => {
  let highest = { native: 0, outside: 0 }
  let reused = 0
  for (const reading of readingsOutside(window, window.settledSeconds(NATIVE_SECONDS))) {
    if (reading.native > highest.native) highest = reading
    const returned = Math.max(0, highest.outside - reading.outside)
    reused = Math.max(reused, highest.native - reading.native - returned)
  }
  return reused
})

/**
 * Memory that was returned to the kernel within the window of the median, which still includes it.
 * @param {Window} window
 * @returns {number} fall of native memory, as far as RSS fell with it
 */
const lastReturnedBytes = window => window.once('last returned', () => {
  const readings = readingsOutside(window, TYPICAL_SECONDS)
  const now = readings.at(-1)
  if (now === undefined) return 0
  let returned = 0
  for (const { native, outside } of readings) {
    returned = Math.max(returned, Math.min(native - now.native, outside - now.outside))
  }
  return returned
})

/**
 * Memory that malloc obtained since its last statistics, and whether these are still valid.
 * @param {Window} window
 * @returns {{ asked: boolean, sinceBytes: number }} asked: false if malloc was never queried or its
 *   statistics are out of date
 */
const answer = window => window.once('answer of malloc', () => {
  const resident = window.scan?.asked ? residentNow(window) : null
  if (!resident) return { asked: false, sinceBytes: 0 }
  const isOutOfDate = isStale(resident)
  return { asked: !isOutOfDate, sinceBytes: isOutOfDate ? resident.since : 0 }
})

/**
 * @param {Window} window
 * @returns {number | null} typical memory of malloc beside Buffers and Node's own
 */
const slackBytes = window => {
  const { values } = window.points('allocatorSlackBytes', TYPICAL_SECONDS)
  if (values.length > 0) {
    // The parts are of different times, and their sum may be more than malloc ever had.
    const most = Math.max(0, ...window.points('nativeBytes', TYPICAL_SECONDS).values)
    const slack = median(values) + answer(window).sinceBytes - lastReturnedBytes(window)
    return Math.min(most, Math.max(0, slack))
  }
  // Without a scan of the memory map, malloc's address range is an upper bound.
  const native = typicalNativeBytes(window)
  const span = window.last('mallocSpanBytes')
  if (native === null || span === undefined) return null
  return Math.max(0, Math.min(native - lastReturnedBytes(window), span) - NATIVE_BASE_BYTES)
}

/**
 * Typical memory that malloc retains: freed by the app, not returned to the OS. It equals the slack
 * if malloc was queried. Otherwise native code may use the slack. If enough of the slack moved, all
 * of it counts as free, and otherwise only the part that moved.
 * @param {Window} window
 * @returns {number | null} bytes; null for an unknown allocator
 */
const retainedBytes = window => window.once('retained', () => {
  const slack = canTellRetained(window.hello.allocator) ? slackBytes(window) : null
  if (slack === null) return null
  if (answer(window).asked) return slack
  const enough = MOVED_SHARE * slack
  const churn = bufferChurnBytes.compute(window) ?? 0
  // The second value costs more to compute, and is often not needed.
  if (churn >= enough) return slack
  const reused = nativeReusedBytes(window)
  return reused >= enough ? slack : Math.max(churn, reused)
})

module.exports = {
  forcedFrees,
  nativeInUse,
  answer,
  NATIVE_SECONDS,
  TYPICAL_SECONDS,
  typicalNativeBytes,
  nativeReusedBytes,
  slackBytes,
  retainedBytes
}
