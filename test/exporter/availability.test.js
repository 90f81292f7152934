'use strict'

const http = require('node:http')
const net = require('node:net')
const { once } = require('node:events')
const { ClientLimits, networkOf, MOST } = require('../../exporter/expose/client-limits')
const { createMetrics } = require('../../exporter/expose/metrics')
const { shareScrapes } = require('../../exporter/expose/shared-scrapes')
const { startExporter, eventually } = require('../support/exporter')
const { spawnExporter, stopExporters } = require('../support/exporter-process')
const { exporterState } = require('../support/exporter-state')

afterEach(stopExporters)

/**
 * Sends a request on a connection of its own, like the kubelet.
 * @param {number | string} port
 * @param {string} path
 * @param {{ from?: string, headers?: Record<string, string> }} [options]
 * @returns {Promise<{ status: number, headers: http.IncomingHttpHeaders, body: string }>}
 */
const ask = (port, path, { from = '127.0.0.1', headers } = {}) => new Promise((resolve, reject) => {
  http
    .get({ host: '127.0.0.1', port, path, localAddress: from, agent: false, headers }, response => {
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', text => {
          body += text
        })
        .on('end', () =>
          resolve({ status: Number(response.statusCode), headers: response.headers, body })
        )
        .on('error', reject)
    })
    .on('error', reject)
})

/**
 * @param {number | string} port
 * @param {string} [from]
 * @returns {Promise<net.Socket>}
 */
async function connect (port, from = '127.0.0.1') {
  const socket = net.connect({ host: '127.0.0.1', port: Number(port), localAddress: from })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

describe('one address', () => {
  it('with a thousand connections and requests delays no probe or scrape', async () => {
    const exporter = await spawnExporter()
    const { port } = new URL(exporter.url)
    const held = []
    for (let i = 0; i < 1000; i++) held.push(await connect(port))
    const flood = await Promise.all(Array.from({ length: 10 }, () => connect(port)))
    const answers = []
    for (const socket of flood) {
      socket
        .setEncoding('latin1')
        .on('data', text => answers.push(...(String(text).match(/HTTP\/1\.1 \d+/g) ?? [])))
    }
    for (const socket of flood) {
      socket.write('GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(100))
    }
    const probes = []
    for (let i = 0; i < 10; i++) {
      for (const from of ['127.0.0.1', '127.0.0.2']) {
        probes.push(
          (await ask(port, '/-/healthy', { from })).status,
          (await ask(port, '/-/ready', { from })).status
        )
      }
    }
    expect(probes).toEqual(probes.map(() => 200))
    expect((await ask(port, '/metrics', { from: '127.0.0.2' })).status).toBe(200)
    await eventually(
      () => answers.length,
      count => count === 1000
    )
    expect(answers.filter(answer => answer.endsWith('200')).length).toBeLessThan(300)
    for (const socket of [...held, ...flood]) socket.destroy()
  }, 60_000)

  it('loses its longest idle connection to make room, and none with an open request', async () => {
    const it_ = await startExporter()
    const first = await connect(it_.port)
    const busy = await connect(it_.port)
    busy.write('GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(busy, 'data')
    const held = []
    for (let i = 0; i < 998; i++) held.push(await connect(it_.port))
    expect(first.destroyed).toBe(false)
    const closed = new Promise(resolve => first.once('close', resolve))
    held.push(await connect(it_.port))
    await closed
    await once(busy, 'data') // A second later the limit is higher.
    expect(held.filter(({ destroyed }) => destroyed)).toEqual([])
    for (const socket of [busy, ...held]) socket.destroy()
    await it_.stop()
  }, 30_000)

  it('that opens connections too fast waits, and others do not', async () => {
    const limits = new ClientLimits({ isReady: () => true, now: () => 0 })
    const server = limits
      .createServer({}, (_, response) => response.end('served'))
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = /** @type {net.AddressInfo} */ (server.address())
    for (let i = 0; i < 1500; i++) (await connect(port)).destroy()
    const waiting = await connect(port)
    const closed = once(waiting, 'close')
    let answer = ''
    waiting.on('data', text => {
      answer += text
    })
    waiting.write('GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n')
    expect((await ask(port, '/x', { from: '127.0.0.2' })).body).toBe('served')
    await closed
    expect(answer).toBe('')
    server.close()
  }, 30_000)

  it('with a thousand requests is told how long to wait; probes are exempt', async () => {
    const it_ = await startExporter()
    const socket = await connect(it_.port)
    let answers = ''
    socket.setEncoding('latin1').on('data', text => { answers += text })
    let statuses = ''
    for (let sent = 90; !statuses.includes('429'); sent += 90) {
      // The cheapest request that the limit counts.
      socket.write('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(90))
      statuses = await eventually(
        () => (answers.match(/HTTP\/1\.1 \d+/g) ?? []).map(found => found.slice(9)),
        found => found.length === sent
      ).then(found => found.join(' '))
    }
    expect(statuses).toMatch(/^(404 ){500,}429/)
    const refusal = answers.slice(answers.indexOf('HTTP/1.1 429'))
    expect(refusal).toMatch(/^retry-after: 10\r$/m)
    expect(refusal).toMatch(/^x-content-type-options: nosniff\r$/m)
    expect(refusal).toContain('"code":"rate_limited"')
    socket.write('GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(200))
    await eventually(() => answers.match(/HTTP\/1\.1 200/g) ?? [], found => found.length === 200)
    expect((await ask(it_.port, '/api/v1/targets', { from: '127.0.0.2' })).status).toBe(200)
    socket.destroy()
    await it_.stop()
  }, 30_000)

  it('that guesses tokens has to wait earlier', async () => {
    const it_ = await startExporter({ token: 'secret', trustLoopback: false })
    const guess = async () =>
      (await ask(it_.port, '/api/v1/targets', { headers: { authorization: 'Bearer guess' } }))
        .status
    const guesses = () => Promise.all(Array.from({ length: 100 }, guess))
    const statuses = [...await guesses(), ...await guesses()]
    expect(statuses.filter(status => status === 401).length).toBeGreaterThanOrEqual(45)
    expect(statuses.filter(status => status === 429).length).toBeGreaterThan(0)
    await it_.stop()
  }, 30_000)

  it.each([
    ['10.0.0.7', '10.0.0.7'],
    ['::ffff:10.0.0.7', '10.0.0.7'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['::1', '0:0:0:0']
  ])('is one client with its network: %s', (address, network) => {
    expect(networkOf(address)).toBe(network)
  })
})

describe('open answers', () => {
  /** A server that ends its answers on command of the test. */
  async function slowServer (options = {}) {
    const limits = new ClientLimits({ isReady: () => true, ...options })
    /** @type {http.ServerResponse[]} */
    const responses = []
    const server = limits.createServer({}, (request, response) => {
      if (request.url === '/metrics' && !limits.startScrape(request, response)) {
        return response.writeHead(503).end()
      }
      responses.push(response)
      response.write('begun')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = /** @type {net.AddressInfo} */ (server.address())
    return { server, port, responses, stop: () => { server.close(); server.closeAllConnections() } }
  }
  /**
   * @param {number} port
   * @param {string} path
   * @param {number} count number of requests on one connection
   * @param {string} [from]
   */
  async function pipeline (port, path, count, from) {
    const socket = await connect(port, from)
    const statuses = []
    socket
      .setEncoding('latin1')
      .on('data', text =>
        statuses.push(...(String(text).match(/HTTP\/1\.1 \d+/g) ?? []).map(found => Number(found.slice(9))))
      )
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(count))
    return { socket, statuses }
  }

  it('are limited for one address and in total; further requests get Retry-After', async () => {
    const { port, responses, stop } = await slowServer()
    const clients = [await pipeline(port, '/x', MOST.requests.ofAddress + 5, '127.0.0.2')]
    await eventually(
      () => responses.length,
      count => count === MOST.requests.ofAddress
    )
    const refused = await ask(port, '/x', { from: '127.0.0.2' })
    expect([refused.status, JSON.parse(refused.body).code, refused.headers['retry-after']]).toEqual(
      [503, 'too_busy', '1']
    )
    clients.push(await pipeline(port, '/x', MOST.requests.total, '127.0.0.3'))
    await eventually(
      () => responses.length,
      count => count === MOST.requests.total
    )
    expect((await ask(port, '/x', { from: '127.0.0.4' })).status).toBe(503)
    expect((await ask(port, '/-/healthy', { from: '127.0.0.4' })).status).toBe(200)
    // Unsent data of a closed connection no longer counts.
    for (const { socket } of clients) socket.destroy()
    await eventually(
      async () => {
        const again = await pipeline(port, '/x', 1, '127.0.0.4')
        await once(again.socket, 'data')
        again.socket.destroy()
        return again.statuses
      },
      ([status]) => status === 200
    )
    stop()
  })
  it('for scrapes are at most forty, and at most ten for one address', async () => {
    const { port, responses, stop } = await slowServer()
    for (const last of [1, 2, 3, 4, 5]) {
      await pipeline(port, '/metrics', MOST.scrapes.ofAddress, `127.0.0.${last}`)
    }
    await eventually(() => responses.length, count => count === MOST.scrapes.total)
    expect((await ask(port, '/metrics', { from: '127.0.0.6' })).status).toBe(503)
    stop()
  })
  it('for a scraper that does not read are aborted', async () => {
    const { port, stop } = await slowServer({ longestScrapeMs: 100 })
    const { socket } = await pipeline(port, '/metrics', 1)
    await once(socket, 'close')
    stop()
  })
})

describe('the text of /metrics', () => {
  /** Scrapes at times that the test sets, with the number of renderings. */
  function scrapesAt (nowMs = 0) {
    const clock = { nowMs, renderings: 0 }
    const metrics = createMetrics({
      targets: () => [],
      compat: false,
      state: () => {
        clock.renderings++
        return exporterState({ frames: clock.renderings })
      }
    })
    const { text } = shareScrapes(metrics, () => clock.nowMs)
    const frames = async accept =>
      Number(
        /^memwatch_exporter_frames_total (\d+)$/m.exec(
          Buffer.concat((await text(accept)).parts).toString()
        )?.[1]
      )
    return { clock, frames }
  }

  it('is new for a client that scrapes once a second, even some milliseconds early', async () => {
    const { clock, frames } = scrapesAt()
    const read = []
    for (const atMs of [0, 990, 2010, 2995, 3990, 5010]) {
      clock.nowMs = atMs
      read.push(await frames())
    }
    expect(read).toEqual([1, 2, 3, 4, 5, 6])
  })
  it('is rendered at most once a second, and never older', async () => {
    const { clock, frames } = scrapesAt()
    let renderedAtMs = 0
    let last = 0
    for (; clock.nowMs < 20_000; clock.nowMs += 5) {
      const now = await frames()
      if (now !== last) renderedAtMs = clock.nowMs
      last = now
      expect(clock.nowMs - renderedAtMs).toBeLessThanOrEqual(1000)
    }
    expect(clock.renderings).toBeLessThanOrEqual(22)
  })
  it('is shared by scrapes during a rendering, separately for each format', async () => {
    const { clock, frames } = scrapesAt()
    const openMetrics = 'application/openmetrics-text'
    await Promise.all([
      ...Array.from({ length: 20 }, () => frames()),
      ...Array.from({ length: 20 }, () => frames(openMetrics))
    ])
    expect(clock.renderings).toBe(2)
  })
  it('is rendered again after a failure', async () => {
    let fails = true
    const { text } = shareScrapes(
      createMetrics({
        targets: () => {
          if (fails) throw new Error('no')
          return []
        },
        compat: false,
        state: () => exporterState()
      }),
      () => 0
    )
    await expect(text()).rejects.toThrow('no')
    fails = false
    expect((await text()).length).toBeGreaterThan(0)
  })
  it('takes few renderings for ninety scrapes at once', async () => {
    const it_ = await startExporter()
    const began = performance.now()
    const texts = await Promise.all(
      Array.from({ length: 90 }, async () => (await it_.get('/metrics')).text())
    )
    const moments = new Set(
      texts
        .map(text => /^memwatch_exporter_cpu_seconds_total (\S+)$/m.exec(text)?.[1])
        .filter(Boolean)
    )
    expect(moments.size).toBeLessThanOrEqual(3 + (performance.now() - began) / 1000)
    await it_.stop()
  })
})
