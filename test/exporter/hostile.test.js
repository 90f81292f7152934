'use strict'

const { once } = require('node:events')
const { fuzzer } = require('../../bench/fuzz-input')
const { Targets } = require('../../engine/history/targets')
const { startExporter, eventually } = require('../support/exporter')
const { hello, frame, line, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { defined } = require('../support/defined')

let it_
beforeEach(async () => { it_ = await startExporter() })
afterEach(() => it_.stop())

const rejected = () =>
  [...it_.exporter.state.rejected.values()].reduce((sum, count) => sum + count, 0)
/** Frames of an honest agent arrive despite the others. */
async function good () {
  const connection = await it_.connect()
  connection.write(line(hello({ pid: 99, name: 'good' })) + '\n' + line(frame()) + '\n')
  const target = await eventually(
    () => it_.exporter.targets.find(({ name, frame }) => name === 'good' && frame),
    Boolean
  )
  let sequence = 1
  // A busy exporter reads one frame in five of a healthy target.
  return async () => {
    const before = defined(target.frame).sequence
    await eventually(() => {
      sequence++
      connection.write(line(frame({ sequence, uptimeSeconds: sequence })) + '\n')
      return defined(target.frame).sequence
    }, taken => taken > before)
  }
}

it.each([1, 2, 3])('10,000 mutated lines affect no other target, seed %i', async seed => {
  const stillWell = await good()
  const fuzz = fuzzer(seed)
  const keysBefore = Object.getOwnPropertyNames(Object.prototype).sort()
  for (let sent = 0; sent < 10_000;) {
    const connection = await it_.connect()
    const closed = new Promise(resolve => connection.once('close', resolve))
    connection.resume()
    const pid = 1 + fuzz.below(20)
    connection.write(line(hello({ pid, startedAtUnixMs: fuzz.below(1e6) })) + '\n')
    for (let i = 0; i < 100; i++, sent++) connection.write(fuzz.line(pid))
    connection.end()
    await closed
  }
  await stillWell()
  expect(rejected()).toBeGreaterThan(5000)
  expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(keysBefore)
  for (const path of ['/metrics', '/api/v1/targets', '/api/v1/diagnoses', '/api/v1/deaths']) {
    expect((await it_.get(path)).status).toBe(200)
  }
}, 60_000)

it('1,000 connections with half a line cost the documented memory, and are closed', async () => {
  const stillWell = await good()
  const connections = []
  // The kernel queues about five hundred connections.
  while (connections.length < 1000) {
    connections.push(...await Promise.all(Array.from({ length: 100 }, () => it_.connect())))
    await eventually(
      () => it_.exporter.state.connections,
      count => count === connections.length + 1
    )
  }
  const closed = Promise.all(
    connections.map(connection => new Promise(resolve => connection.once('close', resolve)))
  )
  const half = 'x'.repeat(30_000)
  for (const connection of connections) connection.resume().write(half)
  // The exporter holds 16 MiB of unfinished lines in total.
  await eventually(
    () => it_.exporter.state.rejected.get('too_much_unfinished') ?? 0,
    count => count > 400
  )
  expect(it_.exporter.state.connections).toBeLessThan(600)
  await stillWell()
  for (const connection of connections) connection.destroy()
  await closed
  await eventually(() => it_.exporter.state.connections, count => count === 1)
}, 60_000)

it('a flooding peer is limited, and the excess is counted', async () => {
  const connection = await it_.connect()
  const closed = once(connection, 'close').catch(() => {})
  const began = performance.now()
  connection.resume()
  connection.write(
    line(hello()) +
      '\n' +
      Array.from({ length: 1000 }, (_, i) =>
        line(frame({ sequence: i + 1, uptimeSeconds: i + 1 }))
      ).join('\n') +
      '\n'
  )
  await closed
  expect(it_.exporter.state.frames).toBeGreaterThanOrEqual(300)
  expect(it_.exporter.state.frames).toBeLessThanOrEqual(
    300 + (20 * (performance.now() - began)) / 1000
  )
  expect(it_.exporter.state.rejected.get('too_fast')).toBe(100)
})

it('names with quotes and backslashes are valid labels', async () => {
  const name = 'a"b c\\d{e="f"} 1'
  const connection = await it_.connect()
  connection.write(line(hello({ name })) + '\n' + line(frame()) + '\n')
  await eventually(() => it_.exporter.state.frames, frames => frames === 1)
  const text = await it_.metrics()
  expect(text).toContain('memwatch_target_up{target="a\\"b c\\\\d{e=\\"f\\"} 1",thread="main"} 1')
  expect(
    text
      .split('\n')
      .filter(
        line => line !== '' && !line.startsWith('#') && !/^[a-z_0-9]+(\{.*\})? \S+$/.test(line)
      )
  ).toEqual([])
  expect(
    (await it_.get(`/api/v1/targets/${encodeURIComponent(name)}/series?track=rssBytes`)).status
  ).toBe(200)
})

it('impossible numbers and names affect no other target', async () => {
  const stillWell = await good()
  const connection = await it_.connect()
  const values = {
    rssBytes: 1e308,
    residentBytes: { malloc_heap: 1e308, other: 1e308 },
    allocatorBytes: { heap_in_use: 1e308 }
  }
  connection.write(
    line(hello({ name: '\ud800' })) +
      '\n' +
      line(hello({ name: 'big' })) +
      '\n' +
      line(frame({ values })) +
      '\n' +
      line(frame({ sequence: 2 })) +
      '\n'
  )
  await eventually(
    () => it_.exporter.targets.find(({ name, frame }) => name === 'big' && frame),
    Boolean
  )
  await stillWell()
  for (const path of ['targets', 'diagnoses']) {
    const response = await it_.get(`/api/v1/${path}`)
    expect([response.status, (await response.json()).map(({ target }) => target).sort()]).toEqual([
      200,
      ['big', 'good']
    ])
  }
  expect([
    it_.exporter.state.rejected.get('invalid_hello'),
    it_.exporter.state.rejected.get('invalid_field')
  ]).toEqual([1, 1])
})

it('a forged pid adds no facts of that process to a death', async () => {
  const connection = await it_.connect()
  connection.write(
    line(hello({ pid: process.pid, startTimeTicks: 1 })) + '\n' + line(frame()) + '\n'
  )
  await eventually(
    () => it_.exporter.state.frames,
    frames => frames === 1
  )
  connection.destroy()
  const [death] = await eventually(
    async () => (await it_.get('/api/v1/deaths')).json(),
    deaths => deaths.length === 1
  )
  expect(death).toMatchObject({ reason: 'signal', sure: 'possible' })
})

it('apps whose clocks jump have the same history, as time is uptime', () => {
  const targets = new Targets({ now: Date.now })
  const session = openSession(targets, hello(), () => {})
  const clocks = [1e12, 2e12, 0, 1.7e12, 9e15]
  clocks.forEach((atUnixMs, i) =>
    expect(
      session.frame(
        frame({ sequence: i + 1, uptimeSeconds: i + 1, atUnixMs, values: { rssBytes: i * MIB } })
      )
    ).toBeUndefined()
  )
  expect(defined(targets.all[0].window()).points('rssBytes', 60).times).toEqual([1, 2, 3, 4, 5])
})

it('10,000 restarts of workers change neither memory nor series', async () => {
  const targets = new Targets({ now: Date.now })
  const session = openSession(targets, hello(), () => {})
  session.frame(frame())
  const heap = () => { globalThis.gc?.(); return process.memoryUsage().heapUsed }
  const churn = (from, to) => {
    for (let threadId = from; threadId <= to; threadId++) {
      const worker = openSession(targets, hello({ threadId, startedAtUnixMs: threadId }), () => {})
      worker.frame(frame({ values: { heapUsedBytes: MIB } }))
      if (threadId % 2) worker.bye({ exitCode: 0 })
      else worker.closed(false)
    }
  }
  churn(1, 1000)
  const before = heap()
  churn(1001, 10_000)
  expect(targets.all.length).toBeLessThan(4)
  if (globalThis.gc) expect(heap() - before).toBeLessThan(20 * MIB)
})
