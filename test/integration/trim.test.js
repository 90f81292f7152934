'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const http = require('node:http')
const { parts: known } = require('../../engine/memory/parts')
const { startExporter, eventually } = require('../support/exporter')
const { spawnWatched } = require('../support/agent-collector')
const { MIB } = require('../support/frames')
const { memwatch } = require('../support/memwatch')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-trim-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/** An app that frees Buffers of 40 KB between retained ones: 78 MiB of holes. */
const FRAGMENTS = `
  const kept = []
  let freed = []
  for (let i = 0; i < 2000; i++) { freed.push(Buffer.allocUnsafeSlow(40960).fill(1)); kept.push(Buffer.allocUnsafeSlow(256).fill(1)) }
  freed = []
  gc()
  const freeing = setInterval(() => { if (process.memoryUsage().arrayBuffers < 8e6) { clearInterval(freeing); console.log('freed') } }, 20)
  setInterval(() => kept.length, 1000)
`
const FREED_BYTES = 2000 * 40_960

/**
 * Sends a POST with headers that fetch does not allow.
 * @param {string} url
 * @param {Record<string, string>} headers
 * @returns {Promise<{ status: number, body: any }>}
 */
const post = (url, headers = {}) => new Promise((resolve, reject) => {
  http.request(url, { method: 'POST', headers }, response => {
    let text = ''
    response.setEncoding('utf8').on('data', chunk => { text += chunk })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) }))
  }).on('error', reject).end()
})

/** @type {Awaited<ReturnType<typeof startExporter>>} */
let exporter
/** @type {ReturnType<typeof spawnWatched>[]} */
const apps = []
afterEach(async () => {
  for (const { child } of apps) child.kill('SIGKILL')
  await Promise.all(apps.splice(0).map(({ ended }) => ended))
  await exporter.stop()
})

/**
 * Starts a watched app, and waits until it has freed its Buffers.
 * @param {string} access
 * @param {object} [config] of the exporter
 */
async function freedApp (access, config) {
  exporter = await startExporter(config)
  const app = spawnWatched({
    args: ['--expose-gc', '-e', FRAGMENTS],
    socket: exporter.socket.path,
    env: {
      MEMWATCH_NAME: 'shop',
      MEMWATCH_ALLOCATOR_ACCESS: access,
      MEMWATCH_INTERVAL_SECONDS: '0.2'
    },
    timeoutMs: 60_000
  })
  apps.push(app)
  await app.said('freed')
  // The first scan may come while V8 still frees the Buffers. The next one comes after ten seconds
  // with access to malloc.
  const most = access === 'off' ? Infinity : FREED_BYTES / 2
  await eventually(() => exporter.exporter.targets[0]?.scan, scan =>
    scan !== undefined && scan.externalCountedBytes < most)
  return `${exporter.url}/api/v1/targets/shop/trim`
}

describe('memwatch trim', () => {
  it('predicts the returned memory, trims, and the prediction is right', async () => {
    await freedApp('trim')
    const { code, stdout, stderr } = await memwatch([
      'trim',
      'shop',
      '--url',
      exporter.url,
      '--json'
    ])
    expect([code, stderr]).toEqual([0, ''])
    const { predicted, done } = JSON.parse(stdout)
    const gained = done.rssBeforeBytes - done.rssAfterBytes
    // malloc may have returned part of the memory by itself.
    expect(gained).toBeGreaterThan(0.4 * FREED_BYTES)
    expect(predicted.asked).toBe(true)
    expect(Math.abs(predicted.bytes / gained - 1)).toBeLessThan(0.1)
    expect(done.blockedSeconds).toBeGreaterThan(0)

    const again = await memwatch(['trim', 'shop', '--url', exporter.url])
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining('less than ten seconds ago')
    ])
  })

  it('only predicts with --dry-run', async () => {
    await freedApp('trim')
    const { code, stdout } = await memwatch([
      'trim',
      'shop',
      '--url',
      `${exporter.url}/`,
      '--dry-run'
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^shop: malloc would return about \d+ MiB\. The app pauses for about/
    )
    const [target] = exporter.exporter.targets
    expect(target.values.rssBytes).toBeGreaterThan(FREED_BYTES)
  })

  /** @type {[title: string, access: string, outcome: [status: number, message: RegExp]][]} */
  const REFUSED = [
    [
      'may only read',
      'read',
      [1, /does not allow this command: start the app with MEMWATCH_ALLOCATOR_ACCESS=trim/]
    ],
    ['may not', 'off', [1, /does not allow this command/]]
  ]
  it.each(REFUSED)('is refused if the agent %s', async (_, access, [status, message]) => {
    await freedApp(access)
    const { code, stderr } = await memwatch(['trim', 'shop', '--url', exporter.url])
    expect(code).toBe(status)
    expect(stderr).toMatch(message)
    expect((await post(`${exporter.url}/api/v1/targets/shop/trim`)).body.code).toBe('not_enabled')
  })

  it('names the error in the command line', async () => {
    exporter = await startExporter()
    expect(await memwatch(['trim', 'shop', '--url', exporter.url])).toMatchObject({
      code: 2,
      stderr: 'memwatch: unknown target; known targets: none\n'
    })
    expect(await memwatch(['trim', 'shop', '--url', 'nonsense'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url: expected a URL')
    })
    expect(await memwatch(['trim', 'shop', '--url', 'http://127.0.0.1:1'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--url: no exporter answers at http://127.0.0.1:1')
    })
    expect(await memwatch(['trim', 'shop', '--token-file', '/no/such'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--token-file: ENOENT')
    })
  })
})

describe('clients that may trim', () => {
  it('without a token are tools on the same machine, and no web page', async () => {
    const url = await freedApp('off')
    const status = async (/** @type {Record<string, string>} */ headers) => (await post(url, headers)).status
    expect(await status({})).toBe(409) // Access is granted, but the agent accepts no commands.
    expect(await status({ host: 'localhost:16369' })).toBe(409)
    expect(await status({ host: 'rebound.example' })).toBe(403)
    expect(await status({ origin: 'http://localhost:16369' })).toBe(403)
  })

  it('with a token are clients that send it', async () => {
    const tokenFile = path.join(folder, 'token')
    fs.writeFileSync(tokenFile, 'secret\n')
    const url = await freedApp('trim', { token: 'secret' })
    expect(await post(url)).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
    expect((await post(url, { authorization: 'Bearer secre' })).status).toBe(401)
    expect((await memwatch(['trim', 'shop', '--url', exporter.url])).code).toBe(1)
    expect(
      (
        await memwatch([
          'trim',
          'shop',
          '--url',
          exporter.url,
          '--token-file',
          tokenFile,
          '--dry-run'
        ])
      ).code
    ).toBe(0)
    expect(
      JSON.stringify(await (await fetch(`${exporter.url}/api/v1/targets`)).json())
    ).not.toContain('secret')
  })
})

describe('over a socket in a folder that others may write to', () => {
  const shared = fs.mkdtempSync(path.join(folder, 'shared-'))
  fs.chmodSync(shared, 0o777)
  const socket = { path: path.join(shared, 'exporter.sock') }
  const tokenFile = path.join(folder, 'shared-token')
  fs.writeFileSync(tokenFile, 'secret\n')

  /** @param {NodeJS.ProcessEnv} env */
  const watch = async env => {
    apps.push(
      spawnWatched({
        args: ['-e', 'setInterval(() => {}, 1000)'],
        socket: socket.path,
        env: {
          MEMWATCH_NAME: 'shop',
          MEMWATCH_ALLOCATOR_ACCESS: 'trim',
          MEMWATCH_INTERVAL_SECONDS: '0.2',
          ...env
        },
        timeoutMs: 60_000
      })
    )
    await eventually(() => exporter.exporter.targets[0]?.scan, Boolean)
  }
  const look = (file = tokenFile) =>
    memwatch(['trim', 'shop', '--url', exporter.url, '--token-file', file, '--dry-run'])
  /** @param {string} token of the next exporter */
  const restart = async token => {
    await exporter.stop()
    exporter = await startExporter({ socket, token })
    await eventually(() => exporter.exporter.targets.length, Boolean)
  }

  it('a shared token proves each command, after the exporter was restarted, too', async () => {
    exporter = await startExporter({ socket, token: 'secret' })
    await watch({ MEMWATCH_TOKEN_FILE: tokenFile })
    for (let i = 0; i < 2; i++) expect(await look()).toMatchObject({ code: 0, stderr: '' })
    await restart('secret')
    expect(await look()).toMatchObject({ code: 0, stderr: '' })
    const anotherFile = path.join(folder, 'another-token')
    fs.writeFileSync(anotherFile, 'another')
    await restart('another')
    expect(await look(anotherFile)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('does not trust')
    })
  })

  it('without a token the agent offers no commands, and the API says why', async () => {
    exporter = await startExporter({ socket, token: 'secret' })
    await watch({})
    expect(await look()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('set MEMWATCH_TOKEN_FILE to the same file for agent and exporter')
    })
  })
})

it('a request to a silent agent has a time limit', async () => {
  exporter = await startExporter()
  const { Commands } = require('../../exporter/commands/commands')
  const silent = { name: 'shop', hello: { commands: ['trim'] }, send: () => {} }
  await expect(new Commands({ answerWithinMs: 50 }).carryOut(/** @type {any} */ (silent), 'trim')).rejects.toMatchObject({ code: 'no_answer' })
  await expect(new Commands().carryOut(/** @type {any} */ ({ ...silent, send: undefined }), 'trim')).rejects.toMatchObject({ code: 'not_connected' })
})

it('the parts of memory add up to RSS, in the metrics and in the API', async () => {
  await freedApp('read')
  const text = await exporter.metrics()
  const of = (/** @type {RegExp} */ pattern) => [...text.matchAll(pattern)].map(([, value]) => Number(value))
  const [rss] = of(/^memwatch_rss_bytes\{.*\} (\S+)$/gm)
  const parts = of(/^memwatch_memory_bytes\{.*\} (\S+)$/gm)
  expect(parts).toHaveLength(Object.keys(known).length)
  expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(rss, 0)
  const [{ memory }] = await (await exporter.get('/api/v1/targets')).json()
  const bytes = Object.fromEntries(memory.parts.map(({ part, bytes }) => [part, bytes]))
  expect(bytes.allocator_retained).toBeGreaterThan(0.9 * FREED_BYTES)
  expect(bytes.unexplained).toBeLessThan(0.1 * memory.rssBytes)
  expect(memory.rssBytes).toBeGreaterThan(100 * MIB)
})
