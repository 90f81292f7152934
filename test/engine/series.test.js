'use strict'

const { Columns } = require('../../engine/history/columns')
const { PackedColumns, ROWS } = require('../../engine/history/packed-columns')
const { History } = require('../../engine/history/history')
const { NO_WORKERS } = require('../../engine/history/tracks')
const { Target } = require('../../engine/history/target')
const { Targets } = require('../../engine/history/targets')
const { judge } = require('../../engine/verdicts/judge')
const { diagnoses } = require('../../engine/diagnoses')
const { nameOf } = require('../../engine/signals/names')
const { figures, signalsOf } = require('../../engine/signals')
const { merge } = require('../../engine/history/keep')
const { hello, frame, gcRow, MIB } = require('../support/frames')
const { openSession } = require('../support/open-session')
const { defined } = require('../support/defined')

describe('PackedColumns', () => {
  /**
   * Values of columns by row: one for each packed form, and values that must not be rounded.
   * @type {((i: number) => number)[]}
   */
  const KINDS = [
    () => 4096,
    i => 4096 * i,
    i => 2 ** 40 + 8 * i,
    i => 2 ** 40 + i * 2 ** 30 + 1,
    i => i / 3,
    i => (i % 7 === 0 ? NaN : i),
    () => NaN,
    i => (i < 50 ? NaN : 5),
    i => (i === 61 ? 0.1 : 1),
    i => (i % 2 === 0 ? 0 : -0),
    i => Number.MAX_SAFE_INTEGER - i,
    i => (i % 3 === 0 ? Infinity : i),
    i => 1e300 * i
  ]
  it.each([1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 599, 600, 601, 1300])(
    'have the same content as Columns after %i rows',
    rows => {
      const [packed, plain] = [PackedColumns, Columns].map(
        Kind => new Kind({ capacity: 600, width: KINDS.length })
      )
      for (let i = 0; i < rows; i++) {
        for (const columns of [packed, plain]) {
          columns.append(
            i + 0.1,
            KINDS.map(kind => kind(i))
          )
        }
      }
      expect(packed.length).toBe(Math.min(600, rows))
      for (let i = 0; i < packed.length; i++) {
        expect(packed.timeAt(i)).toBe(plain.timeAt(i))
        for (let c = 0; c < KINDS.length; c++) {
          if (!Object.is(packed.valueAt(i, c), plain.valueAt(i, c))) {
            throw new Error(
              `row ${i}, column ${c}: ${packed.valueAt(i, c)}, not ${plain.valueAt(i, c)}`
            )
          }
        }
      }
      for (const time of [-1, 0.1, 39, 40.1, 41, 300.5, rows - 1, rows, rows + 5]) {
        const from = packed.firstSince(time)
        expect(from).toBe(plain.firstSince(time))
        for (let c = 0; c < KINDS.length; c++) {
          expect(packed.pointsFrom(c, from)).toEqual(plain.pointsFrom(c, from))
        }
      }
    }
  )
  it('take less than half of the memory if most numbers are constant or bytes', () => {
    const WIDTH = 40
    const before = process.memoryUsage().arrayBuffers
    const packed = new PackedColumns({ capacity: 600, width: WIDTH })
    for (let i = 0; i < 600; i++) {
      packed.append(
        i,
        Array.from({ length: WIDTH }, (_, c) => (c < 20 ? 7 : c < 35 ? 4096 * (i % 50) * c : i / 7))
      )
    }
    expect(packed.length).toBe(600)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(600 * WIDTH * 8 / 2)
  })
})

describe('Columns', () => {
  it('grows to its capacity, then overwrites the oldest row', () => {
    const columns = new Columns({ capacity: 100, width: 2 })
    for (let t = 0; t < 250; t++) columns.append(t, [t, -t])
    expect(columns.length).toBe(100)
    expect(columns.timeAt(0)).toBe(150)
    expect(columns.valueAt(99, 1)).toBe(-249)
  })
})

describe('History', () => {
  const moment = values => ({ values, workers: NO_WORKERS })
  const filled = seconds => {
    const history = new History()
    for (let t = 1; t <= seconds; t++) {
      history.append(t, moment({ eventLoopActiveSeconds: t, rssBytes: 1000 + (t % 10) }))
    }
    return history
  }
  it('reads the last minutes second by second', () => {
    expect(filled(500).points('eventLoopActiveSeconds', 440).values).toEqual(
      Array.from({ length: 61 }, (_, i) => 440 + i)
    )
  })
  it('reads hours from a coarser tier, with the lowest value of a lower bound', () => {
    const { times, values } = filled(5000).points('rssBytes', 0)
    expect(times.length).toBeLessThan(600)
    expect(times[0]).toBeLessThan(20)
    expect(Math.max(...values.slice(1))).toBe(1000)
  })
  it('omits rows without a value of a track', () => {
    const history = new History()
    history.append(1, moment({ rssBytes: 1 }))
    history.append(2, moment({}))
    history.append(3, moment({ rssBytes: 3 }))
    expect(history.points('rssBytes', 0)).toEqual({ times: [1, 3], values: [1, 3] })
    expect(history.points('liveHeapBytes', 0).values).toEqual([])
  })
})

describe('a coarser step', () => {
  it.each(/** @type {[import('../../engine/history/keep').Keep, number, number, number][]} */ ([
    ['last', 5, 3, 3], ['last', 5, NaN, 5], ['last', NaN, NaN, NaN],
    ['min', 5, 3, 3], ['min', 3, 5, 3], ['min', NaN, 5, 5], ['min', 5, NaN, 5],
    ['max', 5, 3, 5], ['max', 3, 5, 5], ['max', NaN, 5, 5], ['max', 5, NaN, 5]
  ]))('with the rule %s contains, after %d and %d, %d', (keep, before, value, kept) => {
    expect(merge(keep, before, value)).toBe(kept)
  })
})

describe('a trend', () => {
  const target = new Target({ hello: hello(), name: 'a', thread: 'main' })
  for (let second = 1; second <= 100; second++) {
    const values = { resources: { Timeout: 3 * second } }
    target.take(frame({ sequence: second, uptimeSeconds: second, values }), 1000 * second)
  }
  const signals = signalsOf(defined(target.window()))

  it('is one signal whose numbers have names and units', () => {
    expect(signals.timersTrend).toMatchObject({ slope: 3, fit: 1, steadinessRatio: 1 })
    expect(
      ['timersRise', 'timersPerSecond', 'timersSteadinessRatio'].map(name => [
        figures[name].unit,
        figures[name].read(signals)
      ])
    ).toEqual([
      ['count', defined(signals.timersTrend).rise],
      ['perSecond', 3],
      ['ratio', 1]
    ])
  })
  it('has only unknown numbers if it is unknown', () => {
    expect(signals.nativeContextsTrend).toBeNull()
    expect(figures.nativeContextsRise.read(signals)).toBeNull()
  })
})

describe('a rate over rare frames', () => {
  /**
   * @param {number[]} seconds times of the frames; ten scavenges a second
   */
  const windowOf = (...seconds) => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    seconds.forEach((second, i) => target.take(
      frame({
        sequence: i + 1,
        uptimeSeconds: second,
        values: { gc: { 'minor/ordinary': gcRow(10 * second, second / 100) } }
      }),
      1000 * second
    ))
    return /** @type {import('../../engine/history/window').Window} */ (target.window())
  }
  it.each([
    ['covers the window, if it contains two frames', [5, 100, 105, 107], 7],
    ['covers the time since the frame before, if it contains one', [5, 100, 119], 19],
    ['is unknown, if the frame before is too old', [5, 126], undefined],
    ['is unknown after one frame', [5], undefined]
  ])('%s', (_, seconds, overSeconds) => {
    const grown = windowOf(...seconds).increase('scavenges', 8)
    expect(grown).toEqual(overSeconds ? { increase: 10 * overSeconds, overSeconds } : null)
  })
})

describe('the time to the heap limit of 512 MiB', () => {
  /**
   * @param {number[]} majors times of the major GCs
   * @param {number} seconds
   * @param {(at: number) => number} live MiB after a major GC
   * @param {(second: number) => number} [used] MiB
   */
  function secondsLeft (majors, seconds, live, used) {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    for (let second = 1; second <= seconds; second++) {
      const last = majors.findLast(at => at <= second)
      target.take(
        frame({
          sequence: second,
          uptimeSeconds: second,
          values: {
            heapSizeLimitBytes: 512 * MIB,
            ...(used && { heapUsedBytes: used(second) * MIB }),
            ...(last && {
              liveHeapBytes: live(last) * MIB, liveHeapMajors: majors.indexOf(last) + 1
            })
          }
        }),
        1000 * second
      )
    }
    return signalsOf(/** @type {any} */ (target.window())).heapLimitSecondsLeft
  }
  it('counts each reading of the live heap at its own time', () => {
    const majors = [10, 20, 120, 172, 180, 181, 190]
    expect(secondsLeft(majors, 198, at => 200 + at / 2)).toBeGreaterThan(300)
  })
  it('counts no objects that only left the new space', () => {
    // The load ends at 8 s. The major GC at 14 s finds 20 MiB more in the old space.
    const majors = [2, 4, 6, 8, 14]
    const live = at => at < 14 ? 200 + 20 * at : 380
    const used = young => second => second <= 8 ? 200 + 20 * second + young : 380
    expect(secondsLeft(majors, 14, live, used(0))).toBeLessThan(60)
    expect(secondsLeft(majors, 14, live, used(20))).toBeNull()
  })
})

describe('while the agent does not observe GCs', () => {
  /**
   * Simulates ten scavenges per second, which are not counted in seconds for which `isBlind` is
   * true.
   * @param {(second: number) => boolean} isBlind
   * @param {number} seconds
   */
  const windowAfter = (isBlind, seconds) => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    let counted = 0
    let unobservedSeconds = 0
    for (let second = 1; second <= seconds; second++) {
      const blind = isBlind(second)
      if (blind) unobservedSeconds++
      else counted += 10
      const gc = { 'minor/ordinary': gcRow(counted, counted / 1000) }
      const said =
        unobservedSeconds > 0
          ? { gcObserverStopped: Number(blind), gcUnobservedSeconds: unobservedSeconds }
          : {}
      target.take(
        frame({
          sequence: second,
          uptimeSeconds: second,
          values: { gc, heapUsedBytes: 1, ...said }
        }),
        1000 * second
      )
    }
    return /** @type {import('../../engine/history/window').Window} */ (target.window())
  }
  it.each([
    [
      'rates cover the time before and after',
      second => second > 90 && second <= 95,
      100,
      10
    ],
    ['rates are unknown if that was most of the time', second => second > 84, 100, null],
    [
      'rates are unknown from the first uncounted second of a long gap',
      second => second > 100 && second <= 160,
      161,
      null
    ],
    [
      'rates are known again after enough counted time',
      second => second > 100 && second <= 160,
      176,
      10
    ],
    ['no event was lost, and the rate covers all seconds', () => false, 100, 10]
  ])('%s', (_, isBlind, seconds, rate) => {
    const window = windowAfter(isBlind, seconds)
    if (rate === null) expect(window.rate('scavenges')).toBeNull()
    else expect(window.rate('scavenges')).toBeCloseTo(rate, 5)
  })
  it('values other than GC counts continue', () => {
    expect(windowAfter(second => second > 10, 100).last('heapUsedBytes')).toBe(1)
  })
  it('rates are unknown if an older agent does not report the unobserved time', () => {
    const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
    for (let second = 1; second <= 60; second++) {
      const gc = { 'minor/ordinary': gcRow(100, 0.1) }
      target.take(
        frame({
          sequence: second,
          uptimeSeconds: second,
          values: { gc, ...(second > 10 && { gcObserverStopped: 1 }) }
        }),
        1000 * second
      )
    }
    expect(target.window()?.rate('scavenges')).toBeNull()
  })
  it('a verdict without GCs is unknown, with the reason', () => {
    const signals = signalsOf(windowAfter(second => second > 100, 200))
    const diagnosis = /** @type {any} */ ({ id: 'x', requires: ['scavengesPerSecond'], uses: [], judge: () => ({ state: 'ok' }) })
    expect(judge(diagnosis, signals, hello()).judgement).toMatchObject({
      state: 'unknown',
      openUntil: 'readings',
      summary: expect.stringMatching(
        /^not known yet: rate of scavenges \(GCs were not observed for 30 s because/
      )
    })
  })
  it('missing signals are named in words, grouped by expected time', () => {
    const signals = signalsOf(windowAfter(() => false, 5))
    const requires = ['gcsLastMinute', 'liveHeapBytes', 'lastMinuteUtilizationRatio']
    const diagnosis = /** @type {any} */ ({ id: 'x', requires, uses: [], judge: () => ({ state: 'ok' }) })
    expect(judge(diagnosis, signals, hello()).judgement).toMatchObject({
      state: 'unknown',
      summary: 'not known yet: rate of scavenges, utilization of the event loop (after the first minute); ' +
        'the live heap (after the first major GC)'
    })
  })
  it('each signal that a judge requires has a name in words', () => {
    const required = new Set(diagnoses.flatMap(diagnosis => diagnosis.requires))
    expect([...required].filter(signal => nameOf(signal) === signal)).toEqual([])
  })
})

describe('Targets', () => {
  let now = 0
  const make = options => {
    const targets = new Targets({ now: () => now, ...options })
    const ended = []
    targets.on('end', target => ended.push(target.name))
    return { targets, ended }
  }
  beforeEach(() => { now = 1000 })

  it('threads of one process share its name and are numbered by the lowest free place', () => {
    const { targets } = make()
    for (const threadId of [0, 7, 12]) targets.open(hello({ threadId, startedAtUnixMs: threadId }))
    targets.all.find(target => target.hello.threadId === 7)
    expect(targets.all.map(({ name, thread }) => `${name} ${thread}`)).toEqual([
      'api main',
      'api worker-1',
      'api worker-2'
    ])
  })
  it('a worker that reports before its main thread names the process only until then', () => {
    const { targets } = make()
    targets.open(hello({ pid: 1 }))
    targets.open(hello({ pid: 2, threadId: 1, name: 'job' }))
    expect(targets.all.map(({ name }) => name)).toEqual(['api', 'job'])
    targets.open(hello({ pid: 2 }))
    targets.open(hello({ pid: 2, threadId: 2, name: 'job' }))
    expect(targets.all.map(({ name, thread }) => `${name} ${thread}`)).toEqual([
      'api main',
      'api-2 worker-1',
      'api-2 main',
      'api-2 worker-2'
    ])
  })
  it('10,000 worker restarts leave one worker and one name', () => {
    const { targets } = make()
    targets.open(hello())
    for (let threadId = 1; threadId <= 10_000; threadId++) {
      const session = openSession(targets, hello({ threadId, startedAtUnixMs: threadId }))
      session.bye({ exitCode: 0 })
    }
    targets.open(hello({ threadId: 10_001, startedAtUnixMs: 1 }))
    expect(targets.all.map(({ thread }) => thread)).toEqual(['main', 'worker-1'])
  })
  it('a second process of the same app gets a number, and a restart its name back', () => {
    const { targets, ended } = make()
    const first = openSession(targets, hello({ pid: 1 }))
    targets.open(hello({ pid: 2 }))
    expect(targets.all.map(({ name }) => name)).toEqual(['api', 'api-2'])
    first.closed(false)
    targets.open(hello({ pid: 3 }))
    expect(ended).toEqual(['api'])
    expect(targets.all.map(({ name, hello }) => `${name} ${hello.pid}`).sort()).toEqual([
      'api 3',
      'api-2 2'
    ])
  })
  it('two containers may both have a process 1', () => {
    const { targets } = make()
    targets.open(hello({ pid: 1, host: 'pod-a' }))
    targets.open(hello({ pid: 1, host: 'pod-b' }))
    expect(targets.all.map(({ name }) => name)).toEqual(['api', 'api-2'])
  })
  it('a lost connection continues the same target', () => {
    const { targets, ended } = make()
    const first = openSession(targets, hello())
    expect(first.frame(frame({ sequence: 1 }))).toBeUndefined()
    first.closed(false)
    const second = openSession(targets, hello())
    expect(second.frame(frame({ sequence: 5, uptimeSeconds: 5 }))).toBeUndefined()
    expect(ended).toEqual([])
    expect(targets.all[0].framesLost).toBe(3)
  })
  it('a frame that is not newer than the last one is out of order', () => {
    const { targets } = make()
    const session = openSession(targets, hello())
    session.frame(frame({ sequence: 2, uptimeSeconds: 2 }))
    expect(session.frame(frame({ sequence: 2, uptimeSeconds: 2 }))).toBe('out_of_order')
    expect(session.frame(frame({ sequence: 3, uptimeSeconds: 1 }))).toBe('out_of_order')
    expect(session.frame(frame({ sequence: 3, uptimeSeconds: 3 }))).toBeUndefined()
  })
  it('a lost target is down at once, and removed after five minutes without a scrape', () => {
    const { targets, ended } = make()
    const session = openSession(targets, hello())
    session.closed(false)
    expect(targets.all[0].isUp(now)).toBe(false)
    now += 300_000
    targets.expire()
    expect(ended).toEqual([])
    now += 1
    targets.expire()
    expect(ended).toEqual(['api'])
    expect(targets.all).toEqual([])
  })
  it('accepts no more targets than its limit', () => {
    const { targets } = make({ maxTargets: 1 })
    targets.open(hello({ pid: 1 }))
    expect(targets.open(hello({ pid: 2 }))).toBe('too_many_targets')
  })
})
