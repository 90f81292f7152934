'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { randomUUID } = require('node:crypto')
const { Readable } = require('node:stream')
const { CaptureStore } = require('../../exporter/captures/store')
const { ConfigError } = require('../../exporter/config')
const { DataFolder } = require('../../exporter/data-folder/data-folder')
const { parseDestination, parseEndpoint } = require('../../exporter/egress/addresses')
const { readAwsKeys } = require('../../exporter/egress/credentials')
const { partKey, recordKey } = require('../../exporter/egress/object-keys')
const { createSend } = require('../../exporter/egress/send')
const { MOST_ATTEMPTS, Shipper, delayAfter } = require('../../exporter/egress/shipper')
const { Exporter } = require('../../exporter/exporter')
const { exporterConfig, startExporter, eventually } = require('../support/exporter')
const { startObjectServer } = require('../support/object-server')
const { sha256, verifySignature } = require('../support/s3-verifier')

/** @type {string} */
let folder
/** @type {Awaited<ReturnType<typeof startObjectServer>>} */
let server
beforeEach(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-egress-'))
  server = await startObjectServer()
})
afterEach(async () => {
  await server.stop()
  fs.rmSync(folder, { recursive: true })
})

/** A profile that is larger than the send buffer of a socket. */
const PROFILE = Buffer.from(JSON.stringify({ head: 'x'.repeat(5e6) }))
const AT_UNIX_MS = Date.UTC(2026, 10, 23, 17, 5, 9)
/**
 * @param {object} [changes]
 * @returns {any}
 */
const captureOf = changes => ({
  id: randomUUID(),
  kind: 'heap_profile',
  target: 'shop',
  thread: 'main',
  pid: 7,
  host: null,
  node: 'v24.0.0',
  startedAtUnixMs: 1,
  seconds: 12,
  rule: 'last-minute',
  diagnosis: 'js-heap-leak',
  state: 'done',
  error: null,
  errorCode: null,
  requestedUnixMs: AT_UNIX_MS,
  finishedUnixMs: AT_UNIX_MS + 12_000,
  parts: [{ part: 'profile', bytes: PROFILE.length, sha256: sha256(PROFILE) }],
  isPartial: false,
  shippedUnixMs: null,
  suspects: null,
  retainers: null,
  ...changes
})

/**
 * A stored capture.
 * @param {CaptureStore} store
 * @param {object} [changes]
 */
async function stored (store, changes) {
  const capture = captureOf(changes)
  for (const { part } of capture.parts) {
    await store.write(capture.id, part, Readable.from([PROFILE]))
  }
  store.keep(capture)
  return capture
}
const storeIn = at => new CaptureStore(path.join(at, 'captures'), { maxBytes: 2 ** 30, keepMs: 1e12 })

/**
 * A shipper to the server, from captures in memory.
 * @param {object} [options]
 * @param {object} [sendOptions]
 */
function shipper (options, sendOptions) {
  /** @type {Map<string, any>} */
  const captures = new Map()
  const failures = []
  const delays = []
  const shipper = new Shipper({
    captures: {
      get: id => captures.get(id),
      read: () => /** @type {any} */ (Readable.from([PROFILE])),
      markShipped: id => { captures.get(id).shippedUnixMs = 1 }
    },
    send: createSend(parseDestination(`${server.url}/store`), sendOptions),
    onFailure: message => failures.push(message),
    delay: failed => { delays.push(failed); return 1 },
    ...options
  })
  const add = changes => {
    const capture = captureOf(changes)
    captures.set(capture.id, capture)
    shipper.add(capture)
    return capture
  }
  const idle = () => eventually(() => shipper.waiting, waiting => waiting === 0)
  return { shipper, captures, failures, delays, add, idle }
}
const pathOf = (capture, part = 'profile') => `/store/${partKey(capture, part)}`

describe('a capture', () => {
  it('is sent part by part, and its record comes last', async () => {
    const { shipper: of, add, idle } = shipper()
    const capture = add()
    await idle()
    const record = `/store/${recordKey(capture)}`
    expect(server.requests.map(({ method, path }) => [method, path])).toEqual([
      ['PUT', pathOf(capture)], ['PUT', record]
    ])
    expect(server.objects.get(pathOf(capture))?.equals(PROFILE)).toBe(true)
    expect(JSON.parse(String(server.objects.get(record)))).toMatchObject({ id: capture.id })
    expect(capture.shippedUnixMs).toBe(1)
    expect(of.bytes).toBe(PROFILE.length + Number(server.objects.get(record)?.length))
    expect(Object.fromEntries(of.counts)).toEqual({ shipped: 1, failed: 0, dropped: 0 })
  })
  it.each([
    ['fails', 500],
    ['asks for patience', 429],
    ['cuts the connection', /** @type {const} */ ('cut')],
    ['hangs', /** @type {const} */ ('hang')]
  ])('arrives whole from a server that %s, twice', async (_, answer) => {
    const { shipper: of, add, idle, failures, delays } = shipper({}, { idleMs: 200 })
    server.answers.push(answer, answer)
    const capture = add()
    await idle()
    expect(server.objects.get(pathOf(capture))?.equals(PROFILE)).toBe(true)
    expect(Object.fromEntries(of.counts)).toEqual({ shipped: 1, failed: 0, dropped: 0 })
    expect(delays).toEqual([1, 2])
    // Only the first of several failures is reported.
    expect(failures).toEqual([expect.stringContaining('the exporter will try again')])
  })
  it('of which a part has arrived is continued with the next part', async () => {
    const { add, idle } = shipper()
    server.answers.push(200, 500)
    const capture = add()
    await idle()
    expect(server.requests.map(({ path }) => path)).toEqual([
      pathOf(capture), `/store/${recordKey(capture)}`, `/store/${recordKey(capture)}`
    ])
  })
  it('arrives once an unreachable server is back', async () => {
    const { port } = server
    await server.stop()
    const { add, idle, delays } = shipper({ delay: () => 5 })
    const capture = add()
    await new Promise(resolve => setImmediate(resolve))
    server = await startObjectServer({ port })
    await idle()
    expect(server.objects.has(pathOf(capture))).toBe(true)
    expect(delays).toEqual([])
  })
  it('is abandoned after a number of attempts, without delaying others', async () => {
    const { shipper: of, add, idle, failures } = shipper()
    const id = randomUUID()
    server.refused.add(pathOf(captureOf({ id })))
    const bad = add({ id })
    const good = add()
    await idle()
    expect(server.requests.filter(({ path }) => path === pathOf(bad))).toHaveLength(MOST_ATTEMPTS)
    expect([bad.shippedUnixMs, good.shippedUnixMs]).toEqual([null, 1])
    expect(Object.fromEntries(of.counts)).toEqual({ shipped: 1, failed: 1, dropped: 0 })
    expect(failures.at(-1)).toContain(`given up after ${MOST_ATTEMPTS} attempts`)
  })
  it.each([[413, 1], [404, 1], [307, 1], [403, 2], [503, 2]])(
    'answered by %d is sent %d times in all', async (status, times) => {
      const { add, idle } = shipper()
      server.answers.push(status)
      const capture = add()
      await idle()
      expect(server.requests.filter(({ path }) => path === pathOf(capture))).toHaveLength(times)
    }
  )
  it.each([-1, 1])('whose file has %d bytes more than in its record is abandoned', async more => {
    const { shipper: of, add, idle, failures } = shipper()
    add({ parts: [{ part: 'profile', bytes: PROFILE.length - more, sha256: '' }] })
    await idle()
    expect(Object.fromEntries(of.counts)).toEqual({ shipped: 0, failed: 1, dropped: 0 })
    expect(failures).toEqual([expect.stringContaining('given up after 1 attempts')])
  })
  it('that was deleted meanwhile is dropped, and counted', async () => {
    const { shipper: of, captures, add, idle } = shipper()
    server.answers.push(500)
    const { id } = add()
    captures.delete(id)
    await idle()
    expect(Object.fromEntries(of.counts)).toEqual({ shipped: 0, failed: 0, dropped: 1 })
  })
  it('is one of at most 500 in the queue: the oldest is dropped first', async () => {
    const { port } = server
    await server.stop()
    const { shipper: of, add } = shipper({ delay: () => 1e6 })
    for (let i = 0; i < 501; i++) add()
    expect([of.waiting, of.counts.get('dropped')]).toEqual([500, 1])
    await of.stop()
    server = await startObjectServer({ port })
  })
  it.each([
    [false, 'heap_snapshot', 0], [true, 'heap_snapshot', 2], [false, 'heap_profile', 2]
  ])('with --ship-snapshots %s, a %s makes %d requests', async (shipsSnapshots, kind, requests) => {
    const { add, idle } = shipper({ shipsSnapshots })
    add({ kind })
    await idle()
    expect(server.requests).toHaveLength(requests)
  })
  it('that is unfinished, or already sent, is not sent', async () => {
    const { shipper: of, add } = shipper()
    add({ state: 'failed' })
    add({ shippedUnixMs: 5 })
    expect(of.waiting).toBe(0)
  })
  it('waits longer after each failure, with random delays of at most five minutes', () => {
    const limits = [[1, 1000], [2, 2000], [9, 256_000], [10, 300_000], [40, 300_000]]
    for (const [failures, most] of limits) {
      const delays = Array.from({ length: 50 }, () => delayAfter(failures))
      expect(Math.max(...delays)).toBeLessThanOrEqual(most)
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(most / 2)
      expect(new Set(delays).size).toBeGreaterThan(1)
    }
  })
})

describe('a folder', () => {
  it('gets whole files that only this user can read', async () => {
    const to = path.join(folder, 'out')
    const send = createSend(parseDestination(`file://${to}`))
    const { add, idle } = shipper({ send })
    const capture = add()
    // A file left by an exporter that died while writing it.
    const file = path.join(to, partKey(capture, 'profile'))
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(`${file}.part`, 'x')
    await idle()
    expect(fs.readFileSync(file).equals(PROFILE)).toBe(true)
    expect(fs.statSync(file).mode & 0o777).toBe(0o600)
    expect(fs.readdirSync(path.dirname(file)).sort()).toEqual([
      'capture.json', path.basename(file)
    ])
  })
})

describe('keys', () => {
  it.each([
    ['shop', 'shop'],
    ['../../etc', '_/../etc'],
    ['..', '_'],
    ['.', '_'],
    ['a/b\\c', 'a_b_c'],
    ['a\u0000\r\nb\u202e', 'a___b_'],
    ['%2e%2e?x=1#', '_2e_2e_x_1_'],
    ['Läden', 'L_den'],
    ['', '_'],
    ['x'.repeat(300), 'x'.repeat(100)]
  ])('of the target %j lie below one folder', (target, name) => {
    const key = partKey(captureOf({ target }), 'profile')
    expect(key).toMatch(/^[\w.-]+\/2026-11-23\/170509-heap_profile-[0-9a-f-]{36}\/profile\.heapprofile$/)
    expect(key.split('/')[0]).toBe(name.replace('_/../etc', '__.._etc'))
    expect(path.normalize(key)).toBe(key)
  })
  it.each([
    [{ id: '../x' }, 'profile'], [{ kind: 'constructor' }, 'profile'], [{}, '../x'], [{}, 'A']
  ])('of %j and the part %s are refused', (changes, part) => {
    expect(() => partKey(captureOf(changes), part)).toThrow('no ')
  })
})

describe('an address', () => {
  it.each([
    ['file:///var/captures', {}, { kind: 'folder', folder: '/var/captures' }],
    ['https://example.com/a/b-1/', {}, { kind: 'put', url: 'https://example.com/a/b-1' }],
    ['http://127.0.0.1:8080', {}, { kind: 'put', url: 'http://127.0.0.1:8080/' }],
    ['http://[::1]/x', {}, { kind: 'put', url: 'http://[::1]/x' }],
    ['http://10.0.0.1/x', { allowHttp: true }, { kind: 'put', url: 'http://10.0.0.1/x' }],
    ['s3://bucket', { region: 'eu-west-1' }, {
      kind: 's3', url: 'https://s3.eu-west-1.amazonaws.com/bucket', region: 'eu-west-1'
    }],
    ['s3://bucket/a/b', { endpoint: parseEndpoint('https://minio.example.com:9000') }, {
      kind: 's3', url: 'https://minio.example.com:9000/bucket/a/b', region: 'us-east-1'
    }]
  ])('%s is accepted with %j', (text, options, expected) => {
    const found = JSON.parse(JSON.stringify(parseDestination(text, options)))
    expect(found).toEqual(expected)
  })
  it.each([
    ['/var/captures', {}],
    ['ftp://example.com', {}],
    ['http://10.0.0.1/x', {}],
    ['http://127.0.0.1.example.com/x', {}],
    ['http://localhost.example.com/x', {}],
    ['https://user:password@example.com/x', {}],
    ['https://example.com/x?sig=1', {}],
    ['https://example.com/x%2f..', {}],
    ['s3://Bucket_1', {}],
    ['s3://b', {}],
    ['s3://bucket/a b', {}],
    ['s3://bucket', { region: 'x/y' }],
    ['s3://bucket', { endpoint: new URL('http://10.0.0.1') }]
  ])('%s is refused with %j', (text, options) => {
    expect(() => parseDestination(text, options)).toThrow(/^(expected|http:)/)
  })
  it('with a password is refused without repeating it', () => {
    expect(() => parseDestination('https://user:hunter2@example.com')).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') }))
  })
  it.each(['minio', 'ftp://x', 'https://x/path', 'https://u:p@x', 'https://x/?a'])(
    'of a server, %s, is refused', text => {
      expect(() => parseEndpoint(text)).toThrow('expected the URL of a server')
    })
})

describe('S3', () => {
  const KEYS = { AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE', AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }
  afterEach(() => { for (const name of [...Object.keys(KEYS), 'AWS_SESSION_TOKEN']) delete process.env[name] })

  it('the verifier of these tests accepts the signature in AWS’s own example', () => {
    // https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, PUT Object
    const { expected, signature } = verifySignature({
      method: 'PUT',
      path: '/test%24file.text',
      headers: {
        date: 'Fri, 24 May 2013 00:00:00 GMT',
        host: 'examplebucket.s3.amazonaws.com',
        'x-amz-content-sha256': sha256('Welcome to Amazon S3.'),
        'x-amz-date': '20130524T000000Z',
        'x-amz-storage-class': 'REDUCED_REDUNDANCY',
        authorization: 'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/' +
          'aws4_request,SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;' +
          'x-amz-storage-class,Signature=' +
          '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd'
      }
    }, KEYS.AWS_SECRET_ACCESS_KEY)
    expect(expected).toBe(signature)
  })
  const tokens = [undefined, 'a token']
  it.each(tokens)('each request is signed, with its body, session: %s', async token => {
    Object.assign(process.env, KEYS, token && { AWS_SESSION_TOKEN: token })
    const destination = parseDestination('s3://bucket/prod', { endpoint: new URL(server.url) })
    const { add, idle } = shipper({ send: createSend(destination) })
    const capture = add()
    await idle()
    expect(server.requests.map(({ path }) => path)).toEqual([
      `/bucket/prod/${partKey(capture, 'profile')}`, `/bucket/prod/${recordKey(capture)}`
    ])
    for (const request of server.requests) {
      const found = verifySignature(request, KEYS.AWS_SECRET_ACCESS_KEY)
      expect(found.signature).toBe(found.expected)
      expect(found.accessKeyId).toBe(KEYS.AWS_ACCESS_KEY_ID)
      expect(found.signed).toEqual(expect.arrayContaining([
        'content-length', 'host', 'x-amz-content-sha256', 'x-amz-date',
        ...token ? ['x-amz-security-token'] : []
      ]))
      expect(request.headers['x-amz-content-sha256']).toBe(sha256(request.body))
      expect(verifySignature(request, 'another').expected).not.toBe(found.signature)
    }
  })
  it('keys come from the first section of a file, otherwise from the environment', () => {
    const file = path.join(folder, 'credentials')
    fs.writeFileSync(file, '[default]\naws_access_key_id = A\naws_secret_access_key=B/+=\n\n' +
      '[other]\naws_access_key_id = C\naws_session_token = D\n')
    expect(readAwsKeys(file, KEYS)).toEqual({ accessKeyId: 'A', secretAccessKey: 'B/+=' })
    expect(readAwsKeys(undefined, { ...KEYS, AWS_SESSION_TOKEN: 'T' })).toEqual({
      accessKeyId: KEYS.AWS_ACCESS_KEY_ID,
      secretAccessKey: KEYS.AWS_SECRET_ACCESS_KEY,
      sessionToken: 'T'
    })
    fs.writeFileSync(file, 'aws_access_key_id = A\n')
    expect(() => readAwsKeys(file, KEYS)).toThrow(`${file}: expected aws_access_key_id and`)
    expect(() => readAwsKeys(undefined, {})).toThrow('expected AWS_ACCESS_KEY_ID')
  })
})

describe('the exporter', () => {
  const open = async (more = {}) => {
    const dataFolder = await DataFolder.open(path.join(folder, 'data'))
    const exporter = await startExporter({ dataFolder, shipTo: `${server.url}/store`, ...more })
    return { ...exporter, stop: async () => { await exporter.stop(); dataFolder.close() } }
  }
  it('sends captures that an earlier exporter stored but did not send, once', async () => {
    const store = storeIn(path.join(folder, 'data'))
    fs.mkdirSync(path.join(folder, 'data'), { mode: 0o700 })
    const captures = [await stored(store), await stored(store, { requestedUnixMs: Date.now() })]
    const { port } = server
    await server.stop()
    await (await open({ capturesKeep: 1e9 })).stop()
    server = await startObjectServer({ port })

    const again = await open({ capturesKeep: 1e9 })
    await eventually(() => again.exporter.captures.all,
      all => all.every(({ shippedUnixMs }) => shippedUnixMs))
    const metrics = await again.metrics()
    expect(metrics).toContain('memwatch_exporter_egress_captures_total{outcome="shipped"} 2')
    expect(metrics).toContain('memwatch_exporter_egress_waiting 0')
    expect(metrics).toMatch(/memwatch_exporter_egress_bytes_total 10\d{6}/)
    await again.stop()
    expect([...server.objects.keys()].sort()).toEqual(captures.flatMap(capture =>
      [pathOf(capture), `/store/${recordKey(capture)}`]).sort())

    await (await open({ capturesKeep: 1e9 })).stop()
    expect(server.requests).toHaveLength(4)
  })
  it('sends the waiting captures before it stops', async () => {
    const exporter = await open()
    const capture = captureOf({ requestedUnixMs: Date.now() })
    const at = path.join(folder, 'data', 'captures', capture.id)
    fs.mkdirSync(at, { recursive: true, mode: 0o700 })
    fs.writeFileSync(path.join(at, 'profile'), PROFILE)
    fs.writeFileSync(path.join(at, 'capture.json'), JSON.stringify(capture))
    exporter.exporter.captures.restore()
    exporter.exporter.emit('captured', exporter.exporter.captures.get(capture.id))
    await exporter.stop()
    expect(server.objects.has(`/store/${recordKey(capture)}`)).toBe(true)
  })
  it('without --ship-to sends nothing, and has no such metrics', async () => {
    const exporter = await startExporter()
    expect(await exporter.metrics()).not.toContain('memwatch_exporter_egress')
    await exporter.stop()
  })
  it.each([
    [{ shipTo: 'nowhere' }, '--ship-to: expected an address'],
    [{ shipTo: 'http://10.0.0.1/' }, '--ship-to: http:// sends captures without encryption'],
    [{ shipTo: 's3://bucket' }, '--ship-to: expected AWS_ACCESS_KEY_ID'],
    [{ shipTo: 'https://example.com', shipCredentials: '/nowhere' }, '--ship-to: ENOENT']
  ])('with %j does not start', async (config, message) => {
    const exporter = new Exporter(exporterConfig(path.join(folder, 'exporter.sock'), config))
    const error = await exporter.start().catch(error => error)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toContain(message)
  })
  it('sends a bearer token from its file, read anew for each request', async () => {
    const file = path.join(folder, 'token')
    fs.writeFileSync(file, 'one\n')
    const { add, idle } = shipper({}, { credentialsFile: file })
    add()
    await idle()
    fs.writeFileSync(file, 'two\n')
    add()
    await idle()
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer one', 'Bearer one', 'Bearer two', 'Bearer two'
    ])
  })
})
