'use strict'

// A busy event loop with a clock of the test: timers fire in order, and none during a block.
const loop = {
  nowMs: 0,
  /** @type {{ atMs: number, work: () => void }[]} */
  timers: []
}
jest.mock('../../agent/primordials', () => {
  /** @type {(work: () => void, ms: number) => unknown} */
  const setTimeout = (work, ms) => {
    const timer = { atMs: loop.nowMs + ms, work }
    const refresh = () => loop.timers.push(Object.assign(timer, { atMs: loop.nowMs + ms }))
    loop.timers.push(timer)
    return Object.assign(timer, { refresh })
  }
  return {
    ...jest.requireActual('../../agent/primordials'),
    nowMs: () => loop.nowMs,
    eventLoopUtilization: () => ({ active: loop.nowMs, idle: 0 }),
    setTimeout,
    clearTimeout: (/** @type {any} */ timer) => {
      loop.timers = loop.timers.filter(other => other !== timer)
    }
  }
})
const { EventLoopDelay } = require('../../agent/collect/delay')

/** @type {InstanceType<typeof EventLoopDelay>} */
let delay
/** @type {number[]} */
let ticksMs

/**
 * Fires all timers up to this time.
 * @param {number} untilMs
 * @param {(nowMs: number) => number} [freeFromMs] end of the block at this time, or the time itself
 */
function run (untilMs, freeFromMs = nowMs => nowMs) {
  for (;;) {
    loop.timers.sort((a, b) => a.atMs - b.atMs)
    const next = loop.timers[0]
    if (!next || next.atMs > untilMs) break
    loop.timers.shift()
    loop.nowMs = Math.max(loop.nowMs, freeFromMs(next.atMs))
    ticksMs.push(loop.nowMs)
    next.work()
  }
  loop.nowMs = Math.max(loop.nowMs, untilMs)
}

const row = () => {
  const values = /** @type {any} */ ({})
  delay.read(values, { count: 0, nowSeconds: loop.nowMs / 1000 })
  const [count, sumSeconds, longestSeconds] = values.eventLoopDelay
  return { count, sumSeconds, longestSeconds }
}
const ticksBetween = (/** @type {number} */ fromMs, /** @type {number} */ toMs) =>
  ticksMs.filter(ms => ms > fromMs && ms <= toMs).length

beforeEach(() => {
  Object.assign(loop, { nowMs: 0, timers: [] })
  ticksMs = []
  delay = new EventLoopDelay(1000, (_, work) => work)
  delay.start()
})
afterEach(() => delay.stop())

it('ticks half as often in a busy loop without late ticks, and counts as much', () => {
  run(10_000)
  const young = row().count
  run(20_000)
  expect([ticksBetween(0, 10_000), ticksBetween(10_000, 20_000)]).toEqual([181, 91])
  expect([young, row().count - young]).toEqual([181, 181])
})

it('ticks closely for ten seconds after a late tick', () => {
  run(20_000)
  run(20_500, ms => (ms > 20_050 && ms < 20_250 ? 20_250 : ms))
  expect(row().longestSeconds).toBeGreaterThan(0.05)
  const lateMs = Number(ticksMs.find(ms => ms > 20_050))
  run(46_000)
  expect(ticksBetween(lateMs, lateMs + 10_000)).toBe(181)
  expect(ticksBetween(35_000, 46_000)).toBe(100)
})

it.each([50, 100, 200, 500])('is not in step with work of 20 ms every %d ms', periodMs => {
  const freeFromMs = (/** @type {number} */ ms) => ms + Math.max(0, 20 - ms % periodMs)
  run(120_000, freeFromMs)
  const { count, sumSeconds } = row()
  const ofRandomMoment = 20 / 2 * 20 / periodMs / 1000
  expect(sumSeconds / count / ofRandomMoment).toBeGreaterThan(1 / 3)
  expect(sumSeconds / count / ofRandomMoment).toBeLessThan(3)
})

it.each([
  [40, 100],
  [90, 100],
  [120, 20_000]
])('has the mean delay of a random moment: blocks of %d ms, %d ms apart', (blockMs, apartMs) => {
  const [fromMs, toMs] = [20_000, 20_000 + 2000 * (blockMs + apartMs)]
  /** @type {number[]} */
  const blocks = []
  let seed = 1
  for (let atMs = 0; atMs < toMs;) {
    seed = (seed * 48_271) % 2_147_483_647
    atMs += blockMs - apartMs * Math.log(seed / 2_147_483_647)
    blocks.push(atMs)
  }
  let at = 0
  const freeFromMs = (/** @type {number} */ ms) => {
    while (blocks[at] + blockMs < ms) at++
    return blocks[at] <= ms ? blocks[at] + blockMs : ms
  }
  run(fromMs, freeFromMs)
  const before = row()
  run(toMs, freeFromMs)
  const now = row()
  const mean = (now.sumSeconds - before.sumSeconds) / (now.count - before.count)
  // A random moment waits for half of a block, if it is in one.
  const ofRandomMoment = blockMs / 2 * blockMs / (blockMs + apartMs) / 1000
  expect(mean / ofRandomMoment).toBeGreaterThan(0.85)
  expect(mean / ofRandomMoment).toBeLessThan(1.15)
})
