'use strict'

const { Target } = require('../../engine/history/target')
const { formatSeconds } = require('../../engine/text/format')
const { findCase, isFinding } = require('../../engine/verdicts/case')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { primaryOf } = require('../../engine/verdicts/urgency')
const { severityByTime } = require('../../engine/diagnoses/severity')
const { hello, frame, gcRow, MIB } = require('../support/frames')
const { defined } = require('../support/defined')

/**
 * A target fed one frame each `intervalSeconds`. `at(t)` returns the relevant numbers of frame t.
 * All other numbers belong to a small healthy app in a container of 512 MiB.
 */
function watch ({
  seconds, at, attachedAtSeconds = 0, helloChanges = {}, everySeconds = 0, intervalSeconds = 1,
  onTarget = (_target, _t) => {}
}) {
  const target = new Target({ hello: hello(helloChanges), name: 'api', thread: 'main' })
  const states = new Set()
  const totals = {
    scavenges: 0,
    scavengeSeconds: 0,
    majors: 0,
    majorSeconds: 0,
    externalMajors: 0,
    externalMajorSeconds: 0,
    forcedMajors: 0
  }
  for (let t = 1; t <= seconds; t++) {
    onTarget(target, t)
    const now = {
      liveMib: 10,
      rssMib: 90,
      externalMib: 2,
      nativeMib: 12,
      spanMib: 14,
      semiMib: 1,
      heapLimitMib: 259,
      scavenges: 10,
      scavengeSeconds: 0.02,
      majors: 2,
      majorSeconds: 0.01,
      externalMajors: 0,
      externalMajorSeconds: 0,
      forcedMajors: 0,
      ...at(t)
    }
    for (const name of Object.keys(totals)) totals[name] += now[name]
    const heapMib = now.heapMib ?? now.liveMib + 20
    target.take(
      frame({
        sequence: t,
        uptimeSeconds: attachedAtSeconds + t * intervalSeconds,
        values: {
          rssBytes: now.rssMib * MIB,
          rssAnonBytes: (heapMib + now.externalMib + now.nativeMib) * MIB,
          heapPhysicalBytes: heapMib * MIB,
          externalBytes: now.externalMib * MIB,
          externalPeakBytes: now.externalMib * MIB,
          heapSizeLimitBytes: now.heapLimitMib * MIB,
          containerLimitBytes: 512 * MIB,
          mallocHeapBytes: now.spanMib * MIB,
          mallocArenaBytes: 0,
          ...(totals.majors > 0 && {
            liveHeapBytes: now.liveMib * MIB,
            liveHeapMajors: totals.majors
          }),
          spaces: { new_space: [0, 2 * now.semiMib * MIB, now.semiMib * MIB, 0] },
          ...now.values,
          gc: {
            'minor/ordinary': gcRow(totals.scavenges, totals.scavengeSeconds),
            'major/ordinary': gcRow(totals.majors, totals.majorSeconds),
            'major/external': gcRow(totals.externalMajors, totals.externalMajorSeconds),
            ...(totals.forcedMajors > 0 && {
              'major/memwatch': gcRow(totals.forcedMajors, 0.01 * totals.forcedMajors)
            })
          }
        }
      }),
      0
    )
    evaluate(target, { everySeconds })
    states.add(primaryOf(findCase(target).verdicts)?.diagnosis ?? null)
  }
  const verdict = id =>
    defined(findCase(target).verdicts.find(({ diagnosis }) => diagnosis === id))
  return { primary: primaryOf(findCase(target).verdicts), verdict, ever: states }
}

describe('the heap limit that container-limit-mismatch recommends', () => {
  /**
   * @param {number} liveMib live heap from the 20th second on; before, it is 96 MiB
   * @param {string[]} execArgv
   */
  const fixOf = (liveMib, execArgv) => watch({
    seconds: 40,
    helloChanges: { execArgv },
    at: t => {
      const live = t < 20 ? 96 : liveMib
      return { liveMib: live, heapLimitMib: 780, nativeMib: 290, rssMib: live + 330 }
    }
  }).verdict('container-limit-mismatch').fix
  const byFlag = ['--max-old-space-size=768']
  it('is the same while the live heap hardly grows', () => {
    const early = fixOf(96, byFlag)[0].change.flag
    expect(early).toMatch(/^--max-old-space-size=1\d\d$/)
    expect(fixOf(115, byFlag)[0].change.flag).toBe(early)
  })
  it('gives way to a larger container once the live heap has outgrown it', () => {
    const [{ change: { memoryLimitBytes, flag } }, ...others] = fixOf(166, byFlag)
    expect(others).toEqual([])
    const oldMib = Number(/^--max-old-space-size=(\d+)$/.exec(flag ?? '')?.[1])
    expect(memoryLimitBytes).toBeGreaterThan(512 * MIB)
    expect(oldMib).toBeGreaterThan(166)
    expect(oldMib * MIB).toBeLessThan(defined(memoryLimitBytes) - 290 * MIB)
    expect(fixOf(166, [])[0].change.flag).toBe(undefined)
  })
})

describe('severity follows the risk', () => {
  const HOUR = 3600
  const limits = { criticalSeconds: 8 * HOUR, infoSeconds: 30 * 24 * HOUR }
  it.each([
    [8 * HOUR - 1, 'critical'],
    [8 * HOUR, 'warning'],
    [30 * 24 * HOUR - 1, 'warning'],
    [30 * 24 * HOUR, 'info'],
    [null, 'warning']
  ])('%s seconds to the limit: %s', (secondsLeft, severity) => {
    expect(severityByTime(secondsLeft, limits)).toBe(severity)
  })
  it.each([
    [1000, 'critical'], [100_000, 'warning'], [4_000_000, 'info']
  ])('the same leak under a limit of %i MiB is %s', (heapLimitMib, severity) => {
    const at = t => ({
      liveMib: 10 + 0.8 * t,
      heapLimitMib,
      values: { containerLimitBytes: undefined }
    })
    const { verdict } = watch({ seconds: 100, at })
    expect(verdict('js-heap-leak')).toMatchObject({ state: 'suspected', severity })
  })
  it.each([
    [512, 90, 'ok', 'warning'],
    [513, 90, 'confirmed', 'info'],
    [513, 358, 'confirmed', 'info'],
    [513, 359, 'confirmed', 'warning']
  ])(
    'a heap of %i MiB in a container of 512, at %i MiB of RSS: %s, %s',
    (heapLimitMib, rssMib, state, severity) => {
      const { verdict } = watch({ seconds: 20, at: () => ({ heapLimitMib, rssMib }) })
      expect(verdict('container-limit-mismatch')).toMatchObject({ state, severity })
    }
  )
  it.each([[0, false], [1, true]])(
    'a heap over its container, after %i full GCs of memwatch in a second: says so: %s',
    (forcedMajors, says) => {
      const at = () => ({ heapLimitMib: 2048, rssMib: 200, forcedMajors })
      const { impact } = watch({ seconds: 20, at }).verdict('container-limit-mismatch')
      expect(impact?.includes('Full GCs that memwatch ran keep the heap smaller')).toBe(says)
    }
  )
  it('says that V8 chose the size if Node.js knew the limit', () => {
    const { verdict } = watch({
      seconds: 20,
      at: () => ({ heapLimitMib: 259, values: { containerLimitBytes: 256 * MIB } }),
      helloChanges: { constrainedBytes: 256 * MIB }
    })
    expect(verdict('container-limit-mismatch')).toMatchObject({
      state: 'confirmed',
      severity: 'info'
    })
    expect(verdict('container-limit-mismatch').evidence.map(({ text }) => text)).toContain(
      'Node 20.20.2 saw the limit at start, and V8 chose this heap size for it.'
    )
  })
  it.each([
    [300, 'warning'], [4096, 'info']
  ])('memory that waits for a GC in a container of %i MiB is %s', (limitMib, severity) => {
    const at = t => ({
      externalMib: t % 2 ? 90 : 4,
      rssMib: 180,
      externalMajors: 3,
      externalMajorSeconds: 0.015,
      values: { containerLimitBytes: limitMib * MIB }
    })
    expect(watch({ seconds: 40, at }).verdict('array-buffer-pile-up')).toMatchObject({
      state: 'confirmed',
      severity
    })
  })
  it.each([
    [512, 'warning'], [4096, 'info']
  ])('memory that malloc keeps in a container of %i MiB is %s', (limitMib, severity) => {
    const at = t => ({
      rssMib: 320,
      nativeMib: 220,
      spanMib: 240,
      externalMib: t % 20 < 10 ? 5 : 160,
      values: { containerLimitBytes: limitMib * MIB }
    })
    expect(watch({ seconds: 120, at }).verdict('allocator-fragmentation')).toMatchObject({
      state: 'confirmed',
      severity
    })
  })
})

describe('memory that malloc retains, if malloc can be queried', () => {
  const confirmedAt = allocatorAccess => {
    let at = null
    watch({
      seconds: 135,
      at: t => ({ rssMib: 320, nativeMib: 220, spanMib: 240, externalMib: t % 20 < 10 ? 5 : 160 }),
      helloChanges: { allocatorAccess },
      onTarget: (target, t) => {
        const { state } = findCase(target).verdicts.find(({ diagnosis }) =>
          diagnosis === 'allocator-fragmentation') ?? {}
        if (state === 'confirmed') at ??= t
      }
    })
    return at
  }
  it('is suspected until its answer, which comes within two minutes or never', () => {
    expect(confirmedAt(undefined)).toBeLessThan(60)
    expect(confirmedAt('addon')).toBeGreaterThan(120)
  })
})

describe('js-heap-leak', () => {
  const leak = { seconds: 290, at: t => ({ liveMib: 10 + 0.8 * t }) }

  it('is confirmed after a straight rise over four fifths of the way to the limit', () => {
    const { primary } = watch(leak)
    expect(primary).toMatchObject({
      diagnosis: 'js-heap-leak',
      state: 'confirmed',
      severity: 'critical'
    })
    expect(defined(primary).confirmedAfterSeconds).toBeGreaterThan(200)
    expect(defined(primary).confirmedAfterSeconds).toBeLessThan(280)
  })
  it('says that it may be a cache until it is confirmed', () => {
    const { verdict } = watch({ ...leak, seconds: 150 })
    expect(verdict('js-heap-leak')).toMatchObject({
      state: 'suspected',
      summary: expect.stringContaining(': a leak, or a cache that still fills.')
    })
    expect(defined(watch(leak).primary).summary).not.toContain('cache')
  })
  it('is confirmed at two fifths of the way, after a time in which caches are full', () => {
    const { primary } = watch({ seconds: 1200, at: t => ({ liveMib: 10 + 0.15 * t }) })
    expect(primary).toMatchObject({ diagnosis: 'js-heap-leak', state: 'confirmed' })
    expect(defined(primary).confirmedAfterSeconds).toBeGreaterThan(600)
  })
  it('names the limit that is reached first', () => {
    expect(defined(watch(leak).primary).summary).toContain('reaches the heap size limit in about')
    expect(
      defined(
        watch({
          seconds: 200,
          at: t => ({ liveMib: 10 + 0.8 * t, rssMib: 400 + t, heapLimitMib: 400 })
        }).primary
      ).summary
    ).toContain('reaches the container limit in about')
  })
  it.each([[100, 0, 100], [100, 60, 40], [100, 100, Infinity], [100, 300, Infinity], [0, 60, 0]])(
    'a limit %d s away at the last reading, %d s ago, is reached in %d s', (away, age, left) => {
      const { secondsToFill } = require('../../engine/diagnoses/js-heap-leak-line')
      const { limits } = require('../../engine/diagnoses/js-heap-leak')
      const signals = { liveHeapAgeSeconds: age, heapLimitSecondsLeft: null }
      expect(secondsToFill(/** @type {any} */ (signals), limits, away * MIB, MIB, 1)).toBe(left)
    }
  )
  it.each([
    ['confirmed', 'explains the live heap', 0.05, 190],
    ['suspected', 'explains two thirds of it', 0.05, 270],
    ['suspected', 'would have filled more', 0.09, 230]
  ])('is %s soon after an attach if its rate since the start %s', (state, _, rate, fromMib) => {
    const { verdict } = watch({
      attachedAtSeconds: 3600,
      seconds: 150,
      at: t => ({ heapLimitMib: 330, liveMib: fromMib + rate * t })
    })
    const { state: found, evidence } = verdict('js-heap-leak')
    expect([found, evidence.some(({ text }) => text.includes('since the start'))])
      .toEqual([state, state === 'confirmed'])
  })
  it('is no finding in a heap that grows little while native memory fills the container', () => {
    const { verdict, primary } = watch({
      seconds: 95,
      at: t => ({ liveMib: 10 + 0.03 * t, nativeMib: 12 + 4.5 * t, rssMib: 70 + 4.53 * t })
    })
    expect(defined(primary)).toMatchObject({ diagnosis: 'native-memory-leak', state: 'confirmed' })
    expect(verdict('js-heap-leak').state).toBe('unknown')
  })
  it.each([
    [[], true],
    [['force_gc'], false]
  ])('with the commands %j names the setting that gives readings: %s', (commands, names) => {
    const { verdict } = watch({
      seconds: 120,
      helloChanges: { commands },
      at: t => ({ majors: t === 60 ? 1 : 0 })
    })
    expect(verdict('js-heap-leak').state).toBe('unknown')
    expect(verdict('js-heap-leak').summary.includes('MEMWATCH_FORCED_GC=allow')).toBe(names)
  })
  it('is confirmed for a leak a hundred times slower, a hundred times later', () => {
    const { verdict } = watch({ seconds: 20_000, at: t => ({ liveMib: 10 + 0.008 * t }) })
    expect(verdict('js-heap-leak').confirmedAfterSeconds).toBeGreaterThan(8000)
  })
  it.each([
    ['a flat heap', { seconds: 120, at: () => ({}) }],
    [
      'a cache that fills in 40 s and stays',
      { seconds: 120, at: t => ({ liveMib: 27 + 2.1 * Math.min(t, 40) }) }
    ],
    [
      'a cache of 150 MiB that fills in four minutes and stays',
      { seconds: 500, at: t => ({ liveMib: 15 + 150 * Math.min(t / 240, 1) }) }
    ],
    [
      'a cache of 180 MiB that fills in ten minutes and stays',
      { seconds: 1200, at: t => ({ liveMib: 15 + 180 * Math.min(t / 600, 1) }) }
    ],
    [
      'a cache of 200 MiB in Buffers that fills in five minutes and stays',
      {
        seconds: 600,
        at: t => {
          const mib = 200 * Math.min(t / 300, 1)
          return {
            externalMib: 2 + mib,
            rssMib: 60 + mib,
            values: { arrayBuffersBytes: mib * MIB }
          }
        }
      }
    ],
    [
      'a cache that fills ever slower',
      { seconds: 300, at: t => ({ liveMib: 100 - 80 * Math.exp(-t / 60) }) }
    ],
    [
      'a cache that fills for an hour to a fifth of the limit',
      { seconds: 4000, at: t => ({ liveMib: 10 + (Math.min(t, 3600) * 50) / 3600 }) }
    ],
    ['a saw of batches', { seconds: 300, at: t => ({ liveMib: 10 + 3 * (t % 15) }) }],
    ['waves of a TTL cache', { seconds: 300, at: t => ({ liveMib: 50 + 30 * Math.sin(t / 20) }) }],
    [
      'load that ramps up and stays',
      { seconds: 200, at: t => ({ liveMib: 10 + Math.min(t, 60) * 0.4 }) }
    ]
  ])('is never even suspected for %s', (_, app) => {
    expect([...watch(app).ever]).toEqual([null])
  })
  it.each([
    [10, 0.3, 0.9, 9, 'unknown'],
    [10, 0.9, 0.3, 9, 'unknown'],
    [10, 0.3, 0.3, 9, 'unknown'],
    [10, 0.3, 0.3, 10, 'ok'],
    [60, 0.05, 0.05, 9, 'ok'],
    [60, 0.3, 0.9, 9, 'unknown'],
    [60, 0.9, 0.3, 9, 'unknown'],
    [60, 0.3, 0.9, 12, 'ok'],
    [60, 0.9, 0.3, 12, 'ok']
  ])('growth of %d MiB whose last third is %s of it and whose later half %s, by %d readings: %s',
    (rise, lateRatio, halvesRatio, liveHeapReadings, state) => {
      const { judge, limits } = require('../../engine/diagnoses/js-heap-leak')
      const trend = { rise: rise * MIB, slope: MIB / 4, seconds: 4 * rise, fit: 0.95, score: 4 }
      const signals = {
        liveHeapBytes: 80 * MIB,
        liveHeapReadings,
        liveHeapTrend: { ...trend, lateRatio, halvesRatio, steadinessRatio: 0.5 },
        heapRunwayBytes: 400 * MIB,
        promotedKeptRatio: null,
        keptTrend: null,
        liveHeapEarlierHighBytes: null,
        liveHeapLoadShareRatio: null,
        liveHeapLastingTrend: null
      }
      expect(judge(/** @type {any} */ (signals), limits, hello()).state).toBe(state)
    })
  it.each([
    // More than chance, by few readings; by many.
    [{ rise: 10, score: 1.2 }, 9, 'unknown'],
    [{ rise: 10, score: 0.8 }, 9, 'ok'],
    [{ rise: 5, score: 1.2 }, 9, 'ok'],
    [{ rise: 10, score: 1.2 }, 10, 'ok'],
    [{ rise: 17, score: 2.2 }, 10, 'unknown'],
    [{ rise: 10, score: 2.2 }, 10, 'ok'],
    [{ rise: 10, score: 2.2, slope: 0.2 }, 10, 'unknown'],
    // By one of two estimates it levels off.
    [{ rise: 17, score: 2.2, lateRatio: 0.3 }, 10, 'ok'],
    [{ rise: 17, score: 2.2, lateRatio: 0.5 }, 10, 'unknown'],
    // A rise that falls at the end.
    [{ rise: 20, score: 1.2, lateRatio: -0.5, halvesRatio: -0.1 }, 9, 'ok'],
    // More slowly than minutes can judge.
    [{ rise: 30, score: 2.2, slope: 0.01 }, 20, 'unknown'],
    [{ rise: 20, score: 2.2, slope: 0.01 }, 20, 'ok'],
    // Growth of 6.7 MiB that began in the last third; of 5.3; by chance; slower.
    [{ rise: 2, score: 2.2, slope: 0.04, lateRatio: 10 }, 9, 'unknown'],
    [{ rise: 2, score: 2.2, slope: 0.04, lateRatio: 8 }, 9, 'ok'],
    [{ rise: 2, score: 1.8, slope: 0.04, lateRatio: 10 }, 9, 'ok'],
    [{ rise: 2, score: 2.2, slope: 0.004, lateRatio: 10 }, 9, 'ok'],
    // With few readings, a single one makes growth seem to level off.
    [{ rise: 20, score: 1.2, lateRatio: 0.2, halvesRatio: 0.3 }, 9, 'unknown'],
    [{ rise: 20, score: 2.2, lateRatio: 0.2, halvesRatio: 0.3 }, 10, 'ok']
  ])('a doubtful rise %j by %d readings: %s', (doubtful, count, state) => {
    /** @type {{ rise: number, score: number, slope?: number }} */
    const { rise, slope = 0.02, ...more } = doubtful
    const { judge, limits } = require('../../engine/diagnoses/js-heap-leak')
    const line = { fit: 0.5, lateRatio: 1, halvesRatio: 1, steadinessRatio: 0.5, ...more }
    const signals = {
      liveHeapBytes: 80 * MIB,
      liveHeapReadings: count,
      liveHeapTrend: { rise: rise * MIB, slope: slope * MIB, seconds: rise / slope, ...line },
      heapRunwayBytes: 4000 * MIB,
      promotedKeptRatio: null,
      keptTrend: null,
      liveHeapLastingTrend: null
    }
    expect(judge(/** @type {any} */ (signals), limits, hello()).state).toBe(state)
  })
  it('is unknown without a major GC, however the heap grows', () => {
    const { verdict } = watch({ seconds: 100, at: t => ({ liveMib: 10 + t, majors: 0 }) })
    expect(verdict('js-heap-leak').state).toBe('unknown')
  })
  it.each([
    ['is withdrawn if it', {}, 0.3, 'unknown'],
    ['is kept in GC for most of the time if it', { majorSeconds: 0.6 }, 0.3, 'confirmed'],
    ['is kept without load if it', { scavenges: 0 }, 0, 'confirmed']
  ])('%s stays just below the limit, which it would have reached', (_, numbers, busy, state) => {
    const at = t => {
      const active = 0.3 * Math.min(t, 240) + busy * Math.max(0, t - 240)
      return {
        liveMib: Math.min(10 + t, 250),
        ...(t > 240 && numbers),
        values: { threadCpuUserSeconds: active }
      }
    }
    expect(watch({ seconds: 560, at }).verdict('js-heap-leak').state).toBe(state)
  })
  it.each([
    ['is withdrawn', 0.3, 'unknown'],
    ['is kept, without load,', 0, 'confirmed']
  ])('%s long after fast growth ended just below the limit', (_, busy, state) => {
    const at = t => {
      const active = 0.3 * Math.min(t, 60) + busy * Math.max(0, t - 60)
      return {
        liveMib: Math.min(10 + 4 * t, 250) + t % 3 / 2,
        majors: t <= 60 || t % 4 === 0 ? 1 : 0,
        values: { threadCpuUserSeconds: active }
      }
    }
    const before = watch({ seconds: 90, at }).verdict('js-heap-leak').state
    expect([before, watch({ seconds: 400, at }).verdict('js-heap-leak').state])
      .toEqual(['confirmed', state])
  })
  it.each([
    ['a minute', 4, 105, false],
    ['a minute', 4, 125, true],
    ['much of the work of its rise', 1, 300, false],
    ['much of the work of its rise', 1, 340, true]
  ])('is refuted if it stays there for %s: growth of %d MiB/s, at %d s', (_, rate, seconds, is) => {
    const at = t => ({
      liveMib: Math.min(10 + rate * t, 250),
      values: { threadCpuUserSeconds: 0.3 * t }
    })
    const { summary } = watch({ seconds, at }).verdict('js-heap-leak')
    expect(summary.includes('has stayed at 9')).toBe(is)
  })
  it('stays confirmed just below the limit, where growth must slow down', () => {
    const { primary } = watch({ seconds: 400, at: t => ({ liveMib: Math.min(10 + t, 250) }) })
    expect(primary?.diagnosis).toBe('js-heap-leak')
  })
})

describe('a live heap whose growth slows down', () => {
  /** @param {(t: number) => number} busyAt busy share of the loop's time at second t */
  const slowing = busyAt => {
    let activeSeconds = 0
    return (/** @type {number} */ t) => {
      activeSeconds += busyAt(t)
      return {
        liveMib: 10 + 100 * (1 - Math.exp(-t / 80)),
        heapLimitMib: 4144,
        values: {
          containerLimitBytes: undefined,
          eventLoopActiveSeconds: activeSeconds,
          eventLoopIdleSeconds: t - activeSeconds
        }
      }
    }
  }
  const judged = busyAt => watch({ seconds: 400, at: slowing(busyAt) }).verdict('js-heap-leak')
  it('is ruled out if the loop has room', () => {
    expect(judged(() => 0.3).state).toBe('ok')
  })
  it('is ruled out if the loop never had room, as in a batch program', () => {
    expect(judged(() => 1).state).toBe('ok')
  })
  it.each([
    ['20 s under the same load', 0.3, 210, 20, 'ok'],
    ['15 s under the same load', 0.3, 197, 20, 'suspected'],
    ['45 s with a fifth of the load', 0.06, 240, 20, 'suspected'],
    ['45 s, in which its growth would not show', 0.3, 230, 500, 'suspected']
  ])('has ended once the live heap stays where it is for %s', (_, busy, seconds, base, state) => {
    const at = t => {
      const risen = Math.min(t, 180)
      return {
        liveMib: base + 0.7 * risen,
        heapLimitMib: 1048,
        values: {
          containerLimitBytes: undefined, threadCpuUserSeconds: 0.3 * risen + busy * (t - risen)
        }
      }
    }
    const found = watch({ seconds, at }).verdict('js-heap-leak')
    expect(found.state).toBe(state)
    expect(/has stayed at/.test(found.summary)).toBe(state === 'ok')
  })
  it('has ended where the level hides the line of the rise', () => {
    // Readings become rarer with age, as those that memwatch causes.
    const readings = Array.from({ length: 30 }, (_, i) => Math.round(20 * 1.09 ** i))
    const readAt = t => readings.findLast(at => at <= t) ?? 0
    const at = t => ({
      liveMib: 15 + 1.85 * Math.min(readAt(t), 150),
      majors: readings.includes(t) ? 1 : 0,
      heapLimitMib: 1048,
      values: { containerLimitBytes: undefined, threadCpuUserSeconds: 0.3 * t }
    })
    const found = watch({ seconds: 210, at }).verdict('js-heap-leak')
    expect(found).toMatchObject({ state: 'ok', summary: expect.stringContaining('has stayed at') })
  })
  it('stays suspected if the loop filled up meanwhile', () => {
    expect(judged(t => Math.min(1, t / 200))).toMatchObject({
      state: 'suspected', summary: expect.stringContaining('a slower app also leaks more slowly')
    })
  })
})

describe('js-heap-leak under a limit of gigabytes, where major GCs are rare', () => {
  /** Times of major GCs, which V8 runs ever more rarely as a heap grows. */
  const MAJORS_AT = [3, 10, 40, 70, 140, 250, 400, 560, 800]
  /**
   * @param {(t: number) => number} liveMibAt
   * @param {number} [garbageMib] garbage promoted each second, which the next major GC frees
   * @param {number[]} [majorsAt]
   * @returns {(t: number) => object} numbers of second t
   */
  const rarelyCollected = (liveMibAt, garbageMib = 0, majorsAt = MAJORS_AT) => t => {
    const last = majorsAt.findLast(at => at <= t) ?? 0
    const oldMib = liveMibAt(t) + garbageMib * (t - last)
    return {
      liveMib: liveMibAt(last),
      majors: majorsAt.includes(t) ? 1 : 0,
      scavenges: 0.3,
      heapLimitMib: 4144,
      rssMib: 90 + oldMib,
      heapMib: oldMib + 20,
      values: {
        containerLimitBytes: undefined,
        spaces: {
          new_space: [0, 32 * MIB, 16 * MIB, 0],
          old_space: [oldMib * MIB, oldMib * MIB, 0, 0]
        }
      }
    }
  }
  const leak = rarelyCollected(t => 10 + 3 * t)

  it('is suspected within a minute, with rate, time to the limit and alternatives', () => {
    const { verdict, primary } = watch({ seconds: 60, at: leak })
    expect(primary).toBe(null)
    expect(verdict('js-heap-leak')).toMatchObject({
      state: 'suspected',
      summary:
        'The live heap grows by 180 MiB/min and would reach the heap size limit in about 22 ' +
          'min: a leak, or a cache that still fills.'
    })
  })
  it.each([
    [Infinity, /would reach the heap size limit in about/],
    [148, /^The live heap grew by 1\d\d MiB\/min, but hardly at its last reading: a leak, or/]
  ])('that stopped at %d s tells no time from its next reading on', (fullAt, summary) => {
    const readings = Array.from({ length: 100 }, (_, i) => 10 * i)
    const at = rarelyCollected(t => 10 + 3 * Math.min(t, fullAt), 0, readings)
    const found = watch({ seconds: 162, at }).verdict('js-heap-leak')
    expect(found).toMatchObject({ state: 'suspected', summary: expect.stringMatching(summary) })
    expect(found.secondsLeft === null).toBe(fullAt < 162)
  })
  it('is suspected within a minute at 0.6 MiB/s, too', () => {
    const { verdict } = watch({ seconds: 60, at: rarelyCollected(t => 10 + 0.6 * t) })
    expect(verdict('js-heap-leak').state).toBe('suspected')
  })
  it.each([
    // Share of the promoted bytes that survive: 3/4 and 3/8.
    [1, 'suspected'],
    [5, 'unknown']
  ])('that promotes %d MiB/s of garbage beside 3 MiB/s of live objects is %s', (garbage, state) => {
    const at = rarelyCollected(t => 10 + 3 * t, garbage)
    expect(watch({ seconds: 60, at }).verdict('js-heap-leak').state).toBe(state)
  })
  it.each([
    ['a leak', t => 10 + 1.2 * t, 0, 'suspected'],
    ['a leak beside as much promoted garbage', t => 10 + 1.2 * t, 1.1, 'suspected'],
    ['a little growth beside promoted garbage', t => 10 + 0.4 * t, 3, 'unknown'],
    ['a start that loads modules', t => Math.min(10 + 6 * t, 90), 0, 'unknown'],
    ['a burst of 60 MiB', t => t < 35 ? 10 + t : 70, 0, 'unknown']
  ])('with two major GCs in 70 s: %s is judged', (_, liveMibAt, garbageMib, state) => {
    const at = rarelyCollected(liveMibAt, garbageMib, [8, 25])
    expect(watch({ seconds: 70, at }).verdict('js-heap-leak').state).toBe(state)
  })
  it.each([
    ['a leak', t => 500 + 1.1 * t, 0, 54, 'suspected'],
    ['a leak beside a little promoted garbage', t => 500 + 1.1 * t, 0.1, 54, 'suspected'],
    ['a leak beside a third of it as promoted garbage', t => 500 + 1.1 * t, 0.37, 54, 'suspected'],
    ['a leak in steps', t => 500 + 0.5 * t + 7 * Math.floor(t / 10), 0, 54, 'suspected'],
    ['a leak beside as much promoted garbage', t => 500 + 1.1 * t, 1.1, 54, 'unknown'],
    ['a start that loads data', t => Math.min(440 + 3 * t, 500), 0, 54, 'unknown'],
    ['a burst', t => t < 20 ? 500 : 540, 0, 54, 'unknown'],
    ['a cache that was full at 40 s', t => 500 + 1.1 * Math.min(t, 40), 0, 54, 'unknown'],
    ['a leak that stopped at the second major GC', t => 500 + 1.1 * Math.min(t, 50), 0, 54,
      'suspected'],
    ['the same, 40 s later', t => 500 + 1.1 * Math.min(t, 50), 0, 140, 'unknown']
  ])('with a major GC at the start, and one at 50 s: %s is judged', (
    _, liveMibAt, garbageMib, seconds, state
  ) => {
    const at = rarelyCollected(liveMibAt, garbageMib, [3, 50])
    expect(watch({ seconds, at }).verdict('js-heap-leak').state).toBe(state)
  })
  it('with two major GCs, the growth since the second one belongs to the rate', () => {
    // The start loads 10 MiB more between the two.
    const at = rarelyCollected(t => 1200 + 0.9 * Math.min(t, 20) + 0.7 * t, 0, [8, 32])
    const { state, summary } = watch({ seconds: 62, at }).verdict('js-heap-leak')
    expect(state).toBe('suspected')
    const [, perMinute] = defined(/grows by (\d+) MiB\/min/.exec(summary))
    expect(Number(perMinute)).toBeLessThan(60)
  })
  it('stays suspected if the warm-up ends just before the readings of a capture', () => {
    const majorsAt = [3, 12, 55, 56, 63]
    const at = rarelyCollected(t => 10 + 2.3 * t, 0, majorsAt)
    for (let seconds = 57; seconds <= 95; seconds += 2) {
      expect(watch({ seconds, at }).verdict('js-heap-leak').state).toBe('suspected')
    }
  })
  it.each([[2, 'unknown', 'too few readings to judge'], [0.02, 'ok', 'does not grow in a']])(
    'at %d MiB/s beside promoted garbage, with seven readings of which one is lower: %s',
    (perSecond, state, summary) => {
      const majorsAt = [3, 15, 21, 27, 33, 42, 43]
      const liveMibAt = t => 10 + perSecond * (t === 43 ? 41.9 : t)
      const at = rarelyCollected(liveMibAt, 5, majorsAt)
      expect(watch({ seconds: 46, at }).verdict('js-heap-leak')).toMatchObject({
        state, summary: expect.stringContaining(summary)
      })
    }
  )
  it.each([
    [0.26, 'unknown', 'may have grown by 14 MiB in 55 s: too few readings to judge'],
    [0.05, 'ok', 'hardly grows: 3 MiB/min']
  ])('at %d MiB/s, with a reading during a burst, is %s', (perSecond, state, summary) => {
    const liveMibAt = t => 10 + perSecond * t + (t === 53 ? 20 : 0)
    const at = rarelyCollected(liveMibAt, 5, [3, 18, 24, 34, 53, 63, 66, 70])
    expect(watch({ seconds: 74, at }).verdict('js-heap-leak')).toMatchObject({
      state, summary: expect.stringContaining(summary)
    })
  })
  it('is not suspected if it grew for less than half a minute, and stopped', () => {
    const at = rarelyCollected(t => 10 + 5 * Math.min(t, 38), 0, [2, 13, 20, 27, 38])
    for (let seconds = 30; seconds <= 60; seconds += 2) {
      expect(watch({ seconds, at }).verdict('js-heap-leak').state).not.toBe('suspected')
    }
  })
  it('is never confirmed by two major GCs, and refuted by the next ones', () => {
    // A start of 25 s, and then as much garbage, which the next major GC frees.
    const at = t => rarelyCollected(
      t => 10 + 15 * Math.min(t, 25), t > 25 ? 15 : 0, [8, 25, 55, 80, 105]
    )(t)
    expect(watch({ seconds: 54, at }).verdict('js-heap-leak').state).toBe('suspected')
    expect(watch({ seconds: 130, at }).verdict('js-heap-leak').state).not.toBe('suspected')
    expect([...watch({ seconds: 300, at }).ever]).not.toContain('js-heap-leak')
  })
  it('is suspected after less growth if the limit is near', () => {
    const at = t => ({ ...rarelyCollected(t => 10 + 0.4 * t)(t), heapLimitMib: 259 })
    expect(watch({ seconds: 60, at }).verdict('js-heap-leak').state).toBe('suspected')
    const far = t => ({ ...at(t), heapLimitMib: 512 })
    expect(watch({ seconds: 60, at: far }).verdict('js-heap-leak').state).toBe('unknown')
  })
  it('stays suspected while large semi-spaces delay promotion', () => {
    const SCAVENGES_AT = [3, 10, 40, 70, 118]
    const at = t => {
      const promotedAt = SCAVENGES_AT.findLast(at => at <= t) ?? 0
      const old = (10 + 3 * promotedAt) * MIB
      const { values, ...rest } = leak(t)
      return {
        ...rest,
        values: { ...values, spaces: { ...values.spaces, old_space: [old, old, 0, 0] } }
      }
    }
    expect(watch({ seconds: 116, at }).verdict('js-heap-leak').state).toBe('suspected')
  })
  it('is confirmed within minutes, far from the limit', () => {
    const { primary } = watch({ seconds: 300, at: leak })
    expect(primary).toMatchObject({ diagnosis: 'js-heap-leak' })
  })
  it('stays suspected if a capture runs two GCs within seconds', () => {
    const at = t => {
      const now = leak(t)
      const collectedAgain = t >= 72 && t < 140
      return {
        ...now,
        majors: t === 72 ? 1 : now.majors,
        liveMib: collectedAgain ? now.liveMib - 1 : now.liveMib
      }
    }
    const { verdict } = watch({ seconds: 125, at })
    expect(verdict('js-heap-leak').state).toBe('suspected')
  })
  it('is confirmed between two major GCs, after old spaces have grown for long enough', () => {
    const { verdict } = watch({ seconds: 220, at: leak })
    expect(verdict('js-heap-leak').confirmedAfterSeconds).toBeGreaterThan(205)
    expect(
      watch({ seconds: 220, at: rarelyCollected(t => 10 + 3 * Math.min(t, 150)) }).primary
    ).toBe(null)
  })
  it('excludes opportunities on the growing heap', () => {
    expect(watch({ seconds: 300, at: leak }).verdict('pointer-compression-candidate').state).toBe(
      'unknown'
    )
  })
  it.each([
    ['a cache of 400 MiB that fills for ten minutes', t => 30 + 400 * Math.min(1, t / 600)],
    ['a cache of 200 MiB that fills in two minutes', t => 30 + 200 * Math.min(1, t / 120)],
    ['a cache that fills ever slower', t => 30 + 300 * (1 - Math.exp(-t / 200))]
  ])('%s is never confirmed', (_, liveMibAt) => {
    expect([...watch({ seconds: 900, at: rarelyCollected(liveMibAt) }).ever]).toEqual([null])
  })
  it.each([
    [0.05, 10, 'ok'], [0.1, 10, 'unknown'], [0.12, 10, 'unknown'], [0.14, 10, 'suspected'],
    [0.14, 80, 'suspected'], [0.14, 120, 'unknown']
  ])('a straight rise of %d MiB/s above %i MiB is %s after 100 s', (
    mibPerSecond,
    baseMib,
    state
  ) => {
    const { verdict } = watch({
      seconds: 100,
      at: t => ({
        liveMib: baseMib + mibPerSecond * t,
        heapLimitMib: 4144,
        values: { containerLimitBytes: undefined }
      })
    })
    expect(verdict('js-heap-leak')).toMatchObject({
      state,
      ...(state === 'unknown' && { summary: expect.stringContaining('too little to judge') })
    })
  })
  it('is not suspected for promoted garbage that the next major GC frees', () => {
    const { verdict } = watch({ seconds: 130, at: rarelyCollected(t => 30 + t / 20, 3) })
    expect(verdict('js-heap-leak').state).toBe('unknown')
  })
})

describe('semi-space-starvation', () => {
  const starving = { scavenges: 190, scavengeSeconds: 0.2, majors: 9, majorSeconds: 0.15 }
  const promoting = {
    scavenges: 6.6, scavengeSeconds: 0.06, majors: 2.7, majorSeconds: 0.02
  }

  it('is confirmed within seconds, with a power of two to set and its predicted effect', () => {
    const { primary } = watch({ seconds: 30, at: () => starving })
    expect(primary).toMatchObject({ diagnosis: 'semi-space-starvation', state: 'confirmed' })
    expect(defined(primary).confirmedAfterSeconds).toBeLessThan(25)
    const [{ change, predicted }] = defined(primary).fix
    expect(change.flag).toMatch(/^--max-semi-space-size=(8|16|32)$/)
    expect(change.env?.NODE_OPTIONS).toBe(change.flag)
    expect(predicted.map(({ signal }) => signal)).toEqual([
      'gcPauseRatio',
      'scavengesPerSecond',
      'rssBytes'
    ])
    for (const { signal, from, to } of predicted.slice(0, 2)) {
      expect([signal, to < from / 2]).toEqual([signal, true])
    }
    expect(defined(primary).evidence[0].text).toContain('the container limit of 512 MB')
  })
  it('proposes only the command line if this Node refuses the flag in NODE_OPTIONS', () => {
    const { primary } = watch({
      seconds: 30,
      at: () => starving,
      helloChanges: { allowedFlags: [] }
    })
    expect(Object.keys(defined(primary).fix[0].change)).toEqual(['flag'])
  })
  it('does not propose NODE_OPTIONS if the command line overrides it', () => {
    const { primary } = watch({
      seconds: 30,
      at: () => ({ ...starving, semiMib: 2 }),
      helloChanges: { execArgv: ['--max_semi_space_size=2'] }
    })
    expect(Object.keys(defined(primary).fix[0].change)).toEqual(['flag'])
  })
  it.each([[8, 32], [15, 32], [25, 64], [60, 32]])(
    'proposes a size that holds a live heap of %d MiB, if one can: %d MiB', (liveMib, mib) => {
      const { primary } = watch({ seconds: 30, at: () => ({ ...starving, liveMib }) })
      expect(defined(primary).fix[0].change.flag).toBe(`--max-semi-space-size=${mib}`)
    }
  )
  it.each([[[], true], [['--max-semi-space-size=1'], false]])(
    'with the flags %j mentions an upgrade: %s', (execArgv, mentions) => {
      const { primary } = watch({ seconds: 30, at: () => starving, helloChanges: { execArgv } })
      const texts = defined(primary).evidence.map(({ text }) => text).join(' ')
      expect(texts.includes('began with an upgrade')).toBe(mentions)
    }
  )
  it.each([
    ['that the container holds', { heapLimitMib: 259 }, null],
    ['that the container holds only with smaller semi-spaces', { heapLimitMib: 420 }, 272],
    ['larger than the container', { heapLimitMib: 4099 }, 272],
    ['whose live objects need more', { heapLimitMib: 4099, liveMib: 300 }, null]
  ])('sets the old space beside the new one for a heap %s', (_, heap, oldMib) => {
    const { verdict } = watch({
      seconds: 30,
      at: () => ({ ...starving, rssMib: 120, ...heap }),
      helloChanges: { execArgv: ['--max-semi-space-size=1'] }
    })
    const [{ change, title, risk }] = verdict('semi-space-starvation').fix
    const old = /--max-old-space-size=(\d+)/.exec(change.flag ?? '')
    expect([old && Number(old[1]), title.includes('old space'), risk.includes('instead of')])
      .toEqual([oldMib, oldMib !== null, oldMib !== null])
  })
  it('keeps existing NODE_OPTIONS', () => {
    const nodeOptions = ['--enable-source-maps', '--require', '/x/node_modules/memwatch/index.js']
    const { primary } = watch({ seconds: 30, at: () => starving, helloChanges: { nodeOptions } })
    expect(defined(primary).fix[0].change.env?.NODE_OPTIONS).toMatch(
      /^--enable-source-maps --max-semi-space-size=\d+$/
    )
  })
  it.each([
    ['a healthy app with the same small semi-space', { at: () => ({}) }],
    [
      'a cache that fills: many survivors, few majors',
      { at: () => ({ scavenges: 13, scavengeSeconds: 0.11, majors: 0.5, majorSeconds: 0.02 }) }
    ],
    [
      'an app whose large Buffers force the major GCs, though V8 does not say so',
      { at: () => ({ scavenges: 36, scavengeSeconds: 0.05, majors: 26, majorSeconds: 0.2 }) }
    ],
    [
      'a semi-space that is not small',
      {
        at: () => ({ ...starving, semiMib: 16, heapLimitMib: 304 }),
        helloChanges: { execArgv: ['--max-semi-space-size=16'] }
      }
    ]
  ])('%s is none', (_, app) => {
    expect([...watch({ seconds: 60, ...app }).ever]).toEqual([null])
  })

  it.each(/** @type {const} */ ([
    [0.08, 0.24, 110, 2.7, 'confirmed', /about 6\d % of CPU time .* pauses take 8 % of wall time\.$/],
    [0.08, 0.24, 40, 1, 'confirmed', /about 4\d % of CPU time .* pauses take 8 % of wall time\.$/],
    [0.08, 0.6, 110, 2.7, 'suspected', /8 % of the time\.$/],
    [0.05, 0.15, 40, 1, 'ok', /take 5 % of the time/],
    [0.05, 0.2, 110, 1, 'ok', /take 5 % of the time/],
    [0.04, 0.1, 110, 1, 'confirmed', /about 6\d % of CPU time .* pauses take 4 % of wall time\.$/],
    [0.04, 0.1, 40, 2.7, 'confirmed', /most of the CPU time .* pauses take 4 % of wall time\.$/],
    [0.015, 0.04, 110, 2.7, 'ok', /take 1.5 % of the time/]
  ]))(
    'with %d of the time in GC, %d cores in use, %d scavenges and %d major GCs a second, is %s',
    (paused, cores, scavenges, majors, state, summary) => {
      const { verdict } = watch({
        seconds: 60,
        at: t => ({
          scavenges,
          scavengeSeconds: 0.6 * paused,
          majors,
          majorSeconds: 0.4 * paused,
          liveMib: 20,
          values: { ...busyLoop(t, cores), cpuUserSeconds: cores * t, cpuSystemSeconds: 0 }
        })
      })
      const { severity, evidence, fix, ...told } = verdict('semi-space-starvation')
      expect(told).toMatchObject({ state, summary: expect.stringMatching(summary) })
      if (state !== 'ok') expect(severity).toBe('info')
      const names = evidence.map(({ signal }) => signal)
      expect(names.includes('ordinaryGcOfCpuRatio')).toBe(state === 'confirmed')
      if (state === 'ok') return
      const [{ signal, from, to }] = fix[0].predicted
      expect(signal).toBe(state === 'confirmed' ? 'ordinaryGcOfCpuRatio' : 'gcPauseRatio')
      expect(to).toBeGreaterThan(0.1 * from)
      expect(to).toBeLessThan(from)
    }
  )
  it.each(/** @type {const} */ ([
    ['3 major GCs a second for promoted garbage', {}, 'confirmed'],
    ['2 of them', { majors: 2, liveMib: 45 }, 'ok'],
    ['a smaller live heap', { liveMib: 15 }, 'ok'],
    ['little promotion', { scavenges: 6, majors: 6 }, 'ok'],
    ['a live heap that larger semi-spaces do not outlast', { liveMib: 160 }, 'ok'],
    ['short pauses', { scavengeSeconds: 0.005, majorSeconds: 0.005 }, 'ok']
  ]))('of an idle app whose GCs mark much of its CPU time, with %s (%j), is %s',
    (_, changes, state) => {
      const { verdict } = watch({
        seconds: 60,
        at: t => ({
          scavenges: 40,
          scavengeSeconds: 0.015,
          majors: 3,
          majorSeconds: 0.015,
          liveMib: 30,
          ...changes,
          values: { ...busyLoop(t, 0.3), cpuUserSeconds: 0.3 * t, cpuSystemSeconds: 0 }
        })
      })
      const { severity, summary } = verdict('semi-space-starvation')
      expect(verdict('semi-space-starvation').state).toBe(state)
      if (state === 'ok') return
      expect(severity).toBe('info')
      expect(summary).toMatch(/about 4\d % of CPU time with the work of other .* pauses take 3 %/)
    })
  it.each(/** @type {const} */ ([
    ['of little time', { scavengeSeconds: 0.01 }, 'ok', /\d GCs lately: .* take 1.\d % of/],
    ['of more time', { scavengeSeconds: 0.03 }, 'unknown', /too few for a rate/],
    ['of little time, among them major GCs', { scavenges: 0.2, scavengeSeconds: 0.01, majors: 1 },
      'unknown', /too few for a rate/]
  ]))('few GCs %s (%j) are %s', (_, changes, state, summary) => {
    const { verdict } = watch({
      seconds: 60,
      at: () => ({ ...starving, scavenges: 2, majors: 0.1, majorSeconds: 0.001, ...changes })
    })
    expect(verdict('semi-space-starvation'))
      .toMatchObject({ state, summary: expect.stringMatching(summary) })
  })
  it.each([[0.025, 'suspected'], [0.005, 'ok']])(
    'of a large new space is, once scavenges take %d of the time, %s', (scavengeSeconds, state) => {
      const { verdict } = watch({
        seconds: 240,
        at: t => ({ ...promoting, semiMib: 16, ...(t > 60 && { scavengeSeconds }) }),
        helloChanges: { execArgv: ['--max-semi-space-size=16'] }
      })
      expect(verdict('semi-space-starvation').state).toBe(state)
    }
  )
  it.each([
    [0.07, 0.03, 'confirmed', /: GC takes 10 % of the time/],
    [0.06, 0.01, 'suspected', /: GC takes 7 % of the time/]
  ])('after confirmation, with %d of the time in scavenges and %d in major GCs, is %s: %s',
    (scavengeSeconds, majorSeconds, state, summary) => {
      const { verdict } = watch({
        seconds: 240,
        at: t => t < 60 ? starving : { ...starving, scavengeSeconds, majorSeconds }
      })
      expect(verdict('semi-space-starvation')).toMatchObject({
        state, isHeld: false, summary: expect.stringMatching(summary)
      })
    })
  /** V8 allocates in the old space: major GCs free little that was promoted. */
  const pretenuring = {
    scavenges: 36,
    scavengeSeconds: 0.02,
    majors: 12,
    majorSeconds: 0.05,
    liveMib: 10,
    values: { externalBytes: 60 * MIB, externalPeakBytes: 60 * MIB }
  }
  it.each([
    ['a live heap that a semi-space of 16 MiB holds', {}, 'suspected', 16],
    ['a live heap that one of 32 MiB holds', { liveMib: 18 }, 'suspected', 32],
    ['a live heap that one of 64 MiB holds', { liveMib: 22 }, 'suspected', 64],
    ['a larger live heap', { liveMib: 44 }, 'unknown', 0],
    ['no room in the container', { rssMib: 500 }, 'unknown', 0],
    ['no room for the size that holds its live heap', { liveMib: 22, rssMib: 400 }, 'unknown', 0],
    ['cheap major GCs', { majorSeconds: 0.02 }, 'ok', 0],
    ['Buffers that wait for a GC', {
      values: { externalBytes: 60 * MIB, externalPeakBytes: 120 * MIB }
    }, 'ok', 0]
  ])('of an app whose major GCs free little that was promoted, with %s (%j), is %s: %d MiB',
    (_, changes, state, mib) => {
      const { verdict } = watch({
        seconds: 90,
        at: () => ({ ...pretenuring, ...changes })
      })
      const found = verdict('semi-space-starvation')
      expect(found.state).toBe(state)
      expect(found.fix.map(({ change, predicted: [{ signal, from, to }] }) =>
        [change.flag, signal, Math.round(from), to]
      )).toEqual(
        state === 'suspected'
          ? [[
              `--min-semi-space-size=${mib} --max-semi-space-size=${mib}`,
              'ordinaryMajorsPerSecond',
              12,
              0
            ]]
          : []
      )
    })
  it.each(/** @type {[string, Record<string, number>, string, number][]} */ ([
    ['as told', {}, 'suspected', 64],
    ['a smaller live heap', { liveMib: 60, majors: 2.5 }, 'suspected', 32],
    ['an old space that rises by what scavenges promote', { swing: 28 }, 'ok', 0],
    ['few major GCs', { majors: 0.6, liveMib: 125, cores: 0.25 }, 'ok', 0],
    ['little marking', { cores: 0.8 }, 'ok', 0],
    ['Buffers that wait for a GC', { waiting: 60 }, 'ok', 0],
    ['a larger live heap', { liveMib: 140 }, 'unknown', 0]
  ]))('of an app whose old space rises between major GCs, with %s (%j), is %s: %d MiB', (
    _, { swing = 62, majors = 1.2, liveMib = 120, cores = 0.5, waiting = 0 }, state, mib
  ) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        semiMib: 4,
        scavenges: 3,
        scavengeSeconds: 0.005,
        majors,
        majorSeconds: 0.012,
        liveMib,
        heapLimitMib: 536,
        values: {
          spaces: {
            new_space: [0, 8 * MIB, 4 * MIB, 0],
            old_space: [(liveMib + (t % 2) * swing) * MIB, 200 * MIB, 0, 0]
          },
          externalBytes: 60 * MIB,
          externalPeakBytes: (60 + waiting) * MIB,
          containerLimitBytes: 2048 * MIB,
          cpuUserSeconds: cores * t,
          cpuSystemSeconds: 0
        }
      }),
      helloChanges: { execArgv: ['--max-semi-space-size=4'] }
    })
    const found = verdict('semi-space-starvation')
    expect(found.state).toBe(state)
    expect(found.fix.map(({ change }) => change.flag)).toEqual(
      state === 'suspected'
        ? [`--min-semi-space-size=${mib} --max-semi-space-size=${mib}`]
        : []
    )
    if (state !== 'suspected') return
    expect(found.summary).toMatch(/old space, and .*: GC takes about \d\d % of CPU time with/)
    expect(found.evidence.map(({ signal }) => signal)).toContain('oldSpaceSwingBytes')
  })
  it('of such an app is undecided until its GCs were observed for long enough', () => {
    const { verdict } = watch({ seconds: 14, at: () => pretenuring })
    expect(verdict('semi-space-starvation')).toMatchObject({
      state: 'unknown', summary: expect.stringMatching(/was promoted: too short to judge$/)
    })
  })
  it.each([[0.025, 'suspected'], [0.015, 'ok']])(
    'that was suspected is, with %d of the time in major GCs, %s', (majorSeconds, state) => {
      const { verdict } = watch({
        seconds: 240,
        at: t => ({
          ...promoting,
          semiMib: 8,
          scavengeSeconds: 0.08,
          majorSeconds: t < 60 ? 0.035 : majorSeconds,
          values: {
            eventLoopActiveSeconds: 0.4 * t,
            eventLoopIdleSeconds: 0.6 * t,
            cpuUserSeconds: 0.9 * t,
            cpuSystemSeconds: 0,
            runQueueWaitSeconds: 0.001 * t
          }
        }),
        helloChanges: { execArgv: ['--max-semi-space-size=8'] }
      })
      expect(verdict('semi-space-starvation').state).toBe(state)
    }
  )
  it('is held while the latest readings do not show it', () => {
    const { verdict } = watch({ seconds: 100, at: t => t < 60 ? starving : {} })
    expect(verdict('semi-space-starvation')).toMatchObject({ state: 'confirmed', isHeld: true })
  })

  it.each(/** @type {[string, Record<string, number>, string, string[]][]} */ ([
    ['little', { scavengeSeconds: 0.04, majorSeconds: 0 }, 'ok', []],
    ['some', { scavengeSeconds: 0.06 }, 'suspected', ['--max-semi-space-size=64', 'USE_LESS']],
    ['some, with semi-spaces of 32 MiB', { scavengeSeconds: 0.06, semiMib: 32 }, 'ok', []],
    ['much', { scavengeSeconds: 0.4 }, 'suspected', ['--max-semi-space-size=64', 'USE_LESS']],
    ['much, with semi-spaces of 32 MiB', { scavengeSeconds: 0.4, semiMib: 32 }, 'suspected',
      ['--max-semi-space-size=64', 'USE_LESS']],
    ['more, with semi-spaces of 32 MiB', { scavengeSeconds: 0.11, semiMib: 32 }, 'suspected',
      ['--max-semi-space-size=64', 'USE_LESS']],
    ['much, without room for a larger one', { scavengeSeconds: 0.4, rssMib: 420 }, 'suspected',
      ['USE_LESS']],
    ['much, with semi-spaces of 64 MiB', { scavengeSeconds: 0.4, semiMib: 64 }, 'suspected',
      ['USE_LESS']],
    ['much, and a heap limit that is too low for larger ones',
      { scavengeSeconds: 0.4, liveMib: 140, majors: 0.3, majorSeconds: 0.01 }, 'suspected',
      ['USE_LESS']],
    ['much, in a heap near its limit',
      { scavengeSeconds: 0.4, liveMib: 290, majors: 0.3, majorSeconds: 0.01 }, 'ok', []],
    ['much, most of it major GCs', { scavengeSeconds: 0.1, majors: 9, majorSeconds: 0.2 },
      'unknown', []],
    ['some, to free what was promoted', promoting, 'suspected',
      ['--max-semi-space-size=64', 'USE_LESS']],
    ['some, in a live heap that grows by what was promoted', { ...promoting, growsMib: 25 }, 'ok',
      []],
    ['some, while the loop is never idle', { ...promoting, busy: 0.97 }, 'ok', []],
    ['some, most of it major GCs', { scavengeSeconds: 0.02, majors: 9, majorSeconds: 0.06 }, 'ok',
      []]
  ]))('with a large new space, and GCs that take %s of the time (%j), is %s',
    (_, { busy = 0.5, growsMib = 0, ...changes }, state, fixes) => {
      const now = { scavenges: 20, majors: 0, semiMib: 16, heapLimitMib: 304, ...changes }
      const { verdict } = watch({
        seconds: 60,
        at: t => ({
          liveMib: 10 + growsMib * t,
          ...now,
          values: { eventLoopActiveSeconds: busy * t, eventLoopIdleSeconds: (1 - busy) * t }
        }),
        helloChanges: { execArgv: [`--max-semi-space-size=${now.semiMib}`] }
      })
      const found = verdict('semi-space-starvation')
      expect(found.state).toBe(state)
      expect(found.fix.map(({ change }) => change.flag ?? 'USE_LESS')).toEqual(fixes)
    })
})

describe('allocator-fragmentation', () => {
  /**
   * The app allocates and frees batches of 100 MiB in Buffers; native memory rises once and stays
   * high.
   * @param {number} t
   * @param {number} [batchMib]
   */
  const fragmenting = (t, batchMib = 100) => {
    const retainedMib = Math.min(200, 10 * t)
    const buffersMib = t % 10 < 5 ? batchMib : 4
    return {
      externalMib: buffersMib,
      nativeMib: 12 + retainedMib - buffersMib / 2,
      spanMib: 20 + retainedMib,
      rssMib: 350
    }
  }
  it('is confirmed once the rise has stopped and live memory went up and down', () => {
    const { primary } = watch({ seconds: 120, at: fragmenting })
    expect(primary).toMatchObject({ diagnosis: 'allocator-fragmentation', state: 'confirmed' })
    expect(defined(primary).fix[0].change.env).toMatchObject({ LD_PRELOAD: 'libjemalloc.so.2' })
    expect(defined(primary).fix[0].change.dockerfile).toContain('libjemalloc2')
    expect(defined(primary).fix.map(({ title }) => title)).not.toContain(
      'Without a new library: fewer arenas'
    )
  })
  it('is confirmed if Buffers come and go in half of it', () => {
    const { state, evidence } = watch({ seconds: 120, at: t => fragmenting(t, 82) })
      .verdict('allocator-fragmentation')
    const valueOf = name => defined(evidence.find(({ signal }) => signal === name)).value
    const movedShare = valueOf('bufferChurnBytes') / valueOf('allocatorSlackBytes')
    expect(state).toBe('confirmed')
    expect(movedShare).toBeGreaterThan(0.4)
    expect(movedShare).toBeLessThan(0.6)
  })
  it('stays confirmed if the app then keeps more native memory', () => {
    const { state, summary } = watch({
      seconds: 300,
      at: t => {
        const more = t < 150 ? 0 : 90
        const { nativeMib, spanMib, rssMib, ...others } = fragmenting(t, 82)
        return {
          ...others, nativeMib: nativeMib + more, spanMib: spanMib + more, rssMib: rssMib + more
        }
      }
    }).verdict('allocator-fragmentation')
    expect({ state, summary }).toEqual({
      state: 'confirmed', summary: expect.stringContaining('keeps about')
    })
  })
  it('is suspected if Buffers come and go in a small part: native code may use the rest', () => {
    const { verdict, ever } = watch({ seconds: 120, at: t => fragmenting(t, 40) })
    expect(verdict('allocator-fragmentation')).toMatchObject({
      state: 'suspected',
      summary: expect.stringMatching(/^glibc malloc keeps up to .*, or native code uses a part/)
    })
    expect([...ever]).not.toContain('allocator-fragmentation')
  })
  it.each([
    ['heap_snapshot', 'before it', 1, 'info',
      /The heap snapshot that memwatch took at an age of 1 s may have left this memory: memwatch/],
    ['large_profile', 'before it', 1, 'info', /The large profile that memwatch took/],
    ['cpu_profile', 'before it', 1, 'warning', /of RSS\.$/],
    ['heap_snapshot', 'after it', 110, 'warning', /of RSS\.$/]
  ])('a %s by memwatch %s: severity and words', (kind, _, takenAt, severity, summary) => {
    const { primary } = watch({
      seconds: 120,
      at: fragmenting,
      onTarget: (target, t) => {
        if (t === takenAt) findCase(target).captured.set(kind, t)
      }
    })
    expect(primary).toMatchObject({
      state: 'confirmed', severity, summary: expect.stringMatching(summary)
    })
  })
  it.each([
    ['the first burst', 27, 'unknown', /^\d+ MiB .* for less than a minute: too short to judge$/],
    ['a later burst', 57, 'ok', /^malloc retains at most \d+ MiB .*, in the median of the last/]
  ])('free memory of %s', (_, seconds, state, summary) => {
    const { verdict } = watch({
      seconds,
      at: t => {
        const burstMib = t % 30 < 20 ? 0 : 160
        return {
          nativeMib: 13 + burstMib,
          spanMib: 200,
          rssMib: 120 + burstMib,
          values: { residentBytes: { malloc_heap: (24 + burstMib) * MIB } }
        }
      }
    })
    expect(verdict('allocator-fragmentation')).toMatchObject({
      state, summary: expect.stringMatching(summary)
    })
  })
  it('is not ruled out while the median of the last minute still rises to what is free now', () => {
    const seen = new Set()
    watch({
      seconds: 110,
      at: t => {
        const freeMib = Math.max(0, Math.min(400, 10 * (t - 20)))
        return {
          nativeMib: 13 + freeMib,
          spanMib: 500,
          rssMib: 120 + freeMib,
          values: {
            containerLimitBytes: 8192 * MIB,
            residentBytes: { malloc_heap: (24 + freeMib) * MIB }
          }
        }
      },
      onTarget: (target, t) => {
        const verdict = findCase(target).verdicts
          .find(({ diagnosis }) => diagnosis === 'allocator-fragmentation')
        if (t > 60) seen.add(verdict?.state)
      }
    })
    expect([...seen]).toEqual(['unknown'])
  })
  it('excludes memory that was returned to the kernel', () => {
    const trimmedAt = 100
    const { verdict } = watch({
      seconds: 110,
      at: t =>
        t < trimmedAt
          ? fragmenting(t, 60)
          : { ...fragmenting(t, 60), nativeMib: fragmenting(t, 60).nativeMib - 90 }
    })
    const { summary } = verdict('allocator-fragmentation')
    const [, keptMib] = defined(/keeps (?:about|up to) (\d+) MiB/.exec(summary))
    expect(Number(keptMib)).toBeLessThan(200 - 60)
    expect(Number(keptMib)).toBeGreaterThan(64)
  })
  it('is confirmed in one of several processes that fill a container', () => {
    const { diagnoses } = require('../../engine/diagnoses')
    const { judge, limits } = defined(
      diagnoses.find(({ id }) => id === 'allocator-fragmentation')
    )
    const stateAt = containerShareBytes =>
      judge(
        {
          rssBytes: 140 * MIB,
          nativeBytes: 90 * MIB,
          allocatorSlackBytes: 80 * MIB,
          bufferChurnBytes: 60 * MIB,
          nativeTrend: null,
          containerLimitBytes: 700 * MIB,
          containerShareBytes
        },
        limits,
        hello()
      ).state
    expect([700, 140].map(mib => stateAt(mib * MIB))).toEqual(['ok', 'confirmed'])
  })
  it('does not propose an existing setting', () => {
    const { primary } = watch({
      seconds: 120,
      at: fragmenting,
      helloChanges: { mallocEnv: { MALLOC_MMAP_THRESHOLD_: '32768' } }
    })
    expect(defined(primary).fix.map(({ title }) => title)).toEqual(['Use jemalloc'])
  })
  /** About 80 MiB of RSS are retained, in the container of 512 MiB. @param {number} rssMib */
  const some = rssMib => t => ({
    ...fragmenting(Math.min(t, 8)),
    externalMib: t % 10 < 5 ? 60 : 4,
    nativeMib: 12 + 80 - (t % 10 < 5 ? 30 : 2),
    rssMib
  })
  it('is less severe if the container has room', () => {
    expect(watch({ seconds: 120, at: some(200) }).primary).toMatchObject({
      diagnosis: 'allocator-fragmentation'
    })
    const { primary, verdict } = watch({ seconds: 120, at: some(160) })
    expect(primary).toBeNull()
    expect(verdict('allocator-fragmentation').summary).toMatch(
      /little compared with the limit of 512 MiB, of which RSS fills 31 %/
    )
  })
  it.each([
    [
      'native memory that was in use, and that the kernel got back',
      { at: t => ({ nativeMib: t < 90 ? 190 : 40, spanMib: 200, rssMib: t < 90 ? 290 : 140 }) }
    ],
    [
      'native memory in use that comes and goes, and the kernel gets back',
      {
        at: t => ({
          nativeMib: t % 20 < 10 ? 190 : 100,
          spanMib: 200,
          rssMib: t % 20 < 10 ? 290 : 200
        })
      }
    ],
    ['a constant native library', { at: () => ({ nativeMib: 190, spanMib: 200, rssMib: 290 }) }],
    [
      'a constant native library beside small Buffers that come and go',
      { at: t => ({ nativeMib: 190, spanMib: 200, rssMib: 290, externalMib: 2 + 4 * (t % 3) }) }
    ],
    [
      'native memory that grows in a line: a leak',
      {
        at: t => ({
          nativeMib: 12 + 2 * t,
          spanMib: 20 + 2 * t,
          rssMib: 90 + 2 * t,
          externalMib: 2 + 30 * (t % 2)
        })
      }
    ],
    [
      'native memory outside of malloc',
      { at: t => ({ nativeMib: 190, spanMib: 20, rssMib: 290, externalMib: 2 + 60 * (t % 2) }) }
    ],
    ['the same app under jemalloc', { at: fragmenting, helloChanges: { allocator: 'jemalloc' } }]
  ])('%s is none', (_, app) => {
    expect([...watch({ seconds: 120, ...app }).ever]).not.toContain('allocator-fragmentation')
  })
})

/**
 * Counters and gauges that most cases share.
 * @param {number} t
 * @param {number} [busy]
 */
const busyLoop = (t, busy = 0.3) => ({
  eventLoopActiveSeconds: busy * t,
  eventLoopIdleSeconds: (1 - busy) * t
})
/**
 * A fixed number of delays a second, of equal length.
 * @param {number} t
 * @param {number} late delay in seconds
 */
const delays = (t, late) => ({
  eventLoopDelay: [50 * t, (50 * t * late) / 10, late, Array(13).fill(0)]
})

/**
 * Half a core of CPU quota.
 * @param {number} t
 * @param {number} throttled share of periods
 * @param {number} waited share of time in which the thread waited for a CPU
 */
const underQuota = (t, throttled, waited) => ({
  ...busyLoop(t),
  ...delays(t, 0.06),
  cpuQuotaCores: 0.5,
  cpuPeriods: 10 * t,
  cpuThrottledPeriods: 10 * throttled * t,
  runQueueWaitSeconds: waited * t
})

/**
 * Signals of the other diagnoses, just above and just below confirmation.
 * @type {[string, { at: (t: number) => object, seconds?: number, helloChanges?: object },
 *   Record<string, (t: number) => object>][]}
 */
const CASES = [
  [
    'native-memory-leak',
    { seconds: 140, at: t => ({ nativeMib: 12 + 3 * t, rssMib: 60 + 3 * t }) },
    {
      'native memory that levels off': t => ({
        nativeMib: 12 + 200 * (1 - Math.exp(-t / 15)),
        rssMib: 60 + 200 * (1 - Math.exp(-t / 15))
      }),
      'native memory that is constant': () => ({ nativeMib: 250, rssMib: 320 }),
      'growth without a single major GC': t => ({
        nativeMib: 12 + 3 * t,
        rssMib: 60 + 3 * t,
        majors: 0
      })
    }
  ],
  [
    'native-memory-leak',
    {
      seconds: 140,
      at: t => ({
        externalMib: 2 + 3 * t,
        rssMib: 60 + 3 * t,
        values: { arrayBuffersBytes: 3 * t * MIB }
      })
    },
    {
      'Buffers that are constant': () => ({ externalMib: 150, rssMib: 210 })
    }
  ],
  [
    'array-buffer-pile-up',
    {
      seconds: 40,
      at: t => ({
        externalMib: t % 2 ? 90 : 4,
        rssMib: 180,
        externalMajors: 3,
        externalMajorSeconds: 0.05
      })
    },
    {
      'the same Buffers without majors of their own': t => ({
        externalMib: t % 2 ? 90 : 4,
        rssMib: 180
      }),
      'majors for small Buffers': t => ({
        externalMib: t % 2 ? 20 : 4,
        rssMib: 180,
        externalMajors: 3,
        externalMajorSeconds: 0.05
      }),
      'Buffers that are kept': t => ({
        externalMib: 4 + 2 * t,
        rssMib: 60 + 2 * t,
        externalMajors: t % 2,
        externalMajorSeconds: 0.05 * (t % 2)
      }),
      'a WebAssembly memory that grows': t => ({
        externalMib: 4 + 2 * t,
        rssMib: 60 + 2 * t,
        externalMajors: 3,
        externalMajorSeconds: 0.05,
        values: {
          residentBytes: { webassembly: 20 * Math.floor(t / 10) * MIB, other: 30 * MIB }
        }
      })
    }
  ],
  [
    'buffer-pool-pinning',
    {
      seconds: 60,
      at: t => ({
        externalMib: 90,
        rssMib: 180,
        values: {
          arrayBuffersBytes: 88 * MIB,
          bufferPoolBytes: 8192,
          bufferSlabsFollowed: t,
          bufferSlabsKept: t
        }
      })
    },
    {
      'slabs that go': t => ({
        externalMib: 90,
        rssMib: 180,
        values: {
          arrayBuffersBytes: 88 * MIB,
          bufferPoolBytes: 8192,
          bufferSlabsFollowed: t,
          bufferSlabsKept: Math.floor(t / 20)
        }
      }),
      'a few megabytes': t => ({
        externalMib: 30,
        rssMib: 180,
        values: {
          arrayBuffersBytes: 30 * MIB,
          bufferPoolBytes: 8192,
          bufferSlabsFollowed: t,
          bufferSlabsKept: t
        }
      })
    }
  ],
  [
    'heap-limit-thrash',
    { seconds: 20, at: () => ({ liveMib: 230, rssMib: 300, majors: 2, majorSeconds: 0.4 }) },
    {
      'a full heap that hardly collects': () => ({
        liveMib: 230,
        rssMib: 300,
        majors: 0.05,
        majorSeconds: 0.01
      }),
      'a heap with room': () => ({ liveMib: 120, rssMib: 200, majors: 2, majorSeconds: 0.4 })
    }
  ],
  [
    'container-limit-mismatch',
    { seconds: 20, at: () => ({ heapLimitMib: 1024, semiMib: 16 }) },
    {
      'a heap limit that fits': () => ({ heapLimitMib: 400, semiMib: 16 }),
      'a heap that might not fit in a container that is half empty': () => ({
        heapLimitMib: 500,
        semiMib: 16,
        rssMib: 250
      }),
      'a container filled by something else than the heap': () => ({
        heapLimitMib: 400,
        nativeMib: 400,
        rssMib: 450
      })
    }
  ],
  [
    'container-limit-mismatch',
    {
      seconds: 20,
      at: t => ({
        values: {
          containerHighBytes: 300 * MIB,
          containerHighHits: 20 * t,
          memoryPressureSomeSeconds: 0.2 * t
        }
      })
    },
    {
      'a memory.high that nobody waits for': t => ({
        values: {
          containerHighBytes: 300 * MIB,
          containerHighHits: 20 * t,
          memoryPressureSomeSeconds: 0.01 * t
        }
      })
    }
  ],
  [
    'event-loop-blocked',
    { seconds: 40, at: t => ({ values: { ...busyLoop(t), ...delays(t, 0.3) } }) },
    {
      'a loop that answers': t => ({ values: { ...busyLoop(t), ...delays(t, 0.05) } }),
      'a loop that GC blocks': t => ({
        majorSeconds: 0.2,
        values: { ...busyLoop(t), ...delays(t, 0.3) }
      }),
      'a process that the CPU quota holds back': t => ({
        values: { ...busyLoop(t), ...delays(t, 0.3), cpuPeriods: 10 * t, cpuThrottledPeriods: t }
      }),
      'a process whose CPU others take': t => ({
        values: {
          ...busyLoop(t),
          ...delays(t, 0.3),
          threadCpuUserSeconds: 0.1 * t,
          threadCpuSystemSeconds: 0,
          runQueueWaitSeconds: 0.2 * t
        }
      })
    }
  ],
  [
    'event-loop-blocked',
    {
      seconds: 40,
      at: t => ({ values: { ...busyLoop(t), ...delays(t, 0.3), runQueueWaitSeconds: 0.12 * t } })
    },
    {
      'a busy loop whose pieces of work are drawn out, as others take its CPU': t => ({
        values: {
          ...busyLoop(t, 0.97),
          ...delays(t, t % 4 === 0 ? 0.42 : 0.22),
          runQueueWaitSeconds: 0.6 * t
        }
      }),
      'one that is mostly held up by others: it may be, and may not': t => ({
        values: { ...busyLoop(t), ...delays(t, 0.9), runQueueWaitSeconds: 0.24 * t }
      })
    }
  ],
  [
    'cpu-throttling',
    { seconds: 60, at: t => ({ values: underQuota(t, 0.26, 0.06) }) },
    {
      'a few periods': t => ({ values: underQuota(t, 0.24, 0.06) }),
      'a thread that hardly waits': t => ({ values: underQuota(t, 0.5, 0.04) }),
      'a start that used up the quota': t => ({ values: underQuota(Math.min(t, 10), 1, 0.9) }),
      'a batch program, for which nobody waits': t => ({
        values: {
          ...underQuota(t, 1, 0.5), ...busyLoop(t, 1), connectionsAccepted: 0, resources: {}
        }
      }),
      'no limit': () => ({ values: { cpuPeriods: 0, cpuThrottledPeriods: 0 } })
    }
  ],
  [
    'resource-leak',
    { seconds: 90, at: t => ({ values: { resources: { FSEventWrap: 5 * t } } }) },
    {
      'timeouts of a minute': t => ({ values: { resources: { Timeout: 20 * Math.min(t, 60) } } }),
      'a pool of processes that fills and stays': t => ({
        values: { resources: { ProcessWrap: Math.min(0.6 * t, 36) } }
      }),
      'a pool that fills and stays': t => ({
        values: { resources: { TCPSocketWrap: Math.min(5 * t, 60) } }
      }),
      'sockets that grow with the load': t => ({
        values: {
          resources: { TCPSocketWrap: 5 * t },
          eventLoopActiveSeconds: 0.002 * t * t,
          eventLoopIdleSeconds: t - 0.002 * t * t
        }
      }),
      'many, but constant': () => ({ values: { resources: { TCPSocketWrap: 900, Timeout: 4000 } } })
    }
  ],
  [
    'resource-leak',
    {
      seconds: 90,
      at: t => ({ values: { openFileDescriptors: 30 + 3 * t, maxFileDescriptors: 1024 } })
    },
    {
      'files that come and go': t => ({
        values: { openFileDescriptors: 30 + 50 * (t % 3), maxFileDescriptors: 1024 }
      })
    }
  ],
  [
    'context-leak',
    { seconds: 60, at: t => ({ values: { nativeContexts: 1 + 2 * t } }) },
    {
      'contexts that come and go': t => ({ values: { nativeContexts: 1 + (t % 12) } }),
      'machine code for functions that the app has': t => withCode(t, 0.3),
      'sandboxes that are kept on purpose': () => ({ values: { nativeContexts: 60 } })
    }
  ],
  [
    'oversized-heap',
    {
      seconds: 90,
      at: () => ({
        liveMib: 12,
        rssMib: 380,
        heapMib: 300,
        semiMib: 64,
        heapLimitMib: 3000,
        values: { containerLimitBytes: 8192 * MIB }
      })
    },
    {
      'a heap in proportion': () => ({
        liveMib: 120,
        rssMib: 380,
        heapMib: 300,
        semiMib: 64,
        heapLimitMib: 3000,
        values: { containerLimitBytes: 8192 * MIB }
      }),
      'garbage in the old space that no major GC has looked at': () => ({
        liveMib: 12,
        majors: 0,
        rssMib: 380,
        heapMib: 300,
        semiMib: 64,
        heapLimitMib: 3000,
        values: {
          containerLimitBytes: 8192 * MIB,
          spaces: {
            new_space: [0, 64 * MIB, 64 * MIB, 0],
            old_space: [200 * MIB, 230 * MIB, 0, 230 * MIB]
          }
        }
      })
    }
  ],
  [
    'idle-heap-not-returned',
    { seconds: 120, at: t => ({ ...resting(t), rssMib: 340, heapMib: 250 }) },
    {
      'memory that nobody misses': t => ({
        ...resting(t),
        rssMib: 200,
        heapMib: 120,
        values: { ...resting(t).values, containerLimitBytes: 4096 * MIB }
      }),
      'an app at work': t => ({ ...resting(t), scavenges: 5, rssMib: 340, heapMib: 250 })
    }
  ],
  [
    'idle-heap-not-returned',
    { seconds: 120, at: t => pooling(t, 240) },
    {
      'pages that lie where V8 has none': t => pooling(t, 10),
      'pages of workers that do not report': t => {
        const app = pooling(t, 240)
        return { ...app, values: { ...app.values, workerThreads: 1 } }
      }
    }
  ]
]

/**
 * An app with one context whose code grows by half a MiB per second.
 * @param {number} t
 * @param {number} ratio growth of the rest of the live heap as a multiple of the growth of code
 */
function withCode (t, ratio) {
  const codeMib = 0.5 * t
  const spaces = { new_space: [0, 2 * MIB, MIB, 0], code_space: [codeMib * MIB, 0, 0, 0] }
  return { liveMib: 10 + (1 + ratio) * codeMib, values: { nativeContexts: 1, spaces } }
}

it('functions that are compiled from text and retained are a context leak', () => {
  const { primary, verdict } = watch({ seconds: 60, at: t => withCode(t, 1.6) })
  expect(primary?.diagnosis).toBe('context-leak')
  expect(verdict('context-leak').summary).toMatch(/^Compiled code grows by /)
})

it.each([
  ['oversized-heap', { heapMib: 300, rssMib: 380 }, () => ({})],
  ['idle-heap-not-returned', { heapMib: 250, rssMib: 340 }, resting]
])('the lower limit of %s comes with semi-spaces that fit the live heap', (id, app, does) => {
  const flagsWith = (/** @type {number} */ semiMib) => watch({
    seconds: 120,
    helloChanges: { execArgv: [`--max-semi-space-size=${semiMib}`] },
    at: t => ({ liveMib: 12, heapLimitMib: 3000, ...does(t), ...app })
  }).verdict(id).fix[0].change.flag
  expect(flagsWith(16)).toBe('--max-old-space-size=64')
  expect(flagsWith(64)).toBe('--max-old-space-size=64 --max-semi-space-size=16')
})

describe('a heap that a full GC of memwatch frees in an app at rest', () => {
  /** @param {(t: number) => object} changes of an app whose GC at 50 s frees 200 MiB */
  const freed = changes => watch({
    seconds: 120,
    at: t => {
      const app = resting(t)
      return {
        ...app,
        majors: t === 10 ? 1 : 0,
        forcedMajors: t === 50 ? 1 : 0,
        liveMib: t < 50 ? 210 : 10,
        heapMib: t < 50 ? 220 : 20,
        rssMib: t < 50 ? 290 : 90,
        ...changes(t)
      }
    }
  }).verdict('idle-heap-not-returned')

  it('is memory that V8 would have kept', () => {
    const { state, severity, summary, evidence, impact, fix } = freed(() => ({}))
    expect({ state, severity, summary, impact }).toEqual({
      state: 'confirmed',
      severity: 'info',
      summary: "The idle app's heap kept 210 MiB more than its 10 MiB of live objects, until " +
        'memwatch ran a full GC. V8 runs none in an idle app.',
      impact: 'Without this GC, RSS would be about 290 MiB: MEMWATCH_FORCED_GC=off shows it.'
    })
    expect(evidence.map(({ signal }) => signal)).toEqual(['restFreedBytes', 'gcsLastMinute'])
    // The burst had 210 MiB of live objects: a lower limit would end it.
    expect(fix.map(({ change }) => change.flag)).toEqual([undefined])
    expect(fix[0].change.code).toContain('child process')
  })
  it('gets a lower limit if the burst had few live objects', () => {
    const { fix: [{ change, predicted: [{ signal, from }] }] } =
      freed(t => ({ liveMib: t < 50 ? 30 : 10 }))
    expect({ flag: change.flag, signal, from })
      .toEqual({ flag: '--max-old-space-size=64', signal: 'rssBytes', from: 290 * MIB })
  })
  it.each(/** @type {[string, (t: number) => object][]} */ ([
    ['the app was busy', t => ({
      values: { ...resting(t).values, ...busyLoop(t, 0.01 + 0.5 * Math.min(t, 55) / t) }
    })],
    ['V8 ran a major GC since', t => ({ majors: t === 10 || t === 70 ? 1 : 0 })],
    ['it freed little', t => t < 50 ? { liveMib: 40, heapMib: 50, rssMib: 120 } : {}],
    ['no limit is near, and it freed 120 MiB', t => ({
      ...(t < 50 && { liveMib: 120, heapMib: 130 }),
      values: { ...resting(t).values, containerLimitBytes: 4096 * MIB }
    })]
  ]))('is none if %s', (_, changes) => {
    expect(freed(changes).state).toBe('ok')
  })
  it.each(/** @type {[string, (t: number) => object][]} */ ([
    ['V8 runs further ones right after it', t => ({ majors: t === 10 || t === 55 ? 1 : 0 })],
    ['no limit is near, but it freed 210 MiB', t => ({
      values: { ...resting(t).values, containerLimitBytes: undefined }
    })]
  ]))('is confirmed if %s', (_, changes) => {
    expect(freed(changes).state).toBe('confirmed')
  })
})

describe('major GCs for Buffers beside a large live heap', () => {
  const joined = (
    changes = {}, majors = 2.8, cores = 0.45, limitMib = 512, throttledRatio = 0,
    { waitingMib = 30, oldSwingMib = 3 } = {}
  ) => watch({
    seconds: 60,
    helloChanges: { execArgv: ['--max-old-space-size=512', '--max-semi-space-size=2'] },
    at: t => ({
      liveMib: 134,
      rssMib: 260,
      heapLimitMib: 560,
      externalMib: t % 2 ? 4 + waitingMib : 4,
      scavenges: 3,
      scavengeSeconds: 0.004,
      majors,
      majorSeconds: majors / 80,
      values: {
        ...busyLoop(t),
        cpuUserSeconds: cores * t,
        cpuSystemSeconds: 0,
        cpuPeriods: 10 * t,
        cpuThrottledPeriods: throttledRatio * 10 * t,
        containerLimitBytes: limitMib * MIB,
        spaces: {
          new_space: [0, 2 * MIB, MIB, 0],
          old_space: [(134 + oldSwingMib * (t % 2)) * MIB, 140 * MIB, 0, 140 * MIB]
        }
      },
      ...changes
    })
  }).verdict('array-buffer-pile-up')

  it('are found by their CPU time if V8 reports them as ordinary', () => {
    expect(joined()).toMatchObject({
      state: 'confirmed',
      severity: 'warning',
      summary: 'Up to 30 MiB of unused Buffers wait between GCs, and V8 runs 2.8 major GCs a ' +
        'second to free them, in most of the CPU time.',
      fix: [{
        predicted: [
          { signal: 'ordinaryMajorsPerSecond', from: expect.closeTo(2.8, 1) },
          { signal: 'ordinaryMajorPauseRatio' },
          { signal: 'ordinaryMarkingRatio', from: 1, to: 0.1 },
          { signal: 'rssBytes' }
        ]
      }]
    })
  })
  it.each([
    ['a process that does other work', {}, 2.8, 2],
    ['a small live heap', { liveMib: 10 }, 2.8, 0.04],
    ['few of them', {}, 0.15, 0.04],
    ['few Buffers', { externalMib: 4 }, 2.8, 0.45],
    ['promoted objects', { scavenges: 40 }, 2.8, 0.45, 20],
    ['objects promoted beside a smaller live heap', { scavenges: 28, liveMib: 90 }, 2.8, 0.3, 20]
  ])('are none with %s', (_, changes, majors, cores, oldSwingMib = 3) => {
    expect(joined(changes, majors, cores, 512, 0, { oldSwingMib }).state).toBe('ok')
  })
  it.each([
    ['a smaller live heap', { liveMib: 60 }, 2.8, 0.3],
    ['fewer of them', {}, 1, 0.3],
    ['still fewer', {}, 0.35, 0.1],
    ['scavenges that promote less than they may', { scavenges: 40 }, 2.8, 0.45],
    ['promoted objects that are few beside the live heap', { scavenges: 28 }, 2.8, 0.45],
    ['a new space that stays below its maximum', { scavenges: 30, semiMib: 0.5 }, 2.8, 0.45]
  ])('are found with %s', (_, changes, majors, cores) => {
    expect(joined(changes, majors, cores).state).toBe('confirmed')
  })
  // 1 major GC of 134 MiB a second takes 0.17 cores.
  it.each([[0.7, 'ok'], [0.54, 'suspected'], [0.4, 'confirmed']])(
    'in a process of %d cores are %s', (cores, state) => {
      expect(joined({}, 1, cores, 2048).state).toBe(state)
    }
  )
  it.each([
    [12, 2, 'confirmed'], [12, 4, 'ok'], [3, 0.1, 'ok'], [30, 20, 'confirmed']
  ])('for %d MiB of Buffers, and %d MiB of other objects, are %s', (
    waitingMib, oldSwingMib, state
  ) => {
    expect(joined({}, 2.8, 0.45, 512, 0, { waitingMib, oldSwingMib }).state).toBe(state)
  })
  it.each([
    [512, 1, 0, 'warning'],
    [2048, 1, 0, 'info'],
    [2048, 1, 0.2, 'info'],
    [2048, 1, 0.3, 'warning'],
    [2048, 2.8, 0, 'warning']
  ])(
    'in a container of %i MiB, %f a second, with %f of the periods throttled: %s',
    (limitMib, majors, throttledRatio, severity) => {
      expect(joined({}, majors, 0.3, limitMib, throttledRatio))
        .toMatchObject({ state: 'confirmed', severity })
    }
  )
})

it.each([[0, false], [2, true]])(
  'larger semi-spaces of thread %i come with the limits of a worker: %s', (threadId, told) => {
    const { state, fix: [{ change, risk }] } = watch({
      seconds: 60,
      helloChanges: { threadId },
      at: t => ({
        scavenges: 150, scavengeSeconds: 0.15, majors: 5, majorSeconds: 0.05,
        values: busyLoop(t, 0.5)
      })
    }).verdict('semi-space-starvation')
    expect(state).toBe('confirmed')
    const semiMb = Number(/--max-semi-space-size=(\d+)/.exec(String(change.flag))?.[1])
    expect(risk.includes(`resourceLimits: { maxYoungGenerationSizeMb: ${3 * semiMb} }`)).toBe(told)
  }
)

describe('a heap at 79 % of its limit', () => {
  const marked = (cores, majors, liveMib = 202, threadId = 0) => watch({
    seconds: 60,
    helloChanges: { threadId },
    at: t => ({
      liveMib,
      rssMib: 300,
      scavenges: 5,
      scavengeSeconds: 0.005,
      majors,
      majorSeconds: majors / 100,
      values: {
        // A worker reports only its thread, without the threads that mark for it.
        [threadId > 0 ? 'threadCpuUserSeconds' : 'cpuUserSeconds']: cores * t,
        [threadId > 0 ? 'threadCpuSystemSeconds' : 'cpuSystemSeconds']: 0,
        eventLoopActiveSeconds: 0.2 * t,
        eventLoopIdleSeconds: 0.8 * t
      }
    })
  }).verdict('heap-limit-thrash')

  it.each([
    ['a process of 0.8 cores', 0.8, 2, 202, 'confirmed'],
    ['a process of 2.5 cores, which does other work', 2.5, 2, 202, 'suspected'],
    ['a process of 4 cores, which does other work', 4, 2, 202, 'ok'],
    ['a process that runs few of them', 0.05, 0.1, 202, 'ok'],
    ['a heap at 72 % of its limit', 0.8, 2, 185, 'confirmed'],
    ['a smaller heap', 0.8, 2, 172, 'ok']
  ])('with short pauses, marked by major GCs of %s (%f cores, %f a second, %d MiB): %s', (
    _, cores, majors, liveMib, state
  ) => {
    expect(marked(cores, majors, liveMib).state).toBe(state)
  })
  it.each([
    [0.5, 2, 'confirmed'],
    [0.5, 0.5, 'suspected'],
    [0.9, 0.3, 'ok']
  ])('of a worker that uses %f cores itself, marked by %f major GCs a second: %s', (
    cores, majors, state
  ) => {
    expect(marked(cores, majors, 202, 1).state).toBe(state)
  })
  it('tells the CPU time of other threads, and predicts the rate of major GCs', () => {
    const { severity, summary, evidence, fix } = marked(0.8, 2)
    expect({ severity, summary }).toEqual({
      severity: 'warning',
      summary: 'The live heap fills 79 % of its limit of 256 MiB, and GC takes 2.5 % of the ' +
        'time, and about 63 % of CPU time, as other threads mark the heap.'
    })
    expect(evidence.find(({ signal }) => signal === 'ordinaryMarkingRatio')?.value)
      .toBeCloseTo(2 * 202 / 800 / 0.8, 2)
    const { from, to } = defined(fix[0].predicted
      .find(({ signal }) => signal === 'ordinaryMajorsPerSecond'))
    expect(from).toBe(2)
    expect(to).toBeLessThan(0.5 * from)
  })
})

describe('a heap at 68 % of its limit', () => {
  const watched = (semiMib, majors, values = {}, cores = 0) => watch({
    seconds: 40,
    helloChanges: { execArgv: ['--max-old-space-size=150', `--max-semi-space-size=${semiMib}`] },
    at: t => ({
      liveMib: 102,
      rssMib: 300,
      heapLimitMib: 150 + 3 * semiMib,
      semiMib,
      scavenges: 0,
      scavengeSeconds: 0,
      majors,
      majorSeconds: majors / 70,
      values: {
        ...values,
        ...(cores > 0 && { cpuUserSeconds: cores * t, cpuSystemSeconds: 0 })
      }
    })
  }).verdict('heap-limit-thrash')

  it.each([
    ['is too large', 64, 7, 'suspected'],
    ['is too large, too', 32, 7, 'suspected'],
    ['fits', 16, 7, 'ok'],
    ['is too large, but major GCs are rare', 64, 0.1, 'ok']
  ])('beside which a semi-space %s (%d MiB, %f major GCs a second) is %s', (
    _, semiMib, majors, state
  ) => {
    expect(watched(semiMib, majors).state).toBe(state)
  })
  it.each([
    // 7 major GCs of 102 MiB a second take 0.9 cores.
    [1, 'confirmed'], [2, 'suspected']
  ])('marked all the time by a process of %d cores is %s', (cores, state) => {
    expect(watched(64, 7, {}, cores).state).toBe(state)
  })
  it('gets a higher limit, or smaller semi-spaces if the container has no room', () => {
    const told = watched(64, 7, { containerLimitBytes: 2048 * MIB })
    expect(told).toMatchObject({
      severity: 'warning',
      summary: 'The live heap fills 68 % of its limit of 150 MiB, the rest is too little for ' +
        'semi-spaces of 64 MiB, and GC takes 10 % of the time.',
      fix: [
        { change: { flag: '--max-old-space-size=288' } },
        { change: { flag: '--max-semi-space-size=16' } },
        {}
      ]
    })
    expect(told.evidence.map(({ text }) => text)).toContain(
      'A semi-space of 64 MiB is larger than 24 MiB, half of the rest of the limit: V8 marks the ' +
        'heap all the time.'
    )
    expect(watched(64, 7).fix).toMatchObject([
      {
        change: { flag: '--max-semi-space-size=16' },
        predicted: [{ signal: 'recentGcPauseRatio' }]
      },
      { title: 'Keep less on the heap' },
      {}
    ])
  })
})

describe('a busy machine after an attach', () => {
  /**
   * Numbers of an app whose GCs, by wall time, starve it from the eleventh second on.
   * @param {number} t
   * @param {(t: number) => boolean} reads the run queue
   */
  const starving = (t, reads) => {
    const later = Math.max(0, t - 10)
    return {
      scavenges: later ? 200 : 1,
      scavengeSeconds: later ? 0.4 : 0.001,
      majors: later ? 8 : 0,
      majorSeconds: later ? 0.2 : 0,
      values: {
        eventLoopActiveSeconds: 0.5 * t + 0.4 * later,
        eventLoopIdleSeconds: 0.5 * t - 0.4 * later,
        cpuUserSeconds: 0.5 * t,
        cpuSystemSeconds: 0,
        ...(reads(t) && { runQueueWaitSeconds: 1 + 0.001 * t })
      }
    }
  }

  it.each([
    ['suspected', 'came before them', t => t === 1 || t === 6],
    ['confirmed', 'are as recent', t => t % 5 === 1]
  ])('GCs are %s as starvation where readings of its wait for a CPU %s', (state, _, reads) => {
    const { verdict } = watch({
      seconds: 26, attachedAtSeconds: 100, at: t => starving(t, reads)
    })
    expect(verdict('semi-space-starvation').state).toBe(state)
  })
})

/**
 * A heap of 40 MiB that keeps 180 MiB of empty pages.
 * @param {number} t
 * @param {number} mappedMib address range of V8's pages
 */
function pooling (t, mappedMib) {
  const app = resting(t)
  const residentBytes = { malloc_heap: 12 * MIB, other: 220 * MIB }
  const values = {
    ...app.values, rssAnonBytes: 240 * MIB, v8MappedBytes: mappedMib * MIB, residentBytes
  }
  return { ...app, rssMib: 280, heapMib: 40, values }
}

/** The app runs one major GC at the start, and none later. @param {number} t */
function resting (t) {
  return {
    scavenges: t < 5 ? 10 : 0,
    majors: t < 5 ? 1 : 0,
    scavengeSeconds: 0,
    majorSeconds: 0,
    values: {
      heapUsedBytes: 30 * MIB,
      eventLoopActiveSeconds: 0.01 * t,
      eventLoopIdleSeconds: 0.99 * t
    }
  }
}

it('a native leak stays suspected when major GCs begin: a minute outweighs seven seconds', () => {
  const { verdict } = watch({
    seconds: 90,
    at: t => ({
      nativeMib: 12 + 1.2 * t,
      rssMib: 60 + 1.2 * t,
      majors: t < 62 ? 0 : 1,
      values: { containerLimitBytes: 1024 * MIB }
    })
  })
  expect(verdict('native-memory-leak')).toMatchObject({ state: 'suspected' })
  expect(verdict('native-memory-leak').summary).toContain('72 MiB/min')
})

it.each([
  [250, 'suspected'], [340, 'confirmed']
])('a native leak of 2 MiB/s under a limit of 16 GiB is %2$s after %1$i s', (seconds, state) => {
  const { verdict } = watch({
    seconds,
    at: t => ({
      nativeMib: 12 + 2 * t,
      rssMib: 60 + 2 * t,
      values: { containerLimitBytes: 16 * 1024 * MIB }
    })
  })
  expect(verdict('native-memory-leak').state).toBe(state)
  const { limit } = defined(verdict('native-memory-leak').evidence.find(
    ({ signal }) => signal === 'outsideHeapRiseBytes'
  ))
  expect(limit).toBe(512 * MIB)
})
it.each([
  [0.2, 'unknown'], [0.3, 'suspected']
])('a native leak of %d MiB/s far from its limit is %s within a minute', (mibPerSecond, state) => {
  const { verdict } = watch({
    seconds: 60,
    at: t => ({
      nativeMib: 12 + mibPerSecond * t,
      rssMib: 60 + mibPerSecond * t,
      values: { containerLimitBytes: 4096 * MIB }
    })
  })
  expect(verdict('native-memory-leak').state).toBe(state)
})
it.each([
  [0.05, 'ok'], [0.08, 'unknown'], [0.1, 'suspected']
])('native memory that grows by %d MiB/s in a line is %s after 150 s', (mibPerSecond, state) => {
  const { verdict } = watch({
    seconds: 150,
    at: t => ({
      nativeMib: 12 + mibPerSecond * t,
      rssMib: 60 + mibPerSecond * t,
      values: { containerLimitBytes: 4096 * MIB }
    })
  })
  expect(verdict('native-memory-leak').state).toBe(state)
})
// A heap at 85 % of its limit cannot continue to grow, so its stop proves nothing.
it.each([
  [1024 - 110, 'confirmed'], [1024 - 180, 'ok']
])('a native leak that stops at an RSS of %d of 1024 MiB is %s', (topMib, state) => {
  const nativeMib = t => Math.min(12 + 10 * t, topMib - 48)
  const { verdict } = watch({
    seconds: 240,
    at: t => ({
      nativeMib: nativeMib(t),
      rssMib: 48 + nativeMib(t),
      values: { containerLimitBytes: 1024 * MIB }
    })
  })
  expect(verdict('native-memory-leak').state).toBe(state)
})
it('a native cache of 400 MiB that fills in ten minutes is never confirmed far from a limit', () => {
  const { ever } = watch({
    seconds: 900,
    helloChanges: { constrainedBytes: 4096 * MIB },
    at: t => ({
      nativeMib: 12 + (400 * Math.min(t, 600)) / 600,
      rssMib: 60 + (400 * Math.min(t, 600)) / 600,
      values: { containerLimitBytes: 4096 * MIB }
    })
  })
  expect([...ever]).toEqual([null])
})

describe('unexplained native memory', () => {
  it('is neither ruled out nor found without an answer of malloc', () => {
    const { verdict } = watch({
      seconds: 90,
      at: () => ({ nativeMib: 260, spanMib: 262, rssMib: 340 })
    })
    expect(verdict('allocator-fragmentation')).toMatchObject({
      state: 'unknown',
      summary: expect.stringContaining('MEMWATCH_ALLOCATOR_ACCESS=read')
    })
  })
  it('is suspected if it grows in a line, even far from the limit', () => {
    const { verdict } = watch({
      seconds: 120,
      at: t => ({
        nativeMib: 12 + t,
        spanMib: 14 + t,
        rssMib: 90 + t,
        values: { containerLimitBytes: 8192 * MIB }
      })
    })
    expect(verdict('native-memory-leak')).toMatchObject({
      state: 'suspected',
      summary: expect.stringContaining('grows by 60 MiB/min')
    })
  })
})

describe('a live heap that fills its limit within a minute', () => {
  /**
   * The limit is 259 MiB: 256 for the old generation. A major GC runs every two seconds.
   * @param {number} mibPerSecond
   * @param {(t: number) => number} [also]
   */
  const filling =
    (mibPerSecond, also = () => 0) =>
      t => ({
        liveMib: 20 + mibPerSecond * 2 * Math.floor(t / 2) + also(t),
        rssMib: 330,
        scavenges: 0,
        scavengeSeconds: 0,
        majors: t % 2 === 0 ? 1 : 0,
        majorSeconds: 0.01
      })
  const states = (at, seconds) => watch({ seconds, at }).verdict('heap-limit-thrash')
  it('is suspected before the process dies, with the remaining time', () => {
    expect(states(filling(14), 16)).toMatchObject({
      state: 'suspected',
      summary: expect.stringMatching(
        /^The live heap fills \d\d % of its limit.*the rest in about \d+(\.\d+)? s/
      )
    })
  })
  it('is suspected as a leak with fewer than seven readings, with the same remaining time', () => {
    const { verdict } = watch({ seconds: 15, at: filling(14) })
    const [leak, thrash] = ['js-heap-leak', 'heap-limit-thrash'].map(verdict)
    expect(leak).toMatchObject({ state: 'suspected', severity: 'critical' })
    expect(leak.secondsLeft).toBeGreaterThan(0)
    expect(leak.summary).toContain(defined(/about .* s/.exec(thrash.summary))[0])
    expect(watch({ seconds: 15, at: filling(0.5) }).verdict('js-heap-leak').state).toBe('unknown')
  })
  it('is no finding below six tenths of the limit', () => {
    expect(states(filling(14), 8).state).not.toBe('suspected')
  })
  it('is no finding if it rises slowly', () => {
    expect(states(t => ({ ...filling(0)(t), liveMib: 160 + t / 4 }), 40).state).toBe('ok')
  })
  it('is no finding once the app has loaded its data', () => {
    const at = t => ({ ...filling(14)(t), liveMib: 20 + 13 * Math.min(t, 12) + t / 9 })
    expect(states(at, 12)).toMatchObject({ state: 'suspected', isHeld: false })
    expect(states(at, 16)).toMatchObject({
      isHeld: true, summary: expect.stringMatching(/^The live heap filled .* there is room\./)
    })
  })
  it('is no finding if it fell at a major GC', () => {
    expect(states(filling(14, t => t >= 8 ? -40 : 0), 16).state).toBe('ok')
  })
  it('is no finding if the used heap has hardly risen since the last major GC', () => {
    const at = used => t => ({
      ...filling(14)(Math.min(t, 12)),
      majors: t <= 12 && t % 2 === 0 ? 1 : 0,
      values: { heapUsedBytes: (t <= 12 ? 20 + 14 * t : used(t)) * MIB }
    })
    const goesOn = states(at(t => 20 + 14 * t), 14)
    expect(goesOn).toMatchObject({ state: 'suspected', isHeld: false })
    const ended = states(at(t => 188 + (t - 12) / 4), 14)
    expect(ended).toMatchObject({ isHeld: true })
  })
})

describe('a quiet heap close to its limit', () => {
  const quiet = (liveMib, seconds = 60, at = (_t) => liveMib) => watch({
    seconds,
    at: t => ({
      liveMib: at(t),
      rssMib: 100 + at(t),
      scavenges: 0,
      scavengeSeconds: 0,
      majors: t % 20 === 15 ? 1 : 0,
      majorSeconds: t % 20 === 15 ? 0.1 : 0
    })
  })
  it('is suspected, but not urgent, with the room that is left', () => {
    const { primary, verdict } = quiet(230)
    expect(primary).toBeNull()
    expect(verdict('heap-limit-thrash')).toMatchObject({
      state: 'suspected',
      severity: 'info',
      summary: 'The live heap fills 90 % of its limit of 256 MiB, which leaves 26 MiB for ' +
        'growth and garbage. Major GCs take little time so far.'
    })
  })
  it('has a higher limit as its fix, which predicts the filled share', () => {
    const { fix, evidence } = quiet(230).verdict('heap-limit-thrash')
    const [{ title, predicted: [{ signal, from, to }] }] = fix
    const [, mebibytes] = defined(/^Raise the heap limit to (\d+) MiB/.exec(title))
    expect(from).toBe(defined(evidence.find(item => item.signal === signal)).value)
    expect(to).toBeCloseTo(230 / Number(mebibytes), 5)
  })
  it('stays a finding while the live heap is smaller, with the fix for its largest size', () => {
    const { summary, fix } = quiet(230, 1200, t => t < 400 ? 230 : 128)
      .verdict('heap-limit-thrash')
    expect(summary).toBe('The live heap fills 50 % of its limit of 256 MiB now, but filled 90 % ' +
      'before, which left 26 MiB for growth and garbage.')
    expect(fix[0].title).toBe(quiet(230).verdict('heap-limit-thrash').fix[0].title)
  })
  it('is no finding at 85 % of its limit', () => {
    expect(quiet(218).verdict('heap-limit-thrash').state).toBe('ok')
  })
})

describe('resource-leak', () => {
  it.each([
    // One worker a second, each with 10 descriptors and 4 MiB: memory of 512 MiB is used up first.
    ['memory', { rssMib: 4, liveMib: 0 }, 32, 'the container limit in about'],
    // Each with 1 MiB in the heap, which ends before the container does.
    ['heap', { rssMib: 1, liveMib: 1 }, 177, 'the heap size limit in about'],
    ['descriptors', { rssMib: 0, liveMib: 0 }, 1940, 'open files is reached in about']
  ])('tells the time until %s are used up first', (_, each, secondsLeft, impact) => {
    const { verdict } = watch({
      seconds: 72,
      at: t => ({
        liveMib: 10 + each.liveMib * t,
        rssMib: 90 + each.rssMib * t,
        nativeMib: 12 + each.rssMib * t,
        values: { openFileDescriptors: 30 + 10 * t, maxFileDescriptors: 20_000, threads: 11 + t }
      })
    })
    const found = verdict('resource-leak')
    expect(found.state).toBe('confirmed')
    expect(found.impact).toContain(impact)
    expect(found.secondsLeft).toBeGreaterThan(0.8 * secondsLeft)
    expect(found.secondsLeft).toBeLessThan(1.2 * secondsLeft)
  })
  it.each([
    [10, 'unknown', /^open file descriptors grew by \d+ in \d+ s: too short to judge$/],
    [1, 'ok', /^no handles that Node\.js counts pile up/]
  ])('%d more each second leave the first half minute %s', (perSecond, state, summary) => {
    const { verdict } = watch({
      seconds: 26,
      at: t => ({ values: { openFileDescriptors: 30 + perSecond * t, maxFileDescriptors: 20_000 } })
    })
    const judged = verdict('resource-leak')
    expect(judged).toMatchObject({ state, summary: expect.stringMatching(summary) })
    const { waitSeconds = null } = judged.open ?? {}
    expect(waitSeconds === null ? null : Math.round(waitSeconds / 10)).toBe(
      state === 'unknown' ? 1 : null
    )
  })
  it('advises on the confirmed kind, even if another has the higher score', () => {
    const { diagnoses } = require('../../engine/diagnoses')
    const { judge, fix, limits } = defined(
      diagnoses.find(({ id }) => id === 'resource-leak')
    )
    const signals = {
      // Sockets have the higher score (steadiness x rise), but are less than the required share of
      // all.
      socketsOpen: 200, socketsTrend: { rise: 60, slope: 1, steadinessRatio: 0.9 },
      watchersActive: 80, watchersTrend: { rise: 50, slope: 0.1, steadinessRatio: 0.8 },
      maxFileDescriptors: null, loadGrowthRatio: 1, listenerWarnings: null, liveHeapTrend: null
    }
    const { state, summary, finding } = judge(signals, limits, hello())
    expect({ state, summary }).toEqual({
      state: 'confirmed',
      summary: expect.stringContaining('80 file watchers')
    })
    expect(fix(finding, hello(), limits)[0].title).toContain('file watchers')
  })

  it('names the kind whose rate explains the descriptors, even if it is counted less often', () => {
    const { diagnoses } = require('../../engine/diagnoses')
    const { judge, limits } = defined(diagnoses.find(({ id }) => id === 'resource-leak'))
    const signals = {
      // The last count is 10 s old: it has less than half of the descriptors' rise, but more than
      // half of its rate.
      threadsRunning: 30, threadsTrend: { rise: 18, slope: 0.6, steadinessRatio: 0.9 },
      fileDescriptorsOpen: 217,
      fileDescriptorsTrend: { rise: 155, slope: 4.2, steadinessRatio: 0.98 },
      loopDescriptorsTrend: null,
      maxFileDescriptors: 1024, loadGrowthRatio: 1, listenerWarnings: null, liveHeapTrend: null
    }
    const { summary } = judge(/** @type {any} */ (signals), limits, hello())
    expect(summary).toMatch(/^30 threads/)
  })
  it.each(/** @type {[string, (t: number) => number, string][]} */ ([
    // The app needs the same 2 % of a core, but its loop is active for longer, because other
    // processes use the CPU.
    ['waits for a CPU more and more is as steady as before', t => 0.001 * t * t, 'confirmed'],
    ['mostly waits for a CPU answers too slowly to show its load', t => 0.75 * t, 'suspected']
  ]))('of a loop that %s', (_, waitedAt, state) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => {
        const waited = waitedAt(t)
        const active = 0.02 * t + waited
        return {
          values: {
            resources: { FSEventWrap: 5 * t },
            eventLoopActiveSeconds: active,
            eventLoopIdleSeconds: t - active,
            runQueueWaitSeconds: waited
          }
        }
      }
    })
    expect(verdict('resource-leak').state).toBe(state)
  })
  it.each([
    ['stays confirmed when the handles themselves cause load', 0.00005, 'confirmed'],
    ['is no longer confirmed when the load grows like the handles', 0.001, 'suspected']
  ])('%s', (_, growth, expected) => {
    const { verdict } = watch({
      seconds: 300,
      at: t => {
        const active = 0.02 * t + growth * Math.max(0, t - 100) ** 2
        return {
          values: {
            resources: { FSEventWrap: 5 * t },
            eventLoopActiveSeconds: active,
            eventLoopIdleSeconds: t - active
          }
        }
      }
    })
    const { state, evidence } = verdict('resource-leak')
    expect(state).toBe(expected)
    const load = evidence.find(({ signal }) => signal === 'loadGrowthRatio')
    expect(load?.value).toBeGreaterThan(1.25)
  })
  it.each([
    ['open files that outgrow the load', true, 0.002, 'confirmed', /much less than the open files/],
    ['open files that grow like the load', true, 0.02, 'suspected', /a growing load may need them/],
    ['sockets that outgrow the load', false, 0.002, 'suspected', /a growing load may need them/]
  ])('%s are judged', (_, areFiles, growth, state, text) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        values: {
          resources: areFiles ? {} : { TCPSocketWrap: 5 * t },
          openFileDescriptors: Math.round(30 + 5 * t),
          descriptors: { [areFiles ? 'file' : 'socket']: Math.round(10 + 5 * t) },
          maxFileDescriptors: 65_536,
          eventLoopActiveSeconds: 0.05 * t + growth * t * t,
          eventLoopIdleSeconds: t - 0.05 * t - growth * t * t,
          cpuUserSeconds: 0.05 * t + growth * t * t
        }
      })
    })
    const { state: found, evidence } = verdict('resource-leak')
    expect([found, evidence.find(({ signal }) => signal === 'loadGrowthRatio')?.text])
      .toEqual([state, expect.stringMatching(text)])
  })
  it.each(/** @type {[string, number, (t: number) => object, string][]} */ ([
    ['sockets', 90, t => ({ resources: { TCPSocketWrap: 5 * t } }), 'unknown'],
    ['sockets, for longer than requests wait', 480, t => ({ resources: { TCPSocketWrap: 5 * t } }),
      'suspected'],
    ['sockets that reach the limit of descriptors sooner', 90, t => ({
      resources: { TCPSocketWrap: 5 * t }, openFileDescriptors: 5 * t, maxFileDescriptors: 1024
    }), 'suspected'],
    ['timers', 90, t => ({ resources: { Timeout: 5 * t } }), 'unknown'],
    ['files', 90, t => ({ openFileDescriptors: 30 + 5 * t, descriptors: { file: 5 * t } }),
      'suspected'],
    ['processes', 90, t => ({ resources: { ProcessWrap: 5 * t } }), 'suspected']
  ]))('of %s under a loop that is always busy, after %d s', (_, seconds, valuesAt, state) => {
    const at = (/** @type {number} */ t) => ({
      values: {
        ...valuesAt(t),
        eventLoopActiveSeconds: 0.99 * t,
        eventLoopIdleSeconds: 0.01 * t,
        cpuUserSeconds: t
      }
    })
    const found = watch({ seconds, at }).verdict('resource-leak')
    expect(found.state).toBe(state)
    if (state !== 'unknown') return
    expect(found.summary).toContain('requests that wait, because the event loop is busy 99 %')
    // Timeouts of requests take up to 330 s.
    expect(found.open?.waitSeconds).toBeGreaterThan(200)
  })
  it.each([
    ['critical, as it ends the process', 0, 1024, 'critical', /they pile up\.$/],
    ['critical at a limit of its own, even if the load grows', 0.002, 1024, 'critical',
      /they pile up, or the load needs them\.$/],
    ['no more than a warning while the load grows, too', 0.002, undefined, 'warning',
      /they pile up, or the load needs them\.$/]
  ])('is %s', (_, growth, maxFileDescriptors, severity, summary) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        values: {
          resources: { TCPSocketWrap: 5 * t },
          openFileDescriptors: 30 + 5 * t,
          ...(maxFileDescriptors && { maxFileDescriptors }),
          eventLoopActiveSeconds: 0.02 * t + growth * t * t,
          eventLoopIdleSeconds: t - 0.02 * t - growth * t * t
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ severity })
    expect(verdict('resource-leak').summary).toMatch(summary)
  })
  it.each(/** @type {[string, number, { timersEach?: number, descriptorsEach?: number,
    filesEach?: number }, string, RegExp][]} */ ([
      ['clients that connect and stay', 5, {}, 'suspected', /clients connect and stay\.$/],
      ['clients with a timer each', 5, { timersEach: 5 }, 'suspected', /connect and stay\.$/],
      ['open files beside clients', 5, { filesEach: 8 }, 'confirmed', /open files.*up\.$/],
      ['many timers beside clients', 5, { timersEach: 50 }, 'suspected',
        /active timers.*timeouts that have not ended yet\.$/],
      ['connections that the app opens for clients', 1, {}, 'suspected', /connect and stay\.$/],
      ['connections that the app opens for few clients', 0.5, {}, 'confirmed', /they pile up\.$/],
      ['unlisted sockets for clients', 5, { descriptorsEach: 35 }, 'suspected',
        /connect and stay\.$/],
      ['unlisted sockets for few clients', 5, { descriptorsEach: 45 }, 'confirmed',
        /they pile up\.$/],
      ['clients that come back four times', 25, {}, 'suspected', /clients connect and stay\.$/],
      ['connections of which nearly all end', 150, {}, 'confirmed', /they pile up\.$/],
      ['connections without a server', 0, {}, 'confirmed', /they pile up\.$/]
    ]))('by %s', (_, acceptedPerSecond, others, state, summary) => {
    const { timersEach = 0, descriptorsEach = 0, filesEach = 0 } = others
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        values: {
          resources: { TCPSocketWrap: 5 * t, Timeout: timersEach * t },
          ...(descriptorsEach && { openFileDescriptors: 30 + descriptorsEach * t }),
          ...(filesEach && {
            openFileDescriptors: 30 + (5 + filesEach) * t,
            descriptors: { socket: 5 * t, file: 30 + filesEach * t }
          }),
          connectionsAccepted: acceptedPerSecond * t
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({
      state, summary: expect.stringMatching(summary)
    })
  })
  it.each([
    [90, 'scavenges of growing semi-spaces',
      t => ({ scavenges: 2, semiMib: t < 45 ? 1 : 4 }), 'load'],
    [90, 'scavenges of equal semi-spaces', () => ({ scavenges: 2, semiMib: 4 }), 'up'],
    [90, 'a heap that rises ever faster between its few GCs',
      t => ({ scavenges: 0, usedMib: 20 + (t % 10) * t / 20 }), 'load'],
    [90, 'a heap that rises evenly between its few GCs',
      t => ({ scavenges: 0, usedMib: 20 + (t % 10) }), 'up'],
    // Later, a semi-space that grows is an effect of V8, and a heap that rises may be one job.
    [240, 'scavenges of growing semi-spaces',
      t => ({ scavenges: 2, semiMib: t < 180 ? 1 : 4 }), 'up'],
    [240, 'a heap that rises in a job', t => ({ scavenges: 0, usedMib: t < 220 ? 20 : t }), 'up']
  ])('of a process of %d s with steady CPU time, and %s', (seconds, _, numbers, ending) => {
    const at = t => ({
      ...numbers(t),
      values: {
        heapUsedBytes: (numbers(t).usedMib ?? 20) * MIB,
        resources: { TCPSocketWrap: 5 * t },
        eventLoopActiveSeconds: 0.04 * t,
        eventLoopIdleSeconds: 0.96 * t
      }
    })
    const { state, summary } = watch({ seconds, at }).verdict('resource-leak')
    expect({ state, summary }).toEqual(ending === 'up'
      ? { state: 'confirmed', summary: expect.stringMatching(/they pile up\.$/) }
      : { state: 'suspected', summary: expect.stringMatching(/or the load needs them\.$/) })
  })
  it.each(/** @type {[string, number, object, string, RegExp][]} */ ([
    ['a few sockets', 90, { socketsEach: 2.5 }, 'suspected', /or a pool of connections fills\.$/],
    ['a few idle sockets', 90, { idleEach: 2.5 }, 'suspected',
      /open sockets.*or a pool of connections fills\.$/],
    ['more sockets than a pool has', 180, { socketsEach: 2.5 }, 'confirmed', /they pile up\.$/],
    ['a few sockets for too long', 800, { socketsEach: 0.2 }, 'confirmed', /they pile up\.$/],
    ['a few files', 90, { filesEach: 2.5 }, 'confirmed', /open files.*they pile up\.$/],
    ['timers', 90, { timersEach: 20 }, 'suspected', /or are timeouts that have not ended yet\.$/],
    ['timers for longer than timeouts take', 480, { timersEach: 20 }, 'confirmed', /pile up\.$/],
    ['a few processes', 90, { childrenEach: 0.6 }, 'suspected', /pile up, or a pool fills\.$/],
    ['many processes', 90, { childrenEach: 1.5 }, 'confirmed', /they pile up\.$/],
    ['a few processes for too long', 1500, { childrenEach: 0.08 }, 'confirmed', /they pile up\.$/],
    ['a few workers', 90, { threadsEach: 0.6 }, 'suspected', /pile up, or a pool fills\.$/],
    ['message ports', 90, { portsEach: 5 }, 'confirmed', / message ports, .*they pile up\.$/],
    ['ports of workers', 90, { portsEach: 1.5, threadsEach: 1.5 }, 'confirmed', / threads, /]
  ]))('of %s without a load, after %d s', (_, seconds, each, state, summary) => {
    const {
      socketsEach = 0, idleEach = 0, filesEach = 0, timersEach = 0, childrenEach = 0,
      threadsEach = 0, portsEach = 0
    } = each
    const { verdict } = watch({
      seconds,
      at: t => ({
        values: {
          resources: {
            TCPSocketWrap: socketsEach * t,
            Timeout: timersEach * t,
            ProcessWrap: childrenEach * t,
            MessagePort: portsEach * t
          },
          openFileDescriptors: 30 + (socketsEach + idleEach + filesEach + 3 * childrenEach +
            5 * threadsEach) * t,
          descriptors: { socket: (socketsEach + idleEach) * t, file: 30 + filesEach * t },
          threads: 11 + threadsEach * t
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({
      state, summary: expect.stringMatching(summary)
    })
    const isExplained = verdict('resource-leak').evidence
      .some(({ text }) => /A pool may fill|may be timeouts/.test(text))
    expect(isExplained).toBe(state === 'suspected')
  })
  // Frames of real agents come a little later than each second.
  it.each(/** @type {[string, string, (t: number) => object][]} */ ([
    ['a leak of few workers', 'confirmed', t => ({ threads: 11 + 0.1 * t })],
    ['a leak of few workers beside a rising number of sockets', 'confirmed',
      t => ({ threads: 11 + 0.1 * t, resources: { TCPSocketWrap: t / 180 } })],
    ['a leak of timers', 'confirmed', t => ({ resources: { Timeout: 5 * t } })],
    ['a pool of workers that fills for five minutes, beside rising sockets', 'suspected',
      t => ({ threads: 11 + 0.2 * Math.min(300, t), resources: { TCPSocketWrap: t / 180 } })],
    ['a pool of sockets that fills for seven minutes', 'suspected',
      t => ({ resources: { TCPSocketWrap: 0.5 * Math.min(420, t) } })],
    ['timeouts of five minutes', 'suspected',
      t => ({ resources: { Timeout: 5 * Math.min(300, t) } })]
  ]))('in an old service %s is at most %s', (_, most, valuesAt) => {
    const START = 1200
    const states = new Set()
    watch({
      seconds: START + 660,
      intervalSeconds: 1.003,
      everySeconds: 5,
      at: t => ({ values: valuesAt(Math.max(0, t - START)) }),
      onTarget: target => states.add(
        findCase(target).verdicts.find(({ diagnosis }) => diagnosis === 'resource-leak')?.state
      )
    })
    expect(states).toContain('suspected')
    expect(states.has('confirmed')).toBe(most === 'confirmed')
  })
  it.each([
    ['the load rises as well', 'suspected', 0.9],
    ['the load is steady', 'confirmed', 0]
  ])('of a socket a minute for 50 minutes is, if %s, %s', (_, state, rise) => {
    const { verdict } = watch({
      seconds: 300,
      intervalSeconds: 10,
      at: t => ({
        values: {
          resources: { TCPSocketWrap: 10 + Math.floor(t / 6) },
          cpuUserSeconds: t + 10 * rise * t ** 2 / 600,
          cpuSystemSeconds: 0
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state })
    if (state === 'confirmed') return
    expect(verdict('resource-leak').summary).toContain('or the load needs them')
    expect(verdict('resource-leak').evidence.map(({ text }) => text).join())
      .toMatch(/In the 4\d min of the growth, CPU time or allocation rose to 2\d\d %/)
  })
  it.each([[60, 'suspected'], [600, 'suspected'], [800, 'confirmed']])(
    'of a socket a second beside new clients is at %d s %s', (seconds, state) => {
      const at = t => ({
        values: { resources: { TCPSocketWrap: 20 + t }, connectionsAccepted: 3 * t }
      })
      expect(watch({ seconds, at, everySeconds: 10 }).verdict('resource-leak').state).toBe(state)
    }
  )
  it('stays confirmed if a few clients connect later, and not if many do', () => {
    const stateWith = (/** @type {number} */ perSecond) => watch({
      seconds: 300,
      at: t => ({
        values: {
          resources: { TCPSocketWrap: 5 * t },
          connectionsAccepted: 0.1 * t + perSecond * Math.max(0, t - 100)
        }
      })
    }).verdict('resource-leak').state
    expect([1.2, 5].map(stateWith)).toEqual(['confirmed', 'suspected'])
  })
  it.each([[0.4, 0.3], [0.7, 0.6], [0.9, 0.8]])(
    'of a steadiness of %d shows the threshold %d, which it has reached', (steady, limit) => {
      const { diagnoses } = require('../../engine/diagnoses')
      const { judge, limits } = defined(diagnoses.find(({ id }) => id === 'resource-leak'))
      const signals = {
        timersActive: 80,
        timersTrend: { rise: 60, slope: 1, seconds: 60, steadinessRatio: steady },
        maxFileDescriptors: null, loadGrowthRatio: 1, listenerWarnings: null, liveHeapTrend: null
      }
      expect(judge(/** @type {any} */ (signals), limits, hello()).evidence).toContainEqual(
        expect.objectContaining({ signal: 'timersSteadinessRatio', value: steady, limit })
      )
    }
  )
  it.each([[3850, 'suspected'], [4500, 'confirmed'], [6000, 'confirmed']])(
    'of two sockets a second from 3,600 s on, beside clients that come back, is at %d s %s',
    (seconds, state) => {
      const at = t => ({
        values: {
          resources: { TCPSocketWrap: 20 + Math.max(0, 2 * (t - 3600)) },
          connectionsAccepted: 20 * t
        }
      })
      expect(watch({ seconds, at, everySeconds: 10 }).verdict('resource-leak').state).toBe(state)
    }
  )
  it('is not confirmed by a pool that grew in steps', () => {
    const steps = [[0, 11], [33, 40], [44, 28], [47, 53], [55, 60]]
    const open = t => defined(steps.findLast(([since]) => t >= since))[1]
    for (let seconds = 50; seconds <= 75; seconds++) {
      const { verdict } = watch({
        seconds,
        at: t => ({ values: { resources: { TCPSocketWrap: open(t) } } })
      })
      expect(verdict('resource-leak').state).not.toBe('confirmed')
    }
  })
  /**
   * Verdict on workers that are started and never ended.
   * @param {number} perSecond
   * @param {number} mibPerSecond growth of RSS
   */
  const workers = (perSecond, mibPerSecond) => watch({
    seconds: 60,
    at: t => ({
      majors: 0,
      rssMib: 90 + mibPerSecond * t,
      heapLimitMib: 100,
      values: {
        threads: 11 + perSecond * t,
        openFileDescriptors: 30 + 5 * perSecond * t,
        maxFileDescriptors: 1e6
      }
    })
  }).verdict('resource-leak')
  it('tells the time by RSS for workers, which have heaps of their own', () => {
    expect(workers(1, 2).impact).toMatch(/^RSS grows by 2 MiB\/s .* in about /)
  })
  it('a pool of workers that fills memory fast is urgent', () => {
    expect(workers(0.4, 4.4)).toMatchObject({
      state: 'suspected', severity: 'critical', summary: expect.stringMatching(/a pool fills/)
    })
  })
  it('tells no time to a limit of descriptors that is far away, and how serious it is', () => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({ values: { openFileDescriptors: 30 + 2 * t, maxFileDescriptors: 20_000 } })
    })
    expect(verdict('resource-leak')).toMatchObject({
      severity: 'critical', secondsLeft: null, impact: expect.stringContaining('an hour away')
    })
  })
  it('tells no time by RSS while the heap may be full first', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        majors: 0,
        rssMib: 90 + t,
        heapMib: 20 + t,
        heapLimitMib: 100,
        values: { resources: { FSEventWrap: 5 * t } }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state: 'confirmed', secondsLeft: null })
  })
  it('tells the time by RSS if all growth is outside the heap', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        majors: 0,
        rssMib: 90 + 4 * t,
        nativeMib: 12 + 4 * t,
        heapMib: 30,
        heapLimitMib: 100,
        values: { heapTotalBytes: 30 * MIB, resources: { Timeout: 5 * t } }
      })
    })
    expect(verdict('resource-leak').secondsLeft).toBeLessThan(120)
  })
  it.each([
    // A server and its clients in one process, each with an agent of its own.
    ['beside those of clients that stay', 10, 'confirmed'],
    ['by clients that stay', 5, 'suspected']
  ])('of sockets that pile up %s: %i descriptors a second', (_, perSecond, state) => {
    const { verdict } = watch({
      seconds: 110,
      at: t => ({
        values: {
          ...open(descriptors({ socket: 4 + perSecond * t })),
          maxFileDescriptors: 20_000,
          resources: { TCPServerWrap: 1, TCPSocketWrap: 5 * t },
          connectionsAccepted: 5 * t
        }
      })
    })
    expect(verdict('resource-leak').state).toBe(state)
  })
  it('advises on the named kind, even if another kind confirmed it', () => {
    const { verdict } = watch({
      seconds: 140,
      at: t => ({
        values: {
          ...open(descriptors({ pipe: 9 + 2 * t, eventpoll: 3 + t, eventfd: 3 + t })),
          ...(t >= 60 && { threads: 11 + t }),
          resources: {}
        }
      })
    })
    const { summary, fix } = verdict('resource-leak')
    expect(summary).toMatch(/^1\d\d threads/)
    expect(fix[0].title).toContain('threads')
  })

  /**
   * Descriptors by kind; other kinds are those of a small app.
   * @param {Record<string, number>} more
   */
  const descriptors = more => ({ socket: 4, pipe: 9, file: 4, eventpoll: 3, eventfd: 3, ...more })
  /** @param {Record<string, number>} kinds */
  const sum = kinds => Object.values(kinds).reduce((a, b) => a + b)
  /** @param {Record<string, number>} kinds */
  const open = kinds => ({
    descriptors: kinds,
    openFileDescriptors: sum(kinds),
    maxFileDescriptors: 1024
  })

  it.each(
    /** @type {[string, (t: number) => object, RegExp, RegExp, RegExp?][]} */ ([
      [
        'idle sockets of an agent per request',
        t => ({ ...open(descriptors({ socket: 4 + 5 * t })), resources: { TCPServerWrap: 1 } }),
        /^449 open sockets, 300 more descriptors each minute/,
        /new http\.Agent.*ss -tunp/,
        /449 of them were sockets.*as active/
      ],
      [
        'files that nobody closes',
        t => open(descriptors({ file: 4 + 3 * t })),
        /^271 open files/,
        /fs\.open, fs\.openSync/
      ],
      ['pipes', t => open(descriptors({ pipe: 9 + 2 * t })), /^187 pipes/, /stdio is never closed/],
      [
        'sockets that the loop waits for',
        t => ({ ...open(descriptors({ socket: 4 + 5 * t })), resources: { TCPSocketWrap: 5 * t } }),
        /^445 sockets and pipes/,
        /responses whose body is never read/
      ],
      [
        'workers that wait, four descriptors each',
        t => ({
          ...open(descriptors({ pipe: 9 + 2 * t, eventpoll: 3 + t, eventfd: 3 + t })),
          threads: 11 + t,
          resources: {}
        }),
        /^100 threads/,
        /pool of workers that is created per request/,
        /the threads are workers of Node\.js/
      ],
      [
        'threads of an addon',
        t => ({ ...open(descriptors({})), threads: 11 + t, resources: {} }),
        /^101 threads/,
        /an addon starts the threads/,
        /belong to an addon, not to workers of Node\.js/
      ],
      [
        'children with their stdio',
        t => ({
          ...open(descriptors({ socket: 4 + 3 * t })),
          resources: { ProcessWrap: t, PipeWrap: 3 * t }
        }),
        /^89 child processes and workers/,
        /spawn, fork/
      ],
      [
        'descriptors of which no kind is known',
        t => ({ openFileDescriptors: 30 + 3 * t, maxFileDescriptors: 1024 }),
        /^297 open file descriptors/,
        /Their kind is unknown/
      ]
    ])
  )('names %s', (_, values, summary, site, said = /./) => {
    const { verdict, primary } = watch({ seconds: 90, at: t => ({ values: values(t) }) })
    expect(primary).toMatchObject({
      diagnosis: 'resource-leak',
      state: 'confirmed',
      summary: expect.stringMatching(summary)
    })
    expect(defined(primary).fix[0].change.code).toMatch(site)
    expect(
      verdict('resource-leak')
        .evidence.map(({ text }) => text)
        .join(' ')
    ).toMatch(said)
  })
  it.each(/** @type {[string, { cpu?: (t: number) => number }, string][]} */ ([
    ['others on the machine keep it waiting', { cpu: t => 0.003 * t }, 'confirmed'],
    ['it works more', { cpu: t => 3e-5 * t * t }, 'suspected'],
    ['nothing tells how much it works', {}, 'suspected']
  ]))('is judged right for a loop that is active for longer, as %s', (_, { cpu }, state) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        values: {
          ...open(descriptors({ socket: 4 + 5 * t })),
          resources: { TCPSocketWrap: 5 * t },
          eventLoopActiveSeconds: 1e-4 * t * t,
          eventLoopIdleSeconds: t - 1e-4 * t * t,
          ...(cpu && { threadCpuUserSeconds: cpu(t), threadCpuSystemSeconds: 0 })
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state })
  })
  it.each([
    ['confirmed if the process takes a steady CPU time', t => 0.05 * t, 'confirmed'],
    ['suspected if the process takes ever more of it', t => 4e-4 * t * t, 'suspected']
  ])('that waits for a busy CPU, on a Node.js without CPU time of the thread, is %s', (
    _, processCpu, state
  ) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        values: {
          resources: { FSEventWrap: 5 * t },
          eventLoopActiveSeconds: 0.1 * t,
          eventLoopIdleSeconds: 0.9 * t,
          runQueueWaitSeconds: 0.06 * t,
          cpuUserSeconds: processCpu(t),
          cpuSystemSeconds: 0
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state })
  })
  // Connections of a server, five seconds apart.
  const comeAndGo = [5, 6, 8, 9, 10, 12, 13, 59, 36, 21, 22, 46, 46, 20, 62, 80, 80, 80]
  it.each([
    ['ignores connections that come and go', t => comeAndGo[Math.floor(t / 5)], 'ok'],
    [
      'finds a leak beside connections that come and go',
      t => 4 * t + comeAndGo[Math.floor(t / 5)],
      'confirmed'
    ]
  ])('%s', (_, count, state) => {
    const { verdict } = watch({
      seconds: 85,
      at: t => ({
        values: {
          ...open(descriptors({ socket: Math.round(count(t)) })),
          resources: { TCPSocketWrap: Math.round(count(t)) }
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state })
  })
  it('ignores a pool of sixty threads that fills and stays', () => {
    const { verdict } = watch({
      seconds: 120,
      at: t => ({
        values: {
          ...open(descriptors({ eventpoll: 3 + Math.min(t, 60) })),
          threads: 11 + Math.min(2 * t, 60),
          resources: {}
        }
      })
    })
    expect(verdict('resource-leak')).toMatchObject({ state: 'ok' })
  })
})

describe('native-memory-leak', () => {
  it.each([
    [1, "the workers' heap size limit in about 99 s", 'V8 ends a worker'],
    [4, 'the container limit in about', 'the kernel kills the process']
  ])('of heaps of %d silent workers: reaches %s', (workerThreads, reached, end) => {
    const { verdict } = watch({
      seconds: 90,
      at: t => ({
        heapLimitMib: 272,
        nativeMib: 12 + 1.5 * t,
        rssMib: 80 + 1.5 * t,
        majors: 0.1,
        values: {
          workerThreads,
          v8MappedBytes: (60 + 1.5 * t) * MIB,
          residentBytes: { malloc_heap: 8 * MIB, other: (20 + 1.5 * t) * MIB }
        }
      })
    })
    const { summary, impact } = verdict('native-memory-leak')
    expect(summary).toMatch(/^Memory of worker threads grows by 90 MiB\/min and /)
    expect(summary).toContain(reached)
    expect(impact).toContain(end)
  })
  it('is found in memory that grows by copying, although each major GC sees two copies', () => {
    const copies = [0, 90, 0, 100, 5, 60, 0, 110]
    const { verdict } = watch({
      seconds: 60,
      at: t => {
        const isCopied = t % 5 === 0
        return {
          majors: isCopied ? 1 : 0,
          nativeMib: 20 + 1.5 * t + (isCopied ? copies[t / 5 % copies.length] : 0),
          rssMib: 100 + 1.5 * t
        }
      }
    })
    expect(verdict('native-memory-leak')).toMatchObject({ state: 'suspected' })
  })
  it.each([
    [1.9, 1.9, /: \d+ MiB of \d+ MiB are in Buffers/],
    [1.1, 1, /: \d+ MiB of \d+ MiB are in Buffers/],
    [1.1, 0.7, /: V8 counts it as external memory/]
  ])(
    'of 2 MiB/s in all, of which V8 counts %d and Buffers are %d, names the place',
    (externalMib, buffersMib, place) => {
      const { verdict } = watch({
        seconds: 100,
        at: t => ({
          externalMib: 2 + externalMib * t,
          nativeMib: 12 + (2 - externalMib) * t,
          rssMib: 60 + 2 * t,
          values: { arrayBuffersBytes: buffersMib * t * MIB }
        })
      })
      expect(verdict('native-memory-leak').summary).toMatch(place)
    }
  )
  it('stays confirmed while a quiet heap has no major GC', () => {
    const mib = t => 2.4 * t
    const { verdict } = watch({
      seconds: 185,
      at: t => ({ nativeMib: 12 + mib(t), rssMib: 60 + mib(t), majors: t < 160 ? 2 : 0 })
    })
    expect(verdict('native-memory-leak')).toMatchObject({ state: 'confirmed' })
    expect(verdict('native-memory-leak').confirmedAfterSeconds).toBeLessThan(170)
  })
  it('names the time until the container is full', () => {
    const { verdict } = watch({
      seconds: 100,
      at: t => ({ nativeMib: 12 + 2 * t, rssMib: 60 + 2 * t, majors: 1 })
    })
    const { summary, secondsLeft } = verdict('native-memory-leak')
    const left = formatSeconds(defined(secondsLeft))
    expect(summary)
      .toContain(`grows by 120 MiB/min and would reach the container limit in about ${left}: `)
  })
  it.each([[250, 'grows by'], [266, 'but hardly in the last 20 s']])(
    'that stopped at 250 s tells no time soon after: %d s',
    (seconds, text) => {
      const mib = t => 0.5 * Math.min(t, 250)
      const found = watch({
        seconds, at: t => ({ nativeMib: 12 + mib(t), rssMib: 60 + mib(t), majors: 1 })
      }).verdict('native-memory-leak')
      expect(found).toMatchObject({
        state: 'suspected',
        summary: expect.stringContaining(text),
        secondsLeft: seconds > 250 ? null : expect.any(Number)
      })
    }
  )
})

it.each([
  ['20 s under the same load', 0.3, 205, 'ok'],
  ['15 s under the same load', 0.3, 195, 'suspected'],
  ['45 s with a fifth of the load', 0.06, 240, 'suspected']
])('native-memory-leak has ended once the memory stays where it is for %s', (
  _, busy, seconds, state
) => {
  const found = watch({
    seconds,
    at: t => {
      const risen = Math.min(t, 180)
      return {
        nativeMib: 12 + 0.7 * risen,
        rssMib: 60 + 0.7 * risen,
        values: {
          containerLimitBytes: 1024 * MIB, threadCpuUserSeconds: 0.3 * risen + busy * (t - risen)
        }
      }
    }
  }).verdict('native-memory-leak')
  expect(found.state).toBe(state)
  expect(/has stayed at/.test(found.summary)).toBe(state === 'ok')
})

describe('native memory that only the full GCs of memwatch free', () => {
  /**
   * @param {number} mibPerSecond garbage outside the heap; a forced GC each eight seconds frees it
   * @param {number} ownMajors major GCs of the app a second
   */
  const state = (mibPerSecond, ownMajors) => watch({
    seconds: 100,
    at: t => ({
      nativeMib: 20 + mibPerSecond * (t % 8),
      rssMib: 70 + mibPerSecond * (t % 8),
      majors: ownMajors,
      majorSeconds: 0.001,
      forcedMajors: t % 8 === 0 ? 1 : 0
    })
  }).verdict('native-memory-leak')
  it('is suspected, with its rate', () => {
    const found = state(5, 0)
    expect(found).toMatchObject({ state: 'suspected', secondsLeft: null })
    expect(found.summary).toContain('free about 35 MiB of it each, 2')
    expect(found.fix[0].predicted[0]).toMatchObject({ signal: 'forcedFreedBytesPerSecond', to: 0 })
  })
  it.each([['little', 1, 0], ['freed by the app itself', 5, 1]])('is no finding: %s', (_, ...of) => {
    expect(state(...of).state).toBe('ok')
  })
  it('is no finding if the memory falls as much without these GCs', () => {
    const varying = t => 20 + 10 * (t * 7 % 11)
    const { verdict } = watch({
      seconds: 100,
      at: t => ({
        nativeMib: varying(t),
        rssMib: 50 + varying(t),
        majors: 0,
        forcedMajors: t % 8 === 0 ? 1 : 0
      })
    })
    expect(verdict('native-memory-leak').state).toBe('ok')
  })
})

describe('growth from the start of the process, far from any limit', () => {
  /** @param {(t: number) => number} grownMib */
  const inHeap = grownMib => (/** @type {number} */ t) => ({
    liveMib: 10 + grownMib(t),
    rssMib: 90 + grownMib(t),
    majors: t % 10 === 0 ? 1 : 0,
    heapLimitMib: 4144,
    values: { containerLimitBytes: undefined }
  })
  /** @param {(t: number) => number} grownMib */
  const outside = grownMib => (/** @type {number} */ t) => ({
    nativeMib: 12 + grownMib(t),
    rssMib: 60 + grownMib(t),
    majors: t % 10 === 0 ? 1 : 0,
    values: { containerLimitBytes: 4096 * MIB }
  })
  it.each(/** @type {const} */ ([
    ['js-heap-leak', inHeap], ['native-memory-leak', outside]
  ]))('%s: 1 MiB/s is confirmed in its tenth minute, and a cache of 480 MiB never', (id, grows) => {
    const leak = watch({ seconds: 595, at: grows(t => t) }).verdict(id)
    expect(leak).toMatchObject({ state: 'confirmed' })
    // The trend alone sees it 100 s later.
    expect(leak.confirmedAfterSeconds).toBeGreaterThan(512)
    const states = new Set()
    watch({
      seconds: 900,
      at: grows(t => Math.min(480, 0.8 * t)),
      onTarget: target => states.add(findCase(target).verdicts
        .find(({ diagnosis }) => diagnosis === id)?.state)
    })
    expect([...states]).toContain('suspected')
    expect([...states]).not.toContain('confirmed')
  })
})

describe.each(CASES)('%s', (id, app, lookAlikes) => {
  it('is confirmed, with evidence, impact and a fix', () => {
    const { primary, verdict } = watch({ seconds: 120, ...app })
    expect({ primary: primary?.diagnosis, why: verdict(id).summary }).toEqual({
      primary: id,
      why: expect.any(String)
    })
    expect(defined(primary).evidence.length).toBeGreaterThan(1)
    expect(defined(primary).impact).toMatch(/\.$/)
    expect(defined(primary).fix.length).toBeGreaterThan(0)
    for (const { change, risk, predicted } of defined(primary).fix) {
      expect(Object.keys(change).length).toBeGreaterThan(0)
      expect(risk).toMatch(/\.$/)
      for (const { from, to } of predicted) {
        expect(Number.isFinite(from) && Number.isFinite(to)).toBe(true)
      }
    }
    expect(JSON.stringify(primary)).not.toMatch(/NaN|undefined|Infinity/)
  })
  it.each(Object.entries(lookAlikes))('%s is no leak', (_, at) => {
    const { verdict, ever } = watch({ seconds: 120, ...app, at })
    expect({ ever: [...ever].includes(id), why: verdict(id).summary }).toEqual({
      ever: false,
      why: expect.any(String)
    })
  })
})

describe('pointer-compression-candidate', () => {
  const graph = {
    seconds: 60,
    at: () => ({
      liveMib: 200,
      rssMib: 300,
      majors: 0.1,
      values: {
        addons: {},
        heapUsedBytes: 210 * MIB,
        spaces: { new_space: [0, 2 * MIB, MIB, 0], old_space: [200 * MIB, 210 * MIB, 0, 210 * MIB] }
      }
    })
  }
  it('is an opportunity: confirmed, and never primary', () => {
    const { verdict, primary } = watch(graph)
    expect(verdict('pointer-compression-candidate')).toMatchObject({
      state: 'confirmed',
      opportunity: true,
      runbook: null
    })
    expect(primary).toBeNull()
  })
  it('is not judged beside a leak of the heap', () => {
    const { verdict } = watch({
      seconds: 90,
      at: t => {
        const mib = 600 + t
        const { values } = graph.at()
        return {
          heapLimitMib: 2048,
          liveMib: mib,
          heapMib: mib + 10,
          rssMib: mib + 100,
          majors: 0.2,
          values: {
            ...values,
            heapUsedBytes: (mib + 10) * MIB,
            spaces: {
              new_space: [0, 2 * MIB, MIB, 0],
              old_space: [mib * MIB, (mib + 10) * MIB, 0, (mib + 10) * MIB]
            }
          }
        }
      }
    })
    expect(verdict('js-heap-leak').state).toBe('confirmed')
    expect(verdict('pointer-compression-candidate')).toMatchObject({
      state: 'unknown', summary: 'not judged beside js-heap-leak'
    })
  })
  it('tells of garbage that the saving counts, and of a build with another version', () => {
    const { verdict } = watch(graph)
    const { summary, fix } = verdict('pointer-compression-candidate')
    expect(summary).not.toContain('garbage')
    expect(fix[0].risk).toContain('from a third party and has another major version, 25: test it')
    const at = () => ({ ...graph.at(), heapMib: 400, rssMib: 500 })
    expect(watch({ ...graph, at }).verdict('pointer-compression-candidate').summary).toMatch(
      // The new space is left out: a flag sets its size.
      /objects, and V8 holds 3\d\d MiB including garbage: pointer compression/
    )
  })
  it.each([
    ["an addon on V8's C++ interface", { values: { addons: { 'v8/old.node': 1 } } }, 'ok'],
    [
      'an addon that could not be read',
      { values: { addons: { 'unread/x.node': 1 } } },
      'suspected'
    ],
    ['an addon on Node-API', { values: { addons: { 'node_api/new.node': 1 } } }, 'confirmed']
  ])('%s leads to %s', (_, { values }, state) => {
    const at = () => ({ ...graph.at(), values: { ...graph.at().values, ...values } })
    expect(watch({ ...graph, at }).verdict('pointer-compression-candidate').state).toBe(state)
  })
})

it('a leak that causes thrashing is reported as a leak', () => {
  const { primary, verdict } = watch({
    seconds: 260,
    at: t => ({
      liveMib: Math.min(10 + 1.1 * t, 245),
      rssMib: 80 + 1.1 * t,
      majors: 2,
      majorSeconds: t > 180 ? 0.5 : 0.02
    })
  })
  expect(defined(primary).diagnosis).toBe('js-heap-leak')
  expect(verdict('heap-limit-thrash')).toMatchObject({
    state: 'ok',
    summary: 'a symptom of js-heap-leak'
  })
})

it('two independent problems are both reported, one of them as primary', () => {
  const { primary, verdict } = watch({
    seconds: 60,
    at: t => ({
      scavenges: 190,
      scavengeSeconds: 0.1,
      majors: 9,
      majorSeconds: 0.1,
      values: {
        ...busyLoop(t),
        eventLoopActiveSeconds: 0.9 * t,
        eventLoopIdleSeconds: 0.1 * t,
        ...delays(t, 0.4)
      }
    })
  })
  expect(defined(primary).diagnosis).toBe('semi-space-starvation')
  expect(verdict('event-loop-blocked').state).toBe('confirmed')
})

it.each([
  [60, 'confirmed', 'More memory does not help, nor does a larger heap.'],
  [200, 'suspected', expect.stringMatching(/^V8 marks the heap in steps/)],
  [150, 'confirmed', 'More memory does not help, nor does a larger heap.'],
  [150, 'suspected', expect.stringMatching(/^V8 marks the heap in steps/), 2.5]
])('blocks of a loop with %d of 256 MiB alive are %s: V8 may be marking the heap', (
  liveMib, state, risk, majors = 0.5
) => {
  const { verdict } = watch({
    seconds: 40,
    at: t => ({
      liveMib,
      rssMib: 60 + liveMib,
      majors,
      majorSeconds: 0.01,
      values: {
        ...busyLoop(t), ...delays(t, 0.3), cpuUserSeconds: 0.9 * t, cpuSystemSeconds: 0
      }
    })
  })
  const found = verdict('event-loop-blocked')
  expect(found).toMatchObject({ state, fix: [{ risk }] })
  expect(found.summary.endsWith('may block it instead.')).toBe(state === 'suspected')
})

it.each([
  ['without idle time, with GC of 30 %', 1, 0.3, 'suspected'],
  ['without idle time, with GC of 5 %', 1, 0.05, 'confirmed'],
  ['with idle time, and GC of 30 %', 0.85, 0.3, 'confirmed']
])('blocks of a loop %s', (_, busy, scavengeSeconds, state) => {
  const { verdict } = watch({
    seconds: 60,
    at: t => ({
      scavenges: 40,
      scavengeSeconds,
      values: {
        ...busyLoop(t, busy),
        eventLoopActiveSeconds: busy * t,
        eventLoopIdleSeconds: (1 - busy) * t,
        ...delays(t, 0.5),
        resources: { TCPServerWrap: 1 }
      }
    })
  })
  expect(verdict('event-loop-blocked').state).toBe(state)
})

describe('a thread that waits for a CPU', () => {
  /**
   * A busy loop with only a share of a core does that share of the work, and each step takes longer
   * by that factor.
   * @param {number} cores
   * @param {number} t
   */
  const slowed = (cores, t) => ({
    eventLoopActiveSeconds: t,
    eventLoopIdleSeconds: 0,
    threadCpuUserSeconds: cores * t,
    threadCpuSystemSeconds: 0,
    cpuUserSeconds: cores * t,
    cpuSystemSeconds: 0,
    runQueueWaitSeconds: (1 - cores) * t,
    cpuPeriods: 10 * t,
    cpuThrottledPeriods: cores < 1 ? 10 * t : 0
  })
  const SHARES = [1, 0.5, 0.25, 0.1]
  /** @type {[string, (cores: number, t: number) => object][]} */
  const ILL = [
    [
      'semi-space-starvation',
      (cores, t) => ({
        scavenges: 190 * cores,
        scavengeSeconds: 0.2,
        majors: 9 * cores,
        majorSeconds: 0.15,
        values: slowed(cores, t)
      })
    ],
    [
      'heap-limit-thrash',
      (cores, t) => ({
        liveMib: 230,
        rssMib: 300,
        majors: 2 * cores,
        majorSeconds: 0.4,
        values: slowed(cores, t)
      })
    ],
    [
      'array-buffer-pile-up',
      (cores, t) => ({
        externalMib: t % 2 ? 90 : 4,
        rssMib: 180,
        externalMajors: 3 * cores,
        externalMajorSeconds: 0.05,
        values: slowed(cores, t)
      })
    ],
    [
      'event-loop-blocked',
      (cores, t) => ({
        values: { ...slowed(cores, t), ...delays(t, 0.3 / cores), eventLoopEvents: t }
      })
    ]
  ]
  it.each(SHARES.flatMap(cores => ILL.map(([id, at]) => /** @type {const} */ ([id, cores, at]))))(
    '%s is confirmed with %d of a core', (id, cores, at) => {
      const { primary } = watch({ seconds: 60, at: t => at(cores, t) })
      expect(primary?.diagnosis).toBe(id)
      const told = defined(primary).evidence.find(({ signal }) => signal === 'cpuTimeRatio')
      expect(told?.value ?? 1).toBeCloseTo(cores, 1)
      expect(told?.text ?? '').toMatch(cores < 1
        ? /throttled the container in 100 % of the periods\. Per second without these waits/
        : /^$/)
    })

  it.each([[100, 'warning'], [50, 'warning'], [20, 'info']])(
    'GC helper threads that use up the quota in %d %% of the periods: starvation is a %s',
    (periods, severity) => {
      const { verdict } = watch({
        seconds: 60,
        at: t => ({
          scavenges: 23,
          scavengeSeconds: 0.17,
          majors: 1.9,
          majorSeconds: 0.19,
          values: {
            ...slowed(0.04, t),
            eventLoopActiveSeconds: 0.85 * t,
            eventLoopIdleSeconds: 0.15 * t,
            runQueueWaitSeconds: 0.78 * t,
            cpuThrottledPeriods: periods / 10 * t
          }
        })
      })
      expect(verdict('semi-space-starvation')).toMatchObject({ state: 'confirmed', severity })
    }
  )
  it.each([
    [true, { state: 'confirmed', severity: 'warning' }],
    [false, { state: 'unknown', open: { until: 'setting', waitSeconds: null } }]
  ])(
    'a throttled loop that is never idle, its events counted: %s, is %j',
    (areCounted, expected) => {
      const { verdict } = watch({
        seconds: 60,
        at: t => ({
          values: {
            ...slowed(0.25, t), ...delays(t, 1.2), ...(areCounted && { eventLoopEvents: t })
          }
        })
      })
      expect(verdict('event-loop-blocked')).toMatchObject(expected)
    }
  )
  it('full GCs caused by growth of live Buffers do not count as wasted', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        externalMib: 4 + 4 * t,
        rssMib: 60 + 4 * t,
        externalMajors: t % 10 === 0 ? 1 : 0,
        externalMajorSeconds: t % 10 === 0 ? 0.05 : 0,
        values: slowed(0.05, t)
      })
    })
    expect(verdict('array-buffer-pile-up')).toMatchObject({ state: 'ok' })
  })

  it('is judged the same if Node.js reports only the CPU time of the process', () => {
    const [, at] = ILL[0]
    const { primary } = watch({
      seconds: 60,
      at: t => {
        const { threadCpuUserSeconds, threadCpuSystemSeconds, ...values } = slowed(0.1, t)
        return { ...at(0.1, t), values }
      }
    })
    expect(primary?.diagnosis).toBe('semi-space-starvation')
  })
  it('a few pauses that throttling makes longer are no starvation', () => {
    const values = (/** @type {number} */ t) => ({
      ...slowed(0.1, t),
      ...busyLoop(t, 0.2),
      threadCpuUserSeconds: 0.02 * t,
      runQueueWaitSeconds: 0.18 * t
    })
    const { ever, verdict } = watch({
      seconds: 60,
      at: t => ({
        scavenges: 10,
        scavengeSeconds: 0.1,
        majors: 0.5,
        majorSeconds: 0.04,
        values: values(t)
      })
    })
    expect([...ever]).toEqual([null])
    expect(verdict('semi-space-starvation').summary).toBe(
      'scavenges and the major GCs they cause take 14 % of wall time, 1.7 % without its waits ' +
        'for a CPU (10 scavenges/s, 0.5 major GCs/s)'
    )
  })
  it('short pieces of work that throttling makes longer do not block the loop', () => {
    const { ever, verdict } = watch({
      seconds: 60,
      at: t => ({ values: { ...slowed(0.1, t), ...delays(t, 0.9) } })
    })
    expect([...ever]).toEqual([null])
    expect(verdict('event-loop-blocked').summary).toBe(
      'the event loop is late by 405 ms on average, but 90 % of the time the ' +
        'thread was ready and had no CPU: the CPU limit throttled the process in 100 % of its ' +
          'periods, and a higher CPU limit helps'
    )
  })
  it.each(/** @type {const} */ ([
    ['that is never idle', 0.5, 1, 0, 'unknown',
      'and the event loop is never idle: it is late by up to 1500 ms. A higher CPU limit would ' +
        'show whether synchronous calls are long as well'],
    ['that is never idle, with long events', 0.5, 1, 0.015, 'confirmed',
      'and the event loop is never idle: it is late by up to 1500 ms. The CPU limit is too low, ' +
        'synchronous calls are long, or both. An event takes 15 ms of CPU time on average. GC ' +
        'is 3 % of the time.'],
    ['that is never idle, with short events', 0.5, 1, 0.005, 'ok', null],
    ['that is idle at times, with long events', 0.5, 0.9, 0.015, 'confirmed', null],
    ['that is idle at times, with short events', 0.5, 0.9, 0.005, 'suspected', null],
    ['that is idle at times, with events of unknown length', 0.5, 0.9, 0, 'suspected', null],
    ['without a quota', 1, 1, 0, 'confirmed', null]
  ]))('a blocked loop %s at %d of a core', (_, cores, busy, eventSeconds, found, named) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...slowed(cores, t),
          ...delays(t, 1.5),
          ...busyLoop(t, busy),
          ...(eventSeconds > 0 && { eventLoopEvents: Math.round(t * cores / eventSeconds) })
        }
      })
    })
    const { state, summary } = verdict('event-loop-blocked')
    expect(state).toBe(found)
    expect(verdict('cpu-throttling').state).toBe(cores < 1 ? 'confirmed' : 'ok')
    const [, effect = null] =
      /the CPU limit throttled the process in 100 % of its periods, (.*)$/i.exec(summary) ?? []
    expect(effect).toBe(named)
  })
  it.each(/** @type {const} */ ([
    ['half a core', 0.5, 0.2, 'warning', 1],
    ['half a core, and a thread that waits little', 0.5, 0.06, 'info', 1],
    ['one and a half cores', 1.5, 0.2, 'warning', 3],
    ['half a core, most of it in other threads', 0.5, 0.2, 'warning', 2, 0.1]
  ]))('throttled with %s: the severity, and a limit that is high enough', (
    _, cpuQuotaCores, waited, severity, cpuLimitCores, /** @type {number} */ used = 1
  ) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...underQuota(t, 0.4, waited),
          threadCpuUserSeconds: used * t,
          threadCpuSystemSeconds: 0,
          cpuQuotaCores
        }
      })
    })
    expect(verdict('cpu-throttling')).toMatchObject({
      state: 'confirmed',
      severity,
      fix: [{ change: { cpuLimitCores }, predicted: [{ from: 0.4, to: 0.05 }] }]
    })
  })
  it.each([
    ['most of it in other threads', 0.1, 2],
    ['all of it in the main thread', 0.5, 1]
  ])('before Node.js 22, half a core is used up, %s, as the kernel tells', (
    _, used, cpuLimitCores
  ) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => {
        return {
          values: {
            ...underQuota(t, 0.4, 0.2),
            threadRunSeconds: used * 5 * Math.floor(t / 5),
            cpuUserSeconds: 0.5 * t,
            cpuQuotaCores: 0.5
          }
        }
      }
    })
    expect(verdict('cpu-throttling').fix).toMatchObject([{ change: { cpuLimitCores } }])
  })
  it('a throttled program without a server is only suspected: perhaps nobody waits', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...underQuota(t, 0.9, 0.5),
          ...busyLoop(t, 1),
          connectionsAccepted: 0,
          resources: { Timeout: 1 }
        }
      })
    })
    expect(verdict('cpu-throttling')).toMatchObject({ state: 'suspected', severity: 'info' })
  })
  it.each([
    ['half a core', 0.5, 29, 'unknown'],
    ['half a core', 0.5, 36, 'confirmed'],
    ['one core', 1, 29, 'suspected']
  ])('a late loop with %s (%f), after %d s', (_, cpuQuotaCores, seconds, state) => {
    const { verdict } = watch({
      seconds, at: t => ({ values: { ...busyLoop(t), ...delays(t, 0.3), cpuQuotaCores } })
    })
    expect(verdict('event-loop-blocked').state).toBe(state)
  })
  it('many short events of a loop that is never idle may be too much work for one thread', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...slowed(1, t),
          ...delays(t, 1.5),
          ...busyLoop(t, 1),
          eventLoopEvents: 200 * t
        }
      })
    })
    const { state, summary, fix } = verdict('event-loop-blocked')
    expect({ state, summary }).toEqual({
      state: 'suspected',
      summary: 'The event loop is never idle, and late by up to 1500 ms: there is more work than ' +
        'one thread can do, or synchronous calls are long. An event takes 4.8 ms of CPU time on ' +
        'average. GC is 3 % of the time.'
    })
    expect(fix.map(({ title }) => title)).toEqual([
      'Find the function, and move it off the event loop',
      'Spread the load over more processes'
    ])
  })
  it('a sleeping call takes the same time with any share of a core', () => {
    const { primary } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...slowed(0.1, t),
          ...delays(t, 0.3),
          ...busyLoop(t, 0.6),
          threadCpuUserSeconds: 0.01 * t,
          runQueueWaitSeconds: 0.1 * t
        }
      })
    })
    expect(primary).toMatchObject({
      diagnosis: 'event-loop-blocked',
      summary: expect.stringContaining('calls that wait')
    })
  })
})

it('a heap that fits the container alone, and fills it within two minutes, is suspected', () => {
  const { verdict } = watch({
    seconds: 60,
    at: t => ({ heapLimitMib: 500, heapMib: 250, rssMib: 320 + 3 * (t - 60) })
  })
  expect(verdict('container-limit-mismatch')).toMatchObject({
    state: 'suspected', severity: 'warning'
  })
})

it.each([
  ['and grows to the limit within two minutes', 3, 'warning'],
  ['and would need longer', 1, 'info'],
  ['and stays', 0, 'info']
])('a heap larger than its container, of which RSS fills half %s', (_, mibPerSecond, severity) => {
  const { verdict } = watch({
    seconds: 60,
    at: t => ({ heapLimitMib: 2000, heapMib: 250, rssMib: 320 + mibPerSecond * (t - 60) })
  })
  expect(verdict('container-limit-mismatch')).toMatchObject({
    state: 'confirmed',
    severity,
    summary: "V8 may use 2000 MiB of heap, more than the container's 512 MiB."
  })
})

it.each([
  ['fills it in a line', 19, t => 16 * t, 'warning'],
  ['grows slowly', 19, t => 5 * t, 'info'],
  ['stops below half of it', 19, t => Math.min(16 * t, 140), 'info'],
  ['would need 18 s to fill it', 16, t => 12 * t, 'info'],
  ['grows in steps', 19, t => (t < 4 ? 0 : t < 12 ? 150 : 300), 'info']
])('a young heap larger than its container of 512 MiB that %s', (_, seconds, grown, severity) => {
  const { verdict } = watch({
    seconds,
    at: t => ({ heapLimitMib: 4096, heapMib: 80 + grown(t), rssMib: 100 + grown(t) })
  })
  expect(verdict('container-limit-mismatch')).toMatchObject({ state: 'confirmed', severity })
})

it.each([
  [300, /: 81 % of RSS\.$/],
  [5, /in the median of the last minute\. At the moment the app uses all but 5 MiB\.$/]
])('malloc that keeps 300 MiB, of which %d are free now, is told so', (nowMib, summary) => {
  const { judge, limits } = require('../../engine/diagnoses/allocator-fragmentation')
  const signals = {
    allocatorAsked: 1,
    allocatorAnswerDue: 0,
    allocatorSlackBytes: 300 * MIB,
    allocatorSlackNowBytes: nowMib * MIB,
    allocatorSlackTrend: null,
    bufferChurnBytes: 300 * MIB,
    nativeReusedBytes: 300 * MIB,
    nativeTrend: null,
    rssBytes: 370 * MIB,
    containerLimitBytes: null,
    containerShareBytes: null,
    memoryRunwayBytes: null
  }
  const found = judge(/** @type {any} */ (signals), limits, hello({ allocator: 'glibc' }))
  expect(found.state).toBe('confirmed')
  expect(found.summary).toMatch(summary)
  expect(found.impact).toContain(`${nowMib} MiB of RSS are unused`)
  const stale = judge(/** @type {any} */ ({ ...signals, allocatorAnswerDue: 1 }), limits, hello({ allocator: 'glibc' }))
  expect(stale.summary).toMatch(/: 81 % of RSS\.$/)
})

it.each([[2, 9, 'unknown'], [8, 9, 'confirmed'], [2, 30, 'ok'], [9, 30, 'suspected']])(
  '%d of %d slabs that outlive their use', (bufferSlabsKept, bufferSlabsFollowed, state) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        externalMib: 90,
        rssMib: 180,
        values: {
          arrayBuffersBytes: 88 * MIB,
          bufferPoolBytes: 65_536,
          bufferSlabsFollowed: t < 50 ? 0 : bufferSlabsFollowed,
          bufferSlabsKept: t < 50 ? 0 : bufferSlabsKept
        }
      })
    })
    expect(verdict('buffer-pool-pinning').state).toBe(state)
  }
)

it.each([
  ['unknown, from an older agent', ['capture'], {}, 'confirmed', null],
  ['not counted yet', ['capture', 'count_slices'], {}, 'suspected', null],
  ['a tenth of them', ['count_slices'], { bufferSlabsCountedBytes: 80 * MIB, bufferSlicesCountedBytes: 8 * MIB },
    'confirmed', 71],
  ['half of them', ['count_slices'], { bufferSlabsCountedBytes: 80 * MIB, bufferSlicesCountedBytes: 40 * MIB },
    'ok', null],
  ['half of a few of them', ['count_slices'],
    { bufferSlabsCountedBytes: 9 * MIB, bufferSlicesCountedBytes: 5 * MIB }, 'suspected', null],
  ['more, as slices overlap', [], { bufferSlabsCountedBytes: 80 * MIB, bufferSlicesCountedBytes: 96 * MIB },
    'ok', null]
])('slabs whose slices fill %s', (_, commands, counted, state, freedMib) => {
  const { verdict } = watch({
    seconds: 60,
    helloChanges: { commands },
    at: t => ({
      externalMib: 90,
      rssMib: 180,
      values: {
        arrayBuffersBytes: 88 * MIB,
        bufferPoolBytes: 65_536,
        bufferSlabsFollowed: t,
        bufferSlabsKept: t,
        ...counted
      }
    })
  })
  const found = verdict('buffer-pool-pinning')
  expect(found.state).toBe(state)
  const [copies] = found.fix ?? []
  const freed = copies?.predicted[0] && copies.predicted[0].from - copies.predicted[0].to
  expect(freed === undefined ? null : Math.round(freed / MIB)).toBe(freedMib)
})

it.each([
  ['a fifth', 80, 16, 'confirmed'],
  // 40 MiB are in use, and 48 MiB are not.
  ['half', 80, 36, 'confirmed'],
  ['nearly all', 80, 75, 'ok'],
  ['a part of a few', 9, 1, 'ok'],
  // The pool's slabs outlive their use as well, and are few.
  ['a fifth', 80, 16, 'confirmed', 30]
])('Buffers outside the pool whose slices fill %s of them', (
  _, slabsMib, slicesMib, state, poolMib = undefined
) => {
  const { verdict } = watch({
    seconds: 60,
    helloChanges: { commands: ['count_slices'] },
    at: t => ({
      externalMib: 90,
      rssMib: 180,
      values: {
        arrayBuffersBytes: 88 * MIB,
        bufferPoolBytes: 8192,
        bufferSlabsFollowed: poolMib === undefined ? 0 : t,
        bufferSlabsKept: poolMib === undefined ? 0 : t,
        ...(poolMib && { bufferPoolCountedBytes: poolMib * MIB }),
        bufferSlabsCountedBytes: slabsMib * MIB,
        bufferSlicesCountedBytes: slicesMib * MIB
      }
    })
  })
  const found = verdict('buffer-pool-pinning')
  expect(found.state).toBe(state)
  if (state === 'ok') return
  expect(found.summary).toMatch(/^The app keeps slices of Buffers, which fill \d+ % of the memory/)
  expect(found.fix.map(({ title }) => title)).toEqual(['Copy the kept parts'])
  expect(found.evidence.map(({ signal }) => signal)).not.toContain('bufferSlabsKeptRatio')
})

// RSS belongs to the process: a worker thread has no figure of its own.
it.each([[88, 'confirmed'], [40, 'ok']])(
  '%d MiB of Buffers of a worker thread, whose slices fill a fifth', (mib, state) => {
    const { judge, fix, limits } = require('../../engine/diagnoses/buffer-pool-pinning')
    const signals = {
      bufferPoolBytes: 8192,
      arrayBuffersFloorBytes: mib * MIB,
      arrayBuffersBytes: mib * MIB,
      arrayBuffersTrend: null,
      bufferSlabsFollowed: 0,
      bufferSlabsKeptRatio: null,
      bufferSlabsCountedBytes: mib * MIB,
      bufferSlicesFillRatio: 0.2,
      bufferPoolCountedRatio: 0,
      rssBytes: null
    }
    const worker = hello({ threadId: 1, commands: ['count_slices'] })
    const found = judge(/** @type {any} */ (signals), limits, worker)
    expect(found.state).toBe(state)
    if (state === 'ok') return
    expect(found.evidence?.map(({ signal }) => signal)).not.toContain('rssBytes')
    const [{ predicted: [retained] }] = fix(/** @type {any} */ (found.finding), worker, limits)
    expect(retained.signal).toBe('arrayBuffersFloorBytes')
    expect(Math.round((retained.from - retained.to) / MIB)).toBe(Math.round(0.9 * 0.8 * mib))
  }
)

it.each([
  ['10 MiB', 10, 'ok'], ['as much', 40, 'suspected'], ['an unknown amount', null, 'suspected']
])('memory outside the heap that grew by 30 MiB, of which malloc has %s', (_, mib, expected) => {
  const { judge, limits } = require('../../engine/diagnoses/native-memory-leak')
  const known = {
    outsideHeapBytes: 60 * MIB,
    outsideHeapReadings: 20,
    majorsSeen: 5,
    memoryRunwayBytes: 800 * MIB,
    outsideHeapTrend: {
      rise: 30 * MIB, slope: 0.2 * MIB, seconds: 150, fit: 0.95, score: 5, lateRatio: 1,
      halvesRatio: 1, steadinessRatio: 0.95
    },
    mappedNativeBytes: mib === null ? null : mib * MIB
  }
  // All other signals are unknown.
  const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
  const { state, summary, refutes } = judge(/** @type {any} */ (signals), limits, hello())
  expect(state).toBe(expected)
  if (state === 'ok') {
    expect({ summary, refutes }).toEqual({
      summary: expect.stringContaining('pages that V8 keeps for its heap'), refutes: true
    })
  }
})

it.each(/** @type {[string, Record<string, number>, string, RegExp][]} */ ([
  ['Buffers, without a major GC', { buffers: 30, buffersNow: 40 }, 'unknown', /may be garbage$/],
  ['Buffers, after a major GC', { buffers: 30, buffersNow: 40, majorsSeen: 1 }, 'suspected',
    /in Buffers; a leak/],
  ['Buffers that a major GC has freed', { buffers: 30, buffersNow: 8, majorsSeen: 1 }, 'unknown',
    /most of the Buffers have been freed since$/],
  ['more Buffers than V8 lets wait', { rise: 70, buffers: 66, buffersNow: 80 }, 'suspected',
    /in Buffers; a leak/],
  ['native memory, without a major GC', {}, 'suspected', /native code, .* or an addon/],
  ['native memory of a process without addons', { addonsSeen: 0 }, 'suspected',
    /native code in Node\.js/],
  ['native memory, most of it in use', { inUse: 0.5 }, 'suspected', /native code/],
  ['native memory, little of it in use', { inUse: 0.3 }, 'ok', /malloc counts the rest as free$/],
  ['native memory, for a short time little of it in use', { inUse: 0.3, seconds: 15 }, 'suspected',
    /native code/],
  ['Buffers, beside native memory in use that stays',
    { buffers: 30, buffersNow: 40, majorsSeen: 1, inUse: 0 }, 'suspected', /in Buffers; a leak/]
]))('memory outside the heap that grew by %s', (_, of, expected, text) => {
  const { judge, fix, limits } = require('../../engine/diagnoses/native-memory-leak')
  const {
    rise = 40, buffers = 0, buffersNow = 0, majorsSeen = 0, inUse = null, seconds = 40,
    addonsSeen = null
  } = of
  const line = {
    slope: MIB, seconds: 40, fit: 0.95, score: 5, lateRatio: 1, halvesRatio: 1,
    steadinessRatio: 0.95
  }
  const grown = { ...line, rise: buffers * MIB }
  const known = {
    outsideHeapBytes: 100 * MIB,
    outsideHeapReadings: 20,
    majorsSeen,
    memoryRunwayBytes: 800 * MIB,
    outsideHeapTrend: { ...line, rise: rise * MIB },
    arrayBuffersBytes: buffersNow * MIB,
    addonsSeen,
    ...(buffers > 0 && { externalTrend: grown, arrayBuffersTrend: grown }),
    ...(inUse !== null && { nativeInUseTrend: { ...line, slope: inUse * MIB, seconds } })
  }
  const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
  const { state, summary, finding } = judge(/** @type {any} */ (signals), limits, hello())
  expect({ state, summary }).toEqual({ state: expected, summary: expect.stringMatching(text) })
  if (!finding || finding.place !== 'native') return
  expect(fix(finding, hello(), limits)[0].change.code).not.toContain('ADDONS')
  expect(/call a native addon/.test(String(fix(finding, hello(), limits)[0].change.code)))
    .toBe(addonsSeen === null)
})

it.each([
  ['which is due', 1, 60, 'unknown'],
  ['which never comes', 0, 60, 'suspected'],
  ['which is due, beside few Buffers', 1, 10, 'suspected']
])('growth that an answer of malloc may explain, %s', (_, due, churnMib, expected) => {
  const { judge, limits } = require('../../engine/diagnoses/native-memory-leak')
  const known = {
    outsideHeapBytes: 160 * MIB,
    outsideHeapReadings: 20,
    majorsSeen: 5,
    memoryRunwayBytes: 800 * MIB,
    outsideHeapTrend: {
      rise: 70 * MIB, slope: 2 * MIB, seconds: 35, fit: 0.95, score: 5, lateRatio: 1,
      halvesRatio: 1, steadinessRatio: 0.8
    },
    allocatorAsked: 0,
    allocatorAnswerDue: due,
    bufferChurnBytes: churnMib * MIB
  }
  const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
  const { state, summary } = judge(/** @type {any} */ (signals), limits, hello())
  expect(state).toBe(expected)
  if (state === 'unknown') expect(summary).toContain("malloc's next statistics")
})

it.each([
  ['30 MiB, of which workers have 20 MiB', 30, 20, 2, 'suspected', / worker threads hold it/],
  ['130 MiB, of which workers have 80 MiB', 130, 80, 0, 'suspected', / or a cache that still/],
  ['130 MiB, of which workers have 80 MiB that two GCs of theirs did not free', 130, 80, 2,
    'confirmed', / other external memory\.$/],
  ['30 MiB, of which workers have 10 MiB', 30, 10, 2, 'ok', /pages that V8/],
  ['30 MiB, of which workers have an unknown part', 30, null, null, 'ok', /pages that V8/]
])('memory outside the heap that grew by %s', (
  _, riseMib, mib, workersMajorsSeen, expected, text
) => {
  const { judge, fix, limits } = require('../../engine/diagnoses/native-memory-leak')
  const line = {
    slope: 0.2 * MIB, seconds: 150, fit: 0.95, score: 5, lateRatio: 1, halvesRatio: 1,
    steadinessRatio: 0.95
  }
  const known = {
    outsideHeapBytes: 60 * MIB,
    outsideHeapReadings: 20,
    majorsSeen: 5,
    memoryRunwayBytes: 30 * MIB,
    outsideHeapTrend: { ...line, rise: riseMib * MIB },
    workersExternalTrend: mib === null ? null : { ...line, slope: 0.2 * MIB * mib / riseMib },
    workersMajorsSeen,
    mappedNativeBytes: 10 * MIB
  }
  const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
  const { state, summary, finding, evidence } =
    judge(/** @type {any} */ (signals), limits, hello())
  expect({ state, summary }).toEqual({ state: expected, summary: expect.stringMatching(text) })
  if (!finding) return
  const signalsShown = evidence?.map(({ signal }) => signal)
  expect(signalsShown).toEqual(expect.arrayContaining([
    'workersExternalGrowthBytesPerSecond', 'workersMajorsSeen'
  ]))
  // Both are of the main thread alone.
  expect(signalsShown).not.toEqual(expect.arrayContaining(['majorsSeen']))
  expect(signalsShown).not.toEqual(expect.arrayContaining(['externalRiseBytes']))
  expect(fix(finding, hello(), limits)[0].change.code).toMatch(/heap_profile --thread worker-N` /)
})

it.each([
  ['two workers alike', [[100, 28], [90, 5]], 5],
  ['twelve workers alike', Array(12).fill([100, 28]), 28],
  ['a worker beside one with few Buffers', [[100, 28], [20, 0]], 28],
  ['a worker without a GC beside one with many', [[100, 0], [60, 9]], 0],
  ['workers without external memory', [[0, 3]], null]
])('GCs of %s count', (_, workers, expected) => {
  const { signals } = require('../../engine/signals')
  const threads = [[500, 99], ...workers].map(([mib, increase], threadId) => ({
    hello: { threadId },
    values: { externalBytes: mib * MIB },
    window: () => ({ settledSeconds: seconds => seconds, increase: () => ({ increase }) })
  }))
  const window = /** @type {any} */ ({ workers: { threads } })
  expect(signals.workersMajorsSeen.compute(window)).toBe(expected)
})

it('a container is judged by its busiest time of a day, and says so', () => {
  const { judge, limits } = require('../../engine/diagnoses/container-limit-mismatch')
  const known = {
    heapSizeLimitBytes: 765 * MIB,
    besideHeapBytes: 90 * MIB,
    besideHeapPeakBytes: 600 * MIB,
    rssBytes: 250 * MIB,
    rssShareRatio: 0.25,
    rssDayPeakShareRatio: 0.75,
    containerLimitBytes: 1024 * MIB
  }
  const judged = values => judge(/** @type {any} */ (
    new Proxy({ ...known, ...values }, { get: (of, name) => of[name] ?? null })
  ), limits, hello())
  const { state, summary, evidence } = judged({})
  expect({ state, summary }).toEqual({
    state: 'suspected',
    summary: expect.stringContaining('600 MiB are in use outside it at the busiest time of a day')
  })
  expect(evidence?.map(({ signal }) => signal)).toContain('rssDayPeakShareRatio')
  expect(judged({ besideHeapPeakBytes: 100 * MIB }).state).toBe('ok')
  expect(judged({ rssDayPeakShareRatio: 0.6 }).state).toBe('ok')
})

it.each([[3, 'unknown'], [20, 'confirmed']])(
  'Buffers that wait in the first %d s are %s',
  (gcWindowSeconds, expected) => {
    const { judge, limits } = require('../../engine/diagnoses/array-buffer-pile-up')
    const known = {
      externalWaitingBytes: 200 * MIB,
      externalPeakBytes: 220 * MIB,
      externalFloorBytes: 20 * MIB,
      externalMajorsPerSecond: 5,
      externalMajorPauseRatio: 0.05,
      externalMajorsPerCpuSecond: 5,
      externalMajorCpuRatio: 0.05,
      rssBytes: 300 * MIB,
      gcWindowSeconds
    }
    const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
    expect(judge(/** @type {any} */ (signals), limits, hello()).state).toBe(expected)
  }
)

describe('Buffers that stay allocated', () => {
  const MAY = '100 MiB of Buffers stay allocated, and only the next major GC shows how many of ' +
    'them are in use'
  it.each([
    ['may be unused once no major GC has run for half a minute', 100, 60, 'unknown', MAY],
    ['may be unused if no major GC ever ran', 100, 0, 'unknown', MAY],
    ['are in use as far as the last major GC shows', 100, 80, 'ok', '% of the time)'],
    ['are not worth a question if they are few', 10, 60, 'ok', '% of the time)']
  ])('%s', (_, externalMib, lastMajor, expected, said) => {
    const { verdict } = watch({
      seconds: 100,
      at: t => ({
        externalMib,
        rssMib: 100 + externalMib,
        majors: t <= lastMajor ? 1 : 0,
        values: { arrayBuffersBytes: externalMib * MIB }
      })
    })
    const { state, summary } = verdict('array-buffer-pile-up')
    expect(state).toBe(expected)
    expect(summary.endsWith(said)).toBe(true)
  })
})

describe('one large Buffer after the other', () => {
  it('count as unused although every reading shows the same external memory', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        externalMib: 54,
        rssMib: 104,
        externalMajors: t % 2,
        externalMajorSeconds: 0.002 * (t % 2)
      })
    })
    // The GCs cost too little for a finding, but the reason counts the Buffers.
    expect(verdict('array-buffer-pile-up')).toMatchObject({
      state: 'ok',
      summary: expect.stringContaining('up to 48 MiB of unused Buffers wait between GCs')
    })
  })
})

describe('a live heap that grew and fell', () => {
  /**
   * @param {(t: number) => number} lost MiB by which the live heap is below its line
   * @param {number} seconds
   * @param {object} [changes]
   */
  const grown = (lost, seconds, changes) => watch({
    seconds,
    at: t => ({ liveMib: 20 + t * 0.5 - lost(t), majors: t % 8 === 0 ? 1 : 0, ...changes })
  }).verdict('js-heap-leak')
  it.each([
    ['most of its rise', 80],
    ['half of it, and grew again until the reading', 52]
  ])('is no longer suspected once it fell by %s', (_, lostMib) => {
    expect(grown(() => 0, 239).state).toBe('suspected')
    expect(grown(t => t >= 240 ? lostMib : 0, 262)).toMatchObject({
      state: 'unknown', summary: expect.stringMatching(/then fell, and is at \d+ MiB now/)
    })
  })
  it.each([
    ['it fell by less', t => t >= 240 ? 20 : 0],
    ['the fall lasts only a moment', t => t === 248 ? 80 : 0]
  ])('stays suspected if %s', (_, lost) => {
    expect(grown(lost, 257).state).toBe('suspected')
  })
  it('shows no trend near its limit', () => {
    const lost = t => t >= 240 ? 80 : 0
    expect(grown(lost, 262, { heapLimitMib: 80 }).summary).not.toContain('then fell')
  })
})

describe('the bound of a live heap without major GCs', () => {
  /**
   * Creates a quiet app that runs no major GC, and promotes this many MiB per hour.
   * @param {number} perHour
   * @param {{ seconds?: number, of?: (t: number) => object }} [options]
   */
  const quiet = (perHour, { seconds = 300, of = () => ({}) } = {}) =>
    watch({
      seconds,
      at: t => {
        const old = 10 + perHour * t / 3600
        const young = 0.2 + (t % 10) / 10
        return {
          majors: 0,
          heapMib: 16,
          values: {
            heapUsedBytes: (old + 2 + young) * MIB,
            spaces: {
              new_space: [young * MIB, 2 * MIB, MIB, 0],
              old_space: [old * MIB, 20 * MIB, 0, 0],
              code_space: [MIB, MIB, 0, 0],
              trusted_space: [MIB, MIB, 0, 0]
            }
          },
          ...of(t)
        }
      }
    }).verdict('js-heap-leak')

  it('is the sum of promoted and young memory, and rules out a leak if it is small', () => {
    const verdict = quiet(4)
    expect(verdict.state).toBe('ok')
    expect(verdict.summary).toMatch(
      /^promoted and young objects add up to at most 0\.\d+ MiB in (4|3\.9) min, so the live heap grew by at most \d\.\d MiB\/h, with \d+ MiB left\. Slower growth becomes visible over hours$/
    )
  })
  const HOUR = 3600
  /**
   * Upper bound of the growth after an hour, in MiB, and the remaining room.
   * @param {object} changes
   */
  const judgeBound = changes => {
    const { judge, limits } = require('../../engine/diagnoses/js-heap-leak')
    const bound = { bytes: 10, old: 8, seconds: HOUR, left: 4096, ...changes }
    return judge(
      /** @type {any} */ ({
        liveHeapBytes: null,
        heapRunwayBytes: null,
        liveHeapBoundBytes: bound.bytes * MIB,
        liveHeapBoundOldBytes: bound.old * MIB,
        liveHeapBoundSeconds: bound.seconds,
        usedHeapRunwayBytes: bound.left * MIB
      }),
      limits,
      hello()
    ).state
  }
  it.each([
    ['it may grow at a rate that minutes would show', { bytes: 47.9 }, { bytes: 48 }],
    ['it may reach its limit within a working day', { left: 80.1 }, { left: 80 }],
    ['so much was promoted that hours must decide', { old: 27.9 }, { old: 28 }],
    ['the history is too short', { bytes: 0, seconds: 30 }, { bytes: 0, seconds: 29 }]
  ])('leaves the leak undecided if %s', (_, accepted, rejected) => {
    expect([judgeBound(accepted), judgeBound(rejected)]).toEqual(['ok', 'unknown'])
  })
  it('is not used after a major GC, whose reading decides', () => {
    const state = major => quiet(4, {
      of: t => ({
        liveMib: 11,
        majors: t === major ? 1 : 0,
        values: {
          heapUsedBytes: 12 * MIB,
          spaces: { new_space: [0, 2 * MIB, MIB, 0], old_space: [11 * MIB, 0, 0, 0] }
        }
      })
    }).state
    // The first fifth of a process's life is its start.
    expect([state(59), state(70)]).toEqual(['ok', 'unknown'])
  })
  it('is not used while GCs are not observed', () => {
    expect(
      quiet(4, {
        of: () => ({
          values: {
            gcObserverStopped: 1,
            heapUsedBytes: 12 * MIB,
            spaces: { new_space: [0, 2 * MIB, MIB, 0], old_space: [10 * MIB, 0, 0, 0] }
          }
        })
      }).state
    ).toBe('unknown')
  })
})

describe('growing memory outside the heap', () => {
  it.each([
    // 16 MiB, too little to judge; less steady; hardly steady; slow. Then with its last 20 s.
    [0.02, 0.65, 0, 'unknown', false],
    [0.02, 0.4, 0, 'ok', true],
    [0.02, 0.2, 0, 'ok', false],
    [0.001, 0.4, 0, 'ok', false],
    [0.02, 0, 0.31, 'unknown', false],
    [0.02, 0, 0.29, 'ok', false],
    [0.001, 0, 0.31, 'ok', false]
  ])('a small rise of %d MiB/s, steadiness %d, lately %d of it: %s', (
    slope, steadiness, lately, state, keeps
  ) => {
    const { judge, limits } = require('../../engine/diagnoses/native-memory-leak')
    const trend = {
      rise: 16 * MIB, slope: slope * MIB, seconds: 800, score: 3, steadinessRatio: steadiness
    }
    const signals = {
      outsideHeapBytes: 60 * MIB,
      outsideHeapReadings: 20,
      outsideHeapTrend: trend,
      outsideHeapLatelyRatio: lately,
      memoryRunwayBytes: 4000 * MIB,
      forcedFreedBytes: null,
      outsideHeapLastingTrend: null
    }
    const judged = judge(/** @type {any} */ (signals), limits, hello())
    expect([judged.state, judged.keeps ?? false]).toEqual([state, keeps])
  })
  /** WebAssembly memories in scans of the memory map, every ten seconds. */
  const leak = (/** @type {number} */ mibPerSecond, of = {}) =>
    watch({
      seconds: 90,
      at: t => {
        const webassembly = mibPerSecond * 10 * Math.floor(t / 10) * MIB
        return {
          nativeMib: 12 + 3 * t,
          rssMib: 60 + 3 * t,
          ...of,
          values: {
            residentBytes: {
              webassembly, malloc_heap: (12 + 3 * t) * MIB - webassembly, other: 30 * MIB
            },
            ...of.values?.(t)
          }
        }
      }
    }).verdict('native-memory-leak')
  it.each([
    [1.6, 'it is WebAssembly memory', 'WebAssembly memories grow by'],
    [1.4, 'V8 does not count it', undefined]
  ])('at 3 MiB/s, of which WebAssembly takes %d: %s', (mibPerSecond, name, told) => {
    const verdict = leak(mibPerSecond)
    expect(verdict).toMatchObject({
      state: 'suspected', summary: expect.stringContaining(name)
    })
    const texts = verdict.evidence.map(({ text }) => text)
    if (told) {
      expect(texts).toContainEqual(expect.stringContaining(told))
      expect(verdict.fix[0].title).toBe('Free the WebAssembly memory, or drop the references to it')
      expect(verdict.fix[0].risk).toMatch(/^A restart gains/)
    } else expect(texts.join()).not.toContain('WebAssembly')
  })
  it.each([
    [3, 'are in Buffers'],
    // Messages that wait to be sent.
    [0, 'V8 does not count it']
  ])('with Buffers of 3 MiB/s, of which V8 counts %d as external: %s', (external, name) => {
    const { summary } = leak(0, {
      values: t => ({ arrayBuffersBytes: 3 * t * MIB, externalBytes: (2 + external * t) * MIB })
    })
    expect(summary).toContain(name)
  })
  it('belongs to WebAssembly even if its memories count as ArrayBuffers', () => {
    const { summary } = leak(2.9, { values: t => ({ arrayBuffersBytes: 3 * t * MIB }) })
    expect(summary).toContain('it is WebAssembly memory')
  })
})

it.each([80, 95])('the time to the heap limit counts from now, at %d s', seconds => {
  // The heap grows by 2.5 MiB/s to 256 MiB, with a major GC every 4 s: it is full after 98 s.
  const { verdict } = watch({
    seconds,
    at: t => ({
      liveMib: 10 + 2.5 * 4 * Math.floor(t / 4),
      rssMib: 330,
      scavenges: 0,
      scavengeSeconds: 0,
      majors: t % 4 === 0 ? 1 : 0,
      majorSeconds: 0.01
    })
  })
  const { secondsLeft } = verdict('js-heap-leak')
  expect(Math.abs((secondsLeft ?? NaN) - (98 - seconds))).toBeLessThan(2.5)
})

describe('a young line of growth', () => {
  /** @param {object} changes changes per second */
  const after = ({ live = 0, native = 0 }) => watch({
    seconds: 58,
    at: t => ({
      liveMib: 10 + live * t, nativeMib: 12 + native * t, rssMib: 90 + (live + native) * t
    })
  })
  it.each([
    ['js-heap-leak', { live: 0.1 }, 'unknown', 'too little to judge'],
    ['js-heap-leak', { live: 0.01 }, 'ok', 'the live heap is flat'],
    ['native-memory-leak', { native: 0.11 }, 'unknown', 'too little to judge'],
    ['native-memory-leak', { native: 0.01 }, 'ok', 'since the warm-up']
  ])('of %s by %o is %s: a working day would fill the room, or not', (id, growth, state, text) => {
    const verdict = after(growth).verdict(id)
    expect(verdict).toMatchObject({ state, summary: expect.stringContaining(text) })
    expect(verdict.evidence).toEqual([])
  })
})

describe('a heap near its limit whose GCs come and go with the load', () => {
  /** @param {number} calm share of time in GC between bursts of twelve seconds a minute */
  const states = calm => {
    const seen = []
    watch({
      seconds: 300,
      at: t => {
        const burst = t % 60 >= 10 && t % 60 < 22
        return {
          liveMib: 205,
          rssMib: 300,
          scavenges: 0,
          scavengeSeconds: 0,
          majors: burst ? 0.5 : 0.5 * calm / 0.1,
          majorSeconds: burst ? 0.1 : calm
        }
      },
      onTarget: target => {
        const found = findCase(target).verdicts.find(({ diagnosis }) =>
          diagnosis === 'heap-limit-thrash')
        if (found && found.state !== seen.at(-1)) seen.push(found.state)
      }
    })
    return seen.filter(state => state !== 'unknown')
  }
  it('is one finding while GC stays near the limit that raised it', () => {
    expect(states(0.04)).toEqual(['ok', 'suspected'])
  })
  it('is a finding of each burst if GC is calm between them', () => {
    expect(states(0.005).slice(0, 4)).toEqual(['ok', 'suspected', 'ok', 'suspected'])
  })
})

describe('a blocked loop', () => {
  it.each([
    ['is no finding if each block is the pause of a major GC', 0.24, 'ok'],
    ['is a finding beside short major GCs', 0.05, 'confirmed']
  ])('%s', (_, majorSeconds, state) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        majors: 1,
        majorSeconds,
        scavengeSeconds: 0.001,
        values: { ...busyLoop(t, 0.9), ...delays(t, 0.3) }
      })
    })
    expect(verdict('event-loop-blocked').state).toBe(state)
    if (state === 'ok') {
      expect(verdict('event-loop-blocked').summary).toBe(
        'the loop is late by 45 ms on average, but only by 1.8 ms without the pauses of major GCs')
    }
  })
  const batch = { resources: { FSReqPromise: 1, PipeWrap: 2 }, connectionsAccepted: 0 }
  /**
   * @param {object} values
   * @param {number} [busy]
   * @param {object} [helloChanges]
   */
  const blocked = (values, busy = 0.8, helloChanges = {}) =>
    watch({
      seconds: 60,
      helloChanges,
      at: t => ({ values: { ...busyLoop(t, busy), ...delays(t, 0.4), ...values } })
    }).verdict('event-loop-blocked')

  it('of a batch program is no finding, as nobody waits for it', () => {
    expect(blocked(batch)).toMatchObject({
      state: 'ok',
      summary: 'it computes for up to 400 ms at a time, like a batch job: no server listens, ' +
        'no timer is always pending and no connection stays open, so no client waits'
    })
  })
  const withTimers = { ...batch, resources: { ...batch.resources, Timeout: 2 } }
  it.each([
    ['a server that listens', { ...batch, resources: { TCPServerWrap: 1 } }],
    [
      'connections that it accepted, as on a Unix socket or in a worker of a cluster',
      { ...batch, connectionsAccepted: 1 }
    ],
    ['an agent that does not count connections', { ...withTimers, connectionsAccepted: undefined }]
  ])('is a finding with %s', (_, values) => {
    const verdict = blocked(values, 1)
    expect(verdict).toMatchObject({ state: 'confirmed', severity: 'warning' })
    expect(verdict.impact).toContain('Every request')
  })
  it('is a finding if the loop waits for timers that fire late', () => {
    const verdict = blocked(withTimers, 0.89)
    expect(verdict).toMatchObject({ state: 'confirmed', severity: 'warning' })
    expect(verdict.evidence.map(({ text }) => text)).toEqual(
      expect.arrayContaining([
        'No server listens.',
        '2 timers are always pending: they fire late.'
      ])
    )
  })
  it.each([
    ['timers of a loop that hardly pauses', withTimers, 0.91, 0],
    [
      'one timer, which may be the pause of the program itself',
      { ...batch, resources: { ...batch.resources, Timeout: 1 } },
      0.3,
      0
    ],
    ['connections to others', { ...batch, resources: { TCPSocketWrap: 1 } }, 0.5, 0],
    ['timers of a worker, which often exists for such work', withTimers, 0.89, 1]
  ])('is only suspected with %s', (_, values, busy, threadId) => {
    const verdict = blocked(values, busy, { threadId })
    expect(verdict).toMatchObject({ state: 'suspected', severity: 'info' })
    expect(verdict.evidence.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/always (pending|open): it is unknown whether a client waits/)
    )
  })
  it('is only suspected with timers of a loop that is busy whenever it has a CPU', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...busyLoop(t, 0.98), ...delays(t, 0.6), ...withTimers, runQueueWaitSeconds: 0.4 * t
        }
      })
    })
    expect(verdict('event-loop-blocked')).toMatchObject({ state: 'suspected', severity: 'info' })
  })
  it('with an occasional timer has no timer that is always pending', () => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        values: {
          ...busyLoop(t, 0.8), ...delays(t, 0.4), ...(t % 5 ? withTimers : batch)
        }
      })
    })
    expect(verdict('event-loop-blocked').state).toBe('ok')
  })
  /**
   * @param {object} rare
   * @param {number} rare.blockSeconds
   * @param {number} [rare.everySeconds] from block to block
   * @param {number} [rare.seconds] that the process lives
   * @param {number} [rare.computes] part of a block in which the thread has the CPU
   * @param {object} [rare.values]
   */
  const rarely = ({ blockSeconds, everySeconds = 12, seconds = 120, computes = 1, values }) =>
    watch({
      seconds,
      at: t => {
        const blockedSeconds = blockSeconds * Math.floor(t / everySeconds)
        return {
          values: {
            ...busyLoop(t, 0.01),
            eventLoopActiveSeconds: 0.01 * t + blockedSeconds,
            threadCpuUserSeconds: 0.01 * t + computes * blockedSeconds,
            threadCpuSystemSeconds: 0,
            ...delays(t, t % everySeconds === 0 ? blockSeconds : 0.01),
            resources: { TCPServerWrap: 1 },
            ...values
          }
        }
      }
    }).verdict('event-loop-blocked')
  it.each([
    ['half a second, whose mean wait is 10 ms', { blockSeconds: 0.55 }, 'confirmed'],
    ['less than that', { blockSeconds: 0.45 }, 'ok'],
    ['0.35 s, every four seconds', { blockSeconds: 0.35, everySeconds: 4 }, 'confirmed'],
    ['0.24 s, every four seconds', { blockSeconds: 0.24, everySeconds: 4 }, 'suspected'],
    ['0.18 s, every two seconds', { blockSeconds: 0.18, everySeconds: 2 }, 'ok'],
    ['two seconds', { blockSeconds: 2 }, 'confirmed'],
    ['two seconds within a minute', { blockSeconds: 2, seconds: 55 }, 'suspected'],
    ['two seconds, twice', { blockSeconds: 2, seconds: 35 }, 'ok'],
    ['two seconds in which the thread mostly waits for a CPU', { blockSeconds: 2, computes: 0.2 },
      'ok'],
    ['two seconds of a batch program', { blockSeconds: 2, values: batch }, 'ok']
  ])('that takes %s is judged over minutes, every twelve seconds by default', (_, rare, state) => {
    expect(rarely(rare).state).toBe(state)
  })
  it.each([
    [0.99, 'ok'], [0.6, 'confirmed']
  ])('is due to events that pile up during GC in a loop busy for %f: %s', (busy, state) => {
    const { verdict } = watch({
      seconds: 120,
      at: t => ({
        scavenges: 40,
        scavengeSeconds: 0.6 * busy,
        values: {
          ...busyLoop(t, busy),
          threadCpuUserSeconds: busy * t + 0.6 * Math.floor(t / 12),
          eventLoopActiveSeconds: busy * t + 0.6 * Math.floor(t / 12),
          ...delays(t, t % 12 === 0 ? 0.8 : 0.01),
          resources: { TCPServerWrap: 1 }
        }
      })
    })
    expect(verdict('event-loop-blocked').state).toBe(state)
  })
  it.each([
    ['only in the start phase', 12, 'suspected'], ['still after it', 60, 'confirmed']
  ])('%s (its first %i s) is %s at 36 s', (_, seconds, state) => {
    const { verdict } = watch({
      seconds: 36,
      at: t => ({
        values: {
          ...busyLoop(t, 0.9),
          ...delays(t, t < seconds ? 0.9 : 0.02),
          resources: { TCPServerWrap: 1 }
        }
      })
    })
    expect(verdict('event-loop-blocked').state).toBe(state)
  })
  it('keeps no advice about calls that wait once the code computes', () => {
    const at = (/** @type {number} */ t) => ({
      values: {
        ...busyLoop(t, 0.9),
        ...delays(t, 0.4),
        threadCpuUserSeconds: 0.05 * Math.min(t, 60) + 0.9 * Math.max(0, t - 60),
        runQueueWaitSeconds: 0
      }
    })
    for (const [seconds, title] of /** @type {const} */ ([
      [60, 'Replace the synchronous calls'], [120, expect.stringMatching('Find the function')]
    ])) {
      expect(watch({ seconds, at }).verdict('event-loop-blocked'))
        .toMatchObject({ state: 'confirmed', fix: [{ title }] })
    }
  })
  it('in the first seconds is open while nothing tells whether its thread waited for a CPU', () => {
    const { verdict } = watch({
      seconds: 15,
      at: t => ({ values: { ...busyLoop(t), ...delays(t, 0.4), threadCpuUserSeconds: 0.05 * t } })
    })
    expect(verdict('event-loop-blocked')).toMatchObject({
      state: 'unknown', summary: expect.stringContaining('waited for a CPU is not known yet')
    })
  })
  it('that is rare names the count of blocks, and the wait that a change removes', () => {
    const verdict = rarely({ blockSeconds: 2 })
    expect(verdict.summary).toMatch(/for up to 1980 ms, 7 times in 72 s; GC/)
    expect(verdict.fix[0].predicted).toEqual([expect.objectContaining({
      signal: 'longBlocksWaitSeconds'
    })])
  })
  it.each([
    [{ 60: 12 }, 'suspected', /blocks the event loop for up to 12 s, once; GC/],
    [{ 60: 9 }, 'ok', /late by/],
    [{ 40: 11, 110: 0.6 }, 'suspected', /for up to 11 s, 2 times in 70 s; GC/],
    [{ 60: 11, 65: 0.6, 70: 0.6 }, 'suspected', /for up to 11 s, 3 times in 10 s; GC/]
  ])('with few blocks, by second: %j, is %s', (blocks, state, summary) => {
    const { verdict } = watch({
      seconds: 120,
      at: t => {
        const blocked = Object.entries(blocks)
          .reduce((sum, [second, seconds]) => sum + (t < Number(second) ? 0 : seconds), 0)
        return {
          values: {
            ...busyLoop(t, 0.01),
            eventLoopActiveSeconds: 0.01 * t + blocked,
            threadCpuUserSeconds: 0.01 * t + blocked,
            threadCpuSystemSeconds: 0,
            ...delays(t, blocks[t] ?? 0.01),
            resources: { TCPServerWrap: 1 }
          }
        }
      }
    })
    const found = verdict('event-loop-blocked')
    expect(found).toMatchObject({ state, summary: expect.stringMatching(summary) })
    const signals = found.evidence.map(({ signal }) => signal)
    expect([signals.includes('longestBlockSeconds'), signals.includes('longBlocksSeen')])
      .toEqual([state !== 'ok', false])
  })
  it('of a server that closed some minutes ago may still concern clients', () => {
    const { verdict } = watch({
      seconds: 240,
      at: t => ({
        values: {
          ...busyLoop(t, 0.8),
          ...delays(t, 0.4),
          ...batch,
          ...(t < 60 && { resources: { TCPServerWrap: 1 } })
        }
      })
    })
    expect(verdict('event-loop-blocked').state).toBe('confirmed')
  })
})

/** A kernel that reports almost no wait for a CPU. @param {number} t */
const unhindered = t => ({ ...busyLoop(t, 0.9), runQueueWaitSeconds: 0.001 * t })

describe('a machine that is six times slower without reporting it', () => {
  it.each([
    [
      'semi-space-starvation',
      () => ({ scavenges: 30, scavengeSeconds: 0.2, majors: 1.5, majorSeconds: 0.15 })
    ],
    ['heap-limit-thrash', () => ({ liveMib: 230, rssMib: 300, majors: 0.25, majorSeconds: 0.3 })],
    [
      'array-buffer-pile-up',
      (/** @type {number} */ t) => ({
        externalMib: t % 2 ? 90 : 4,
        rssMib: 180,
        externalMajors: 0.5,
        externalMajorSeconds: 0.05
      })
    ]
  ])('reaches %s by its share of time', (id, at) => {
    expect(
      watch({ seconds: 60, at: t => ({ ...at(t), values: unhindered(t) }) }).primary?.diagnosis
    ).toBe(id)
  })
})

it('a share of wall time does not confirm premature promotion if waiting time is unknown', () => {
  const state = (/** @type {number} */ majors) =>
    watch({
      seconds: 25,
      at: () => ({ scavenges: 30, scavengeSeconds: 0.3, majors, majorSeconds: 0.06 })
    }).verdict('semi-space-starvation').state
  expect([state(2.4), state(2.5)]).toEqual(['ok', 'confirmed'])
})

it('major GCs of a growing live heap are no premature promotion', () => {
  const grows = watch({
    seconds: 25,
    at: t => ({
      liveMib: 10 + 5 * t,
      scavenges: 20,
      scavengeSeconds: 0.15,
      majors: 1,
      majorSeconds: 0.05,
      values: unhindered(t)
    })
  })
  const flat = watch({
    seconds: 25,
    at: t => ({
      scavenges: 20,
      scavengeSeconds: 0.15,
      majors: 1,
      majorSeconds: 0.05,
      values: unhindered(t)
    })
  })
  expect(grows.verdict('semi-space-starvation').state).toBe('ok')
  expect(flat.verdict('semi-space-starvation').state).toBe('confirmed')
})

it.each([[12, 30, 'confirmed'], [12, 212, 'ok'], [25, 212, 'confirmed']])(
  '%d MiB promoted before each major GC of a live heap of %d MiB: %s',
  (promotedMib, liveMib, expected) => {
    const { judge, limits } = require('../../engine/diagnoses/semi-space-starvation')
    const known = {
      promotedPerMajorBytes: promotedMib * MIB,
      liveHeapBytes: liveMib * MIB,
      liveHeapShareRatio: 0.2,
      keptPerMajorBytes: 0,
      externalWaitingBytes: 30 * MIB,
      semiSpaceMaxBytes: 8 * MIB,
      semiSpaceCapacityBytes: 8 * MIB,
      recentGcs: 200,
      gcWindowSeconds: 30,
      lifeCpuSeconds: 30,
      scavengesPerSecond: 4,
      scavengesPerCpuSecond: 4,
      scavengePauseRatio: 0.05,
      scavengeCpuRatio: 0.05,
      ordinaryMajorsPerSecond: 2.5,
      ordinaryMajorPauseRatio: 0.15,
      ordinaryMajorCpuRatio: 0.15,
      externalMajorsPerSecond: 0,
      gcPauseRatio: 0.2,
      cpuTimeRatio: 1,
      heapSizeLimitBytes: 1048 * MIB
    }
    const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
    expect(judge(/** @type {any} */ (signals), limits, hello()).state).toBe(expected)
  }
)

it.each([[1, / is never idle, so work waits\. /], [0.6, / holds for the same load\. /]])(
  'a larger semi-space for a loop that is busy for %d of the time', (busy, risk) => {
    const { verdict } = watch({
      seconds: 60,
      at: t => ({
        scavenges: 190,
        scavengeSeconds: 0.2,
        majors: 9,
        majorSeconds: 0.1,
        values: {
          ...busyLoop(t, busy),
          eventLoopActiveSeconds: busy * t,
          eventLoopIdleSeconds: (1 - busy) * t
        }
      })
    })
    expect(verdict('semi-space-starvation').fix[0].risk).toMatch(risk)
  }
)

it.each([
  ['a live heap of 27 MiB', 27, 7.7, 'suspected', [
    'Keep less data in use at the same time', 'Try semi-spaces of up to 32 MiB'
  ]],
  ['a live heap that a larger semi-space holds', 12, 7.7, 'confirmed', [
    'Let semi-spaces grow to 32 MiB'
  ]],
  ['major GCs that promotion explains', 27, 12, 'confirmed', ['Let semi-spaces grow to 32 MiB']]
])('frequent scavenges and major GCs with %s', (
  ...[, liveMib, promotedMib, state, titles]
) => {
  const { fix, judge, limits } = require('../../engine/diagnoses/semi-space-starvation')
  const known = {
    promotedPerMajorBytes: promotedMib * MIB,
    liveHeapBytes: liveMib * MIB,
    liveHeapShareRatio: 0.1,
    keptPerMajorBytes: 0,
    externalWaitingBytes: 0,
    semiSpaceMaxBytes: MIB,
    semiSpaceCapacityBytes: MIB,
    recentGcs: 10_000,
    gcWindowSeconds: 30,
    lifeCpuSeconds: 30,
    scavengesPerSecond: 414,
    scavengesPerCpuSecond: 414,
    scavengePauseRatio: 0.26,
    scavengeCpuRatio: 0.26,
    ordinaryMajorsPerSecond: 54,
    ordinaryMajorPauseRatio: 0.17,
    ordinaryMajorCpuRatio: 0.17,
    externalMajorsPerSecond: 0,
    gcPauseRatio: 0.43,
    cpuTimeRatio: 1,
    rssBytes: 145 * MIB,
    containerShareBytes: 400 * MIB,
    heapSizeLimitBytes: 259 * MIB
  }
  const signals = new Proxy(known, { get: (of, name) => of[name] ?? null })
  const judged = judge(/** @type {any} */ (signals), limits, hello())
  expect(judged.state).toBe(state)
  const fixes = fix(/** @type {any} */ (judged).finding, hello(), limits)
  expect(fixes.map(({ title }) => title)).toEqual(titles)
  const promised = fixes.flatMap(({ predicted }) => predicted.map(({ signal }) => signal))
  expect(promised.includes('gcPauseRatio')).toBe(state === 'confirmed')
})

it('marking steps that prepare majors for Buffers are no premature promotion', () => {
  const states = [
    { majors: 1, externalMajors: 1 },
    { majors: 1, externalMajors: 1.1 },
    { majors: 0, externalMajors: 0 }
  ].map(
    gcs =>
      watch({
        seconds: 25,
        at: t => ({
          scavenges: 20,
          scavengeSeconds: 0.15,
          majorSeconds: 0.05,
          values: unhindered(t),
          ...gcs
        })
      }).verdict('semi-space-starvation').state
  )
  expect(states).toEqual(['confirmed', 'ok', 'ok'])
})

it('sockets that pile up before an always busy loop may be unanswered requests', () => {
  const piles = (/** @type {number} */ busy, /** @type {number} */ throttled) =>
    watch({
      seconds: 90,
      at: t => ({
        values: {
          ...busyLoop(t, busy),
          resources: { TCPSocketWrap: 5 * t },
          cpuPeriods: 100 * t,
          cpuThrottledPeriods: 100 * throttled * t
        }
      })
    }).verdict('resource-leak').state
  expect([piles(0.97, 0.24), piles(0.99, 0), piles(0.5, 0.26)]).toEqual([
    'confirmed',
    'unknown',
    'suspected'
  ])
})

it.each([[90, 15], [98, 15], [100, 2]])(
  'a calm target whose RSS goes from 90 to %d MiB is evaluated within %d s',
  (rssMib, withinSeconds) => {
    const evaluatedAt = /** @type {Set<number>} */ (new Set())
    const rise = 801
    watch({
      seconds: 820,
      at: t => ({ rssMib: t < rise ? 90 : rssMib }),
      onTarget: target => evaluatedAt.add(findCase(target).evaluatedAtSeconds)
    })
    const before = Math.max(...[...evaluatedAt].filter(seconds => seconds < rise))
    const next = Math.min(...[...evaluatedAt].filter(seconds => seconds >= rise))
    expect(next).toBe(Math.max(rise, before + withinSeconds))
  }
)

it('a growing heap is evaluated at a twentieth of the time to its limit, up to every 15 s', () => {
  /** @type {{ seconds: number, left: number }[]} */
  const intervals = []
  let before = { at: NaN, left: Infinity }
  watch({
    seconds: 2400,
    at: t => ({
      liveMib: 300 + 0.5 * t,
      heapLimitMib: 1560,
      majors: 0.5,
      rssMib: 400 + 0.5 * t,
      values: { containerLimitBytes: 4096 * MIB }
    }),
    onTarget: target => {
      const { evaluatedAtSeconds: at, verdicts } = findCase(target)
      if (at === before.at) return
      const left = Math.min(...verdicts.filter(isFinding).map(({ secondsLeft }) =>
        secondsLeft ?? Infinity))
      if (before.left < Infinity) intervals.push({ seconds: at - before.at, left: before.left })
      before = { at, left }
    }
  })
  expect(intervals.length).toBeGreaterThan(20)
  expect(intervals.some(({ seconds, left }) => seconds === 15 && left > 300)).toBe(true)
  for (const { seconds, left } of intervals) {
    expect(seconds).toBeLessThanOrEqual(Math.max(2, Math.ceil(left / 20)))
  }
})

it.each([
  ['every two seconds in its first forty seconds, after five minutes every 15',
    40, [2, 7, 15], () => ({})],
  [
    'every two seconds before its finding has lasted for five minutes, later every 15',
    330,
    [2, 2, 15],
    () => ({ scavenges: 190, scavengeSeconds: 0.3 })
  ],
  [
    'every two seconds with a critical finding',
    600,
    [2, 2, 2],
    () => ({ liveMib: 245, heapLimitMib: 259, majors: 3, majorSeconds: 0.5 })
  ],
  ['no more often than the exporter allows', 10, [10, 10, 15], () => ({}), 10]
])('a target is evaluated %s', (_, changeSeconds, intervals, at, everySeconds = 0) => {
  const evaluatedAt = /** @type {Set<number>} */ (new Set())
  watch({
    seconds: 900,
    everySeconds,
    attachedAtSeconds: 5000,
    at,
    onTarget: target => evaluatedAt.add(findCase(target).evaluatedAtSeconds)
  })
  const times = [...evaluatedAt].filter(Number.isFinite).map(seconds => seconds - 5000)
  const between = times.slice(1).map((seconds, i) => [times[i], seconds - times[i]])
  const early = between.filter(([at]) => at < changeSeconds).map(([, seconds]) => seconds)
  // Between the bounds the interval is a twentieth of the time, rounded up to a frame.
  const middle = between.filter(([at]) => at > 100 && at < 120).map(([, seconds]) => seconds)
  const late = between.filter(([at]) => at > changeSeconds + 15).map(([, seconds]) => seconds)
  expect([early, middle, late].map(seconds => Math.max(...seconds))).toEqual(intervals)
})
