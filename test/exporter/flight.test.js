'use strict'

const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { once } = require('node:events')
const { execFileSync, spawn } = require('node:child_process')
const { crc32, deflateRawSync, gzipSync } = require('node:zlib')
const { DataFolder } = require('../../exporter/data-folder/data-folder')
const { decodeRecord, LAYOUT } = require('../../exporter/flight/decode-record')
const { Block } = require('../../engine/history/block')
const { Flight } = require('../../engine/history/flight')
const { findCase } = require('../../engine/verdicts/case')
const { FlightRecorder } = require('../../exporter/flight/flight-recorder')
const { packRecord, unpackRecords } = require('../../exporter/flight/records')
const { SegmentFiles, SPARE_SEGMENTS } = require('../../exporter/flight/segment-files')
const { Segments } = require('../../exporter/flight/segments')
const { Targets } = require('../../engine/history/targets')
const { identityOf } = require('../../engine/history/identity')
const { ordered } = require('../../engine/history/history')
const { spawnExporter, stopExporters } = require('../support/exporter-process')
const { startExporter, eventually } = require('../support/exporter')
const { memwatch, MEMWATCH } = require('../support/memwatch')
const { spawnWatched } = require('../support/agent-collector')
const { hello, frame, line, gcRow, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { defined } = require('../support/defined')

const death = {
  id: '1760000000000-4711-0',
  target: 'api',
  thread: 'main',
  pid: 4711,
  host: null,
  node: '20.20.2',
  startedAtUnixMs: 1_760_000_000_000,
  diedAtUnixMs: 1_760_000_100_000,
  lastFrameUnixMs: 1_760_000_099_000,
  reason: /** @type {const} */ ('oom_kill'),
  sure: /** @type {const} */ ('certain'),
  text: 'The kernel killed it.',
  exitCode: null,
  signal: 'SIGKILL',
  suspects: null,
  verdict: null
}

/** A record with any body. @param {Buffer} body */
function withBody (body) {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(body.length, 0)
  head.writeUInt32LE(crc32(body), 4)
  return Buffer.concat([head, body])
}

const seriesOf = (flight, track, options) => {
  const { times, tracks } = flight.series([track], options)
  return { times, ...tracks[track] }
}

let folder
beforeEach(() => { folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-flight-')) })
afterEach(async () => {
  await stopExporters()
  fs.rmSync(folder, { recursive: true, force: true })
})

/** @param {Error | undefined} error */
const codeOf = error => /** @type {NodeJS.ErrnoException | undefined} */ (error)?.code

describe('a block', () => {
  it('restores its values, to 24 bits of a column’s range', () => {
    const block = new Block(3)
    const rows = Array.from({ length: 60 }, (_, i) => [
      1e9 + i * 4096,
      i % 7 ? i : NaN,
      1e6 + i / 1000
    ])
    rows.forEach((row, i) => block.append(i * 10, row))
    const again = Block.unpack(block.pack(), 3)
    expect(again.times).toEqual(rows.map((_, i) => i * 10))
    rows.forEach((row, i) => row.forEach((value, c) => {
      if (Number.isNaN(value)) expect(again.valueAt(i, c)).toBeNaN()
      else expect(again.valueAt(i, c)).toBeCloseTo(value, 4)
    }))
    again.append(600, [1, 2, 3])
    expect(again.valueAt(60, 2)).toBe(3)
  })
  it('retains only its own bytes when packed', () => {
    const block = new Block(3)
    block.append(1, [1, 2, 3])
    const packed = block.pack()
    expect(packed.buffer.byteLength).toBe(packed.length)
  })
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['garbage', Buffer.from('garbage')],
    ['half of one', new Block(2).pack().subarray(0, 5)]
  ])('refuses %s', (_, bytes) => {
    expect(() => Block.unpack(bytes, 2)).toThrow()
  })
})

describe('records', () => {
  const records = [packRecord({ type: 'a' }), packRecord({ type: 'b' }, Buffer.from('bytes'))]
  const whole = Buffer.concat(records)

  it('are found again', () => {
    const { records, tornBytes } = unpackRecords(whole)
    expect(records.map(({ meta, bytes }) => [meta.type, bytes.toString()])).toEqual([
      ['a', ''],
      ['b', 'bytes']
    ])
    expect(tornBytes).toBe(0)
  })
  it('cut off at any byte leave all earlier records readable', () => {
    for (let length = records[0].length + 1; length < whole.length; length++) {
      const found = unpackRecords(whole.subarray(0, length))
      expect(found.records).toHaveLength(1)
      expect(found.tornBytes).toBe(length - records[0].length)
    }
  })
  it('with any wrong bit are refused', () => {
    for (let at = 0; at < whole.length; at++) {
      const damaged = Buffer.from(whole)
      damaged[at] ^= 1 << (at % 8)
      expect(unpackRecords(damaged).records.length).toBeLessThan(2)
    }
  })
})

describe('segments', () => {
  const families = [
    { name: 'fine', keepMs: 1000, segmentMs: 500 },
    { name: 'coarse', keepMs: 1e6, segmentMs: 1e6 }
  ]
  let now, failures
  const open = (maxBytes = 1e9, at = folder) => {
    now ??= Date.now()
    failures = []
    return new Segments(at, {
      families,
      maxBytes,
      now: () => now,
      onFailure: failure => failures.push(codeOf(failure) ?? 'well')
    })
  }
  const typesOf = segments => {
    const types = []
    for (const { name } of families) segments.read(name, ({ meta }) => types.push(meta.type))
    return types
  }
  const files = () => fs.readdirSync(folder).sort()

  it('are read in the order in which they were written, by the next process', async () => {
    const first = open()
    await first.append('fine', [{ meta: { type: 'a' } }])
    await first.append('fine', [{ meta: { type: 'b' } }])
    const second = open()
    await second.append('fine', [{ meta: { type: 'c' } }])
    expect(typesOf(open())).toEqual(['a', 'b', 'c'])
    await Promise.all([first.close(), second.close()])
  })
  it('collect records while the disk is busy, and know the position of each record', async () => {
    const segments = open()
    const places = await Promise.all(
      Array.from({ length: 2000 }, (_, i) =>
        segments.append(i % 2 ? 'fine' : 'coarse', [
          { meta: { type: 'a' } },
          { meta: { type: 'b' }, bytes: Buffer.from(String(i)) }
        ])
      )
    )
    places.forEach((pair, i) =>
      expect(segments.readAt(defined(pair)[1]).toString()).toBe(String(i))
    )
    expect(segments.dropped).toBe(0)
    await segments.close()
  })
  it('return one record, and report a missing one', async () => {
    const segments = open()
    const [, place] = defined(await segments.append('coarse', [
      { meta: { type: 'a' } },
      { meta: { type: 'b' }, bytes: Buffer.from('here') }
    ]))
    expect(segments.readAt(place).toString()).toBe('here')
    await segments.close()
    fs.truncateSync(place.file, place.offset + 5)
    expect(() => segments.readAt(place)).toThrow()
  })
  it('skip and count a torn end, and read records behind it', async () => {
    const first = open()
    await first.append('fine', [{ meta: { type: 'a' } }, { meta: { type: 'torn' } }])
    await first.close()
    const [file] = files()
    fs.truncateSync(path.join(folder, file), fs.statSync(path.join(folder, file)).size - 3)
    const second = open()
    await second.append('fine', [{ meta: { type: 'c' } }])
    await second.close()
    const third = open()
    expect(typesOf(third)).toEqual(['a', 'c'])
    expect(third.torn).toBe(1)
  })
  it('do not expire if the clock is set', async () => {
    const segments = open()
    await segments.append('fine', [{ meta: { type: 'a' } }])
    now += 600
    await segments.append('fine', [{ meta: { type: 'b' } }])
    for (const file of files()) fs.utimesSync(path.join(folder, file), 0, 0)
    await segments.tidy()
    expect(typesOf(segments)).toEqual(['a', 'b'])
    await segments.close()
  })
  it('do not expire by a restart, and restarts do not accumulate segments', async () => {
    const most = SPARE_SEGMENTS + 4 * 2
    for (let life = 0; life < most + 5; life++) {
      fs.writeFileSync(
        path.join(folder, `fine-${String(life).padStart(15, '0')}.segment`),
        packRecord({ type: String(life) })
      )
    }
    for (const file of files()) fs.utimesSync(path.join(folder, file), 0, 0)
    await open().tidy()
    const types = typesOf(open())
    expect([types.length, types[0], types.at(-1)]).toEqual([most, '5', String(most + 4)])
  })
  it('expire one segment at a time', async () => {
    const segments = open()
    await segments.append('fine', [{ meta: { type: 'a' } }])
    now += 600
    await segments.append('fine', [{ meta: { type: 'b' } }])
    await segments.append('coarse', [{ meta: { type: 'c' } }])
    now += 1500
    await segments.tidy()
    expect(typesOf(segments)).toEqual(['b', 'c']) // the segment of b is still open
    await segments.close()
  })
  it('without space lose the oldest segment of the first family first', async () => {
    const segments = open(1500)
    for (const family of ['coarse', 'fine', 'fine', 'fine']) {
      await segments.append(family, [{ meta: { type: family }, bytes: Buffer.alloc(600) }])
      now += 600
    }
    await segments.tidy()
    expect(typesOf(segments)).toEqual(['fine', 'coarse'])
    expect(segments.bytes).toBeLessThan(1500)
    await segments.close()
  })
  it('report a folder that cannot be created', async () => {
    const segments = open(1e9, '/proc/memwatch/data')
    expect(await segments.append('fine', [{ meta: { type: 'a' } }])).toBeUndefined()
    expect(failures).toEqual(['ENOENT'])
  })
  it('report a failing disk once, drop records meanwhile, and try again', async () => {
    const blocked = path.join(folder, 'blocked')
    fs.writeFileSync(blocked, 'a file where a folder should be')
    const segments = open(1e9, blocked)
    expect(await segments.append('fine', [{ meta: { type: 'a' } }])).toBeUndefined()
    expect(await segments.append('fine', [{ meta: { type: 'b' } }])).toBeUndefined()
    expect([failures, segments.dropped]).toEqual([['EEXIST'], 2])
    fs.rmSync(blocked)
    now += 30_000
    expect(await segments.append('fine', [{ meta: { type: 'c' } }])).toHaveLength(1)
    expect([failures, segments.failure]).toEqual([['EEXIST', 'well'], undefined])
    await segments.close()
  })
})

describe('a full disk', () => {
  const families = [{ name: 'fine', keepMs: 1e6, segmentMs: 1e6 }]
  /** Limits the disk to this many bytes; `free` ends the limit. */
  function full (room) {
    const { write } = fs
    const spy = jest
      .spyOn(fs, 'write')
      .mockImplementation((fd, bytes, offset, length, position, done) => {
        if (room === 0) return done(Object.assign(new Error('no space left'), { code: 'ENOSPC' }))
        const fits = Math.min(length, room)
        room -= fits
        write(fd, bytes, offset, fits, position, done)
      })
    return () => spy.mockRestore()
  }
  const typesOf = segments => {
    const types = []
    segments.read('fine', ({ meta }) => types.push(meta.type))
    return types
  }

  it.each([0, 1, 30, 70])(
    'after %i bytes leaves no torn record and no superfluous file',
    async room => {
      const segments = new Segments(folder, { families, maxBytes: 1e9 })
      await segments.append('fine', [{ meta: { type: 'before' } }])
      const free = full(room)
      expect(
        await segments.append('fine', [{ meta: { type: 'lost' }, bytes: Buffer.alloc(100) }])
      ).toBeUndefined()
      free()
      expect(await segments.ready()).toBe(true)
      await segments.append('fine', [{ meta: { type: 'after' } }])
      await segments.close()
      const again = new Segments(folder, { families, maxBytes: 1e9 })
      expect([typesOf(again), again.torn, fs.readdirSync(folder)]).toEqual([
        ['before', 'after'],
        0,
        ['fine-000000000000001.segment']
      ])
    }
  )
  it('before the first byte leaves no file', async () => {
    const segments = new Segments(folder, { families, maxBytes: 1e9 })
    const free = full(10)
    for (let i = 0; i < 50; i++) await segments.append('fine', [{ meta: { type: 'lost' } }])
    free()
    expect(fs.readdirSync(folder)).toEqual([])
    expect(codeOf(segments.failure)).toBe('ENOSPC')
  })
  it('stays reported although a small record fits', async () => {
    const said = []
    const segments = new Segments(folder, {
      families,
      maxBytes: 1e9,
      onFailure: failure => said.push(codeOf(failure))
    })
    const free = full(100)
    await segments.append('fine', [{ meta: { type: 'large' }, bytes: Buffer.alloc(1000) }])
    free()
    await segments.append('fine', [{ meta: { type: 'small' } }])
    expect(said).toEqual(['ENOSPC'])
    expect(await segments.ready()).toBe(true)
    await segments.append('fine', [{ meta: { type: 'small' } }])
    expect(said).toEqual(['ENOSPC', undefined])
    expect(fs.readdirSync(folder)).toHaveLength(1)
    await segments.close()
  })
})

describe('a flight history', () => {
  const rss = ordered.indexOf('rssBytes')
  const scavenges = ordered.indexOf('scavenges')
  const rowAt = (bytes, count = 0) => {
    const row = new Float64Array(ordered.length).fill(NaN)
    row[rss] = bytes
    row[scavenges] = count
    return row
  }

  it('shows a spike of one second after six hours and after a week', () => {
    const flight = new Flight()
    for (let second = 0; second <= 7 * 86_400; second++) {
      flight.append(
        second,
        rowAt(second % 7200 === 3 ? 900 : second % 7200 === 5 ? 10 : 100, second)
      )
    }
    const tens = seriesOf(flight, 'rssBytes', { stepSeconds: 10 })
    const minutes = seriesOf(flight, 'rssBytes', { stepSeconds: 60 })
    expect(tens.times.at(-1) - tens.times[0]).toBeGreaterThan(6 * 3600 - 700)
    expect(minutes.times.at(-1) - minutes.times[0]).toBeGreaterThan(7 * 86_400 - 3700)
    expect(minutes.max.filter(bytes => bytes === 900)).toHaveLength(84)
    expect(minutes.min.filter(bytes => bytes === 10)).toHaveLength(84)
    expect(tens.max.filter(bytes => bytes === 900)).toHaveLength(3)
    expect(minutes.last.every(bytes => bytes === 100)).toBe(true)
    const counts = seriesOf(flight, 'scavenges', { stepSeconds: 60, sinceSeconds: 86_400 })
    expect(counts.last.at(-1) - counts.last[0]).toBe(counts.times.at(-1) - counts.times[0])
  }, 60_000)

  it('takes at most the documented 4.5 MiB for a week, even with random numbers', () => {
    const flight = new Flight()
    const row = new Float64Array(ordered.length)
    for (let minute = 0; minute < 7 * 1440; minute++) {
      for (let ten = 0; ten < 60; ten += 10) {
        for (let track = 0; track < row.length; track++) {
          row[track] = 1e8 + Math.floor(1e4 * Math.random()) * 4096
        }
        flight.append(60 * minute + ten, row)
      }
    }
    expect(flight.packedBytes).toBeGreaterThan(MIB)
    expect(flight.packedBytes).toBeLessThan(4.5 * MIB)
  }, 60_000)
})

describe('a recorder', () => {
  let now
  /** Creates a recorder that receives the ends of targets, as in the exporter. */
  function recorderOf (targets, options) {
    const recorder = new FlightRecorder({ targets, now: () => now, ...options })
    targets.on('end', target => recorder.ended(target))
    return recorder
  }
  /** Creates a target of this age in seconds, and its recorder. */
  async function flown (seconds) {
    now = 1_000_000
    const targets = new Targets({ now: Date.now })
    const recorder = recorderOf(targets, { folder })
    const session = openSession(targets, hello(), () => {})
    await fly(session, recorder, 1, seconds)
    return { targets, recorder, session }
  }
  async function fly (session, recorder, from, to) {
    for (let second = from; second <= to; second++) {
      now += 1000
      session.frame(
        frame({
          sequence: second,
          uptimeSeconds: second,
          values: { rssBytes: second * MIB, gc: { 'minor/ordinary': gcRow(second, second / 1000) } }
        })
      )
      if (second % 5 === 0) await recorder.save()
    }
  }
  const restored = (from = folder) => {
    const targets = new Targets({ now: Date.now })
    const deaths = []
    const recorder = recorderOf(targets, { folder: from })
    const noted = { restore: death => deaths.push(death), explain: () => {}, retract: () => {} }
    recorder.restore(noted)
    return { targets, deaths, recorder }
  }

  it('restores all but the last seconds after a kill: history, sequence and verdicts', async () => {
    const {
      targets: {
        all: [before]
      },
      recorder,
      session: connection
    } = await flown(3990)
    /** @type {import('../../engine/verdicts/settle').SettledState} */
    const leak = {
      state: 'confirmed',
      judgement: { state: 'confirmed', evidence: [], summary: 'it leaks' },
      agreed: 3,
      confirmedAtSeconds: 3980,
      seenAtSeconds: 3980
    }
    findCase(before)
      .settled.set('js-heap-leak', leak)
      .set('semi-space-starvation', { ...leak, state: 'ok' })
    await fly(connection, recorder, 3991, 4003)
    const { targets } = restored()
    const [after] = targets.all
    expect([...findCase(after).settled]).toEqual([['js-heap-leak', leak]])
    expect([after.name, after.thread, after.connected, after.hello]).toEqual([
      'api',
      'main',
      false,
      hello()
    ])
    expect(after.lastSeconds).toBe(4000)
    expect(after.watchedSeconds).toBe(0)
    const session = openSession(targets, hello(), () => {})
    session.frame(
      frame({
        sequence: 4010,
        uptimeSeconds: 4010,
        values: { rssBytes: 4010 * MIB, gc: { 'minor/ordinary': gcRow(4010, 4) } }
      })
    )
    expect(after.watchedSeconds).toBe(4009)
    expect(after.framesLost).toBe(9) // The lost frames are counted since the last save.
    for (const seconds of [60, 590, 3000, 7200]) {
      const points = target => {
        const { times, values } = target.window().points('rssBytes', seconds)
        return Object.fromEntries(times.map((time, i) => [time, values[i]]))
      }
      const [was, is] = [points(before), points(after)]
      const common = Object.keys(was).filter(
        time => Number(time) >= 4010 - seconds && Number(time) <= 3990
      )
      expect(common.length).toBeGreaterThan(30)
      expect(common.filter(time => Math.abs(was[time] - is[time]) > 4096)).toEqual([])
    }
    for (const stepSeconds of [10, 60]) {
      const was = seriesOf(before.flight, 'rssBytes', { stepSeconds })
      const is = seriesOf(after.flight, 'rssBytes', { stepSeconds })
      expect(is.times.length).toBeGreaterThan(was.times.length - 3)
      expect(is.max.slice(0, 20)).toEqual(was.max.slice(0, 20))
    }
  }, 60_000)

  it('saves what a full disk refused once there is room', async () => {
    const blocked = path.join(folder, 'blocked')
    fs.writeFileSync(blocked, '')
    const targets = new Targets({ now: Date.now })
    now = 1_000_000
    const recorder = recorderOf(targets, { folder: blocked })
    const session = openSession(targets, hello(), () => {})
    const other = openSession(targets, hello({ pid: 2 }), () => {})
    await fly(session, recorder, 1, 30)
    await fly(other, recorder, 1, 3)
    expect(recorder.state).toMatchObject({ saving: false })
    recorder.death(death, Buffer.from('minutes'), targets.all[1])
    fs.rmSync(blocked)
    await fly(session, recorder, 31, 40)
    expect(recorder.state).toMatchObject({ saving: true })
    const { targets: { all }, deaths } = restored(blocked)
    expect(
      all.map(target => [target.hello.pid, target.lastMinutes(600).secondsBefore.length])
    ).toEqual([[hello().pid, 40]])
    expect(deaths).toEqual([death])
  })

  it('does not restore a target whose death was saved last', async () => {
    await flown(30)
    const { targets, recorder } = restored()
    recorder.death(death, Buffer.from('minutes'), targets.all[0])
    await recorder.save()
    expect(restored().targets.all).toEqual([])
  })

  it('frees the memory of full blocks on disk, and reads them from there', async () => {
    const { targets: { all: [target] }, recorder } = await flown(1300)
    expect(target.flight.sealed).toHaveLength(2)
    expect(target.flight.packedBytes).toBe(0)
    expect(seriesOf(target.flight, 'rssBytes', { stepSeconds: 10 }).times).toHaveLength(130)
    expect(recorder.state).toMatchObject({ memoryBytes: 0, saving: true, dropped: 0, torn: 0 })
  })

  it('does not wait for a target that sent a bye', async () => {
    const { session, recorder } = await flown(30)
    session.bye({ exitCode: 0 })
    await recorder.save()
    expect(restored().targets.all).toHaveLength(0)
  })

  it('does not wait for a target whose death was reported, until it is back', async () => {
    const { targets, recorder, session } = await flown(30)
    recorder.death(death, Buffer.from('minutes'), targets.all[0])
    await recorder.save()
    expect(restored().targets.all).toHaveLength(0)
    await fly(session, recorder, 31, 40)
    expect(restored().targets.all).toHaveLength(1)
  })
  it('does not wait for a target that reported long ago', async () => {
    await flown(30)
    now += 901_000
    expect(restored().targets.all).toHaveLength(0)
  })

  it.each([
    ['history of another version with other columns', { layout: 'other' }],
    ['history from before the boot of the machine', { boot: 'other' }]
  ])('ignores %s', async (_, changes) => {
    await flown(30)
    for (const name of fs.readdirSync(folder)) {
      const file = path.join(folder, name)
      const { records } = unpackRecords(fs.readFileSync(file))
      fs.writeFileSync(
        file,
        Buffer.concat(records.map(({ meta, bytes }) => packRecord({ ...meta, ...changes }, bytes)))
      )
    }
    expect(restored().targets.all).toHaveLength(0)
  })
})

describe('files in the data folder', () => {
  /**
   * An exporter started by a test.
   * @type {Awaited<ReturnType<typeof startExporter>>}
   */
  let exporter
  /** @type {DataFolder | undefined} */
  let dataFolder
  const stop = async () => {
    await exporter?.stop()
    dataFolder?.close()
  }
  afterEach(stop)
  async function start () {
    dataFolder = await DataFolder.open(folder)
    exporter = await startExporter({ dataFolder })
  }
  const nameOf = (family, number) =>
    path.join(folder, `${family}-${String(number).padStart(15, '0')}.segment`)
  /**
   * @param {string} family
   * @param {Buffer[]} records
   */
  const plant = (family, records, number = 1) =>
    fs.writeFileSync(nameOf(family, number), Buffer.concat(records))
  const recordOf = (meta, bytes) => packRecord(/** @type {any} */ (meta), bytes)
  const kept = packRecord(
    { type: 'death', death },
    gzipSync(JSON.stringify({ secondsBefore: [0], tracks: { rssBytes: [1] } }))
  )
  const bomb = deflateRawSync(Buffer.alloc(2 ** 27), { level: 1 })
  const key = identityOf(hello())
  const target = { type: 'target', layout: LAYOUT, key, name: 'api', thread: 'main' }
  const seconds = {
    type: 'seconds',
    layout: LAYOUT,
    key,
    atMs: 1,
    lastSequence: 1,
    firstUptimeSeconds: 1,
    settled: []
  }
  const block = { type: 'block', layout: LAYOUT, key, stepSeconds: 10, from: 1, to: 2 }
  const introduced = bytes => recordOf(target, deflateRawSync(bytes))
  const told = changes => recordOf({ type: 'death', death: { ...death, ...changes } })
  const packedBlock = (width, time = 1) => {
    const block = new Block(width)
    block.append(time, Array(width).fill(1))
    return block.pack()
  }

  /** @type {[string, string, Buffer][]} */
  const unfit = [
    ['null', 'seconds', recordOf(null)],
    ['null', 'deaths', recordOf(null)],
    ['null', 'step10', recordOf(null)],
    ['null', 'step60', recordOf(null)],
    ['a list of lists', 'deaths', recordOf(Array(300_000).fill([]))],
    ['a type that is none', 'seconds', recordOf({ type: 5 })],
    ['no JSON', 'seconds', withBody(Buffer.concat([Buffer.from([1, 0, 0, 0]), Buffer.from('{')]))],
    ['a length beyond its end', 'seconds', withBody(Buffer.from([255, 255, 255, 255]))],
    ['a death that is null', 'deaths', recordOf({ type: 'death', death: null })],
    ['a death that is empty', 'deaths', recordOf({ type: 'death', death: {} })],
    ['a death that is a list', 'deaths', recordOf({ type: 'death', death: [] })],
    ['a death without a reason', 'deaths', told({ reason: '__proto__' })],
    ['a death by a number', 'deaths', told({ text: 5 })],
    ['a death without a date', 'deaths', told({ diedAtUnixMs: 9e15 })],
    ['a death of half a pid', 'deaths', told({ pid: 0.5 })],
    ['a death with a million words', 'deaths', told({ text: 'x'.repeat(100_000) })],
    ['a death without a process', 'deaths', recordOf({ type: 'retracted', id: [] })],
    ['a hello that is null', 'seconds', introduced('null')],
    ['a hello that is not JSON', 'seconds', introduced('{')],
    ['a hello of another', 'seconds', introduced(JSON.stringify(hello({ pid: 5 })))],
    ['a hello that is not deflated', 'seconds', recordOf(target, Buffer.from('{}'))],
    ['a hello that inflates to a gigabyte', 'seconds', recordOf(target, bomb)],
    ['seconds that inflate to a gigabyte', 'seconds', recordOf(seconds, bomb)],
    ['seconds of other columns', 'seconds', recordOf(seconds, packedBlock(3))],
    ['seconds before the first', 'seconds', recordOf(seconds, packedBlock(ordered.length, -1))],
    ['seconds at no time', 'seconds', recordOf(seconds, packedBlock(ordered.length, NaN))],
    [
      'seconds of settled nulls',
      'seconds',
      recordOf({ ...seconds, settled: [null] }, packedBlock(ordered.length))
    ],
    [
      'seconds settled by an object',
      'seconds',
      recordOf({ ...seconds, settled: { length: 1e9 } }, packedBlock(ordered.length))
    ],
    [
      'seconds without a key',
      'seconds',
      recordOf({ ...seconds, key: null }, packedBlock(ordered.length))
    ],
    ['an end of nobody', 'seconds', recordOf({ type: 'end' })],
    ['a block that ends before it begins', 'step10', recordOf({ ...block, to: 0 })],
    ['a block of another family', 'step60', recordOf(block)],
    ['a block without time', 'step10', recordOf({ ...block, from: null })]
  ]
  it.each(unfit)('a record of %s in %s is refused', (_, family, packed) => {
    const { records: [record], tornBytes } = unpackRecords(packed)
    expect([decodeRecord(record, family), tornBytes]).toEqual([undefined, 0])
  })
  it('refused records are moved aside, and the next start finds no fault', async () => {
    unfit.forEach(([, family, record], i) => plant(family, [kept, record], i + 1))
    for (const torn of [unfit.length, 0]) {
      await start()
      // Deaths are unaffected, because the record is in another family.
      expect(exporter.exporter.deaths.map(({ id }) => id)).toEqual(
        Array(unfit.filter(([, family]) => family === 'deaths').length).fill(death.id)
      )
      for (const at of [
        `/api/v1/deaths/${death.id}`,
        '/api/v1/targets',
        '/api/v1/diagnoses',
        '/api/v1/captures',
        '/metrics'
      ]) {
        expect((await exporter.get(at)).status).toBe(200)
      }
      expect(exporter.exporter.state.flight.torn).toBe(torn)
      expect(fs.readdirSync(path.join(folder, 'unreadable'))).toHaveLength(20)
      await stop()
    }
  }, 60_000)
  it.each([
    ['a FIFO', file => execFileSync('mkfifo', [file])],
    ['a link to /dev/zero', file => fs.symlinkSync('/dev/zero', file)],
    ['a dangling link', file => fs.symlinkSync('/none', file)],
    ['a folder', file => fs.mkdirSync(path.join(file, 'inside'), { recursive: true })],
    [
      'a file of a terabyte',
      file => {
        fs.writeFileSync(file, '')
        fs.truncateSync(file, 2 ** 40)
      }
    ]
  ])(
    '%s in place of a segment is moved aside, or removed if too large',
    async (_, make) => {
      make(nameOf('seconds', 7))
      plant('deaths', [kept], 8)
      await start()
      expect((await (await exporter.get('/api/v1/deaths')).json()).map(({ id }) => id)).toEqual([
        death.id
      ])
      expect(fs.readdirSync(folder)).not.toContain(path.basename(nameOf('seconds', 7)))
    }
  )
  it('a death with invalid minutes is restored without them', async () => {
    const packed = {
      garbage: Buffer.from('garbage'),
      null: gzipSync('null'),
      'a list': gzipSync('[]'),
      'a bomb': gzipSync(Buffer.alloc(2 ** 28)),
      'many lists': gzipSync(`[${'[],'.repeat(1e6)}[]]`)
    }
    plant(
      'deaths',
      Object.values(packed).map((bytes, i) =>
        recordOf({ type: 'death', death: { ...death, id: `1-2-${i}` } }, bytes)
      )
    )
    await start()
    for (const i of Object.keys(packed).keys()) {
      const answer = await exporter.get(`/api/v1/deaths/1-2-${i}`)
      expect([answer.status, (await answer.json()).lastMinutes]).toEqual([
        200,
        { secondsBefore: [], tracks: {} }
      ])
    }
  }, 30_000)
  it('empty segments, those of another version and torn ends are no faults', async () => {
    plant('seconds', [], 1)
    plant(
      'seconds',
      [recordOf({ ...seconds, layout: 'other', settled: 5 }), recordOf({ type: 'of tomorrow' })],
      2
    )
    plant('deaths', [kept, kept.subarray(0, 50)], 3)
    await start()
    expect([
      fs.existsSync(path.join(folder, 'unreadable')),
      exporter.exporter.deaths.length
    ]).toEqual([false, 1])
  })
  it('files moved to the quarantine are limited in number, and a link does not redirect them', async () => {
    const elsewhere = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-elsewhere-'))
    fs.writeFileSync(path.join(elsewhere, 'theirs'), '')
    fs.symlinkSync(elsewhere, path.join(folder, 'unreadable'))
    for (let i = 1; i <= 40; i++) plant('seconds', [recordOf(null, Buffer.alloc(MIB))], i)
    await start()
    const aside = fs.readdirSync(path.join(folder, 'unreadable'))
    expect([aside.length, fs.readdirSync(elsewhere)]).toEqual([15, ['theirs']])
    fs.rmSync(elsewhere, { recursive: true })
  })
  it('a hundred thousand segment names, or the highest number, do not prevent a start', () => {
    const { readdirSync, lstatSync } = fs
    const names = Array.from(
      { length: 200_000 },
      (_, i) => `fine-${String(i).padStart(15, '0')}.segment`
    )
    Object.assign(fs, {
      readdirSync: () => [...names, 'fine-999999999999999.segment'],
      lstatSync: () => ({ size: 1 })
    })
    let segments
    try {
      segments = new SegmentFiles(folder, { families: [], maxBytes: 1, now: () => 0 })
    } finally {
      Object.assign(fs, { readdirSync, lstatSync })
    }
    expect(segments.next('fine')).toBe(path.join(folder, 'fine-000000000200000.segment'))
  }, 30_000)
  it('the probe file is not written through a link', async () => {
    const victim = path.join(folder, 'victim')
    const data = path.join(folder, 'data')
    fs.writeFileSync(victim, 'theirs')
    fs.mkdirSync(data)
    const segments = new Segments(data, { families: [], maxBytes: 1e9 })
    segments.fail(new Error('full'), 100)
    fs.symlinkSync(victim, path.join(data, 'probe'))
    expect(await segments.ready()).toBe(true)
    expect(fs.readFileSync(victim, 'utf8')).toBe('theirs')
  })
})

describe('the lock of a data folder', () => {
  /** @type {DataFolder[]} */
  let held = []
  afterEach(() => {
    for (const each of held) each.close()
    held = []
  })
  const open = async (at = folder) => {
    const opened = await DataFolder.open(at)
    held.push(opened)
    return opened
  }
  it('is held by one process, whose name is reported, until it closes the lock', async () => {
    const first = await open()
    await expect(open()).rejects.toThrow(
      `--data-dir: another exporter, process ${process.pid} on ${os.hostname()}, uses ${folder}`
    )
    await first.hold()
    first.close()
    await open()
  })
  /** @type {[string, (file: string) => net.Server | void][]} */
  const LEFT = [
    ['that was killed', file => net.createServer().listen(file)],
    ['that left a file', file => fs.writeFileSync(file, '4711')],
    ['that was nobody', () => {}]
  ]
  it.each(LEFT)('is taken over from a process %s', async (_, leave) => {
    const file = path.join(folder, 'lock')
    const server = leave(file)
    if (server) {
      await once(server, 'listening')
      fs.renameSync(file, `${file}.kept`) // closing a socket removes it by its name
      await new Promise(resolve => server.close(resolve))
      expect(fs.existsSync(`${file}.kept`)).toBe(true)
      fs.renameSync(`${file}.kept`, file)
    }
    await open()
    await expect(open()).rejects.toThrow('another exporter, process')
  })
  it('is acquired by one of many processes that start at once', async () => {
    const many = await Promise.allSettled(Array.from({ length: 8 }, () => open()))
    expect(many.map(({ status }) => status).sort()).toEqual([
      'fulfilled',
      ...Array(7).fill('rejected')
    ])
  })
  it('works if the path is too long for a socket', async () => {
    const long = path.join(folder, 'x'.repeat(120))
    await open(long)
    await expect(open(long)).rejects.toThrow('another exporter, process')
  })
  it('is acquired again with a new folder, unless another process was first', async () => {
    const first = await open()
    fs.rmSync(folder, { recursive: true })
    fs.mkdirSync(folder)
    const second = await open()
    await expect(first.hold()).rejects.toThrow('another exporter, process')
    second.close()
    await first.hold()
    await expect(open()).rejects.toThrow('another exporter, process')
  })
  it('is held even by a process that does not answer', async () => {
    const silent = net.createServer(() => {}).listen(path.join(folder, 'lock'))
    await once(silent, 'listening')
    await expect(open()).rejects.toThrow('a process that does not answer')
    silent.close()
  })
})

describe('a data folder of a real exporter', () => {
  const data = () => path.join(folder, 'data')
  const start = (args = []) => spawnExporter({ folder, args: ['--data-dir', data(), ...args] })
  const saving = async exporter =>
    /^memwatch_exporter_history_saving (\d)$/m.exec(
      await (await fetch(`${exporter.url}/metrics`)).text()
    )?.[1]

  it('is refused to a second exporter, naming the holder, and is free after a kill', async () => {
    const first = await start()
    const second = await memwatch([
      'exporter',
      '--listen',
      '127.0.0.1:0',
      '--socket',
      path.join(folder, 'second.sock'),
      '--data-dir',
      data()
    ])
    expect(second).toMatchObject({
      code: 2,
      stdout: '',
      stderr: `memwatch: --data-dir: another exporter, process ${first.pid} on ${os.hostname()}, ` +
        `uses ${data()}; give each exporter its own folder\n`
    })
    const third = await start(['--on-failure', 'stay', '--socket', path.join(folder, 'third.sock')])
    expect([await saving(first), await saving(third), third.output()]).toEqual([
      '1',
      '0',
      expect.stringContaining(`process ${first.pid}`)
    ])
    await third.stop()
    await first.stop('SIGKILL')
    const next = await start()
    expect(await saving(next)).toBe('1')
    await next.stop()
    expect(fs.existsSync(path.join(data(), 'lock'))).toBe(false)
  }, 90_000)
  it('that is removed meanwhile is created again with the history in memory', async () => {
    const exporter = await start()
    const agent = net.connect(exporter.socket)
    const tell = sequence => agent.write(line(frame({ sequence, uptimeSeconds: sequence })) + '\n')
    const saved = () =>
      fs.existsSync(data())
        ? fs
          .readdirSync(data())
          .filter(name => name.startsWith('seconds'))
          .flatMap(name =>
            unpackRecords(fs.readFileSync(path.join(data(), name)))
              .records.filter(({ meta }) => meta.type === 'seconds')
              .flatMap(({ bytes }) => Block.unpack(bytes, ordered.length).times)
          )
        : []
    agent.write(line(hello({ pid: 1 })) + '\n')
    tell(1)
    await eventually(saved, times => times.includes(1))
    fs.rmSync(data(), { recursive: true })
    fs.writeFileSync(data(), 'a file where the folder was')
    tell(2)
    await eventually(
      () => saving(exporter),
      value => value === '0',
      15_000
    )
    fs.rmSync(data())
    await eventually(saved, times => times.join() === '1,2', 15_000)
    // The cached text of /metrics may be a second old.
    await eventually(
      () => saving(exporter),
      value => value === '1'
    )
    await eventually(() => fs.existsSync(path.join(data(), 'lock')), Boolean, 15_000)
    await exporter.stop()
    agent.destroy()
    const next = await start()
    const back = net.connect(next.socket)
    back.write(
      [hello({ pid: 1 }), frame({ sequence: 3, uptimeSeconds: 3 })]
        .map(message => line(message) + '\n')
        .join('')
    )
    const series = async () =>
      (await fetch(`${next.url}/api/v1/targets/api/series?track=rssBytes`)).json()
    await eventually(series, ({ times }) => times?.join() === '1,2,3')
    await next.stop()
    back.destroy()
  }, 60_000)
  it('with unreadable files leads to one line in the log', async () => {
    fs.mkdirSync(path.join(data(), 'captures/00000000-0000-4000-8000-000000000000'), {
      recursive: true
    })
    fs.writeFileSync(
      path.join(data(), 'captures/00000000-0000-4000-8000-000000000000/capture.json'),
      'null'
    )
    for (let i = 1; i <= 30; i++) fs.writeFileSync(path.join(data(), `deaths-${String(i).padStart(15, '0')}.segment`), packRecord(/** @type {any} */ (null)))
    const child = spawn(
      process.execPath,
      [
        MEMWATCH,
        'exporter',
        '--listen',
        '127.0.0.1:0',
        '--socket',
        path.join(folder, 'exporter.sock'),
        '--data-dir',
        data()
      ],
      { stdio: ['ignore', 'pipe', 'ignore'] }
    )
    let log = ''
    child.stdout.on('data', text => { log += text })
    try {
      await eventually(() => log, text => text.includes('moved aside'))
    } finally {
      child.kill('SIGTERM')
      await once(child, 'close')
    }
    const lines = log
      .trim()
      .split('\n')
      .map(text => JSON.parse(text))
      .filter(({ msg }) => msg === 'unreadable files moved aside')
    expect(lines).toEqual([
      expect.objectContaining({
        level: 40,
        count: 31,
        files: expect.arrayContaining([
          {
            file: '00000000-0000-4000-8000-000000000000',
            reason: 'capture.json does not fit its contract'
          }
        ])
      })
    ])
    expect(lines[0].files).toHaveLength(10)
  }, 60_000)
})

it('an agent that reconnects before the exporter is ready continues its target', async () => {
  const slow = path.join(folder, 'slow.js')
  // The HTTP server starts half a second later than the agents' socket.
  fs.writeFileSync(slow, `
    const { Server } = require('node:net')
    const { listen } = Server.prototype
    Server.prototype.listen = function (...args) {
      if (args[0].port === undefined) return listen.apply(this, args)
      setTimeout(() => listen.apply(this, args), 500)
      return this
    }`)
  const start = nodeArgs =>
    spawnExporter({ folder, args: ['--data-dir', path.join(folder, 'data')], nodeArgs })
  const tell = (connection, sequences) =>
    connection.write(
      [
        hello({ pid: 1 }),
        ...sequences.map(sequence => frame({ sequence, uptimeSeconds: sequence }))
      ]
        .map(message => line(message) + '\n')
        .join('')
    )
  const first = await start([])
  const before = net.connect(first.socket)
  tell(before, [1, 2, 3])
  await eventually(
    async () => (await (await fetch(`${first.url}/api/v1/targets`)).json())[0]?.uptimeSeconds,
    seconds => seconds === 3
  )
  await first.stop()
  before.destroy()

  const starting = start(['-r', slow])
  /** @type {() => Promise<net.Socket | undefined>} */
  const tryConnect = () => new Promise(resolve => {
    const connection = net.connect(first.socket)
    connection.once('connect', () => resolve(connection)).once('error', () => resolve(undefined))
  })
  const back = await eventually(tryConnect, Boolean)
  tell(back, [4])
  const second = await starting
  const series = () =>
    fetch(`${second.url}/api/v1/targets/api/series?track=rssBytes`).then(response =>
      response.json()
    )
  expect((await eventually(series, ({ times }) => times?.includes(4))).times).toEqual([1, 2, 3, 4])
  back.destroy()
  await second.stop()
})

describe('an exporter that is killed', () => {
  it('every two seconds loses about one second each time', async () => {
    const start = () => spawnExporter({ folder, args: ['--data-dir', path.join(folder, 'data')] })
    const timesOf = async ({ url }) =>
      (await (await fetch(`${url}/api/v1/targets/api/series?track=rssBytes`)).json()).times ?? []
    let sequence = 0
    /** Uptime of the last frame before each kill. @type {number[][]} */
    const lives = []
    for (let life = 0; life < 3; life++) {
      const exporter = await start()
      const agent = net.connect(exporter.socket)
      agent.write(line(hello({ pid: 1 })) + '\n')
      /** @type {number[]} */
      const told = []
      const began = performance.now()
      while (performance.now() - began < 2500) {
        told.push(++sequence)
        agent.write(line(frame({ sequence, uptimeSeconds: sequence })) + '\n')
        await new Promise(resolve => setTimeout(resolve, 100))
      }
      await eventually(() => timesOf(exporter), times => times.includes(sequence))
      lives.push(told)
      await exporter.stop('SIGKILL')
      agent.destroy()
    }
    const last = await start()
    const back = net.connect(last.socket)
    back.write(
      [hello({ pid: 1 }), frame({ sequence: ++sequence, uptimeSeconds: sequence })]
        .map(message => line(message) + '\n')
        .join('')
    )
    const times = new Set(await eventually(() => timesOf(last), found => found.includes(sequence)))
    back.destroy()
    // The first save comes after one second: of 2.5 seconds at least half a second must be saved,
    // even on a busy machine.
    for (const told of lives) {
      expect(told.filter(time => times.has(time)).length).toBeGreaterThan(told.length / 3)
    }
    await last.stop()
  }, 60_000)
  it('soon after a long stop has saved frames from that time', async () => {
    const start = () => spawnExporter({ folder, args: ['--data-dir', path.join(folder, 'data')] })
    const first = await start()
    const agent = net.connect(first.socket)
    const tell = sequence => agent.write(line(frame({ sequence, uptimeSeconds: sequence })) + '\n')
    const known = () => fetch(`${first.url}/api/v1/targets`).then(response => response.json())
    agent.write(line(hello({ pid: 1 })) + '\n')
    tell(1)
    await eventually(known, ([target]) => target?.uptimeSeconds === 1)
    first.child.kill('SIGSTOP')
    for (let sequence = 2; sequence <= 12; sequence++) tell(sequence)
    // longer than the interval between two saves
    await new Promise(resolve => setTimeout(resolve, 9000))
    first.child.kill('SIGCONT')
    await eventually(known, ([target]) => target?.uptimeSeconds === 12)
    const saved = () =>
      fs
        .readdirSync(path.join(folder, 'data'))
        .filter(name => name.startsWith('seconds'))
        .flatMap(name =>
          unpackRecords(fs.readFileSync(path.join(folder, 'data', name)))
            .records.filter(({ meta }) => meta.type === 'seconds')
            .flatMap(({ bytes }) => Block.unpack(bytes, ordered.length).times)
        )
    await eventually(async () => saved(), times => times.includes(12), 2000)
    await first.stop('SIGKILL')
    agent.destroy()
  }, 30_000)
  it('restores targets, verdict history and deaths, and loses at most ten seconds', async () => {
    const socketFolder = path.join(folder, 'socket')
    const start = () =>
      spawnExporter({ folder: socketFolder, args: ['--data-dir', path.join(folder, 'data')] })
    fs.mkdirSync(socketFolder)
    const first = await start()
    const env = { MEMWATCH_INTERVAL_SECONDS: '0.2' }
    const app = spawnWatched({
      args: ['-e', 'setInterval(() => {}, 1000)'],
      socket: first.socket.path,
      env: { ...env, MEMWATCH_NAME: 'shop' },
      timeoutMs: 60_000
    })
    const dying = spawnWatched({
      args: ['-e', 'setTimeout(() => process.exit(7), 1000)'],
      socket: first.socket.path,
      env: { ...env, MEMWATCH_NAME: 'dying' }
    })
    const json = async (exporter, at) => (await fetch(exporter.url + at)).json()
    try {
      const [death] = await eventually(
        () => json(first, '/api/v1/deaths'),
        deaths => deaths.length === 1
      )
      await eventually(
        () => json(first, '/api/v1/targets'),
        ([target]) => target.uptimeSeconds > 7,
        15_000
      )
      await first.stop('SIGKILL')

      const second = await start()
      const [target] = await eventually(
        () => json(second, '/api/v1/targets'),
        targets => targets.length === 1 && targets[0].up
      )
      expect(target).toMatchObject({ target: 'shop', pid: app.child.pid })
      expect(await json(second, '/api/v1/deaths')).toEqual([death])
      const { times } = await json(second, '/api/v1/targets/shop/series?track=rssBytes&seconds=600')
      expect(times[0]).toBeLessThan(1)
      expect(times.at(-1)).toBeGreaterThan(7)
      app.child.kill('SIGKILL')
      await app.ended
      await eventually(
        () => json(second, '/api/v1/deaths'),
        deaths => deaths.length === 2
      )
      const data = path.join(folder, 'data')
      const saved = () =>
        fs
          .readdirSync(data)
          .filter(name => name.startsWith('deaths'))
          .some(name => fs.readFileSync(path.join(data, name)).includes('"target":"shop"'))
      await eventually(saved, Boolean)
      await second.stop('SIGKILL')

      const third = await start()
      expect((await json(third, '/api/v1/deaths')).map(({ target }) => target)).toEqual([
        'shop',
        'dying'
      ])
      expect(await (await fetch(`${third.url}/metrics`)).text()).toContain(
        'memwatch_target_exits_total{target="dying",thread="main",reason="error"} 1'
      )
      await third.stop()
    } finally {
      for (const { child, ended } of [app, dying]) {
        child.kill('SIGKILL')
        await ended
      }
    }
  }, 60_000)
})
