'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { spawnSync } = require('node:child_process')
const { gzipSync, gunzipSync } = require('node:zlib')
const { findCase } = require('../../engine/verdicts/case')
const { Exporter } = require('../../exporter/exporter')
const { Recorder } = require('../../exporter/recording/recorder')
const { replayFile } = require('../../cli/sources/replay-file')
const { eventually } = require('../support/exporter')
const { hello, frame, line } = require('../support/frames')
const { MEMWATCH } = require('../support/memwatch')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-recording-test-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

/**
 * @param {string} name
 * @param {string} text
 */
function write (name, text) {
  const file = path.join(folder, name)
  fs.writeFileSync(file, name.endsWith('.gz') ? gzipSync(text) : text)
  return file
}
const HEADER = '{"memwatch":"recording","version":1}\n'

/**
 * @param {number} frames
 * @param {string} name
 */
async function recorded (frames, name) {
  const file = path.join(folder, name)
  const recorder = new Recorder(file, { command: ['node', 'app.js'] })
  const session = recorder.session(line(hello()))
  for (let i = 1; i <= frames; i++) session.line(line(frame({ sequence: i, uptimeSeconds: i })))
  session.closed()
  await recorder.stop({ durationSeconds: frames, exit: { code: 3, signal: null } })
  return file
}

describe('a recording', () => {
  it.each(['plain.ndjson', 'packed.ndjson.gz'])(
    '%s contains all frames, the command and its end',
    async name => {
      const { header, end, frames, rejected, cut, targets } =
        await replayFile(await recorded(20, name))
      expect({ command: header.command, end, frames, rejected, cut }).toEqual({
        command: ['node', 'app.js'],
        end: { durationSeconds: 20, exit: { code: 3, signal: null } },
        frames: 20,
        rejected: 0,
        cut: false
      })
      expect(targets).toHaveLength(1)
      expect(findCase(targets[0]).verdicts.length).toBeGreaterThan(0)
    }
  )
  it.each(['late.ndjson', 'late.ndjson.gz'])(
    '%s ends while a connection still closes, and is whole',
    async name => {
      const file = path.join(folder, name)
      const recorder = new Recorder(file)
      const session = recorder.session(line(hello()))
      session.line(line(frame({ sequence: 1, uptimeSeconds: 1 })))
      const stopped = recorder.stop()
      session.closed()
      await stopped
      expect(recorder.failed).toBeUndefined()
      expect(await replayFile(file)).toMatchObject({ frames: 1, rejected: 0, cut: false })
    }
  )
  it('that is incomplete is judged up to its end', async () => {
    const whole = fs.readFileSync(await recorded(300, 'whole.ndjson.gz'))
    const file = path.join(folder, 'cut.ndjson.gz')
    fs.writeFileSync(file, whole.subarray(0, whole.length - 20))
    const { cut, frames } = await replayFile(file)
    expect(cut).toBe(true)
    expect(frames).toBeGreaterThan(100)
    const plain = write('cut.ndjson', gunzipSync(whole).toString().slice(0, -30))
    expect((await replayFile(plain)).cut).toBe(true)
  })
  it('is recognized under any file name', async () => {
    const file = path.join(folder, 'plain.gz')
    fs.copyFileSync(await recorded(20, 'plain-before.ndjson'), file)
    expect((await replayFile(file)).frames).toBe(20)
  })
  it('counts invalid lines and accepts the others', async () => {
    const taken = line(frame({ sequence: 1, uptimeSeconds: 1 }))
    const file = write(
      'damaged.ndjson',
      `${HEADER}{"session":1,"line":${line(hello())}}\nnonsense\n{"session":1,"line":${taken}}\n{"session":9,"line":${taken}}\n{"session":1,"line":{"v":1,"type":"frame"}}\n`
    )
    const { frames, rejected } = await replayFile(file)
    expect({ frames, rejected }).toEqual({ frames: 1, rejected: 3 })
  })
})

describe('an untrusted recording', () => {
  it('yields command and end as plain texts', async () => {
    const file = write(
      'escapes.ndjson',
      `${line({ memwatch: 'recording', version: 1, command: ['node\u001b[2J', 5] })}\n{"end":{"durationSeconds":1,"exit":{"code":0,"signal":null,"junk":1},"junk":[]}}\n`
    )
    const { header, end } = await replayFile(file)
    expect({ header, end }).toEqual({
      header: { memwatch: 'recording', version: 1, command: ['node\ufffd[2J', '5'] },
      end: { durationSeconds: 1, exit: { code: 0, signal: null } }
    })
  })
  it.each(['"command":5', '"command":{"map":1}'])('with %s is still read', async command => {
    expect(
      (await replayFile(write('command.ndjson', `{"memwatch":"recording","version":1,${command}}\n`)))
        .header.command
    ).toBeUndefined()
  })
  it.each([
    { durationSeconds: '\u001b[2J', exit: { code: 0, signal: null } },
    { durationSeconds: 1 },
    { durationSeconds: 1, exit: { code: 0, signal: '\u001b[2J' } },
    5
  ])('has an unknown end if its end is %j', async end => {
    const { end: read, rejected } = await replayFile(
      write('end.ndjson', HEADER + JSON.stringify({ end }) + '\n')
    )
    expect([read, rejected]).toEqual([undefined, 1])
  })
  it('yields its version as plain text', async () => {
    await expect(
      replayFile(write('version.ndjson', line({ memwatch: 'recording', version: '\u001b[2J' }) + '\n'))
    ).rejects.toThrow('version \ufffd[2J')
  })
})

describe('an exporter that records', () => {
  /** @param {string} record */
  async function recordingExporter (record) {
    const socket = path.join(folder, `${path.basename(record)}.sock`)
    const exporter = new Exporter({
      listen: { host: '127.0.0.1', port: 0 },
      socket: { path: socket },
      compat: false,
      maxTargets: 10,
      logLevel: 'silent',
      record
    })
    await exporter.start()
    const agent = net.connect(socket)
    agent.write(
      [
        line(hello()),
        ...Array.from({ length: 30 }, (_, i) =>
          line(frame({ sequence: i + 1, uptimeSeconds: i + 1 }))
        )
      ].join('\n') + '\n'
    )
    await eventually(() => exporter.state.frames, frames => frames === 30)
    agent.destroy()
    await exporter.drained()
    return exporter
  }
  it('writes what it accepted, and a replay has the same verdicts', async () => {
    const file = path.join(folder, 'exporter.ndjson.gz')
    const exporter = await recordingExporter(file)
    const live = findCase(exporter.targets[0]).verdicts
    await exporter.stop()
    const { targets, frames, cut } = await replayFile(file)
    const { verdicts } = findCase(targets[0])
    expect({ frames, cut, verdicts }).toEqual({ frames: 30, cut: false, verdicts: live })
  })
  it('does not start if the recording is not writable, and names the option', () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [
        MEMWATCH,
        'exporter',
        '--record',
        path.join(folder, 'none/x.gz'),
        '--listen',
        '127.0.0.1:0',
        '--socket',
        path.join(folder, 's.sock')
      ],
      { encoding: 'utf8' }
    )
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(/^memwatch: --record: cannot write .*ENOENT.*\n$/)
    })
  })
  it('continues without the recording if the disk is full', async () => {
    const exporter = await recordingExporter('/dev/full')
    expect(exporter.state.frames).toBe(30)
    await exporter.stop()
  })
})

describe('memwatch diagnose', () => {
  /** @param {string[]} args */
  const diagnose = args => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [MEMWATCH, 'diagnose', ...args],
      { encoding: 'utf8' }
    )
    return { status, stdout, stderr }
  }
  it.each([
    ['a file that is not there', () => path.join(folder, 'none.ndjson'), /no such file/],
    ['an empty file', () => write('empty.ndjson', ''), /is empty/],
    [
      'something else',
      () => write('else.ndjson', '{"hello":"world"}\n'),
      /else.ndjson is of an unknown type/
    ],
    [
      'a version of the future',
      () => write('future.ndjson', '{"memwatch":"recording","version":2}\n'),
      /expected a recording of version 1, got version 2/
    ],
    [
      'what is packed and damaged',
      () => {
        fs.writeFileSync(
          path.join(folder, 'damaged.gz'),
          Buffer.from('1f8b0800deadbeefdeadbeef', 'hex')
        )
        return path.join(folder, 'damaged.gz')
      },
      /expected gzip, got a damaged or uncompressed file/
    ],
    [
      'two recordings at once',
      () => [write('one.ndjson', HEADER), write('two.ndjson', HEADER)],
      /expected one recording, got 2: diagnose .*two.ndjson/
    ],
    [
      'a limit that the recording already contains',
      () => ['--memory=512Mi', write('one.ndjson', HEADER)],
      /expected none of them for a recording/
    ]
  ])('refuses %s with status 2', (_, make, message) => {
    const { status, stdout, stderr } = diagnose([make()].flat())
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/at .*\.js:/)
  })

  it('has the same result for the recording of a live run', async () => {
    const file = path.join(folder, 'live.ndjson.gz')
    const app = path.join(__dirname, '../../lab/apps/semi-space-starvation.js')
    const live = spawnSync(
      process.execPath,
      [
        MEMWATCH,
        'run',
        '--json',
        '--for',
        '9',
        '--record',
        file,
        '--',
        process.execPath,
        '--max-semi-space-size=1',
        app
      ],
      { encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } }
    )
    expect(live.status).toBe(0)
    const { status, stdout } = diagnose(['--json', file])
    expect(status).toBe(0)
    const [before, after] = [JSON.parse(live.stdout), JSON.parse(stdout)]
    expect(after).toEqual(before)
    expect(
      after.targets[0].verdicts.find(({ diagnosis }) => diagnosis === 'semi-space-starvation').state
    ).toBe('suspected')
    expect(diagnose(['--json', '--fail-on', 'suspected', file]).status).toBe(3)
    expect(diagnose(['--json', '--fail-on', 'confirmed', file]).status).toBe(0)
  }, 30_000)

  it('has a status of its own under --fail-on for a recording without targets', () => {
    const file = path.join(folder, 'silent.ndjson')
    fs.writeFileSync(file, '{"memwatch":"recording","version":1}\n')
    expect([diagnose([file]).status, diagnose(['--fail-on', 'confirmed', file]).status]).toEqual([
      0, 4
    ])
  })
})
