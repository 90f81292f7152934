'use strict'

const { STATE_RANK } = require('./define-diagnosis')
const { evidence } = require('./evidence')
const { reaches } = require('./filling')
const { formatPerHour, judgeLasting } = require('./lasting-growth')
const { severityByTime } = require('./severity')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')

/** @typedef {import('../signals/lasting').LastingTrend} LastingTrend */
/** @typedef {Parameters<typeof judgeLasting>[1]} Limit */

/** Names of the figures in evidence, by the trend that holds them. */
const FIGURES = Object.freeze(/** @type {const} */ ({
  liveHeap: {
    growth: 'liveHeapLastingGrowthBytesPerSecond',
    rise: 'liveHeapLastingRiseBytes',
    score: 'liveHeapLastingScore',
    late: 'liveHeapLastingLateRatio'
  },
  outsideHeap: {
    growth: 'outsideHeapLastingGrowthBytesPerSecond',
    rise: 'outsideHeapLastingRiseBytes',
    score: 'outsideHeapLastingScore',
    late: 'outsideHeapLastingLateRatio'
  }
}))

/**
 * Words for one kind of memory that grows, and facts that only its diagnosis knows.
 * @template Found
 * @typedef {object} Level
 * @property {string} name as the subject of a sentence
 * @property {string} limitName
 * @property {{ name: string, runway: number }} [first] another limit that is reached first, and the
 *   room left at the busiest moment, in bytes
 * @property {string} fills name of other growth that lasts for hours, but stops below the limit
 * @property {string} threat consequence of reaching the limit; a time may follow: ": the process
 *   dies"
 * @property {string} [aftermath] later consequence, the end of the sentence
 * @property {Found} finding
 * @property {string} [cause] cause, printed if no other cause is possible
 * @property {boolean} [isOpen] true if a fact known only to the diagnosis prevents certainty
 * @property {import('./define-diagnosis').Evidence[]} evidence evidence besides the evidence of
 *   growth
 */

/**
 * Judges growth of the live heap, or of the memory outside it, over hours and days, and puts the
 * judgement into words.
 * @template Found
 * @param {LastingTrend} trend
 * @param {Limit} limit
 * @param {keyof typeof FIGURES} level kind of memory that the trend describes
 * @param {Parameters<typeof judgeLasting>[2] & Parameters<typeof severityByTime>[1]} limits
 * @param {string} what name of the growing level, as in a sentence
 * @param {(rise: number, growthBytesPerSecond: number) => Level<Found> | OutruledGrowth} describe
 *   called only if the memory grew
 * @returns {import('./define-diagnosis').Judgement<Found>}
 */
function judgeHours (trend, limit, level, limits, what, describe) {
  const found = judgeLasting(trend, limit, limits, what)
  const { state, seconds, keeps } = found
  if (state === 'ok') return { state, summary: found.summary, seconds, keeps }
  const { growth, limitInSeconds, tellsSeconds } = found
  const of = describe(found.rise, growth)
  if ('ruledOut' in of) return { state: 'ok', seconds, summary: of.ruledOut }
  const first = of.first ?? { name: of.limitName, runway: limit.peakRunway }
  const names = FIGURES[level]
  const inTime = tellsSeconds === null ? '' : ` in about ${formatSeconds(tellsSeconds)}`
  const cause = found.also || of.cause
  return {
    state: of.isOpen ? 'suspected' : state,
    agrees: state === 'confirmed',
    severity: severityByTime(limitInSeconds ?? first.runway / growth, limits),
    secondsLeft: limitInSeconds,
    keeps,
    seconds,
    summary: `${of.name} grows by ${formatPerHour(growth)}` +
      `${inTime && ` and ${reaches(state === 'confirmed')} ${first.name}${inTime}`}` +
      `${cause ? `: ${cause}` : ''}.`,
    standing: `${of.name} grew by ${formatPerHour(growth)} over ${formatSeconds(seconds)}`,
    finding: of.finding,
    evidence: [
      ...growthEvidence(trend, limit.peakRunway, names, limits, { found, ...of }),
      ...of.evidence,
      evidence(names.growth, growth, 0, () => `That is ${formatPerHour(growth)}.`)
    ],
    impact: `There is room for ${formatBytes(first.runway)} below ${first.name} at the busiest ` +
      `time of a day${inTime && `: ${of.threat}${inTime}`}${of.aftermath ?? ''}.`
  }
}

/** @typedef {{ ruledOut: string }} OutruledGrowth reason why the grown memory is not in use */

/**
 * @param {LastingTrend} trend
 * @param {number} runway bytes
 * @param {typeof FIGURES[keyof typeof FIGURES]} names
 * @param {{ runwayShareRatio: number, lastingScore: number, lastingLateRatio: number }} limits
 * @param {{ found: import('./lasting-growth').LastingJudgement, name: string, limitName: string,
 *   fills: string }} level
 */
function growthEvidence (trend, runway, names, limits, { found, limitName, fills }) {
  const { rise, seconds, share } = found
  return [
    evidence(
      names.rise,
      rise,
      limits.runwayShareRatio * (rise + runway),
      (value, limit) =>
        `The growth is ${value} in ${formatSeconds(seconds)}, ${formatRatio(share)} of the way to ` +
          `${limitName}; ${limit}, or the same growth on two days, confirms it.`
    ),
    evidence(
      names.score,
      trend.score,
      limits.lastingScore,
      (value, limit) =>
        `${found.because} The growth is ${value} times its standard error (threshold ${limit}).`
    ),
    evidence(
      names.late,
      trend.lateRatio,
      limits.lastingLateRatio,
      (value, limit) =>
        `The growth does not level off: its last third has up to ${value} of the rate; ${fills} ` +
          `falls below ${limit}.`
    )
  ]
}

/**
 * The stronger of two judgements: over minutes and over hours.
 * @template {{ state: import('./define-diagnosis').State }} Judged
 * @param {Judged} minutes
 * @param {Judged | null} hours null without enough data
 */
const pickStronger = (minutes, hours) =>
  hours && STATE_RANK[minutes.state] <= STATE_RANK[hours.state] ? hours : minutes

module.exports = { judgeHours, pickStronger }
