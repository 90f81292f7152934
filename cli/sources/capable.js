'use strict'

const { diagnoses: allDiagnoses } = require('@memwatch/engine/diagnoses/index')
const { atBothEnds } = require('./bounded')
const { cannotTell } = require('./support')

/** @typedef {import('@memwatch/engine/diagnoses/define-diagnosis').Diagnosis} Diagnosis */

/**
 * Returns the diagnoses for a source. Their rules are unchanged, but a diagnosis is `unknown` if
 * the source lacks its data.
 * @param {import('./define-source').Source} source
 * @param {import('./define-source').Given} given
 * @param {() => import('./bounded').Bounds | undefined} [bounds]
 * @returns {Diagnosis[]}
 */
function capable (source, given, bounds) {
  const beyond = cannotTell(source, given)
  return allDiagnoses.map(diagnosis => {
    const why = beyond.get(diagnosis.id)
    if (why !== undefined) {
      const judge = () => /** @type {const} */ ({
        state: 'unknown', openUntil: 'never', summary: why
      })
      return { ...diagnosis, requires: [], judge }
    }
    const open = bounds ? atBothEnds(diagnosis, bounds) : diagnosis
    return { ...open, judge: limited(source, diagnosis.id, open.judge) }
  })
}

/**
 * @param {import('./define-source').Source} source
 * @param {string} id
 * @param {Diagnosis['judge']} judge
 * @returns {Diagnosis['judge']}
 */
function limited ({ unsure = {}, cannotExclude = {} }, id, judge) {
  const neverConfirmed = (id in unsure) || ('*' in unsure)
  return (signals, limits, target) => {
    const judgement = judge(signals, limits, target)
    if (judgement.state === 'confirmed' && neverConfirmed) {
      return { ...judgement, state: 'suspected' }
    }
    if (judgement.state === 'ok' && id in cannotExclude) {
      const summary = `${judgement.summary}; but ${cannotExclude[id]}`
      return { state: 'unknown', openUntil: 'never', summary }
    }
    return judgement
  }
}

module.exports = { capable }
