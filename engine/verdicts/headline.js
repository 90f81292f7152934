'use strict'

const { attachedVerdicts } = require('./attached')
const { findCase } = require('./case')
const { isSymptom } = require('./causes')
const { byUrgency } = require('./urgency')
const { BY_USER, SEVERITIES } = require('../diagnoses/define-diagnosis')
const { holderText, shortText } = require('../text/suspect-text')
const { formatSeconds } = require('../text/format')

/**
 * @typedef {import('./evaluate').Verdict} Verdict
 * @typedef {'confirmed' | 'suspected' | 'undecided' | 'limited' | 'ok'} HeadlineState `limited`:
 *   nothing was found, but a check for a critical problem is impossible for this target
 */

/** From the most to the least urgent. @type {readonly HeadlineState[]} */
const HEADLINE_STATES = Object.freeze(['confirmed', 'suspected', 'undecided', 'limited', 'ok'])

/**
 * Summary of a target's verdicts in one sentence. The API serves it; reports, `top` and the page
 * print it.
 * @typedef {object} Headline
 * @property {HeadlineState} state
 * @property {string | null} diagnosis id of the thread's own finding, null if there is none
 * @property {Verdict['severity'] | null} severity severity of the finding
 * @property {string} text
 * @property {number | null} waitSeconds time until the open checks are decided, at the present
 *   load; null if unknown, or if no check is open
 * @property {number} confirmed number of confirmed findings
 * @property {string[]} open ids of the diagnoses that keep the target undecided
 * @property {{ diagnosis: string, text: string }[]} notLookedAt diagnoses of critical problems that
 *   cannot be made for this target, with the reason
 */

/** @typedef {Verdict & Partial<import('./attached').AttachedVerdict>} MaybeAttached */
/**
 * Worker threads of a main thread. Each is judged by itself.
 * @typedef {{ count: number, affected: readonly AffectedWorker[],
 *   undecided: readonly UndecidedWorker[] }} Workers affected: those with a finding above info, or
 *   a confirmed one, the worst first; undecided: older ones whose checks are open
 *
 * @typedef {{ thread: string, finding: MaybeAttached }} AffectedWorker
 * @typedef {{ thread: string, own: Headline }} UndecidedWorker
 */

/** @type {Workers} */
const NONE = Object.freeze({ count: 0, affected: [], undecided: [] })
/** The end of a worker frees its memory: a younger one may be there for a single task. */
const LASTING_WORKER_SECONDS = 30

/**
 * @param {import('../history/target').Target} target
 * @returns {Workers}
 */
function workersOf ({ workers: { count, threads } }) {
  const workers = [...threads].filter(({ hello }) => hello.threadId > 0)
  return {
    count,
    affected: workers
      .flatMap(other => {
        const [finding] = order(attachedVerdicts(other))
        const isTold = finding && (finding.severity !== 'info' || finding.state === 'confirmed')
        return isTold ? [{ thread: other.thread, finding }] : []
      })
      .sort((a, b) => rankFinding(a.finding) - rankFinding(b.finding)),
    undecided: workers
      .filter(({ lastSeconds }) => lastSeconds >= LASTING_WORKER_SECONDS)
      .map(other => ({
        thread: other.thread, own: summarizeThread(findCase(other).verdicts, 0)
      }))
      .filter(({ own }) => own.state === 'undecided' && own.open.length > 0)
  }
}

/**
 * @param {import('../history/target').Target} target
 * @param {readonly MaybeAttached[]} [verdicts] its verdicts, perhaps attached
 */
function headlineOf (target, verdicts = findCase(target).verdicts) {
  return summarize(verdicts, workersOf(target))
}

/**
 * @param {readonly MaybeAttached[]} verdicts verdicts; if they come from attachedVerdicts, the
 *   summary also names suspects
 * @param {Workers} [workers] of the thread's process
 * @returns {Headline} state and severity of the worst worker, if the thread itself has no finding
 *   above info. A worker's finding of severity info counts if the thread has none. With nothing
 *   found, a worker may leave it undecided
 */
function summarize (verdicts, workers = NONE) {
  const [worst, ...others] = workers.affected
  if (worst === undefined) {
    return withUndecided(summarizeThread(verdicts, workers.count), workers.undecided)
  }
  const own = summarizeThread(verdicts, 0)
  const { state, severity, diagnosis, summary } = worst.finding
  if (own.severity !== null && (own.severity !== 'info' || severity === 'info')) return own
  const also = others.length > 0
    ? ` Findings also in ${others.map(({ thread }) => thread).join(', ')}.`
    : ''
  return {
    ...own,
    state: state === 'confirmed' ? state : 'suspected',
    diagnosis: null,
    severity,
    text: `${certaintyOf(worst.finding)} in ${worst.thread}: ${diagnosis}: ${summary}` +
      `${describeAttached(worst.finding)}${also} Main thread: ${own.text}`
  }
}

/**
 * @param {Headline} own of the main thread
 * @param {readonly UndecidedWorker[]} undecided
 * @returns {Headline}
 */
function withUndecided (own, [first]) {
  const isQuiet = own.state === 'ok' || own.state === 'limited'
  if (!isQuiet || first === undefined) return own
  const { state, text, waitSeconds, open } = first.own
  const inThread = text.replace(/^Undecided/, `Undecided in ${first.thread}`)
  return { ...own, state, waitSeconds, open, text: `${inThread} Main thread: ${own.text}` }
}

/**
 * @param {readonly MaybeAttached[]} verdicts
 * @param {number} workerCount
 * @returns {Headline}
 */
function summarizeThread (verdicts, workerCount) {
  const found = order(verdicts)
  const confirmed = found.filter(({ state }) => state === 'confirmed')
  const unknown = verdicts.filter(({ severity, state, opportunity, open }) =>
    state === 'unknown' && !opportunity && (severity === 'critical' ||
      (open !== null && (BY_USER.includes(open.until) || open.waitSeconds !== null))))
  // Checks that only the user can decide come first, because waiting does not help them.
  const isByUser = (/** @type {Verdict} */ { open }) => BY_USER.includes(open?.until ?? '')
  const undecided = unknown
    .filter(({ open }) => open !== null && DECIDABLE.includes(open.until))
    .sort((a, b) => Number(isByUser(b)) - Number(isByUser(a)))
  const notLookedAt = unknown.filter(({ open }) => open?.until === 'never')
    .map(({ diagnosis, summary }) => ({ diagnosis, text: summary }))
  const open = undecided.map(({ diagnosis }) => diagnosis)
  const base = {
    diagnosis: null,
    severity: null,
    waitSeconds: null,
    confirmed: confirmed.length,
    open,
    notLookedAt
  }
  if (found.length > 0) {
    const { state, diagnosis, severity } = found[0]
    // A finding that is not urgent must not hide that more severe problems are not ruled out yet.
    const hidesOpen = severity === 'info' && open.length > 0
    const text =
      `${describeFound(found)}${hidesOpen ? ` Still open: ${open.join(', ')}.` : ''}`
    const certainty = state === 'confirmed' ? state : 'suspected'
    return { ...base, state: certainty, diagnosis, severity, text }
  }
  if (verdicts.length === 0) return { ...base, state: 'undecided', text: NOT_JUDGED }
  if (undecided.length > 0) {
    return { ...base, state: 'undecided', ...describeOpen(undecided, workerCount) }
  }
  const ruledOut = verdicts.filter(({ state, opportunity }) => state === 'ok' && !opportunity)
  if (ruledOut.length === 0) return { ...base, state: 'undecided', text: NOTHING_TO_JUDGE }
  const checks = `${ruledOut.length} ${ruledOut.length === 1 ? 'check' : 'checks'}`
  if (notLookedAt.length > 0) {
    const missing = notLookedAt.map(({ diagnosis, text }) => `${diagnosis} (${text})`).join('; ')
    const text = `Nothing found in ${checks}. Not checked: ${missing}.`
    return { ...base, state: 'limited', text }
  }
  const forThread = workerCount > 0 ? ' for the main thread' : ''
  // The process of a worker may have a leak that only its main thread shows.
  const isPart = verdicts.some(({ open }) => open?.until === 'main_thread')
  const text = (isPart
    ? `Nothing found in this thread: ${checks} ruled out. The main thread has the other verdicts ` +
      'on the process.'
    : `Healthy: ${checks} ruled out${forThread}.`) +
    `${nameWorkers(workerCount)}${othersOpen(verdicts)}${toGain(verdicts)}`
  return { ...base, state: 'ok', text }
}

/**
 * Requirements that can still be met: an `unknown` verdict with one of them keeps a target from
 * being healthy.
 */
const DECIDABLE = ['readings', 'setting', 'cause']
const NOT_JUDGED = 'Undecided: no check has an answer yet. Run it longer.'
const NOTHING_TO_JUDGE = 'Undecided: no check is possible in this environment.'

/**
 * Should a suspected cause come before the first finding? The first finding must be its symptom,
 * and either not more severe, or no larger than the cause is known to explain.
 * @param {Verdict} cause
 * @param {Verdict} first
 */
function comesBefore (cause, first) {
  // The diagnoses are loaded for the first finding: an exporter starts without them.
  const { diagnoses } = require('../diagnoses')
  const diagnosis = diagnoses.find(({ id }) => id === cause.diagnosis)
  if (diagnosis === undefined || cause.severity === 'info' ||
    !isSymptom(diagnosis, cause.evidence, first.diagnosis, first.evidence)) return false
  const isMeasured = diagnosis.explainsBytesEach !== undefined && first.state === 'suspected'
  return isMeasured || SEVERITIES.indexOf(cause.severity) <= SEVERITIES.indexOf(first.severity)
}

/**
 * Orders findings: the one to act on first comes first. A finding of severity info comes after all
 * more severe suspicions. A suspected cause comes before its symptom if that is confirmed, or not
 * more severe, or as large as the cause makes it, unless the latest readings do not show the cause.
 * @template {Verdict} V
 * @param {readonly V[]} verdicts
 * @returns {V[]}
 */
function order (verdicts) {
  const rank = (/** @type {V} */ { state, severity }) =>
    2 * Number(severity === 'info') + Number(state === 'suspected')
  const found = verdicts
    .filter(({ state, opportunity }) =>
      !opportunity && (state === 'confirmed' || state === 'suspected'))
    .sort((a, b) => rank(a) - rank(b) || byUrgency(a, b))
  const causes = found.filter(cause =>
    cause.state === 'suspected' && !cause.isHeld && comesBefore(cause, found[0]))
  return [...new Set([...causes.slice(0, 1), ...found])]
}

/** @param {Pick<Verdict, 'state' | 'severity'>} finding */
const certaintyOf = ({ state, severity }) =>
  (state === 'confirmed' ? 'Confirmed' : 'Suspected') +
    (severity === 'info' ? ', not urgent' : '')

/** @param {MaybeAttached[]} found */
function describeFound ([first, ...others]) {
  const { diagnosis, summary } = first
  const also = ['confirmed', 'suspected'].flatMap(state => {
    const names = others.filter(other => other.state === state).map(({ diagnosis }) => diagnosis)
    return names.length > 0 ? [` Also ${state}: ${names.join(', ')}.`] : []
  })
  return `${certaintyOf(first)}: ${diagnosis}: ${summary}${describeAttached(first)}${also.join('')}`
}

/**
 * @param {MaybeAttached} finding
 * @returns {string} sentences on its suspects, holder and known bugs; empty without them
 */
function describeAttached (finding) {
  const lines = shortText(finding.suspects?.suspects ?? null)
  const holder = holderText(finding.holders ?? null)
  const suspected = lines ? ` Suspects: ${lines}.` : ''
  const held = holder ? ` Holder: ${holder}.` : ''
  const known = finding.knownBugs?.filter(({ likely }) => likely) ?? []
  const bug = known.length > 1
    ? ` Likely a known bug: ${known.map(({ id }) => id).join(' or ')}.`
    : known.map(({ text }) => ` ${text}`).join('')
  return `${suspected}${held}${bug}`
}

/**
 * @param {Verdict[]} open
 * @param {number} workerCount
 * @returns {{ text: string, waitSeconds: number | null }}
 */
function describeOpen ([first, ...others], workerCount) {
  const open = [first, ...others]
  const also = others.length > 0
    ? ` Also open: ${others.map(({ diagnosis }) => diagnosis).join(', ')}.`
    : ''
  const reason =
    `Undecided: ${first.diagnosis}: ${first.summary}.${also}${nameWorkers(workerCount)}`
  const waiting = open.filter(({ open }) => open?.until === 'readings')
  // No open check will be decided by waiting: the summary names the setting to change.
  if (waiting.length === 0) return { text: reason, waitSeconds: null }
  const waits = waiting.map(({ open }) => open?.waitSeconds ?? null)
  if (waits.includes(null)) {
    return { text: `${reason} Run it longer, under its usual load.`, waitSeconds: null }
  }
  const waitSeconds = Math.max(...waits.map(Number))
  return { text: `${reason} Run it about ${formatSeconds(waitSeconds)} longer.`, waitSeconds }
}

/** @param {number} count */
function nameWorkers (count) {
  if (count === 0) return ''
  return count === 1
    ? ' Its worker has verdicts of its own.'
    : ` Its ${count} workers have verdicts of their own.`
}

/** @param {readonly Verdict[]} verdicts */
function othersOpen (verdicts) {
  const others = verdicts.filter(({ state, opportunity, open }) =>
    state === 'unknown' && !opportunity && open?.until !== 'main_thread')
  if (others.length === 0) return ''
  return ` Open, none of them critical: ${others.map(({ diagnosis }) => diagnosis).join(', ')}.`
}

/** @param {readonly Verdict[]} verdicts */
function toGain (verdicts) {
  const found = verdicts.filter(({ state, opportunity }) => state === 'confirmed' && opportunity)
  if (found.length === 0) return ''
  return ` Possible saving: ${found.map(({ diagnosis }) => diagnosis).join(', ')}.`
}

/** @param {{ state: string, severity: Verdict['severity'] }} finding */
const rankFinding = ({ state, severity }) =>
  2 * SEVERITIES.indexOf(severity) + (state === 'confirmed' ? 0 : 1)

/**
 * Rank of a target in a list, the worst first: critical before warning, confirmed before suspected,
 * and silent targets before undecided and healthy ones.
 * @param {{ headline?: Pick<Headline, 'state' | 'severity'>, silence: string | null }} target
 * @returns {number} rank; the lowest for the worst
 */
function rankHeadline ({ headline, silence }) {
  const { state = 'undecided', severity = null } = headline ?? {}
  if (severity !== null) return rankFinding({ state, severity })
  return silence ? 20 : 30 + HEADLINE_STATES.indexOf(state)
}

module.exports = { headlineOf, summarize, rankHeadline, HEADLINE_STATES }
