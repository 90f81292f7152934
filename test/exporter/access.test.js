'use strict'

const http = require('node:http')
const net = require('node:net')
const os = require('node:os')
const { EventEmitter, once } = require('node:events')
const { createServer } = require('../../exporter/expose/server')
const { createMetrics } = require('../../exporter/expose/metrics')
const { Commands } = require('../../exporter/commands/commands')
const { Deaths } = require('../../exporter/deaths/deaths')
const { startExporter } = require('../support/exporter')
const { exporterState } = require('../support/exporter-state')

/** A server nobody listens to. @param {string} [token] */
function serverWith (token) {
  const metrics = createMetrics({
    targets: () => [],
    compat: false,
    state: () => exporterState()
  })
  return createServer({ targets: () => [], metrics, isReady: () => true, logLevel: 'silent', commands: new Commands(), captures: /** @type {any} */ ({ all: [], get: () => undefined }), deaths: new Deaths(), deathWatch: /** @type {any} */ ({}), events: new EventEmitter(), token })
}

/** Every route there is. @type {[method: 'GET' | 'POST' | 'DELETE', url: string, access: 'open' | 'read' | 'act'][]} */
const ROUTES = [
  ['GET', '/metrics', 'open'],
  ['GET', '/-/healthy', 'open'],
  ['GET', '/-/ready', 'open'],
  ['GET', '/', 'read'],
  ['GET', '/api/v1/targets', 'read'],
  ['GET', '/api/v1/diagnoses', 'read'],
  ['GET', '/api/v1/plan?node=22&memory=512Mi', 'read'],
  ['GET', '/api/v1/deaths', 'read'],
  ['GET', '/api/v1/deaths/:id', 'read'],
  ['GET', '/api/v1/targets/:target/series?track=rssBytes', 'read'],
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
  ['GET', '/api/v1/recording?seconds=1', 'act']
]

describe('from another machine', () => {
  const ask = (server, method, url, headers = {}) => server.inject({ method, url, headers: { host: '10.0.0.1:9888', ...headers }, remoteAddress: '10.0.0.7' })
  /** Of an answer that does not end, too. */
  const statusOf = async (server, method, url, headers) => (await server.inject({ method, url, headers: { host: '10.0.0.1:9888', ...headers }, remoteAddress: '10.0.0.7', payloadAsStream: true })).statusCode

  it.each(ROUTES)('%s %s', async (method, url, access) => {
    for (const token of [undefined, 'secret']) {
      const server = serverWith(token)
      const closed = token ? 401 : 403
      expect(await statusOf(server, method, url)).toBe(access === 'open' ? 200 : closed)
      expect(await statusOf(server, method, url, { authorization: 'Bearer secre' })).toBe(access === 'open' ? 200 : closed)
      const statusCode = await statusOf(server, method, url, { authorization: 'Bearer secret' })
      if (token) expect([200, 404]).toContain(statusCode)
      else expect(statusCode).toBe(access === 'open' ? 200 : 403)
      await server.close()
    }
  })
  it('what there is not is not told either', async () => {
    const server = serverWith('secret')
    expect((await ask(server, 'GET', '/api/v1/secrets')).statusCode).toBe(401)
    await server.close()
  })
  it('no route is missing here', async () => {
    const server = serverWith()
    await server.ready()
    const routes = server.printRoutes({ commonPrefix: false, includeHooks: false })
    const count = [...routes.matchAll(/\((.*?)\)/g)].flatMap(([, methods]) => methods.split(', ')).filter(method => method !== 'HEAD').length
    expect(count).toBe(ROUTES.length)
    await server.close()
  })
  it('a browser bears the token as a password, which other sites must not use', async () => {
    const basic = password => ({ authorization: `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}` })
    const server = serverWith('secret')
    const own = { origin: 'http://10.0.0.1:9888' }
    const asked = await ask(server, 'GET', '/')
    expect([asked.statusCode, asked.headers['www-authenticate']]).toEqual([401, expect.stringContaining('Basic realm=')])
    for (const [headers, read, act] of [[{}, 200, 404], [own, 200, 404], [{ origin: 'http://elsewhere.example' }, 200, 403]]) {
      expect((await ask(server, 'GET', '/', { ...basic('secret'), ...headers })).statusCode).toBe(read)
      expect((await ask(server, 'POST', '/api/v1/targets/x/captures?kind=report', { ...basic('secret'), ...headers })).statusCode).toBe(act)
    }
    expect((await ask(server, 'GET', '/', basic('secre'))).statusCode).toBe(401)
    await server.close()
  })
  it('who asks a thousand times in ten seconds waits, and guessing tokens counts', async () => {
    const server = serverWith('secret')
    const statuses = []
    for (let i = 0; i <= 1000; i++) statuses.push((await ask(server, 'GET', '/api/v1/targets')).statusCode)
    expect(statuses.slice(0, 1000).every(status => status === 401)).toBe(true)
    const last = await ask(server, 'GET', '/api/v1/targets', { authorization: 'Bearer secret' })
    expect([statuses[1000], last.statusCode, last.json().code]).toEqual([429, 429, 'rate_limited'])
    await server.close()
  })
})

describe('from this machine', () => {
  let it_
  beforeEach(async () => { it_ = await startExporter() })
  afterEach(() => it_.stop())
  /** With headers that fetch does not let one set. @returns {Promise<number>} */
  const status = (path, headers = {}) => new Promise((resolve, reject) => {
    http.get(it_.url + path, { headers }, response => { response.resume().on('end', () => resolve(response.statusCode)) }).on('error', reject)
  })

  it.each([
    ['127.0.0.1:9888', 200], ['localhost', 200], ['[::1]:9888', 200], [`${os.hostname()}:9888`, 200], ['rebound.example', 403], ['localhost.rebound.example', 403], ['127.0.0.1.rebound.example', 403]
  ])('under the name %s: %i', async (host, expected) => {
    expect([await status('/metrics', { host }), await status('/api/v1/targets', { host })]).toEqual([expected, expected])
  })
  it.each([['the own page', () => ({ origin: it_.url }), 404], ['a tool', () => ({}), 404], ['another site', () => ({ origin: 'http://elsewhere.example' }), 403], ['a page of another port', () => ({ origin: 'http://127.0.0.1:1' }), 403], ['a sandboxed page', () => ({ origin: 'null' }), 403]])('%s asks for a capture', async (_, headers, expected) => {
    const response = await fetch(`${it_.url}/api/v1/targets/x/captures?kind=report`, { method: 'POST', headers: headers() })
    expect(response.status).toBe(expected)
  })
  it('no other site may read what it asks for', async () => {
    const response = await it_.get('/api/v1/targets', { origin: 'http://elsewhere.example' })
    expect([...response.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
  })
  it('slow and half-open clients are hung up on, and the next one is served', async () => {
    const slow = await Promise.all(Array.from({ length: 50 }, async () => {
      const socket = net.connect(it_.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.on('error', () => {})
      socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-')
      return socket.resume()
    }))
    expect(await status('/metrics')).toBe(200)
    await Promise.all(slow.map(socket => once(socket, 'close')))
  }, 30_000)
})
