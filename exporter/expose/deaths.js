'use strict'

const schemas = require('./schemas')
const { pageOf } = require('./pagination')
const { refuse } = require('./problems')

/**
 * GET /api/v1/deaths: ended processes with their causes, newest first; /api/v1/deaths/:id adds the
 * minutes before the death.
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../deaths/deaths').Deaths} deaths
 */
function deathRoutes (server, deaths) {
  server.get(
    '/api/v1/deaths',
    {
      schema: {
        tags: ['deaths'],
        summary: 'Ended processes with their causes, newest first',
        querystring: schemas.deathsQuery,
        response: { 200: schemas.deaths, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target } = /** @type {{ target?: string }} */ (request.query)
      return pageOf(
        request,
        reply,
        deaths.all.filter(death => target === undefined || death.target === target),
        ({ diedAtUnixMs, id }) => [-diedAtUnixMs, id]
      )
    }
  )
  server.get(
    '/api/v1/deaths/:id',
    {
      schema: {
        tags: ['deaths'],
        summary: 'A death, with the last ten minutes before it',
        response: { 200: schemas.deathWithMinutes, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { id } = /** @type {{ id: string }} */ (request.params)
      return (
        deaths.find(id) ??
        refuse(reply, 'unknown_death', 'unknown or deleted death: /api/v1/deaths lists all stored deaths')
      )
    }
  )
}

module.exports = { deathRoutes }
