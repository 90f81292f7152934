'use strict'

const { isDeepStrictEqual } = require('node:util')
const { signalsOf } = require('../signals')
const { diagnoses: allDiagnoses } = require('../diagnoses')
const { findCase, isFinding } = require('./case')
const { isSymptom } = require('./causes')
const { judge } = require('./judge')
const { settle } = require('./settle')
const { bySeverity } = require('./urgency')
const { forSharedContainer } = require('../fixes/shared-container')
const { SEVERITIES } = require('../diagnoses/define-diagnosis')
const { formatSeconds } = require('../text/format')

/**
 * Bounds of the interval of evaluations, in the target's own time: the same live and in a replay.
 * A target is evaluated less often the longer it was watched, because its states change more
 * slowly; with findings, once these have stood for some minutes. The interval is also at most this
 * share of the time to a limit. It is short for a critical finding without such a time, and if RSS
 * has risen by this factor since the last evaluation.
 */
const LEAST_INTERVAL_SECONDS = 2
const MOST_INTERVAL_SECONDS = 15
const INTERVAL_SHARE = 1 / 20
const STANDING_SECONDS = 300
const RISE_RATIO = 1.1

/**
 * Time that a lower severity must last before it applies, by state. Alerts wait for half of the
 * time of a confirmed finding before they fire. A suspicion has its first severity from few
 * readings, so it may fall sooner.
 */
const LOWER_AFTER_SECONDS = Object.freeze({ confirmed: 300, suspected: 30 })

/**
 * A diagnosis judged on a target, as the API and `memwatch run --json` return it.
 * @typedef {object} Verdict
 * @property {string} diagnosis id
 * @property {string} title
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {import('../diagnoses/define-diagnosis').Severity} severity of the finding; without a
 *   finding the worst severity of the diagnosis
 * @property {number | null} confirmedAfterSeconds age of the isolate when the verdict was confirmed
 * @property {number | null} secondsLeft time until its growth reaches a limit, from the last frame;
 *   null without growth, or if unknown
 * @property {boolean} isHeld true for a finding that is kept, although the latest readings do not
 *   show it
 * @property {import('../diagnoses/define-diagnosis').Open | null} open null for a decided verdict
 * @property {string} summary one sentence
 * @property {import('../diagnoses/define-diagnosis').Evidence[]} evidence
 * @property {{ diagnosis: string, text: string }[]} ruledOut the other diagnoses that do not apply,
 *   with the reasons
 * @property {string | null} impact
 * @property {import('../diagnoses/define-diagnosis').Fix[]} fix best first
 * @property {boolean} opportunity a possible gain without a problem: never primary, never an alert
 * @property {string | null} runbook
 */

/**
 * Judges a target if its interval has passed: judge → settle → explain → recommend. The results are
 * written to its case.
 *
 * @param {import('../history/target').Target} target
 * @param
 *   {{ diagnoses?: typeof allDiagnoses, onError?: (error: Error) => void, everySeconds?: number }}
 *   [options] everySeconds: lower bound of the interval
 * @returns {Verdict[]} verdicts whose state changed
 */
function evaluate (
  target,
  { diagnoses = allDiagnoses, onError = () => {}, everySeconds = 0 } = {}
) {
  const known = findCase(target)
  const nowSeconds = target.frame?.uptimeSeconds ?? -Infinity
  const { rssBytes = 0 } = target.values
  const leastSeconds = Math.max(everySeconds, ownInterval(known, nowSeconds, rssBytes))
  if (nowSeconds - known.evaluatedAtSeconds < leastSeconds) return []
  const window = target.window()
  if (!window) return []
  if (known.evaluatedAtSeconds === -Infinity) known.unchangedSinceSeconds = window.nowSeconds
  known.evaluatedAtSeconds = window.nowSeconds
  known.evaluatedRssBytes = rssBytes

  const signals = signalsOf(window)
  const judged = diagnoses.map(diagnosis => {
    const { judgement, error } = judge(diagnosis, signals, target.hello)
    if (error) onError(error)
    const before = known.settled.get(diagnosis.id)
    const settled =
      settle(before, withCapture(diagnosis, judgement, known), window.nowSeconds)
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
  const changed = known.verdicts.filter(({ state }, i) =>
    state !== (before[i]?.state ?? 'unknown'))
  const replaced = before.filter(({ state }, i) => state !== known.verdicts[i].state)
  if ([...changed, ...replaced].some(isFinding)) known.unchangedSinceSeconds = window.nowSeconds
  return changed
}

/**
 * @param {import('./case').Case} known
 * @param {number} nowSeconds uptime
 * @param {number} rssBytes
 * @returns {number} seconds between two evaluations, by the target's state
 */
function ownInterval (known, nowSeconds, rssBytes) {
  if (rssBytes >= RISE_RATIO * known.evaluatedRssBytes) return LEAST_INTERVAL_SECONDS
  const left = known.verdicts.filter(isFinding).map(({ secondsLeft, severity }) =>
    secondsLeft ?? (severity === 'critical' ? 0 : Infinity))
  const stands = nowSeconds - known.unchangedSinceSeconds - (left.length > 0 ? STANDING_SECONDS : 0)
  const share = INTERVAL_SHARE * Math.min(stands, ...left)
  return Math.max(LEAST_INTERVAL_SECONDS, Math.min(share, MOST_INTERVAL_SECONDS))
}

/**
 * Lowers the severity of a finding that a capture of memwatch may have caused. The new severity,
 * info, pages nobody. A finding from before the capture keeps its severity.
 * @param {Judged['diagnosis']} diagnosis
 * @param {import('../diagnoses/define-diagnosis').Judgement} judgement
 * @param {import('./case').Case} known
 * @returns {import('../diagnoses/define-diagnosis').Judgement}
 */
function withCapture ({ id, leftBy }, judgement, { captured, settled }) {
  const isFound = judgement.state === 'suspected' || judgement.state === 'confirmed'
  const captures = (leftBy ?? []).flatMap(kind => {
    const atSeconds = captured.get(kind)
    return atSeconds === undefined ? [] : [{ kind, atSeconds }]
  })
  if (!isFound || captures.length === 0) return judgement
  const { kind, atSeconds } = captures.reduce((a, b) => b.atSeconds > a.atSeconds ? b : a)
  if ((settled.get(id)?.confirmedAtSeconds ?? NaN) < atSeconds) return judgement
  const summary = `${judgement.summary} The ${kind.replace('_', ' ')} that memwatch took at an ` +
    `age of ${formatSeconds(atSeconds)} may have left this memory: memwatch trim returns it.`
  return { ...judgement, severity: 'info', summary }
}

/**
 * @typedef {object} Judged
 * @property {import('../diagnoses/define-diagnosis').Diagnosis} diagnosis
 * @property {import('./settle').SettledState} settled
 */

/**
 * Folds symptoms into their confirmed cause: the symptoms stop being findings of their own, and the
 * cause inherits their severity. Findings that mean nothing beside another one are left open.
 * @param {Judged[]} judged
 * @returns {Judged[]}
 */
function explain (judged) {
  const causes = judged.filter(({ settled }) => settled.state === 'confirmed')
  const found = judged.filter(({ settled: { state } }) =>
    state === 'suspected' || state === 'confirmed')
  return judged.map(item => {
    const beside = found.find(({ diagnosis }) =>
      item.diagnosis.openBeside?.includes(diagnosis.id))
    if (beside && found.includes(item)) {
      const judgement = {
        state: /** @type {const} */ ('unknown'), summary: `not judged beside ${beside.diagnosis.id}`
      }
      return { ...item, settled: { ...item.settled, state: 'unknown', judgement } }
    }
    const cause = causes.find(cause => isCause(cause, item))
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
 * @param {Judged} item
 */
const isCause = ({ diagnosis, settled }, item) => isSymptom(diagnosis,
  settled.judgement.evidence ?? [], item.diagnosis.id, item.settled.judgement.evidence ?? [])

/**
 * @param {Judged} cause
 * @param {Judged[]} found
 * @returns {Judged} the cause, with the severity of its worst confirmed symptom
 */
function withSeverityOf (cause, found) {
  const { diagnosis, settled } = cause
  const symptoms = found.filter(item =>
    item.settled.state === 'confirmed' && isCause(cause, item))
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
 * @param {Verdict['ruledOut']} ruledOut all diagnoses that do not apply
 * @param {import('../history/target').Target} target
 * @param {(error: Error) => void} onError
 * @returns {Verdict}
 */
function verdictOf (diagnosis, settled, ruledOut, target, onError) {
  const { state, judgement } = settled
  const found = state === 'suspected' || state === 'confirmed'
  const own = ruledOut.findIndex(other => other.diagnosis === diagnosis.id)
  return {
    diagnosis: diagnosis.id,
    title: diagnosis.title,
    state,
    severity: found ? standingSeverity(diagnosis, settled, target) : diagnosis.severity,
    opportunity: diagnosis.opportunity ?? false,
    confirmedAfterSeconds: state === 'confirmed' ? settled.confirmedAtSeconds : null,
    secondsLeft: found ? (judgement.secondsLeft ?? null) : null,
    isHeld: found && settled.seenAtSeconds < findCase(target).evaluatedAtSeconds,
    open:
      state === 'unknown'
        ? { until: judgement.openUntil ?? 'readings', waitSeconds: judgement.waitSeconds ?? null }
        : null,
    summary: judgement.summary,
    evidence: found ? (judgement.evidence ?? []) : [],
    ruledOut: own < 0 ? ruledOut : ruledOut.toSpliced(own, 1),
    impact: found ? (judgement.impact ?? null) : null,
    fix: found ? standingFix(diagnosis, settled, target, onError) : [],
    runbook: diagnosis.runbook ?? null
  }
}

/**
 * Severity after hysteresis. It rises at once, and falls only after a lower severity has lasted:
 * the route of an alert must not change with each variation of the load.
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
  const lowerAfterSeconds = state === 'confirmed'
    ? LOWER_AFTER_SECONDS.confirmed
    : LOWER_AFTER_SECONDS.suspected
  const standing = was === state ? severities.get(id) : undefined
  const falls = standing && SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(standing.severity)
  if (falls && nowSeconds - standing.seenAtSeconds < lowerAfterSeconds) return standing.severity
  severities.set(id, { severity, seenAtSeconds: nowSeconds })
  return severity
}

/**
 * A heap limit that was recommended for a live heap is chosen anew once this multiple of it is
 * live. An app that exports its data each 20 s ran out of memory with a limit from before.
 */
const GROWN_RATIO = 1.25

/**
 * Fix of a verdict. Its change stays the same while the verdict stands, because advice must not
 * change with each variation of the load; its predictions follow the load. A finding of another
 * kind gets another fix, and so does one whose live heap has grown.
 * @param {Judged['diagnosis']} diagnosis
 * @param {Judged['settled']} settled
 * @param {import('../history/target').Target} target
 * @param {(error: Error) => void} onError
 */
function standingFix (diagnosis, { state, judgement: { finding } }, target, onError) {
  const { recommended, verdicts } = findCase(target)
  const previous = verdicts.find(verdict => verdict.diagnosis === diagnosis.id)
  const kind = kindOf(finding)
  const liveBytes = Number(finding?.liveBytes ?? 0)
  const known = recommended.get(diagnosis.id)
  const standing =
    state === 'confirmed' && previous?.state === 'confirmed' && previous.fix.length > 0 &&
    kind === known?.kind && liveBytes <= GROWN_RATIO * known.liveBytes
      ? previous.fix
      : undefined
  const fix = finding ? recommend(diagnosis, finding, target, onError) : []
  const stands = standing !== undefined && !isDeepStrictEqual(standing[0].change, fix[0]?.change)
  recommended.set(diagnosis.id, stands && known ? known : { kind, liveBytes })
  return stands ? standing : fix
}

/**
 * Kind of a finding: its words without the numbers. The words name the problem within its
 * diagnosis, and the numbers only its size.
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
    return diagnosis.fix(finding, target.hello, diagnosis.limits).map(fix =>
      ({ ...fix, change: forSharedContainer(fix.change, target) }))
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

module.exports = { evaluate }
