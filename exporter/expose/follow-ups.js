'use strict'

const schemas = require('./schemas')
const { pageOf } = require('./pagination')

/**
 * GET /api/v1/follow-ups: decided follow-ups of fixes, newest first. Open follow-ups are in
 * /api/v1/diagnoses.
 * @param {import('fastify').FastifyInstance} server
 * @param {Pick<import('../follow-ups/follow-ups').FollowUps, 'all'>} followUps
 */
function followUpRoutes (server, followUps) {
  server.get(
    '/api/v1/follow-ups',
    {
      schema: {
        tags: ['diagnoses'],
        summary: 'Applied fixes and their endings, newest first',
        querystring: schemas.deathsQuery,
        response: { 200: schemas.followUps, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target } = /** @type {{ target?: string }} */ (request.query)
      return pageOf(
        request,
        reply,
        followUps.all.filter(followUp => target === undefined || followUp.target === target),
        ({ endedUnixMs, id }) => [-(endedUnixMs ?? 0), id]
      )
    }
  )
}

module.exports = { followUpRoutes }
