'use strict'

/**
 * The shape of a diagnosis: one memory problem with a name. Each diagnosis has one file in this
 * folder, which index.js lists. The names of further files for parts of a diagnosis begin with its
 * name. Functions have the same names in all files, and each answers one question:
 *
 * - `judge`: what is the problem, or why is there none?
 * - `ruleOut`: is it something else, harmless, or not known yet? It returns the first reason that
 *   applies, or null
 * - `showEvidence`: which numbers show the problem?
 * - `fix`: what is to change?
 *
 * @typedef {import('../signals').SignalName} SignalName
 * @typedef {import('../signals').Signals} Signals
 * @typedef {import('../signals').FigureName} FigureName
 * @typedef {'unknown' | 'ok' | 'suspected' | 'confirmed'} State certainty; if evidence is missing,
 *   the state is `unknown`, never `ok`
 * @typedef {'critical' | 'warning' | 'info'} Severity urgency, as in kubernetes-mixin: it pages
 *   someone, opens a ticket, or adds context
 *
 * @typedef {object} Evidence
 * @property {FigureName} signal
 * @property {number} value
 * @property {number} limit threshold for the value
 * @property {string} unit
 * @property {string} text one sentence with the value and the limit
 *
 * Condition under which an `unknown` becomes decidable. readings: more readings of the same run.
 * setting: another setting of the app, which the summary names. main_thread: none, because only the
 * main thread of the process is judged. never: none, because this platform, process or source lacks
 * the evidence. cause: none, because no diagnosis knows the cause of a measured effect.
 * @typedef {'readings' | 'setting' | 'main_thread' | 'never' | 'cause'} OpenUntil
 * @typedef {{ until: OpenUntil, waitSeconds: number | null }} Open
 *
 * @typedef {Record<string, unknown>} Finding numbers and decisions of a judgement from which its
 *   fix is derived: plain JSON
 */

/** From the most to the least severe. @type {readonly Severity[]} */
const SEVERITIES = Object.freeze(['critical', 'warning', 'info'])

/**
 * @template [Found=Finding]
 * @typedef {object} Judgement
 * @property {State} state
 * @property {Severity} [severity] with `suspected` and `confirmed`, derived from the risk; default:
 *   the severity of the diagnosis
 * @property {string} summary one sentence; for `ok` the reason that rules the problem out, for
 *   `unknown` the missing evidence
 * @property {Found} [finding] with `suspected` and `confirmed`
 * @property {Evidence[]} [evidence] includes the signal that the first fix predicts
 * @property {OpenUntil} [openUntil] with `unknown`; default: readings
 * @property {number | null} [waitSeconds] with `unknown` that awaits readings: time until they
 *   exist, at the present load
 * @property {number | null} [secondsLeft] for growth towards a limit: time to this limit at the
 *   present rate; null or absent if unknown
 * @property {string} [impact] cost or threat of the problem, with numbers
 * @property {number} [seconds] length of the history behind the judgement; contrary evidence must
 *   last as long to withdraw the judgement
 * @property {boolean} [keeps] true if the evidence is too close to the limits to withdraw an
 *   earlier finding
 * @property {boolean} [agrees] true if only a momentary doubt, such as a missing major GC, prevents
 *   certainty
 * @property {boolean} [refutes] true if the evidence withdraws the first suspicion at once; with
 *   `unknown` it also withdraws a confirmed finding, once it has lasted as long as `ok` has to
 * @property {string} [standing] beginning of the summary while newer, weaker evidence has not
 *   lasted long enough to withdraw the finding: a clause without momentary values and without a
 *   full stop
 * @property {string} [latest] what the latest readings show, as a clause. It replaces the summary
 *   after the `standing` of an earlier finding, which has told the growth
 */

/**
 * Captures of memwatch that leave memory in malloc. A large profile is one of deep call stacks.
 * @typedef {'heap_snapshot' | 'large_profile'} LeavesMemory
 */

/**
 * A judgement without a finding.
 * @typedef {Pick<Judgement, 'state' | 'summary' | 'openUntil' | 'waitSeconds' | 'seconds' |
 *   'keeps' | 'refutes' | 'latest'>} Dismissal
 */

/**
 * @typedef {object} Change one change, in every form that can make it
 * @property {string} [flag] for the node command line
 * @property {Record<string, string>} [env] environment variables, whole values
 * @property {string} [dockerfile] lines to paste
 * @property {number} [memoryLimitBytes] memory limit to request, whole MiB
 * @property {number} [memoryRequestBytes] memory request, whole MiB; only together with a memory
 *   limit
 * @property {number} [cpuLimitCores] CPU limit to request
 * @property {string} [kubernetes] container fields of a pod's spec as YAML: env entries, or
 *   resources. It is added when the API exposes the fix
 * @property {string} [code] change of the code
 * @property {string} [note] sentence about the options that the forms leave out, and the reason
 *
 * @typedef {object} Fix
 * @property {string} title
 * @property {Change} change
 * @property {{ signal: FigureName, name: string, from: number, to: number, unit: string }[]}
 *   predicted effects at the same work per second; name: the signal in words
 * @property {string} risk cost, or possible harm
 */

/**
 * @template {SignalName} Required
 * @template {SignalName} Optional
 * @template {Record<string, number>} Limits
 * @template Found
 * @typedef {object} Definition
 * @property {string} id kebab-case
 * @property {string} title one line
 * @property {Severity} severity the worst of all judgements
 * @property {'process' | 'isolate'} scope owner of the problem: an isolate, or a process, which is
 *   judged on its main thread
 * @property {readonly Required[]} requires signals without which the answer is `unknown`
 * @property {readonly Optional[]} uses signals that may be missing. Judges read those of long
 *   histories last: docs/decisions/0069-long-histories-are-read-last.md
 * @property {Limits} limits every number that the judge uses
 * @property {readonly string[]} explains ids of diagnoses that are symptoms of this cause
 * @property {number} [explainsBytesEach] for things that pile up: the most memory that one of them
 *   may hold. Faster growth has another cause
 * @property {import('../signals').FigureName} [explainsGrowthOf] evidence of the growth of the
 *   cause's own memory: faster growth of a symptom has another cause
 * @property {readonly string[]} [openBeside] ids of findings beside which this one stays unknown
 * @property {boolean} [opportunity] a possible gain without a problem: never primary, and without
 *   an alert
 * @property {'objects' | 'buffers' | 'handles'} [holds] kind of the retained objects, if a heap
 *   snapshot shows their holders: verdicts/holders.js
 * @property {readonly LeavesMemory[]} [leftBy] captures that may cause the problem: a finding after
 *   one of them has severity info, and its text says so
 * @property {string} [runbook] name of the alert and its runbook; an opportunity has none
 * @property {(signals: { [Name in Required]: NonNullable<Signals[Name]> } & Pick<Signals,
 *   Optional>, limits: Limits, target: import('@memwatch/agent/protocol/frame').Hello) =>
 *   Judgement<Found>} judge pure; contains no numbers except 0 and 1, which a lint rule checks
 * @property {(finding: Found, target: import('@memwatch/agent/protocol/frame').Hello, limits:
 *   Limits) => Fix[]} fix fixes, best first; pure: derived from the finding, never from the signals
 */

/**
 * Any diagnosis, for code that runs all of them.
 * @typedef {Omit<Definition<SignalName, SignalName, Record<string, number>, any>, 'judge' | 'fix' |
 *   'requires' | 'uses'> & {
 *   requires: readonly SignalName[],
 *   uses: readonly SignalName[],
 *   judge: (signals: any, limits: any, target: import('@memwatch/agent/protocol/frame').Hello) => Judgement<any>,
 *   fix: (finding: any, target: import('@memwatch/agent/protocol/frame').Hello, limits: any) => Fix[]
 * }} Diagnosis
 */

/**
 * Defines a diagnosis with types that let its judge read only the signals that it declares.
 * @template {SignalName} Required
 * @template {SignalName} Optional
 * @template {Record<string, number>} Limits
 * @template Found
 * @param {Definition<Required, Optional, Limits, Found>} definition
 * @returns {Readonly<Definition<Required, Optional, Limits, Found>>}
 */
function defineDiagnosis (definition) {
  return Object.freeze(definition)
}

/**
 * Dismissal of a problem that is ruled out.
 * @param {string} summary the reason
 * @param {Pick<Dismissal, 'seconds' | 'keeps' | 'refutes' | 'latest'>} [more]
 * @returns {Dismissal}
 */
const ok = (summary, more) => ({ state: 'ok', summary, ...more })

/**
 * Dismissal of a problem for which evidence is missing.
 * @param {string} summary the missing evidence
 * @param {Pick<Dismissal, 'openUntil' | 'waitSeconds' | 'seconds' | 'keeps' | 'refutes' |
 *   'latest'>} [more]
 * @returns {Dismissal}
 */
const unknown = (summary, more) => ({ state: 'unknown', summary, ...more })

/**
 * Ranks of the states: the stronger the finding, the higher.
 * @type {Readonly<Record<State, number>>}
 */
const STATE_RANK = Object.freeze({ unknown: 0, ok: 1, suspected: 2, confirmed: 3 })

/** Requirements of an `unknown` verdict that waiting does not meet. @type {readonly string[]} */
const BY_USER = Object.freeze(['setting', 'cause'])

module.exports = { defineDiagnosis, ok, unknown, BY_USER, SEVERITIES, STATE_RANK }
