'use strict'

const { RATE_SECONDS } = require('../history/window')
const { THROTTLED_SECONDS, cpuTime, cpuTimeOrAll, throttledRatio } = require('./cpu-time')
const { FELT_SECONDS } = require('./felt-delay')

/** Window of active resources, which are listed every 5 frames, later if the loop is blocked. */
const PENDING_SECONDS = 2 * RATE_SECONDS
/** Time after a server closes in which it may still answer. */
const SERVER_SECONDS = 600

/**
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 */

/**
 * @param {Window} window
 * @param {number} seconds
 */
function utilization (window, seconds) {
  const active = window.increase('eventLoopActiveSeconds', seconds)
  const idle = window.increase('eventLoopIdleSeconds', seconds)
  const total = (active?.increase ?? 0) + (idle?.increase ?? 0)
  return active && total > 0 ? active.increase / total : null
}

/**
 * Mean wait of a request. A block of L seconds costs requests that arrive at random L²/2 seconds.
 * @param {Window} window
 */
function expectedWait (window) {
  const { times, values } = window.points('longestDelaySeconds', RATE_SECONDS)
  const overSeconds = times.length > 1 ? times[times.length - 1] - times[0] : 0
  // The block reported by the first frame may have ended before the window.
  return overSeconds > 0
    ? values.slice(1).reduce((sum, longest) => sum + longest ** 2 / 2, 0) / overSeconds
    : null
}

/**
 * @param {Window} window
 * @param {number} feltSeconds shorter delays do not count
 */
function blockedFrames (window, feltSeconds) {
  const { values } = window.points('longestDelaySeconds', RATE_SECONDS)
  return values.length > 0
    ? values.filter(value => value > feltSeconds).length / values.length
    : null
}

/**
 * Lowest count of pending resources in the readings of a minute.
 * @param {Window} window
 * @param {'timers' | 'connections'} track
 */
function fewest (window, track) {
  const { values } = window.points(track, PENDING_SECONDS)
  return values.length > 0 ? Math.min(...values) : null
}

/**
 * @param {Window} window
 * @param {'threadCpuSeconds' | 'eventLoopActiveSeconds'} track counter of the work
 * @returns {number | null} ratio
 */
function loadGrowth (window, track) {
  const span = Math.min(600, 0.8 * window.nowSeconds)
  const work = (/** @type {number} */ seconds) => window.increase(track, seconds)
  const [all, late, lateTwo] = [work(span), work(span / 3), work((span * 2) / 3)]
  if (!all || !late || !lateTwo || all.overSeconds <= lateTwo.overSeconds) return null
  const early = (all.increase - lateTwo.increase) / (all.overSeconds - lateTwo.overSeconds)
  return early > 0 ? late.increase / late.overSeconds / early : null
}

/** @param {Window} window */
function longestDelay (window) {
  const { values } = window.points('longestDelaySeconds', RATE_SECONDS)
  return values.length > 0 ? Math.max(...values) : null
}

module.exports = {
  eventLoopUtilizationRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of wall time in which the event loop was not waiting, over the last ' +
      `${RATE_SECONDS} s.`,
    compute: window => utilization(window, RATE_SECONDS)
  }),
  lastMinuteUtilizationRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    expected: 'after the first minute',
    help: 'Share of wall time in which the event loop was not waiting, over the last minute.',
    compute: window => (window.nowSeconds < 60 ? null : utilization(window, 60))
  }),
  loadGrowthRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'CPU time of the thread, or event loop activity where that is unknown, of the last ' +
      'third of the last ten minutes (less in a younger life, without its start) over that of ' +
        'the first third: 1 is a steady load.',
    // On a shared machine the same work keeps a loop active for longer.
    compute: window =>
      loadGrowth(window, 'threadCpuSeconds') ?? loadGrowth(window, 'eventLoopActiveSeconds')
  }),
  expectedWaitSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `What waits at a random moment of the last ${RATE_SECONDS} s until the loop is free, ` +
      'on average: a block of L seconds takes L²/2 from each second; of each frame the longest ' +
        'counts.',
    compute: expectedWait
  }),
  blockedFramesRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of the seconds of the last ${RATE_SECONDS} s in which something was delayed by ` +
      `more than ${FELT_SECONDS * 1000} ms.`,
    compute: window => blockedFrames(window, FELT_SECONDS)
  }),
  longestDelaySeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `The longest delay of the last ${RATE_SECONDS} s.`,
    compute: longestDelay
  }),
  blockedFramesCpuRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of those seconds in which the delay exceeds ${FELT_SECONDS * 1000} ms without ` +
      'the time that the thread waited for a CPU.',
    compute: window => blockedFrames(window, FELT_SECONDS / cpuTimeOrAll(window).ranRatio)
  }),
  longestDelayCpuSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'That delay without the time that the thread waited for a CPU.',
    compute: window => {
      const longest = longestDelay(window)
      return longest && longest * cpuTimeOrAll(window).ranRatio
    }
  }),
  expectedWaitCpuSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'The wait for the loop at a random moment, were the thread never kept waiting for a ' +
      'CPU: blocks are shorter then, and come as often in each CPU-second.',
    compute: window => {
      const { hadRatio, ranRatio } = cpuTimeOrAll(window)
      const mean = expectedWait(window)
      return mean && (mean * ranRatio ** 2) / hadRatio
    }
  }),
  loopWindowSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'The time that these were seen over: less than the window at the start of a life.',
    compute: window => window.increase('eventLoopActiveSeconds')?.overSeconds ?? null
  }),
  serversListening: /** @type {Signal} */ ({
    unit: 'count',
    help: `The most TCP servers that listened at once within ${SERVER_SECONDS / 60} minutes.`,
    compute: window => {
      const { values } = window.points('servers', SERVER_SECONDS)
      return values.length > 0 ? Math.max(...values) : null
    }
  }),
  connectionsAccepted: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Connections that servers of the isolate accepted, TCP and pipes: somebody asks it. ' +
      'Null before Node.js 18.7.',
    compute: window => window.values.connectionsAccepted ?? null
  }),
  fewestTimers: /** @type {Signal} */ ({
    unit: 'count',
    help: 'The fewest active timers of the last minute: above 0, something always falls due.',
    compute: window => fewest(window, 'timers')
  }),
  fewestConnections: /** @type {Signal} */ ({
    unit: 'count',
    help: 'The fewest sockets of the last minute, whoever opened them.',
    compute: window => fewest(window, 'connections')
  }),
  threadCpuRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'CPU time of the thread (of the process where Node does not tell) over wall time, ' +
      `last ${RATE_SECONDS} s.`,
    compute: window => window.rate('threadCpuSeconds') ?? window.rate('processCpuSeconds')
  }),
  runQueueWaitRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Time the thread was ready to run and another had its CPU, over wall time, last ' +
      `${RATE_SECONDS} s: throttling, and neighbours on the machine.`,
    compute: window => cpuTime(window)?.waitRatio ?? null
  }),
  cpuThrottledRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of the periods of its CPU quota in which the cgroup used it up and was held ' +
      `back, over the last ${THROTTLED_SECONDS} s.`,
    compute: throttledRatio
  })
}
