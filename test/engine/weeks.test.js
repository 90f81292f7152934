'use strict'

const { SCENARIOS, judge, simulate } = require('../../bench/weeks')
const { SimulatedService, DAY } = require('../../bench/simulated-service')
const { leastSquares } = require('../../engine/statistics/least-squares')
const { unexplainedGrowth } = require('../../engine/statistics/unexplained-growth')
const { Target } = require('../../engine/history/target')
const { LASTING_LIMITS, judgeLasting } = require('../../engine/diagnoses/lasting-growth')
const { LASTING, History } = require('../../engine/history/history')
const { NO_WORKERS } = require('../../engine/history/tracks')
const { findCase } = require('../../engine/verdicts/case')
const { evaluate } = require('../../engine/verdicts/evaluate')

const { defined } = require('../support/defined')

const HOUR = 3600

/**
 * Readings every ten minutes.
 * @param {number} hours
 * @param {(hour: number, i: number) => number} read
 */
const readings = (hours, read) => Array.from({ length: hours * 6 }, (_, i) => read(i / 6, i))
/** Reproducible noise around 0. @param {number} i */
const noise = i => Math.sin(i * 12.9898) * 43758.5453 % 1

describe('leastSquares', () => {
  it('finds the coefficients of a sum', () => {
    const a = Float64Array.from({ length: 50 }, (_, i) => Math.cos(i))
    const b = Float64Array.from({ length: 50 }, (_, i) => Math.sin(3 * i))
    const found = defined(leastSquares([a, b], a.map((value, i) => 2 * value - 5 * b[i])))
    expect(found.coefficients[0]).toBeCloseTo(2)
    expect(found.coefficients[1]).toBeCloseTo(-5)
    expect(found.errors[0]).toBeCloseTo(0)
  })
  it('is undefined for equal regressors', () => {
    const a = Float64Array.from([1, 2, 3, 4, 5])
    expect(leastSquares([a, a], a)).toBeNull()
  })
  it('is less certain if neighbouring residuals are similar', () => {
    const line = Float64Array.from({ length: 100 }, (_, i) => i - 49.5)
    const alternating = line.map((value, i) => value + (i % 2 ? 5 : -5))
    const inRows = line.map((value, i) => value + (i % 20 < 10 ? 5 : -5))
    expect(defined(leastSquares([line], inRows)).errors[0]).toBeGreaterThan(
      2 * defined(leastSquares([line], alternating)).errors[0]
    )
  })
})

describe('unexplainedGrowth', () => {
  const growthOf = (hours, level, loads = []) => unexplainedGrowth({
    times: readings(hours, hour => hour * HOUR),
    level: readings(hours, (hour, i) => level(hour) + 4 * noise(i)),
    loads
  })
  const load = hour => (1 - Math.cos(2 * Math.PI * hour / 24)) / 2
  const grow = (hours, level, loads = []) => defined(growthOf(hours, level, loads))
  const score = ({ slope, error }) => slope / error

  it('separates a leak from the load within a day', () => {
    const { slope, loadSwing } = grow(18, hour => 560 + 300 * load(hour) + 2 * hour, [
      readings(18, load)
    ])
    expect(slope * HOUR).toBeGreaterThan(1.5)
    expect(slope * HOUR).toBeLessThan(2.5)
    expect(loadSwing).toBeGreaterThan(200)
  })
  it.each([30, 48, 100])(
    'finds no growth in a daily swing with unknown load, in %i hours',
    hours => {
      expect(score(grow(hours, hour => 560 + 300 * load(hour)))).toBeLessThan(4)
    }
  )
  it.each([30, 48, 100])(
    'finds 2 an hour below a swing of 300 with unknown load, in %i hours',
    hours => {
      const found = grow(hours, hour => 560 + 300 * load(hour) + 2 * hour)
      expect(score(found)).toBeGreaterThan(6)
      expect(found.slope * HOUR).toBeCloseTo(2, 0)
    }
  )
  it('counts consecutive days with growth up to now', () => {
    expect(grow(100, hour => 2 * hour).steadyDays).toBe(3)
    expect(grow(100, hour => 2 * Math.min(hour, 60)).steadyDays).toBe(0)
    expect(grow(30, hour => 2 * hour).steadyDays).toBeNull()
  })
  it('distinguishes a cache that levels off from a line that continues', () => {
    expect(grow(12, hour => 300 * (1 - Math.exp(-hour / 3))).lateRatio).toBeLessThan(0.6)
    expect(grow(12, hour => 20 * hour).lateRatio).toBeGreaterThan(0.9)
  })
  it('names a cache that fills beside an unknown daily load as a possible cause', () => {
    const fill = (/** @type {number} */ hour) => 137 * (1 - Math.exp(-hour / 1.5))
    const { slope, leastRatio } = grow(21, hour => 475 + 71 * load(hour + 12) + fill(hour))
    expect(slope * HOUR).toBeGreaterThan(2)
    expect(leastRatio).toBeLessThan(0.5)
    expect(grow(21, hour => 475 + 71 * load(hour + 12) + 6 * hour).leastRatio).toBeGreaterThan(0.5)
  })
  it('names a steadily rising load as a possible cause', () => {
    const risen = grow(6, hour => 560 + 20 * hour, [
      readings(6, (hour, i) => 1 + hour + 0.01 * noise(7 * i))
    ])
    const flat = grow(6, hour => 560 + 20 * hour, [readings(6, (_, i) => 1 + 0.01 * noise(7 * i))])
    expect(risen.leastRatio).toBeLessThan(0.5)
    expect(flat.leastRatio).toBeGreaterThan(0.7)
  })
  it('is unknown with few readings', () => {
    expect(growthOf(1, hour => hour)).toBeNull()
    expect(growthOf(2, hour => hour)).not.toBeNull()
  })
})

describe('growth over days', () => {
  const MIB = 2 ** 20
  /** @param {Partial<import('../../engine/signals/lasting').LastingTrend>} trend */
  const judged = trend => judgeLasting(
    /** @type {any} */ ({
      slope: 4 * MIB / HOUR,
      rise: 150 * MIB,
      seconds: 40 * HOUR,
      score: 2.5,
      steadyDays: 1,
      lateRatio: 0.5,
      bendRatio: 1,
      aboveAllDays: null,
      loadSwing: 0,
      ...trend
    }),
    { peakRunway: 4000 * MIB, limitInSeconds: null },
    { ...LASTING_LIMITS, runwayShareRatio: 0.4, certainRiseBytes: 400 * MIB },
    'it'
  )
  it.each([
    [{}, true],
    [{ score: 1.5 }, false],
    [{ steadyDays: 0 }, false],
    [{ rise: 20 * MIB }, false],
    [{ seconds: 43 * HOUR }, false],
    [{ lateRatio: 0.2 }, false],
    // Growth that is certainly none of the load keeps a certain finding, however far the limit is.
    [{ score: 7, lateRatio: 1 }, true],
    [{ score: 5, lateRatio: 1 }, false]
  ])('%j keeps an earlier finding: %s', (trend, keeps) => {
    expect(judged(trend).keeps).toBe(keeps)
  })
})

describe('History', () => {
  it('holds a week in rows of ten minutes: medians, peaks of RSS, counters as rates', () => {
    const history = new History()
    for (let t = 60; t <= 9 * DAY; t += 60) {
      const values = {
        rssBytes: 1000 + (t % 600 < 60 ? 500 : 0),
        liveHeapBytes: 1000 + (t % 600 < 60 ? 500 : 0),
        cpuUserSeconds: t / 4,
        cpuSystemSeconds: 0
      }
      history.append(t, { values, workers: NO_WORKERS })
    }
    const { times, columns } = history.lasting()
    expect(times).toHaveLength(LASTING.rows)
    expect(defined(times.at(-1)) - times[0]).toBeGreaterThan(7 * DAY)
    expect(new Set(columns.liveHeapBytes)).toEqual(new Set([1000]))
    expect(new Set(columns.rssBytes)).toEqual(new Set([1500]))
    expect(columns.workSeconds.at(-1)).toBeCloseTo(0.25, 2)
    expect(columns.outsideHeapBytes.every(Number.isNaN)).toBe(true)
  })
  it('holds peaks of RSS that last a few seconds', () => {
    const history = new History()
    for (let t = 5; t <= 1300; t += 5) {
      history.append(t, {
        values: { rssBytes: 500 + 10 * (t % 30) },
        workers: NO_WORKERS
      })
    }
    expect(history.lasting().columns.rssBytes).toEqual([750, 750])
  })
  it('restores it from saved rows', () => {
    const service = new SimulatedService({ heapLeak: 5, swing: 100 })
    const target = new Target({ hello: service.hello, name: 'api', thread: 'main' })
    for (let t = 60; t <= 1.5 * DAY; t += 60) {
      target.take(service.frame(t), service.hello.startedAtUnixMs + 1000 * t)
    }
    target.flight.seal()
    const restored = new Target({ hello: service.hello, name: 'api', thread: 'main' })
    restored.restore({ ...target.kept(Infinity), seconds: [], blocks: target.flight.sealed })
    const [then, now] = [target, restored].map(({ lastingHistory }) => lastingHistory)
    expect(now.times.length).toBeGreaterThanOrEqual(then.times.length - 1)
    expect(now.columns.liveHeapBytes[100]).toBeCloseTo(then.columns.liveHeapBytes[100], -3)
  })
})

describe('a service that lives for days', () => {
  const named = name => defined(SCENARIOS.find(scenario => scenario.name === name))
  it.each([
    ['healthy, swing 300', 2.1],
    ['leak 2, swing 300', 2.6],
    ['leak 20, flat, 1 GiB', 1],
    ['native 3, swing 200', 2.6],
    ['healthy, cache of 300 fills in a night', 1.5],
    ['healthy, Buffers swing up to the room beside the heap', 2.1],
    ['healthy, rises by 295 in an hour, load unseen', 0.5],
    ['healthy, cache of 284 fills in hours, small heap', 0.2],
    ['healthy, cache of 111 fills beside a morning', 0.6],
    ['native 2, quiet weekends, garbage of minutes', 3.8],
    ['leak 4 by request, office hours, weekends', 2.8]
  ])('%s: judged in time, right, and without reversals', (name, days) => {
    const options = { days, frameSeconds: 60, judgeSeconds: 300 }
    expect(judge(named(name), simulate(named(name), options)).broken).toEqual([])
  })
  it('is no finding any more days after its growth ended', () => {
    const service = { fill: 400, fillHours: 30, limit: 2048, heapLimit: 1434, base: 300, seed: 3 }
    const { changes } = simulate(service, { days: 7.2, frameSeconds: 120, judgeSeconds: 1800 })
    const states = changes.filter(({ diagnosis }) => diagnosis === 'js-heap-leak')
      .map(({ state }) => state)
    expect(states.slice(-2)).toEqual(['confirmed', 'ok'])
  })
  it('does not change its state for a rise that passes within minutes', () => {
    const service = named('healthy, swing 300, 1.5 GiB')
    expect(judge(service, simulate(service, { days: 1 })).broken).toEqual([])
  })
  it('is never judged as leaking if its sockets follow the daily load', () => {
    const service = named('native 15, swing 280, starts at seven')
    const { changes } = simulate(service, { days: 10 / 24 })
    expect(changes.map(({ diagnosis }) => diagnosis)).toContain('native-memory-leak')
    expect(changes.filter(({ diagnosis, state }) =>
      diagnosis === 'resource-leak' && state !== 'ok')).toEqual([])
  })
  it('has no time to the limit predicted from a cache that fills', () => {
    const service = named('healthy, cache of 254 fills in an hour')
    const said = simulate(service, { days: 0.2 })
    expect(said.changes.map(({ state }) => state)).toContain('suspected')
    expect(judge(service, { ...said, changes: [], untilSeconds: 0 }).broken
      .filter(text => text.includes('times to the limit'))).toEqual([])
  })
  it('is no leak since its start, though its first frame came after half a minute', () => {
    const service = named('healthy, rises by 295 in an hour, load unseen')
    const states = simulate(service, { days: 0.28 }).changes
      .filter(({ diagnosis }) => diagnosis === 'js-heap-leak')
      .map(({ state }) => state)
    expect(states).toEqual(['ok', 'suspected'])
  })
  it('keeps a finding about its container while RSS rises and falls with garbage', () => {
    const service = named('healthy, RSS near the container limit by day')
    const { changes } = simulate(service, { days: 2.7 })
    const states = changes.filter(({ diagnosis }) => diagnosis === 'container-limit-mismatch')
      .map(({ state }) => state)
    expect(states[0]).toBe('ok')
    expect(states.slice(1)).toEqual(['suspected', 'confirmed'])
  })
  it('has its time to the limit predicted by the peak of a typical day', () => {
    const service = named('leak 5, swing 200, 2 GiB')
    const { times, endSeconds } = simulate(service, {
      days: 5.5, frameSeconds: 120, judgeSeconds: 1800
    })
    expect(times.length).toBeGreaterThan(50)
    expect(judge(service, { changes: [], times, endSeconds, untilSeconds: 0 }).broken
      .filter(text => text.includes('times to the limit'))).toEqual([])
  })
  /**
   * Verdict about the live heap of a service, some hours before its end.
   * @param {import('../../bench/simulated-service').Service} service
   * @param {number} hoursLeft
   * @param {string[]} [without] fields that its frames lack
   */
  function heapVerdict (service, hoursLeft, without = []) {
    const simulated = new SimulatedService(service)
    const target = new Target({ hello: simulated.hello, name: 'api', thread: 'main' })
    const until = simulated.endSeconds(30) - 3600 * hoursLeft
    for (let t = 60; t <= until; t += 60) {
      const frame = simulated.frame(t)
      for (const name of without) delete frame.values[name]
      target.take(frame, simulated.hello.startedAtUnixMs + 1000 * t)
      if (t % 600 === 0) evaluate(target, { everySeconds: 0 })
    }
    return defined(findCase(target).verdicts.find(({ diagnosis }) => diagnosis === 'js-heap-leak'))
  }
  it('names the limit that its leak of objects reaches first, with its time and room', () => {
    const { state, summary, impact } = heapVerdict({
      heapLeak: 5, base: 200, swing: 40, limit: 1000, heapLimit: 750, majorsSeconds: 600
    }, 8)
    expect(state).toBe('confirmed')
    expect(summary).toMatch(/reaches the container limit in about \d/)
    const told = /room for (\d+) MiB below the container limit.* in about ([\d.]+) h/
    const [, room, hours] = defined(told.exec(impact ?? ''))
    expect(Number(hours)).toBeGreaterThan(4)
    expect(Number(hours)).toBeLessThan(12)
    // The heap size limit leaves far more.
    expect(Number(room) / 5).toBeLessThan(Number(hours))
  })
  it.each([
    ['began after a week, in the time of its own days', 192],
    ['began at the start', 0]
  ])('has a time to the limit of a leak that %s', (_, beginHours) => {
    const simulated = new SimulatedService({
      base: 300, swing: 50, heapLimit: 2000, limit: 4096, startDay: 0
    })
    const target = new Target({ hello: simulated.hello, name: 'api', thread: 'main' })
    const RATE = 10 * 2 ** 20 / HOUR
    const verdict = () => defined(
      findCase(target).verdicts.find(({ diagnosis }) => diagnosis === 'js-heap-leak')
    )
    for (let t = 120; t <= (beginHours + 72) * HOUR; t += 120) {
      const frame = simulated.frame(t)
      const everySeconds = t < (beginHours - 24) * HOUR ? 3 * HOUR : 1800
      const leaked = RATE * Math.max(0, t - beginHours * HOUR)
      for (const field of ['rssBytes', 'rssAnonBytes', 'heapUsedBytes', 'heapTotalBytes',
        'heapPhysicalBytes', 'liveHeapBytes']) {
        if (frame.values[field] !== undefined) frame.values[field] += leaked
      }
      target.take(frame, simulated.hello.startedAtUnixMs + 1000 * t)
      if (t % everySeconds === 0) evaluate(target, { everySeconds: 0 })
    }
    const { heap } = simulated.limits
    const left = (heap - 350 * 2 ** 20) / RATE - 72 * HOUR
    expect(verdict().state).toBe('confirmed')
    expect(defined(verdict().secondsLeft)).toBeGreaterThan(0.8 * left)
    expect(defined(verdict().secondsLeft)).toBeLessThan(1.2 * left)
  })
  it('has a time to the limit in a worker, which does not report RSS', () => {
    const { summary } = heapVerdict(
      { heapLeak: 10, base: 200, swing: 40, limit: 4096, heapLimit: 900 },
      12,
      ['rssBytes', 'rssAnonBytes', 'rssFileBytes', 'containerLimitBytes', 'containerUsageBytes']
    )
    expect(summary).toMatch(/reaches the heap size limit in about \d/)
  })
})
