'use strict'

// An event loop with a clock of the test: timers fire in order, and none during a block.
const loop = {
  nowMs: 0,
  /** Busy time until then. @type {(nowMs: number) => number} */
  activeMs: nowMs => nowMs,
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
    eventLoopUtilization: () => {
      const active = loop.activeMs(loop.nowMs)
      return { active, idle: loop.nowMs - active }
    },
    // An app with a timer every 10 ms: its turns show no long block.
    nodeTiming: { get uvMetricsInfo () { return { loopCount: loop.nowMs / 10, events: 0 } } },
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
  Object.assign(loop, { nowMs: 0, timers: [], activeMs: (/** @type {number} */ ms) => ms })
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

/**
 * 80 frames of an idle loop that is blocked for 0.25 s every four seconds, in step with the frames.
 * @param {number} fromMs start of the first block
 * @returns {{ meanSeconds: number, longest: number[] }} longest: delay of each frame
 */
function blockInStep (fromMs) {
  const [everyMs, blockMs] = [4000.37, 250]
  loop.activeMs = ms =>
    blockMs * Math.floor(ms / everyMs) + Math.min(blockMs, Math.max(0, ms % everyMs - fromMs))
  const freeFromMs = (/** @type {number} */ ms) => {
    const at = ms % everyMs - fromMs
    return at > 0 && at < blockMs ? ms - at + blockMs : ms
  }
  let last = { count: 0, sumSeconds: 0 }
  const longest = []
  for (let frame = 1; frame <= 80; frame++) {
    run(1000 * frame, freeFromMs)
    const { longestSeconds, ...sum } = row()
    last = sum
    longest.push(longestSeconds)
    delay.sent()
  }
  return { meanSeconds: last.sumSeconds / last.count, longest }
}

it.each([20, 300, 650])('measures blocks that begin %i ms after a frame', fromMs => {
  const { longest } = blockInStep(fromMs)
  // Blocks are within each fourth frame.
  const blocks = longest.filter((_, i) => i % 4 === 0)
  expect(blocks.filter(seconds => seconds < 0.03)).toEqual([])
})

it('has the mean delay of a random moment, averaged over all places of a block', () => {
  const ratios = []
  for (let fromMs = 20; fromMs < 700; fromMs += 20) {
    Object.assign(loop, { nowMs: 0, timers: [] })
    delay = new EventLoopDelay(1000, (_, work) => work)
    delay.start()
    // A moment within a block waits for half of it on average.
    ratios.push(blockInStep(fromMs).meanSeconds / (0.25 ** 2 / 2 / 4))
  }
  const mean = ratios.reduce((sum, ratio) => sum + ratio) / ratios.length
  expect(mean).toBeCloseTo(1, 1)
})

it('rests again a minute after the last block', () => {
  loop.activeMs = ms => Math.min(ms, 250)
  for (let frame = 1; frame <= 100; frame++) {
    run(1000 * frame)
    row()
    delay.sent()
  }
  expect(ticksBetween(50_000, 60_000)).toBeGreaterThan(40)
  expect(ticksBetween(90_000, 100_000)).toBe(0)
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
