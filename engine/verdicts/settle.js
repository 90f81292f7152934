'use strict'

const { BY_USER, STATE_RANK } = require('../diagnoses/define-diagnosis')
const { LASTING_LIMITS } = require('../diagnoses/lasting-growth')

/** Evaluations in a row that must agree before a verdict is raised: one window raises nothing. */
const RAISE_AFTER = 2
/**
 * Growth over more than two hours must also be certain for a share of its time beyond that, up to
 * half an hour: ten minutes out of ten hours raise nothing. A near limit shortens this wait to a
 * tenth of the time that is left.
 */
const RAISE_SHARE = 0.05
const RAISE_FROM_SECONDS = 7200
const RAISE_MOST_SECONDS = 1800
const RAISE_LEFT_SHARE = 0.1
/**
 * Bounds of the time without evidence before a finding is withdrawn. The time is half the time for
 * which the finding was observed. So a cache that filled up in its first minute is no longer
 * suspected in its third. A finding that returns after a withdrawal is held longer each time, up to
 * half a day: recurring evidence is one finding.
 */
const WITHDRAW_LEAST_SECONDS = 30
const WITHDRAW_SHARE = 0.5
const WITHDRAW_MOST_SECONDS = 9 * 3600
/** The same for a confirmed finding: memory leaked per request hardly grows on weekends. */
const WITHDRAW_CONFIRMED_MOST_SECONDS = 30 * 3600
const MISSING_SHARE = 1
const LONGER_EACH_TIME = 4
/**
 * Time for which a finding stays as it was, with its time to the limit, although later evaluations
 * show no evidence: near a threshold one evaluation would change the text. At most a share of the
 * time for which it was observed, and of the time to the limit.
 */
const UNCHANGED_SECONDS = 8
const UNCHANGED_SHARE = 0.2
const UNCHANGED_LEFT_SHARE = 0.1
/**
 * Longest time for which a ruled-out diagnosis ignores growth that is too young to judge. With five
 * minutes, some simulated services became undecided in their second hour, and were ruled out again.
 */
const OPEN_MOST_SECONDS = 1800
const LONGEST_SECONDS = 43_200
/** Longest time for which growth that had ended is not suspected again. */
const ENDED_MOST_SECONDS = 120

/** @typedef {import('../diagnoses/define-diagnosis').Judgement} Judgement */

/**
 * Settling state of a diagnosis on a target.
 * @typedef {object} SettledState
 * @property {import('../diagnoses/define-diagnosis').State} state
 * @property {Judgement} judgement judgement on which the state is based
 * @property {number} agreed number of evaluations in a row that were confirmed
 * @property {number} [agreedSinceSeconds] uptime since which judgements agree with a confirmed
 *   verdict; absent if the last one did not, and after a restart of the exporter
 * @property {number} confirmedAtSeconds uptime at the first confirmation; NaN if not confirmed
 * @property {number} seenAtSeconds uptime at which a judgement last agreed with the state
 * @property {number} [foundAtSeconds] uptime of the last evidence, if later evaluations lack it
 * @property {number} [withdrawals] number of withdrawals
 * @typedef {Map<string, SettledState>} Settled settled states by diagnosis id
 */

/**
 * Hysteresis of verdicts. A verdict is raised when judgements agree, and withdrawn when the
 * evidence against it has lasted half as long as the evidence for it, or refutes a suspicion.
 * Missing evidence (`unknown`, unless it refutes) withdraws no confirmed verdict: an idle minute
 * proves nothing.
 *
 * @param {SettledState | undefined} before
 * @param {Judgement} judgement
 * @param {number} nowSeconds uptime
 * @returns {SettledState}
 */
function settle (before, judgement, nowSeconds) {
  const wasConfirmed = before?.state === 'confirmed'
  const withdrawals = before?.withdrawals ?? 0
  const agreedSinceSeconds = judgement.state === 'confirmed' || judgement.agrees
    ? before?.agreedSinceSeconds ?? nowSeconds
    : undefined
  if (judgement.state === 'confirmed') {
    const agreed = (before?.agreed ?? 0) + 1
    const { seconds = 0, secondsLeft = null } = judgement
    const agreeSeconds = Math.min(
      RAISE_MOST_SECONDS,
      RAISE_SHARE * (seconds - RAISE_FROM_SECONDS),
      RAISE_LEFT_SHARE * (secondsLeft ?? Infinity)
    )
    const tellsTime = agreeSeconds <= 0 || (secondsLeft ?? Infinity) <= LASTING_LIMITS.soonSeconds
    const raised = wasConfirmed ||
      (agreed >= RAISE_AFTER && nowSeconds - (agreedSinceSeconds ?? nowSeconds) >= agreeSeconds)
    return {
      state: raised ? 'confirmed' : 'suspected',
      judgement: raised || tellsTime ? judgement : withoutTime(judgement),
      agreed,
      agreedSinceSeconds,
      confirmedAtSeconds: wasConfirmed ? before.confirmedAtSeconds : raised ? nowSeconds : NaN,
      seenAtSeconds: nowSeconds,
      withdrawals
    }
  }
  // Evidence that recurs is one finding, so only the first suspicion is withdrawn at once.
  const isRefuted = judgement.refutes && before?.state === 'suspected' && withdrawals === 0
  if (before && !isRefuted && STATE_RANK[judgement.state] < STATE_RANK[before.state]) {
    // The time until a confirmed verdict is withdrawn does not run while evidence is missing, or
    // while it is close to the limits that raised the verdict.
    const isMissing = judgement.state === 'unknown' && !judgement.refutes
    const standsStill = judgement.keeps || (wasConfirmed && isMissing)
    const seenAtSeconds = standsStill ? nowSeconds : before.seenAtSeconds
    const share = isMissing && before.state === 'suspected' ? MISSING_SHARE : WITHDRAW_SHARE
    if (nowSeconds - seenAtSeconds < withdrawAfterSeconds(before, share)) {
      const foundAtSeconds = before.foundAtSeconds ?? before.seenAtSeconds
      const stands = nowSeconds - foundAtSeconds < unchangedSeconds(before, judgement)
        ? before.judgement
        : standOn(before, judgement)
      return {
        ...before, judgement: stands, agreed: 0, agreedSinceSeconds, seenAtSeconds, foundAtSeconds
      }
    }
  }
  if (before && nowSeconds - before.seenAtSeconds < holdsSeconds(before, judgement)) return before
  const isWithdrawn =
    before !== undefined &&
    STATE_RANK[before.state] >= STATE_RANK.suspected &&
    STATE_RANK[judgement.state] < STATE_RANK.suspected
  return {
    state: judgement.state,
    judgement,
    agreed: 0,
    agreedSinceSeconds,
    confirmedAtSeconds: NaN,
    seenAtSeconds: nowSeconds,
    withdrawals: isWithdrawn ? withdrawals + 1 : withdrawals
  }
}

/**
 * @param {SettledState} before
 * @param {Judgement} weaker
 * @returns {number} seconds for which the judgement of a finding stays as it was beside a weaker
 *   one
 */
function unchangedSeconds ({ judgement: { seconds = 0, secondsLeft } }, weaker) {
  return weaker.state === 'suspected'
    ? 0
    : Math.min(
      UNCHANGED_SECONDS,
      UNCHANGED_SHARE * seconds,
      UNCHANGED_LEFT_SHARE * (secondsLeft ?? Infinity)
    )
}

/**
 * A judgement that may change until it is raised tells no time to a limit.
 * @param {Judgement} judgement
 * @returns {Judgement}
 */
const withoutTime = judgement => judgement.standing === undefined
  ? judgement
  : { ...judgement, summary: `${judgement.standing}.`, secondsLeft: null, impact: undefined }

/**
 * Judgement of a finding that is kept although a newer judgement is weaker. Values that were true
 * only at the time of the finding, such as the time to the limit, are removed.
 * @param {SettledState} before
 * @param {Judgement} weaker
 * @returns {Judgement}
 */
function standOn ({ state, judgement: found }, weaker) {
  const { standing } = found
  if (standing === undefined) return found
  const ends = state === 'suspected' && !weaker.keeps
  const { severity, evidence, keeps, secondsLeft, impact, standing: latest } = weaker
  switch (weaker.state) {
    case 'suspected':
      return {
        ...found,
        severity,
        evidence,
        // Growth that goes on has a time to its limit.
        secondsLeft: keeps ? secondsLeft ?? null : null,
        summary: `${latest ?? standing}.`,
        impact: keeps ? impact : undefined
      }
    case 'unknown':
      return {
        ...found,
        evidence: markEarlier(found),
        secondsLeft: null,
        summary: weaker.keeps || weaker.seconds || BY_USER.includes(weaker.openUntil ?? '')
          ? `${standing}. By the latest readings, ${weaker.latest ?? weaker.summary}.`
          : `${standing}; since then there are too few readings to judge it anew.`,
        impact: undefined
      }
    default:
      return {
        ...found,
        // A cache that has filled is not urgent while its suspicion waits for its end.
        severity: ends && found.severity === 'critical' ? 'warning' : found.severity,
        evidence: markEarlier(found),
        secondsLeft: null,
        summary: `${standing}. By the latest readings, ${weaker.latest ?? weaker.summary}.` +
          (weaker.keeps ? '' : ' If that lasts, this finding ends.'),
        impact: undefined
      }
  }
}

/** Beginning of evidence that is older than the summary beside it. */
const EARLIER = 'Earlier: '

/**
 * @param {Judgement} found
 * @returns {Judgement['evidence']}
 */
const markEarlier = ({ evidence }) => evidence?.map(item =>
  item.text.startsWith(EARLIER) ? item : { ...item, text: EARLIER + item.text })

/**
 * Time for which a state is held. An open diagnosis is ruled out only after half the time for which
 * its growth was observed, or after up to OPEN_MOST_SECONDS if the growth may go on. A ruled-out
 * diagnosis ignores new growth for half the time over which it was observed. That time is at most
 * OPEN_MOST_SECONDS, unless the growth has been refuted. Growth that had ended for some time is not
 * suspected again for as long: until its next reading nothing new is known.
 * @param {SettledState} before
 * @param {Judgement} judgement
 * @returns {number} seconds
 */
function holdsSeconds ({ state, judgement: { seconds = 0, refutes } }, judgement) {
  const halfSeconds = WITHDRAW_SHARE * (judgement.seconds ?? 0)
  const shortSeconds = Math.min(OPEN_MOST_SECONDS, halfSeconds)
  switch (`${state} → ${judgement.state}`) {
    case 'unknown → ok':
      return Math.max(WITHDRAW_SHARE * seconds, judgement.keeps ? shortSeconds : 0)
    case 'ok → unknown':
      return judgement.refutes ? halfSeconds : shortSeconds
    case 'ok → suspected':
      return refutes ? Math.min(ENDED_MOST_SECONDS, seconds) : 0
    default:
      return 0
  }
}

/**
 * @param {SettledState} before
 * @param {number} share of the time for which a finding was observed
 */
function withdrawAfterSeconds ({ state, judgement: { seconds = 0 }, withdrawals = 0 }, share) {
  // A ruled-out diagnosis becomes unknown at once, unless ruling it out took hours.
  const least = state === 'ok' ? 0 : WITHDRAW_LEAST_SECONDS
  const most = state === 'confirmed' ? WITHDRAW_CONFIRMED_MOST_SECONDS : WITHDRAW_MOST_SECONDS
  const first = Math.min(most, Math.max(least, share * seconds))
  return Math.min(
    Math.max(first, LONGEST_SECONDS),
    first * LONGER_EACH_TIME ** (state === 'ok' ? 0 : withdrawals)
  )
}

module.exports = { settle }
