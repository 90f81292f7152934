'use strict'

const http = require('node:http')
const path = require('node:path')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')
const { hello, frame, line, MIB } = require('../support/frames')

const recording = name => path.join(__dirname, `../recordings/${name}.ndjson.gz`)
const HEALTHY = recording('22-healthy-steady-broken')

describe('memwatch right-size of recordings', () => {
  it('prints sizes with their origin, and warns of a short history', async () => {
    const { code, stdout, stderr } = await memwatch(['right-size', HEALTHY])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^healthy-steady: 1 container, \d+ min of history, low confidence\n/)
    expect(stdout).toMatch(/\nmemory request +\d+ MiB +p99 of the minute peaks over/)
    expect(stdout).toMatch(/\nNODE_OPTIONS=".*--max-old-space-size=\d+/)
  })
  it('treats several recordings of a workload as its pods, and prints a patch', async () => {
    const args = ['right-size', HEALTHY, HEALTHY, '--guaranteed', '--json']
    const { sizes, containers } = JSON.parse((await memwatch(args)).stdout)
    expect([containers, sizes.requestBytes]).toEqual([1, sizes.limitBytes])
    const { code, stdout } = await memwatch([
      'right-size', HEALTHY, '--format', 'kubernetes', '--workload', 'deployment/shop',
      '--container', 'app'
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/requests:\n +memory: "\d+Mi"\n +limits:\n +memory: "\d+Mi"\n$/)
  })
  it('says that no size fixes a leak', async () => {
    const leaking = recording('22-js-heap-leak-broken')
    expect(await memwatch(['right-size', leaking, '--format', 'helm'])).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^memwatch: No size fixes a leak: js-heap-leak is confirmed/)
    })
  })
  it.each([
    [[], 'right-size: expected a target, recordings, or --prometheus URL'],
    [[HEALTHY, 'shop'], 'right-size: expected recordings, or one target, got "shop"'],
    [[HEALTHY, '--name', 'shop'], '--name: expected one of healthy-steady, got shop'],
    [[HEALTHY, '--format', 'kubernetes'], '--workload: expected deployment/NAME'],
    [['--prometheus', 'http://localhost:1'], '--selector: expected the labels of one workload']
  ])('refuses %j', async (args, message) => {
    expect(await memwatch(['right-size', ...args])).toEqual({
      code: 2, stdout: '', stderr: expect.stringContaining(message)
    })
  })
})

describe('memwatch right-size of an exporter', () => {
  let exporter
  beforeAll(async () => { exporter = await startExporter() })
  afterAll(() => exporter.stop())
  it('reads its history, including the replicas', async () => {
    for (const pid of [1, 2]) {
      const connection = await exporter.connect()
      const values = {
        rssBytes: (200 + 100 * pid) * MIB,
        rssAnonBytes: 150 * MIB,
        heapPhysicalBytes: 120 * MIB,
        heapTotalBytes: 120 * MIB,
        heapUsedBytes: 110 * MIB,
        heapSizeLimitBytes: 259 * MIB,
        liveHeapBytes: 90 * MIB,
        liveHeapMajors: 1,
        containerLimitBytes: 512 * MIB,
        containerUsageBytes: 310 * MIB
      }
      connection.write(`${[line(hello({ pid })), ...[1, 61, 121].map((uptimeSeconds, i) =>
        line(frame({ sequence: i + 1, uptimeSeconds, values })))].join('\n')}\n`)
    }
    await eventually(() => exporter.exporter.state.frames, frames => frames === 6)
    const args = ['right-size', 'api', '--url', exporter.url]
    const { stdout } = await memwatch([...args, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      target: 'api',
      state: 'sized',
      containers: 2,
      present: { memoryLimitBytes: 512 * MIB },
      sizes: { unset: expect.any(Object) },
      change: { env: { NODE_OPTIONS: expect.stringContaining('--max-old-space-size=') } }
    })
    expect(await memwatch(['right-size', 'nobody', '--url', exporter.url])).toMatchObject({
      code: 2, stderr: expect.stringContaining('known targets: api')
    })
  })
})

describe('memwatch right-size of a Prometheus', () => {
  let server
  /** @type {{ url: string, authorization: string | undefined, query: string }[]} */
  let asked
  let url
  beforeAll(async () => {
    server = http.createServer(async (request, response) => {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      const query = new URLSearchParams(Buffer.concat(chunks).toString())
      const text = query.get('query') ?? ''
      asked.push({
        url: request.url ?? '', authorization: request.headers.authorization, query: text
      })
      response.end(JSON.stringify({ status: 'success', data: answer(text, query) }))
    }).listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    url = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`
  })
  beforeEach(() => { asked = [] })
  afterAll(() => server.close())

  /** Metrics over three days, of two processes in one pod. */
  const MIB_OF = {
    process_resident_memory_bytes: 300,
    memwatch_heap_used_bytes: 150,
    memwatch_live_heap_bytes: 120,
    memwatch_heap_space_physical_bytes: 180
  }
  let leaks = false
  function answer (query, given) {
    const labels = target => ({ job: 'shop', instance: '10.0.0.1', thread: 'main', target })
    const name = Object.keys(MIB_OF).find(name => query.includes(name))
    if (given.has('start')) {
      const [start, end, step] = ['start', 'end', 'step'].map(key => Number(given.get(key)))
      const times = Array.from({ length: (end - start) / step + 1 }, (_, i) => start + i * step)
      return {
        resultType: 'matrix',
        result: ['a', 'b'].map(target => ({
          metric: labels(target), values: times.map(time => [time, String(MIB_OF[name ?? ''] * MIB)])
        }))
      }
    }
    const of = (value, metric = /** @type {object} */ (labels('a'))) => [{ metric, value: [0, String(value)] }]
    const vector = query.includes('pod_info')
      ? ['a', 'b'].flatMap(target => of(1, { ...labels(target), k8s_pod_uid: 'u' }))
      : query.includes('container_limit')
        ? of(1024 * MIB)
        : query.includes('exits_total')
          ? of(1.02, { reason: 'oom_kill' })
          : query.includes('memwatch_diagnosis') && leaks
            ? of(1, { diagnosis: 'native-memory-leak' })
            : []
    return { resultType: 'vector', result: vector }
  }
  const sizes = async (...args) => memwatch([
    'right-size', '--prometheus', url, '--selector', '{job="shop"}', '--since', '3d', ...args
  ])

  it('adds up the processes of a pod, and does not lower sizes after deaths', async () => {
    const { code, stdout, stderr } = await sizes('--json')
    expect([code, stderr]).toEqual([0, ''])
    const found = JSON.parse(stdout)
    expect(found).toMatchObject({
      state: 'sized',
      confidence: 'medium',
      containers: 1,
      present: { memoryLimitBytes: 1024 * MIB }
    })
    expect(found.sizes.limitBytes).toBeGreaterThanOrEqual(1024 * MIB)
    expect(found.reasons.limit).toContain('highest minute over 3 days: 600 MiB')
    expect(found.notes.join()).toContain('1 by the kernel (the limit is not lowered)')
    expect(asked[0]).toMatchObject({
      url: '/api/v1/query_range',
      query: 'max_over_time(process_resident_memory_bytes{job="shop",thread=~"main|"}[60s])'
    })
  })
  it('says that no size fixes a leak', async () => {
    leaks = true
    const { code, stdout } = await sizes()
    leaks = false
    expect([code, stdout]).toEqual([1, expect.stringContaining('native-memory-leak is confirmed')])
  })
  it('names an unreachable Prometheus', async () => {
    const { code, stderr } = await memwatch([
      'right-size', '--prometheus', 'http://127.0.0.1:1', '--selector', '{}'
    ])
    expect([code, stderr]).toEqual([
      2, expect.stringMatching(/^memwatch: --prometheus: cannot reach http:\/\/127\.0\.0\.1:1/)
    ])
  })
  it.each([
    ['a missing recording', ['./missing.recording'], /right-size: cannot read \.\/missing\.recording: no such file/],
    ['an unreadable token', [
      '--prometheus', 'http://127.0.0.1:1', '--selector', '{}', '--prometheus-token-file', __dirname
    ], /--prometheus-token-file: EISDIR/],
    ['a token of several words', [
      '--prometheus', 'http://127.0.0.1:1', '--selector', '{}', '--prometheus-token-file', __filename
    ], /--prometheus-token-file: expected a file with a token/]
  ])('refuses %s in one sentence', async (_, args, message) => {
    const { code, stderr } = await memwatch(['right-size', ...args])
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)])
  })
})
