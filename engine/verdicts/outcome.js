'use strict'

const { median } = require('../statistics/quantile')
const { figures, signalsOf } = require('../signals/index')

/** @typedef {import('../diagnoses/define-diagnosis').Fix['predicted'][number]} Predicted */

/**
 * Tolerance of a good prediction: largest difference of the measured effect from the predicted one.
 */
const TOLERANCE = 0.25
/** Share of the first predicted effect from which a fix counts: noise measures a few percent. */
const LEAST_EFFECT = 0.25
/** Share of a value below which a predicted change is none. */
const LEAST_CHANGE = 0.01
/** Window of RSS: the whole run. */
const RUN_SECONDS = 600

/**
 * Predicted signals of one run, or of a part of it, with the work done a second then: requests, or
 * another measure of work that both sides have. NaN: unknown.
 * @typedef {{ values: Record<string, number | null>, pace: number }} Reading
 */

/**
 * Present values of predicted signals.
 * @param {import('../history/target').Target | null | undefined} target
 * @param {readonly Predicted[]} predicted
 * @param {number} [spanSeconds] window of RSS
 * @returns {Record<string, number | null>} by signal
 */
function readPredicted (target, predicted, spanSeconds = RUN_SECONDS) {
  const window = target?.window()
  if (!window) return {}
  const signals = signalsOf(window)
  // RSS rises and falls with the load, and at the start of the process.
  const rss = window.points('rssBytes', window.settledSeconds(spanSeconds)).values
  return Object.fromEntries(predicted.map(({ signal }) => [
    signal,
    signal === 'rssBytes' && rss.length > 0 ? mean(rss) : figures[signal].read(signals)
  ]))
}

/** @param {readonly number[]} values at least one */
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * A prediction and its measured result. The prediction is made when a verdict is confirmed, and the
 * signal changes afterwards. So the predicted share applies to the final value without the fix. A
 * signal that disappeared (no trend is left) counts as 0.
 * @typedef {object} Outcome
 * @property {string} signal
 * @property {string} name the signal in words
 * @property {string} unit
 * @property {number} from without the fix
 * @property {number} to predicted from there
 * @property {number} measured with the fix
 * @property {boolean} good within TOLERANCE of the predicted effect
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
 * The predictions of a fix against readings without and with it: medians of both. Predictions
 * assume the same work a second: rates and the time in GC are taken per unit of work where all
 * readings have it, and stated at the pace of before.
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
 * True for a signal that grows with the work done a second.
 * @param {Pick<Predicted, 'signal' | 'unit'>} predicted
 */
const isPaced = ({ signal, unit }) => /erSecond$/.test(unit) || /PauseRatio$/.test(signal)

/**
 * @param {readonly Reading[]} readings
 * @param {string} signal
 * @param {number} pace to scale the values to; NaN: as they are
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
