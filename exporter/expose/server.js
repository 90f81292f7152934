'use strict'

const { Readable } = require('node:stream')
const { fastify, LogController } = require('fastify')
const { authorize } = require('./authorize')
const { ClientLimits, HEADERS } = require('./client-limits')
const { MEDIA_TYPE, problemOf, refuse } = require('./problems')
const { trimRoutes } = require('./trim')
const { captureRoutes } = require('./captures')
const { flameRoutes } = require('./flame')
const { deathRoutes } = require('./deaths')
const { followUpRoutes } = require('./follow-ups')
const { knownBugRoutes } = require('./known-bugs')
const { lateCompilers } = require('./late-compilers')
const { liveRoutes } = require('./live')
const { NAMES_TARGETS } = require('./named-target')
const { openApiRoutes } = require('./openapi')
const { pageRoutes } = require('./page')
const { recordingRoutes } = require('./recording')
const { lazily } = require('../lazily')
const { shareScrapes } = require('./shared-scrapes')
const { seriesRoutes } = require('./series')
const { planRoutes } = require('./plan')
const { rightSizeRoutes } = require('./right-size')
const { processRoutes } = require('./processes')
const { targetRoutes } = require('./targets')

/**
 * Time limits for a slow or silent client; client-limits.js closes its connection earlier if others
 * need it.
 */
const TIMEOUTS = {
  requestTimeout: 20_000,
  headersTimeout: 20_000,
  keepAliveTimeout: 20_000,
  connectionsCheckingInterval: 2000
}
const SILENT_CONNECTION_MS = 60_000
/** @type {{ config: { access: import('./authorize').Access } }} */
const OPEN = { config: { access: 'open' } }

/**
 * Properties of the exporter that the HTTP server uses.
 *
 * @typedef {object} Source
 * @property {import('@memwatch/engine/history/target').Target[]} targets
 * @property {import('../catalog/exporter-metrics').ExporterState} state
 * @property {boolean} isReady
 * @property {import('pino').Logger} log
 * @property {Pick<import('../exporter').ExporterConfig, 'compat' | 'token' | 'trustLoopback' |
 *   'attachOnRequest'>}
 *   config
 * @property {import('../commands/commands').Commands} commands
 * @property {import('../captures/captures').Captures} captures
 * @property {import('../attachment/attacher').Attacher} [attacher] undefined without an option to
 *   attach
 * @property {import('../deaths/deaths').Deaths} deathRegistry
 * @property {import('../deaths/death-watch').DeathWatch} deathWatch
 * @property {import('../follow-ups/follow-ups').FollowUps} followUps
 */

/**
 * Creates the exporter's HTTP server.
 *
 * @param {Source & import('node:events').EventEmitter} exporter
 * @param {object} [options]
 * @param {(target: import('@memwatch/engine/history/target').Target, error: Error) => void}
 *   [options.omit] called for a target that is left out of an answer
 */
function createServer (exporter, { omit = () => {} } = {}) {
  const { config: { compat, token, trustLoopback = true }, log } = exporter
  const targets = () => exporter.targets
  const scrapes = lazily(() => {
    const { createMetrics } = require('./metrics')
    return shareScrapes(createMetrics({ targets, state: () => exporter.state, compat }))
  })
  const limits = new ClientLimits({ isReady: () => exporter.isReady })
  const server = fastify({
    ...NAMES_TARGETS,
    loggerInstance: /** @type {import('fastify').FastifyBaseLogger} */ (log),
    // Requests are not logged, because scrapes may come every second.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 65_536,
    schemaController: { compilersFactory: lateCompilers },
    // On a tenth of a core, compiling the check of schemas takes two seconds, in which probes wait.
    // Tests check the schemas instead.
    ajv: { customOptions: { validateSchema: false } },
    clientErrorHandler: refuseMalformed,
    serverFactory: handler =>
      limits.createServer(TIMEOUTS, handler).setTimeout(SILENT_CONNECTION_MS)
  })
  const notFound = notFoundHandler(server)
  server.setNotFoundHandler(notFound)
  server.setErrorHandler((/** @type {any} */ error, request, reply) => {
    if (request.is404) return notFound(request, reply)
    if (error.validation) return refuse(reply, 'bad_arguments', error.message)
    if (error.statusCode >= 400 && error.statusCode < 500) {
      return reply
        .code(error.statusCode)
        .type(MEDIA_TYPE)
        .send({ ...problemOf('bad_arguments', error.message), status: error.statusCode })
    }
    request.log.error(error)
    return refuse(reply, 'internal', error.message)
  })
  server.addHook('onRequest', async (_, reply) => { reply.headers(HEADERS) })
  server.addHook('preParsing', authorize({ token, trustLoopback }))
  routes(server, exporter, { scrapes, limits, omit })
  return server
}

/**
 * Closes a connection after a malformed request. A client that was too slow gets no answer, because
 * answers to a thousand such clients would take a twentieth of a core.
 * @param {NodeJS.ErrnoException} error
 * @param {import('node:net').Socket} socket
 */
function refuseMalformed ({ code }, socket) {
  const isSilent = code === 'ECONNRESET' || code === 'ERR_HTTP_REQUEST_TIMEOUT'
  if (isSilent || !socket.writable) return socket.destroy()
  const isTooLong = code === 'HPE_HEADER_OVERFLOW'
  const status = isTooLong ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const headers = Object.entries({ ...HEADERS, connection: 'close', 'content-length': 0 })
    .map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status}\r\n${headers.join('')}\r\n`)
}

/**
 * Answers requests with an unknown path, or with a method that the path does not support.
 * @param {import('fastify').FastifyInstance} server server without routes yet
 */
function notFoundHandler (server) {
  /** @type {{ method: string, pattern: RegExp }[]} */
  const routes = []
  server.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) {
      routes.push({
        method: one,
        pattern: new RegExp(
          `^${url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/:\w+/g, '[^/]+')}$`
        )
      })
    }
  })
  return (/** @type {import('fastify').FastifyRequest} */ { url, method: requested }, /** @type {import('fastify').FastifyReply} */ reply) => {
    const methods = routes
      .filter(({ pattern }) => pattern.test(url.split('?')[0]))
      .map(({ method }) => method)
    return methods.length === 0
      ? refuse(reply, 'not_found', 'unknown address: / lists all addresses')
      : refuse(
        reply.header('allow', methods.join(', ')),
        'method_not_allowed',
          `expected ${methods.join(' or ')}, got ${requested}`
      )
  }
}

/**
 * A stream for a single reader. Readable.from() would await a promise for each part.
 * @param {readonly Buffer[]} parts
 */
function streamOf (parts) {
  let next = 0
  return new Readable({ read () { this.push(parts[next++] ?? null) } })
}

/**
 * @param {import('fastify').FastifyInstance} server
 * @param {Source & import('node:events').EventEmitter} exporter
 * @param {object} parts
 * @param {() => ReturnType<typeof shareScrapes>} parts.scrapes
 * @param {ClientLimits} parts.limits
 * @param {(target: import('@memwatch/engine/history/target').Target, error: Error) => void} parts.omit
 */
function routes (server, exporter, { scrapes, limits, omit }) {
  const { commands, captures, deathRegistry, deathWatch, followUps } = exporter
  const watched = () => exporter.targets.filter(target => target.frame)

  openApiRoutes(server)
  pageRoutes(server)
  server.get('/metrics', OPEN, async (request, reply) => {
    if (!limits.startScrape(request.raw, reply.raw)) {
      return refuse(
        reply.header('retry-after', 1),
        'too_busy',
        'too many scrapes are running: try again in a second'
      )
    }
    const { contentType, length, parts } = await scrapes().text(request.headers.accept)
    // The metrics of a thousand targets are 20 MB; sent in one piece they would block the event
    // loop for a tenth of a second.
    return reply
      .type(contentType)
      .header('content-length', length)
      .send(streamOf(parts))
  })
  targetRoutes(server, { targets: watched, deathWatch, omit })
  knownBugRoutes(server, watched)
  liveRoutes(server, { targets: watched, deathWatch, events: exporter, limits, omit })
  recordingRoutes(server, { targets: watched, events: exporter })
  deathRoutes(server, deathRegistry)
  followUpRoutes(server, followUps)
  seriesRoutes(server, watched)
  planRoutes(server, watched)
  rightSizeRoutes(server, { targets: watched, deaths: deathRegistry })
  trimRoutes(server, { targets: watched, commands })
  captureRoutes(server, { targets: watched, captures })
  processRoutes(server, exporter.config.attachOnRequest ? exporter.attacher : undefined)
  flameRoutes(server)
}

module.exports = { createServer }
