'use strict'

const { STATE_RANK } = require('../diagnoses/define-diagnosis')

/**
 * Evaluations in a row that must agree before a verdict is raised, so that one odd window raises
 * nothing.
 */
const RAISE_AFTER = 2
/**
 * A finding is withdrawn when nothing was found for half as long as it was seen, within these
 * bounds: what a filled cache did in its first minute is no suspicion in its third. One that was
 * withdrawn and came back is held longer each time, up to half a day: what comes and goes is one
 * finding.
 */
const WITHDRAW_LEAST_SECONDS = 30
const WITHDRAW_SHARE = 0.5
const WITHDRAW_MOST_SECONDS = 6 * 3600
const LONGER_EACH_TIME = 4
const LONGEST_SECONDS = 43_200

/** @typedef {import('../diagnoses/define-diagnosis').Judgement} Judgement */

/**
 * What settling remembers of a diagnosis on a target.
 * @typedef {object} SettledState
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {Judgement} judgement the one that the state
 *   rests on
 * @property {number} agreed evaluations in a row that were confirmed
 * @property {number} confirmedAtSeconds uptime when it was first confirmed; NaN when it is not
 * @property {number} seenAtSeconds uptime when a judgement last agreed with the state
 * @property {number} [withdrawals] how often a finding was withdrawn
 * @typedef {Map<string, SettledState>} Settled by diagnosis id
 */

/**
 * Hysteresis: a verdict is raised when judgements agree, and withdrawn when the evidence against it
 * has lasted for as long as that which raised it. Missing evidence (`unknown`) withdraws no
 * confirmed verdict: an idle minute does not heal.
 *
 * @param {SettledState | undefined} before
 * @param {Judgement} judgement
 * @param {number} nowSeconds uptime
 * @returns {SettledState}
 */
function settle (before, judgement, nowSeconds) {
  const wasConfirmed = before?.state === 'confirmed'
  const withdrawals = before?.withdrawals ?? 0
  if (judgement.state === 'confirmed') {
    const agreed = (before?.agreed ?? 0) + 1
    const raised = wasConfirmed || agreed >= RAISE_AFTER
    return {
      state: raised ? 'confirmed' : 'suspected',
      judgement,
      agreed,
      confirmedAtSeconds: wasConfirmed ? before.confirmedAtSeconds : raised ? nowSeconds : NaN,
      seenAtSeconds: nowSeconds,
      withdrawals
    }
  }
  if (before && STATE_RANK[judgement.state] < STATE_RANK[before.state]) {
    // While evidence is missing the clock of a confirmed verdict's withdrawal stands still; so it
    // does where the evidence is close to that which raised it.
    const standsStill = judgement.keeps || (wasConfirmed && judgement.state === 'unknown')
    const seenAtSeconds = standsStill ? nowSeconds : before.seenAtSeconds
    if (nowSeconds - seenAtSeconds < withdrawAfterSeconds(before)) {
      const stands = standOn(before.judgement, judgement)
      return { ...before, judgement: stands, agreed: 0, seenAtSeconds }
    }
  }
  const isWithdrawn =
    before !== undefined &&
    STATE_RANK[before.state] >= STATE_RANK.suspected &&
    STATE_RANK[judgement.state] < STATE_RANK.suspected
  return {
    state: judgement.state,
    judgement,
    agreed: 0,
    confirmedAtSeconds: NaN,
    seenAtSeconds: nowSeconds,
    withdrawals: isWithdrawn ? withdrawals + 1 : withdrawals
  }
}

/**
 * What is said of a finding that stands against a weaker judgement. What was true when it was
 * found, as a time to the limit, is not said any more.
 * @param {Judgement} found
 * @param {Judgement} weaker
 * @returns {Judgement}
 */
function standOn (found, weaker) {
  const { standing } = found
  if (standing === undefined) return found
  const { severity, evidence, standing: latest } = weaker
  switch (weaker.state) {
    case 'suspected':
      return {
        ...found,
        severity,
        evidence,
        secondsLeft: null,
        summary: `${latest ?? standing}.`,
        impact: undefined
      }
    case 'unknown':
      return {
        ...found,
        secondsLeft: null,
        summary: `${standing}; there are too few readings since to judge it again.`,
        impact: undefined
      }
    default:
      return {
        ...found,
        secondsLeft: null,
        summary: `${standing}; the latest readings do not show that growth.`,
        impact: undefined
      }
  }
}

/** @param {SettledState} before */
function withdrawAfterSeconds ({ state, judgement: { seconds = 0 }, withdrawals = 0 }) {
  // What was ruled out is unknown again at once, unless that took hours, too.
  const least = state === 'ok' ? 0 : WITHDRAW_LEAST_SECONDS
  const first = Math.min(WITHDRAW_MOST_SECONDS, Math.max(least, WITHDRAW_SHARE * seconds))
  return Math.min(LONGEST_SECONDS, first * LONGER_EACH_TIME ** (state === 'ok' ? 0 : withdrawals))
}

module.exports = { settle }
