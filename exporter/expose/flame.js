'use strict'

const path = require('node:path')
const { filesIn, sendFile } = require('./static-files')

/** speedscope as published: a separate page, without external code. */
const FOLDER = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release')
/**
 * Content security policy: speedscope fetches profiles from this exporter, or from the page that
 * opened it, and nothing else.
 */
const POLICY =
  "default-src 'self'; connect-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src " +
    "'self' data: blob:; font-src 'self' data:; script-src 'self' 'wasm-unsafe-eval'; " +
      "worker-src 'self' blob:; frame-ancestors 'self'"

/**
 * GET /flame/: speedscope, which draws a flame graph of the capture in the fragment of the URL.
 * @param {import('fastify').FastifyInstance} server
 */
function flameRoutes (server) {
  const files = filesIn(FOLDER)
  server.get('/flame/', async (request, reply) =>
    sendFile(request, reply, files.get('index.html'), POLICY)
  )
  server.get('/flame/:file', async (request, reply) => sendFile(request, reply, files.get(/** @type {{ file: string }} */ (request.params).file), POLICY))
}

/**
 * Path of a capture's flame graph on this exporter.
 * @param
 *   {Pick<import('../captures/captures').Capture, 'id' | 'kind' | 'target' | 'thread' | 'parts'>}
 *   capture
 * @returns {string | null} null without a flame graph
 */
function flamePath ({ id, kind, target, thread, parts }) {
  const part = kind.endsWith('_profile') ? parts.at(-1)?.part : undefined
  return part === undefined
    ? null
    : `/flame/#${new URLSearchParams({ profileURL: `/api/v1/captures/${id}/${part}`, title: `${target} ${thread} ${kind}` }).toString().replace(/\+/g, '%20')}`
}

module.exports = { flameRoutes, flamePath }
