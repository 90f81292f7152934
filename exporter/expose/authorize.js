'use strict'

const os = require('node:os')
const net = require('node:net')
const { createHash, timingSafeEqual } = require('node:crypto')
const { refuse } = require('./problems')

const LOOPBACK_ADDRESSES = /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/

/**
 * What a route lets one do. open: what Prometheus and probes need. read: what was found, and where. act: change or examine an app.
 * A route that says nothing is for reading.
 * @typedef {'open' | 'read' | 'act'} Access
 */

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/**
 * Who may do what. From this machine reading is free, and so is acting where there is no token; from elsewhere both need the token,
 * and without one nobody may. A web page in a browser on this machine may not act, and by a name that it took over it may not
 * even read: what calls a loopback server calls it by address, as localhost, or by this machine's name.
 *
 * @param {string | undefined} token
 * @returns {(request: import('fastify').FastifyRequest, reply: import('fastify').FastifyReply) => Promise<any>} a hook that answers 401 or 403 to all others
 */
function authorize (token) {
  return async (request, reply) => {
    const access = /** @type {{ access?: Access }} */ (request.routeOptions.config ?? {}).access ?? 'read'
    const { authorization, host, origin } = request.headers
    const local = LOOPBACK_ADDRESSES.test(request.socket.remoteAddress ?? '') && LOOPBACK_ADDRESSES.test(request.socket.localAddress ?? '')
    if (local && !isOurName(host ?? '')) return refuse(reply, 'forbidden', 'on this machine the exporter is called localhost')
    if (access === 'open') return
    if (local && access === 'read') return
    if (token) {
      const given = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1]
      if (given !== undefined && timingSafeEqual(digest(given), digest(token))) return
      return refuse(reply.header('www-authenticate', 'Bearer'), 'unauthorized', 'this needs the token: Authorization: Bearer …')
    }
    if (local && origin === undefined) return
    return refuse(reply, 'forbidden', 'without a token (--token-file) this is for tools on the same machine only')
  }
}

/** @param {string} host header, with or without a port */
function isOurName (host) {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || net.isIP(name) !== 0 || name === os.hostname().toLowerCase()
}

module.exports = { authorize }
