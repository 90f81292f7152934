'use strict'

const { RATE_SECONDS } = require('../history/window')
const {
  THROTTLED_SECONDS, cpuTime, cpuTimeOrAll, threadCpuRate, throttledRatio
} = require('./cpu-time')
const { FELT_SECONDS } = require('./felt-delay')
const { loadGrowth } = require('./load-growth')

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

/** Every app loads and compiles code at first, which blocks the loop for seconds. */
const LOAD_SECONDS = 10
/** Least length of a window of delays. */
const LEAST_SECONDS = 5

/**
 * Window of delays: the last seconds, without the first ones of the process.
 * @param {Window} window
 * @returns {number} 0 for a process that is too young
 */
function delaySeconds ({ nowSeconds }) {
  const seconds = nowSeconds - LOAD_SECONDS
  return seconds >= LEAST_SECONDS ? Math.min(RATE_SECONDS, seconds) : 0
}

/**
 * Least number of readings per second of a frame whose mean counts. The agent reads the delay 20
 * times a second while the loop is busy, and hardly while it is idle.
 */
const READINGS_PER_SECOND = 10

/** Shorter blocks delay nobody, so their frequency is not read. */
const LEAST_BLOCK_SECONDS = 0.01

/**
 * Waits of requests that arrive at random, one per second, by frame. A block of L seconds adds
 * L²/2 seconds. Frequent blocks add more than the longest block of a frame, so in a busy frame the
 * mean of the agent's readings counts.
 * @param {Window} window
 * @returns {{ times: readonly number[], longest: readonly number[], waits: number[],
 *   overSeconds: number }} longest: seconds; waits: sums in seconds. The first is 0, because the
 *   block that the first frame reports may have ended before the window
 */
const waitsOf = window => window.once('waits', () => {
  const { times, values: longest } = window.points('longestDelaySeconds', delaySeconds(window))
  const last = times.length - 1
  const waits = longest.map((seconds, i) => i === 0 ? 0 : seconds ** 2 / 2)
  if (longest.some(seconds => seconds >= LEAST_BLOCK_SECONDS)) {
    const readings = sumAt(window, ['delayReadings'], times)
    const delays = sumAt(window, ['delaySeconds'], times)
    for (let i = 1; i <= last; i++) {
      const seconds = times[i] - times[i - 1]
      const count = readings[i] - readings[i - 1]
      if (count < READINGS_PER_SECOND * seconds) continue
      waits[i] = Math.max(waits[i], (delays[i] - delays[i - 1]) / count * seconds)
    }
  }
  return { times, longest, waits, overSeconds: last > 0 ? times[last] - times[0] : 0 }
})

/**
 * Mean wait of a request for the loop.
 * @param {Window} window
 * @returns {number | null} seconds
 */
function expectedWait (window) {
  const { waits, overSeconds } = waitsOf(window)
  return overSeconds > 0 ? waits.reduce((sum, wait) => sum + wait, 0) / overSeconds : null
}

/**
 * Mean wait of a request for the loop, without the part caused by major GCs. The mean pause of the
 * nearby major GCs, which Node.js may report a frame later, is subtracted from each delay.
 * @param {Window} window
 */
function expectedWaitOutsideMajors (window) {
  const { times, longest, waits, overSeconds } = waitsOf(window)
  if (overSeconds <= 0) return null
  const last = times.length - 1
  const pauses = sumAt(window, ['ordinaryMajorPauseSeconds', 'externalMajorPauseSeconds'], times)
  const majors = sumAt(window, ['ordinaryMajors', 'externalMajors'], times)
  let sum = 0
  for (let i = 1; i <= last; i++) {
    if (longest[i] === 0) continue
    const next = Math.min(i + 1, last)
    const count = Math.max(1, majors[next] - majors[i - 1])
    const outside = Math.max(0, longest[i] - (pauses[next] - pauses[i - 1]) / count)
    sum += waits[i] * (outside / longest[i]) ** 2
  }
  return sum / overSeconds
}

/**
 * Sum of counters at given moments; 0 for unknown values.
 * @param {Window} window
 * @param {import('../history/tracks').TrackName[]} tracks
 * @param {ArrayLike<number>} moments uptimes, ascending
 * @returns {number[]}
 */
function sumAt (window, tracks, moments) {
  const sums = Array.from(moments, () => 0)
  for (const track of tracks) {
    const { times, values } = window.points(track, delaySeconds(window))
    let at = 0
    for (let i = 0; i < sums.length; i++) {
      while (times[at + 1] <= moments[i]) at++
      sums[i] += values[at] ?? 0
    }
  }
  return sums
}

/**
 * @param {Window} window
 * @param {number} feltSeconds shorter delays do not count
 */
function blockedFrames (window, feltSeconds) {
  const { values } = window.points('longestDelaySeconds', delaySeconds(window))
  return values.length > 0
    ? values.filter(value => value > feltSeconds).length / values.length
    : null
}

/**
 * Lowest count of pending resources within a minute.
 * @param {Window} window
 * @param {'timers' | 'connections'} track
 */
function fewest (window, track) {
  const { values } = window.points(track, PENDING_SECONDS)
  return values.length > 0 ? Math.min(...values) : null
}

/** @param {Window} window */
function longestDelay (window) {
  const { values } = window.points('longestDelaySeconds', delaySeconds(window))
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
    help: 'Load in the last third of the last ten minutes, divided by the load in the first ' +
      'third; 1 is a steady load. The load is CPU time of the thread, or event loop activity ' +
      'without waits for a CPU, or CPU time of the process, if that is unknown; or allocation if ' +
      'that grew more: the rate of scavenges, in the first minutes with the size of the ' +
      'semi-spaces, or the rises of the used heap.',
    compute: loadGrowth
  }),
  expectedWaitSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `Expected wait for the event loop at a random moment of the last ${RATE_SECONDS} s. A ` +
      'block of L seconds adds L²/2.',
    compute: expectedWait
  }),
  expectedWaitOutsideMajorsSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'expectedWaitSeconds without the pauses of major GCs: each delay less the mean pause ' +
      'of the major GCs around it, without requested ones.',
    compute: expectedWaitOutsideMajors
  }),
  blockedFramesRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of the seconds of the last ${RATE_SECONDS} s with a delay above ` +
      `${FELT_SECONDS * 1000} ms.`,
    compute: window => blockedFrames(window, FELT_SECONDS)
  }),
  longestDelaySeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: `The longest delay of the last ${RATE_SECONDS} s.`,
    compute: longestDelay
  }),
  blockedFramesCpuRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: 'Share of these seconds in which the delay, less the time that the thread waited for a ' +
      `CPU, exceeds ${FELT_SECONDS * 1000} ms.`,
    compute: window => blockedFrames(window, FELT_SECONDS / cpuTimeOrAll(window).ranRatio)
  }),
  longestDelayCpuSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'longestDelaySeconds less the time that the thread waited for a CPU.',
    compute: window => {
      const longest = longestDelay(window)
      return longest && longest * cpuTimeOrAll(window).ranRatio
    }
  }),
  expectedWaitCpuSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Expected wait for the event loop at a random moment, if the thread never waited for a ' +
      'CPU: blocks are then shorter, and as frequent per CPU-second.',
    compute: window => {
      const { hadRatio, ranRatio } = cpuTimeOrAll(window)
      const mean = expectedWait(window)
      return mean && (mean * ranRatio ** 2) / hadRatio
    }
  }),
  loopWindowSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Length of the window of these delays, which is shorter for a young process. The first ' +
      `${LOAD_SECONDS} s do not count; before an age of ${LOAD_SECONDS + LEAST_SECONDS} s there ` +
      'is none.',
    compute: window =>
      window.increase('eventLoopActiveSeconds', delaySeconds(window))?.overSeconds ?? null
  }),
  serversListening: /** @type {Signal} */ ({
    unit: 'count',
    help: `Maximum of TCP servers listening at once in the last ${SERVER_SECONDS / 60} minutes.`,
    compute: window => {
      const { values } = window.points('servers', SERVER_SECONDS)
      return values.length > 0 ? Math.max(...values) : null
    }
  }),
  connectionsAccepted: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Connections that servers of the isolate accepted, TCP and pipes. Null before Node.js ' +
      '18.7.',
    compute: window => window.values.connectionsAccepted ?? null
  }),
  fewestTimers: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Minimum of active timers in the last minute; above 0 there is always a pending timer.',
    compute: window => fewest(window, 'timers')
  }),
  fewestConnections: /** @type {Signal} */ ({
    unit: 'count',
    help: 'Minimum of open sockets in the last minute.',
    compute: window => fewest(window, 'connections')
  }),
  threadCpuRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `CPU time of the thread divided by wall time, over the last ${RATE_SECONDS} s. If ` +
      'nothing tells it, the CPU time of the process is used.',
    compute: window => threadCpuRate(window) ?? window.rate('processCpuSeconds')
  }),
  runQueueWaitRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of wall time of the last ${RATE_SECONDS} s in which the thread was ready to run ` +
      'but had no CPU, because of throttling or other processes on the machine.',
    compute: window => cpuTime(window)?.waitRatio ?? null
  }),
  cpuPerEventSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Mean CPU time of the thread, without GC, for an event of sockets, files or the thread ' +
      `pool, over the last ${RATE_SECONDS} s. Work of timers is added to it.`,
    compute: window => {
      const events = window.increase('eventLoopEvents')?.increase
      const work = window.increase('workSeconds')?.increase
      return events && work !== undefined ? work / events : null
    }
  }),
  cpuQuotaCores: /** @type {Signal} */ ({
    unit: 'count',
    help: 'CPU quota of the container, in cores.',
    compute: window => window.values.cpuQuotaCores ?? null
  }),
  settledThrottledRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of the CPU quota periods of the last ${THROTTLED_SECONDS} s, without the start ` +
      'of the process, in which the cgroup was throttled.',
    compute: window => throttledRatio(window, window.settledSeconds(THROTTLED_SECONDS))
  }),
  settledThrottledSeconds: /** @type {Signal} */ ({
    unit: 'seconds',
    help: 'Length of the window of the signal settledThrottledRatio.',
    compute: window =>
      window.increase('cpuPeriods', window.settledSeconds(THROTTLED_SECONDS))?.overSeconds ?? null
  }),
  cpuThrottledRatio: /** @type {Signal} */ ({
    unit: 'ratio',
    help: `Share of the CPU quota periods of the last ${THROTTLED_SECONDS} s in which the cgroup ` +
      'was throttled.',
    compute: throttledRatio
  })
}
