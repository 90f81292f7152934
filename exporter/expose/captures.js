'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')
const { pageOf } = require('./pagination')
const { refuse } = require('./problems')
const { CommandError } = require('../commands/commands')
const { kinds } = require('../captures/kinds')
const { markdown } = require('@memwatch/engine/text/suspect-text')
const { attachedVerdicts } = require('@memwatch/engine/verdicts/attached')

/**
 * Routes that act on an app or may contain its secrets: see authorize.js.
 * @type {{ access: import('./authorize').Access }}
 */
const ACT = { access: 'act' }
/** Size limit of a profile that is converted to pprof's format, in memory. */
const MOST_PPROF_BYTES = 64 * 2 ** 20

/**
 *   POST   /api/v1/targets/:target/captures?kind=…   starts a capture; does not wait for it
 *   GET    /api/v1/captures                          all captures, newest first
 *   GET    /api/v1/captures/:id                      state of a capture, and its suspects
 *   GET    /api/v1/captures/:id/suspects.md          the suspects as Markdown, for a ticket
 *   GET    /api/v1/captures/:id/:part                a part of it; profiles also with ?format=pprof
 *   DELETE /api/v1/captures/:id
 *
 * @param {import('fastify').FastifyInstance} server
 * @param {object} parts
 * @param {() => import('@memwatch/engine/history/target').Target[]} parts.targets
 * @param {import('../captures/captures').Captures} parts.captures
 */
function captureRoutes (server, { targets, captures }) {
  routeToMake(server, targets, captures)
  routeToList(server, captures)
  routesToOne(server, targets, captures)
  routeToPart(server, captures)
  routeToRemove(server, captures)
}

/** @param {import('fastify').FastifyReply} reply */
const refuseUnknown = reply =>
  refuse(reply, 'unknown_capture', 'unknown or deleted capture: /api/v1/captures lists all stored captures')

/**
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 * @param {import('../captures/captures').Captures} captures
 */
function routeToMake (server, targets, captures) {
  server.post(
    '/api/v1/targets/:target/captures',
    {
      schema: {
        tags: ['captures'],
        summary: 'Start a capture',
        querystring: schemas.captureQuery,
        response: { 202: schemas.capture, ...schemas.refusals }
      },
      config: ACT
    },
    async (request, reply) => {
      const { kind, seconds, force } =
        /** @type {{ kind: import('../captures/kinds').KindName, seconds?: number, force: boolean }} */ (
          request.query
        )
      const target = namedTarget(targets(), request)
      if (!target) return refuseUnknownTarget(reply, targets())
      const { mostSeconds } = kinds[kind]
      if (seconds !== undefined && seconds > mostSeconds) {
        return refuse(reply, 'too_long', `seconds: expected at most ${mostSeconds} for a ${kind}, got ${seconds}`)
      }
      try {
        const { capture } = captures.request(target, { kind, seconds, force })
        request.log.info(
          {
            by: request.ip,
            capture: capture.id,
            target: target.name,
            thread: target.thread,
            kind,
            seconds: capture.seconds,
            force
          },
          'capture asked for'
        )
        return reply.code(202).send(capture)
      } catch (error) {
        if (!(error instanceof CommandError)) throw error
        return refuse(reply, error.code, error.message)
      }
    }
  )
}

/**
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../captures/captures').Captures} captures
 */
function routeToList (server, captures) {
  server.get(
    '/api/v1/captures',
    {
      schema: {
        tags: ['captures'],
        summary: 'Captures, newest first',
        querystring: schemas.capturesQuery,
        response: { 200: schemas.captures, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target } = /** @type {{ target?: string }} */ (request.query)
      return pageOf(
        request,
        reply,
        captures.all.filter(capture => target === undefined || capture.target === target),
        ({ requestedUnixMs, id }) => [-requestedUnixMs, id]
      )
    }
  )
}

/**
 * Known bugs attached to the verdict to which a capture belongs, while its target is watched.
 * @param {import('@memwatch/engine/history/target').Target[]} targets
 * @param {import('../captures/captures').Capture} capture
 */
const knownBugsOf = (targets, { id, target: name }) => targets
  .filter(target => target.name === name)
  .flatMap(attachedVerdicts)
  .find(({ suspects }) => suspects?.captureId === id)?.knownBugs ?? []

/**
 * Routes to one capture: its state and suspects.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 * @param {import('../captures/captures').Captures} captures
 */
function routesToOne (server, targets, captures) {
  server.get(
    '/api/v1/captures/:id',
    {
      schema: {
        tags: ['captures'],
        summary: 'State and suspects of a capture',
        response: { 200: schemas.capture, ...schemas.refusals }
      }
    },
    async (request, reply) => captures.get(idOf(request)) ?? refuseUnknown(reply)
  )

  server.get(
    '/api/v1/captures/:id/suspects.md',
    {
      schema: {
        tags: ['captures'],
        summary: 'Suspects of a capture, as Markdown',
        response: {
          200: {
            description: 'a table',
            content: { 'text/markdown': { schema: { type: 'string' } } }
          },
          ...schemas.refusals
        }
      }
    },
    async (request, reply) => {
      const capture = captures.get(idOf(request))
      if (!capture) return refuseUnknown(reply)
      const text = markdown({ ...capture, knownBugs: knownBugsOf(targets(), capture) })
      return reply.type('text/markdown; charset=utf-8').send(text)
    }
  )
}

/**
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../captures/captures').Captures} captures
 */
function routeToPart (server, captures) {
  server.get(
    '/api/v1/captures/:id/:part',
    {
      schema: {
        tags: ['captures'],
        summary: 'File of a capture',
        querystring: schemas.capturePartQuery,
        response: {
          200: {
            description: 'in the format of DevTools, or for pprof',
            content: {
              'application/json': { schema: {} },
              'application/octet-stream': { schema: { type: 'string' } }
            }
          },
          ...schemas.refusals
        }
      },
      config: ACT
    },
    async (request, reply) => {
      const capture = captures.get(idOf(request))
      const { part: name } = /** @type {{ part: string }} */ (request.params)
      const { format } = /** @type {{ format?: 'pprof' }} */ (request.query)
      const part = capture?.parts.find(({ part }) => part === name)
      if (!capture || !part) return refuseUnknown(reply)
      request.log.info({ by: request.ip, capture: capture.id, part: name, format }, 'capture read')
      const { extension, mediaType } = kinds[capture.kind]
      const fileName = nameFile(capture)
      if (format === 'pprof') return sendPprof(reply, { captures, capture, part, fileName })
      const bytes = captures.read(capture, name)
      if (!bytes) return refuseUnknown(reply)
      return reply
        .type(mediaType)
        .header('content-length', part.bytes)
        .header('content-disposition', `attachment; filename="${fileName}.${extension}"`)
        .send(bytes)
    }
  )
}

/**
 * @param {import('fastify').FastifyInstance} server
 * @param {import('../captures/captures').Captures} captures
 */
function routeToRemove (server, captures) {
  server.delete(
    '/api/v1/captures/:id',
    {
      schema: {
        tags: ['captures'],
        summary: 'Delete a capture',
        response: { 204: { type: 'null', description: 'removed' }, ...schemas.refusals }
      },
      config: ACT
    },
    async (request, reply) => {
      const capture = captures.get(idOf(request))
      if (!capture || capture.state === 'running') return refuseUnknown(reply)
      captures.remove(capture.id)
      request.log.info({ by: request.ip, capture: capture.id }, 'capture removed')
      return reply.code(204).send()
    }
  )
}

/**
 * Sends a profile in pprof's format.
 * @param {import('fastify').FastifyReply} reply
 * @param {object} of
 * @param {import('../captures/captures').Captures} of.captures
 * @param {import('../captures/captures').Capture} of.capture
 * @param {import('../captures/captures').Capture['parts'][number]} of.part
 * @param {string} of.fileName without its extension
 */
function sendPprof (reply, { captures, capture, part, fileName }) {
  if (!capture.kind.endsWith('_profile')) {
    const why = `format=pprof: expected a profile, got a ${capture.kind}`
    return refuse(reply, 'not_supported', why)
  }
  if (part.bytes > MOST_PPROF_BYTES) {
    const why = `format=pprof: expected a profile of at most ${MOST_PPROF_BYTES} bytes, got ${part.bytes}: ` +
      'download it without format'
    return refuse(reply, 'too_large', why)
  }
  const converted = pprofOf(captures, capture, part.part)
  if (!converted) {
    const why = 'format=pprof: the capture is not a profile, or does not fit in memory: download ' +
      'it without format'
    return refuse(reply, 'not_supported', why)
  }
  return reply
    .type('application/octet-stream')
    .header('content-disposition', `attachment; filename="${fileName}.pb.gz"`)
    .send(converted)
}

/**
 * @param {import('../captures/captures').Capture} capture
 * @returns {string} file name without an extension
 */
function nameFile ({ target, thread, requestedUnixMs }) {
  const at = new Date(requestedUnixMs).toISOString().replace(/[:.]/g, '')
  return `${target}-${thread}-${at}`.replace(/[^\w.-]/g, '_')
}

/**
 * @param {import('../captures/captures').Captures} captures
 * @param {import('../captures/captures').Capture} capture
 * @param {string} part
 * @returns {Buffer | undefined} profile in pprof's format; undefined if it cannot be converted, as
 *   an app may have sent any data
 */
function pprofOf (captures, capture, part) {
  const { toPprof } = require('../captures/pprof')
  try {
    return toPprof(capture.kind, captures.profile(capture, part, MOST_PPROF_BYTES), {
      atUnixMs: capture.requestedUnixMs,
      seconds: capture.seconds
    })
  } catch {
    return undefined
  }
}

/** @param {import('fastify').FastifyRequest} request */
const idOf = request => /** @type {{ id: string }} */ (request.params).id

module.exports = { captureRoutes }
