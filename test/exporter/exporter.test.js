'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { diagnoses } = require('../../engine/diagnoses')
const { once } = require('node:events')
const { Exporter } = require('../../exporter/exporter')
const { startExporter, eventually } = require('../support/exporter')
const { hello, frame, line, gcRow, MIB } = require('../support/frames')

describe('exporter', () => {
  let it_
  beforeEach(async () => { it_ = await startExporter() })
  afterEach(() => it_.stop())

  const rejected = reason => it_.exporter.state.rejected.get(reason) ?? 0
  /** Frames of another agent arrive despite the first connection. */
  async function expectOthersUnaffected () {
    const before = it_.exporter.state.frames
    const other = await it_.connect()
    other.write(line(hello({ pid: 99, name: 'other' })) + '\n' + line(frame()) + '\n')
    await eventually(() => it_.exporter.state.frames, frames => frames === before + 1)
    other.destroy()
  }

  describe('bad input is counted by reason and affects no other target', () => {
    it.each([
      ['garbage', 'not_json', '\x00\xff{{{\n'],
      ['another version', 'wrong_version', '{"v":99,"type":"hello"}\n'],
      ['a frame before the hello', 'hello_missing', line(frame()) + '\n'],
      ['a second hello', 'hello_repeated', line(hello()) + '\n' + line(hello()) + '\n'],
      ['a line of 10 MB', 'line_too_long', 'x'.repeat(10 * MIB) + '\n'],
      ['10 MB without a newline', 'line_too_long', 'x'.repeat(10 * MIB)],
      [
        'a field of the wrong shape',
        'invalid_field',
        line(hello()) + '\n' + line(frame({ values: { rssBytes: 'much' } })) + '\n'
      ]
    ])('%s: %s', async (_, reason, bytes) => {
      const connection = await it_.connect()
      connection.write(bytes)
      await eventually(
        () => rejected(reason),
        count => count === 1
      )
      await expectOthersUnaffected()
      expect(await it_.metrics()).toContain(
        `memwatch_exporter_lines_rejected_total{reason="${reason}"} 1`
      )
      connection.destroy()
    })
    it('half a frame before the connection is closed leaves nothing behind', async () => {
      const connection = await it_.connect()
      connection.end(line(hello()).slice(0, 40))
      await eventually(() => it_.exporter.state.connections, count => count === 0)
      expect(it_.exporter.targets).toEqual([])
      await expectOthersUnaffected()
    })
    it('the exporter closes the connection of a peer that sends only garbage', async () => {
      const connection = await it_.connect()
      connection.write('x\n'.repeat(1000))
      await once(connection, 'close')
      expect(rejected('not_json')).toBe(100)
    })
    it('500 silent connections cost little, and the next one is served', async () => {
      const before = process.memoryUsage().rss
      const connections = await Promise.all(Array.from({ length: 500 }, () => it_.connect()))
      await expectOthersUnaffected()
      expect(process.memoryUsage().rss - before).toBeLessThan(100 * MIB)
      for (const connection of connections) connection.destroy()
      await eventually(() => it_.exporter.state.connections, count => count === 0)
    })
  })

  it('every diagnosis is exposed as not confirmed from the first frame on', async () => {
    const connection = await it_.connect()
    connection.write(line(hello()) + '\n' + line(frame()) + '\n')
    await eventually(() => it_.exporter.state.frames, frames => frames === 1)
    const text = await it_.metrics()
    for (const { id } of diagnoses) {
      expect(text).toContain(
        `memwatch_diagnosis{diagnosis="${id}",state="confirmed",target="api",thread="main"} 0`
      )
    }
    expect(text).not.toContain('state="suspected"')
  })

  it('a target disappears from all metrics except counters after its bye', async () => {
    const connection = await it_.connect()
    connection.write(line(hello()) + '\n' + line(frame()) + '\n')
    await eventually(
      () => it_.metrics(),
      text => text.includes('target="api"')
    )
    connection.write(line({ type: 'bye', sequence: 2, atUnixMs: 1, exitCode: 0 }) + '\n')
    const text = await eventually(
      () => it_.metrics(),
      text => !text.includes('memwatch_target_up')
    )
    const left = new Set(
      text
        .split('\n')
        .filter(line => line.includes('target="api"'))
        .map(line => line.split('{')[0])
    )
    expect([...left]).toEqual([
      'memwatch_target_exits_total',
      'memwatch_target_last_exit_timestamp_seconds'
    ])
    expect(text).toContain(
      'memwatch_target_exits_total{target="api",thread="main",reason="clean"} 1'
    )
  })

  it('a target without a bye stays in the metrics, as down', async () => {
    const connection = await it_.connect()
    connection.write(line(hello()) + '\n' + line(frame()) + '\n')
    await eventually(
      () => it_.metrics(),
      text => text.includes('memwatch_target_up{target="api",thread="main"} 1')
    )
    connection.destroy()
    await eventually(
      () => it_.metrics(),
      text => text.includes('memwatch_target_up{target="api",thread="main"} 0')
    )
  })

  it('serves prom-client’s names, and escapes quotes and backslashes in labels', async () => {
    const connection = await it_.connect()
    connection.write(
      line(hello({ name: 'a"b\\c' })) +
        '\n' +
        line(
          frame({
            values: {
              rssBytes: 50 * MIB,
              heapUsedBytes: 5 * MIB,
              gc: {
                'minor/ordinary': gcRow(10, 0.05),
                'major/ordinary': gcRow(1, 0.01),
                'major/external': gcRow(2, 0.02)
              },
              spaces: { new_space: [1, 2, 3, 4], some_new_space_of_tomorrow: [1, 2, 3, 4] }
            }
          })
        ) +
        '\n'
    )
    const text = await eventually(
      () => it_.metrics(),
      text => text.includes('target=')
    )
    expect(text).toContain(
      'process_resident_memory_bytes{target="a\\"b\\\\c",thread="main"} 52428800'
    )
    expect(text).toContain('space="some_new_space_of_tomorrow"')
    expect(text).toMatch(/nodejs_gc_duration_seconds_count\{kind="major",.*\} 3/)
    expect(text).toMatch(/memwatch_gc_pause_seconds_count\{kind="major",cause="external",.*\} 2/)
  })

  it('serves OpenMetrics on request', async () => {
    const response = await it_.get('/metrics', {
      accept: 'application/openmetrics-text; version=1.0.0'
    })
    expect(response.headers.get('content-type')).toContain('application/openmetrics-text')
    expect(await response.text()).toMatch(/# EOF\n$/)
  })

  it('answers health, readiness, targets and diagnoses', async () => {
    const connection = await it_.connect()
    connection.write(line(hello()) + '\n' + line(frame()) + '\n')
    await eventually(() => it_.exporter.state.frames, frames => frames === 1)
    expect((await it_.get('/-/healthy')).status).toBe(200)
    expect((await it_.get('/-/ready')).status).toBe(200)
    expect(await (await it_.get('/api/v1/targets')).json()).toMatchObject([
      { target: 'api', thread: 'main', pid: 4711, up: true, values: { rssBytes: 50 * MIB } }
    ])
    const [found] = await (await it_.get('/api/v1/diagnoses')).json()
    expect(found).toMatchObject({ target: 'api', primary: null })
    expect(found.verdicts.map(({ state }) => state)).toEqual(diagnoses.map(() => 'unknown'))
    expect((await it_.get('/nothing')).status).toBe(404)
  })

  it.each([
    ['nothing for an older agent without the field', {}, { gcCounter: null, gcHooksMissing: null }],
    ['hooks', { gcCounter: 'hooks' }, { gcCounter: 'hooks', gcHooksMissing: null }],
    [
      'an observer, and why',
      { gcCounter: 'observer', gcHooksMissing: 'no_addon' },
      { gcCounter: 'observer', gcHooksMissing: 'no_addon' }
    ],
    [
      'nothing for an invalid word',
      { gcCounter: 'observer', gcHooksMissing: 'why\nnot' },
      undefined
    ]
  ])('exposes the counter of a target’s GCs: %s', async (_, said, told) => {
    const connection = await it_.connect()
    connection.write(line(hello(said)) + '\n' + line(frame()) + '\n')
    await eventually(() => {
      const { frames, rejected } = it_.exporter.state
      return frames + (rejected.get('invalid_hello') ?? 0)
    }, Boolean)
    const found = await (await it_.get('/api/v1/targets')).json()
    expect(found).toMatchObject(told ? [told] : [])
    expect(found).toHaveLength(told ? 1 : 0)
  })
})

it('without compat the exporter serves only memwatch’s names', async () => {
  const it_ = await startExporter({ compat: false })
  const connection = await it_.connect()
  connection.write(line(hello()) + '\n' + line(frame()) + '\n')
  const text = await eventually(() => it_.metrics(), text => text.includes('target="api"'))
  expect(text.match(/^(?!#|memwatch_).+/gm)).toBeNull()
  await it_.stop()
})

describe('the socket', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-socket-'))
  const config = file => ({
    listen: { host: '127.0.0.1', port: 0 },
    socket: { path: path.join(folder, file) },
    compat: true,
    maxTargets: 1,
    logLevel: 'silent'
  })
  afterAll(() => fs.rmSync(folder, { recursive: true }))

  it('of a killed exporter is taken over', async () => {
    const { path: file } = config('stale.sock').socket
    const { spawnSync } = require('node:child_process')
    // A process that listens and is killed, so its socket file stays.
    spawnSync(process.execPath, [
      '-e',
      `require('net').createServer().listen(${JSON.stringify(file)}, () => ` +
        'process.kill(process.pid, \'SIGKILL\'))'
    ])
    expect(fs.existsSync(file)).toBe(true)
    const exporter = new Exporter(config('stale.sock'))
    await exporter.start()
    await exporter.stop()
    expect(fs.existsSync(file)).toBe(false)
  })
  it('of a living exporter is not taken over', async () => {
    const first = new Exporter(config('live.sock'))
    await first.start()
    await expect(new Exporter(config('live.sock')).start()).rejects.toMatchObject({
      code: 'EADDRINUSE'
    })
    await first.stop()
  })
  it('never replaces a file that is not a socket', async () => {
    fs.writeFileSync(path.join(folder, 'precious'), 'data')
    await expect(new Exporter(config('precious')).start()).rejects.toMatchObject({ code: 'EEXIST' })
    expect(fs.readFileSync(path.join(folder, 'precious'), 'utf8')).toBe('data')
  })
  it('may be a loopback TCP port', async () => {
    const it_ = await startExporter({ socket: { host: '127.0.0.1', port: 0 } })
    expect(it_.socket.port).toBeGreaterThan(0)
    const connection = await it_.connect()
    expect(connection).toBeInstanceOf(net.Socket)
    await it_.stop()
  })
})
