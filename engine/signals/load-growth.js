'use strict'

/**
 * Growth of the load: work in the last third of a time, divided by the work in its first third.
 *
 * @typedef {import('../history/window').Window} Window
 */

/**
 * Least number of scavenges at the beginning: the rate of fewer is inaccurate.
 */
const LEAST_SCAVENGES = 10

/**
 * Growth of the load. CPU time is preferred as the measure of load, because on a shared machine the
 * same work keeps a loop active for longer. While V8 compiles the code of a new process, CPU time
 * shows a growing load too small, so allocation counts as well.
 * @param {Window} window
 * @returns {number | null} ratio
 */
function loadGrowth (window) {
  const work = workGrowth(window, 'threadCpuSeconds') ?? estimatedGrowth(window)
  return work === null ? null : Math.max(work, allocationGrowth(window) ?? 0)
}

/** Age up to which V8 compiles the code of a process, and enlarges its semi-spaces. */
const YOUNG_SECONDS = 180

/**
 * Growth of the bytes that the app allocates. A scavenge stands for a semi-space, which has its
 * final size after some minutes. In a young process with few scavenges, the used heap rises between
 * two frames by what was allocated.
 * @param {Window} window
 * @returns {number | null} ratio
 */
function allocationGrowth (window) {
  const scavenges = workGrowth(window, 'scavenges', { least: LEAST_SCAVENGES })
  if (window.nowSeconds > YOUNG_SECONDS) return scavenges
  const capacities = window.points('semiSpaceCapacityBytes')
  const capacityAt = new Map(capacities.times.map((time, i) => [time, capacities.values[i]]))
  return scavenges === null
    ? compareThirds(window, 'heapUsedBytes', rise => Math.max(0, rise))
    : compareThirds(window, 'scavenges', (count, time) => count * (capacityAt.get(time) ?? NaN))
}

/**
 * @param {Window} window
 * @param {import('../history/tracks').TrackName} track
 * @param {(difference: number, time: number) => number} amountOf amount that a difference between
 *   two frames stands for
 * @returns {number | null} amount a second in the last third of the time that is compared, divided
 *   by that in the first third
 */
function compareThirds (window, track, amountOf) {
  const span = loadSpan(window)
  const { times, values } = window.points(track, span)
  const [before, now] = [span, span / 3].map(seconds => {
    const from = window.nowSeconds - seconds
    let amount = 0
    let duration = 0
    for (let i = 1; i < times.length; i++) {
      if (times[i - 1] < from || times[i] > from + span / 3) continue
      amount += amountOf(values[i] - values[i - 1], times[i])
      duration += times[i] - times[i - 1]
    }
    return amount / duration
  })
  return before > 0 && now >= 0 ? now / before : null
}

/**
 * Time over which the load is compared: without the start of the process.
 * @param {Window} window
 * @returns {number} seconds
 */
const loadSpan = window => Math.min(600, 0.8 * window.nowSeconds)

/**
 * Growth of the work where no CPU time of the thread is known. On a busy machine the difference
 * between activity and waits is inaccurate, and CPU time of the process is not.
 * @param {Window} window
 * @returns {number | null} ratio
 */
function estimatedGrowth (window) {
  const active = workGrowth(window, 'eventLoopActiveSeconds', { less: 'runQueueWaitSeconds' })
  const process = workGrowth(window, 'processCpuSeconds')
  return active === null ? process : Math.max(active, process ?? 0)
}

/**
 * @param {Window} window
 * @param {import('../history/tracks').TrackName} track counter of the app's work
 * @param {{ less?: 'runQueueWaitSeconds', least?: number, span?: number }} [options] less: counter
 *   of a part of `track` that is no work; least: least increase at the beginning; span: seconds
 * @returns {number | null} ratio
 */
function workGrowth (window, track, { less, least = 0, span = loadSpan(window) } = {}) {
  const work = (/** @type {number} */ seconds) => {
    const all = window.increase(track, seconds)
    const waited = less && window.increase(less, seconds)
    return all && { ...all, increase: Math.max(0, all.increase - (waited?.increase ?? 0)) }
  }
  const [all, late, lateTwo] = [work(span), work(span / 3), work((span * 2) / 3)]
  if (!all || !late || !lateTwo || all.overSeconds <= lateTwo.overSeconds) return null
  const increase = all.increase - lateTwo.increase
  const early = increase / (all.overSeconds - lateTwo.overSeconds)
  // A thread that waits for longer than its loop is active shows no work.
  if (less && late.increase === 0) return null
  return early > 0 && increase >= least ? late.increase / late.overSeconds / early : null
}

/**
 * Growth of the load over a longer time, in which it may rise slowly.
 * @param {Window} window
 * @param {number} span seconds
 * @returns {number | null} ratio
 */
function slowLoadGrowth (window, span) {
  const ratios = [
    workGrowth(window, 'workSeconds', { span }),
    workGrowth(window, 'scavenges', { span, least: LEAST_SCAVENGES })
  ].filter(ratio => ratio !== null)
  return ratios.length > 0 ? Math.max(...ratios) : null
}

module.exports = { loadGrowth, slowLoadGrowth }
