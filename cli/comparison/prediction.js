'use strict'

const { mean, median } = require('simple-statistics')
const { figures, signalsOf } = require('@memwatch/engine/signals/index')

/**
 * Tolerance of a good prediction: largest difference of the measured effect from the predicted one.
 */
const TOLERANCE = 0.25
/** Share of a value below which a predicted change is none. */
const LEAST_CHANGE = 0.01
/** Window of RSS: the whole run. */
const RUN_SECONDS = 600

/**
 * Values of a fix's predictions at the end of a run.
 * @param {import('@memwatch/engine/history/target').Target | null | undefined} target
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix | null} fix
 * @returns {Record<string, number | null>} by signal
 */
function signalsAtEnd (target, fix) {
  const window = target?.window()
  if (!window) return {}
  const signals = signalsOf(window)
  // The whole run except its start, as RSS rises and falls with the load.
  const rss = window.points('rssBytes', window.settledSeconds(RUN_SECONDS)).values
  return Object.fromEntries(
    (fix?.predicted ?? []).map(({ signal }) => [
      signal,
      signal === 'rssBytes' && rss.length > 0 ? mean(rss) : figures[signal].read(signals)
    ])
  )
}

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
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix['predicted'][number]} predicted
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
 * The predictions of a fix against runs without and with it: medians of both. Predictions assume
 * the same work a second: if both sides report their work, the time in GC is scaled to it.
 * @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix} fix
 * @param {import('./measure').Run[]} before
 * @param {import('./measure').Run[]} after
 * @returns {Outcome[]}
 */
function outcomesOf (fix, before, after) {
  const [was, is] = [before, after].map(runs => runs.map(({ target }) => signalsAtEnd(target, fix)))
  const pace = paceOf(after) / paceOf(before)
  return fix.predicted.map(predicted => {
    const share = isPaced(predicted) && pace > 0 ? 1 / pace : 1
    return outcomeOf(
      predicted,
      middle(was, predicted.signal),
      (middle(is, predicted.signal) ?? 0) * share
    )
  })
}

/** @param {import('@memwatch/engine/diagnoses/define-diagnosis').Fix['predicted'][number]} predicted */
const isPaced = ({ signal, unit }) => unit === 'perSecond' || /PauseRatio$/.test(signal)

/** Requests a second; NaN if a run does not report them. @param {import('./measure').Run[]} runs */
const paceOf = runs =>
  median(
    runs.map(
      ({ work: { requests, requestsPerSecond }, figures: { watchedSeconds } }) =>
        requestsPerSecond ?? (requests ?? NaN) / (watchedSeconds ?? NaN)
    )
  )

/**
 * @param {Record<string, number | null>[]} runs
 * @param {string} signal
 */
function middle (runs, signal) {
  const values = runs.flatMap(run => run[signal] ?? [])
  return values.length > 0 ? median(values) : undefined
}

module.exports = { signalsAtEnd, outcomeOf, outcomesOf, effectOf, TOLERANCE }
