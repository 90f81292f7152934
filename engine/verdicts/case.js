'use strict'

/**
 * What the last capture for a diagnosis points at.
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

/** What is found on a target. The target itself is telemetry only: history/target.js. */
class Case {
  /**
   * In the order of diagnoses; empty before the first evaluation.
   * @type {import('./evaluate').Verdict[]}
   */
  verdicts = []
  /** @type {import('./settle').Settled} */
  settled = new Map()
  /**
   * The lines of code that captures point at, by diagnosis.
   * @type {Map<string, AttachedSuspects>}
   */
  suspects = new Map()
  /**
   * What the process holds open, the commonest first, while resource-leak is found; null where
   * that cannot be read.
   * @type {{ count: number, text: string }[] | null}
   */
  openHandles = null
  /**
   * Severities that verdicts stand at, by diagnosis.
   * @type {Map<string, StandingSeverity>}
   */
  severities = new Map()
  /** Uptime at the last evaluation. */
  evaluatedAtSeconds = -Infinity
  /**
   * Uptime when the fix of a diagnosis was last computed, and the kind of its finding.
   * @type {Map<string, { atSeconds: number, kind: string }>}
   */
  recommended = new Map()
}

/** A case ends with its target. @type {WeakMap<object, Case>} */
const cases = new WeakMap()

/**
 * @param {import('../history/target').Target} target
 * @returns {Case} a new one where nobody asked for it before
 */
function findCase (target) {
  let found = cases.get(target)
  if (!found) cases.set(target, found = new Case())
  return found
}

module.exports = { Case, findCase }
