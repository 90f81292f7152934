'use strict'

const net = require('node:net')
const { setTimeout: wait } = require('node:timers/promises')
const { request } = require('./request')
const { ATTACKER, EXPORTER, LOOPBACK, OPERATOR, PORT } = require('./places')
const { connect, send, helloLine, frameLine } = require('./wire')

/**
 * @typedef {import('./stage').Stage} Stage
 * @typedef {import('./attacks').Options} Options
 * @typedef {import('./attacks').Claim} Claim
 */

const SCRAPES_PER_SECOND = 200
const IDLE_CONNECTIONS = 1000
/** Pause between connections that replace those closed by the exporter. */
const REOPEN_EVERY_MS = 50
/** Upper bound of unfinished requests, which limits the memory of the bench itself. */
const MOST_UNDER_WAY = 2000
const SLOW_READERS = 200
const SLOW_WRITERS = 200
const MANY_TARGETS = 40
const LARGE_BODY_BYTES = 16 * 2 ** 20
const VIEWERS = 100

/** A connection to the HTTP port that ignores errors. @param {string} from */
async function connectHttp (from) {
  const socket = net.connect({
    host: from === LOOPBACK ? LOOPBACK : EXPORTER,
    port: PORT,
    localAddress: from
  })
  const opened = await new Promise(resolve => {
    socket.once('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.setTimeout(2000, () => resolve(false)).once('close', () => resolve(false))
  })
  if (!opened) socket.destroy()
  return opened ? socket.setTimeout(0) : undefined
}

/**
 * Sends requests at a rate, and counts their answers by status.
 * @param {Stage} stage
 * @param {number} perSecond
 * @param {number} seconds
 * @param {(i: number) => import('./request').Ask} make
 */
async function askAtRate (stage, perSecond, seconds, make) {
  /** @type {Record<string, number>} */
  const answers = {}
  const count = { underWay: 0 }
  let asked = 0
  const began = performance.now()
  while (performance.now() - began < 1000 * seconds && !stage.ended) {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond)
    for (; asked < due; asked++) {
      if (count.underWay >= MOST_UNDER_WAY) continue
      count.underWay++
      request({ timeoutMs: 15_000, mostBytes: 0, ...make(asked) })
        .then(
          ({ status }) => `status ${status}`,
          error => error.code ?? error.message
        )
        .then(answer => {
          answers[answer] = (answers[answer] ?? 0) + 1
          count.underWay--
        })
    }
    await wait(10)
  }
  const deadline = Date.now() + 16_000
  while (count.underWay > 0 && Date.now() < deadline) await wait(50)
  return {
    asked,
    answers: Object.entries(answers)
      .map(([answer, count]) => `${count} × ${answer}`)
      .join(', ')
  }
}

/** @param {string} from */
const storm =
  from =>
    async (/** @type {Stage} */ stage, /** @type {Options} */ { seconds }) => {
    /** @type {Set<net.Socket>} */
      const idle = new Set()
      let opened = 0
      const life = { over: false }
      const opening = (async () => {
        while (!life.over && !stage.ended) {
          const socket = idle.size < IDLE_CONNECTIONS ? await connectHttp(from) : undefined
          if (!socket) {
            await wait(20)
            continue
          }
          idle.add(socket)
          socket.resume().once('close', () => idle.delete(socket))
          if (++opened > IDLE_CONNECTIONS) await wait(REOPEN_EVERY_MS)
        }
      })()
      await wait(5000)
      const most = idle.size
      const { asked, answers } = await askAtRate(stage, SCRAPES_PER_SECOND, seconds, () => ({
        from,
        path: '/metrics'
      }))
      life.over = true
      for (const socket of idle) socket.destroy()
      await opening
      return {
        tried: `${asked} requests of /metrics in ${seconds} s (${answers}) while the ` +
          `same address holds up to ${most} idle connections, opened ${opened} times`
      }
    }

/** Opens as many targets as allowed, so that /metrics is long. @param {Stage} stage */
async function manyTargets (stage) {
  const sockets = []
  const space = [2 ** 24, 2 ** 23, 2 ** 22, 2 ** 24]
  const values = {
    rssBytes: 2 ** 27,
    heapUsedBytes: 2 ** 24,
    heapTotalBytes: 2 ** 25,
    externalBytes: 2 ** 20,
    spaces: { new_space: space, old_space: space, code_space: space, large_object_space: space },
    resources: { TCPSocketWrap: 3, Timeout: 4, PipeWrap: 2 }
  }
  for (let i = 0; i < MANY_TARGETS; i++) {
    const socket = await connect(stage.socketOf('attacker'))
    if (!socket) continue
    sockets.push(socket.resume())
    await send(socket, helloLine(i) + frameLine(1, values))
  }
  return sockets
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function slowClients (stage, { seconds }) {
  const agents = await manyTargets(stage)
  /** @type {net.Socket[]} */
  const sockets = []
  const deadline = Date.now() + 1000 * seconds
  let [readers, writers] = [0, 0]
  while (Date.now() < deadline && !stage.ended) {
    if (readers < SLOW_READERS) {
      const socket = await connectHttp(ATTACKER)
      if (socket) {
        readers++
        sockets.push(socket.pause())
        socket.write('GET /metrics HTTP/1.1\r\nHost: exporter\r\n\r\n'.repeat(10))
      }
    }
    if (writers < SLOW_WRITERS) {
      const socket = await connectHttp(ATTACKER)
      if (socket) {
        writers++
        sockets.push(socket.resume())
        socket.write('GET /metrics HTTP/1.1\r\nHost: exporter\r\n')
      }
    }
    for (const socket of sockets) if (!socket.destroyed && !socket.isPaused()) socket.write('x')
    await wait(readers < SLOW_READERS ? 5 : 500)
  }
  for (const socket of [...sockets, ...agents]) socket.destroy()
  return {
    tried: `${readers} clients that each request /metrics of ${MANY_TARGETS} targets ten ` +
      `times and never read; ${writers} clients that send a header byte by byte`
  }
}

/** @param {Stage} stage */
async function largeBodies (stage) {
  let sent = 0
  const body = Buffer.alloc(65_536, '{"a":')
  const heads = [
    'POST /api/v1/targets/good/trim HTTP/1.1\r\nHost: x\r\nContent-Type: ' +
      `application/json\r\nContent-Length: ${LARGE_BODY_BYTES}\r\n\r\n`,
    `POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: ${LARGE_BODY_BYTES}\r\n\r\n`,
    'POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: ' +
      `Bearer ${'a'.repeat(8000)}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    `GET /-/healthy HTTP/1.1\r\nHost: x\r\nContent-Length: ${LARGE_BODY_BYTES}\r\n\r\n`,
    `GET /${'a'.repeat(60_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /metrics HTTP/1.1\r\n${'X-Junk: 1\r\n'.repeat(5000)}\r\n`
  ]
  await Promise.all(
    Array.from({ length: 24 }, async (_, i) => {
      const socket = await connectHttp(ATTACKER)
      if (!socket) return
      const closed = new Promise(resolve => socket.resume().once('close', resolve))
      const head = heads[i % heads.length]
      socket.write(head)
      const isChunked = head.includes('chunked')
      for (let bytes = 0; bytes < LARGE_BODY_BYTES && !socket.destroyed; bytes += body.length) {
        const part = isChunked
          ? Buffer.concat([
            Buffer.from(`${body.length.toString(16)}\r\n`),
            body,
            Buffer.from('\r\n')
          ])
          : body
        sent += part.length
        if (!socket.write(part)) {
          await Promise.race([
            new Promise(resolve => socket.once('drain', resolve)),
            closed,
            wait(10_000)
          ])
        }
      }
      socket.end()
      await Promise.race([closed, wait(5000)])
      socket.destroy()
    })
  )
  return {
    tried: '24 requests with bodies of 16 MiB, heads of 60 KB and 5,000 headers, ' +
      `${Math.round(sent / 2 ** 20)} MiB sent`
  }
}

const PRIVATE_PATHS = [
  '/',
  '/api/v1/targets',
  '/api/v1/diagnoses',
  '/api/v1/deaths',
  '/api/v1/deaths/x',
  '/api/v1/captures',
  '/api/v1/captures/x',
  '/api/v1/captures/x/suspects.md',
  '/api/v1/captures/x/profile',
  '/api/v1/live',
  '/api/v1/recording?seconds=1',
  '/api/v1/plan?node=22&memory=512Mi',
  '/api/v1/openapi.json',
  '/api/v1/targets/good/series?track=rssBytes',
  '/flame/',
  '/page/page.js'
]
const DISGUISES = [
  '//api/v1/targets',
  '/api/v1/targets/',
  '/API/v1/targets',
  '/api/v1/./targets',
  '/-/healthy/../../api/v1/targets',
  '/metrics/../api/v1/targets',
  '/api%2fv1%2ftargets',
  '/%61pi/v1/targets',
  '/api/v1/targets;x',
  '/api/v1/targets?/metrics',
  '/metrics/api/v1/targets',
  '/-/ready/api/v1/targets',
  '/api/v1/secrets',
  '/debug/pprof',
  '/.env',
  `http://${EXPORTER}:${PORT}/api/v1/targets`
]
const PROXY_HEADERS = [
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-real-ip': '127.0.0.1' },
  { forwarded: 'for=127.0.0.1' },
  { via: '1.1 proxy' },
  { 'x-forwarded-host': 'localhost' },
  { 'x-forwarded-proto': 'https' }
]
const WRONG_TOKENS = [
  'Bearer wrong',
  'Bearer ',
  'bearer',
  'Basic Og==',
  `Basic ${Buffer.from('a:wrong').toString('base64')}`,
  'Digest x',
  'Bearer undefined',
  'Bearer null'
]

/**
 * Sends requests, and returns the answers that are not refusals.
 * @param {import('./request').Ask[]} asks
 * @param {(answer: import('./request').Answer) => boolean} isRefused
 */
async function refusals (asks, isRefused) {
  /** @type {string[]} */
  const answered = []
  for (const ask of asks) {
    const answer = await request({ timeoutMs: 15_000, ...ask }).catch(() => undefined)
    if (answer && !isRefused(answer)) {
      answered.push(
        `${ask.method ?? 'GET'} ${ask.path} ${JSON.stringify(ask.headers ?? {})}: ${answer.status}`
      )
    }
    // The rate limit also refuses requests, and would hide missing refusals.
    if (answer?.status === 429) await wait(10_000)
    await wait(10)
  }
  return answered
}

/**
 * @param {string} text
 * @param {string[]} answered
 * @returns {Claim}
 */
const nothingAnswered = (text, answered) => ({
  text,
  held: answered.length === 0,
  detail: answered.length > 0 ? `${answered.length} answered, such as ${answered[0]}` : ''
})
const isRefusal = (/** @type {import('./request').Answer} */ { status, text }) =>
  status >= 400 && !text.includes('"good"')

/** @param {Stage} stage */
async function privateThings (stage) {
  const from = ATTACKER
  const all = [...PRIVATE_PATHS, ...DISGUISES]
  const asks = [
    ...all.flatMap(path => ['GET', 'HEAD'].map(method => ({ from, path, method }))),
    ...['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].flatMap(method =>
      [
        '/api/v1/targets/good/trim',
        '/api/v1/targets/good/captures?kind=report',
        '/api/v1/captures/x'
      ].map(path => ({ from, path, method }))
    ),
    ...[
      ...PROXY_HEADERS,
      { host: 'localhost' },
      { host: '127.0.0.1:16369' },
      { origin: 'http://localhost:16369', host: 'localhost:16369' },
      ...WRONG_TOKENS.map(authorization => ({ authorization }))
    ].flatMap(headers =>
      ['/api/v1/targets', '/', '/api/v1/live'].map(path => ({ from, path, headers }))
    )
  ]
  const answered = await refusals(asks, isRefusal)
  const open = await Promise.all(
    ['/metrics', '/-/healthy', '/-/ready'].map(path =>
      request({ from: OPERATOR, path }).then(
        ({ status }) => status,
        () => 0
      )
    )
  )
  return {
    tried: `${asks.length} requests without the token: every route, ${DISGUISES.length} ` +
      `disguised paths, other methods, proxy headers, ${WRONG_TOKENS.length} wrong tokens`,
    claims: [
      nothingAnswered('private routes refuse', answered),
      {
        text: '/metrics and health checks are answered',
        held: open.every(status => status === 200),
        detail: open.join()
      }
    ]
  }
}

const ACTS = /** @type {[string, string][]} */ ([
  ['POST', '/api/v1/targets/good/captures?kind=report'],
  ['POST', '/api/v1/targets/good/trim?dryRun=true'],
  ['GET', '/api/v1/recording?seconds=1'],
  ['POST', '/api/v1/recording?seconds=1'],
  ['DELETE', '/api/v1/captures/00000000-0000-4000-8000-000000000000']
])

/** @param {Stage} stage */
async function localWithToken (stage) {
  const from = LOOPBACK
  const acting = await refusals(
    ACTS.map(([method, path]) => ({ from, path, method })),
    isRefusal
  )
  const proxied = await refusals(
    PROXY_HEADERS.flatMap(headers =>
      ['/api/v1/targets', '/', '/api/v1/deaths'].map(path => ({ from, path, headers }))
    ),
    isRefusal
  )
  const rebound = await refusals(
    ['evil.example', 'localhost.evil.example', `evil.example:${PORT}`].flatMap(host =>
      ['/api/v1/targets', '/metrics', '/'].map(path => ({ from, path, headers: { host } }))
    ),
    isRefusal
  )
  const authorization = `Bearer ${stage.token}`
  const headers = { ...PROXY_HEADERS[0], authorization }
  const borne = await request({ from, path: '/api/v1/targets', headers }).then(
    ({ status }) => status,
    () => 0
  )
  return {
    tried:
      'requests from the same machine: actions without the token, headers of a proxy, foreign ' +
      'host names',
    claims: [
      nothingAnswered('actions without the token are refused', acting),
      nothingAnswered('requests through a proxy are not local', proxied),
      nothingAnswered('requests with a foreign host name are refused', rebound),
      {
        text: 'the token is also accepted through a proxy',
        held: borne === 200,
        detail: String(borne)
      }
    ]
  }
}

/** @param {Stage} stage */
async function localWithoutToken (stage) {
  const from = LOOPBACK
  const refusesAct = (/** @type {import('./request').Answer} */ { status }) =>
    [401, 403, 405].includes(status)
  const site = [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    { origin: 'null', 'sec-fetch-site': 'cross-site' }
  ]
  const crossSite = await refusals(
    site.flatMap(headers => ACTS.map(([method, path]) => ({ from, path, method, headers }))),
    refusesAct
  )
  const proxied = await refusals(
    PROXY_HEADERS.flatMap(headers => [
      ...ACTS.map(([method, path]) => ({ from, path, method, headers })),
      { from, path: '/api/v1/targets', headers }
    ]),
    refusesAct
  )
  const elsewhere = await refusals(
    [
      ...ACTS.map(([method, path]) => ({ from: ATTACKER, path, method })),
      ...PRIVATE_PATHS.map(path => ({ from: ATTACKER, path }))
    ],
    isRefusal
  )
  const own = await request({ from, path: '/api/v1/targets' }).then(
    ({ status }) => status,
    () => 0
  )
  const unsniffed = []
  for (const path of ['/metrics', '/api/v1/targets', '/api/v1/openapi.json', '/nothing']) {
    const { headers } = await request({ from, path })
    if (headers['x-content-type-options'] !== 'nosniff') unsniffed.push(path)
  }
  return {
    tried:
      'an exporter without a token: requests of a browser for another site, of a proxy, and of ' +
      'other machines',
    claims: [
      nothingAnswered('actions that another site requests are refused', crossSite),
      nothingAnswered('requests through a proxy are not local', proxied),
      nothingAnswered('private routes refuse other machines', elsewhere),
      {
        text: 'tools on the same machine can read the API',
        held: own === 200,
        detail: String(own)
      },
      {
        text: 'a header of each answer forbids browsers to guess its type',
        held: unsniffed.length === 0,
        detail: unsniffed.join(' ')
      }
    ]
  }
}

/**
 * @param {Stage} stage
 * @param {Options} options
 */
async function viewers (stage, { seconds }) {
  const sockets = []
  for (let i = 0; i < VIEWERS && !stage.ended; i++) {
    const socket = await connectHttp(LOOPBACK)
    if (!socket) continue
    sockets.push(socket.pause())
    socket.write('GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n')
  }
  await wait(1000 * seconds)
  const socket = await connectHttp(OPERATOR)
  let head = ''
  if (socket) {
    socket.setEncoding('utf8').on('data', text => {
      head += text
    })
    socket.write(
      `GET /api/v1/live HTTP/1.1\r\nHost: exporter\r\nAuthorization: Bearer ${stage.token}\r\n\r\n`
    )
    for (const deadline = Date.now() + 10_000; !head.includes('\r\n') && Date.now() < deadline;) {
      await wait(50)
    }
  }
  socket?.destroy()
  for (const one of sockets) one.destroy()
  return {
    tried: `${sockets.length} clients on the same machine that request /api/v1/live and never read`,
    claims: [
      {
        text: 'another address still receives /api/v1/live',
        held: head.includes(' 200 '),
        detail: head.split('\r\n')[0]
      }
    ]
  }
}

module.exports = {
  askAtRate,
  largeBodies,
  localWithoutToken,
  localWithToken,
  privateThings,
  slowClients,
  storm,
  viewers
}
