'use strict'

const { judgeArrival } = require('./arrival')
const { effectOf, isPaced, outcomesOf, LEAST_EFFECT, TOLERANCE } = require('./outcome')
const { median } = require('../statistics/quantile')
const { formatValue } = require('../text/format')

/**
 * Follow-up of a fix: decides if advice had its predicted effect, once a process of the same
 * workload was started with it. The code is pure: its input is readings and settings, its output an
 * ending.
 *
 * @typedef {import('../diagnoses/define-diagnosis').Fix} Fix
 * @typedef {import('../diagnoses/define-diagnosis').State} State
 * @typedef {import('./outcome').Outcome} Outcome
 * @typedef {import('./arrival').Setup} Setup
 */

/** Possible endings of a follow-up. */
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

/**
 * Upper bound of readings of the predicted signals for each process: those of ten minutes. A
 * reading covers the last 30 s.
 */
const MOST_READINGS = 60
/** Least number of readings of a successor: a minute shows the mean of a load with bursts. */
const LEAST_READINGS = 6
/** Upper bound of the work, or age, that a successor must reach before it is compared. */
const MOST_WORK_SECONDS = 3600
/** A level of memory counts as reached at this share of it. */
const LEVEL_SHARE = 0.9
/** Levels of memory are compared only if the loads differ by at most this factor. */
const SIMILAR_PACE = 1.25

/**
 * A reading with two measures of work: CPU time of the app's thread without its GCs, and bytes
 * allocated on the heap, each per second; null if unknown.
 * @typedef {object} LoadedReading
 * @property {Record<string, number | null>} values by signal
 * @property {number | null} workRatio
 * @property {number | null} allocatedPerSecond
 *
 * Advice for a workload: a confirmed finding with its fixes, and the measurements of its process.
 * @typedef {object} Advice
 * @property {string} id
 * @property {string} workload name shared by the processes of an app
 * @property {string} thread `main` or `worker`
 * @property {string} target
 * @property {string} diagnosis
 * @property {string} title title of the diagnosis
 * @property {number} atUnixMs time at which its process was last seen
 * @property {number} confirmedAtUnixMs
 * @property {Fix[]} fixes best first
 * @property {Setup} setup
 * @property {LoadedReading[]} readings
 * @property {Reached} confirmed
 * @property {Reached} levelled work and age at which the process reached its level of memory
 *
 * Point in the life of a process at which it reached a level. A successor is not compared before
 * this point.
 * @typedef {{ workSeconds: number, ageSeconds: number }} Reached workSeconds: CPU time of the
 *   thread, without GCs
 *
 * @typedef {{ advice: Advice, fix: Fix, arrival: import('./arrival').Arrival }} Attempt
 *
 * @typedef {object} Judged
 * @property {Ending} ending
 * @property {Omit<Outcome, 'good'>[]} outcomes empty if nothing was measured
 * @property {number | null} effectRatio measured effect relative to the predicted one; null if
 *   nothing was measured or predicted
 * @property {string} text one sentence
 */

/**
 * A follow-up, as the API returns it.
 * @typedef {object} FollowUp
 * @property {string} id
 * @property {string} workload
 * @property {string} target name of the target that runs with the change
 * @property {string} thread
 * @property {number} pid
 * @property {string} diagnosis
 * @property {string} title title of the diagnosis
 * @property {string} fix title of the fix
 * @property {string} change change on one line
 * @property {number} advisedUnixMs
 * @property {number} startedAtUnixMs start of the process
 * @property {Ending | null} ending null until decided
 * @property {number | null} endedUnixMs
 * @property {string} text one sentence
 * @property {number | null} effectRatio
 * @property {Omit<Outcome, 'good'>[]} outcomes
 */

/**
 * Finds the advice with which a process was started, if any. For each diagnosis a change that
 * arrived goes before a lost one, and among equals the most recent advice goes first.
 * @param {readonly Advice[]} advised advice for its workload
 * @param {Setup} setup
 * @returns {Attempt[]} at most one attempt for each diagnosis
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

/**
 * Ranks of arrivals: a visible change identifies an attempt better than a lost change, and a lost
 * change better than a release.
 */
const RANK = Object.freeze({ released: 1, lost: 2, arrived: 3 })

/**
 * @param {Attempt} attempt
 * @param {object} since observations of the successor
 * @param {readonly LoadedReading[]} since.readings
 * @param {Reached} since.now
 * @param {State} since.state state of the diagnosis on the successor
 * @param {number} [since.leastReadings]
 * @returns {Judged | null} null until decided
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
  // Without a prediction, or if a trend needs more readings, the verdict itself decides.
  const isOpen = effect === null || readings.at(-1)?.values[first.signal] == null
  if (isOpen && (state === 'unknown' || state === 'suspected')) return null
  const isStanding = state === 'confirmed'
  /** @type {Ending} */
  const ending = effect === null
    ? isStanding ? 'did_not_help' : 'fixed_as_predicted'
    : effect >= 1 - TOLERANCE && !isStanding
      ? 'fixed_as_predicted'
      : effect >= LEAST_EFFECT ? 'helped_less' : 'did_not_help'
  // A release without an effect perhaps does not contain the change.
  if (arrival.kind === 'released' && ending === 'did_not_help') return null
  const measured = first
    ? `${first.name} went from ${formatValue(first.from, first.unit)} to ` +
      `${formatValue(first.measured, first.unit)}, predicted ${formatValue(first.to, first.unit)}`
    : `the finding ${isStanding ? 'stands' : 'is gone'}`
  // Caches and pools fill at first, so an effect below the prediction is final only after more
  // readings.
  const isFinal = ending === 'fixed_as_predicted' || isStanding || readings.length >= MOST_READINGS
  if (!isFinal) return null
  const text = `${WORDS[ending]}: ${measured}.`
  return { ending, outcomes: outcomes.map(withoutGood), effectRatio: effect, text }
}

/** @param {Extract<import('./arrival').Arrival, { kind: 'lost' }>} arrival */
const describeLost = ({ reason }) => `${WORDS.did_not_arrive}: ${reason}.`

/**
 * Outcome without `good`, which the ending already expresses.
 * @param {Outcome} outcome
 */
const withoutGood = ({ signal, name, unit, from, to, measured }) =>
  ({ signal, name, unit, from, to, measured })

/**
 * @param {Advice} advice
 * @param {Fix} fix
 * @param {import('./arrival').Arrival} arrival
 * @param {readonly LoadedReading[]} readings readings of the successor
 * @param {number} least number of readings
 * @returns {Outcome[] | null} null with too few readings under a similar load
 */
function compareReadings (advice, { predicted }, { kind }, readings, least) {
  // Other code does a different amount of work for the same requests.
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
  // The first prediction decides. The others are left out if the loads differ.
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
  // Other code does a different amount of work for the same requests, so its age counts.
  const measure = kind === 'released' ? 'ageSeconds' : 'workSeconds'
  const needed = first && !isPaced(first) ? [confirmed, levelled] : [confirmed]
  return needed.every(reached => now[measure] >= Math.min(MOST_WORK_SECONDS, reached[measure]))
}

/**
 * Measure of work that all readings of both sides have; allocated bytes are preferred to CPU time.
 * @param {...readonly LoadedReading[]} sides
 * @returns {'allocatedPerSecond' | 'workRatio' | null}
 */
function measureOf (...sides) {
  const measures = /** @type {const} */ (['allocatedPerSecond', 'workRatio'])
  const readings = sides.flat()
  return measures.find(measure => readings.every(each => (each[measure] ?? 0) > 0)) ?? null
}

/**
 * Finds when a process reached its level of memory.
 * @param {import('../history/window').Window} window window of the process for which the advice was
 *   given
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
