'use strict'

const { studentTQuantile } = require('@memwatch/engine/statistics/student-t')

/**
 * A group-sequential test of runs against a baseline, with a tolerance. The outcome "worse" rejects
 * the hypothesis that the mean of a measure is higher by at most the tolerance. The outcome "pass"
 * rejects the hypothesis that a mean is higher by more.
 *
 * After each run, each measure is tested by Student's t with the pooled variance of both sides, at
 * nominal significance levels (Jennison & Turnbull, Group Sequential Methods, 2000, chapter 11).
 * The given error rate is spent evenly over the looks, the interim analyses (Kim & DeMets,
 * Biometrika 74 (1987) 149–154, with the exponent 1). Each look spends its part in full. For
 * "worse" the part is divided among the measures: by Boole's inequality the sum bounds the rate,
 * however looks and measures depend on each other. For "pass" every measure has to pass, so each
 * uses the whole part: the intersection–union test (Berger, Technometrics 24 (1982) 295–300).
 *
 * @typedef {object} Compared one measure
 * @property {string} measure name
 * @property {number} baseline mean
 * @property {number} candidate mean
 * @property {number} difference difference of the means
 * @property {number} tolerance
 * @property {number} lower bound of the difference, at the level of "worse"; -Infinity with one run
 * @property {number} upper bound of the difference, at the level of "pass"
 * @property {'pass' | 'worse' | 'undecided'} outcome
 *
 * @typedef {object} Decision
 * @property {'pass' | 'worse' | 'undecided'} outcome undecided: another run is needed, unless this
 *   was the last one
 * @property {Compared[]} compared
 */

/** Least number of runs for the outcome "worse": a single run may be disturbed by the machine. */
const LEAST_RUNS_WORSE = 2
/** Least number of runs of the baseline: fewer do not show the variance between runs. */
const LEAST_BASELINE_RUNS = 3

/**
 * @param {readonly Record<string, number>[]} baseline measures of each run; at least
 *   LEAST_BASELINE_RUNS runs
 * @param {readonly Record<string, number>[]} candidate measures of each run so far; at least one
 *   run
 * @param {object} options
 * @param {number} options.looks upper bound of runs of the candidate
 * @param {number} options.rate rate of false alarms over all looks and measures, and of misses; 0–1
 * @param {Record<string, number>} options.tolerances tolerances by measure
 * @returns {Decision}
 */
function decide (baseline, candidate, { looks, rate, tolerances }) {
  const names = Object.keys(tolerances)
  const part = rate / looks
  const degrees = baseline.length + candidate.length - 2
  const quantiles = {
    worse: studentTQuantile(part / names.length, degrees),
    pass: studentTQuantile(part, degrees)
  }
  const compared = names.map(name => compare(
    name,
    baseline.map(run => run[name]),
    candidate.map(run => run[name]),
    { tolerance: tolerances[name], quantiles }
  ))
  const outcome = compared.some(({ outcome }) => outcome === 'worse')
    ? 'worse'
    : compared.every(({ outcome }) => outcome === 'pass') ? 'pass' : 'undecided'
  return { outcome, compared }
}

/**
 * @param {string} measure
 * @param {number[]} was
 * @param {number[]} is
 * @param {{ tolerance: number, quantiles: { worse: number, pass: number } }} options
 * @returns {Compared}
 */
function compare (measure, was, is, { tolerance, quantiles }) {
  const [baseline, candidate] = [was, is].map(mean)
  const degrees = was.length + is.length - 2
  const variance = (squares(was) + squares(is)) / degrees
  const error = Math.sqrt(variance * (1 / was.length + 1 / is.length))
  const difference = candidate - baseline
  const lower = is.length < LEAST_RUNS_WORSE
    ? -Infinity
    : difference - quantiles.worse * error
  const upper = difference + quantiles.pass * error
  return {
    measure,
    baseline,
    candidate,
    difference,
    tolerance,
    lower,
    upper,
    outcome: lower > tolerance ? 'worse' : upper <= tolerance ? 'pass' : 'undecided'
  }
}

/** @param {number[]} values */
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length

/** Sum of squared distances from the mean. @param {number[]} values */
function squares (values) {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0)
}

module.exports = { decide, LEAST_BASELINE_RUNS }
