'use strict'

const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch } = require('../support/memwatch')
const { ordered } = require('../../engine/history/history')
const { hello, frame, line, gcRow, MIB } = require('../support/frames')
const { defined } = require('../support/defined')

/** @type {Awaited<ReturnType<typeof startExporter>>} */
let it_
beforeEach(async () => { it_ = await startExporter() })
afterEach(() => it_.stop())

const json = async at => (await it_.get(`/api/v1/${at}`)).json()
/**
 * @param {object} who
 * @param {object[]} frames
 */
async function agent (who, frames) {
  const connection = await it_.connect()
  connection.write([hello(who), ...frames.map(frame)].map(message => line(message) + '\n').join(''))
  return connection
}
/**
 * @param {number} count
 * @param {(second: number) => object} [values]
 */
const seconds = (count, values = () => ({})) =>
  Array.from({ length: count }, (_, i) => ({
    sequence: i + 1,
    uptimeSeconds: i + 1,
    atUnixMs: 1_760_000_000_000 + 1000 * (i + 1),
    values: { rssBytes: (100 + i) * MIB, ...values(i) }
  }))

/**
 * Keys of an answer that are missing in its schema.
 * @param {any} schema
 * @param {any} value
 * @param {string} [at]
 * @returns {string[]}
 */
function undocumented (schema, value, at = '') {
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) {
    const found = variants.map(variant => undocumented(variant, value, at))
    return found.find(keys => keys.length === 0) ?? found[0]
  }
  if (Array.isArray(value)) {
    return schema.items ? value.flatMap(item => undocumented(schema.items, item, `${at}[]`)) : []
  }
  if (value === null || typeof value !== 'object') return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const known = schema.properties?.[key] ?? schema.additionalProperties
    if (known) return known === true ? [] : undocumented(known, inner, `${at}.${key}`)
    // A schema without properties does not describe its content.
    return schema.properties || known === false ? [`${at}.${key}`] : []
  })
}

it('an answer has exactly the keys of its description', async () => {
  await agent({ name: 'api' }, seconds(30, i => ({ heap: { used: i * MIB } })))
  await eventually(() => json('diagnoses'), rows => rows.length > 0)
  const { paths } = await json('openapi.json')
  const asked = Object.entries(paths).filter(
    ([route, { get }]) =>
      get?.responses[200].content?.['application/json']?.schema &&
      !/live|plan|:part|\{part\}/.test(route)
  )
  const found = []
  for (const [route, { get }] of asked) {
    const url = route.replace('{target}', 'api').replace(/\{[a-z]+\}/, 'none')
    const answer = await it_.get(url + (url.endsWith('/series') ? '?track=rssBytes' : ''))
    if (answer.status !== 200) continue
    const { schema } = get.responses[200].content['application/json']
    found.push([route, undocumented(schema, await answer.json())])
  }
  expect(found.length).toBeGreaterThan(4)
  expect(found.filter(([, keys]) => keys.length > 0)).toEqual([])
  expect(undocumented({ type: 'object', properties: { a: {} } }, { a: 1, b: 2 })).toEqual(['.b'])
})

describe('lists', () => {
  it('have pages with a stable order while items come and go', async () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const agents = []
    for (const [i, name] of names.entries()) {
      agents.push(await agent({ name, pid: 100 + i }, seconds(1)))
    }
    await eventually(() => json('targets'), targets => targets.length === 5)
    const first = await it_.get('/api/v1/targets?limit=2')
    const next = defined(/^<(.*)>; rel="next"$/.exec(String(first.headers.get('link'))))[1]
    expect((await first.json()).map(({ target }) => target)).toEqual(['a', 'b'])
    await agent({ name: 'aa', pid: 200 }, seconds(1))
    await eventually(() => json('targets'), targets => targets.length === 6)
    const second = await it_.get(next)
    expect((await second.json()).map(({ target }) => target)).toEqual(['c', 'd'])
    const third = await it_.get(defined(/^<(.*)>/.exec(String(second.headers.get('link'))))[1])
    expect([(await third.json()).map(({ target }) => target), third.headers.get('link')]).toEqual([
      ['e'],
      null
    ])
    expect((await json('diagnoses?target=b')).map(({ target }) => target)).toEqual(['b'])
    for (const connection of agents) connection.destroy()
  })
  it.each([
    'x',
    '!!',
    Buffer.from('{"a":1}').toString('base64url'),
    Buffer.from('[[1]]').toString('base64url')
  ])('refuse an unknown next page: %s', async after => {
    expect(await json(`deaths?after=${encodeURIComponent(after)}`)).toMatchObject({
      status: 404,
      code: 'unknown_page',
      detail: expect.stringContaining('after')
    })
  })
  it.each([0, 1001, 'x'])('refuse a limit of %s', async limit => {
    expect(await json(`captures?limit=${limit}`)).toMatchObject({
      status: 400,
      detail: expect.stringContaining('limit')
    })
  })
})

describe('series', () => {
  it('contain several tracks in the requested steps and time, with null for gaps', async () => {
    await agent(
      {},
      seconds(50, i => (i % 2 ? { gc: { 'minor/ordinary': gcRow(i, i / 1000) } } : {}))
    )
    const ask = query =>
      json(`targets/api/series?track=rssBytes&track=scavenges&track=sockets&${query}`)
    const fine = await eventually(
      () => ask('seconds=600'),
      ({ times }) => times.length === 50
    )
    expect(fine).toMatchObject({
      target: 'api',
      stepSeconds: 1,
      tracks: {
        rssBytes: { last: expect.arrayContaining([100 * MIB, 149 * MIB]) },
        scavenges: { last: expect.any(Array) }
      }
    })
    expect(fine.tracks.rssBytes.max).toBeUndefined()
    expect(fine.tracks.sockets.last.every(value => value === null)).toBe(true)
    expect([fine.tracks.scavenges.last[0], fine.tracks.scavenges.last.at(-1)]).toEqual([null, 49])
    const tens = await ask('seconds=3600')
    expect(tens).toMatchObject({
      stepSeconds: 10,
      tracks: { rssBytes: { min: expect.any(Array), max: expect.any(Array) } }
    })
    expect(tens.tracks.scavenges.max).toBeUndefined()
    expect(tens.times).toEqual([9, 19, 29, 39, 49])
    const earlier = await ask(`seconds=10&untilUnixMs=${1_760_000_000_000 + 20_000}`)
    expect(earlier.times).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
    expect(await ask('step=7')).toMatchObject({ code: 'bad_arguments' })
  })
  it('over days have steps of ten minutes that show spikes', async () => {
    await agent({}, seconds(1, () => ({ rssBytes: 100 })))
    const [{ flight }] = await eventually(
      () => it_.exporter.targets,
      targets => targets.length === 1
    )
    const row = new Float64Array(ordered.length).fill(NaN)
    for (let second = 10; second < 3 * 86_400; second += 10) {
      row[ordered.indexOf('rssBytes')] = second === 100_000 ? 900 : 100
      flight.append(second, row)
    }
    const { exporter } = it_
    exporter.targets[0].take(
      frame({ sequence: 9, uptimeSeconds: 3 * 86_400, values: { rssBytes: 100 } }),
      Date.now()
    )
    const { stepSeconds, times, tracks } = await json(
      `targets/api/series?track=rssBytes&seconds=${3 * 86_400}`
    )
    expect([stepSeconds, times.length]).toEqual([600, 432])
    expect([
      Math.max(...tracks.rssBytes.max),
      Math.min(...tracks.rssBytes.min),
      tracks.rssBytes.max.filter(bytes => bytes === 900).length
    ]).toEqual([900, 100, 1])
  })
})

describe('the event stream', () => {
  /** Server-sent events, in their order of arrival. */
  const listen = async () => {
    const response = await new Promise((resolve, reject) =>
      http.get(`${it_.url}/api/v1/live`, resolve).on('error', reject)
    )
    const events = []
    let rest = ''
    response.setEncoding('utf8').on('data', chunk => {
      const parts = (rest + chunk).split('\n\n')
      rest = parts.pop() ?? ''
      for (const part of parts) {
        events.push({
          event: defined(/^event: (.*)$/m.exec(part))[1],
          content: JSON.parse(defined(/^data: (.*)$/m.exec(part))[1])
        })
      }
    })
    return { response, events }
  }
  it('sends a row for each target, and deaths, at once', async () => {
    const { response, events } = await listen()
    expect(response.headers['content-type']).toBe('text/event-stream')
    const connection = await agent({ name: 'shop' }, seconds(3))
    await eventually(
      () => events,
      list =>
        list.some(({ event, content }) => event === 'targets' && content[0]?.target === 'shop')
    )
    expect(events.at(-1).content[0]).toMatchObject({
      target: 'shop',
      thread: 'main',
      rssBytes: 102 * MIB,
      up: true,
      silence: null,
      headline: { state: 'undecided' }
    })
    connection.end(
      line({ type: 'bye', sequence: 4, atUnixMs: 1_760_000_004_000, exitCode: 3 }) + '\n'
    )
    await eventually(
      () => events,
      list =>
        list.some(
          ({ event, content }) =>
            event === 'death' && content.target === 'shop' && content.exitCode === 3
        )
    )
    response.destroy()
  })
  it.each([
    ['hangs up', async () => ({ end: once((await listen()).response, 'close') })],
    ['keeps connections for later', async () => ({ end: (await it_.get('/api/v1/live')).text() })],
    ['reads nothing', async () => ({ end: undefined, unread: await it_.get('/api/v1/live') })]
  ])('ends with the exporter, which does not wait for a client that %s', async (_, look) => {
    const { end, unread } = await look()
    const began = performance.now()
    await it_.stop()
    await end
    // Without this header the server would hold an idle connection for twenty seconds.
    expect(performance.now() - began).toBeLessThan(10_000)
    await unread?.body.cancel()
    it_ = await startExporter()
  })
  it('is limited for one address, and other addresses still have their share', async () => {
    const from = localAddress =>
      new Promise((resolve, reject) =>
        http
          .get(`${it_.url}/api/v1/live`, { localAddress, agent: false }, resolve)
          .on('error', reject)
      )
    const all = await Promise.all(Array.from({ length: 8 }, () => from('127.0.0.1')))
    expect(await json('live')).toMatchObject({
      status: 503,
      code: 'too_many_viewers',
      detail: expect.stringContaining('from your address')
    })
    for (const address of ['127.0.0.2', '127.0.0.3', '127.0.0.4']) {
      all.push(...(await Promise.all(Array.from({ length: 8 }, () => from(address)))))
    }
    expect(all.map(({ statusCode }) => statusCode)).toEqual(all.map(() => 200))
    expect((await from('127.0.0.5')).statusCode).toBe(503)
    all[0].destroy()
    await eventually(
      async () => {
        const response = await from('127.0.0.1')
        response.destroy()
        return response.statusCode
      },
      status => status === 200
    )
    for (const response of all) response.destroy()
  })
})

describe('a target that cannot be serialized', () => {
  /**
   * Creates a healthy app, and an app whose newest frame fits no schema; ingest would refuse such a
   * frame.
   */
  async function oneThatIsBroken () {
    for (const [i, name] of ['shop', 'broken'].entries()) {
      await agent({ name, pid: 100 + i }, seconds(2))
    }
    const targets = await eventually(
      () => it_.exporter.targets,
      found => found.length === 2 && found.every(({ frame }) => frame?.sequence === 2)
    )
    return defined(targets.find(({ name }) => name === 'broken'))
  }

  it('is omitted and counted, and the others are in the answer', async () => {
    const broken = await oneThatIsBroken()
    // The contract does not allow this number, and JSON cannot represent it.
    Object.assign(broken.hello, { pid: 101n })
    for (const list of ['targets', 'diagnoses']) {
      expect((await json(list)).map(({ target }) => target)).toEqual(['shop'])
    }
    expect(await json('targets?target=broken')).toEqual([])
    expect(it_.exporter.state.targetsOmitted).toBe(1)
    expect(await it_.metrics()).toContain('memwatch_exporter_targets_omitted_total 1')
  })
  it('does not affect page, top and fix for other targets', async () => {
    const broken = await oneThatIsBroken()
    Object.defineProperty(broken.values, 'rssBytes', {
      enumerable: true,
      get () {
        throw new Error('it cannot be read')
      }
    })
    const response = await new Promise((resolve, reject) =>
      http.get(`${it_.url}/api/v1/live`, resolve).on('error', reject)
    )
    const [first] = await once(response, 'data')
    expect(
      JSON.parse(/^data: (.*)$/m.exec(String(first))?.[1] ?? '').map(({ target }) => target)
    ).toEqual(['shop'])
    response.destroy()
    const top = await memwatch(['top', '--once', '--url', it_.url])
    expect([top.code, top.stdout]).toEqual([0, expect.stringContaining('shop')])
    const fix = await memwatch(['fix', 'shop', '--format', 'node-options', '--url', it_.url])
    expect([fix.code, fix.stderr]).toEqual([
      1,
      expect.stringContaining('shop has no finding')
    ])
  })
})

it('a downloaded recording is judged like any other, also with older agents', async () => {
  const frames = seconds(30, i => ({
    heapUsedBytes: 50 * MIB,
    heapSizeLimitBytes: 259 * MIB,
    containerUsageBytes: 120 * MIB,
    containerLimitBytes: 512 * MIB
  }))
  const connection = await agent(
    { name: 'shop' },
    frames.slice(0, 20).map(({ values, ...rest }, i) => ({
      ...rest,
      values: i === 0 ? values : { rssBytes: values.rssBytes }
    }))
  )
  await eventually(
    () => json('targets'),
    ([target]) => target?.uptimeSeconds === 20
  )
  const response = await new Promise((resolve, reject) =>
    http
      .request(`${it_.url}/api/v1/recording?seconds=1`, { method: 'POST' }, resolve)
      .on('error', reject)
      .end()
  )
  let text = ''
  response.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  for (const one of frames.slice(20)) {
    connection.write(line(frame({ ...one, values: { rssBytes: one.values.rssBytes } })) + '\n')
  }
  await once(response, 'end')
  const file = path.join(
    fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-recording-')),
    'shop.recording'
  )
  fs.writeFileSync(file, text)
  const { code, stdout } = await memwatch(['diagnose', file, '--json'])
  const [target] = JSON.parse(stdout).targets
  expect([code, target.target, target.verdicts.length]).toEqual([
    0,
    'shop',
    (await json('diagnoses'))[0].verdicts.length
  ])
  // The recording also contains messages from before its start.
  expect(text).toContain('containerLimitBytes')
  expect(
    await (await fetch(`${it_.url}/api/v1/recording?target=nobody`, { method: 'POST' })).json()
  ).toMatchObject({ code: 'unknown_target' })
  fs.rmSync(path.dirname(file), { recursive: true })
  connection.destroy()
})

describe('files of the page', () => {
  it('are compressed, have a strict policy, and are not sent again while unchanged', async () => {
    const page = await it_.get('/', { accept: 'text/html,*/*' })
    expect([page.headers.get('content-type'), page.headers.get('content-encoding')]).toEqual([
      'text/html; charset=utf-8',
      'gzip'
    ])
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(
      (
        await it_.get('/page/page.js', {
          'if-none-match': (await it_.get('/page/page.js')).headers.get('etag')
        })
      ).status
    ).toBe(304)
    expect(await (await it_.get('/')).text()).toContain('/api/v1/diagnoses')
    for (const name of ['..%2fpackage.json', 'tsconfig.json', 'constructor', '__proto__']) {
      expect((await it_.get(`/page/${name}`)).status).toBe(404)
    }
  })
})
