'use strict'

const { fastify } = require('fastify')
const { version } = require('../package.json')
const { lateCompilers } = require('./late-compilers')

/**
 * Description of the API. A route without a tag is not part of it.
 * @type {Partial<import('openapi-types').OpenAPIV3_1.Document>}
 */
const DESCRIPTION = {
  openapi: '3.1.0',
  info: {
    title: 'memwatch exporter',
    version,
    description:
      'Watched processes, findings, deaths, and the lines of code that cause them. Errors are ' +
        'problem details (RFC 9457) with a stable code.',
    license: { name: 'MIT', identifier: 'MIT' }
  },
  components: {
    securitySchemes: {
      token: {
        type: 'http',
        scheme: 'bearer',
        description: 'token of --token-file; reading from the same machine needs no token'
      }
    }
  },
  security: [{}, { token: [] }]
}

/**
 * GET /api/v1/openapi.json: the API's description, created at the first request.
 * @param {import('fastify').FastifyInstance} server server, whose described routes must be
 *   registered later
 */
function openApiRoutes (server) {
  /** @type {import('fastify').RouteOptions[]} */
  const routes = []
  server.addHook('onRoute', route => { if (route.method !== 'HEAD') routes.push(route) })
  /** @type {Promise<object> | undefined} */
  let description
  server.get('/api/v1/openapi.json', () => {
    description ??= describe(routes).catch(error => {
      description = undefined
      throw error
    })
    return description
  })
}

/**
 * Describes the routes by a second server with the same routes. The plugin takes two megabytes and
 * must be registered before the routes, so it is not loaded into the first server.
 * @param {import('fastify').RouteOptions[]} routes
 */
async function describe (routes) {
  const { default: swagger } = require('@fastify/swagger')
  const server = fastify({
    exposeHeadRoutes: false,
    schemaController: { compilersFactory: lateCompilers }
  })
  server.register(swagger, { openapi: DESCRIPTION, hideUntagged: true })
  server.register(async server => {
    for (const { method, url, schema } of routes) {
      server.route({ method, url, schema, handler: async () => {} })
    }
  })
  await server.ready()
  return server.swagger()
}

module.exports = { openApiRoutes }
