'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')
const { trackNames } = require('../series/tracks')

/** Seconds that each step is kept for; a longer time asks for the next. */
const REACH = /** @type {const} */ ([{ stepSeconds: 1, seconds: 600 }, { stepSeconds: 10, seconds: 6 * 3600 }, { stepSeconds: 60, seconds: Infinity }])

/**
 * GET /api/v1/targets/:target/series: what a track did, in steps as fine as are kept for that long.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('../series/target').Target[]} targets
 */
function seriesRoutes (server, targets) {
  server.get('/api/v1/targets/:target/series', { schema: { tags: ['targets'], summary: 'What a number did', querystring: schemas.seriesQuery(trackNames), response: { 200: schemas.series, ...schemas.refusals } } }, async (request, reply) => {
    const { track, seconds } = /** @type {{ track: import('../series/tracks').TrackName, seconds: number }} */ (request.query)
    const target = namedTarget(targets(), request)
    if (!target) return refuseUnknownTarget(reply, targets())
    const sinceSeconds = target.lastSeconds - seconds
    const { stepSeconds } = /** @type {typeof REACH[number]} */ (REACH.find(({ seconds: reach }) => seconds <= reach))
    return { target: target.name, thread: target.thread, track, stepSeconds, startedAtUnixMs: target.hello.startedAtUnixMs, ...(stepSeconds === 1 ? secondsOf(target, track, sinceSeconds) : target.flight.series(track, { stepSeconds, sinceSeconds })) }
  })
}

/** @param {import('../series/target').Target} target @param {import('../series/tracks').TrackName} track @param {number} sinceSeconds */
function secondsOf (target, track, sinceSeconds) {
  const { times, values } = target.window()?.points(track, target.lastSeconds - sinceSeconds) ?? { times: [], values: [] }
  return { times, last: values, min: values, max: values }
}

module.exports = { seriesRoutes }
