'use strict'

const os = require('node:os')
const net = require('node:net')
const { createHash, timingSafeEqual } = require('node:crypto')
const { refuse } = require('./problems')

/**
 * @typedef {import('fastify').FastifyRequest} FastifyRequest
 * @typedef {import('fastify').FastifyReply} FastifyReply
 */

const LOOPBACK_ADDRESSES = /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+)$/

/**
 * Rights of a route. open: for Prometheus and probes. read: findings and their targets. act: change
 * or examine an app. A route that says nothing is for reading.
 * @typedef {'open' | 'read' | 'act'} Access
 */

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/** Headers added by proxies and meshes: a request with one counts as remote. */
const OF_PROXIES = new RegExp(`^(${[
  'via', 'forwarded', 'x-forwarded', '(x-)?forwarded-.*', 'x-original-.*', 'x-real-ip',
  'x-(cluster-)?client-ip', 'true-client-ip', 'fastly-client-ip', 'cf-.*', 'x-envoy-.*', 'l5d-.*',
  'x-(amzn|azure|goog)-.*'
].join('|')})$`)

/**
 * Access rules. From this machine reading is free, and so is acting where there is no token; from
 * elsewhere both need the token, and without one nobody may. A request that a proxy on this machine
 * passes on is from elsewhere. In a browser on this machine only the exporter's own page may act;
 * another site may not, and by a name that it took over it may not even read: a caller of a
 * loopback server names it by its address, as localhost, or by this machine's name.
 *
 * @param {object} options
 * @param {string | undefined} options.token
 * @param {boolean} options.trustLoopback false: callers on this machine are from elsewhere
 * @returns {(request: FastifyRequest, reply: FastifyReply) => Promise<any>} a hook that answers 401
 *   or 403 to all others
 */
function authorize ({ token, trustLoopback }) {
  return async (request, reply) => {
    const { access = 'read' } = /** @type {{ access?: Access }} */ (request.routeOptions.config ?? {})
    const { authorization, host, origin } = request.headers
    const denied = (/** @type {string} */ detail) => refuse(reply, 'forbidden', detail)
    if (isOfAnotherSite(request, access)) return denied('no other site may ask for this')
    const ownPage = [undefined, `http://${host}`, `https://${host}`].includes(origin)
    const { remoteAddress = '', localAddress = '' } = request.socket
    const overLoopback = [remoteAddress, localAddress].every(at => LOOPBACK_ADDRESSES.test(at))
    const hasToken = Boolean(token) && isToken(tokenIn(authorization ?? ''), token)
    // A page that took over a name does not know the token. A proxy may forward the name in Host.
    if (overLoopback && !hasToken && !isOurName(host ?? '')) {
      return denied('on this machine the exporter is called localhost')
    }
    if (access === 'open') return
    const isOfProxy = Object.keys(request.headers).some(name => OF_PROXIES.test(name))
    const local = overLoopback && trustLoopback && !isOfProxy
    if (local && access === 'read') return
    if (token) {
      if (!hasToken) {
        return refuse(
          reply.header(
            'www-authenticate',
            'Bearer, Basic realm="memwatch: any name, and the token as password"'
          ),
          'unauthorized',
          'send the token: Authorization: Bearer …'
        )
      }
      // A browser with a stored password also sends it with requests made by other sites.
      if (access === 'read' || ownPage) return
    }
    if (local && ownPage) return
    return denied(
      token
        ? 'no other site may have this done'
        : 'without a token (--token-file) this is for tools on the same machine only'
    )
  }
}

/**
 * In constant time.
 * @param {string | undefined} given
 * @param {string | undefined} token
 */
const isToken = (given, token) =>
  given !== undefined && token !== undefined && timingSafeEqual(digest(given), digest(token))

/**
 * True when a browser asks on behalf of another site. A link on another site may open a page, and
 * nothing else: https://web.dev/articles/fetch-metadata
 * @param {FastifyRequest} request
 * @param {Access} access of its route
 */
function isOfAnotherSite ({ headers, method }, access) {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': to } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return false
  return !(access !== 'act' && method === 'GET' && mode === 'navigate' && to === 'document')
}

/**
 * As programs bear it, or as the password that a browser asks its user for.
 * @param {string} authorization header
 * @returns {string | undefined}
 */
function tokenIn (authorization) {
  const [, scheme, given] = /^(Bearer|Basic) (.+)$/i.exec(authorization) ?? []
  return scheme?.toLowerCase() === 'basic'
    ? Buffer.from(given, 'base64')
      .toString()
      .replace(/^[^:]*:/, '')
    : given
}

/** @param {string} host header, with or without a port */
function isOurName (host) {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || net.isIP(name) !== 0 || name === os.hostname().toLowerCase()
}

module.exports = { authorize }
