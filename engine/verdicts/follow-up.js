'use strict'

const { judgeArrival } = require('./arrival')
const { effectOf, isPaced, outcomesOf, LEAST_EFFECT, TOLERANCE } = require('./outcome')
const { median } = require('../statistics/quantile')
const { formatValue } = require('../text/format')

/**
 * Follow-up of a fix: what became of an advice, once a process of the same workload came back with
 * it. Pure: readings and settings in, an ending out.
 *
 * @typedef {import('../diagnoses/define-diagnosis').Fix} Fix
 * @typedef {import('../diagnoses/define-diagnosis').State} State
 * @typedef {import('./outcome').Outcome} Outcome
 * @typedef {import('./arrival').Setup} Setup
 */

/** Endings of a follow-up. */
const ENDINGS = Object.freeze(/** @type {const} */ ([
  'fixed_as_predicted', 'helped_less', 'did_not_help', 'did_not_arrive'
]))
/** @typedef {typeof ENDINGS[number]} Ending */
/** Endings in words. @type {Readonly<Record<Ending, string>>} */
const WORDS = Object.freeze({
  fixed_as_predicted: 'Fixed as predicted',
  helped_less: 'Helped, less than predicted',
  did_not_help: 'Did not help',
  did_not_arrive: 'Did not arrive'
})

/** Readings of predicted signals, each over the last 30 s, that one process is known by. */
const MOST_READINGS = 60
/** Readings that a successor needs: a minute shows the mean of a load with bursts. */
const LEAST_READINGS = 6
/** Longest work, or age, that a successor must reach before it is compared. */
const MOST_WORK_SECONDS = 3600
/** Share of a level of memory from which it counts as reached. */
const LEVEL_SHARE = 0.9
/** A level of memory is compared where the loads differ by no more than this factor. */
const SIMILAR_PACE = 1.25

/**
 * A reading with two measures of work: CPU time of the app's thread without its GCs, and bytes
 * allocated on the heap, each per second. null: unknown.
 * @typedef {object} LoadedReading
 * @property {Record<string, number | null>} values by signal
 * @property {number | null} workRatio
 * @property {number | null} allocatedPerSecond
 *
 * Advice to a workload: a confirmed finding with its fixes, and how its process ran.
 * @typedef {object} Advice
 * @property {string} id
 * @property {string} workload name that the processes of an app share
 * @property {string} thread main, or worker
 * @property {string} target
 * @property {string} diagnosis
 * @property {string} title of the diagnosis
 * @property {number} atUnixMs when its process was last seen
 * @property {number} confirmedAtUnixMs
 * @property {Fix[]} fixes best first
 * @property {Setup} setup
 * @property {LoadedReading[]} readings
 * @property {Reached} confirmed
 * @property {Reached} levelled its level of memory was reached
 *
 * When a process reached something. A successor with less has not had the time for it.
 * @typedef {{ workSeconds: number, ageSeconds: number }} Reached workSeconds: CPU time of its
 *   thread, without GCs
 *
 * @typedef {{ advice: Advice, fix: Fix, arrival: import('./arrival').Arrival }} Attempt
 *
 * @typedef {object} Judged
 * @property {Ending} ending
 * @property {Omit<Outcome, 'good'>[]} outcomes empty where nothing was measured
 * @property {number | null} effectRatio measured effect over the predicted one; null where nothing
 *   was measured or predicted
 * @property {string} text one sentence
 */

/**
 * A follow-up, as the API returns it.
 * @typedef {object} FollowUp
 * @property {string} id
 * @property {string} workload
 * @property {string} target that came back with the change
 * @property {string} thread
 * @property {number} pid
 * @property {string} diagnosis
 * @property {string} title of the diagnosis
 * @property {string} fix its title
 * @property {string} change on one line
 * @property {number} advisedUnixMs
 * @property {number} startedAtUnixMs start of the process
 * @property {Ending | null} ending null while it is measured
 * @property {number | null} endedUnixMs
 * @property {string} text one sentence
 * @property {number | null} effectRatio
 * @property {Omit<Outcome, 'good'>[]} outcomes
 */

/**
 * The advice that a process came back with, if any. The most recent advice with an arrived change
 * goes first.
 * @param {readonly Advice[]} advised of its workload
 * @param {Setup} setup
 * @returns {Attempt[]} one of each diagnosis
 */
function findAttempts (advised, setup) {
  /** @type {Map<string, Attempt>} */
  const found = new Map()
  for (const advice of advised.toSorted((a, b) => b.atUnixMs - a.atUnixMs)) {
    for (const fix of advice.fixes) {
      const arrival = judgeArrival(fix.change, advice.setup, setup)
      const known = found.get(advice.diagnosis)
      if (arrival && RANK[arrival.kind] > (known ? RANK[known.arrival.kind] : 0)) {
        found.set(advice.diagnosis, { advice, fix, arrival })
      }
    }
  }
  return [...found.values()]
}

/** A seen change names the attempt better than a lost one, and that better than other code. */
const RANK = Object.freeze({ released: 1, lost: 2, arrived: 3 })

/**
 * @param {Attempt} attempt
 * @param {object} since what was seen of the successor
 * @param {readonly LoadedReading[]} since.readings
 * @param {Reached} since.now
 * @param {State} since.state of the diagnosis on it
 * @param {number} [since.leastReadings]
 * @returns {Judged | null} null as long as it is not decided
 */
function judgeFollowUp (
  { advice, fix, arrival },
  { readings, now, state, leastReadings = LEAST_READINGS }
) {
  if (arrival.kind === 'lost') {
    const text = describeLost(arrival)
    return { ending: 'did_not_arrive', outcomes: [], effectRatio: null, text }
  }
  if (!hasWorkedEnough(now, advice, fix, arrival)) return null
  const outcomes = compareReadings(advice, fix, arrival, readings, leastReadings)
  if (!outcomes) return null
  const [first] = outcomes
  const effect = first ? effectOf(first) : null
  // Without a prediction, or with a trend that needs more readings, the verdict itself decides.
  const isOpen = effect === null || readings.at(-1)?.values[first.signal] == null
  if (isOpen && (state === 'unknown' || state === 'suspected')) return null
  const isStanding = state === 'confirmed'
  /** @type {Ending} */
  const ending = effect === null
    ? isStanding ? 'did_not_help' : 'fixed_as_predicted'
    : effect >= 1 - TOLERANCE && !isStanding
      ? 'fixed_as_predicted'
      : effect >= LEAST_EFFECT ? 'helped_less' : 'did_not_help'
  // A release that changes nothing may not contain the change.
  if (arrival.kind === 'released' && ending === 'did_not_help') return null
  const measured = first
    ? `${first.name} went from ${formatValue(first.from, first.unit)} to ` +
      `${formatValue(first.measured, first.unit)}, predicted ${formatValue(first.to, first.unit)}`
    : `the finding ${isStanding ? 'stands' : 'is gone'}`
  const text = `${WORDS[ending]}: ${measured}.`
  return { ending, outcomes: outcomes.map(withoutGood), effectRatio: effect, text }
}

/** @param {Extract<import('./arrival').Arrival, { kind: 'lost' }>} arrival */
const describeLost = ({ reason }) => `${WORDS.did_not_arrive}: ${reason}.`

/** The ending says it. @param {Outcome} outcome */
const withoutGood = ({ signal, name, unit, from, to, measured }) =>
  ({ signal, name, unit, from, to, measured })

/**
 * @param {Advice} advice
 * @param {Fix} fix
 * @param {import('./arrival').Arrival} arrival
 * @param {readonly LoadedReading[]} readings of the successor
 * @param {number} least number of them
 * @returns {Outcome[] | null} null with too few of a similar load
 */
function compareReadings (advice, { predicted }, { kind }, readings, least) {
  // Other code does another amount of work for the same requests.
  const hasPace = kind !== 'released' && advice.readings.length > 0
  const measure = hasPace ? measureOf(advice.readings, readings) : null
  const [before, after] = [advice.readings, readings].map(side => side.map(reading => ({
    values: reading.values,
    pace: measure ? reading[measure] ?? NaN : NaN
  })))
  const [most, fewest] = [before, after].map(side => side.map(({ pace }) => pace))
  const similar = measure === null
    ? after
    : after.filter(({ pace }) =>
      pace <= SIMILAR_PACE * Math.max(...most) && pace >= Math.min(...most) / SIMILAR_PACE)
  const comparable = measure === null
    ? before
    : before.filter(({ pace }) =>
      pace <= SIMILAR_PACE * Math.max(...fewest) && pace >= Math.min(...fewest) / SIMILAR_PACE)
  if (after.length < least) return null
  const hasSimilar = similar.length >= least && (measure === null || comparable.length > 0)
  // The first prediction decides; others are left out where the loads differ.
  if (predicted.length > 0 && !isPaced(predicted[0]) && !hasSimilar) return null
  return predicted.flatMap(one => isPaced(one)
    ? outcomesOf([one], before, after)
    : hasSimilar ? outcomesOf([one], comparable, similar) : [])
}

/**
 * @param {Reached} now
 * @param {Advice} advice
 * @param {Fix} fix
 * @param {import('./arrival').Arrival} arrival
 */
function hasWorkedEnough (now, { confirmed, levelled }, { predicted: [first] }, { kind }) {
  // Other code does another amount of work for the same requests, so its age counts.
  const measure = kind === 'released' ? 'ageSeconds' : 'workSeconds'
  const needed = first && !isPaced(first) ? [confirmed, levelled] : [confirmed]
  return needed.every(reached => now[measure] >= Math.min(MOST_WORK_SECONDS, reached[measure]))
}

/**
 * The measure of work that all readings of both sides have: allocated bytes before CPU time.
 * @param {...readonly LoadedReading[]} sides
 * @returns {'allocatedPerSecond' | 'workRatio' | null}
 */
function measureOf (...sides) {
  const measures = /** @type {const} */ (['allocatedPerSecond', 'workRatio'])
  const readings = sides.flat()
  return measures.find(measure => readings.every(each => (each[measure] ?? 0) > 0)) ?? null
}

/**
 * When a process reached its level of memory.
 * @param {import('../history/window').Window} window of the process that was advised
 * @param {readonly LoadedReading[]} readings
 * @returns {Reached}
 */
function findLevel (window, readings) {
  const levels = readings.flatMap(({ values }) => values.rssBytes ?? [])
  if (levels.length === 0) return { workSeconds: 0, ageSeconds: 0 }
  const { times, values } = window.points('rssBytes')
  const level = LEVEL_SHARE * median(levels)
  const reached = times[values.findIndex(value => value >= level)] ?? window.nowSeconds
  const work = window.points('workSeconds')
  const at = work.times.findIndex(time => time >= reached)
  return {
    workSeconds: work.values[at < 0 ? work.values.length - 1 : at] ?? 0,
    ageSeconds: reached
  }
}

module.exports = {
  findAttempts, judgeFollowUp, findLevel, describeLost, ENDINGS, MOST_READINGS
}
