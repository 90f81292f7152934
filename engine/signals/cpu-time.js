'use strict'

const { RATE_SECONDS } = require('../history/window')

/**
 * CPU time available to a thread. A CPU quota or other processes on the machine can keep a ready
 * thread waiting. A waiting thread makes no progress, so every GC pause and every block of the
 * event loop takes longer. Rates are therefore given per CPU-second, a second in which the thread
 * did not wait. Each share of time exists as a share of wall time and as a share of CPU time.
 *
 * A busy loop runs on a CPU, waits for one, or sleeps inside a call. During a GC it sleeps until
 * V8's helper threads are done, and these also wait for a CPU. The duration of other sleeping calls
 * does not depend on the machine.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 *
 * @typedef {object} CpuTime
 * @property {number} hadRatio share of wall time in which the thread worked or was idle, and did
 *   not wait for a CPU
 * @property {number} ranRatio share of the loop's busy time in which the thread worked
 * @property {number} waitRatio share of wall time in which the thread was ready to run and had no
 *   CPU
 * @property {number} [fromSeconds] uptime of the first and last reading used
 * @property {number} [toSeconds]
 */

/** Windows of run queue readings, which come 5 s apart, and later if the loop is late. */
const WAIT_SECONDS = [RATE_SECONDS, 2 * RATE_SECONDS, 10 * RATE_SECONDS]
const THROTTLED_SECONDS = 2 * RATE_SECONDS
/**
 * From these shares of throttled periods and of waiting on, the quota limits all work. A start
 * takes longer with a quota, so the process must have this age in CPU-seconds.
 */
const QUOTA_SPENT_RATIO = 0.9
const QUOTA_WAIT_RATIO = 0.5
const STARTED_CPU_SECONDS = 5
/** Window that covers the start phase of a process. */
const LIFE_SECONDS = 600
/** Result without data: the thread never waited. */
const ALL = Object.freeze({ hadRatio: 1, ranRatio: 1, waitRatio: 0 })

/**
 * @param {Window} window
 * @returns {CpuTime | null} null if waiting for a CPU is unknown
 */
const cpuTime = window => window.once('cpu time', () => {
  for (const seconds of WAIT_SECONDS) {
    const found = cpuTimeOver(window, seconds)
    if (found) return found
  }
  return null
})

/**
 * Part of the last seconds for which the wait for a CPU is known. The readings of the wait are
 * older than the readings of GCs. After an attach they cover little of the window, and the thread
 * may have waited longer in the rest of it.
 * @param {Window} window
 * @param {number} seconds
 * @returns {number} seconds; all of them if the agent cannot read the run queue, or the kernel does
 *   not count this wait
 */
function knownSeconds (window, seconds) {
  if (!window.values.runQueueWaitSeconds) return seconds
  const { fromSeconds = 0, toSeconds = 0 } = cpuTime(window) ?? {}
  return Math.max(0, toSeconds - Math.max(fromSeconds, window.nowSeconds - seconds))
}

/**
 * @param {Window} window
 * @returns {CpuTime}
 */
const cpuTimeOrAll = window => cpuTime(window) ?? ALL

/**
 * Share of throttled periods. Agents read the quota's counters every ten frames, and frames are
 * late while the kernel throttles the process.
 * @param {Window} window
 * @param {number} [seconds]
 * @returns {number | null} share of the periods in which the quota was used up
 */
function throttledRatio (window, seconds = THROTTLED_SECONDS) {
  const periods = window.increase('cpuPeriods', seconds)?.increase
  const throttled = window.increase('cpuThrottledPeriods', seconds)?.increase
  return periods && throttled !== undefined ? Math.min(1, throttled / periods) : null
}

/**
 * Compares counters between frames that read the run queue. Other frames repeat the last reading.
 * @param {Window} window
 * @param {number} seconds
 * @returns {CpuTime | null}
 */
function cpuTimeOver (window, seconds) {
  const { times, values } = window.points('runQueueWaitSeconds', seconds)
  const read = times.filter((_, i) => i > 0 && values[i] !== values[i - 1])
  if (read.length < 2) return null
  const [from, to] = [read[0], read[read.length - 1]]
  /** @param {TrackName} track */
  const grown = track => {
    const points = window.points(track, seconds)
    const first = points.times.indexOf(from)
    const last = points.times.indexOf(to)
    return first < 0 || last < 0 ? undefined : points.values[last] - points.values[first]
  }
  const busy = grown('eventLoopActiveSeconds')
  const wait = grown('runQueueWaitSeconds')
  if (wait === undefined || busy === undefined || !(busy > 0)) return null
  // Without the thread's CPU time, that of the process is an upper bound of it.
  const told = grown('threadCpuSeconds') ?? grown('threadRunSeconds') ??
    grown('processCpuSeconds') ?? busy - wait
  const cpu = Math.max(0, Math.min(told, busy))
  const asleep = Math.max(0, busy - cpu - wait)
  const asleepInGc = Math.min(asleep, grown('gcPauseSeconds') ?? 0)
  const granted = cpu + wait > 0 ? cpu / (cpu + wait) : 1
  const atWork = cpu + asleep - (1 - granted) * asleepInGc
  // A loop that wakes late counts as idle. It was not idle if the quota was used up.
  const wokenLate = Math.max(0, wait - (busy - cpu - asleep)) * (throttledRatio(window) ?? 0)
  const overSeconds = to - from
  return {
    fromSeconds: from,
    toSeconds: to,
    ranRatio: atWork / busy,
    hadRatio: Math.max(cpu, overSeconds - (busy - atWork) - wokenLate) / overSeconds,
    waitRatio: Math.min(1, wait / overSeconds)
  }
}

/**
 * Age of the process without waits for a CPU, at the rate of the last ten minutes.
 * @param {Window} window
 * @returns {number} seconds
 */
const lifeCpuSeconds = window => window.once('life', () =>
  window.nowSeconds * (cpuTimeOver(window, LIFE_SECONDS) ?? ALL).hadRatio)

/**
 * @param {Window} window
 * @param {TrackName} track
 * @param {number} [seconds]
 * @returns {number | null}
 */
function perCpuSecond (window, track, seconds) {
  const rate = window.rate(track, seconds)
  return rate && rate / cpuTimeOrAll(window).hadRatio
}

/**
 * Share of the available CPU time spent in pauses, without the time in which the thread waited for
 * a CPU. If the quota is used up in nearly every period, and the thread waits for most of the time,
 * it is at least the share of wall time: the kernel stops all threads of the process together, and
 * V8's helper threads use up the quota while the main thread sleeps. An app with a tenth of a core
 * did 3.4 times the work with larger semi-spaces: its pauses took 36 % of wall time, and 8.5 % by
 * the thread's waits.
 * @param {Window} window
 * @param {TrackName} track counter of pauses
 * @param {number} [seconds]
 * @returns {number | null}
 */
function shareOfCpuTime (window, track, seconds) {
  const { hadRatio, ranRatio, waitRatio } = cpuTimeOrAll(window)
  const rate = window.rate(track, seconds)
  const isQuotaSpent = waitRatio >= QUOTA_WAIT_RATIO &&
    (throttledRatio(window) ?? 0) >= QUOTA_SPENT_RATIO &&
    lifeCpuSeconds(window) >= STARTED_CPU_SECONDS
  const perWallTime = Math.max(ranRatio / hadRatio, isQuotaSpent ? 1 : 0)
  return rate && Math.min(1, rate * perWallTime)
}

/**
 * @param {TrackName} track
 * @param {string} what
 * @param {number} [seconds]
 * @returns {Signal}
 */
const perCpuSecondSignal = (track, what, seconds = RATE_SECONDS) => ({
  unit: 'perSecond',
  help: `${what} per CPU-second of the last ${seconds} s.`,
  compute: window => perCpuSecond(window, track, seconds)
})

/**
 * @param {TrackName} track
 * @param {string} what
 * @param {number} [seconds]
 * @returns {Signal}
 */
const shareSignal = (track, what, seconds = RATE_SECONDS) => ({
  unit: 'ratio',
  help: `Share of the thread's available CPU time in ${what} over the last ${seconds} s.`,
  compute: window => shareOfCpuTime(window, track, seconds)
})

/**
 * CPU time of the thread per second. Before Node.js 22 only the kernel tells it, every five frames.
 * @param {Window} window
 * @returns {number | null}
 */
const threadCpuRate = window =>
  window.rate('threadCpuSeconds') ?? window.rate('threadRunSeconds')

/** Window used near the heap limit, where a process has seconds left. */
const NOW_SECONDS = 8
/**
 * Live heap that V8 marks and sweeps per CPU-second, mostly on other threads: 637 to 807 MiB with
 * 110 MiB alive, on Node 18 to 26. The number is at the upper end, so the cost is rather too low.
 */
const MARKED_BYTES_PER_CPU_SECOND = 800 * 2 ** 20

/**
 * @param {Window} window
 * @param {'ordinaryMajors' | 'externalMajors'} track
 * @returns {number | null} estimated cores that V8 uses for these major GCs; null in the first
 *   seconds, as a heap that is being filled is marked often
 */
function markingCores (window, track) {
  const majors = window.rate(track)
  const { liveHeapBytes: live } = window.values
  if (majors === null || live === undefined || window.nowSeconds < RATE_SECONDS) return null
  return majors * live / MARKED_BYTES_PER_CPU_SECOND
}

/**
 * @param {Window} window
 * @param {number} marking cores of the threads that mark
 * @param {number} [pauses] cores of GC pauses
 * @returns {number | null} share of the used CPU time: of the process, or of a worker's thread and
 *   the threads that mark for it
 */
function shareOfUsed (window, marking, pauses = 0) {
  const isWorker = window.hello.threadId > 0
  const used = isWorker ? threadCpuRate(window) : window.rate('processCpuSeconds')
  if (!used) return null
  return Math.min(1, (marking + pauses) / (isWorker ? used + marking : used))
}

/**
 * @param {Window} window
 * @param {Parameters<typeof markingCores>[1]} track
 * @returns {number | null} estimated share of the used CPU time in these major GCs
 */
function markingRatio (window, track) {
  const marking = markingCores(window, track)
  return marking === null ? null : shareOfUsed(window, marking)
}

/**
 * Estimated share of the used CPU time in the GCs that a larger new space avoids. The pauses of
 * major GCs are a part of the marking and count twice, but the work of the threads that scavenge
 * does not count.
 * @param {Window} window
 * @returns {number | null}
 */
function ordinaryGcRatio (window) {
  const marking = markingCores(window, 'ordinaryMajors')
  const scavenging = window.rate('scavengePauseSeconds')
  const pausing = window.rate('ordinaryMajorPauseSeconds')
  if (marking === null || scavenging === null || pausing === null) return null
  return shareOfUsed(window, marking, (scavenging + pausing) * cpuTimeOrAll(window).ranRatio)
}

/**
 * @param {Parameters<typeof markingRatio>[1]} track
 * @param {string} what
 * @returns {Signal}
 */
const markingSignal = (track, what) => ({
  unit: 'ratio',
  help: `Estimated share of CPU time in ${what}, pauses and the work of other threads, over the ` +
    `last ${RATE_SECONDS} s: of the process, or of a worker and the threads that mark for it.`,
  compute: window => markingRatio(window, track)
})

module.exports = {
  cpuTime,
  cpuTimeOrAll,
  knownSeconds,
  threadCpuRate,
  throttledRatio,
  THROTTLED_SECONDS,
  NOW_SECONDS,
  cpuTimeSignals: {
    cpuTimeRatio: /** @type {Signal} */ ({
      unit: 'ratio',
      help: 'Share of wall time in which the thread did not wait for a CPU. A thread waits ' +
        'because of a CPU quota or of other processes.',
      compute: window => cpuTime(window)?.hadRatio ?? null
    }),
    lifeCpuSeconds: /** @type {Signal} */ ({
      unit: 'seconds',
      help: 'Age of the process in CPU-seconds, at the rate of the last ten minutes.',
      compute: lifeCpuSeconds
    }),
    scavengesPerCpuSecond: perCpuSecondSignal('scavenges', 'Scavenges'),
    externalMajorsPerCpuSecond: perCpuSecondSignal(
      'externalMajors',
      'Major GCs for external memory'
    ),
    recentMajorsPerCpuSecond: perCpuSecondSignal(
      'ordinaryMajors',
      'Ordinary major GCs',
      NOW_SECONDS
    ),
    scavengeCpuRatio: shareSignal('scavengePauseSeconds', 'scavenges'),
    ordinaryMajorCpuRatio: shareSignal(
      'ordinaryMajorPauseSeconds',
      'ordinary major GCs and their marking steps'
    ),
    externalMajorCpuRatio: shareSignal(
      'externalMajorPauseSeconds',
      'major GCs for external memory'
    ),
    ordinaryMarkingRatio: markingSignal('ordinaryMajors', 'ordinary major GCs'),
    externalMarkingRatio: markingSignal('externalMajors', 'major GCs for external memory'),
    ordinaryGcOfCpuRatio: /** @type {Signal} */ ({
      unit: 'ratio',
      help: 'Estimated share of CPU time in scavenges and ordinary major GCs, pauses and the ' +
        `work of other threads, over the last ${RATE_SECONDS} s: of the process, or of a worker ` +
        'and the threads that mark for it.',
      compute: ordinaryGcRatio
    }),
    recentGcCpuRatio: shareSignal('gcPauseSeconds', 'GCs of all kinds', NOW_SECONDS),
    recentMajorCpuRatio: shareSignal('ordinaryMajorPauseSeconds', 'ordinary major GCs', NOW_SECONDS)
  }
}
