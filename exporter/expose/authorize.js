'use strict'

const { createHash, timingSafeEqual } = require('node:crypto')

/** Names under which a browser or a tool on this machine calls a loopback server. */
const LOOPBACK_NAMES = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i
const LOOPBACK_ADDRESSES = /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/**
 * Who may act on an app through the exporter. With a token: who bears it. Without one: who is on this machine, and no web
 * page in a browser here – a page of another site sends an Origin, one that took over a name sends that name as Host.
 *
 * @param {string | undefined} token
 * @returns {import('fastify').preHandlerAsyncHookHandler} answers 401 or 403 to all others
 */
function authorize (token) {
  return async (request, reply) => {
    const { authorization, host, origin } = request.headers
    if (token) {
      const given = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
      if (given !== undefined && timingSafeEqual(digest(given), digest(token))) return
      return reply.code(401).header('www-authenticate', 'Bearer').send(refusal('unauthorized', 'this needs the token: Authorization: Bearer …'))
    }
    const local = LOOPBACK_ADDRESSES.test(request.socket.remoteAddress ?? '') && LOOPBACK_ADDRESSES.test(request.socket.localAddress ?? '')
    if (local && origin === undefined && LOOPBACK_NAMES.test(host ?? '')) return
    return reply.code(403).send(refusal('forbidden', 'without a token (--token-file) this is for tools on the same machine only'))
  }
}

/** @param {string} code @param {string} message */
const refusal = (code, message) => ({ error: { code, message } })

module.exports = { authorize, refusal }
