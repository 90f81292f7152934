'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const {
  GcWatchdog, SUSPECT_FRAMES, BREAK_FRAMES, LONG_BREAK_FRAMES, LONGEST_BREAK_FRAMES
} = require('../../agent/collect/gc-watchdog')
const { NODES, versionOf, startCollector, spawnWatched } = require('../support/agent-collector')

const MIB = 2 ** 20
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-watchdog-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * One simulated second of a process.
 * @typedef {object} Second
 * @property {number} [majors]
 * @property {number} [scavenges]
 * @property {number} cpuSeconds
 * @property {number} [heapUsedBytes]
 * @property {number} [externalBytes] external memory at the end of the second
 */

/**
 * Passes the frames of a simulated process to the watchdog, one per second.
 * @param {(connected: boolean, second: number) => Second} live
 * @param {number} frames
 */
function watch (live, frames) {
  const sum = { majors: 0, scavenges: 0, cpuSeconds: 0 }
  /** Number of frames in each break. @type {number[]} */
  const breaks = []
  let connected = true
  let clock = 0
  const watchdog = new GcWatchdog({
    connect: () => { connected = true },
    disconnect: () => { connected = false; breaks.push(0) },
    cpuMs: () => sum.cpuSeconds * 1e3,
    nowMs: () => clock * 1000
  })
  for (clock = 1; clock <= frames; clock++) {
    const {
      majors = 0,
      scavenges = 0,
      cpuSeconds,
      heapUsedBytes = 20 * MIB,
      externalBytes = MIB
    } = live(connected, clock)
    if (connected) {
      sum.majors += majors
      sum.scavenges += scavenges
    } else {
      breaks[breaks.length - 1]++
    }
    sum.cpuSeconds += cpuSeconds
    watchdog.check({ majors: sum.majors, scavenges: sum.scavenges, heapUsedBytes, externalBytes })
    expect(watchdog.onBreak).toBe(!connected)
  }
  return { breaks, connected, unobservedSeconds: watchdog.unobservedSeconds }
}

describe('the watchdog of the GC observer', () => {
  const chase = { majors: 200, cpuSeconds: 0.6 }
  const still = { cpuSeconds: 0.01 }
  const loop = connected => connected ? chase : still

  it('interrupts a loop caused by the observer, three times briefly, then ever longer', () => {
    const { breaks, unobservedSeconds } = watch(loop, 6000)
    const longer = [1, 2, 4, 8].map(times => times * LONG_BREAK_FRAMES)
    expect(breaks.slice(0, 9)).toEqual([
      BREAK_FRAMES,
      BREAK_FRAMES,
      BREAK_FRAMES,
      ...longer,
      LONGEST_BREAK_FRAMES,
      LONGEST_BREAK_FRAMES
    ])
    expect(unobservedSeconds).toBe(breaks.reduce((sum, seconds) => sum + seconds, 0))
  })
  it('begins with short breaks again if there was no loop for long', () => {
    // Five loops, then more than ten quiet minutes, then another loop.
    const { breaks } = watch(
      (connected, second) => (second < 150 || second > 1000 ? loop(connected) : still),
      1030
    )
    expect(breaks.slice(0, 4)).toEqual([
      BREAK_FRAMES,
      BREAK_FRAMES,
      BREAK_FRAMES,
      LONG_BREAK_FRAMES
    ])
    expect(breaks[5]).toBe(BREAK_FRAMES)
  })
  it('makes no further break within ten minutes if the first one had no effect', () => {
    expect(watch(() => chase, 600)).toMatchObject({ breaks: [BREAK_FRAMES], connected: true })
    expect(watch(() => chase, 700).breaks).toEqual([BREAK_FRAMES, BREAK_FRAMES])
  })
  it.each([
    ['an idle app', () => still],
    [
      'a light load under a small new space, a major GC for each scavenge or two',
      (_, second) => ({ majors: 25, scavenges: 36, cpuSeconds: second % 4 ? 0.08 : 0.19 })
    ],
    [
      'Buffers that come and go',
      (_, second) => ({
        majors: 25,
        scavenges: 5,
        cpuSeconds: 0.2,
        externalBytes: MIB * (1 + (second % 2) * 2)
      })
    ],
    [
      'large arrays that come and go',
      (_, second) => ({
        majors: 25,
        scavenges: 5,
        cpuSeconds: 0.2,
        heapUsedBytes: MIB * (20 + (second % 3))
      })
    ],
    [
      'a heap that grows slowly',
      (_, second) => ({
        majors: 25,
        scavenges: 5,
        cpuSeconds: 0.2,
        heapUsedBytes: MIB * (20 + second / 9)
      })
    ],
    ['few majors', () => ({ majors: 9, cpuSeconds: 0.5 })],
    [
      'a heap of unknown size',
      () => ({ majors: 200, cpuSeconds: 0.5, heapUsedBytes: NaN })
    ]
  ])('never troubles %s', (_, live) => {
    expect(watch(live, 2000).breaks).toEqual([])
  })
  it('waits for exactly the documented number of frames', () => {
    // The first suspect frame is the reference for the others.
    expect(watch(loop, SUSPECT_FRAMES).breaks).toEqual([])
    expect(watch(loop, SUSPECT_FRAMES + 1).breaks).toEqual([0])
    expect(watch(loop, SUSPECT_FRAMES + BREAK_FRAMES).connected).toBe(false)
    expect(watch(loop, SUSPECT_FRAMES + 1 + BREAK_FRAMES).connected).toBe(true)
  })
  it('considers a break helpful below half of the CPU time, but not at half', () => {
    const half = share => connected => connected ? chase : { cpuSeconds: share * chase.cpuSeconds }
    expect(watch(half(0.49), 100).breaks.length).toBeGreaterThan(2)
    expect(watch(half(0.51), 100).breaks.length).toBe(1)
  })
})

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('the agent interrupts and reports a GC loop caused by its observer', async () => {
    // Reproduces the reported loop: each delivered entry causes the next major GC. V8 marks only
    // GCs by gc() as forced, so GCs that an observer causes are not.
    const preload = path.join(folder, 'loop.js')
    fs.writeFileSync(
      preload,
      `
      const hooks = require('perf_hooks'), { PerformanceObserver } = hooks
      let observed = false
      const unasked = entries => entries.map(({ duration, detail: { kind } }) => ({ duration, detail: { kind, flags: 0 } }))
      // The loop must turn once more for the delivery.
      const collect = () => setTimeout(() => { if (observed) { gc(); setImmediate(() => setImmediate(() => {})) } }, 1)
      hooks.PerformanceObserver = class extends PerformanceObserver {
        constructor (callback) { super(list => { callback({ getEntries: () => unasked(list.getEntries()) }); collect() }) }
        takeRecords () { return unasked(super.takeRecords()) }
        observe (...args) { observed = true; super.observe(...args); collect() }
        disconnect () { observed = false; super.disconnect() }
      }`
    )
    const collector = await startCollector()
    const { child, ended } = spawnWatched({
      node,
      before: ['--expose-gc', '-r', preload],
      args: ['-e', 'setInterval(() => {}, 1000)'],
      socket: collector.address,
      env: { MEMWATCH_INTERVAL_SECONDS: '0.1', MEMWATCH_GC_HOOKS: 'off' },
      timeoutMs: 40_000
    })
    const stopped = ({ values }) => values.gcObserverStopped === 1
    const count = ({ values }) => Object.values(values.gc).reduce((sum, [n]) => sum + n, 0)
    try {
      const frames = await collector.until(([first]) => {
        const begun = first?.frames.findIndex(stopped)
        const long = first?.frames.filter(stopped).length > 3 * BREAK_FRAMES + 2
        return begun > 0 && long && first.frames
      }, 30_000)
      const begun = frames.findIndex(stopped)
      expect(
        frames.slice(0, begun).every(({ values }) => values.gcUnobservedSeconds === undefined)
      ).toBe(true)
      expect(count(frames[begun])).toBeGreaterThan(10)
      // Without an observer the counts stand still, and the agent adds up the time without one.
      expect(count(frames[begun + 1])).toBe(count(frames[begun]))
      expect(frames[begun + 1].values.gcUnobservedSeconds).toBeGreaterThan(0.15)
      const resumed = frames.findIndex(
        ({ values }, i) => i > begun && values.gcObserverStopped === 0
      )
      expect(resumed - begun).toBe(BREAK_FRAMES)
      const again = frames.findIndex((frame, i) => i > resumed && stopped(frame))
      expect(count(frames[again])).toBeGreaterThan(count(frames[resumed - 1]) + 10)
      expect(frames.at(-1).values.agentErrors).toBe(0)
    } finally {
      child.kill()
      await ended
      await collector.stop()
    }
  }, 60_000)
})
