'use strict'

const { isDeepStrictEqual } = require('node:util')
const { signalsOf } = require('../signals')
const { diagnoses: allDiagnoses } = require('../diagnoses')
const { findCase } = require('./case')
const { judge } = require('./judge')
const { settle } = require('./settle')

/** A target is judged again when so much of its own time has passed: the same live and in a replay. */
const EVALUATE_EVERY_SECONDS = 2

/**
 * A diagnosis judged on a target. The wire form of the API and of `memwatch run --json`.
 * @typedef {object} Verdict
 * @property {string} diagnosis id
 * @property {string} title
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {import('../diagnoses/define-diagnosis').Severity} severity
 * @property {number | null} confirmedAfterSeconds age of the isolate when it was confirmed
 * @property {string} summary one sentence
 * @property {import('../diagnoses/define-diagnosis').Evidence[]} evidence
 * @property {{ diagnosis: string, text: string }[]} ruledOut the other diagnoses that do not hold, and why
 * @property {string | null} impact
 * @property {import('../diagnoses/define-diagnosis').Fix[]} fix best first
 * @property {boolean} opportunity something to gain, nothing wrong: never primary, never an alert
 * @property {string | null} runbook
 */

/**
 * Judge a target, if it is time to: judge → settle → explain → recommend. Writes its case.
 *
 * @param {import('../series/target').Target} target
 * @param {{ diagnoses?: typeof allDiagnoses, onError?: (error: Error) => void, everySeconds?: number }} [options]
 * @returns {Verdict[]} those whose state changed
 */
function evaluate (target, { diagnoses = allDiagnoses, onError = () => {}, everySeconds = EVALUATE_EVERY_SECONDS } = {}) {
  const window = target.window()
  const known = findCase(target)
  if (!window || window.nowSeconds - known.evaluatedAtSeconds < everySeconds) return []
  known.evaluatedAtSeconds = window.nowSeconds

  const signals = signalsOf(window)
  const judged = diagnoses.map(diagnosis => {
    const { judgement, error } = judge(diagnosis, signals, target.hello)
    if (error) onError(error)
    const before = known.settled.get(diagnosis.id)
    const settled = settle(before, judgement, window.nowSeconds)
    known.settled.set(diagnosis.id, settled)
    return { diagnosis, settled }
  })
  const explained = explain(judged)
  const before = known.verdicts
  const ruledOut = explained.filter(({ diagnosis, settled }) => !diagnosis.opportunity && settled.state === 'ok')
    .map(({ diagnosis, settled }) => ({ diagnosis: diagnosis.id, text: settled.judgement.summary }))
  known.verdicts = explained.map(({ diagnosis, settled }) =>
    verdictOf(diagnosis, settled, ruledOut, target, onError))
  return known.verdicts.filter(({ state }, i) => state !== (before[i]?.state ?? 'unknown'))
}

/**
 * @typedef {object} Judged
 * @property {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @property {import('./settle').SettledState} settled
 */

/**
 * A confirmed cause folds its symptoms: they are no findings of their own.
 * @param {Judged[]} judged @returns {Judged[]}
 */
function explain (judged) {
  const causes = judged.filter(({ settled }) => settled.state === 'confirmed')
  return judged.map(item => {
    const cause = causes.find(({ diagnosis }) => diagnosis.explains.includes(item.diagnosis.id))
    if (!cause || item.settled.state === 'ok' || item.settled.state === 'unknown') return item
    const judgement = { state: /** @type {const} */ ('ok'), summary: `a symptom of ${cause.diagnosis.id}` }
    return { ...item, settled: { ...item.settled, state: 'ok', judgement } }
  })
}

/**
 * @param {Judged['diagnosis']} diagnosis @param {Judged['settled']} settled
 * @param {Verdict['ruledOut']} ruledOut all that do not hold @param {import('../series/target').Target} target @param {(error: Error) => void} onError
 * @returns {Verdict}
 */
function verdictOf (diagnosis, settled, ruledOut, target, onError) {
  const { state, judgement } = settled
  const found = state === 'suspected' || state === 'confirmed'
  return {
    diagnosis: diagnosis.id,
    title: diagnosis.title,
    state,
    severity: diagnosis.severity,
    opportunity: diagnosis.opportunity ?? false,
    confirmedAfterSeconds: state === 'confirmed' ? settled.confirmedAtSeconds : null,
    summary: judgement.summary,
    evidence: found ? judgement.evidence ?? [] : [],
    ruledOut: ruledOut.some(other => other.diagnosis === diagnosis.id) ? ruledOut.filter(other => other.diagnosis !== diagnosis.id) : ruledOut,
    impact: found ? judgement.impact ?? null : null,
    fix: found ? standingFix(diagnosis, settled, target, onError) : [],
    runbook: diagnosis.runbook ?? null
  }
}

/**
 * A fix stands as long as its verdict does: numbers that follow every wobble of the load are no advice. What it is predicted
 * to bring is known better with time, and looked at anew when the process is twice as old – as long as it says to do the same.
 * @param {Judged['diagnosis']} diagnosis @param {Judged['settled']} settled
 * @param {import('../series/target').Target} target @param {(error: Error) => void} onError
 */
function standingFix (diagnosis, { state, judgement: { finding } }, target, onError) {
  const { evaluatedAtSeconds: nowSeconds, recommendedAtSeconds, verdicts } = findCase(target)
  const previous = verdicts.find(verdict => verdict.diagnosis === diagnosis.id)
  const standing = state === 'confirmed' && previous?.state === 'confirmed' && previous.fix.length > 0 ? previous.fix : undefined
  if (standing && nowSeconds < 2 * (recommendedAtSeconds.get(diagnosis.id) ?? 0)) return standing
  recommendedAtSeconds.set(diagnosis.id, nowSeconds)
  const fix = finding ? recommend(diagnosis, finding, target, onError) : []
  return standing && !isDeepStrictEqual(standing[0].change, fix[0]?.change) ? standing : fix
}

/** @param {Judged['diagnosis']} diagnosis @param {import('../diagnoses/define-diagnosis').Finding} finding @param {import('../series/target').Target} target @param {(error: Error) => void} onError */
function recommend (diagnosis, finding, target, onError) {
  try {
    return diagnosis.fix(finding, target.hello, diagnosis.limits)
  } catch (cause) {
    onError(new Error(`the fix of ${diagnosis.id} failed`, { cause }))
    return []
  }
}

/**
 * The one finding to act on first: of the confirmed ones the earliest in the order of diagnoses.
 * @param {Verdict[]} verdicts @returns {Verdict | null}
 */
function primaryOf (verdicts) {
  return verdicts.find(verdict => verdict.state === 'confirmed' && !verdict.opportunity) ?? null
}

module.exports = { evaluate, primaryOf }
