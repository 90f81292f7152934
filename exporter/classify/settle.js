'use strict'

/** Evaluations in a row that must agree before a verdict is raised, so that one odd window raises nothing. */
const RAISE_AFTER = 2
/** Seconds without the finding before a verdict is withdrawn, confirmed or suspected: what comes and goes is one finding. */
const WITHDRAW_AFTER_SECONDS = 30

/**
 * What settling remembers of a diagnosis on a target.
 * @typedef {object} SettledState
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {import('../diagnoses/define-diagnosis').Judgement} judgement the one that the state rests on
 * @property {number} agreed evaluations in a row that were confirmed
 * @property {number} confirmedAtSeconds uptime when it was first confirmed; NaN when it is not
 * @property {number} seenAtSeconds uptime when a judgement last agreed with the state
 * @typedef {Map<string, SettledState>} Settled by diagnosis id
 */

/**
 * Hysteresis: a verdict is raised when judgements agree, and withdrawn when the evidence against it has lasted. Missing
 * evidence (`unknown`) withdraws nothing: an idle minute does not heal.
 *
 * @param {SettledState | undefined} before
 * @param {import('../diagnoses/define-diagnosis').Judgement} judgement
 * @param {number} nowSeconds uptime
 * @returns {SettledState}
 */
function settle (before, judgement, nowSeconds) {
  const wasConfirmed = before?.state === 'confirmed'
  if (judgement.state === 'confirmed') {
    const agreed = (before?.agreed ?? 0) + 1
    const raised = wasConfirmed || agreed >= RAISE_AFTER
    return {
      state: raised ? 'confirmed' : 'suspected',
      judgement,
      agreed,
      confirmedAtSeconds: wasConfirmed ? before.confirmedAtSeconds : raised ? nowSeconds : NaN,
      seenAtSeconds: nowSeconds
    }
  }
  if (wasConfirmed) {
    const holds = judgement.state === 'unknown' || nowSeconds - before.seenAtSeconds < WITHDRAW_AFTER_SECONDS
    // While evidence is missing the clock of the withdrawal stands still.
    const seenAtSeconds = judgement.state === 'unknown' ? nowSeconds : before.seenAtSeconds
    if (holds) return { ...before, agreed: 0, seenAtSeconds }
  }
  if (judgement.state !== 'suspected' && before?.state === 'suspected' && nowSeconds - before.seenAtSeconds < WITHDRAW_AFTER_SECONDS) {
    return { ...before, agreed: 0 }
  }
  return { state: judgement.state, judgement, agreed: 0, confirmedAtSeconds: NaN, seenAtSeconds: nowSeconds }
}

module.exports = { settle }
