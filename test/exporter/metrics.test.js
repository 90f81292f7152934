'use strict'

const path = require('node:path')
const { findCase } = require('../../engine/verdicts/case')
const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { createMetrics } = require('../../exporter/expose/metrics')
const { replayFile } = require('../../cli/sources/replay-file')
const { Targets } = require('../../engine/history/targets')
const { figures, signalsOf } = require('../../engine/signals')
const { exporterState } = require('../support/exporter-state')
const { hello, frame, gcRow, MIB } = require('../support/frames')
const { promClientText } = require('../support/prom-client-text')
const { openSession } = require('../support/open-session')

const COUNT = 37
const NOW_UNIX_MS = 1e12
const FORMATS = ['', 'application/openmetrics-text']
/** A name that must be escaped. */
const hostileName = i => `app "${i}" é€😀 \\ \n} 1`

/**
 * More targets than the exporter renders at a time: every third has GCs, every fifth has a frame.
 */
function unlikeTargets () {
  const targets = new Targets({ now: Date.now })
  targets.on('frame', target => evaluate(target))
  for (let i = 0; i < COUNT; i++) {
    const session = openSession(targets, hello({ name: hostileName(i), pid: 100 + i }))
    if (i % 5 === 4) continue
    for (let n = 1; n <= 5; n++) {
      const gc = i % 3 === 0 && { gc: { 'minor/ordinary': gcRow(n, n / 1000) } }
      const values = { rssBytes: (100 + i) * MIB, ...gc }
      session.frame(frame({ sequence: n, uptimeSeconds: n, values }))
    }
  }
  return targets.all
}

/**
 * @param {import('../../engine/history/target').Target[]} targets
 * @param {object} [state] changes of the exporter's state
 */
function metricsOf (targets, state) {
  const source = { targets: () => targets, state: () => exporterState(state) }
  const metrics = createMetrics({ ...source, compat: true, now: () => NOW_UNIX_MS })
  return async (/** @type {string} */ accept) => {
    const { parts, length } = await metrics.text(accept)
    const body = Buffer.concat(parts)
    expect(body.length).toBe(length)
    return body.toString()
  }
}

/** The exporter's own numbers change between two scrapes. @param {string} body */
const withoutMoving = body =>
  body.replace(/^(memwatch_exporter_\w+(?:\{.*\})?) \S+$/gm, '$1 moving')

/**
 * The same metrics, printed by prom-client.
 * @param {import('../../engine/history/target').Target[]} targets
 * @param {object} state changes of the exporter's
 * @param {boolean} isOpenMetrics
 */
function oracle (targets, state, isOpenMetrics) {
  const moments = targets.filter(target => target.frame).map(target => {
    const window = /** @type {import('../../engine/history/window').Window} */ (target.window())
    const signals = signalsOf(window)
    const context = { nowUnixMs: NOW_UNIX_MS, window, signal: name => figures[name].read(signals) }
    return { target, context, shared: { target: target.name, thread: target.thread } }
  })
  const ofTargets = [...targetMetrics, ...compatMetrics].map(row => {
    const readings = moments.map(({ target, context, shared }) =>
      ({ reading: row.read(target, context), shared }))
    return { row, readings }
  })
  const ofExporter = exporterMetrics.map(row =>
    ({ row, readings: [{ reading: row.read(exporterState(state)) }] }))
  return promClientText([...ofTargets, ...ofExporter], isOpenMetrics)
}

it('the saving in cores is the predicted drop of the share of time in GC pauses', async () => {
  const { targets } = await replayFile(
    path.join(__dirname, '../recordings/20-semi-space-starvation-broken.ndjson.gz')
  )
  const body = await metricsOf(targets)('')
  const [{ from, to }] = targets.flatMap(target => findCase(target).verdicts)
    .filter(({ diagnosis }) => diagnosis === 'semi-space-starvation')
    .flatMap(({ fix }) => fix[0].predicted.filter(({ signal }) => signal === 'gcPauseRatio'))
  const [, labels, value] = /^memwatch_verdict_saving_cores\{(.*)\} (.*)$/m.exec(body) ?? []
  expect(labels).toContain('diagnosis="semi-space-starvation"')
  expect(Number(value)).toBeCloseTo(from - to, 10)
  expect(Number(value)).toBeGreaterThan(0)
})

it('the identity has name and version of the app, which may differ from the name of the target', async () => {
  const targets = new Targets({ now: Date.now })
  for (const [pid, appVersion] of [[1, '4.2.0'], [2, '4.3.0'], [3, undefined]]) {
    openSession(targets, hello({ pid, appVersion })).frame(frame())
  }
  const infos = (await metricsOf(targets.all)('')).match(/^memwatch_target_info\{.*/gm) ?? []
  expect(infos.map(line => ['target', 'service_name', 'service_version'].map(name =>
    new RegExp(`\\b${name}="([^"]*)"`).exec(line)?.[1]))).toEqual([
    ['api', 'api', '4.2.0'], ['api-2', 'api', '4.3.0'], ['api-3', 'api', '']
  ])
})

describe.each(FORMATS)('/metrics in the format %j', accept => {
  it.each([
    '20-semi-space-starvation-broken', '20-allocator-fragmentation-broken',
    '20-heap-limit-thrash-worker-broken', '20-healthy-steady-broken'
  ])('has the text of prom-client for the recording %s', async name => {
    const { targets } = await replayFile(path.join(__dirname, `../recordings/${name}.ndjson.gz`))
    const body = await metricsOf(targets)(accept)
    expect(withoutMoving(body)).toBe(withoutMoving(await oracle(targets, {}, accept !== '')))
    const confirmed = targets.flatMap(target => findCase(target).verdicts)
      .filter(({ state }) => state === 'confirmed')
    expect(body.match(/^memwatch_verdict_info\{/gm) ?? []).toHaveLength(confirmed.length)
  })

  it('has the text of prom-client for hostile names and unlike targets', async () => {
    const targets = unlikeTargets()
    const state = {
      rejected: new Map([['too_long', 3]]),
      version: '1"\\\n',
      otlp: new Map([['metrics delivered', 2]])
    }
    const body = await metricsOf(targets, state)(accept)
    expect(withoutMoving(body)).toBe(withoutMoving(await oracle(targets, state, accept !== '')))
  })

  it('groups the lines of a metric, in the order of the targets', async () => {
    const targets = unlikeTargets()
    const body = await metricsOf(targets)(accept)
    expect(body.endsWith(accept ? '\n# EOF\n' : '\n')).toBe(true)
    expect(body).not.toMatch(accept ? /\n\n/ : /\n\n\n|\n\n$/)

    const blocks = body.replace(/# EOF\n$/, '').split(/^(?=# HELP )/m)
    const names = blocks.map(block => /^# HELP (\S+) .*\n# TYPE \1 \w+\n/.exec(block)?.[1])
    expect(names).not.toContain(undefined)
    expect(new Set(names).size).toBe(names.length)
    for (const [i, block] of blocks.entries()) {
      const lines = block.trimEnd().split('\n').slice(2)
      expect(lines.length).toBeGreaterThan(0)
      expect(lines.filter(line => !line.startsWith(/** @type {string} */ (names[i])))).toEqual([])
      const order = lines.map(line => /target="app \\"(\d+)\\" é€😀/.exec(line)?.[1])
        .filter(Boolean).map(Number)
      expect(order).toEqual([...order].sort((a, b) => a - b))
    }
    const up = blocks.find(block => block.startsWith('# HELP memwatch_target_up '))
    expect(up?.match(/^memwatch_target_up/gm))
      .toHaveLength(targets.filter(target => target.frame).length)
  })
})

it('simultaneous scrapes in two formats do not mix', async () => {
  const read = metricsOf(unlikeTargets())
  // From the second scrape on, the text contains the duration of the previous one.
  await read('')
  const alone = [withoutMoving(await read(FORMATS[0])), withoutMoving(await read(FORMATS[1]))]
  expect((await Promise.all(FORMATS.map(read))).map(withoutMoving)).toEqual(alone)
  expect(alone[0]).not.toBe(alone[1])
})

it('other work runs during a scrape, and the numbers of a target are of one moment', async () => {
  const targets = new Targets({ now: Date.now })
  const sessions = Array.from({ length: 300 }, (_, i) =>
    openSession(targets, hello({ name: `app-${i}`, pid: 100 + i })))
  let turns = 0
  const takeFrames = () => {
    turns++
    const values = { rssBytes: turns * MIB }
    for (const session of sessions) {
      session.frame(frame({ sequence: turns, uptimeSeconds: turns, values }))
    }
  }
  takeFrames()
  // Each look at the clock takes a millisecond, so a fast machine needs several turns as well.
  let elapsedMs = 0
  const clock = jest.spyOn(performance, 'now').mockImplementation(() => elapsedMs++)
  const scrape = metricsOf(targets.all)('')
  let isScraping = true
  const others = () => {
    if (!isScraping) return
    takeFrames()
    setImmediate(others)
  }
  setImmediate(others)
  const body = await scrape
  isScraping = false
  clock.mockRestore()

  /** @param {string} name */
  const seen = name =>
    [...body.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))].map(([, value]) => value)
  const [ours, plain] = ['memwatch_rss_bytes', 'process_resident_memory_bytes'].map(seen)
  expect(ours).toHaveLength(sessions.length)
  expect(new Set(ours).size).toBeGreaterThan(1)
  expect(ours).toEqual(plain)
})
