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

/** Headers that proxies and meshes add: the request comes from elsewhere, whatever address it was passed on from. */
const OF_PROXIES = /^(forwarded|via|(x-)?forwarded-.*|x-forwarded|x-real-ip|x-(cluster-)?client-ip|x-original-.*|x-envoy-.*|l5d-.*|true-client-ip|cf-.*|fastly-client-ip|x-(amzn|azure|goog)-.*)$/

/**
 * Who may do what. From this machine reading is free, and so is acting where there is no token; from elsewhere both need the token,
 * and without one nobody may. What a proxy on this machine passes on is from elsewhere. In a browser on this machine only the exporter's own page may act; another
 * site may not, and by a name that it took over it may not even read: what calls a loopback server calls it by address, as localhost, or by this machine's name.
 *
 * @param {object} options
 * @param {string | undefined} options.token
 * @param {boolean} options.trustLoopback false: callers on this machine are from elsewhere
 * @returns {(request: import('fastify').FastifyRequest, reply: import('fastify').FastifyReply) => Promise<any>} a hook that answers 401 or 403 to all others
 */
function authorize ({ token, trustLoopback }) {
  return async (request, reply) => {
    const access = /** @type {{ access?: Access }} */ (request.routeOptions.config ?? {}).access ?? 'read'
    const { authorization, host, origin } = request.headers
    if (isOfAnotherSite(request, access)) return refuse(reply, 'forbidden', 'no other site may ask for this')
    const ownPage = origin === undefined || origin === `http://${host}` || origin === `https://${host}`
    const overLoopback = LOOPBACK_ADDRESSES.test(request.socket.remoteAddress ?? '') && LOOPBACK_ADDRESSES.test(request.socket.localAddress ?? '')
    const given = tokenIn(authorization ?? '')
    const hasToken = token !== undefined && token !== '' && given !== undefined && timingSafeEqual(digest(given), digest(token))
    // A page that took over a name does not know the token; a proxy may keep the name that it was called by.
    if (overLoopback && !hasToken && !isOurName(host ?? '')) return refuse(reply, 'forbidden', 'on this machine the exporter is called localhost')
    if (access === 'open') return
    const local = overLoopback && trustLoopback && !Object.keys(request.headers).some(name => OF_PROXIES.test(name))
    if (local && access === 'read') return
    if (token) {
      if (!hasToken) {
        return refuse(reply.header('www-authenticate', 'Bearer, Basic realm="memwatch: any name, and the token as password"'), 'unauthorized', 'this needs the token: Authorization: Bearer …')
      }
      // A browser that knows the password sends it along with what other sites make it ask, too.
      if (access === 'read' || ownPage) return
    }
    if (local && ownPage) return
    return refuse(reply, 'forbidden', token ? 'no other site may have this done' : 'without a token (--token-file) this is for tools on the same machine only')
  }
}

/**
 * Whether a browser asks on behalf of another site. A link on another site may open a page, and nothing else: https://web.dev/articles/fetch-metadata
 * @param {import('fastify').FastifyRequest} request @param {Access} access of its route
 */
function isOfAnotherSite ({ headers, method }, access) {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': to } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return false
  return !(access !== 'act' && method === 'GET' && mode === 'navigate' && to === 'document')
}

/**
 * As programs bear it, or as the password that a browser asks its user for.
 * @param {string} authorization header @returns {string | undefined}
 */
function tokenIn (authorization) {
  const [, scheme, given] = /^(Bearer|Basic) (.+)$/i.exec(authorization) ?? []
  return scheme?.toLowerCase() === 'basic' ? Buffer.from(given, 'base64').toString().replace(/^[^:]*:/, '') : given
}

/** @param {string} host header, with or without a port */
function isOurName (host) {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || net.isIP(name) !== 0 || name === os.hostname().toLowerCase()
}

module.exports = { authorize }
