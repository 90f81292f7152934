'use strict'

const schemas = require('./schemas')
const { refuse } = require('./problems')
const { CommandError } = require('../commands/commands')

/**
 *   GET  /api/v1/processes               Node.js processes without an agent; sends them nothing
 *   POST /api/v1/processes/:pid/attach   loads the agent into a process
 *
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../attachment/attacher').Attacher} [attacher] undefined without --attach-on-request
 */
function processRoutes (server, attacher) {
  server.get('/api/v1/processes', {
    schema: {
      tags: ['processes'],
      summary: 'Processes of Node.js without an agent',
      response: { 200: schemas.processes, ...schemas.refusals }
    }
  }, async () => ({ isEnabled: attacher !== undefined, processes: await attacher?.list() ?? [] }))

  server.post('/api/v1/processes/:pid/attach', {
    schema: {
      tags: ['processes'],
      summary: 'Load the agent into a running process',
      params: {
        type: 'object',
        properties: { pid: { type: 'integer', minimum: 1, maximum: 2 ** 22 } },
        required: ['pid']
      },
      querystring: schemas.attachQuery,
      response: { 200: schemas.attached, ...schemas.refusals }
    },
    config: { access: 'act' }
  }, async (request, reply) => {
    if (!attacher) {
      return refuse(reply, 'not_enabled', 'start the exporter with --attach-on-request on to allow it')
    }
    const { pid } = /** @type {{ pid: number }} */ (request.params)
    const { startTimeTicks } = /** @type {{ startTimeTicks?: number }} */ (request.query)
    try {
      const attached = await attacher.attach(pid, { trigger: 'request', startTimeTicks })
      const { name, target } = attached
      request.log.info({ by: request.ip, pid, target }, `attached to ${name} on request`)
      return attached
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      request.log.info({ by: request.ip, pid }, `not attached on request: ${error.message}`)
      return refuse(reply, error.code, error.message)
    }
  })
}

module.exports = { processRoutes }
