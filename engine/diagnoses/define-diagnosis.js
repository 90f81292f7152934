'use strict'

/**
 * The shape of a diagnosis: one memory problem with a name. Each has one file in this folder,
 * listed in index.js; files with parts of it begin with its name. Its functions answer one question
 * each, under the same names everywhere:
 *
 * - `judge`: what is the problem, or why is there none?
 * - `ruleOut`: is it something else, harmless, or not known yet? The first reason that applies, or
 *   null
 * - `showEvidence`: which numbers show the problem?
 * - `fix`: what is to change?
 *
 * @typedef {import('../signals').SignalName} SignalName
 * @typedef {import('../signals').Signals} Signals
 * @typedef {import('../signals').FigureName} FigureName
 * @typedef {'unknown' | 'ok' | 'suspected' | 'confirmed'} State certainty; `unknown` where evidence
 *   is missing, never `ok`
 * @typedef {'critical' | 'warning' | 'info'} Severity urgency, in the sense of kubernetes-mixin:
 *   page, ticket, context
 *
 * @typedef {object} Evidence
 * @property {FigureName} signal
 * @property {number} value
 * @property {number} limit the limit that the value is compared with
 * @property {string} unit
 * @property {string} text one sentence with both
 *
 * Requirement that decides an `unknown`. readings: more readings of the same run. setting: another
 * setting of the app, which the summary names. main_thread: nothing here, because the main thread
 * of the process is judged. never: nothing here, because this platform, process or source lacks the
 * evidence. cause: nothing here, because an effect is measured and no diagnosis knows its cause.
 * @typedef {'readings' | 'setting' | 'main_thread' | 'never' | 'cause'} OpenUntil
 * @typedef {{ until: OpenUntil, waitSeconds: number | null }} Open
 *
 * @typedef {Record<string, unknown>} Finding decision of a judge in the terms of its diagnosis:
 *   plain JSON, and the only input of its fix
 */

/** From the most to the least severe. @type {readonly Severity[]} */
const SEVERITIES = Object.freeze(['critical', 'warning', 'info'])

/**
 * @template [Found=Finding]
 * @typedef {object} Judgement
 * @property {State} state
 * @property {Severity} [severity] with `suspected` and `confirmed`, from the risk; default: the
 *   severity of the diagnosis
 * @property {string} summary one sentence; for `ok` the reason that rules the problem out, for
 *   `unknown` the missing evidence
 * @property {Found} [finding] with `suspected` and `confirmed`
 * @property {Evidence[]} [evidence] includes the signal that the first fix predicts
 * @property {OpenUntil} [openUntil] with `unknown`; default: readings
 * @property {number | null} [waitSeconds] with `unknown` until readings: time to them, at the
 *   present load
 * @property {number | null} [secondsLeft] for growth towards a limit: time to it at the present
 *   rate; null or absent if unknown
 * @property {string} [impact] its cost or threat, with numbers
 * @property {number} [seconds] length of the history behind it: contrary evidence must last as long
 *   to withdraw it
 * @property {boolean} [keeps] the evidence is too close to that of a finding to withdraw one
 * @property {string} [standing] beginning of the summary while newer evidence is weaker but has not
 *   lasted: a clause with no momentary value and no full stop
 */

/**
 * A judgement without a finding.
 * @typedef {Pick<Judgement, 'state' | 'summary' | 'openUntil' | 'waitSeconds' | 'seconds' |
 *   'keeps'>} Dismissal
 */

/**
 * @typedef {object} Change one change in all forms in which it is possible
 * @property {string} [flag] for the node command line
 * @property {Record<string, string>} [env] environment variables, whole values
 * @property {string} [dockerfile] lines to paste
 * @property {number} [memoryLimitBytes] memory limit to request, whole MiB
 * @property {number} [memoryRequestBytes] beside a limit: memory request, whole MiB
 * @property {string} [kubernetes] container fields of a pod's spec: env entries, or resources;
 *   YAML, created when exposed
 * @property {string} [code] change of the code
 * @property {string} [note] what the forms leave out, and why: a sentence
 *
 * @typedef {object} Fix
 * @property {string} title
 * @property {Change} change
 * @property {{ signal: FigureName, name: string, from: number, to: number, unit: string }[]}
 *   predicted at the same work a second; name: the signal in words
 * @property {string} risk cost, or what could go wrong
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
 * @property {'process' | 'isolate'} scope subject of the problem; a process is judged on its main
 *   thread
 * @property {readonly Required[]} requires signals without which the answer is `unknown`
 * @property {readonly Optional[]} uses signals that may be missing
 * @property {Limits} limits every number that the judge uses
 * @property {readonly string[]} explains ids of diagnoses that are symptoms of this cause
 * @property {boolean} [opportunity] a possible gain without a problem: never primary, and without
 *   an alert
 * @property {'objects' | 'buffers' | 'handles'} [holds] what is retained, where a heap snapshot
 *   shows its holders: verdicts/holders.js
 * @property {string} [leftBy] kind of capture that may leave it behind: a finding after one is of
 *   severity info, and says so
 * @property {string} [runbook] name of the alert and its runbook; an opportunity has none
 * @property {(signals: { [Name in Required]: NonNullable<Signals[Name]> } &
 *   Pick<Signals, Optional>, limits: Limits, target: import('@memwatch/agent/protocol/frame').Hello) =>
 *   Judgement<Found>} judge pure; no number stands in it but 0 and 1, which a lint rule holds
 * @property {(finding: Found, target: import('@memwatch/agent/protocol/frame').Hello, limits: Limits) => Fix[]} fix
 *   best first; pure, and made from the finding: it never decides again
 */

/**
 * Any diagnosis, for code that runs them all.
 * @typedef {Omit<Definition<SignalName, SignalName, Record<string, number>, any>, 'judge' | 'fix' |
 *   'requires' | 'uses'> & {
 *   requires: readonly SignalName[],
 *   uses: readonly SignalName[],
 *   judge: (signals: any, limits: any, target: import('@memwatch/agent/protocol/frame').Hello) => Judgement<any>,
 *   fix: (finding: any, target: import('@memwatch/agent/protocol/frame').Hello, limits: any) => Fix[]
 * }} Diagnosis
 */

/**
 * Defines a diagnosis with checked types: the judge can read only signals that it declares.
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
 * The problem is ruled out.
 * @param {string} summary the reason
 * @param {Pick<Dismissal, 'seconds' | 'keeps'>} [more]
 * @returns {Dismissal}
 */
const ok = (summary, more) => ({ state: 'ok', summary, ...more })

/**
 * Evidence is missing.
 * @param {string} summary the missing evidence
 * @param {Pick<Dismissal, 'openUntil' | 'waitSeconds'>} [more]
 * @returns {Dismissal}
 */
const unknown = (summary, more) => ({ state: 'unknown', summary, ...more })

/**
 * Rank of the states, by the strength of the finding.
 * @type {Readonly<Record<State, number>>}
 */
const STATE_RANK = Object.freeze({ unknown: 0, ok: 1, suspected: 2, confirmed: 3 })

module.exports = { defineDiagnosis, ok, unknown, SEVERITIES, STATE_RANK }
