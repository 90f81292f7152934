'use strict'

const { Readable } = require('node:stream')
const { fastify, LogController } = require('fastify')
const { default: rateLimit } = require('@fastify/rate-limit')
const { authorize } = require('./authorize')
const { MEDIA_TYPE, problemOf, refuse } = require('./problems')
const { trimRoutes } = require('./trim')
const { captureRoutes } = require('./captures')
const { flameRoutes } = require('./flame')
const { deathRoutes } = require('./deaths')
const { lateCompilers } = require('./late-compilers')
const { liveRoutes } = require('./live')
const { openApiRoutes } = require('./openapi')
const { pageRoutes } = require('./page')
const { recordingRoutes } = require('./recording')
const { seriesRoutes } = require('./series')
const { planRoutes } = require('./plan')
const { targetRoutes } = require('./targets')

/** What one address may ask for: a page that draws a hundred targets asks for less, a script that guesses tokens for more. */
const REQUESTS = { max: 1000, timeWindow: 10_000 }
/** Slow or silent clients hold a connection no longer than this. */
const TIMEOUTS = { requestTimeout: 10_000, keepAliveTimeout: 20_000, connectionTimeout: 60_000 }
/** Every connection costs memory; Prometheus needs one. */
const MAX_CONNECTIONS = 1000
/** @type {{ config: { access: import('./authorize').Access } }} */
const OPEN = { config: { access: 'open' } }

/**
 * The exporter's HTTP side.
 *
 * @param {object} parts
 * @param {() => import('../series/target').Target[]} parts.targets
 * @param {ReturnType<typeof import('./metrics').createMetrics>} parts.metrics
 * @param {() => boolean} parts.isReady
 * @param {string} parts.logLevel
 * @param {import('../commands/commands').Commands} parts.commands
 * @param {import('../captures/captures').Captures} parts.captures
 * @param {import('../deaths/deaths').Deaths} parts.deaths
 * @param {import('../deaths/death-watch').DeathWatch} parts.deathWatch
 * @param {import('node:events').EventEmitter} parts.events the exporter's
 * @param {string} [parts.token] that callers must bear: authorize.js
 */
function createServer ({ targets, metrics, isReady, logLevel, commands, captures, deaths, deathWatch, events, token }) {
  const server = fastify({
    logger: { level: logLevel },
    // A scrape a second is no news.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 65_536,
    schemaController: { compilersFactory: lateCompilers },
    ...TIMEOUTS,
    http: { connectionsCheckingInterval: 2000, headersTimeout: TIMEOUTS.requestTimeout }
  })
  server.server.maxConnections = MAX_CONNECTIONS
  const notFound = notFoundHandler(server)
  server.setNotFoundHandler(notFound)
  server.setErrorHandler((/** @type {any} */ error, request, reply) => {
    if (request.is404) return notFound(request, reply)
    if (error.code === 'rate_limited') return refuse(reply, error.code, error.detail)
    if (error.validation) return refuse(reply, 'bad_arguments', error.message)
    if (error.statusCode >= 400 && error.statusCode < 500) return reply.code(error.statusCode).type(MEDIA_TYPE).send({ ...problemOf('bad_arguments', error.message), status: error.statusCode })
    request.log.error(error)
    return refuse(reply, 'internal', error.message)
  })
  // Later than the limit of requests: who guesses tokens is limited, too.
  server.addHook('preParsing', authorize(token))
  server.register(rateLimit, { ...REQUESTS, errorResponseBuilder: () => problemOf('rate_limited', 'too many requests from this address: wait ten seconds') })
  // After the plugin, which sees only the routes that come later.
  server.register(async server => routes(server, { targets, metrics, isReady, commands, captures, deaths, deathWatch, events }))
  return server
}

/**
 * For what is not there, and for what is there by another method only.
 * @param {import('fastify').FastifyInstance} server before its routes
 */
function notFoundHandler (server) {
  /** @type {{ method: string, pattern: RegExp }[]} */
  const routes = []
  server.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one, pattern: new RegExp(`^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`) })
  })
  return (/** @type {import('fastify').FastifyRequest} */ { url }, /** @type {import('fastify').FastifyReply} */ reply) => {
    const methods = routes.filter(({ pattern }) => pattern.test(url.split('?')[0])).map(({ method }) => method)
    return methods.length === 0
      ? refuse(reply, 'not_found', 'there is nothing here: / lists what there is')
      : refuse(reply.header('allow', methods.join(', ')), 'method_not_allowed', `here there is only ${methods.join(', ')}`)
  }
}

/** @param {import('fastify').FastifyInstance} server @param {Omit<Parameters<typeof createServer>[0], 'logLevel' | 'token'>} parts */
function routes (server, { targets, metrics, isReady, commands, captures, deaths, deathWatch, events }) {
  const watched = () => targets().filter(target => target.frame)

  openApiRoutes(server)
  pageRoutes(server)
  server.get('/-/healthy', OPEN, async (_, reply) => reply.type('text/plain').send('healthy\n'))
  server.get('/-/ready', OPEN, async (_, reply) => reply.code(isReady() ? 200 : 503).type('text/plain').send(isReady() ? 'ready\n' : 'starting\n'))
  server.get('/metrics', OPEN, async (request, reply) => {
    const { contentType, length, parts } = await metrics.text(request.headers.accept)
    // Of a thousand targets it is 20 MB: in one piece it would hold the loop for a tenth of a second.
    return reply.type(contentType).header('content-length', length).send(Readable.from(parts(), { objectMode: false }))
  })
  targetRoutes(server, { targets: watched, deathWatch })
  liveRoutes(server, { targets: watched, deathWatch, events })
  recordingRoutes(server, { targets: watched, events })
  deathRoutes(server, deaths)
  seriesRoutes(server, watched)
  planRoutes(server, watched)
  trimRoutes(server, { targets: watched, commands })
  captureRoutes(server, { targets: watched, captures })
  flameRoutes(server)
}

module.exports = { createServer }
