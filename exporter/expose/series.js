'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')
const { merge } = require('@memwatch/engine/history/keep')
const { trackNames } = require('@memwatch/engine/history/tracks')

/**
 * @typedef {import('@memwatch/engine/history/flight').Series} Series
 * @typedef {import('@memwatch/engine/history/tracks').TrackName} TrackName
 */

/**
 * Finest step of an answer by the length of its window: no answer has more than some two thousand
 * rows.
 */
const STEPS = /** @type {const} */ ([
  { stepSeconds: 1, seconds: 600 },
  { stepSeconds: 10, seconds: 6 * 3600 },
  { stepSeconds: 60, seconds: 86_400 },
  { stepSeconds: 600, seconds: 7 * 86_400 }
])
const MINUTE_SECONDS = 60
const stepsSeconds = STEPS.map(({ stepSeconds }) => stepSeconds)

/**
 * GET /api/v1/targets/:target/series: tracks over time, in the finest steps that are stored for the
 * requested window.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 */
function seriesRoutes (server, targets) {
  server.get(
    '/api/v1/targets/:target/series',
    {
      schema: {
        tags: ['targets'],
        summary: 'History of tracks',
        querystring: schemas.seriesQuery(trackNames, stepsSeconds),
        response: { 200: schemas.series(stepsSeconds), ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { track, seconds, step, untilUnixMs } =
        /** @type {{ track: TrackName[], seconds: number, step?: number, untilUnixMs?: number }} */ (
          request.query
        )
      const target = namedTarget(targets(), request)
      if (!target) return refuseUnknownTarget(reply, targets())
      const { startedAtUnixMs } = target.hello
      const untilSeconds =
        untilUnixMs === undefined ? target.lastSeconds : (untilUnixMs - startedAtUnixMs) / 1000
      const finest = /** @type {typeof STEPS[number]} */ (
        STEPS.find(({ seconds: reach }) => seconds <= reach)
      )
      // Steps of one second are stored for ten minutes; older rows have steps of ten seconds.
      const wanted =
        step ??
        (finest.stepSeconds === 1 && target.lastSeconds - untilSeconds > finest.seconds - seconds
          ? 10
          : finest.stepSeconds)
      const stepSeconds = Math.max(wanted, finest.stepSeconds)
      const { times, tracks } = seriesOf(target, [...new Set(track)], {
        stepSeconds,
        sinceSeconds: untilSeconds - seconds,
        untilSeconds
      })
      return {
        target: target.name,
        thread: target.thread,
        stepSeconds,
        startedAtUnixMs,
        times,
        tracks: withoutNaN(tracks)
      }
    }
  )
}

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {TrackName[]} names
 * @param {{ stepSeconds: number, sinceSeconds: number, untilSeconds: number }} options uptime
 * @returns {Series}
 */
function seriesOf (target, names, { stepSeconds, sinceSeconds, untilSeconds }) {
  if (stepSeconds === 1) return target.secondBySecond(names, { sinceSeconds, untilSeconds })
  const series = target.flight.series(names, {
    stepSeconds: stepSeconds === 10 ? 10 : MINUTE_SECONDS,
    sinceSeconds,
    untilSeconds
  })
  return stepSeconds > MINUTE_SECONDS ? coarser(series, stepSeconds) : series
}

/** JSON has no NaN. @param {Series['tracks']} tracks */
const withoutNaN = tracks =>
  Object.fromEntries(
    Object.entries(tracks).map(([name, statistics]) => [
      name,
      Object.fromEntries(
        Object.entries(statistics).map(([statistic, values]) => [
          statistic,
          values.map((/** @type {number} */ value) => (Number.isNaN(value) ? null : value))
        ])
      )
    ])
  )

/**
 * Merges rows to coarser steps: for each step the last row, with the minimum and maximum of its
 * rows.
 * @param {Series} series
 * @param {number} stepSeconds
 * @returns {Series}
 */
function coarser ({ times, tracks }, stepSeconds) {
  /** Row indexes at which steps begin, and the end of the last step. */
  const bounds = times
    .flatMap((time, i) =>
      i === 0 || Math.floor(time / stepSeconds) !== Math.floor(times[i - 1] / stepSeconds)
        ? [i]
        : []
    )
    .concat(times.length)
  const steps = bounds.slice(1).map((end, i) => ({ from: bounds[i], end }))
  /**
   * @param {import('@memwatch/engine/history/keep').Keep} keep
   * @param {number[]} values
   */
  const merged = (keep, values) =>
    steps.map(({ from, end }) =>
      values.slice(from, end).reduce((before, value) => merge(keep, before, value))
    )
  return {
    times: steps.map(({ end }) => times[end - 1]),
    tracks: Object.fromEntries(Object.entries(tracks).map(([name, { last, min, max }]) => [name, {
      last: merged('last', last),
      ...(min && { min: merged('min', min) }),
      ...(max && { max: merged('max', max) })
    }]))
  }
}

module.exports = { seriesRoutes }
