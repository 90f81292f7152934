'use strict'

const schemas = require('./schemas')
const { refusal } = require('./authorize')

/**
 * GET /api/v1/deaths: who died and of what, newest first; /api/v1/deaths/:id with the minutes before.
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../deaths/deaths').Deaths} deaths
 */
function deathRoutes (server, deaths) {
  server.get('/api/v1/deaths', { schema: { querystring: schemas.deathsQuery, response: { 200: schemas.deaths } } }, async request => {
    const { target, limit } = /** @type {{ target?: string, limit: number }} */ (request.query)
    return deaths.all.filter(death => target === undefined || death.target === target).slice(0, limit)
  })
  server.get('/api/v1/deaths/:id', { schema: { response: { 200: schemas.deathWithMinutes, 404: schemas.refusal } } }, async (request, reply) => {
    const { id } = /** @type {{ id: string }} */ (request.params)
    return deaths.find(id) ?? reply.code(404).send(refusal('unknown_death', 'no such death is kept: /api/v1/deaths lists them'))
  })
}

module.exports = { deathRoutes }
