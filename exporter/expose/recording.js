'use strict'

const { PassThrough } = require('node:stream')
const { PROTOCOL_VERSION } = require('@memwatch/agent/protocol/frame')
const schemas = require('./schemas')
const { refuse } = require('./problems')
const { RECORDING_VERSION } = require('@memwatch/engine/recording/format')

const MOST_AT_ONCE = 4
/**
 * A client that reads more slowly than agents send is disconnected: unsent data would fill the
 * exporter's memory.
 */
const MOST_UNREAD_BYTES = 8 * 2 ** 20

const SCHEMA = {
  tags: ['targets'],
  summary: 'Record the frames of agents, for memwatch diagnose',
  querystring: schemas.recordingQuery,
  response: {
    200: {
      description: 'a recording, line by line',
      content: { 'application/x-ndjson': { schema: { type: 'string' } } }
    },
    ...schemas.refusals
  }
}

/**
 * POST /api/v1/recording: messages of agents during the next seconds, in the form that `memwatch
 * diagnose` reads. The first frame of each target contains the newest value of every field, because
 * agents send some fields rarely.
 *
 * @param {import('fastify').FastifyInstance} server
 * @param {object} parts
 * @param {() => import('@memwatch/engine/history/target').Target[]} parts.targets
 * @param {import('node:events').EventEmitter} parts.events of the exporter: frame, end
 */
function recordingRoutes (server, { targets, events }) {
  /** @type {Set<() => void>} functions that end the running recordings */
  const running = new Set()
  server.addHook('preClose', async () => { for (const end of running) end() })

  server.post(
    '/api/v1/recording',
    {
      schema: SCHEMA,
      config: { access: 'act' }
    },
    async (request, reply) => {
      const { target: wanted, seconds } = /** @type {{ target?: string, seconds: number }} */ (
        request.query
      )
      if (running.size >= MOST_AT_ONCE) {
        return refuse(reply, 'too_many_viewers', `${MOST_AT_ONCE} recordings are running, the maximum: try again when one has ended`)
      }
      if (wanted !== undefined && !targets().some(({ name }) => name === wanted)) {
        return refuse(reply, 'unknown_target', 'unknown target: /api/v1/targets lists all targets')
      }
      const out = new PassThrough()
      const write = (/** @type {object} */ item) => {
        if (out.readableLength + out.writableLength > MOST_UNREAD_BYTES) {
          out.destroy(new Error('read too slowly'))
        } else out.write(JSON.stringify(item) + '\n')
      }
      const { frame, ended } = recordSessions(write, wanted)
      const end = () => {
        out.end()
      }
      const timer = setTimeout(end, 1000 * seconds).unref()
      running.add(end)
      events.on('frame', frame).on('end', ended)
      out.on('error', error =>
        request.log.warn({ by: request.ip }, `recording cut: ${error.message}`)
      )
      out.on('close', () => {
        clearTimeout(timer)
        running.delete(end)
        events.off('frame', frame).off('end', ended)
      })
      request.log.info({ by: request.ip, target: wanted, seconds }, 'recording requested')
      write({ memwatch: 'recording', version: RECORDING_VERSION })
      return reply
        .type('application/x-ndjson')
        .header('connection', 'close')
        .header(
          'content-disposition',
          `attachment; filename="memwatch-${new Date().toISOString().replace(/[:.]/g, '')}.recording"`
        )
        .send(out)
    }
  )
}

/**
 * Creates listeners that write the messages of targets.
 * @param {(item: object) => void} write
 * @param {string | undefined} wanted name of a target; undefined: all
 */
function recordSessions (write, wanted) {
  /** @type {Map<import('@memwatch/engine/history/target').Target, number>} */
  const sessions = new Map()
  const frame = (/** @type {import('@memwatch/engine/history/target').Target} */ target) => {
    if (wanted !== undefined && target.name !== wanted) return
    const known = sessions.get(target)
    const session = known ?? sessions.size + 1
    if (known === undefined) {
      sessions.set(target, session)
      write({ session, line: { v: PROTOCOL_VERSION, ...target.hello } })
    }
    const values = known === undefined ? { values: target.values } : {}
    write({ session, line: { v: PROTOCOL_VERSION, ...target.frame, ...values } })
  }
  const ended = (/** @type {import('@memwatch/engine/history/target').Target} */ target) => {
    const session = sessions.get(target)
    if (session === undefined) return
    const { sequence = 0, atUnixMs = 0 } = target.frame ?? {}
    const { exitCode } = target
    if (exitCode !== undefined) {
      const bye = { type: 'bye', sequence: sequence + 1, atUnixMs, exitCode }
      write({ session, line: { v: PROTOCOL_VERSION, ...bye } })
    }
    write({ session, closed: true })
    sessions.delete(target)
  }
  return { frame, ended }
}

module.exports = { recordingRoutes }
