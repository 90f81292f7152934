'use strict'

const http = require('node:http')
const { problemOf, MEDIA_TYPE } = require('./problems')
const { TokenBucket } = require('./token-bucket')

/** @typedef {import('node:net').Socket} Socket */

/** Upper bound of open connections. Each takes some 10 KiB. */
const MOST_CONNECTIONS = 1200
/**
 * Upper bound of connections from one address, which leaves room for the kubelet, Prometheus and
 * people.
 */
const MOST_CONNECTIONS_OF_ADDRESS = 1000
/**
 * Limit of new connections from one address. Accepting one and closing another takes 0.2 to 0.3 ms
 * of CPU: a client that reopens each closed connection at once would use up a tenth of a core.
 */
const CONNECTIONS = { burst: 1500, perSecond: 250 }
/**
 * Delay before a connection beyond this rate is closed, unread, so that its client waits before the
 * next one.
 */
const HELD_MS = 3000

/**
 * Limit of requests from one address. The page and `memwatch top` send fewer. A list of targets
 * takes 1 ms of CPU time: a tenth of a core serves 100 lists a second.
 */
const REQUESTS = { burst: 500, perSecond: 50 }
/**
 * Weights of requests. A refusal weighs most, because it answers a guessed token or an unauthorized
 * client.
 */
const COSTS = { request: 1, scrape: 5, refusal: 10 }
/**
 * Limits of unfinished answers, in total and to one address.
 *   requests: all answers; `memwatch top` requests some fifty at a time
 *   scrapes: the total is that of node_exporter's --web.max-requests
 *   viewers: server-sent events; each gets a row a second for every target
 * @type {Readonly<Record<Kind, { total: number, ofAddress: number }>>}
 */
const MOST = Object.freeze({
  requests: { total: 200, ofAddress: 100 },
  scrapes: { total: 40, ofAddress: 10 },
  viewers: { total: 32, ofAddress: 8 }
})
/**
 * @typedef {'requests' | 'scrapes' | 'viewers'} Kind
 * @typedef {Record<Kind, number>} Counts
 */
const none = () => /** @type {Counts} */ ({ requests: 0, scrapes: 0, viewers: 0 })

/**
 * Interval at which clients without a connection are removed, if they may send a full burst again.
 */
const FORGET_EVERY_MS = 10_000

/** Headers of every response. */
const HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin'
}
const PROBE_HEADERS = { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' }

/** One address, or the /64 network of an IPv6 address. */
class Client {
  connections = 0
  /** Connections without an unfinished answer, the longest idle first. @type {Set<Socket>} */
  idle = new Set()
  underWay = none()

  /** @param {number} nowMs */
  constructor (nowMs) {
    this.newConnections = new TokenBucket(CONNECTIONS, nowMs)
    this.requests = new TokenBucket(REQUESTS, nowMs)
  }
}

/**
 * Limits of connections and requests, in total and for each client. The limits are checked before a
 * request is routed, so that a refusal costs little. Health probes (`/-/healthy`, `/-/ready`) are
 * answered here, and have no limit of requests: a refusal would cost as much as the answer.
 */
class ClientLimits {
  /** @type {Map<string, Client>} */
  #clients = new Map()
  /** Every open connection. @type {Map<Socket, { client: Client, underWay: Counts }>} */
  #connections = new Map()
  #underWay = none()
  #isReady
  #longestScrapeMs
  #now
  /** Admitted requests that wait for their turn of the event loop. @type {(() => void)[]} */
  #waiting = []
  #forgottenAtMs

  /**
   * @param {object} options
   * @param {() => boolean} options.isReady returns the state that `/-/ready` reports
   * @param {number} [options.longestScrapeMs] Prometheus' default scrape_timeout
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
    const server = http.createServer(options, (request, response) => {
      if (!this.#admits(request, response)) return
      const handle = () => { if (!request.socket.destroyed) handler(request, response) }
      if (this.#waiting.push(handle) === 1) setImmediate(this.#handleNext)
    })
    // Above this number node:net closes each new connection, whichever client it comes from. An
    // idle connection that was closed to make room still counts for a moment.
    server.maxConnections = MOST_CONNECTIONS + 100
    // node:http's own listener reads the connection. A delayed connection is never passed to it.
    const [serve] = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', socket => { if (this.#connected(socket)) serve.call(server, socket) })
    return server
  }

  /**
   * Handles one request. Probes are answered between requests, because each turn of the event loop
   * reads new requests.
   */
  #handleNext = () => {
    const handle = this.#waiting.shift()
    if (this.#waiting.length > 0) setImmediate(this.#handleNext)
    handle?.()
  }

  /**
   * @param {http.IncomingMessage} request for metrics
   * @param {http.ServerResponse} response
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
   * @param {http.IncomingMessage} request for server-sent events
   * @param {http.ServerResponse} response
   * @returns {'total' | 'ofAddress' | undefined} the limit that the request would exceed
   */
  startViewing ({ socket }, response) {
    const limit = this.#limitOf('viewers', socket)
    if (!limit) this.#start('viewers', socket, response)
    return limit
  }

  /**
   * @param {Kind} kind
   * @param {Socket} socket
   * @returns {'total' | 'ofAddress' | undefined} the limit that is reached
   */
  #limitOf (kind, socket) {
    const most = MOST[kind]
    if (this.#underWay[kind] >= most.total) return 'total'
    const ofAddress = this.#connections.get(socket)?.client.underWay[kind] ?? 0
    return ofAddress >= most.ofAddress ? 'ofAddress' : undefined
  }

  /**
   * @param {Kind} kind
   * @param {Socket} socket
   * @param {http.ServerResponse} response
   */
  #start (kind, socket, response) {
    const connection = this.#connections.get(socket)
    if (!connection) return // The connection was closed meanwhile.
    const { client, underWay } = connection
    const count = (/** @type {number} */ by) => {
      for (const counts of [this.#underWay, client.underWay, underWay]) counts[kind] += by
    }
    count(1)
    response.once('close', () => {
      // The unfinished answers of a closed connection were subtracted when it closed.
      if (!this.#connections.has(socket)) return
      count(-1)
      if (underWay.requests === 0) client.idle.add(socket)
    })
  }

  /**
   * @param {string} address
   * @returns {Client}
   */
  #clientAt (address) {
    const network = networkOf(address)
    let client = this.#clients.get(network)
    if (!client) this.#clients.set(network, client = new Client(this.#now()))
    return client
  }

  /**
   * @param {Socket} socket
   * @returns {boolean} true if the connection is served
   */
  #connected (socket) {
    const nowMs = this.#now()
    if (nowMs - this.#forgottenAtMs > FORGET_EVERY_MS) this.#forget(nowMs)
    const client = this.#clientAt(socket.remoteAddress ?? '')
    const underWay = none()
    this.#connections.set(socket, { client, underWay })
    client.connections++
    client.idle.add(socket)
    socket.once('close', () => {
      this.#connections.delete(socket)
      client.connections--
      client.idle.delete(socket)
      // The answer to a pipelined request that had to wait emits no event of its own.
      for (const kind of /** @type {Kind[]} */ (Object.keys(MOST))) {
        this.#underWay[kind] -= underWay[kind]
        client.underWay[kind] -= underWay[kind]
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

  /** @returns {Client} client with the most idle connections */
  #busiest () {
    let [busiest] = this.#clients.values()
    for (const client of this.#clients.values()) {
      if (client.idle.size > busiest.idle.size) busiest = client
    }
    return busiest
  }

  /**
   * @param {http.IncomingMessage} request
   * @param {http.ServerResponse} response
   * @returns {boolean} false if the request was refused and answered
   */
  #admits (request, response) {
    const { url, method, socket } = request
    const isProbe = url === '/-/healthy' || url === '/-/ready'
    if (isProbe && (method === 'GET' || method === 'HEAD')) {
      const isWell = url === '/-/healthy' || this.#isReady()
      response.writeHead(isWell ? 200 : 503, PROBE_HEADERS)
      response.end(isWell ? `${url.slice('/-/'.length)}\n` : 'starting\n')
      return false
    }
    const client = this.#connections.get(socket)?.client
    if (!client) return false // The connection was closed meanwhile.
    if (!client.requests.take(this.#now())) return refuse(request, response, TOO_MANY)
    if (this.#limitOf('requests', socket)) return refuse(request, response, TOO_BUSY)
    client.idle.delete(socket)
    this.#start('requests', socket, response)
    response.once('close', () => {
      const isRefused = response.statusCode === 401 || response.statusCode === 403
      if (isRefused) client.requests.charge(COSTS.refusal - COSTS.request)
    })
    return true
  }

  /** @param {number} nowMs */
  #forget (nowMs) {
    this.#forgottenAtMs = nowMs
    for (const [network, { connections, requests, newConnections }] of this.#clients) {
      if (connections > 0 || !requests.isFull(nowMs) || !newConnections.isFull(nowMs)) continue
      this.#clients.delete(network)
    }
  }
}

/**
 * @param {Client} client
 * @param {Socket} newest newest connection, closed if no other is idle
 */
function closeIdleOf ({ idle }, newest) {
  const [longest = newest] = idle
  idle.delete(longest)
  longest.resetAndDestroy()
}

/**
 * A refusal, whose bytes are created once.
 * @param {string} code
 * @param {string} detail
 * @param {number} retrySeconds
 */
function refusal (code, detail, retrySeconds) {
  const problem = problemOf(code, detail)
  const body = JSON.stringify(problem)
  const headers = {
    ...HEADERS,
    'content-type': MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    'retry-after': String(retrySeconds)
  }
  return { status: problem.status, body, headers }
}
const TOO_MANY = refusal(
  'rate_limited',
  'too many requests from this address: try again in ten seconds',
  10
)
const TOO_BUSY = refusal('too_busy', 'too many requests are running: try again in a second', 1)

/**
 * @param {http.IncomingMessage} request
 * @param {http.ServerResponse} response
 * @param {ReturnType<typeof refusal>} answer
 * @returns {false}
 */
function refuse ({ headers }, response, { status, headers: answered, body }) {
  // The body of a refused request is not read.
  const hasBody = headers['content-length'] ?? headers['transfer-encoding']
  if (hasBody !== undefined) response.shouldKeepAlive = false
  response.writeHead(status, answered)
  // node:http sends a string in the same write as the headers.
  response.end(body)
  return false
}

/**
 * Network that counts as one client: an IPv4 address, or an IPv6 /64 network with all its
 * addresses.
 * @param {string} address address in a socket's notation
 * @returns {string}
 */
function networkOf (address) {
  if (address.includes('.')) return address.replace(/^::ffff:/, '')
  const halves = address.split('%')[0].split('::')
  const [start, end = []] = halves.map(half => half.split(':').filter(Boolean))
  const missing = halves.length === 2 ? 8 - start.length - end.length : 0
  return [...start, ...Array(missing).fill('0'), ...end].slice(0, 4).join(':')
}

module.exports = { ClientLimits, networkOf, MOST, HEADERS }
