'use strict'

/**
 * Suspects for a diagnosis, from the newest capture.
 * @typedef {object} AttachedSuspects
 * @property {string} captureId
 * @property {string} kind
 * @property {number} atUnixMs
 * @property {import('../text/suspect-text').Suspects} suspects
 */

/**
 * @typedef {object} StandingSeverity
 * @property {import('../diagnoses/define-diagnosis').Severity} severity
 * @property {number} seenAtSeconds uptime
 */

/**
 * Packages of a target whose packages were not read yet.
 * @type {ReadonlyMap<string, readonly string[]>}
 */
const NONE = new Map()

/**
 * Case of a target: its verdicts and all that is attached to them. The target itself holds
 * telemetry only: history/target.js.
 */
class Case {
  /**
   * Verdicts in the order of diagnoses; empty before the first evaluation.
   * @type {import('./evaluate').Verdict[]}
   */
  verdicts = []
  /** @type {import('./settle').Settled} */
  settled = new Map()
  /**
   * Lines of code that captures identified as suspects, by diagnosis.
   * @type {Map<string, AttachedSuspects>}
   */
  suspects = new Map()
  /**
   * Suspects of the first readings of profiles that still run, by diagnosis.
   * @type {Map<string, AttachedSuspects>}
   */
  earlySuspects = new Map()
  /**
   * Reasons why the last capture failed or was refused, by the diagnosis that caused it.
   * @type {Map<string, string>}
   */
  captureErrors = new Map()
  /**
   * Piles and their holders in the last analysed heap snapshot.
   * @type {import('./holders').Holders | null}
   */
  holders = null
  /**
   * Uptime at the newest capture, by its kind, and at the newest `large_profile`.
   * @type {Map<string, number>}
   */
  captured = new Map()
  /**
   * Versions of packages with known bugs, by name, once they are read.
   * @type {ReadonlyMap<string, readonly string[]>}
   */
  packages = NONE
  /**
   * Known bugs of these versions.
   * @type {{ of: Case['packages'], found: import('../known-bugs/match').KnownBugMatch[] } |
   *   undefined}
   */
  bugs
  /**
   * Open handles of the process at the last finding of resource-leak, the most frequent kind first;
   * null if they are unreadable.
   * @type {{ count: number, text: string }[] | null}
   */
  openHandles = null
  /**
   * Loaded addons with a malloc of their own, at the last finding of native-memory-leak; null if
   * they are unreadable.
   * @type {string[] | null}
   */
  mallocAddons = null
  /**
   * Current severities of verdicts, after hysteresis, by diagnosis.
   * @type {Map<string, StandingSeverity>}
   */
  severities = new Map()
  /**
   * Follow-ups of fixes with which this process was started, by diagnosis.
   * @type {Map<string, import('./follow-up').FollowUp>}
   */
  followUps = new Map()
  /** Uptime at the last change of a finding's state, or at the first evaluation. */
  unchangedSinceSeconds = Infinity
  /** Uptime at the last evaluation. */
  evaluatedAtSeconds = -Infinity
  /** RSS at the last evaluation. */
  evaluatedRssBytes = 0
  /**
   * Finding to which the last fix belongs, by diagnosis: its kind and live heap; 0 without one.
   * @type {Map<string, { kind: string, liveBytes: number }>}
   */
  recommended = new Map()
}

/** Cases by target. The entry disappears with its target. @type {WeakMap<object, Case>} */
const cases = new WeakMap()

/**
 * @param {import('../history/target').Target} target
 * @returns {Case} case of the target, created on first use
 */
function findCase (target) {
  let found = cases.get(target)
  if (!found) cases.set(target, found = new Case())
  return found
}

/**
 * True if a verdict states a problem; an opportunity is none.
 * @param {import('./evaluate').Verdict} verdict
 */
const isFinding = ({ state, opportunity }) =>
  !opportunity && (state === 'suspected' || state === 'confirmed')

/**
 * True if a target has a finding.
 * @param {import('../history/target').Target} target
 */
const isIll = target => findCase(target).verdicts.some(isFinding)

/**
 * True if V8 collects a nearly full heap again and again. It ends a process after four major GCs in
 * a row that free little, if the app had less than 40 % of the time between them. So memwatch then
 * runs no full GC of its own: docs/decisions/0116-no-full-gc-in-a-full-heap.md.
 * @param {import('../history/target').Target} target
 */
const thrashes = target => findCase(target).verdicts.some(verdict =>
  verdict.diagnosis === 'heap-limit-thrash' && isFinding(verdict) && verdict.severity !== 'info')

module.exports = { Case, findCase, isFinding, isIll, thrashes }
