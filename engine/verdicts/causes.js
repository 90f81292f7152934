'use strict'

/**
 * @typedef {import('../diagnoses/define-diagnosis').Diagnosis} Diagnosis
 * @typedef {readonly import('../diagnoses/define-diagnosis').Evidence[]} EvidenceList
 */

/** Evidence of the rate at which things pile up. */
const THINGS = /^(?!.*Bytes).*PerSecond$/
/** Evidence of the rate at which memory grows. */
const MEMORY = /^(?:liveHeap|outsideHeap)(?:Lasting)?GrowthBytesPerSecond$/
/** Growth of the cause's own memory and of the symptom differ by this factor at most. */
const SAME_GROWTH_RATIO = 1.25

/**
 * @param {EvidenceList} evidence
 * @param {RegExp} signal
 * @returns {number | undefined}
 */
const valueOf = (evidence, signal) => evidence.find(row => signal.test(row.signal))?.value

/**
 * Is a finding a symptom of another one? Things that pile up explain only as much growth as they
 * can hold: docs/decisions/0100-handles-explain-what-they-can-hold.md. A cause whose own memory
 * grows explains about as much growth.
 * @param {Pick<Diagnosis, 'explains' | 'explainsBytesEach' | 'explainsGrowthOf'>} cause
 * @param {EvidenceList} causeEvidence
 * @param {string} symptom id of a diagnosis
 * @param {EvidenceList} symptomEvidence
 */
function isSymptom (cause, causeEvidence, symptom, symptomEvidence) {
  const { explains, explainsBytesEach, explainsGrowthOf } = cause
  if (!explains.includes(symptom)) return false
  const growth = valueOf(symptomEvidence, MEMORY)
  if (explainsGrowthOf !== undefined && growth !== undefined) {
    const own = causeEvidence.find(({ signal }) => signal === explainsGrowthOf)?.value ?? 0
    return growth <= SAME_GROWTH_RATIO * own
  }
  if (explainsBytesEach === undefined) return true
  const things = valueOf(causeEvidence, THINGS) ?? 0
  return growth !== undefined && growth <= explainsBytesEach * things
}

module.exports = { isSymptom }
