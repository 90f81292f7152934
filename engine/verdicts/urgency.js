'use strict'

const { SEVERITIES } = require('../diagnoses/define-diagnosis')

/** @typedef {import('./evaluate').Verdict} Verdict */

/**
 * @param {{ severity: Verdict['severity'] }} a
 * @param {{ severity: Verdict['severity'] }} b
 * @returns {number} negative if a is more severe
 */
const bySeverity = (a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity)

/**
 * @param {Pick<Verdict, 'severity' | 'secondsLeft'>} a
 * @param {Pick<Verdict, 'severity' | 'secondsLeft'>} b
 * @returns {number} negative if a is more severe, or as severe and with less time left
 */
const byUrgency = (a, b) => bySeverity(a, b) || compareTimes(a.secondsLeft, b.secondsLeft)

/**
 * @param {number | null} a seconds
 * @param {number | null} b seconds
 */
const compareTimes = (a, b) => a === b ? 0 : (a ?? Infinity) - (b ?? Infinity)

/**
 * The confirmed finding to act on first: the most severe one; among equals, the one with the least
 * time left, then the first in the order of diagnoses.
 * @template {Verdict} V
 * @param {readonly V[]} verdicts
 * @returns {V | null}
 */
function primaryOf (verdicts) {
  return verdicts.filter(({ state, opportunity }) => state === 'confirmed' && !opportunity)
    .sort(byUrgency)[0] ?? null
}

module.exports = { bySeverity, byUrgency, primaryOf }
