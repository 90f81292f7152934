'use strict'

const { compatMetrics } = require('../../exporter/catalog/compat-metrics')
const { targetMetrics } = require('../../exporter/catalog/target-metrics')
const { findCase } = require('../../engine/verdicts/case')
const { evaluate } = require('../../engine/verdicts/evaluate')
const { summarize } = require('../../engine/verdicts/headline')
const { CommandError } = require('../../exporter/commands/commands')
const { ForcedReadings } = require('../../exporter/commands/forced-readings')
const { figures } = require('../../cli/comparison/figures')
const { Gathered } = require('../../cli/comparison/gathered')
const { Target } = require('../../engine/history/target')
const { signalsOf } = require('../../engine/signals')
const { defined } = require('../support/defined')
const { hello, frame, gcRow, MIB } = require('../support/frames')

describe('full GCs for a leak check', () => {
  /**
   * A target with verdicts set by the test, which records the requests to its agent.
   * @param {{ commands?: string[], answer?: () => Promise<any> }} [options]
   */
  function make ({ commands = ['capture', 'force_gc'], answer = async () => ({ ok: true }) } = {}) {
    const target = new Target({ hello: hello({ commands }), name: 'api', thread: 'main' })
    target.send = () => {}
    /** @type {number[]} */
    const askedAt = []
    const readings = new ForcedReadings(/** @type {any} */ ({
      carryOut: (of, command) => {
        expect([of, command]).toEqual([target, 'force_gc'])
        askedAt.push(target.frame?.uptimeSeconds ?? NaN)
        return answer()
      }
    }))
    let sequence = 0
    let majors = 0
    return {
      target,
      askedAt,
      /**
       * One frame each second; `reads` is true in seconds with a reading after a major GC,
       * `rssAnon` is resident memory.
       */
      async frames (
        from,
        to,
        reads = _ => false,
        rssAnon = /** @type {((t: number) => number) | undefined} */ (undefined),
        more = _ => ({})
      ) {
        for (let t = from; t <= to; t++) {
          if (reads(t)) majors++
          const values = {
            ...(majors > 0 && { liveHeapBytes: MIB, liveHeapMajors: majors }),
            ...(rssAnon && { rssAnonBytes: rssAnon(t), heapPhysicalBytes: 10 * MIB }),
            ...more(t)
          }
          target.take(frame({ sequence: ++sequence, uptimeSeconds: t, values }), 0)
          await readings.seen(target)
        }
      },
      /** @param {Record<string, any>} verdicts state by diagnosis, or fields of the verdict */
      judged (verdicts) {
        findCase(target).verdicts = /** @type {any} */ (
          Object.entries(verdicts).map(([diagnosis, state]) => ({ diagnosis, open: null, ...(typeof state === 'string' ? { state } : state) }))
        )
      }
    }
  }
  const WAITS = { state: 'unknown', open: { until: 'readings', waitSeconds: null } }
  const OF_SETTING = { state: 'unknown', open: { until: 'setting', waitSeconds: null } }

  it.each([
    ['nothing is judged yet', {}, []],
    ['js-heap-leak waits for readings', { 'js-heap-leak': WAITS }, [60, 65, 70]],
    ['js-heap-leak is suspected', { 'js-heap-leak': 'suspected' }, [60, 65, 70]],
    ['native-memory-leak is suspected', { 'js-heap-leak': 'ok', 'native-memory-leak': 'suspected' }, [60, 65, 70]],
    ['another check is open', { 'js-heap-leak': 'ok', 'oversized-heap': WAITS }, [60, 65, 70]],
    ['a leak is confirmed', { 'js-heap-leak': 'confirmed', 'context-leak': WAITS }, []],
    ['V8 collects a full heap all the time', {
      'js-heap-leak': WAITS, 'heap-limit-thrash': { state: 'suspected', severity: 'warning' }
    }, []],
    ['a full heap is quiet', {
      'js-heap-leak': WAITS, 'heap-limit-thrash': { state: 'suspected', severity: 'info' }
    }, [60, 65, 70]]
  ])('are requested a minute after the last reading: %s', async (_, verdicts, asked) => {
    const { askedAt, frames, judged } = make()
    judged(verdicts)
    await frames(60, 70)
    expect(askedAt).toEqual(asked)
  })
  it.each([
    ['while it is open, a twelfth', WAITS, 110, 120],
    ['while it is suspected, a twelfth', 'suspected', 110, 120],
    ['to stay ruled out, a sixth', 'ok', 100, 120],
    ['where only another setting decides, a sixth', OF_SETTING, 100, 120],
    ['five seconds at least', WAITS, 20, 25],
    ['ten minutes at most', WAITS, 20_000, 20_600]
  ])('have a distance that grows with the age: %s', async (_, verdict, readAt, dueAt) => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': verdict })
    await frames(0, 0)
    await frames(readAt - 3, dueAt, t => t === readAt)
    expect(askedAt.filter(at => at > readAt)).toEqual([dueAt])
  })
  it('have a distance that grows with the time since an attach', async () => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': 'suspected' })
    await frames(7200, 7225, t => askedAt.includes(t - 1))
    expect(askedAt).toEqual([7200, 7206, 7212, 7218, 7224])
  })
  it.each([
    ['7 of 60 MiB outside the heap', 60, 7, [60, 65, 70, 75, 80]],
    ['9 of 60 MiB', 60, 9, [60, 65]],
    ['9 of 100 MiB', 100, 9, [60, 65, 70, 75, 80]],
    ['11 of 100 MiB', 100, 11, [60, 65]]
  ])('stop if two of them free much memory: %s', async (_, outsideMib, freedMib, asked) => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': WAITS })
    // The app allocates the freed memory again before the next GC.
    const isFreed = t => askedAt.some(at => t > at && t <= at + 3)
    await frames(60, 80, undefined, t =>
      (10 + outsideMib - (isFreed(t) ? freedMib : 0)) * MIB)
    expect(askedAt).toEqual(asked)
  })
  it.each([
    ['an idle app with 49 MiB of garbage gets none', 0.04, 49, WAITS, 0, []],
    ['an idle app with 47 MiB of garbage gets some', 0.04, 47, WAITS, 0, [60, 65, 70]],
    ['a busy app with 49 MiB of garbage gets some', 0.06, 49, WAITS, 0, [60, 65, 70]],
    ['an idle app with a suspected leak gets some', 0.04, 49, 'suspected', 0, [60, 65, 70]],
    ['an idle app with a SharedArrayBuffer gets some', 0.04, 160, WAITS, 160, [60, 65, 70]]
  ])('%s', async (_, busy, slackMib, state, sharedMib, asked) => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': state })
    const work = t => ({
      eventLoopActiveSeconds: busy * t, externalBytes: 0, arrayBuffersBytes: sharedMib * MIB
    })
    await frames(1, 70, t => t === 50, () => (1 + 12 + slackMib) * MIB, work)
    expect(askedAt.filter(at => at >= 60)).toEqual(asked)
  })
  it.each([
    ['unknown', [75, 80]], ['ok', [75, 80]], ['confirmed', []]
  ])('show after 75 s at rest whether the heap is in use: %s', async (state, asked) => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': WAITS, 'idle-heap-not-returned': state })
    const work = () => ({ eventLoopActiveSeconds: 0, externalBytes: 0 })
    await frames(0, 80, t => t === 10, () => 90 * MIB, work)
    expect(askedAt.filter(at => at > 10)).toEqual(asked)
  })
  it('continue in an app that only just became idle', async () => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': WAITS })
    const work = t => ({ eventLoopActiveSeconds: Math.min(t, 57.5) })
    await frames(50, 70, t => t === 50, () => 90 * MIB, work)
    expect(askedAt).toEqual([55, 60])
  })
  it('continue if memory was freed long after one', async () => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': WAITS })
    await frames(60, 80, undefined, t => ((t - 60) % 5 === 4 ? 30 : 70) * MIB)
    expect(askedAt).toEqual([60, 65, 70, 75, 80])
  })
  it('stop if the app itself runs major GCs', async () => {
    const { askedAt, frames, judged } = make()
    judged({ 'js-heap-leak': WAITS })
    await frames(1, 120, t => t % 4 === 0)
    expect(askedAt).toEqual([])
  })
  it('are requested again two seconds after a refusal', async () => {
    const { askedAt, frames, judged } = make({
      answer: async () => { throw new CommandError('too_soon', 'not yet') }
    })
    judged({ 'js-heap-leak': WAITS })
    await frames(240, 245)
    expect(askedAt).toEqual([240, 242, 244])
  })
  it('pass on an error of memwatch', async () => {
    const { frames, judged } = make({ answer: async () => { throw new TypeError('a bug') } })
    judged({ 'js-heap-leak': WAITS })
    await expect(frames(240, 240)).rejects.toThrow('a bug')
  })
  it.each([
    ['does not offer them', { commands: ['capture'] }, target => target],
    ['is not connected', {}, target => { target.send = undefined }]
  ])('are not requested from an agent that %s', async (_, options, change) => {
    const { askedAt, frames, judged, target } = make(options)
    judged({ 'js-heap-leak': WAITS })
    change(target)
    await frames(60, 70)
    expect(askedAt).toEqual([])
  })
})

/**
 * A heap with a limit of gigabytes, whose only major GCs are those that memwatch runs.
 * @param {number} seconds
 * @param {(t: number) => number} liveMibAt
 * @param {{ isRead?: (t: number) => boolean, cause?: string }} [options]
 */
function watchForced (
  seconds,
  liveMibAt,
  { isRead = t => t % 5 === 0, cause = 'memwatch' } = {}
) {
  const target = new Target({ hello: hello(), name: 'api', thread: 'main' })
  /** @type {Set<string>} */
  const ever = new Set()
  let count = 0
  let liveMib = 0
  for (let t = 1; t <= seconds; t++) {
    if (isRead(t)) {
      count++
      liveMib = liveMibAt(t)
    }
    target.take(frame({
      sequence: t,
      uptimeSeconds: t,
      values: {
        rssBytes: (60 + liveMibAt(t)) * MIB,
        rssAnonBytes: (50 + liveMibAt(t)) * MIB,
        heapPhysicalBytes: (20 + liveMibAt(t)) * MIB,
        heapSizeLimitBytes: 4144 * MIB,
        externalBytes: 2 * MIB,
        arrayBuffersBytes: MIB,
        nativeContexts: 2,
        spaces: {
          new_space: [0, 32 * MIB, 16 * MIB, 0],
          old_space: [liveMibAt(t) * MIB, liveMibAt(t) * MIB, 0, 0]
        },
        gc: {
          'minor/ordinary': gcRow(t, 0.001 * t),
          ...(count > 0 && {
            [`major/${cause}`]: gcRow(count, 0.1 * count),
            [`weakcb/${cause}`]: gcRow(count, 0.01 * count),
            [`incremental/${cause}`]: gcRow(count, 0.01 * count)
          })
        },
        ...(count > 0 && {
          liveHeapBytes: liveMib * MIB, liveHeapMajors: count
        })
      }
    }), 0)
    evaluate(target, { onError: error => { throw error } })
    for (const { diagnosis, state } of findCase(target).verdicts) {
      if (state === 'confirmed') ever.add(diagnosis)
    }
  }
  const { verdicts } = findCase(target)
  return {
    target,
    ever,
    verdict: id => verdicts.find(({ diagnosis }) => diagnosis === id),
    headline: summarize(verdicts)
  }
}

describe('an app whose major GCs are all forced', () => {
  it('has its leak ruled out if the live heap is flat, and the text names memwatch’s GCs', () => {
    const { headline, verdict } = watchForced(60, () => 20)
    expect(headline.open).not.toContain('js-heap-leak')
    expect(verdict('js-heap-leak')).toMatchObject({
      state: 'ok',
      summary: expect.stringMatching(
        /^the live heap is flat: 0 MiB\/min over .* s; \d+ of the last readings follow full GCs that memwatch ran$/
      )
    })
  })
  it.each([
    ['rises and falls', t => 40 + t / 3 + 12 * Math.sin(t), 'does not grow in a straight line'],
    ['falls', t => 60 - t / 4, 'shrinks'],
    ['rises by little', t => 20 + t / 40, 'hardly grows']
  ])('is not called flat if it %s', (_, liveMibAt, words) => {
    const { verdict } = watchForced(60, liveMibAt)
    expect(verdict('js-heap-leak')).toMatchObject({
      state: 'ok',
      summary: expect.stringMatching(new RegExp(`^the live heap ${words}: `))
    })
  })
  it('is suspected within a minute if it leaks 1.5 MiB/s under 4 GiB, with evidence', () => {
    const { verdict } = watchForced(60, t => 20 + 1.5 * t)
    expect(verdict('js-heap-leak')).toMatchObject({
      state: 'suspected',
      evidence: expect.arrayContaining([
        expect.objectContaining({
          signal: 'liveHeapGrowthBytesPerSecond',
          text: expect.stringMatching(/10 readings; 9 of the last readings follow full GCs/)
        })
      ])
    })
  })
  it('is suspected within a minute after a flat start if it leaks under load', () => {
    const late = t => 20 + 1.2 * Math.max(0, t - 60)
    // Requests come after a twelfth of the age, and after a sixth once all checks are decided.
    const isRead = t => t <= 60 ? t % 6 === 0 : (t - 60) % 16 === 0
    const at = seconds => watchForced(seconds, late, { isRead }).verdict('js-heap-leak')
    expect(at(60)?.state).toBe('ok')
    expect(at(115)).toMatchObject({
      state: 'suspected', summary: expect.stringMatching(/^The live heap grows by 72 MiB\/min/)
    })
  })
  it.each([
    ['400 MiB in ten minutes', t => 30 + 400 * Math.min(1, t / 600)],
    ['ever slower', t => 30 + 300 * (1 - Math.exp(-t / 200))]
  ])('is not confirmed as leaking while a cache fills: %s', (_, liveMibAt) => {
    expect(watchForced(650, liveMibAt, { isRead: t => t % 25 === 0 }).ever).toEqual(new Set())
  })
})

describe('GCs on command are no GCs of the app', () => {
  const { target } = watchForced(60, () => 20)
  const window = /** @type {import('../../engine/history/window').Window} */ (target.window())
  const signals = signalsOf(window)

  it('in rates and shares', () => {
    const { scavengePauseRatio, gcPauseRatio, recentGcPauseRatio, recentGcs } = signals
    expect(scavengePauseRatio).toBeCloseTo(0.001)
    expect([gcPauseRatio, recentGcPauseRatio]).toEqual([scavengePauseRatio, expect.closeTo(0.001)])
    expect(signals.ordinaryMajorsPerSecond).toBe(0)
    expect(signals.ordinaryMajorPauseRatio).toBe(0)
    expect(signals.externalMajorsPerSecond).toBe(0)
    expect(recentGcs).toBe(signals.gcWindowSeconds)
    expect(signals.ordinaryMajorsSeen).toBe(0)
  })
  it('in the figures of `try` and `compare`', () => {
    const gathered = new Gathered()
    gathered.take(/** @type {any} */ (target))
    const run = /** @type {any} */ ({
      gathered, values: target.values, uptimeSeconds: 60, work: {}
    })
    expect(figures.gcEvents.read(run)).toBe(60)
    expect(figures.gcPauseSeconds.read(run)).toBeCloseTo(0.06)
    expect(figures.longestGcPauseSeconds.read(run)).toBeCloseTo(0.001)
  })
  it('in metrics with prom-client’s names; those of memwatch have a label for the cause', () => {
    const rowsOf = (metrics, name) =>
      metrics.find(metric => metric.name === name).read(target).map(({ labels }) => labels)
    expect(rowsOf(compatMetrics, 'nodejs_gc_duration_seconds')).toEqual([{ kind: 'minor' }])
    expect(rowsOf(targetMetrics, 'memwatch_gc_pause_seconds')).toContainEqual({
      kind: 'major', cause: 'memwatch'
    })
  })
  it('but they are readings of the live heap', () => {
    expect(signals.liveHeapReadings).toBeGreaterThanOrEqual(7)
    const { liveHeapForcedReadings, liveHeapReadings } = signals
    expect(liveHeapForcedReadings).toBeGreaterThanOrEqual(defined(liveHeapReadings) - 1)
    expect(signals.majorsSeen).toBeGreaterThan(0)
    const { target } = watchForced(60, () => 20, { cause: 'ordinary' })
    const own = signalsOf(/** @type {any} */ (target.window()))
    expect(own.liveHeapForcedReadings).toBe(0)
    expect(own.gcPauseRatio).toBeGreaterThan(0.02)
  })
})
