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
 * Rights of a route. open: for Prometheus and probes. read: findings and their targets. act:
 * changes or examines an app. Default: read.
 * @typedef {'open' | 'read' | 'act'} Access
 */

/** @param {string} text */
const digest = text => createHash('sha256').update(text).digest()

/** Headers added by proxies and meshes: a request with such a header counts as remote. */
const OF_PROXIES = new RegExp(`^(${[
  'via', 'forwarded', 'x-forwarded', '(x-)?forwarded-.*', 'x-original-.*', 'x-real-ip',
  'x-(cluster-)?client-ip', 'true-client-ip', 'fastly-client-ip', 'cf-.*', 'x-envoy-.*', 'l5d-.*',
  'x-(amzn|azure|goog)-.*'
].join('|')})$`)

/**
 * Access rules. Clients on this machine may read, and may act if no token is set. Remote clients
 * need the token for both; without a token they may do neither. A request forwarded by a proxy
 * counts as remote. In a browser on this machine only the exporter's own page may act. Other sites
 * may not act. They may not read either, even if they let their own host name resolve to this
 * machine (DNS rebinding): on loopback, the Host header must be the address, localhost, or this
 * machine's name.
 *
 * @param {object} options
 * @param {string | undefined} options.token
 * @param {boolean} options.trustLoopback false: clients on this machine are treated as remote
 * @returns {(request: FastifyRequest, reply: FastifyReply) => Promise<any>} hook that answers
 *   forbidden requests with 401 or 403
 */
function authorize ({ token, trustLoopback }) {
  return async (request, reply) => {
    const { access = 'read' } = /** @type {{ access?: Access }} */ (request.routeOptions.config ?? {})
    const { authorization, host, origin } = request.headers
    const denied = (/** @type {string} */ detail) => refuse(reply, 'forbidden', detail)
    if (isOfAnotherSite(request, access)) return denied('requests from other sites are not allowed')
    const ownPage = [undefined, `http://${host}`, `https://${host}`].includes(origin)
    const { remoteAddress = '', localAddress = '' } = request.socket
    const overLoopback = [remoteAddress, localAddress].every(at => LOOPBACK_ADDRESSES.test(at))
    const hasToken = Boolean(token) && isToken(tokenIn(authorization ?? ''), token)
    // A page of another site does not know the token, so a request with the token may have any Host
    // header, such as that of a proxy.
    if (overLoopback && !hasToken && !isOurName(host ?? '')) {
      return denied('unknown host name: on this machine, use localhost')
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
      // A browser also sends its stored password with requests that other sites make, so an action
      // must also come from the exporter's own page, or from outside a browser.
      if (access === 'read' || ownPage) return
    }
    if (local && ownPage) return
    return denied(
      token
        ? 'actions from other sites are not allowed'
        : 'without a token (--token-file) only programs on the same machine may send this request'
    )
  }
}

/**
 * Compares in constant time.
 * @param {string | undefined} given
 * @param {string | undefined} token
 */
const isToken = (given, token) =>
  given !== undefined && token !== undefined && timingSafeEqual(digest(given), digest(token))

/**
 * True for a browser request made by another site. A link on another site may only open a page:
 * https://web.dev/articles/fetch-metadata
 * @param {FastifyRequest} request
 * @param {Access} access of its route
 */
function isOfAnotherSite ({ headers, method }, access) {
  const { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': to } = headers
  if (site === undefined || site === 'same-origin' || site === 'none') return false
  return !(access !== 'act' && method === 'GET' && mode === 'navigate' && to === 'document')
}

/**
 * Reads the token from the header: a bearer token, or the password for which a browser asks.
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
