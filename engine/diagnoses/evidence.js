'use strict'

const { figures } = require('../signals')
const { nameOf } = require('../signals/names')
const { formatRatio, formatValue } = require('../text/format')

/** @typedef {import('./define-diagnosis').Evidence} Evidence */

/**
 * A thread that has a CPU for this share of the time is not slowed down: the remaining wait is
 * noise of the machine.
 */
const NEARLY_ALL = 0.9

/**
 * One piece of evidence, with a sentence built from its numbers.
 * @param {import('../signals').FigureName} signal
 * @param {number} value
 * @param {number} limit
 * @param {(value: string, limit: string) => string} say
 * @returns {Evidence}
 */
function evidence (signal, value, limit, say) {
  const { unit } = figures[signal]
  return {
    signal,
    value,
    limit,
    unit,
    text: say(formatValue(value, unit), formatValue(limit, unit))
  }
}

/**
 * List of evidence in display order; null items are left out.
 * @param {...(Evidence | readonly Evidence[] | false | null | undefined | 0)} items
 * @returns {Evidence[]}
 */
const listEvidence = (...items) => items.flatMap(item => item || [])

/**
 * Evidence that a rate was judged without the time in which the thread waited for a CPU.
 * @param {{ cpuTimeRatio: number | null, cpuThrottledRatio: number | null }} signals
 * @param {string} judged text of the rate that was judged, per second without these waits
 * @returns {Evidence[]} empty list if the thread did not wait
 */
function cpuTimeEvidence ({ cpuTimeRatio, cpuThrottledRatio }, judged) {
  if (cpuTimeRatio === null || cpuTimeRatio >= NEARLY_ALL) return []
  const why = cpuThrottledRatio
    ? `its CPU limit throttled the container in ${formatRatio(cpuThrottledRatio)} of the periods`
    : 'other threads or processes used it, or a CPU limit held the thread back'
  return [
    evidence(
      'cpuTimeRatio',
      cpuTimeRatio,
      NEARLY_ALL,
      () =>
        `The thread waited for a CPU for ${formatRatio(1 - cpuTimeRatio)} of wall time: ${why}. ` +
        `Per second without these waits: ${judged}.`
    )
  ]
}

/**
 * Evidence of the CPU time of ordinary major GCs, with the work of other threads.
 * @param {number | null} markingRatio ordinaryMarkingRatio
 * @param {number} threshold
 */
const markingEvidence = (markingRatio, threshold) =>
  evidence('ordinaryMarkingRatio', markingRatio ?? 0, threshold, (value, limit) =>
    `Major GCs take about ${value} of CPU time, by their number and the live ` +
    `heap, most of it in other threads; the threshold is ${limit}.`)

/**
 * Text of that share, as the end of a sentence about pauses.
 * @param {number | null} markingRatio ordinaryMarkingRatio
 */
const sayMarking = markingRatio =>
  `, and ${sayCpuShare(markingRatio ?? 0)}, as other threads mark the heap`

/** Largest estimate of a share of CPU time: high ones were too high, such as 84 for 57 %. */
const MOST_CPU_SHARE = 0.9

/**
 * Text of an estimated share of CPU time.
 * @param {number} ratio
 */
const sayCpuShare = ratio => ratio >= MOST_CPU_SHARE
  ? 'most of the CPU time'
  : `about ${formatRatio(ratio)} of CPU time`

/**
 * Text of a share of wall time, followed by the share without waits for a CPU if these are known.
 * @param {{ cpuTimeRatio: number | null }} signals
 * @param {number} wallRatio
 * @param {number} cpuRatio
 */
function wallAndCpu ({ cpuTimeRatio }, wallRatio, cpuRatio) {
  const [wall, cpu] = [wallRatio, cpuRatio].map(formatRatio)
  if (cpuTimeRatio === null || cpuTimeRatio >= NEARLY_ALL) return `${wall} of the time`
  return wall === cpu
    ? `${wall} of wall time, and at least as much of its CPU time`
    : `${wall} of wall time, ${cpu} without its waits for a CPU`
}

/**
 * Predicted effect of a fix on one signal, at constant work a second.
 * @param {import('../signals/names').NamedSignal} signal
 * @param {number} from present value
 * @param {number} to value after the change; both values have the signal's unit
 */
const prediction = (signal, from, to) =>
  ({ signal, name: nameOf(signal), from, to, unit: figures[signal].unit })

module.exports = {
  cpuTimeEvidence,
  evidence,
  listEvidence,
  markingEvidence,
  MOST_CPU_SHARE,
  prediction,
  sayCpuShare,
  sayMarking,
  wallAndCpu
}
