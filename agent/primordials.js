'use strict'

const fs = require('node:fs')
const {
  clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout
} = require('node:timers')
const { performance, PerformanceObserver } = require('node:perf_hooks')

/**
 * Functions of Node.js and of the language, captured at preload. An app, a test framework or a
 * polyfill may replace them later: fake timers would list and fire the agent's timers, and a
 * `setTimeout` that returns a number has no `unref`. The agent uses only these and never
 * `globalThis`; a lint rule checks it. v8-functions.js holds those of `node:v8`, which takes 2 to 3
 * ms to load: too long for a preload.
 */
const { hrtime, memoryUsage } = process
const cpuUsage = process.cpuUsage.bind(process)
/** Node.js 22+. @type {(() => NodeJS.CpuUsage) | undefined} */
const threadCpuUsage = /** @type {any} */ (process).threadCpuUsage?.bind(process)
const { nodeTiming } = performance

/**
 * A busy machine may interrupt the thread between the readings of both clocks: then the agent reads
 * them again.
 */
const SAME_MOMENT_MS = 0.02
const MOST_TRIES = 5

/** @returns {number} */
const hrtimeMs = () => {
  const time = hrtime()
  return time[0] * 1e3 + time[1] / 1e6
}

/**
 * Start of the isolate on the clock of `process.hrtime`. Up to Node.js 18 `performance.now` reads
 * `process.hrtime`, and fake timers replace `performance.now` as well.
 */
function findOriginMs () {
  let originMs = NaN
  let closestMs = Infinity
  for (let tried = 0; tried < MOST_TRIES && closestMs > SAME_MOMENT_MS; tried++) {
    const beforeMs = hrtimeMs()
    const nowMs = performance.now()
    const apartMs = hrtimeMs() - beforeMs
    if (apartMs < closestMs) {
      closestMs = apartMs
      originMs = beforeMs + apartMs / 2 - nowMs
    }
  }
  return originMs
}
const originMs = findOriginMs()

const { apply } = Reflect
/**
 * Method of the first timer, which begin.js sets at preload.
 * @type {(() => NodeJS.Timeout) | undefined}
 */
let unref
/** @typedef {(work: () => void, ms: number) => NodeJS.Timeout} SetTimer */
/** @param {NodeJS.Timeout} timer */
const unrefd = timer => {
  unref ??= timer.unref
  return apply(unref, timer, [])
}

const own = Object.freeze({
  /** Unref'd, as no timer may keep a finished script alive. @type {SetTimer} */
  setTimeout: (work, ms) => unrefd(setTimeout(work, ms)),
  clearTimeout,
  /** Unref'd. @type {SetTimer} */
  setInterval: (work, ms) => unrefd(setInterval(work, ms)),
  clearInterval,
  setImmediate,
  clearImmediate,
  nextTick: process.nextTick,

  /** Milliseconds since the isolate started, as `performance.now`. */
  nowMs: () => hrtimeMs() - originMs,
  timeOriginUnixMs: performance.timeOrigin,
  nowUnixMs: Date.now,
  /** @type {typeof performance.eventLoopUtilization} */
  eventLoopUtilization: performance.eventLoopUtilization.bind(performance),
  /** @type {{ uvMetricsInfo?: { loopCount: number, events: number } }} */
  nodeTiming,
  PerformanceObserver,

  Promise,
  parseJson: JSON.parse,
  stringifyJson: JSON.stringify,

  /** @type {typeof process.memoryUsage} */
  memoryUsage,
  readRssBytes: memoryUsage.rss,
  cpuUsage,
  threadCpuUsage,
  /** CPU time so far, of this thread if known. */
  cpuMs: () => {
    const { user, system } = (threadCpuUsage ?? cpuUsage)()
    return (user + system) / 1e3
  },
  /**
   * Measures the CPU time of all threads, as the kernel counts that of one thread only in ticks.
   * @returns {() => number} CPU seconds since this call, at most the wall time
   */
  measureCpu: () => {
    const ms = hrtimeMs()
    const before = cpuUsage()
    return () => {
      const { user, system } = cpuUsage(before)
      return Math.min((user + system) / 1e6, (hrtimeMs() - ms) / 1e3)
    }
  },
  /** @type {(() => string[]) | undefined} */
  listActiveResources: /** @type {any} */ (process).getActiveResourcesInfo?.bind(process),

  openSync: fs.openSync,
  closeSync: fs.closeSync,
  readSync: fs.readSync,
  writeSync: fs.writeSync,
  existsSync: fs.existsSync,
  statSync: fs.statSync,
  fstatSync: fs.fstatSync,
  lstatSync: fs.lstatSync,
  readdirSync: fs.readdirSync,
  readlinkSync: fs.readlinkSync,
  readFileSync: fs.readFileSync
})

/**
 * The first copy counts: an app may empty `require.cache`, then fake timers, while the agent loads.
 * @type {typeof own}
 */
module.exports = /** @type {any} */ (global)[Symbol.for('memwatch.agent')]?.primordials ?? own
