'use strict'

const schemas = require('./schemas')
const { refuse } = require('./problems')
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
    const { target: name } = /** @type {{ target: string }} */ (request.params)
    const { track, thread, seconds } = /** @type {{ track: import('../series/tracks').TrackName, thread: string, seconds: number }} */ (request.query)
    const target = targets().find(target => target.name === name && target.thread === thread)
    if (!target) return refuse(reply, 'unknown_target', 'no such target, or it has no such thread: /api/v1/targets lists them')
    const sinceSeconds = target.lastSeconds - seconds
    const { stepSeconds } = /** @type {typeof REACH[number]} */ (REACH.find(({ seconds: reach }) => seconds <= reach))
    return { target: name, thread, track, stepSeconds, startedAtUnixMs: target.hello.startedAtUnixMs, ...(stepSeconds === 1 ? secondsOf(target, track, sinceSeconds) : target.flight.series(track, { stepSeconds, sinceSeconds })) }
  })
}

/** @param {import('../series/target').Target} target @param {import('../series/tracks').TrackName} track @param {number} sinceSeconds */
function secondsOf (target, track, sinceSeconds) {
  const { times, values } = target.window()?.points(track, target.lastSeconds - sinceSeconds) ?? { times: [], values: [] }
  return { times, last: values, min: values, max: values }
}

module.exports = { seriesRoutes }
