'use strict'

const http = require('node:http')
const { problemOf, MEDIA_TYPE } = require('./problems')

/** @typedef {import('node:net').Socket} Socket */

/** Each connection costs some 10 KiB. */
const MOST_CONNECTIONS = 1200
/** Connections of one address: they leave room for the kubelet, for Prometheus and for people. */
const MOST_CONNECTIONS_OF_ADDRESS = 1000
/**
 * New connections of one address. Accepting one and closing another takes 0.2 to 0.3 ms of CPU: a client that opens each closed connection again at once would
 * take all of a tenth of a core.
 */
const CONNECTIONS = { burst: 1500, perSecond: 250 }
/** A connection beyond that is not read, and closed this much later: its client waits instead of trying again. */
const HELD_MS = 3000

/** Requests of one address: a page that draws a hundred targets asks for less, a script that guesses tokens for more. */
const REQUESTS = { burst: 1000, perSecond: 100 }
/** Requests that one counts for. A refusal is the answer to a guess, or to a stranger. */
const COSTS = { request: 1, scrape: 10, refusal: 10 }
/**
 * Answers that are under way, in total and to one address.
 *   requests: all of them; `memwatch top` sends some fifty at a time
 *   scrapes: in total as node_exporter's --web.max-requests
 *   viewers: server-sent events; each gets a row a second for every target
 * @type {Readonly<Record<Kind, { total: number, ofAddress: number }>>}
 */
const MOST = Object.freeze({
  requests: { total: 200, ofAddress: 100 },
  scrapes: { total: 40, ofAddress: 10 },
  viewers: { total: 32, ofAddress: 8 }
})
/** @typedef {'requests' | 'scrapes' | 'viewers'} Kind @typedef {Record<Kind, number>} Counts */
const none = () => /** @type {Counts} */ ({ requests: 0, scrapes: 0, viewers: 0 })

/** Clients without a connection are forgotten when they may send a full burst again. */
const FORGET_EVERY_MS = 10_000

const HEADERS = { 'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin' }
const PROBE_HEADERS = { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }

/** Tokens that come back with time. */
class Bucket {
  #tokens
  #atMs

  /** @param {{ burst: number, perSecond: number }} rate @param {number} nowMs */
  constructor (rate, nowMs) {
    this.rate = rate
    this.#tokens = rate.burst
    this.#atMs = nowMs
  }

  /** @param {number} nowMs @returns {number} tokens; below 0 after a large charge */
  left (nowMs) {
    this.#tokens = Math.min(this.rate.burst, this.#tokens + (nowMs - this.#atMs) / 1000 * this.rate.perSecond)
    this.#atMs = nowMs
    return this.#tokens
  }

  /** @param {number} tokens */
  charge (tokens) {
    this.#tokens = Math.max(this.#tokens - tokens, -this.rate.burst)
  }

  /** @param {number} nowMs @returns {boolean} whether there was a token */
  take (nowMs) {
    const taken = this.left(nowMs) >= 1
    if (taken) this.charge(1)
    return taken
  }

  /** @param {number} nowMs */
  isFull (nowMs) {
    return this.left(nowMs) === this.rate.burst
  }
}

/** One address, or the /64 network of an IPv6 address. */
class Client {
  connections = 0
  /** Connections without an answer under way, longest idle first. @type {Set<Socket>} */
  idle = new Set()
  underWay = none()

  /** @param {number} nowMs */
  constructor (nowMs) {
    this.newConnections = new Bucket(CONNECTIONS, nowMs)
    this.requests = new Bucket(REQUESTS, nowMs)
  }
}

/**
 * Limits of connections and requests, in total and of each client, that hold before anything is routed: what is refused costs little. Health probes
 * (`/-/healthy`, `/-/ready`) are answered here. They are in no rate and no queue, as a refusal would cost as much as the answer.
 */
class ClientLimits {
  /** @type {Map<string, Client>} */
  #clients = new Map()
  /** Every open connection. @type {Map<Socket, { client: Client, underWay: Counts }>} */
  #connections = new Map()
  #underWay = none()
  #isReady
  #now
  #forgottenAtMs
  #longestScrapeMs

  /**
   * @param {object} options
   * @param {() => boolean} options.isReady answer of `/-/ready`
   * @param {number} [options.longestScrapeMs] Prometheus' default scrape_timeout: it waits no longer for /metrics
   * @param {() => number} [options.now] ms, monotonic
   */
  constructor ({ isReady, longestScrapeMs = 10_000, now = () => performance.now() }) {
    this.#isReady = isReady
    this.#longestScrapeMs = longestScrapeMs
    this.#now = now
    this.#forgottenAtMs = now()
  }

  /**
   * @param {http.ServerOptions} options
   * @param {http.RequestListener} handler of admitted requests
   * @returns {http.Server}
   */
  createServer (options, handler) {
    const server = http.createServer(options, (request, response) => { if (this.#admits(request, response)) handler(request, response) })
    // Beyond it node:net closes the next connection, whoever it is. An idle one that was closed to make room counts for a moment more.
    server.maxConnections = MOST_CONNECTIONS + 100
    // The listener of node:http reads the connection: a connection that is held back never gets to it.
    const [serve] = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', socket => { if (this.#connected(socket)) serve.call(server, socket) })
    return server
  }

  /**
   * @param {http.IncomingMessage} request for metrics @param {http.ServerResponse} response
   * @returns {boolean} false beyond the limit
   */
  startScrape ({ socket }, response) {
    if (this.#limitOf('scrapes', socket)) return false
    this.#start('scrapes', socket, response)
    this.#connections.get(socket)?.client.requests.charge(COSTS.scrape - COSTS.request)
    const slow = setTimeout(() => socket.destroy(), this.#longestScrapeMs).unref()
    response.once('close', () => clearTimeout(slow))
    return true
  }

  /**
   * @param {http.IncomingMessage} request for server-sent events @param {http.ServerResponse} response
   * @returns {'total' | 'ofAddress' | undefined} the limit that it would exceed
   */
  startViewing ({ socket }, response) {
    const limit = this.#limitOf('viewers', socket)
    if (!limit) this.#start('viewers', socket, response)
    return limit
  }

  /** @param {Kind} kind @param {Socket} socket @returns {'total' | 'ofAddress' | undefined} the limit that is reached */
  #limitOf (kind, socket) {
    if (this.#underWay[kind] >= MOST[kind].total) return 'total'
    if ((this.#connections.get(socket)?.client.underWay[kind] ?? 0) >= MOST[kind].ofAddress) return 'ofAddress'
  }

  /** @param {Kind} kind @param {Socket} socket @param {http.ServerResponse} response */
  #start (kind, socket, response) {
    const connection = this.#connections.get(socket)
    if (!connection) return // closed meanwhile
    const count = (/** @type {number} */ by) => {
      for (const counts of [this.#underWay, connection.client.underWay, connection.underWay]) counts[kind] += by
    }
    count(1)
    response.once('close', () => {
      // What a connection that is closed had under way is no longer counted.
      if (!this.#connections.has(socket)) return
      count(-1)
      if (kind === 'requests' && connection.underWay.requests === 0) connection.client.idle.add(socket)
    })
  }

  /** @param {string} address @returns {Client} */
  #clientAt (address) {
    const key = networkOf(address)
    let client = this.#clients.get(key)
    if (!client) this.#clients.set(key, client = new Client(this.#now()))
    return client
  }

  /** @param {Socket} socket @returns {boolean} whether it is served */
  #connected (socket) {
    const nowMs = this.#now()
    if (nowMs - this.#forgottenAtMs > FORGET_EVERY_MS) this.#forget(nowMs)
    const client = this.#clientAt(socket.remoteAddress ?? '')
    const connection = { client, underWay: none() }
    this.#connections.set(socket, connection)
    client.connections++
    client.idle.add(socket)
    socket.once('close', () => {
      this.#connections.delete(socket)
      client.connections--
      client.idle.delete(socket)
      for (const kind of /** @type {Kind[]} */ (Object.keys(MOST))) {
        // A pipelined request that had to wait gets no event of its own.
        this.#underWay[kind] -= connection.underWay[kind]
        client.underWay[kind] -= connection.underWay[kind]
      }
    })
    const isServed = client.newConnections.take(nowMs)
    if (!isServed) {
      socket.on('error', () => {})
      setTimeout(() => socket.destroy(), HELD_MS).unref()
    }
    if (client.connections > MOST_CONNECTIONS_OF_ADDRESS) closeIdleOf(client, socket)
    else if (this.#connections.size > MOST_CONNECTIONS) closeIdleOf(this.#busiest(), socket)
    return isServed
  }

  /** @returns {Client} with the most idle connections */
  #busiest () {
    let [busiest] = this.#clients.values()
    for (const client of this.#clients.values()) if (client.idle.size > busiest.idle.size) busiest = client
    return busiest
  }

  /** @param {http.IncomingMessage} request @param {http.ServerResponse} response @returns {boolean} false: it is answered */
  #admits (request, response) {
    const { url, method, socket } = request
    if ((url === '/-/healthy' || url === '/-/ready') && (method === 'GET' || method === 'HEAD')) {
      const isWell = url === '/-/healthy' || this.#isReady()
      response.writeHead(isWell ? 200 : 503, PROBE_HEADERS)
      response.end(isWell ? url === '/-/ready' ? 'ready\n' : 'healthy\n' : 'starting\n')
      return false
    }
    const client = this.#connections.get(socket)?.client
    if (!client) return false // closed meanwhile
    if (!client.requests.take(this.#now())) return refuseCheaply(request, response, TOO_MANY)
    if (this.#limitOf('requests', socket)) return refuseCheaply(request, response, TOO_BUSY)
    client.idle.delete(socket)
    this.#start('requests', socket, response)
    response.once('close', () => {
      if (response.statusCode === 401 || response.statusCode === 403) client.requests.charge(COSTS.refusal - COSTS.request)
    })
    return true
  }

  /** @param {number} nowMs */
  #forget (nowMs) {
    this.#forgottenAtMs = nowMs
    for (const [key, client] of this.#clients) {
      if (client.connections === 0 && client.requests.isFull(nowMs) && client.newConnections.isFull(nowMs)) this.#clients.delete(key)
    }
  }
}

/** @param {Client} client @param {Socket} newest closed where no other is idle */
function closeIdleOf ({ idle }, newest) {
  const [longest = newest] = idle
  idle.delete(longest)
  longest.resetAndDestroy()
}

/** An answer that is made once. @param {string} code @param {string} detail @param {number} retrySeconds */
function prepared (code, detail, retrySeconds) {
  const problem = problemOf(code, detail)
  const body = JSON.stringify(problem)
  return { status: problem.status, body, headers: { ...HEADERS, 'content-type': MEDIA_TYPE, 'content-length': Buffer.byteLength(body), 'retry-after': String(retrySeconds) } }
}
const TOO_MANY = prepared('rate_limited', 'too many requests from this address: wait ten seconds', 10)
const TOO_BUSY = prepared('too_busy', 'too many requests are being answered: ask again in a second', 1)

/**
 * @param {http.IncomingMessage} request @param {http.ServerResponse} response @param {ReturnType<typeof prepared>} answer
 * @returns {false}
 */
function refuseCheaply ({ headers }, response, answer) {
  // Nobody reads the body of a request that is refused.
  response.shouldKeepAlive &&= headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
  response.writeHead(answer.status, answer.headers)
  // A string: node:http sends it together with the headers, by one write.
  response.end(answer.body)
  return false
}

/**
 * One client has one IPv4 address, and all addresses of an IPv6 network.
 * @param {string} address as a socket names it @returns {string}
 */
function networkOf (address) {
  if (address.includes('.')) return address.replace(/^::ffff:/, '')
  const [start, end] = address.split('%')[0].split('::').map(part => part.split(':').filter(Boolean))
  const zeros = end ? Array(Math.max(0, 8 - start.length - end.length)).fill('0') : []
  return [...start, ...zeros, ...end ?? []].slice(0, 4).join(':')
}

module.exports = { ClientLimits, networkOf, MOST, HEADERS }
