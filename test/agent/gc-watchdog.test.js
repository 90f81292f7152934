'use strict'

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { gcWatchdog, SUSPECT_FRAMES, TRIAL_FRAMES } = require('../../agent/collect/gc-watchdog')
const { NODES, versionOf, startCollector, spawnWatched } = require('../support/agent-collector')

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'memwatch-watchdog-'))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/**
 * Frames a second apart, of a process that spends so much.
 * @param {(connected: boolean) => { gcs: number, pauseSeconds: number, activeSeconds: number, cpuSeconds: number }} second
 * @param {number} frames
 */
function live (second, frames) {
  const state = { connected: true, trials: 0 }
  const sum = { gcs: 0, pauseSeconds: 0, activeSeconds: 0, cpuSeconds: 0 }
  let clock = 0
  const watchdog = gcWatchdog({
    connect: () => { state.connected = true },
    disconnect: () => { state.connected = false; state.trials++ },
    utilization: () => ({ active: sum.activeSeconds * 1000, idle: 0 }),
    cpuUsage: () => ({ user: sum.cpuSeconds * 1e6, system: 0 }),
    nowMs: () => clock * 1000
  })
  for (; clock < frames; clock++) {
    const { gcs, pauseSeconds, activeSeconds, cpuSeconds } = second(state.connected)
    sum.gcs += state.connected ? gcs : 0
    sum.pauseSeconds += state.connected ? pauseSeconds : 0
    sum.activeSeconds += activeSeconds
    sum.cpuSeconds += cpuSeconds
    watchdog.look(sum.gcs, sum.pauseSeconds)
  }
  return { ...state, stopped: watchdog.stopped }
}

describe('the watchdog of the GC observer', () => {
  const busy = { gcs: 200, pauseSeconds: 0.5, activeSeconds: 0.6, cpuSeconds: 0.6 }
  const still = { gcs: 0, pauseSeconds: 0, activeSeconds: 0.001, cpuSeconds: 0.01 }

  it('gives the observer up where the GCs end with it', () => {
    expect(live(connected => connected ? busy : still, 30)).toEqual({ connected: false, trials: 1, stopped: true })
  })
  it('takes it up again where the app collects by itself, and does not try again soon', () => {
    expect(live(() => busy, 500)).toEqual({ connected: true, trials: 1, stopped: false })
  })
  it.each([
    ['an idle app', still],
    ['an app that works while it collects', { gcs: 200, pauseSeconds: 0.3, activeSeconds: 0.9, cpuSeconds: 0.9 }],
    ['an app with few GCs', { gcs: 9, pauseSeconds: 0.4, activeSeconds: 0.45, cpuSeconds: 0.5 }]
  ])('never troubles %s', (_, second) => {
    expect(live(() => second, 200).trials).toBe(0)
  })
  it('waits for as many frames as it says', () => {
    const frames = SUSPECT_FRAMES
    expect(live(connected => connected ? busy : still, frames).trials).toBe(0)
    expect(live(connected => connected ? busy : still, frames + 1).trials).toBe(1)
    expect(live(connected => connected ? busy : still, frames + 1 + TRIAL_FRAMES).stopped).toBe(true)
  })
})

describe.each(NODES.map(node => [versionOf(node), node]))('on Node %s', (_, node) => {
  it('a loop of GCs that observing them keeps going is ended, and said', async () => {
    // The defect itself: whatever is delivered causes the next GC.
    const preload = path.join(folder, 'loop.js')
    fs.writeFileSync(preload, `
      const hooks = require('perf_hooks'), { PerformanceObserver } = hooks
      // The loop must turn once more for the delivery.
      const collect = () => setTimeout(() => { gc({ type: 'minor' }); setImmediate(() => setImmediate(() => {})) }, 1)
      hooks.PerformanceObserver = class extends PerformanceObserver {
        constructor (callback) { super((...args) => { callback(...args); collect() }) }
        observe (...args) { super.observe(...args); collect() }
      }`)
    const collector = await startCollector()
    const { child, ended } = spawnWatched({
      node, before: ['--expose-gc', '-r', preload], args: ['-e', 'setInterval(() => {}, 1000)'], socket: collector.address, env: { MEMWATCH_INTERVAL_SECONDS: '0.1' }, timeoutMs: 40_000
    })
    try {
      await collector.until(([first]) => first?.frames.some(({ values }) => values.gcObserverStopped === 1), 30_000)
      const [{ frames }] = collector.connections
      const count = ({ values }) => Object.values(values.gc).reduce((sum, [n]) => sum + n, 0)
      expect(count(frames.at(-1))).toBeGreaterThan(20)
    } finally {
      child.kill()
      await ended
      await collector.stop()
    }
  }, 60_000)
})
