'use strict'

const { figures } = require('../signals')
const { nameOf } = require('../signals/names')
const { formatRatio, formatValue } = require('../text/format')

/** @typedef {import('./define-diagnosis').Evidence} Evidence */

/**
 * A thread that lacks less than this of its time is not slowed down: the rest is the noise of a
 * machine.
 */
const NEARLY_ALL = 0.9

/**
 * One piece of evidence, its sentence made from the numbers.
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
 * Evidence in the order it is shown in, without what does not apply.
 * @param {...(Evidence | readonly Evidence[] | false | null | undefined | 0)} items
 * @returns {Evidence[]}
 */
const listEvidence = (...items) => items.flatMap(item => item || [])

/**
 * The sentence that says what rates are judged by where the thread was kept waiting for a CPU.
 * @param {{ cpuTimeRatio: number | null, cpuThrottledRatio: number | null }} signals
 * @param {string} judged what is judged by the CPU-second, with its numbers
 * @returns {Evidence[]} none where the thread had its time
 */
function cpuTimeEvidence ({ cpuTimeRatio, cpuThrottledRatio }, judged) {
  if (cpuTimeRatio === null || cpuTimeRatio >= NEARLY_ALL) return []
  const why = cpuThrottledRatio
    ? `its CPU quota throttled the container in ${formatRatio(cpuThrottledRatio)} of the periods`
    : 'other processes or a CPU quota took the rest'
  return [
    evidence(
      'cpuTimeRatio',
      cpuTimeRatio,
      NEARLY_ALL,
      value =>
        `The thread had a CPU for ${value} of wall time: ${why}. Per second of CPU time: ${judged}.`
    )
  ]
}

/**
 * A share of wall time, and of CPU time where that is another.
 * @param {{ cpuTimeRatio: number | null }} signals
 * @param {number} wallRatio
 * @param {number} cpuRatio
 */
const wallAndCpu = ({ cpuTimeRatio }, wallRatio, cpuRatio) =>
  cpuTimeRatio === null || cpuTimeRatio >= NEARLY_ALL
    ? `${formatRatio(wallRatio)} of the time`
    : `${formatRatio(wallRatio)} of wall time, ${formatRatio(cpuRatio)} of its CPU time`

/**
 * The expected effect of a fix on one signal, at the same work a second.
 * @param {import('../signals/names').NamedSignal} signal
 * @param {number} from now
 * @param {number} to after the change, both in the signal's unit
 */
const prediction = (signal, from, to) =>
  ({ signal, name: nameOf(signal), from, to, unit: figures[signal].unit })

module.exports = { cpuTimeEvidence, evidence, listEvidence, prediction, wallAndCpu }
