'use strict'

/**
 * The shape of a diagnosis: one memory problem that can be named. One file each, in this folder,
 * listed in index.js; parts that another file holds begin with its name. Its functions answer one
 * question each, and bear the same names everywhere:
 *
 * - `judge`: what was found, or why nothing is
 * - `ruleOut`: is it something else, harmless, or not known yet? The first reason that holds, or
 *   null
 * - `showEvidence`: which numbers show what was found?
 * - `fix`: what is to change?
 *
 * @typedef {import('../signals').SignalName} SignalName
 * @typedef {import('../signals').Signals} Signals
 * @typedef {import('../signals').FigureName} FigureName
 * @typedef {'unknown' | 'ok' | 'suspected' | 'confirmed'} State how sure; `unknown` where evidence
 *   is missing, never `ok`
 * @typedef {'critical' | 'warning' | 'info'} Severity how bad; by kubernetes-mixin's meaning: page,
 *   ticket, context
 *
 * @typedef {object} Evidence
 * @property {FigureName} signal
 * @property {number} value
 * @property {number} limit what the value was held against
 * @property {string} unit
 * @property {string} text one sentence with both
 *
 * What would decide an `unknown`. readings: more of the same run. setting: another setting of the
 * app, which the summary names. main_thread: nothing here, as the main thread of the process is
 * judged. never: nothing here, as this platform, this process or this source lacks the evidence.
 * @typedef {'readings' | 'setting' | 'main_thread' | 'never'} OpenUntil
 * @typedef {{ until: OpenUntil, waitSeconds: number | null }} Open
 *
 * @typedef {Record<string, unknown>} Finding what a judge decided, in the diagnosis' own terms:
 *   plain JSON, and all that its fix is made from
 */

/** From the most to the least severe. @type {readonly Severity[]} */
const SEVERITIES = Object.freeze(['critical', 'warning', 'info'])

/**
 * @template [Found=Finding]
 * @typedef {object} Judgement
 * @property {State} state
 * @property {Severity} [severity] with `suspected` and `confirmed`, from what is at stake; that of
 *   the diagnosis where it is left out
 * @property {string} summary one sentence; for `ok` it says why the problem is ruled out, for
 *   `unknown` what is missing
 * @property {Found} [finding] with `suspected` and `confirmed`
 * @property {Evidence[]} [evidence] holds the signal that the first fix predicts
 * @property {OpenUntil} [openUntil] with `unknown`; readings where it is left out
 * @property {number | null} [waitSeconds] with `unknown` until readings: time to them, at the
 *   present load
 * @property {number | null} [secondsLeft] with growth towards a limit: until the process reaches it
 *   at the present rate; null or left out where that cannot be told
 * @property {string} [impact] what it costs or threatens, with numbers
 * @property {number} [seconds] of history that it rests on: as long must the contrary hold to
 *   withdraw it
 * @property {boolean} [keeps] the evidence is too close to that of a finding to withdraw one
 * @property {string} [standing] begins the summary while newer evidence is weaker, and has not
 *   lasted: a clause in which nothing is of the moment, without its full stop
 */

/**
 * A judgement that finds nothing.
 * @typedef {Pick<Judgement, 'state' | 'summary' | 'openUntil' | 'waitSeconds' | 'seconds' |
 *   'keeps'>} Dismissal
 */

/**
 * @typedef {object} Change the same change in the forms it can be made in; every form that applies
 *   is there
 * @property {string} [flag] for the node command line
 * @property {Record<string, string>} [env] environment variables, whole values
 * @property {string} [dockerfile] lines to paste
 * @property {number} [memoryLimitBytes] memory limit to ask for, whole MiB
 * @property {string} [kubernetes] of the container in a pod's spec: env entries, or resources;
 *   YAML, made where it is exposed
 * @property {string} [code] what to change in the code
 * @property {string} [note] what the forms leave out, and why: a sentence
 *
 * @typedef {object} Fix
 * @property {string} title
 * @property {Change} change
 * @property {{ signal: FigureName, name: string, from: number, to: number, unit: string }[]}
 *   predicted at the same work a second; name: the signal in words
 * @property {string} risk what it costs, or what could go wrong
 */

/**
 * @template {SignalName} Required
 * @template {SignalName} Optional
 * @template {Record<string, number>} Limits
 * @template Found
 * @typedef {object} Definition
 * @property {string} id kebab-case
 * @property {string} title one line
 * @property {Severity} severity the worst it can be; a judgement may say less
 * @property {'process' | 'isolate'} scope what it is a problem of; a process is judged on its main
 *   thread
 * @property {readonly Required[]} requires signals without which the answer is `unknown`
 * @property {readonly Optional[]} uses signals that may be missing
 * @property {Limits} limits every number the judge uses
 * @property {readonly string[]} explains ids of diagnoses that are symptoms of this cause
 * @property {boolean} [opportunity] something to gain where nothing is wrong: never primary, and no
 *   alert
 * @property {string} [runbook] name of the alert and its runbook; an opportunity has none
 * @property {(signals: { [Name in Required]: NonNullable<Signals[Name]> } &
 *   Pick<Signals, Optional>, limits: Limits, target: import('@memwatch/agent/protocol/frame').Hello) =>
 *   Judgement<Found>} judge pure; no number stands in it but 0 and 1, which a lint rule holds
 * @property {(finding: Found, target: import('@memwatch/agent/protocol/frame').Hello, limits: Limits) => Fix[]} fix
 *   best first; pure, and made from the finding: it never decides again what its judge decided
 */

/**
 * Any diagnosis, for those who run them all and know none.
 * @typedef {Omit<Definition<SignalName, SignalName, Record<string, number>, any>, 'judge' | 'fix' |
 *   'requires' | 'uses'> & {
 *   requires: readonly SignalName[],
 *   uses: readonly SignalName[],
 *   judge: (signals: any, limits: any, target: import('@memwatch/agent/protocol/frame').Hello) => Judgement<any>,
 *   fix: (finding: any, target: import('@memwatch/agent/protocol/frame').Hello, limits: any) => Fix[]
 * }} Diagnosis
 */

/**
 * A diagnosis with its types checked: the judge can read no signal that it does not declare.
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
 * @param {string} summary why
 * @param {Pick<Dismissal, 'seconds' | 'keeps'>} [more]
 * @returns {Dismissal}
 */
const ok = (summary, more) => ({ state: 'ok', summary, ...more })

/**
 * Evidence is missing.
 * @param {string} summary which
 * @param {Pick<Dismissal, 'openUntil' | 'waitSeconds' | 'keeps'>} [more]
 * @returns {Dismissal}
 */
const unknown = (summary, more) => ({ state: 'unknown', summary, ...more })

/**
 * How much a state says that something was found.
 * @type {Readonly<Record<State, number>>}
 */
const STATE_RANK = Object.freeze({ unknown: 0, ok: 1, suspected: 2, confirmed: 3 })

module.exports = { defineDiagnosis, ok, unknown, SEVERITIES, STATE_RANK }
