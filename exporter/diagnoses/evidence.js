'use strict'

const { signals } = require('../signals')
const { formatValue } = require('../text/format')

/**
 * One piece of evidence, its sentence made from the numbers.
 * @param {import('../signals').SignalName} signal
 * @param {number} value
 * @param {number} limit
 * @param {(value: string, limit: string) => string} say
 * @returns {import('./define-diagnosis').Evidence}
 */
function evidence (signal, value, limit, say) {
  const { unit } = signals[signal]
  return { signal, value, limit, unit, text: say(formatValue(value, unit), formatValue(limit, unit)) }
}

/**
 * The expected effect of a fix on one signal, at the same work a second.
 * @template {import('../signals').SignalName} Name
 * @param {Name} signal
 * @param {number} from now @param {number} to after the change, both in the signal's unit
 */
const prediction = (signal, from, to) => ({ signal, from, to, unit: signals[signal].unit })

module.exports = { evidence, prediction }
