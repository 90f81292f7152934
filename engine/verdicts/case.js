'use strict'

const { selectHolders } = require('./holders')

/**
 * Suspects of the newest capture for a diagnosis.
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

/** Findings of a target. The target itself holds telemetry only: history/target.js. */
class Case {
  /**
   * In the order of diagnoses; empty before the first evaluation.
   * @type {import('./evaluate').Verdict[]}
   */
  verdicts = []
  /** @type {import('./settle').Settled} */
  settled = new Map()
  /**
   * Lines of code that captures identified, by diagnosis.
   * @type {Map<string, AttachedSuspects>}
   */
  suspects = new Map()
  /**
   * Piles in the last heap snapshot that was analysed, and their holders.
   * @type {import('./holders').Holders | null}
   */
  holders = null
  /**
   * Open handles of the process, the most frequent first, while resource-leak is found; null if
   * they are unreadable.
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
   * Uptime at the last computation of a diagnosis's fix, and the kind of its finding.
   * @type {Map<string, { atSeconds: number, kind: string }>}
   */
  recommended = new Map()

  /** Verdicts with the lines of code and the holders that captures add. */
  get explained () {
    return this.verdicts.map(verdict => ({
      ...verdict,
      suspects: this.suspects.get(verdict.diagnosis) ?? null,
      holders: selectHolders(verdict, this.holders)
    }))
  }
}

/** Cases by target. The entry disappears with its target. @type {WeakMap<object, Case>} */
const cases = new WeakMap()

/**
 * @param {import('../history/target').Target} target
 * @returns {Case} created on first use
 */
function findCase (target) {
  let found = cases.get(target)
  if (!found) cases.set(target, found = new Case())
  return found
}

module.exports = { Case, findCase }
