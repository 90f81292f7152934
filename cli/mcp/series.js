'use strict'

const { tracks, trackNames } = require('@memwatch/engine/history/tracks')
const { array } = require('@memwatch/engine/text/json-schema')
const { accept, argumentsOf, findTarget, ofTarget, queryOf } = require('./define-tool')
const { pathSegment } = require('../text/path-segment')

const MOST_TRACKS = 6
const MOST_POINTS = 120
const POINTS = 30
/** Significant digits of a number. */
const DIGITS = 6

/** @type {import('./define-tool').Tool} */
const series = {
  name: 'series',
  title: 'History of tracks, down-sampled',
  description:
    'The history of up to six tracks of a target, such as rssBytes, liveHeapBytes or ' +
    'gcPauseSeconds: one value for each step, oldest first. A counter is shown as its rate per ' +
    'second. The tool signals lists the tracks with their units.',
  input: argumentsOf({
    ...ofTarget,
    tracks: { ...array({ enum: trackNames }), minItems: 1, maxItems: MOST_TRACKS },
    seconds: {
      type: 'integer',
      minimum: 10,
      maximum: 604_800,
      description: 'length of the history up to now (default: 600)'
    },
    points: {
      type: 'integer',
      minimum: 2,
      maximum: MOST_POINTS,
      description: `maximum number of values of each track (default: ${POINTS})`
    }
  }, ['target', 'tracks']),
  most: { last: MOST_POINTS, min: MOST_POINTS, max: MOST_POINTS, uptimeSeconds: MOST_POINTS },
  async answer (args, facts) {
    const { points = POINTS, seconds = 600, tracks: names } = args
    const { target, thread } = await findTarget(facts, args)
    const query = queryOf({ track: names, thread, seconds })
    const body = accept(
      await facts.call(`targets/${pathSegment(target)}/series?${query}`),
      'call targets: the process may have ended'
    )
    const bounds = boundsOf(body.times.length, points)
    return {
      target,
      thread,
      startedAt: new Date(body.startedAtUnixMs).toISOString(),
      uptimeSeconds: bounds.map(({ end }) => round(body.times[end - 1])),
      tracks: names.map((/** @type {import('@memwatch/engine/history/tracks').TrackName} */ name) =>
        ({ track: name, ...sample(tracks[name], body.times, body.tracks[name], bounds) }))
    }
  }
}

/**
 * Divides rows into steps of about equal length.
 * @param {number} rows
 * @param {number} points
 * @returns {{ from: number, end: number }[]} end: exclusive
 */
function boundsOf (rows, points) {
  const count = Math.min(rows, points)
  return Array.from({ length: count }, (_, i) => ({
    from: Math.floor((i * rows) / count), end: Math.floor(((i + 1) * rows) / count)
  }))
}

/**
 * @param {import('@memwatch/engine/history/tracks').Track} track
 * @param {number[]} times
 * @param {{ last: (number | null)[], min?: (number | null)[], max?: (number | null)[] }} series
 * @param {{ from: number, end: number }[]} bounds
 */
function sample ({ unit, counter = false }, times, { last, min = last, max = last }, bounds) {
  if (counter) {
    const rates = bounds.map(({ from, end }) => {
      const before = Math.max(0, from - 1)
      const [first, value] = [last[before], last[end - 1]]
      return first === null || value === null || end - 1 === before
        ? null
        : round((value - first) / (times[end - 1] - times[before]))
    })
    return { unit: `${unit} per second`, last: rates }
  }
  const within = (/** @type {(number | null)[]} */ values, /** @type {'min' | 'max'} */ statistic) =>
    bounds.map(({ from, end }) => {
      const known = values.slice(from, end).filter(value => value !== null)
      return known.length > 0 ? round(Math[statistic](...known)) : null
    })
  return {
    unit,
    last: bounds.map(({ end }) => last[end - 1] === null ? null : round(Number(last[end - 1]))),
    ...last.length > bounds.length && { min: within(min, 'min'), max: within(max, 'max') }
  }
}

/** @param {number} value */
const round = value => Number(value.toPrecision(DIGITS))

module.exports = { series }
