'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { Exporter } = require('../../exporter/exporter')
const { exporterMetrics } = require('../../exporter/catalog/exporter-metrics')
const { parts } = require('../../exporter/parts')
const { GuardedEmitter } = require('../../exporter/parts/guarded-emitter')
const { exporterConfig, startExporter, eventually } = require('../support/exporter')
const { hello, frame, line } = require('../support/frames')

/** A sink of the test: it counts frames by target. */
class CountingPart {
  name = 'counting'
  #counts = new Map()

  /** @returns {object} a field that the exporter does not have */
  get state () {
    return { counted: this.#counts }
  }

  /** @param {Exporter} exporter */
  start (exporter) {
    exporter.on('frame', ({ name }) => this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1))
  }
}

/** A sink that fails at each event, at once or later. */
class FailingPart {
  name = 'failing'

  start (exporter) {
    exporter.on('frame', () => { throw new Error('frame not handled') })
    exporter.on('verdict', async () => { throw new Error('verdict not handled') })
    exporter.on('end', () => { throw new Error('end not handled') })
  }
}

/**
 * A part that records its calls.
 * @param {string} name
 * @param {object} [changes]
 */
const notingPart = (name, notes, changes = {}) => class {
  constructor () {
    const note = what => { notes.push(`${name} ${what}`) }
    Object.assign(this, {
      name,
      start: () => note('start'),
      open: async () => { note('open'); return { [name]: 'address' } },
      drained: async () => note('drained'),
      stop: end => note(end ? `stop ${end}` : 'stop')
    }, changes)
  }
}

/** An agent that sends this many frames and says goodbye. */
async function report (exporter, count) {
  const agent = await exporter.connect()
  const frames = Array.from({ length: count }, (_, i) =>
    line(frame({ sequence: i + 1, uptimeSeconds: 1 + i })))
  const bye = line({ type: 'bye', sequence: count + 1, atUnixMs: 1, exitCode: 0 })
  agent.end([line(hello()), ...frames, bye].join('\n') + '\n')
  await once(agent.resume(), 'close')
  await exporter.exporter.drained()
}

it('a sink needs one file and one row to receive all frames and publish its state', async () => {
  const exporter = await startExporter({}, { parts: [...parts, CountingPart] })
  await report(exporter, 3)
  expect(exporter.exporter.state).toHaveProperty('counted', new Map([['api', 3]]))
  await exporter.stop()
})

it('a failing sink is counted, and others miss no event', async () => {
  const exporter = await startExporter({}, { parts: [FailingPart, ...parts, CountingPart] })
  const heard = { frame: 0, end: 0 }
  for (const event of Object.keys(heard)) exporter.exporter.on(event, () => { heard[event]++ })
  await report(exporter, 3)
  expect(exporter.exporter.state).toHaveProperty('counted', new Map([['api', 3]]))
  expect(heard).toEqual({ frame: 3, end: 1 })
  expect(exporter.exporter.state.frames).toBe(3)
  // Events: three frames, one end, and each verdict that changed in one or two evaluations.
  expect(exporter.exporter.state.listenerErrors).toBeGreaterThanOrEqual(4)
  expect(await exporter.metrics()).toMatch(/^memwatch_exporter_listener_errors_total [1-9]/m)
  await exporter.stop()
})

it('the first error or rejection of a listener is logged, and all are counted', async () => {
  const failures = []
  const emitter = new GuardedEmitter(({ message }, event) => failures.push([message, event]))
  const heard = []
  emitter.on('frame', () => { throw new Error('at once') })
  emitter.on('frame', async () => { throw new Error('later') })
  emitter.once('frame', count => heard.push(`once ${count}`))
  emitter.on('frame', (...counts) => heard.push(...counts))
  expect([emitter.emit('frame', 1, 2), emitter.emit('nothing')]).toEqual([true, false])
  await new Promise(setImmediate)
  emitter.emit('frame')
  await new Promise(setImmediate)
  expect(emitter.listenerErrors).toBe(4)
  emitter.removeAllListeners('frame')
  expect(emitter.emit('frame', 3)).toBe(false)
  expect(failures).toEqual([['at once', 'frame'], ['later', 'frame']])
  expect(heard).toEqual(['once 1', 1, 2])
})

describe('the order of parts', () => {
  /** The exporter passes the exit of a watched command on unchanged, so any value will do. */
  const END = /** @type {import('../../engine/recording/format').End} */ (/** @type {unknown} */ ('end'))
  const exporterOf = list => new Exporter(exporterConfig('/nowhere'), { parts: list })

  it('all start before the first one opens; they open and stop in reverse order', async () => {
    const notes = []
    const exporter = exporterOf([notingPart('a', notes), notingPart('b', notes)])
    expect(await exporter.start()).toEqual({ a: 'address', b: 'address' })
    expect(exporter.isReady).toBe(true)
    await exporter.drained()
    await exporter.stop(END)
    expect(exporter.isReady).toBe(false)
    await exporter.stop(END)
    expect(notes).toEqual([
      'a start', 'b start', 'b open', 'a open', 'a drained', 'b drained', 'b stop end', 'a stop end'
    ])
  })

  it('a part that fails to stop does not prevent the last save of another', async () => {
    const notes = []
    const stop = () => { throw new Error('stuck') }
    const exporter = exporterOf([notingPart('a', notes), notingPart('b', notes, { stop })])
    await exporter.start()
    await exporter.stop()
    expect(notes.at(-1)).toBe('a stop')
  })

  const busy = () => { throw Object.assign(new Error('address in use'), { code: 'EADDRINUSE' }) }
  it.each([
    ['start', 'b cannot start: address in use', ['a start', 'b stop', 'a stop']],
    ['open', 'cannot listen: address in use',
      ['a start', 'b start', 'c start', 'c open', 'c stop', 'b stop', 'a stop']]
  ])('all started parts stop after one fails to %s: %s', async (phase, message, expected) => {
    const notes = []
    const list = ['a', 'b', 'c'].map(name =>
      notingPart(name, notes, name === 'b' ? { [phase]: busy } : {}))
    const exporter = exporterOf(list)
    await expect(exporter.start()).rejects.toMatchObject({ message, code: 'EADDRINUSE' })
    expect(exporter.isReady).toBe(false)
    expect(notes).toEqual(expected)
  })

  const system = (code, rest) => Object.assign(new Error(`listen ${code}`), { code, ...rest })
  it.each([
    [
      'another process listens at 127.0.0.1:80; choose another port',
      system('EADDRINUSE', { address: '127.0.0.1', port: 80 })
    ],
    [
      '127.0.0.1:80 is not allowed for this user; choose a port above 1023',
      system('EACCES', { address: '127.0.0.1', port: 80 })
    ],
    [
      '192.0.2.1 is not an address of this machine',
      system('EADDRNOTAVAIL', { address: '192.0.2.1', port: 80 })
    ],
    ['listen EACCES', system('EACCES', { address: '/run/x.sock', port: -1 })]
  ])('the error of a part that cannot listen names the option: %s', async (reason, error) => {
    const open = () => { throw error }
    const part = class extends notingPart('a', [], { open }) { option = '--listen' }
    await expect(exporterOf([part]).start()).rejects.toMatchObject({
      message: `--listen: cannot listen: ${reason}`, code: error.code
    })
  })

  it('history is restored before agents reconnect, and HTTP works until the last save', () => {
    const names = parts.map(Part => new Part().name)
    const before = (first, second) => {
      expect(names.indexOf(first)).toBeGreaterThanOrEqual(0)
      expect(names.indexOf(first)).toBeLessThan(names.indexOf(second))
    }
    before('log', 'flight')
    before('captures', 'flight')
    before('flight', 'data folder')
    // A part that starts earlier stops later.
    before('http', 'flight')
    before('http', 'recording')
    for (const sink of ['webhook', 'recording', 'flight', 'otlp']) before(sink, 'judging')
    before('judging', 'agents')
    before('agents', 'deaths')
  })
})

it('a part that is not started has a state and can be stopped', async () => {
  for (const Part of parts) {
    const part = new Part()
    expect(() => part.state).not.toThrow()
    await part.drained?.()
    await part.stop?.()
  }
})

it('an exporter that is not started has a value for each metric', () => {
  const exporter = new Exporter(exporterConfig('/nowhere'))
  for (const { read } of exporterMetrics) expect(() => read(exporter.state)).not.toThrow()
})

it('each entry of the state is read by a metric', () => {
  const { state } = new Exporter(exporterConfig('/nowhere'))
  const read = new Set()
  const observed = new Proxy(state, {
    get (target, name) {
      read.add(name)
      return Reflect.get(target, name)
    }
  })
  for (const { read } of exporterMetrics) read(observed)
  expect(Object.keys(state).filter(name => !read.has(name))).toEqual([])
})

const webhook = 'http://127.0.0.1:9'
it.each([
  [{ record: '/proc/none/x' }, '--record: cannot write /proc/none/x'],
  [{ webhook, webhookSecretFile: '/proc/none/x' }, '--webhook-secret-file: ENOENT']
])('%j stops the exporter at start, and the message names the option', async (config, message) => {
  const exporter = new Exporter(exporterConfig('/nowhere', config))
  await expect(exporter.start()).rejects.toMatchObject({
    code: 'MEMWATCH_CONFIG', message: expect.stringContaining(message)
  })
})

it('an exporter whose HTTP address is in use leaves no socket open', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-taken-'))
  const taken = net.createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const socket = path.join(folder, 'exporter.sock')
  const listen = { host: '127.0.0.1', port: /** @type {import('node:net').AddressInfo} */ (taken.address()).port }
  const exporter = new Exporter(exporterConfig(socket, { listen }))
  await expect(exporter.start()).rejects.toMatchObject({ code: 'EADDRINUSE' })
  expect(fs.existsSync(socket)).toBe(false)
  taken.close()
  await eventually(() => exporter.state.connections, count => count === 0)
  fs.rmSync(folder, { recursive: true })
})
