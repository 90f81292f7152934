'use strict'

const { Target } = require('../../exporter/series/target')
const { evaluate, primaryOf } = require('../../exporter/classify/evaluate')
const { hello, frame, gcRow, MIB } = require('../support/frames')

/**
 * A target fed one frame a second. `at(t)` gives the numbers that matter of second t; the rest is a small healthy app in a
 * 512 MiB container.
 */
function watch ({ seconds, at, helloChanges = {} }) {
  const target = new Target({ hello: hello(helloChanges), name: 'api', thread: 'main' })
  const states = new Set()
  const totals = { scavenges: 0, scavengeSeconds: 0, majors: 0, majorSeconds: 0 }
  for (let t = 1; t <= seconds; t++) {
    const now = {
      liveMib: 10, rssMib: 90, externalMib: 2, nativeMib: 12, spanMib: 14, semiMib: 1, heapLimitMib: 259,
      scavenges: 10, scavengeSeconds: 0.02, majors: 2, majorSeconds: 0.01, ...at(t)
    }
    for (const name of Object.keys(totals)) totals[name] += now[name]
    const heapMib = now.liveMib + 20
    target.take(frame({
      sequence: t,
      uptimeSeconds: t,
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
        ...(totals.majors > 0 && { liveHeapBytes: now.liveMib * MIB, liveHeapMajors: totals.majors }),
        spaces: { new_space: [0, 2 * now.semiMib * MIB, now.semiMib * MIB, 0] },
        gc: { 'minor/ordinary': gcRow(totals.scavenges, totals.scavengeSeconds), 'major/ordinary': gcRow(totals.majors, totals.majorSeconds) }
      }
    }), 0)
    evaluate(target)
    states.add(primaryOf(target.verdicts)?.diagnosis ?? null)
  }
  const verdict = id => target.verdicts.find(({ diagnosis }) => diagnosis === id)
  return { primary: primaryOf(target.verdicts), verdict, ever: states }
}

describe('js-heap-leak', () => {
  const leak = { seconds: 200, at: t => ({ liveMib: 10 + 0.8 * t }) }

  it('is confirmed when two fifths of the way to the limit were a straight line', () => {
    const { primary } = watch(leak)
    expect(primary).toMatchObject({ diagnosis: 'js-heap-leak', state: 'confirmed', severity: 'critical' })
    expect(primary.confirmedAfterSeconds).toBeLessThan(150)
  })
  it('names the limit that kills first', () => {
    expect(watch(leak).primary.summary).toContain('reaches the heap size limit in about')
    expect(watch({ seconds: 200, at: t => ({ liveMib: 10 + 0.8 * t, rssMib: 400 + t, heapLimitMib: 400 }) }).primary.summary)
      .toContain('reaches the container limit in about')
  })
  it('a leak a hundred times slower is confirmed by the same code, a hundred times later', () => {
    const { verdict } = watch({ seconds: 20_000, at: t => ({ liveMib: 10 + 0.008 * t }) })
    expect(verdict('js-heap-leak').confirmedAfterSeconds).toBeGreaterThan(8000)
  })
  it.each([
    ['a flat heap', { seconds: 120, at: () => ({}) }],
    ['a cache that fills in 40 s and stays', { seconds: 120, at: t => ({ liveMib: 27 + 2.1 * Math.min(t, 40) }) }],
    ['a cache that fills ever slower', { seconds: 300, at: t => ({ liveMib: 100 - 80 * Math.exp(-t / 60) }) }],
    ['a cache that fills for an hour to a fifth of the limit', { seconds: 4000, at: t => ({ liveMib: 10 + Math.min(t, 3600) * 50 / 3600 }) }],
    ['a saw of batches', { seconds: 300, at: t => ({ liveMib: 10 + 3 * (t % 15) }) }],
    ['waves of a TTL cache', { seconds: 300, at: t => ({ liveMib: 50 + 30 * Math.sin(t / 20) }) }],
    ['load that ramps up and stays', { seconds: 200, at: t => ({ liveMib: 10 + Math.min(t, 60) * 0.4 }) }]
  ])('%s is none, at no time', (_, app) => {
    expect([...watch(app).ever]).toEqual([null])
  })
  it('without a major GC nothing is known, however the heap grows', () => {
    const { verdict } = watch({ seconds: 100, at: t => ({ liveMib: 10 + t, majors: 0 }) })
    expect(verdict('js-heap-leak').state).toBe('unknown')
  })
  it('holds while the process dies of it: just under the limit the line must bend', () => {
    const { primary } = watch({ seconds: 400, at: t => ({ liveMib: Math.min(10 + t, 250) }) })
    expect(primary?.diagnosis).toBe('js-heap-leak')
  })
})

describe('semi-space-starvation', () => {
  const starving = { scavenges: 190, scavengeSeconds: 0.2, majors: 9, majorSeconds: 0.15 }

  it('is confirmed within seconds, with a power of two to set and what to expect of it', () => {
    const { primary } = watch({ seconds: 30, at: () => starving })
    expect(primary).toMatchObject({ diagnosis: 'semi-space-starvation', state: 'confirmed' })
    expect(primary.confirmedAfterSeconds).toBeLessThan(25)
    const [{ change, predicted }] = primary.fix
    expect(change.flag).toMatch(/^--max-semi-space-size=(8|16|32)$/)
    expect(change.env.NODE_OPTIONS).toBe(change.flag)
    expect(predicted.map(({ signal }) => signal)).toEqual(['scavengesPerSecond', 'gcPauseRatio', 'rssBytes'])
    for (const { signal, from, to } of predicted.slice(0, 2)) expect([signal, to < from / 2]).toEqual([signal, true])
    expect(primary.evidence[0].text).toContain('the container limit of 512 MB')
  })
  it('names only the command line where this Node refuses the flag in NODE_OPTIONS', () => {
    const { primary } = watch({ seconds: 30, at: () => starving, helloChanges: { allowedFlags: [] } })
    expect(Object.keys(primary.fix[0].change)).toEqual(['flag'])
  })
  it('keeps what NODE_OPTIONS holds already', () => {
    const nodeOptions = ['--enable-source-maps', '--require', '/x/node_modules/memwatch/index.js']
    const { primary } = watch({ seconds: 30, at: () => starving, helloChanges: { nodeOptions } })
    expect(primary.fix[0].change.env.NODE_OPTIONS).toMatch(/^--enable-source-maps --max-semi-space-size=\d+$/)
  })
  it.each([
    ['a healthy app with the same small semi-space', { at: () => ({}) }],
    ['a cache that fills: many survivors, few majors', { at: () => ({ scavenges: 13, scavengeSeconds: 0.11, majors: 0.5, majorSeconds: 0.02 }) }],
    ['a semi-space that is not small', { at: () => ({ ...starving, semiMib: 16, heapLimitMib: 304 }), helloChanges: { execArgv: ['--max-semi-space-size=16'] } }],
    ['a heap near its limit', { at: () => ({ ...starving, liveMib: 230 }) }]
  ])('%s is none', (_, app) => {
    expect([...watch({ seconds: 60, ...app }).ever]).toEqual([null])
  })
})

describe('allocator-fragmentation', () => {
  /** Batches of 60 MiB Buffers come and go; native memory stays high once it has risen. */
  const fragmenting = t => {
    const retainedMib = Math.min(200, 10 * t)
    const buffersMib = t % 10 < 5 ? 60 : 4
    return { externalMib: buffersMib, nativeMib: 12 + retainedMib - buffersMib / 2, spanMib: 20 + retainedMib, rssMib: 350 }
  }
  it('is confirmed once the rise has stopped and memory was seen to come and go', () => {
    const { primary } = watch({ seconds: 120, at: fragmenting })
    expect(primary).toMatchObject({ diagnosis: 'allocator-fragmentation', state: 'confirmed' })
    expect(primary.fix[0].change.env).toMatchObject({ LD_PRELOAD: 'libjemalloc.so.2' })
    expect(primary.fix[0].change.dockerfile).toContain('libjemalloc2')
    expect(primary.fix.map(({ title }) => title)).not.toContain('Without a new library: fewer arenas')
  })
  it('does not recommend what is set already', () => {
    const { primary } = watch({ seconds: 120, at: fragmenting, helloChanges: { mallocEnv: { MALLOC_MMAP_THRESHOLD_: '32768' } } })
    expect(primary.fix.map(({ title }) => title)).toEqual(['Use jemalloc'])
  })
  it.each([
    ['a constant native library', { at: () => ({ nativeMib: 190, spanMib: 200, rssMib: 290 }) }],
    ['a constant native library beside small Buffers that come and go', { at: t => ({ nativeMib: 190, spanMib: 200, rssMib: 290, externalMib: 2 + 4 * (t % 3) }) }],
    ['native memory that grows in a line: a leak', { at: t => ({ nativeMib: 12 + 2 * t, spanMib: 20 + 2 * t, rssMib: 90 + 2 * t, externalMib: 2 + 30 * (t % 2) }) }],
    ['native memory outside of malloc', { at: t => ({ nativeMib: 190, spanMib: 20, rssMib: 290, externalMib: 2 + 60 * (t % 2) }) }],
    ['the same app under jemalloc', { at: fragmenting, helloChanges: { allocator: 'jemalloc' } }]
  ])('%s is none', (_, app) => {
    expect([...watch({ seconds: 120, ...app }).ever]).toEqual([null])
  })
})
