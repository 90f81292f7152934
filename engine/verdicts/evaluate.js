'use strict'

const { isDeepStrictEqual } = require('node:util')
const { signalsOf } = require('../signals')
const { diagnoses: allDiagnoses } = require('../diagnoses')
const { findCase } = require('./case')
const { judge } = require('./judge')
const { settle } = require('./settle')
const { SEVERITIES } = require('../diagnoses/define-diagnosis')

/**
 * A target is judged again when so much of its own time has passed: the same live and in a replay.
 */
const EVALUATE_EVERY_SECONDS = 2

/** What is less severe for so long is so: alerts wait half of it before they fire. */
const LOWER_AFTER_SECONDS = 300

/**
 * A diagnosis judged on a target. The wire form of the API and of `memwatch run --json`.
 * @typedef {object} Verdict
 * @property {string} diagnosis id
 * @property {string} title
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {import('../diagnoses/define-diagnosis').Severity} severity of what was found, from
 *   what is at stake; else the worst that the diagnosis can be
 * @property {number | null} confirmedAfterSeconds age of the isolate when it was confirmed
 * @property {number | null} secondsLeft until the process reaches the limit that it grows towards,
 *   counted from the last frame; null where nothing grows, or that cannot be told
 * @property {import('../diagnoses/define-diagnosis').Open | null} open null where it is decided
 * @property {string} summary one sentence
 * @property {import('../diagnoses/define-diagnosis').Evidence[]} evidence
 * @property {{ diagnosis: string, text: string }[]} ruledOut the other diagnoses that do not hold,
 *   and why
 * @property {string | null} impact
 * @property {import('../diagnoses/define-diagnosis').Fix[]} fix best first
 * @property {boolean} opportunity something to gain, nothing wrong: never primary, never an alert
 * @property {string | null} runbook
 */

/**
 * Judge a target, if it is time to: judge → settle → explain → recommend. Writes its case.
 *
 * @param {import('../history/target').Target} target
 * @param
 *   {{ diagnoses?: typeof allDiagnoses, onError?: (error: Error) => void, everySeconds?: number }}
 *   [options]
 * @returns {Verdict[]} those whose state changed
 */
function evaluate (
  target,
  { diagnoses = allDiagnoses, onError = () => {}, everySeconds = EVALUATE_EVERY_SECONDS } = {}
) {
  const known = findCase(target)
  const nowSeconds = target.frame?.uptimeSeconds ?? -Infinity
  if (nowSeconds - known.evaluatedAtSeconds < everySeconds) return []
  const window = target.window()
  if (!window) return []
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
  const ruledOut = explained
    .filter(({ diagnosis, settled }) => !diagnosis.opportunity && settled.state === 'ok')
    .map(({ diagnosis, settled }) => ({ diagnosis: diagnosis.id, text: settled.judgement.summary }))
  known.verdicts = explained.map(({ diagnosis, settled }) =>
    verdictOf(diagnosis, settled, ruledOut, target, onError)
  )
  return known.verdicts.filter(({ state }, i) => state !== (before[i]?.state ?? 'unknown'))
}

/**
 * @typedef {object} Judged
 * @property {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @property {import('./settle').SettledState} settled
 */

/**
 * A confirmed cause folds its symptoms: they are no findings of their own, and the cause is as
 * severe as they are.
 * @param {Judged[]} judged
 * @returns {Judged[]}
 */
function explain (judged) {
  const causes = judged.filter(({ settled }) => settled.state === 'confirmed')
  const found = judged.filter(({ settled: { state } }) =>
    state === 'suspected' || state === 'confirmed')
  return judged.map(item => {
    const cause = causes.find(({ diagnosis }) => diagnosis.explains.includes(item.diagnosis.id))
    if (!cause) return causes.includes(item) ? withSeverityOf(item, found) : item
    if (!found.includes(item)) return item
    const judgement = {
      state: /** @type {const} */ ('ok'), summary: 'a symptom of ' +
      `${cause.diagnosis.id}`
    }
    return { ...item, settled: { ...item.settled, state: 'ok', judgement } }
  })
}

/**
 * @param {Judged} cause
 * @param {Judged[]} found
 * @returns {Judged} as severe as the worst of its confirmed symptoms
 */
function withSeverityOf (cause, found) {
  const { diagnosis, settled } = cause
  const symptoms = found.filter(item =>
    item.settled.state === 'confirmed' && diagnosis.explains.includes(item.diagnosis.id))
  const [{ severity }] = [cause, ...symptoms]
    .map(({ diagnosis, settled: { judgement } }) => ({
      severity: severityOf(diagnosis, judgement)
    }))
    .sort(bySeverity)
  return { diagnosis, settled: { ...settled, judgement: { ...settled.judgement, severity } } }
}

/**
 * @param {Judged['diagnosis']} diagnosis
 * @param {Judged['settled']} settled
 * @param {Verdict['ruledOut']} ruledOut all that do not hold
 * @param {import('../history/target').Target} target
 * @param {(error: Error) => void} onError
 * @returns {Verdict}
 */
function verdictOf (diagnosis, settled, ruledOut, target, onError) {
  const { state, judgement } = settled
  const found = state === 'suspected' || state === 'confirmed'
  return {
    diagnosis: diagnosis.id,
    title: diagnosis.title,
    state,
    severity: found ? standingSeverity(diagnosis, settled, target) : diagnosis.severity,
    opportunity: diagnosis.opportunity ?? false,
    confirmedAfterSeconds: state === 'confirmed' ? settled.confirmedAtSeconds : null,
    secondsLeft: found ? (judgement.secondsLeft ?? null) : null,
    open:
      state === 'unknown'
        ? { until: judgement.openUntil ?? 'readings', waitSeconds: judgement.waitSeconds ?? null }
        : null,
    summary: judgement.summary,
    evidence: found ? (judgement.evidence ?? []) : [],
    ruledOut: ruledOut.some(other => other.diagnosis === diagnosis.id)
      ? ruledOut.filter(other => other.diagnosis !== diagnosis.id)
      : ruledOut,
    impact: found ? (judgement.impact ?? null) : null,
    fix: found ? standingFix(diagnosis, settled, target, onError) : [],
    runbook: diagnosis.runbook ?? null
  }
}

/**
 * A severity rises at once, and falls when the lower one has lasted: an alert must not change its
 * route with each wobble of the load.
 * @param {Judged['diagnosis']} diagnosis
 * @param {Judged['settled']} settled
 * @param {import('../history/target').Target} target
 * @returns {import('../diagnoses/define-diagnosis').Severity}
 */
function standingSeverity (diagnosis, { state, judgement }, target) {
  const { severities, verdicts, evaluatedAtSeconds: nowSeconds } = findCase(target)
  const { id } = diagnosis
  const severity = severityOf(diagnosis, judgement)
  const was = verdicts.find(verdict => verdict.diagnosis === id)?.state
  const standing = was === 'confirmed' && state === 'confirmed' ? severities.get(id) : undefined
  const falls = standing && SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(standing.severity)
  if (falls && nowSeconds - standing.seenAtSeconds < LOWER_AFTER_SECONDS) return standing.severity
  severities.set(id, { severity, seenAtSeconds: nowSeconds })
  return severity
}

/**
 * A fix stands as long as its verdict does: numbers that follow every wobble of the load are no
 * advice. What it is predicted to bring is known better with time, and looked at anew when the
 * process is twice as old – as long as it says to do the same. A finding of another kind needs
 * another fix.
 * @param {Judged['diagnosis']} diagnosis
 * @param {Judged['settled']} settled
 * @param {import('../history/target').Target} target
 * @param {(error: Error) => void} onError
 */
function standingFix (diagnosis, { state, judgement: { finding } }, target, onError) {
  const { evaluatedAtSeconds: nowSeconds, recommended, verdicts } = findCase(target)
  const previous = verdicts.find(verdict => verdict.diagnosis === diagnosis.id)
  const last = recommended.get(diagnosis.id)
  const kind = kindOf(finding)
  const standing =
    state === 'confirmed' && previous?.state === 'confirmed' && previous.fix.length > 0 &&
    kind === last?.kind
      ? previous.fix
      : undefined
  if (standing && nowSeconds < 2 * (last?.atSeconds ?? 0)) return standing
  recommended.set(diagnosis.id, { atSeconds: nowSeconds, kind })
  const fix = finding ? recommend(diagnosis, finding, target, onError) : []
  return standing && !isDeepStrictEqual(standing[0].change, fix[0]?.change) ? standing : fix
}

/**
 * The words of a finding say which problem of its diagnosis it is; its numbers say how large.
 * @param {import('../diagnoses/define-diagnosis').Finding | undefined} finding
 */
const kindOf = (finding = {}) =>
  Object.values(finding).filter(value => typeof value === 'string').join()

/**
 * @param {Judged['diagnosis']} diagnosis
 * @param {import('../diagnoses/define-diagnosis').Finding} finding
 * @param {import('../history/target').Target} target
 * @param {(error: Error) => void} onError
 */
function recommend (diagnosis, finding, target, onError) {
  try {
    return diagnosis.fix(finding, target.hello, diagnosis.limits)
  } catch (cause) {
    onError(new Error(`the fix of ${diagnosis.id} failed`, { cause }))
    return []
  }
}

/**
 * @param {Judged['diagnosis']} diagnosis
 * @param {import('../diagnoses/define-diagnosis').Judgement} judgement
 */
const severityOf = (diagnosis, judgement) => judgement.severity ?? diagnosis.severity

/**
 * @param {{ severity: Verdict['severity'] }} a
 * @param {{ severity: Verdict['severity'] }} b
 * @returns {number} the more severe first
 */
const bySeverity = (a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)

/**
 * @param {Pick<Verdict, 'severity' | 'secondsLeft'>} a
 * @param {Pick<Verdict, 'severity' | 'secondsLeft'>} b
 * @returns {number} the more severe first, of those the one that leaves less time
 */
const byUrgency = (a, b) => bySeverity(a, b) || compareTimes(a.secondsLeft, b.secondsLeft)

/**
 * @param {number | null} a seconds
 * @param {number | null} b seconds
 */
const compareTimes = (a, b) => a === b ? 0 : (a ?? Infinity) - (b ?? Infinity)

/**
 * The confirmed finding to act on first: the most severe, of those the one that leaves the least
 * time, then the earliest in the order of diagnoses.
 * @template {Verdict} V
 * @param {readonly V[]} verdicts
 * @returns {V | null}
 */
function primaryOf (verdicts) {
  return verdicts.filter(({ state, opportunity }) => state === 'confirmed' && !opportunity)
    .sort(byUrgency)[0] ?? null
}

module.exports = { evaluate, primaryOf, byUrgency }
