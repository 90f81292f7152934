'use strict'

const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const { once } = require('node:events')
const { createServer } = require('../../exporter/expose/server')
const { Exporter } = require('../../exporter/exporter')
const { exporterConfig, startExporter } = require('../support/exporter')

/**
 * Creates a server that does not listen, of an exporter that is not started.
 * @param {string} [token]
 */
const serverWith = token =>
  createServer(new Exporter(exporterConfig('/nowhere', { token })))

/**
 * All routes; probes are answered before routing.
 * @type {[method: 'GET' | 'POST' | 'DELETE', url: string, access: 'open' | 'read' | 'act'][]}
 */
const ROUTES = [
  ['GET', '/metrics', 'open'],
  ['GET', '/', 'read'],
  ['GET', '/api/v1/targets', 'read'],
  ['GET', '/api/v1/diagnoses', 'read'],
  ['GET', '/api/v1/plan?node=22&memory=512Mi', 'read'],
  ['GET', '/api/v1/deaths', 'read'],
  ['GET', '/api/v1/deaths/:id', 'read'],
  ['GET', '/api/v1/targets/:target/series?track=rssBytes', 'read'],
  ['GET', '/api/v1/targets/:target/known-bugs', 'read'],
  ['POST', '/api/v1/targets/:target/trim', 'act'],
  ['POST', '/api/v1/targets/:target/captures?kind=report', 'act'],
  ['GET', '/api/v1/captures', 'read'],
  ['GET', '/api/v1/captures/:id', 'read'],
  ['GET', '/api/v1/captures/:id/suspects.md', 'read'],
  ['GET', '/api/v1/captures/:id/:part', 'act'],
  ['DELETE', '/api/v1/captures/:id', 'act'],
  ['GET', '/api/v1/openapi.json', 'read'],
  ['GET', '/flame/', 'read'],
  ['GET', '/flame/:file', 'read'],
  ['GET', '/page/:file', 'read'],
  ['GET', '/api/v1/live', 'read'],
  ['POST', '/api/v1/recording?seconds=1', 'act'],
  ['GET', '/api/v1/follow-ups', 'read'],
  ['GET', '/api/v1/right-size?target=api', 'read'],
  ['GET', '/api/v1/processes', 'read'],
  ['POST', '/api/v1/processes/1/attach', 'act']
]

/** Statuses of an admitted request; 409: attaching is disabled. */
const ALLOWED = [200, 404, 409]

describe('from another machine', () => {
  const ask = (server, method, url, headers = {}) =>
    server.inject({
      method,
      url,
      headers: { host: '10.0.0.1:16369', ...headers },
      remoteAddress: '10.0.0.7'
    })
  /** Reads only the headers, because an answer may not end. */
  const statusOf = async (server, method, url, headers) =>
    (
      await server.inject({
        method,
        url,
        headers: { host: '10.0.0.1:16369', ...headers },
        remoteAddress: '10.0.0.7',
        payloadAsStream: true
      })
    ).statusCode

  it.each(ROUTES)('%s %s', async (method, url, access) => {
    for (const token of [undefined, 'secret']) {
      const server = serverWith(token)
      const closed = token ? 401 : 403
      expect(await statusOf(server, method, url)).toBe(access === 'open' ? 200 : closed)
      expect(await statusOf(server, method, url, { authorization: 'Bearer secre' })).toBe(
        access === 'open' ? 200 : closed
      )
      const statusCode = await statusOf(server, method, url, { authorization: 'Bearer secret' })
      if (token) expect(ALLOWED).toContain(statusCode)
      else expect(statusCode).toBe(access === 'open' ? 200 : 403)
      await server.close()
    }
  })
  it('unknown paths get the same refusal', async () => {
    const server = serverWith('secret')
    expect((await ask(server, 'GET', '/api/v1/secrets')).statusCode).toBe(401)
    await server.close()
  })
  it('this test covers every route', async () => {
    const server = serverWith()
    await server.ready()
    const routes = server.printRoutes({ commonPrefix: false, includeHooks: false })
    const count = [...routes.matchAll(/\((.*?)\)/g)]
      .flatMap(([, methods]) => methods.split(', '))
      .filter(method => method !== 'HEAD').length
    expect(count).toBe(ROUTES.length)
    await server.close()
  })
  it('a browser sends the token as a password, which other sites cannot use', async () => {
    const basic = password => ({
      authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`
    })
    const server = serverWith('secret')
    const own = { origin: 'http://10.0.0.1:16369' }
    const asked = await ask(server, 'GET', '/')
    expect([asked.statusCode, asked.headers['www-authenticate']]).toEqual([
      401,
      expect.stringContaining('Basic realm=')
    ])
    /** @type {[headers: Record<string, string>, read: number, act: number][]} */
    const answers = [
      [{}, 200, 404],
      [own, 200, 404],
      [{ origin: 'http://elsewhere.example' }, 200, 403]
    ]
    for (const [headers, read, act] of answers) {
      expect((await ask(server, 'GET', '/', { ...basic('secret'), ...headers })).statusCode).toBe(
        read
      )
      expect(
        (
          await ask(server, 'POST', '/api/v1/targets/x/captures?kind=report', {
            ...basic('secret'),
            ...headers
          })
        ).statusCode
      ).toBe(act)
    }
    expect((await ask(server, 'GET', '/', basic('secre'))).statusCode).toBe(401)
    await server.close()
  })
  it.each(ROUTES)(
    'no other site can make a browser request %s %s, but a link may open a page',
    async (method, url, access) => {
      const server = serverWith('secret')
      const bearer = { authorization: 'Bearer secret' }
      const image = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
      const link = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      for (const site of ['cross-site', 'same-site']) {
        expect(
          await statusOf(server, method, url, { ...bearer, ...image, 'sec-fetch-site': site })
        ).toBe(403)
        const opened = await statusOf(server, method, url, {
          ...bearer,
          ...link,
          'sec-fetch-site': site
        })
        expect(opened === 403).toBe(access === 'act')
      }
      for (const site of ['same-origin', 'none']) {
        expect(ALLOWED).toContain(
          await statusOf(server, method, url, { ...bearer, ...image, 'sec-fetch-site': site })
        )
      }
      await server.close()
    }
  )
  it.each([...ROUTES, ['GET', '/nothing', 'read']])(
    '%s %s: no answer can be interpreted as another type or embedded by another site',
    async (method, url) => {
      const server = serverWith('secret')
      for (const headers of [{}, { authorization: 'Bearer secret' }]) {
        const answer = await server.inject({
          method: /** @type {'GET' | 'POST'} */ (method),
          url,
          headers: { host: '10.0.0.1:16369', ...headers },
          remoteAddress: '10.0.0.7',
          payloadAsStream: true
        })
        expect(answer.headers).toMatchObject({
          'x-content-type-options': 'nosniff',
          'cross-origin-resource-policy': 'same-origin'
        })
      }
      await server.close()
    }
  )
})

describe('from this machine', () => {
  let it_
  beforeEach(async () => { it_ = await startExporter() })
  afterEach(() => it_.stop())
  /** A request with headers that fetch does not allow. @returns {Promise<number>} */
  const status = (path, headers = {}) => new Promise((resolve, reject) => {
    http
      .get(it_.url + path, { headers }, response => {
        response.resume().on('end', () => resolve(Number(response.statusCode)))
      })
      .on('error', reject)
  })

  it.each([
    ['127.0.0.1:16369', 200],
    ['localhost', 200],
    ['[::1]:16369', 200],
    [`${os.hostname()}:16369`, 200],
    ['rebound.example', 403],
    ['localhost.rebound.example', 403],
    ['127.0.0.1.rebound.example', 403]
  ])('under the name %s: %i', async (host, expected) => {
    expect([await status('/metrics', { host }), await status('/api/v1/targets', { host })]).toEqual(
      [expected, expected]
    )
  })
  it.each([
    ['the own page', () => ({ origin: it_.url }), 404],
    ['a tool', () => ({}), 404],
    ['another site', () => ({ origin: 'http://elsewhere.example' }), 403],
    ['a page of another port', () => ({ origin: 'http://127.0.0.1:1' }), 403],
    ['a sandboxed page', () => ({ origin: 'null' }), 403]
  ])('%s requests a capture', async (_, headers, expected) => {
    const response = await fetch(`${it_.url}/api/v1/targets/x/captures?kind=report`, {
      method: 'POST',
      headers: headers()
    })
    expect(response.status).toBe(expected)
  })
  it('no other site can read an answer', async () => {
    const response = await it_.get('/api/v1/targets', { origin: 'http://elsewhere.example' })
    expect([...response.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual(
      []
    )
  })
  it('a site gets no recording by a request of a browser, such as an image address', async () => {
    const image = {
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'no-cors',
      'sec-fetch-dest': 'image'
    }
    expect(await status('/api/v1/recording?seconds=1', image)).toBe(403)
    expect(await status('/api/v1/recording?seconds=1')).toBe(405)
  })
  it('the exporter hangs up on slow and half-open clients, and serves the next one', async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, async () => {
      const socket = net.connect(it_.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.on('error', () => {})
      socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-')
      return socket.resume()
    }))
    expect(await status('/metrics')).toBe(200)
    await Promise.all(slow.map(socket => once(socket, 'close')))
  }, 60_000)
})

describe('through a proxy on this machine', () => {
  /** Headers that a proxy adds. */
  const PROXIES = {
    nginx: { 'x-real-ip': '203.0.113.9', 'x-forwarded-for': '203.0.113.9' },
    'RFC 7239': { forwarded: 'for=203.0.113.9' },
    'a proxy that names itself': { via: '1.1 proxy' },
    Envoy: { 'x-envoy-external-address': '203.0.113.9' },
    Traefik: { 'x-forwarded-server': 'edge' },
    'x-forwarded': { 'x-forwarded': 'for=203.0.113.9' },
    'x-client-ip': { 'x-client-ip': '203.0.113.9' },
    Cloudflare: { 'cf-connecting-ip': '203.0.113.9' },
    Akamai: { 'true-client-ip': '203.0.113.9' },
    Linkerd: { 'l5d-client-id': 'default.default' }
  }
  const CAPTURE = ['POST', '/api/v1/targets/x/captures?kind=report']
  /** @type {Awaited<ReturnType<typeof startExporter>> | undefined} */
  let exporter
  /** @type {http.Server | undefined} */
  let proxy
  /** Headers that the proxy adds. @type {Record<string, string>} */
  let added = {}

  const stop = async () => {
    proxy?.close()
    proxy?.closeAllConnections()
    await exporter?.stop()
    proxy = exporter = undefined
  }
  const start = async config => {
    await stop()
    const { port } = exporter = await startExporter(config)
    proxy = http.createServer(({ url, method, headers }, response) => {
      http
        .request(
          {
            host: '127.0.0.1',
            port,
            path: url,
            method,
            headers: { ...headers, host: `127.0.0.1:${port}`, ...added }
          },
          answer => {
            response.writeHead(/** @type {number} */ (answer.statusCode), answer.headers)
            answer.pipe(response)
          }
        )
        .end()
    }).listen(0, '127.0.0.1')
    await once(proxy, 'listening')
  }
  afterEach(stop)
  const statusOf = async (method, path, token) => {
    const { port } = /** @type {net.AddressInfo} */ (proxy?.address())
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: token && { authorization: `Bearer ${token}` }
    })
    await response.text()
    return response.status
  }

  it('other machines need the token for all but /metrics', async () => {
    await start({ token: 'secret' })
    for (added of Object.values(PROXIES)) {
      expect([added, await statusOf('GET', '/api/v1/targets'), await statusOf(...CAPTURE)]).toEqual(
        [added, 401, 401]
      )
      expect([
        added,
        await statusOf('GET', '/api/v1/targets', 'secret'),
        await statusOf(...CAPTURE, 'secret')
      ]).toEqual([added, 200, 404])
      expect(await statusOf('GET', '/metrics')).toBe(200)
    }
    await start({})
    for (added of Object.values(PROXIES)) {
      expect([added, await statusOf('GET', '/api/v1/targets'), await statusOf(...CAPTURE)]).toEqual(
        [added, 403, 403]
      )
    }
  })
  it('a proxy that adds no headers counts as this machine, unless --trust-loopback is off', async () => {
    added = {}
    const all = async () => [
      await statusOf('GET', '/api/v1/targets'),
      await statusOf('GET', '/api/v1/targets', 'secret'),
      await statusOf(...CAPTURE),
      await statusOf('GET', '/metrics')
    ]
    await start({ token: 'secret' })
    expect(await all()).toEqual([200, 200, 401, 200])
    await start({ token: 'secret', trustLoopback: false })
    expect(await all()).toEqual([401, 200, 401, 200])
    await start({ trustLoopback: false })
    expect(await all()).toEqual([403, 403, 403, 200])
  })
  it('any host name is accepted with the token, which a page that uses DNS rebinding lacks', async () => {
    added = { host: 'memwatch.example.com', 'x-forwarded-for': '203.0.113.9' }
    await start({ token: 'secret' })
    expect([
      await statusOf('GET', '/api/v1/targets', 'secret'),
      await statusOf('GET', '/api/v1/targets'),
      await statusOf('GET', '/metrics')
    ]).toEqual([200, 403, 403])
  })
})
