'use strict'

const { findCase } = require('./case')
const { selectHolders } = require('./holders')
const { findKnownBugs, noteKnownBugs } = require('../known-bugs/match')

/**
 * A verdict with its attachments: suspects and holders from captures, known bugs, and, for a
 * finding of resource-leak or native-memory-leak, details of the process.
 * @typedef {import('./evaluate').Verdict & { suspects: import('./case').AttachedSuspects | null,
 *   captureError: string | null, holders: import('./holders').Holders | null,
 *   mallocAddons: import('./case').Case['mallocAddons'], loadedAddons: string[] | null,
 *   openHandles: import('./case').Case['openHandles'],
 *   knownBugs: import('../known-bugs/match').KnownBugNote[],
 *   followUp: import('./follow-up').FollowUp | null }} AttachedVerdict
 */

/**
 * Verdicts of a target with their attachments, in the order of diagnoses.
 * @param {import('../history/target').Target} target
 * @returns {AttachedVerdict[]}
 */
function attachedVerdicts (target) {
  const known = findCase(target)
  return known.verdicts.map(verdict => {
    const { diagnosis } = verdict
    const isFound = verdict.state === 'suspected' || verdict.state === 'confirmed'
    const suspects = suspectsOf(diagnosis, known) ?? (isFound ? ofSymptom(diagnosis, known) : null)
    return {
      ...verdict,
      suspects,
      captureError:
        isFound && !suspects ? known.captureErrors.get(verdict.diagnosis) ?? null : null,
      holders: selectHolders(verdict, known.holders),
      mallocAddons: isFound && verdict.diagnosis === 'native-memory-leak' ? known.mallocAddons : null,
      loadedAddons: isFound && mayBelongToAddon(verdict, known) ? nameAddons(target) : null,
      openHandles: isFound && verdict.diagnosis === 'resource-leak' ? known.openHandles : null,
      knownBugs: isFound
        ? noteKnownBugs(verdict.diagnosis, knownBugsOf(target, known), suspects?.suspects ?? null)
        : [],
      followUp: known.followUps.get(verdict.diagnosis) ?? null
    }
  })
}

/**
 * @param {string} diagnosis
 * @param {import('./case').Case} known
 * @returns {import('./case').AttachedSuspects | null}
 */
const suspectsOf = (diagnosis, { earlySuspects, suspects }) =>
  earlySuspects.get(diagnosis) ?? suspects.get(diagnosis) ?? null

/**
 * Suspects of a symptom: they were found before its cause was known. The code that GCs interrupt
 * does not cause them, so those of a blocked loop do not count. Diagnoses are loaded with the first
 * frame, so that an exporter starts without them.
 * @param {string} cause diagnosis
 * @param {import('./case').Case} known
 * @returns {import('./case').AttachedSuspects | null}
 */
function ofSymptom (cause, known) {
  const { diagnoses } = require('../diagnoses')
  const explains = diagnoses.find(({ id }) => id === cause)?.explains ?? []
  return explains.filter(id => id !== OF_BUSY_CODE).map(id => suspectsOf(id, known))
    .find(found => found !== null) ?? null
}

/** The diagnosis whose suspects are busy code. */
const OF_BUSY_CODE = 'event-loop-blocked'

/** Places of memory that addons may hold. */
const ADDON_PLACES = ['native', 'external']

/**
 * @param {import('./evaluate').Verdict} verdict
 * @param {import('./case').Case} known
 * @returns {boolean} true if an addon may hold the memory that a verdict is about
 */
function mayBelongToAddon ({ diagnosis }, { settled }) {
  if (diagnosis !== 'native-memory-leak') return false
  return ADDON_PLACES.includes(String(settled.get(diagnosis)?.judgement.finding?.place))
}

/**
 * @param {import('../history/target').Target} target
 * @returns {string[] | null} file names of the loaded addons; null if they are unknown
 */
function nameAddons ({ values: { addons } }) {
  if (addons === undefined) return null
  return [...new Set(Object.keys(addons).map(key => key.slice(key.indexOf('/') + 1)))].sort()
}

/**
 * Known bugs of a target's versions, computed once for each set of packages.
 * @param {import('../history/target').Target} target
 * @param {import('./case').Case} known
 */
function knownBugsOf ({ hello: { node } }, known) {
  if (known.bugs?.of !== known.packages) {
    known.bugs = { of: known.packages, found: findKnownBugs({ node, packages: known.packages }) }
  }
  return known.bugs.found
}

module.exports = { attachedVerdicts }
