'use strict'

const fs = require('node:fs')
const path = require('node:path')
const { refuse } = require('./problems')

/** speedscope as it is published: a page of its own, with no code from elsewhere. */
const FOLDER = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release')
const MEDIA_TYPES = /** @type {Record<string, string>} */ ({
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.png': 'image/png', '.ico': 'image/x-icon', '.woff2': 'font/woff2', '.wasm': 'application/wasm'
})
/** It fetches profiles from here, and nothing from anywhere else. */
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; frame-ancestors 'self'"

/**
 * GET /flame/: speedscope, which draws a flame graph of the capture that the address names behind its #.
 * @param {import('fastify').FastifyInstance} server
 */
function flameRoutes (server) {
  // By name from what there is: no path leads out of the folder.
  const files = new Map(fs.readdirSync(FOLDER).filter(name => MEDIA_TYPES[path.extname(name)]).map(name => [name, path.join(FOLDER, name)]))
  server.get('/flame/', async (_, reply) => send(reply, 'index.html'))
  server.get('/flame/:file', async (request, reply) => send(reply, /** @type {{ file: string }} */ (request.params).file))

  /** @param {import('fastify').FastifyReply} reply @param {string} name */
  function send (reply, name) {
    const file = files.get(name)
    if (!file) return refuse(reply, 'not_found', 'no such file')
    return reply.type(MEDIA_TYPES[path.extname(name)]).header('content-security-policy', POLICY).header('cache-control', 'max-age=3600').send(fs.createReadStream(file))
  }
}

/**
 * Where a capture's flame graph is, below the exporter's address.
 * @param {Pick<import('../captures/captures').Capture, 'id' | 'kind' | 'target' | 'thread' | 'parts'>} capture
 * @returns {string | null} null for what has none
 */
function flamePath ({ id, kind, target, thread, parts }) {
  const part = kind.endsWith('_profile') ? parts.at(-1)?.part : undefined
  return part === undefined ? null : `/flame/#${new URLSearchParams({ profileURL: `/api/v1/captures/${id}/${part}`, title: `${target} ${thread} ${kind}` }).toString().replace(/\+/g, '%20')}`
}

module.exports = { flameRoutes, flamePath }
