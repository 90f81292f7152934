'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { Webhook: Verifier } = require('standardwebhooks')
const { Webhook } = require('../../exporter/expose/webhook')
const { Target } = require('../../engine/history/target')
const { startExporter, eventually } = require('../support/exporter')
const { tellRecording } = require('../support/recorded-agent')
const { findCase } = require('../../engine/verdicts/case')
const { hello } = require('../support/frames')

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`

let folder
let secretFile
/** @type {Awaited<ReturnType<typeof receiver>>} */
let received
beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-webhook-'))
  secretFile = path.join(folder, 'secret')
  fs.writeFileSync(secretFile, `${SECRET}\n`)
  received = await receiver()
})
afterEach(async () => {
  received.server.closeAllConnections()
  received.server.close()
  fs.rmSync(folder, { recursive: true })
})

/**
 * A server that records its requests; `answers` are the statuses of the next requests, then 200.
 */
async function receiver () {
  const posts = []
  const answers = []
  const server = http.createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    posts.push({ headers: request.headers, body })
    const status = answers.shift() ?? 200
    if (status === 'hang up') return request.socket.destroy()
    response.writeHead(status).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { posts, answers, server, url: `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/hook` }
}

const target = () => new Target({ hello: hello(), name: 'shop', thread: 'main' })
/**
 * @param {string} state
 * @param {object} [more]
 */
const verdict = (state, more = {}) => /** @type {Parameters<Webhook['changed']>[1]} */ (/** @type {unknown} */ ({
  diagnosis: 'js-heap-leak',
  title: 'It leaks',
  state,
  severity: 'critical',
  opportunity: false,
  confirmedAfterSeconds: null,
  summary: 'It grows.',
  evidence: [{ signal: 'x', value: 1, limit: 2, unit: 'bytes', text: 'More is left.' }],
  ruledOut: [],
  impact: null,
  fix: [{ title: 'Let go', change: { flag: '--x' }, predicted: [], risk: '' }],
  runbook: 'MemwatchJsHeapLeak',
  ...more
}))
const failures = []
const webhook = options =>
  new Webhook({
    url: received.url,
    retryAfterMs: [10, 10],
    onFailure: ({ message }) => failures.push(message),
    ...options
  })

it('the holder of a posted finding is posted when a heap snapshot names it', async () => {
  const hook = webhook()
  const shop = target()
  const found = findCase(shop)
  found.verdicts = [verdict('confirmed'), verdict('ok', { diagnosis: 'context-leak' })]
  const pile = {
    text: '9 Session objects, 1 MiB, held by Map `sessions` in src/cache.js:7',
    className: 'Session',
    count: 9,
    retainedBytes: 2 ** 20,
    bufferBytes: 0,
    package: null,
    root: 'module',
    path: []
  }
  const at = { captureId: null, file: '/x', atUnixMs: 1, sinceUnixMs: null, refused: null }
  found.holders = { ...at, piles: [pile] }
  // The webhook did not post this finding, so it does not post its holder either.
  hook.explained(shop)
  hook.changed(shop, found.verdicts[0])
  hook.explained(shop)
  await eventually(() => hook.counts.get('delivered'), count => count === 2)
  const told = received.posts.map(({ body }) => JSON.parse(body))
  expect(told.map(({ type, data }) => [type, data.state, data.holder])).toEqual([
    ['verdict.changed', 'confirmed', pile.text],
    ['verdict.explained', 'confirmed', pile.text]
  ])
  hook.stop()
})

it('the end of a follow-up is posted with the measured effect', async () => {
  const hook = webhook()
  const text = 'Did not arrive: --max-semi-space-size is 8, below the advised 16.'
  hook.followed(target(), {
    id: '1',
    workload: 'shop',
    target: 'shop',
    thread: 'main',
    pid: 4711,
    diagnosis: 'semi-space-starvation',
    title: 'New space too small',
    fix: 'Let semi-spaces grow',
    change: 'NODE_OPTIONS=--max-semi-space-size=16',
    advisedUnixMs: 1,
    startedAtUnixMs: 2,
    ending: 'did_not_arrive',
    endedUnixMs: 3,
    text,
    effectRatio: null,
    outcomes: []
  })
  await eventually(() => hook.counts.get('delivered'), count => count === 1)
  expect(JSON.parse(received.posts[0].body)).toMatchObject({
    type: 'fix.followed',
    data: {
      target: 'shop',
      workload: 'shop',
      diagnosis: 'semi-space-starvation',
      ending: 'did_not_arrive',
      summary: text,
      fixTitle: 'Let semi-spaces grow',
      fix: 'NODE_OPTIONS=--max-semi-space-size=16'
    }
  })
  hook.stop()
})

it('every change is posted once, in order, signed by Standard Webhooks', async () => {
  const hook = webhook({ secretFile })
  const shop = target()
  for (const state of ['ok', 'suspected', 'confirmed', 'ok', 'unknown']) {
    hook.changed(shop, verdict(state))
  }
  hook.changed(shop, verdict('confirmed', { opportunity: true }))
  await eventually(() => hook.counts.get('delivered'), count => count === 3)
  /** @type {any[]} */
  const told = received.posts.map(({ headers, body }) => new Verifier(SECRET).verify(body, headers))
  expect(told.map(({ data }) => [data.was, data.state])).toEqual([
    [null, 'suspected'],
    ['suspected', 'confirmed'],
    ['confirmed', 'ok']
  ])
  expect(told[1]).toMatchObject({
    type: 'verdict.changed',
    data: {
      target: 'shop',
      thread: 'main',
      pid: 4711,
      diagnosis: 'js-heap-leak',
      severity: 'critical',
      evidence: ['More is left.'],
      fix: '--x',
      runbook: 'MemwatchJsHeapLeak'
    }
  })
  expect(() =>
    new Verifier(SECRET).verify(
      received.posts[0].body.replace('shop', 'shot'),
      received.posts[0].headers
    )
  ).toThrow()
  hook.stop()
})

it.each([
  ['an error of the server', [500, 503]],
  ['a connection that breaks', ['hang up', 'hang up']],
  ['too many requests', [429]]
])('%s leads to another attempt with the same id', async (_, answers) => {
  received.answers.push(...answers)
  const hook = webhook({})
  hook.changed(target(), verdict('confirmed'))
  await eventually(
    () => hook.counts.get('delivered'),
    count => count === 1
  )
  expect(received.posts).toHaveLength(answers.length + 1)
  expect(new Set(received.posts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(received.posts[0].headers['webhook-signature']).toBeUndefined()
  hook.stop()
})

it.each([
  ['a request refused as wrong is not tried again', [404], 1],
  ['a request that keeps failing is dropped', [500, 500, 500, 500], 3]
])('%s, with one line of log', async (_, answers, tries) => {
  failures.length = 0
  received.answers.push(...answers)
  const hook = webhook({})
  hook.changed(target(), verdict('confirmed'))
  await eventually(
    () => hook.counts.get('failed'),
    count => count === 1
  )
  expect([received.posts.length, failures]).toEqual([tries, [`it answered ${answers[0]}`]])
  hook.stop()
})

it('without an answer the newest hundred wait, and the rest are counted', async () => {
  received.server.close()
  const hook = webhook({ retryAfterMs: [60_000] })
  for (let i = 0; i < 120; i++) hook.changed(target(), verdict('confirmed'))
  expect(hook.counts.get('dropped')).toBe(19) // One post is being sent and does not wait.
  hook.stop()
})

it('an exporter posts the findings of a real app, and counts them', async () => {
  const exporter = await startExporter({
    autoCaptures: false,
    webhook: received.url,
    webhookSecretFile: secretFile
  })
  const agent = await tellRecording(exporter, 'event-loop-blocked')
  const told = await eventually(
    () => received.posts.map(({ body }) => JSON.parse(body).data),
    posts => posts.some(({ state }) => state === 'confirmed')
  )
  expect(told.at(-1)).toMatchObject({
    target: 'event-loop-blocked',
    diagnosis: 'event-loop-blocked',
    state: 'confirmed'
  })
  expect(await exporter.metrics()).toMatch(
    /memwatch_exporter_webhook_posts_total\{outcome="delivered"\} [1-9]/
  )
  agent.destroy()
  await exporter.stop()
})
