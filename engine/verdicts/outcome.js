'use strict'

const { median } = require('../statistics/quantile')
const { cpuTimeOrAll } = require('../signals/cpu-time')

/** @typedef {import('../diagnoses/define-diagnosis').Fix['predicted'][number]} Predicted */

/**
 * Tolerance of a good prediction: largest relative difference between the measured and the
 * predicted effect.
 */
const TOLERANCE = 0.25
/**
 * A fix is effective if it achieved this share of the first predicted effect: noise measures a few
 * percent.
 */
const LEAST_EFFECT = 0.25
/** Share of a value below which a predicted change counts as no change. */
const LEAST_CHANGE = 0.01
/** Signals that are shares of time in GC. */
const PAUSES = /PauseRatio$/
/** Window of RSS: the whole run. */
const RUN_SECONDS = 600

/**
 * Predicted signals in one run, or in a part of it. `pace` is the work done per second at that
 * time, in requests or in another measure that both sides have; NaN if unknown.
 * @typedef {{ values: Record<string, number | null>, pace: number }} Reading
 */

/**
 * Present values of predicted signals.
 * @param {import('../history/target').Target | null | undefined} target
 * @param {readonly Predicted[]} predicted
 * @param {number} [spanSeconds] window of RSS
 * @returns {Record<string, number | null>} values by signal
 */
function readPredicted (target, predicted, spanSeconds = RUN_SECONDS) {
  const window = target?.window()
  if (!window) return {}
  // The signals are loaded with the first frame: an exporter starts without them.
  const { figures, signalsOf } = require('../signals/index')
  const signals = signalsOf(window)
  // RSS rises and falls with the load, and at the start of the process.
  const rss = window.points('rssBytes', window.settledSeconds(spanSeconds)).values
  const { ranRatio } = cpuTimeOrAll(window)
  return Object.fromEntries(predicted.map(({ signal }) => {
    if (signal === 'rssBytes' && rss.length > 0) return [signal, mean(rss)]
    const value = figures[signal].read(signals)
    // A thread that waits for a CPU has longer pauses for the same GCs.
    return [signal, PAUSES.test(signal) && value !== null ? value * ranRatio : value]
  }))
}

/** @param {readonly number[]} values at least one */
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * A prediction and its measured result. The prediction is made when a verdict is confirmed, and the
 * signal changes afterwards. So the predicted share applies to the final value without the
 * fix. A signal that disappeared (no trend is left) counts as 0.
 * @typedef {object} Outcome
 * @property {string} signal
 * @property {string} name name of the signal in words
 * @property {string} unit
 * @property {number} from without the fix
 * @property {number} to predicted value
 * @property {number} measured value with the fix
 * @property {boolean} good true if the measured effect is within TOLERANCE of the predicted one
 *
 * @param {Predicted} predicted
 * @param {number | null | undefined} before
 * @param {number | null | undefined} after
 * @returns {Outcome}
 */
function outcomeOf ({ signal, name, from, to, unit }, before, after) {
  const was = before ?? from
  const expected = from === 0 ? to : was * to / from
  const measured = after ?? 0
  return {
    signal,
    name,
    unit,
    from: was,
    to: expected,
    measured,
    good: Math.abs(measured - expected) <= TOLERANCE * Math.abs(was - expected)
  }
}

/**
 * The measured effect as a share of the predicted one.
 * @param {Pick<Outcome, 'from' | 'to' | 'measured'>} outcome
 * @returns {number | null} 1: as predicted; 0 or less: none; null: no change was predicted
 */
function effectOf ({ from, to, measured }) {
  if (Math.abs(from - to) < LEAST_CHANGE * Math.abs(from)) return null
  return (from - measured) / (from - to)
}

/**
 * Compares the predictions of a fix with readings without and with it, by the medians of both.
 * Predictions assume the same work per second. So rates and time in GC are compared per unit of
 * work if all readings contain it, and scaled to the pace before the fix.
 * @param {readonly Predicted[]} predicted
 * @param {readonly Reading[]} before
 * @param {readonly Reading[]} after
 * @returns {Outcome[]}
 */
function outcomesOf (predicted, before, after) {
  const isKnown = [...before, ...after].every(({ pace }) => pace > 0)
  const pace = isKnown && before.length > 0 ? median(before.map(reading => reading.pace)) : NaN
  return predicted.map(one => {
    const [was, is] = [before, after].map(readings =>
      middle(readings, one.signal, isPaced(one) ? pace : NaN))
    return outcomeOf(one, was, is)
  })
}

/**
 * True for a signal that grows with the work done per second.
 * @param {Pick<Predicted, 'signal' | 'unit'>} predicted
 */
const isPaced = ({ signal, unit }) => /erSecond$/.test(unit) || PAUSES.test(signal)

/**
 * @param {readonly Reading[]} readings
 * @param {string} signal
 * @param {number} pace pace to which values are scaled; NaN: values stay unscaled
 */
function middle (readings, signal, pace) {
  const values = readings.flatMap(reading => {
    const value = reading.values[signal]
    return value === null || value === undefined
      ? []
      : Number.isNaN(pace) ? value : value * pace / reading.pace
  })
  return values.length > 0 ? median(values) : undefined
}

module.exports = {
  readPredicted, outcomeOf, outcomesOf, effectOf, isPaced, TOLERANCE, LEAST_EFFECT
}
