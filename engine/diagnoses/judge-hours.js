'use strict'

const { evidence } = require('./evidence')
const { formatPerHour, judgeLasting } = require('./lasting-growth')
const { severityByTime } = require('./severity')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')

/** @typedef {import('../signals').SignalName} SignalName */
/** @typedef {import('./lasting-growth').Lasting} Lasting */

/**
 * What the words of one level are, and what only its diagnosis knows.
 * @template Found
 * @typedef {object} Level
 * @property {string} name as the subject of a sentence
 * @property {string} limitName
 * @property {string} fills what else grows for hours, and then falls below the limit
 * @property {string} threat what happens at the limit, up to a time: ": the process dies"
 * @property {string} [aftermath] of that, to end the sentence
 * @property {Found} finding
 * @property {string} [cause] said where nothing else is left open
 * @property {boolean} [isOpen] something that only the diagnosis knows keeps it from being certain
 * @property {import('./define-diagnosis').Evidence[]} evidence besides that of the growth
 */

/**
 * Growth over hours and days, judged and put into words: the live heap and the memory outside it
 * alike.
 * @template {Record<keyof Lasting, SignalName>} Names
 * @template Found
 * @param {Readonly<Record<Names[keyof Lasting], number | null>>} signals
 * @param {Names} names the signals of the level
 * @param {Parameters<typeof judgeLasting>[1] & Parameters<typeof severityByTime>[1]} limits
 * @param {string} what grows, as in a sentence
 * @param {(rise: number, growthBytesPerSecond: number) => Level<Found> | OutruledGrowth} level
 *   asked only where something grew
 * @returns {import('./define-diagnosis').Judgement<Found> | null} null while too little was seen
 */
function judgeHours (signals, names, limits, what, level) {
  const lasting = readLasting(signals, names)
  const found = judgeLasting(lasting, limits, what)
  if (!found) return null
  const { state, seconds, keeps } = found
  if (state === 'ok') return { state, summary: found.summary, seconds, keeps }
  const { growth, limitInSeconds } = found
  const of = level(found.rise, growth)
  if ('ruledOut' in of) return { state: 'ok', seconds, summary: of.ruledOut }
  const runway = lasting.peakRunway ?? 0
  const inTime = limitInSeconds === null ? '' : ` in about ${formatSeconds(limitInSeconds)}`
  const cause = found.also || of.cause
  return {
    state: of.isOpen ? 'suspected' : state,
    severity: severityByTime(limitInSeconds ?? runway / growth, limits),
    keeps,
    seconds,
    summary: `${of.name} grows by ${formatPerHour(growth)}` +
      `${inTime && ` and reaches ${of.limitName}${inTime}`}${cause ? `: ${cause}` : ''}.`,
    standing: `${of.name} grew by ${formatPerHour(growth)} over ${formatSeconds(seconds)}; that ` +
      'it stopped has not been seen for as long.',
    finding: of.finding,
    evidence: [
      ...growthEvidence(lasting, names, limits, { found, ...of }),
      ...of.evidence,
      evidence(names.growth, growth, 0, () => `That is ${formatPerHour(growth)}.`)
    ],
    impact: `${formatBytes(runway)} are left to ${of.limitName} at the busiest moment of a day` +
      `${inTime && `: ${of.threat}${inTime}`}${of.aftermath ?? ''}.`
  }
}

/** @typedef {{ ruledOut: string }} OutruledGrowth why what grew is not in use */

/**
 * @template {Record<keyof Lasting, SignalName>} Names
 * @param {Readonly<Record<Names[keyof Lasting], number | null>>} signals
 * @param {Names} names
 * @returns {Lasting}
 */
const readLasting = (signals, names) => /** @type {Lasting} */ (Object.fromEntries(
  Object.entries(names).map(([of, name]) => [of, signals[/** @type {Names[keyof Lasting]} */ (name)]])
))

/**
 * @param {Lasting} lasting
 * @param {Record<'rise' | 'score' | 'late', SignalName>} names
 * @param {{ runwayShareRatio: number, lastingScore: number, lastingLateRatio: number }} limits
 * @param {{ found: import('./lasting-growth').LastingJudgement, name: string, limitName: string,
 *   fills: string }} level
 */
function growthEvidence ({ peakRunway, score, late }, names, limits, { found, limitName, fills }) {
  const { rise, seconds, share } = found
  return [
    evidence(
      names.rise,
      rise,
      limits.runwayShareRatio * (rise + (peakRunway ?? 0)),
      (value, limit) =>
        `It rose by ${value} in ${formatSeconds(seconds)}, ${formatRatio(share)} of the way to ` +
          `${limitName}; ${limit}, or two days that agree, make it certain.`
    ),
    evidence(
      names.score,
      score ?? 0,
      limits.lastingScore,
      (value, limit) =>
        `${found.because} The growth is ${value} times its standard error; from ${limit} on it ` +
          'is no accident.'
    ),
    evidence(
      names.late,
      late ?? 1,
      limits.lastingLateRatio,
      (value, limit) =>
        `It does not level off: up to ${value} of the rate in the last third; ${fills} falls ` +
          `below ${limit}.`
    )
  ]
}

module.exports = { judgeHours }
