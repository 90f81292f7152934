'use strict'

/**
 * @typedef {import('../diagnoses/define-diagnosis').Diagnosis} Diagnosis
 * @typedef {readonly import('../diagnoses/define-diagnosis').Evidence[]} EvidenceList
 */

/** Evidence of the rate at which things pile up. */
const THINGS = /^(?!.*Bytes).*PerSecond$/
/** Evidence of the rate at which memory grows. */
const MEMORY = /^(?:liveHeap|outsideHeap)(?:Lasting)?GrowthBytesPerSecond$/

/**
 * @param {EvidenceList} evidence
 * @param {RegExp} signal
 * @returns {number | undefined}
 */
const valueOf = (evidence, signal) => evidence.find(row => signal.test(row.signal))?.value

/**
 * Is a finding a symptom of another one? Things that pile up explain only as much growth as they
 * can hold: docs/decisions/0100-handles-explain-what-they-can-hold.md
 * @param {Pick<Diagnosis, 'explains' | 'explainsBytesEach'>} cause
 * @param {EvidenceList} causeEvidence
 * @param {string} symptom id of a diagnosis
 * @param {EvidenceList} symptomEvidence
 */
function isSymptom (cause, causeEvidence, symptom, symptomEvidence) {
  const { explains, explainsBytesEach } = cause
  if (!explains.includes(symptom)) return false
  if (explainsBytesEach === undefined) return true
  const growth = valueOf(symptomEvidence, MEMORY)
  const things = valueOf(causeEvidence, THINGS) ?? 0
  return growth !== undefined && growth <= explainsBytesEach * things
}

module.exports = { isSymptom }
