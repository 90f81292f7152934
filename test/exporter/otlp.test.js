'use strict'

const { execFileSync } = require('node:child_process')
const path = require('node:path')
const { GC_PAUSE_BOUNDS_SECONDS } = require('@memwatch/agent/protocol/frame')
const { readConfig, ConfigError } = require('../../exporter/config')
const { Otlp } = require('../../exporter/otlp/otlp')
const { Targets } = require('../../engine/history/targets')
const { exporterState } = require('../support/exporter-state')
const { startExporter, eventually } = require('../support/exporter')
const { startOtlpReceiver } = require('../support/otlp-receiver')
const { hello, frame, line, gcRow, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')

/** @type {Awaited<ReturnType<typeof startOtlpReceiver>>} */
let receiver
const env = { ...process.env }
/** @type {string[]} */
let logged
/** @type {Otlp[]} */
let sending = []

beforeEach(async () => {
  receiver = await startOtlpReceiver()
  logged = []
})
afterEach(async () => {
  receiver.answers.length = 0
  await Promise.all(sending.map(otlp => otlp.stop()))
  sending = []
  receiver.stop()
  process.env = { ...env }
})

/**
 * --otlp with the targets of the test; each export runs on request.
 * @param {Record<string, string>} [variables]
 * @param {string} [to]
 */
function rig (variables = {}, to = receiver.url) {
  Object.assign(process.env, {
    OTEL_METRIC_EXPORT_INTERVAL: '3600000',
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    ...variables
  })
  const targets = new Targets({ now: Date.now })
  const log = { warn: text => logged.push(text), info: text => logged.push(text) }
  const otlp = new Otlp({
    to,
    source: { targets: () => targets.all, state: () => exporterState() },
    log
  })
  sending.push(otlp)
  targets.on('frame', target => otlp.framed(target))
  targets.on('end', target => otlp.ended(target))
  return {
    otlp,
    open: (changes = {}) =>
      openSession(targets, hello({ startedAtUnixMs: Date.now() + 1, ...changes })),
    count: key => otlp.counts.get(key)
  }
}
const metricIn = (resource, name) => resource.metrics.find(metric => metric.name === name)
const values = (sequence, more = {}) =>
  frame({
    sequence,
    uptimeSeconds: sequence,
    atUnixMs: Date.now(),
    values: {
      rssBytes: 50 * MIB,
      cpuUserSeconds: sequence,
      cpuSystemSeconds: sequence / 2,
      gc: {
        'minor/ordinary': gcRow(10 * sequence, sequence),
        'minor_mark_sweep/ordinary': gcRow(1, 0.5)
      },
      ...more
    }
  })
/**
 * @param {string} state
 * @param {object} [more]
 */
const verdict = (state, more = {}) => /** @type {Parameters<Otlp['changed']>[1]} */ (/** @type {unknown} */ ({
  diagnosis: 'js-heap-leak',
  title: 'It leaks',
  state,
  severity: 'critical',
  opportunity: false,
  confirmedAfterSeconds: null,
  summary: 'It grows.',
  evidence: [{ signal: 'x', value: 1, limit: 2, unit: 'bytes', text: 'More is left.' }],
  ruledOut: [{ diagnosis: 'context-leak', text: '' }],
  impact: null,
  fix: [{ title: 'Let go', change: { flag: '--x' }, predicted: [], risk: '' }],
  runbook: 'MemwatchJsHeapLeak',
  ...more
}))

describe('--otlp', () => {
  it.each([
    ['', ''],
    ['env', 'env'],
    ['http://collector:4318', 'http://collector:4318'],
    ['https://prometheus/api/v1/otlp/', 'https://prometheus/api/v1/otlp/']
  ])('may be %j', (text, value) => {
    expect(readConfig({ otlp: text }, {}).otlp).toBe(value)
  })
  it.each([
    ['on', {}, 'expected env or a URL'],
    ['grpc://collector:4317', {}, 'expected env or a URL'],
    ['http://me:secret@collector:4318', {}, 'OTEL_EXPORTER_OTLP_HEADERS'],
    ['http://collector:4318/?key=secret', {}, 'OTEL_EXPORTER_OTLP_HEADERS'],
    [
      'env',
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' },
      'OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL'
    ],
    ['env', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'expected http/protobuf']
  ])('refuses %j with %j, without repeating a secret', (otlp, variables, message) => {
    expect(() => readConfig({ otlp }, variables)).toThrow(ConfigError)
    expect(() => readConfig({ otlp }, variables)).toThrow(message)
    expect(() => readConfig({ otlp }, variables)).not.toThrow(/secret/)
  })
  it('is off even if OpenTelemetry variables of the app name an endpoint', () => {
    expect(
      readConfig({}, { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_METRICS_EXPORTER: 'otlp' })
        .otlp
    ).toBe('')
  })
  it('loads nothing of OpenTelemetry while it is off', () => {
    const code = `
      const { Exporter } = require(${JSON.stringify(path.join(__dirname, '../../exporter/exporter.js'))})
      const start = otlp => new Exporter({ listen: { host: '127.0.0.1', port: 0 }, socket: { path: '/proc/none/s' }, compat: true, maxTargets: 1, logLevel: 'silent', otlp })
      const loaded = () => Object.keys(require.cache).filter(file => /@opentelemetry|exporter.otlp.(?!address)/.test(file)).length
      // They cannot listen: that is found out when all parts have started.
      const failed = otlp => start(otlp).start().catch(error => error.code)
      failed('').then(async code => {
        const off = loaded()
        await failed('http://127.0.0.1:9')
        console.log(code, off, loaded() > 50)
        process.exit()
      })`
    expect(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }).trim()).toBe(
      'ENOENT 0 true'
    )
  })
})

it('reports invalid values of OpenTelemetry’s variables, and uses the defaults', async () => {
  const { otlp } = rig({
    OTEL_METRIC_EXPORT_INTERVAL: '1',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'both'
  })
  expect(logged).toEqual(
    expect.arrayContaining(
      [
        'OTEL_METRIC_EXPORT_INTERVAL',
        'OTEL_EXPORTER_OTLP_COMPRESSION',
        'OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE'
      ].map(name => expect.stringContaining(name))
    )
  )
  await otlp.exportMetrics()
  expect(receiver.metrics()[0].headers['content-encoding']).toBeUndefined()
})

describe('the metrics', () => {
  it('form one resource for each target, and one for the exporter', async () => {
    const { otlp, open } = rig({
      OTEL_RESOURCE_ATTRIBUTES:
        'deployment.environment.name=prod,k8s.pod.name=pod-1,service.name=mine,k8s.container.name=memwatch'
    })
    const startedAtUnixMs = Date.now() - 5000
    open({ startedAtUnixMs, host: require('node:os').hostname() }).frame(
      values(1, {
        spaces: { new_space: [1, 2, 3, 4], code_space: [0, 0, 0, 0] },
        resources: { TCPSocketWrap: 2 },
        eventLoopActiveSeconds: 1,
        eventLoopIdleSeconds: 3,
        containerUsageBytes: 9,
        threads: 11
      })
    )
    open({ pid: 4712, name: 'worker', host: 'elsewhere' }).frame(values(1))
    await otlp.stop()
    const [api] = receiver.of('api')
    expect(api.attributes).toMatchObject({
      'service.name': 'api',
      'service.instance.id': expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
      ),
      'process.pid': 4711,
      'process.runtime.name': 'nodejs',
      'process.runtime.version': '20.20.2',
      'memwatch.target': 'api',
      'memwatch.thread': 'main',
      'deployment.environment.name': 'prod',
      'k8s.pod.name': 'pod-1'
    })
    expect(api.attributes).not.toHaveProperty('k8s.container.name')
    expect(api.scope).toMatchObject({
      name: 'memwatch',
      schemaUrl: 'https://opentelemetry.io/schemas/1.44.0'
    })
    const [{ attributes: elsewhere }] = receiver.of('worker')
    expect(elsewhere).toMatchObject({
      'host.name': 'elsewhere',
      'deployment.environment.name': 'prod'
    })
    expect(elsewhere).not.toHaveProperty('k8s.pod.name')
    expect(elsewhere['service.instance.id']).not.toBe(api.attributes['service.instance.id'])
    const rss = metricIn(api, 'process.memory.usage')
    expect(rss).toMatchObject({
      kind: 'sum',
      monotonic: false,
      temporality: 'CUMULATIVE',
      unit: 'By',
      points: [{ value: 50 * MIB, attributes: {} }]
    })
    expect(Math.abs(rss.points[0].unixMs - Date.now())).toBeLessThan(5000)
    expect(rss.points[0].startUnixMs).toBeCloseTo(startedAtUnixMs, 0)
    expect(metricIn(api, 'process.cpu.time')).toMatchObject({
      kind: 'sum',
      monotonic: true,
      points: [
        { attributes: { 'cpu.mode': 'user' }, value: 1 },
        { attributes: { 'cpu.mode': 'system' }, value: 0.5 }
      ]
    })
    expect(metricIn(api, 'v8js.memory.heap.used').points).toMatchObject([
      { attributes: { 'v8js.heap.space.name': 'new_space' }, value: 1 }
    ])
    expect(metricIn(api, 'v8js.resource.active').points).toMatchObject([
      { attributes: { 'v8js.resource.type': 'TCPSocketWrap' }, value: 2 }
    ])
    expect(metricIn(api, 'nodejs.eventloop.time').points).toMatchObject([
      { attributes: { 'nodejs.eventloop.state': 'active' }, value: 1 },
      { attributes: { 'nodejs.eventloop.state': 'idle' }, value: 3 }
    ])
    expect(metricIn(api, 'process.thread.count')).toMatchObject({
      unit: '{thread}',
      points: [{ value: 11 }]
    })
    const [own] = receiver.of('mine')
    expect(own.attributes).toMatchObject({
      'k8s.container.name': 'memwatch',
      'k8s.pod.name': 'pod-1',
      'process.pid': process.pid
    })
    expect(metricIn(own, 'memwatch.exporter.targets')).toMatchObject({ kind: 'gauge' })
  })

  it('contain histograms with all buckets of frames; GC kinds of one name are summed', async () => {
    const { otlp, open } = rig()
    open().frame(values(2))
    await otlp.stop()
    const gc = metricIn(receiver.of('api')[0], 'v8js.gc.duration')
    expect(gc).toMatchObject({ kind: 'histogram', unit: 's', temporality: 'CUMULATIVE' })
    expect(gc.points).toHaveLength(1)
    expect(gc.points[0]).toMatchObject({
      attributes: { 'v8js.gc.type': 'minor', 'memwatch.gc.cause': 'ordinary' },
      count: 21,
      sum: 2.5,
      bounds: [...GC_PAUSE_BOUNDS_SECONDS]
    })
    expect(gc.points[0].buckets.reduce((sum, n) => sum + n)).toBe(21)
    expect(gc.points[0].buckets[3]).toBe(21)
  })

  it('use OpenTelemetry’s variables for headers and compression, logging no secret', async () => {
    const { otlp, open } = rig(
      {
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20s3cret,x-scope=a',
        OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'x-scope=b',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
        OTEL_EXPORTER_OTLP_ENDPOINT: `${receiver.url}/below`
      },
      'env'
    )
    open().frame(values(1))
    receiver.answers.push(401)
    await otlp.stop()
    const [{ path, headers, resources }] = receiver.metrics()
    expect([path, resources.length]).toEqual(['/below/v1/metrics', 2])
    expect(headers).toMatchObject({
      authorization: 'Bearer s3cret',
      'x-scope': 'b',
      'content-encoding': 'gzip',
      'content-type': 'application/x-protobuf',
      'user-agent': expect.stringMatching(/^memwatch\//)
    })
    expect(logged).toEqual([
      expect.stringContaining('--otlp: sending to 127.0.0.1'),
      '--otlp: metrics do not arrive: it answered 401'
    ])
  })

  it('can be deltas, and a lost export loses none', async () => {
    const { otlp, open, count } = rig({
      OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta'
    })
    const session = open()
    const statuses = [200, 400, 500, 200, 200]
    for (const [i, status] of statuses.entries()) {
      session.frame(values(i + 1, { containerOomKills: 7 + i }))
      receiver.answers.push(status)
      await otlp.exportMetrics()
    }
    const taken = receiver.of('api').filter((_, i) => statuses[i] === 200)
    const cpu = taken.map(resource =>
      metricIn(resource, 'process.cpu.time').points.find(
        ({ attributes }) => attributes['cpu.mode'] === 'user'
      )
    )
    expect(cpu.map(({ value }) => value)).toEqual([1, 3, 1])
    expect(cpu[1].startUnixMs).toBeCloseTo(cpu[0].unixMs, 0)
    expect(cpu[2].startUnixMs).toBeCloseTo(cpu[1].unixMs, 0)
    const gc = taken.map(resource => metricIn(resource, 'v8js.gc.duration'))
    expect(
      gc.map(({ temporality, points: [{ count, buckets }] }) => [temporality, count, buckets[3]])
    ).toEqual([
      ['DELTA', 11, 11],
      ['DELTA', 30, 30],
      ['DELTA', 10, 10]
    ])
    // A cgroup may have counted before the process started.
    expect(
      taken.map(resource => metricIn(resource, 'memwatch.container.oom_kills')?.points[0].value)
    ).toEqual([undefined, 3, 1])
    expect(taken.map(resource => metricIn(resource, 'process.memory.usage').temporality)).toEqual([
      'CUMULATIVE',
      'CUMULATIVE',
      'CUMULATIVE'
    ])
    expect(count('metrics failed')).toBe(4)
  })

  it('are cumulative counters and delta histograms under lowmemory', async () => {
    const { otlp, open } = rig({ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'LowMemory' })
    open().frame(values(1))
    await otlp.exportMetrics()
    expect(
      ['process.cpu.time', 'v8js.gc.duration'].map(
        name => metricIn(receiver.of('api')[0], name).temporality
      )
    ).toEqual(['CUMULATIVE', 'DELTA'])
  })

  it('as deltas exclude counts from before this exporter’s start', async () => {
    const { otlp, open } = rig({ OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta' })
    const session = open({ startedAtUnixMs: Date.now() - 100_000 })
    session.frame(values(100))
    session.frame(values(103))
    await otlp.exportMetrics()
    expect(
      metricIn(receiver.of('api')[0], 'process.cpu.time').points.map(({ value }) => value)
    ).toEqual([3, 1.5])
  })

  it('of an ended process are sent once more, and then no longer', async () => {
    const { otlp, open } = rig()
    const session = open()
    session.frame(values(1))
    await otlp.exportMetrics()
    session.frame(values(2))
    session.bye({ type: 'bye', sequence: 3, atUnixMs: Date.now(), exitCode: 0 })
    receiver.answers.push(500)
    await otlp.exportMetrics()
    await otlp.exportMetrics()
    await otlp.exportMetrics()
    expect(
      receiver.of('api').map(resource => metricIn(resource, 'process.cpu.time').points[0].value)
    ).toEqual([1, 2, 2])
    const [other] = [open({ pid: 1 })]
    other.frame(values(1))
    await otlp.exportMetrics()
    other.bye({ type: 'bye', sequence: 2, atUnixMs: Date.now(), exitCode: 0 })
    await otlp.exportMetrics()
    expect(receiver.of('api')).toHaveLength(4)
  })

  it('of many targets are sent in several requests, between which other work runs', async () => {
    const { otlp, open, count } = rig({ OTEL_EXPORTER_OTLP_TIMEOUT: '5000' })
    for (let pid = 1; pid <= 300; pid++) {
      open({ pid, name: `app-${pid}` }).frame(
        values(1, {
          spaces: Object.fromEntries(
            ['new', 'old', 'code', 'large_object', 'trusted'].map(name => [
              `${name}_space`,
              [1, 2, 3, 4]
            ])
          )
        })
      )
    }
    let longestMs = 0
    let last = performance.now()
    const beat = setInterval(() => {
      longestMs = Math.max(longestMs, performance.now() - last)
      last = performance.now()
    }, 1)
    await otlp.exportMetrics()
    clearInterval(beat)
    expect(receiver.metrics().length).toBeGreaterThan(1)
    expect(
      new Set(
        receiver
          .metrics()
          .flatMap(({ resources }) =>
            resources.map(({ attributes }) => attributes['service.instance.id'])
          )
      ).size
    ).toBe(301)
    expect(count('metrics delivered')).toBe(301)
    expect(longestMs).toBeLessThan(500)
  })
})

describe('a receiver that', () => {
  it('is unreachable causes counted losses and one log line, then gets current values', async () => {
    const { port } = new URL(receiver.url)
    receiver.stop()
    const { otlp, open, count } = rig({}, `http://127.0.0.1:${port}`)
    const session = open()
    for (let i = 1; i <= 5; i++) {
      session.frame(values(i))
      await otlp.exportMetrics()
    }
    expect([count('metrics failed'), count('metrics delivered')]).toEqual([10, 0])
    expect(logged.slice(1)).toEqual([
      expect.stringMatching(/^--otlp: metrics do not arrive: .*ECONNREFUSED/)
    ])
  })

  it('hangs occupies one request until the timeout; exports during this time are dropped', async () => {
    const { otlp, open, count } = rig()
    open().frame(values(1))
    receiver.answers.push(() => {})
    const began = performance.now()
    const first = otlp.exportMetrics()
    await Promise.all([otlp.exportMetrics(), otlp.exportMetrics()])
    expect(count('metrics dropped')).toBe(4)
    await first
    expect(performance.now() - began).toBeLessThan(2000)
    expect(count('metrics failed')).toBe(2)
    await otlp.exportMetrics()
    expect(count('metrics delivered')).toBe(2)
    expect(logged.slice(1)).toEqual([
      '--otlp: metrics do not arrive: Request timed out',
      '--otlp: metrics arrive again'
    ])
  })

  it.each([
    [
      'answer',
      [2, 0],
      response => {
        response.writeHead(200)
        return setInterval(() => response.write('x'), 50)
      }
    ],
    [
      'head',
      [0, 2],
      ({ socket }) => {
        socket.write('HTTP/1.1 200 OK\r\n')
        return setInterval(() => socket.write('x: y\r\n'), 50)
      }
    ]
  ])('sends its %s slowly cannot extend the timeout', async (_, [delivered, failed], dripping) => {
    const { otlp, open, count } = rig()
    open().frame(values(1))
    let drip
    receiver.answers.push(response => {
      drip = dripping(response)
    })
    const began = performance.now()
    await otlp.exportMetrics()
    clearInterval(drip)
    expect(performance.now() - began).toBeLessThan(3000)
    expect([count('metrics delivered'), count('metrics failed')]).toEqual([delivered, failed])
    await otlp.exportMetrics()
    expect(count('metrics delivered')).toBe(delivered + 2)
  })

  it('accepts only a part is quoted in the log', async () => {
    const { otlp, open, count } = rig()
    open().frame(values(1))
    const { schema } = require('../support/otlp-receiver')
    const answer = schema.lookupType('otlp.MetricsAnswer')
    receiver.answers.push(response =>
      response
        .writeHead(200, { 'content-type': 'application/x-protobuf' })
        .end(
          answer
            .encode(answer.fromObject({ partialSuccess: { rejected: 3, errorMessage: 'too old' } }))
            .finish()
        )
    )
    await otlp.exportMetrics()
    expect([count('metrics rejected'), logged[1]]).toEqual([
      2,
      '--otlp: metrics do not arrive: 3 were rejected: too old'
    ])
  })
})

describe('the events', () => {
  /** A target with a known identity. */
  const target = (changes = {}) =>
    openSession(new Targets({ now: Date.now }), hello(changes)).target

  it('report suspected, confirmed and ended findings as named log records', async () => {
    const { otlp, count } = rig()
    const shop = target()
    for (const state of ['ok', 'suspected', 'confirmed', 'ok', 'unknown']) {
      otlp.changed(shop, verdict(state))
    }
    otlp.changed(shop, verdict('confirmed', { opportunity: true }))
    await otlp.exportEvents()
    const events = receiver.events()
    expect(
      events.map(({ eventName, severityText, severityNumber, attributes }) => [
        eventName,
        severityText,
        severityNumber,
        attributes['memwatch.verdict.was'],
        attributes['memwatch.verdict.state']
      ])
    ).toEqual([
      ['memwatch.verdict', 'INFO', 9, undefined, 'suspected'],
      ['memwatch.verdict', 'ERROR', 17, 'suspected', 'confirmed'],
      ['memwatch.verdict', 'INFO', 9, 'confirmed', 'ok']
    ])
    expect(events[1]).toMatchObject({
      body: 'It grows.',
      resource: { 'service.name': 'api', 'process.pid': 4711 },
      attributes: {
        'memwatch.diagnosis': 'js-heap-leak',
        'memwatch.verdict.fix': '--x',
        'memwatch.verdict.evidence': ['More is left.'],
        'memwatch.verdict.ruled_out': ['context-leak']
      }
    })
    expect(count('logs delivered')).toBe(3)
  })

  it('report deaths', async () => {
    const { otlp } = rig()
    // Fields of a death that an event has.
    const killed = {
      id: 'x',
      reason: 'oom_kill',
      sure: 'certain',
      text: 'The kernel killed it.',
      exitCode: null,
      signal: 'SIGKILL',
      suspects: null,
      verdict: { diagnosis: 'js-heap-leak', summary: '', fix: '--x' },
      diedAtUnixMs: Date.now() - 2000
    }
    otlp.died(target(), /** @type {Parameters<Otlp['died']>[1]} */ (/** @type {unknown} */ (killed)))
    await otlp.exportEvents()
    const [death] = receiver.events()
    expect(death).toMatchObject({
      eventName: 'memwatch.death',
      severityText: 'ERROR',
      body: 'The kernel killed it.',
      attributes: {
        'memwatch.death.reason': 'oom_kill',
        'memwatch.death.sure': 'certain',
        'memwatch.death.signal': 'SIGKILL',
        'memwatch.diagnosis': 'js-heap-leak'
      }
    })
    expect(death.attributes).not.toHaveProperty('process.exit.code')
  })

  it('report the end of a follow-up', async () => {
    const { otlp } = rig()
    const ended = {
      id: 'x',
      workload: 'shop',
      diagnosis: 'semi-space-starvation',
      title: 'New space too small',
      fix: 'Let semi-spaces grow',
      change: '--x',
      ending: 'helped_less',
      text: 'Helped, less than predicted.',
      effectRatio: 0.5
    }
    otlp.followed(
      target(), /** @type {Parameters<Otlp['followed']>[1]} */ (/** @type {unknown} */ (ended)))
    await otlp.exportEvents()
    expect(receiver.events()).toMatchObject([{
      eventName: 'memwatch.fix',
      severityText: 'WARN',
      body: 'Helped, less than predicted.',
      attributes: {
        'memwatch.fix.ending': 'helped_less',
        'memwatch.fix.effect': 0.5,
        'memwatch.diagnosis': 'semi-space-starvation',
        'memwatch.verdict.fix': '--x'
      }
    }])
  })

  it('wait in order for an unreachable receiver, at most the newest thousand', async () => {
    const { otlp, count } = rig()
    const shop = target()
    receiver.answers.push(500)
    for (let i = 0; i < 1100; i++) otlp.changed(shop, verdict(i % 2 ? 'confirmed' : 'suspected'))
    expect(count('logs dropped')).toBe(100)
    await otlp.exportEvents()
    expect(count('logs delivered')).toBe(0)
    receiver.received.length = 0
    await otlp.exportEvents()
    expect([count('logs delivered'), count('logs failed'), count('logs dropped')]).toEqual([
      1000, 0, 100
    ])
    const states = receiver.events().map(({ attributes }) => attributes['memwatch.verdict.state'])
    expect(states.slice(0, 3)).toEqual(['suspected', 'confirmed', 'suspected'])
  })

  it('are dropped if the receiver has no logs, like Prometheus', async () => {
    const { otlp, count } = rig()
    receiver.answers.push(404)
    otlp.changed(target(), verdict('confirmed'))
    await otlp.exportEvents()
    expect([count('logs failed'), logged[1]]).toEqual([
      1,
      '--otlp: logs do not arrive: it answered 404'
    ])
  })

  it('are not sent if OTEL_LOGS_EXPORTER is none', async () => {
    const { otlp, count } = rig({ OTEL_LOGS_EXPORTER: 'none' })
    otlp.changed(target(), verdict('confirmed'))
    await otlp.stop()
    expect([count('logs dropped'), receiver.events()]).toEqual([undefined, []])
  })
})

it('an exporter sends by itself, counts exports on /metrics, and sends the rest at its end', async () => {
  Object.assign(process.env, { OTEL_METRIC_EXPORT_INTERVAL: '1000' })
  const exporter = await startExporter({ otlp: receiver.url })
  const connection = await exporter.connect()
  connection.write(`${line(hello())}\n${line(values(1))}\n`)
  await eventually(
    () => receiver.of('api'),
    found => found.length > 1
  )
  expect(await exporter.metrics()).toMatch(
    /memwatch_exporter_otlp_exports_total\{signal="metrics",outcome="delivered"\} [1-9]/
  )
  connection.write(
    `${line(values(2, { rssBytes: 77 }))}\n${line({ type: 'bye', sequence: 3, atUnixMs: Date.now(), exitCode: 1 })}\n`
  )
  await eventually(
    () => exporter.exporter.targets,
    targets => targets.length === 0
  )
  await exporter.stop()
  expect(metricIn(receiver.of('api').at(-1), 'process.memory.usage').points[0].value).toBe(77)
  expect(receiver.events()).toMatchObject([
    {
      eventName: 'memwatch.death',
      attributes: { 'memwatch.death.reason': 'error', 'process.exit.code': 1 }
    }
  ])
})
