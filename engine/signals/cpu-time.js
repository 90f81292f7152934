'use strict'

const { RATE_SECONDS } = require('../history/window')

/**
 * The CPU time that a thread had at its disposal. A CPU quota, or others on the machine, keep a
 * thread waiting while it is ready to run: in that time it collects and computes nothing, and every
 * pause and every block takes longer by it. Rates are therefore told per CPU-second, a second in
 * which the thread was not kept waiting, and shares of wall time and of CPU time apart.
 *
 * A loop that is busy is on a CPU, waits for one, or sleeps inside a call. In a GC it sleeps until
 * V8's other threads are done, which wait for a CPU as it does; any other call sleeps as long
 * anywhere.
 *
 * @typedef {import('./index').Signal} Signal
 * @typedef {import('../history/window').Window} Window
 * @typedef {import('../history/tracks').TrackName} TrackName
 *
 * @typedef {object} CpuTime
 * @property {number} hadRatio of wall time, the share that the thread had: at work or idle, not
 *   waiting
 * @property {number} ranRatio of the time that its loop was busy, the share in which it was at work
 * @property {number} waitRatio of wall time, the share in which it was ready to run and had no CPU
 */

/** Readings of the run queue come 5 s apart, and further where the loop is late. */
const WAIT_SECONDS = [RATE_SECONDS, 2 * RATE_SECONDS]
const THROTTLED_SECONDS = 2 * RATE_SECONDS
/** Long enough to hold the start of a life. */
const LIFE_SECONDS = 600
/** Where nobody tells, the thread had all the time there is. */
const ALL = Object.freeze({ hadRatio: 1, ranRatio: 1, waitRatio: 0 })

/**
 * @param {Window} window
 * @returns {CpuTime | null} null where no wait for a CPU is known
 */
const cpuTime = window => window.once('cpu time', () => {
  for (const seconds of WAIT_SECONDS) {
    const found = cpuTimeOver(window, seconds)
    if (found) return found
  }
  return null
})

/**
 * @param {Window} window
 * @returns {CpuTime}
 */
const cpuTimeOrAll = window => cpuTime(window) ?? ALL

/**
 * The counters of the quota are read every ten frames, which come late where it holds.
 * @param {Window} window
 * @returns {number | null} share of its periods in which the quota was used up
 */
function throttledRatio (window) {
  const periods = window.increase('cpuPeriods', THROTTLED_SECONDS)?.increase
  const throttled = window.increase('cpuThrottledPeriods', THROTTLED_SECONDS)?.increase
  return periods && throttled !== undefined ? Math.min(1, throttled / periods) : null
}

/**
 * Counters are compared between the frames that read the run queue: in the others its last reading
 * stands again.
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
  // The CPU time of the process bounds that of its main thread where Node.js does not tell the
  // latter.
  const told = grown('threadCpuSeconds') ?? grown('processCpuSeconds') ?? busy - wait
  const cpu = Math.max(0, Math.min(told, busy))
  const asleep = Math.max(0, busy - cpu - wait)
  const asleepInGc = Math.min(asleep, grown('gcPauseSeconds') ?? 0)
  const granted = cpu + wait > 0 ? cpu / (cpu + wait) : 1
  const atWork = cpu + asleep - (1 - granted) * asleepInGc
  // A loop that is woken late counts as idle. It is no idle loop where the quota was used up.
  const wokenLate = Math.max(0, wait - (busy - cpu - asleep)) * (throttledRatio(window) ?? 0)
  const overSeconds = to - from
  return {
    ranRatio: atWork / busy,
    hadRatio: Math.max(cpu, overSeconds - (busy - atWork) - wokenLate) / overSeconds,
    waitRatio: Math.min(1, wait / overSeconds)
  }
}

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
 * Of the CPU time that the thread had, the share that pauses took: they last longer where it waits.
 * @param {Window} window
 * @param {TrackName} track of pauses
 * @param {number} [seconds]
 * @returns {number | null}
 */
function shareOfCpuTime (window, track, seconds) {
  const { hadRatio, ranRatio } = cpuTimeOrAll(window)
  const rate = window.rate(track, seconds)
  return rate && Math.min(1, rate * ranRatio / hadRatio)
}

/**
 * @param {TrackName} track
 * @param {string} what
 * @param {number} [seconds]
 * @returns {Signal}
 */
const perCpuSecondSignal = (track, what, seconds = RATE_SECONDS) => ({
  unit: 'perSecond',
  help: `${what} per CPU-second that the thread had, over the last ${seconds} s.`,
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
  help: `Share of the CPU time that the thread had, spent in ${what}, over the last ${seconds} s.`,
  compute: window => shareOfCpuTime(window, track, seconds)
})

/** Near its heap limit a process has seconds left: what counts is now. */
const NOW_SECONDS = 8

module.exports = {
  cpuTime,
  cpuTimeOrAll,
  throttledRatio,
  THROTTLED_SECONDS,
  NOW_SECONDS,
  cpuTimeSignals: {
    cpuTimeRatio: /** @type {Signal} */ ({
      unit: 'ratio',
      help: 'Share of wall time that the thread had: at work, or idle. The rest it was ready to ' +
        'run and had no CPU, throttled by a quota or because others ran.',
      compute: window => cpuTime(window)?.hadRatio ?? null
    }),
    lifeCpuSeconds: /** @type {Signal} */ ({
      unit: 'seconds',
      help: 'Age of the process in CPU-seconds that its thread had, at the rate of the last ten ' +
        'minutes.',
      compute: window => window.nowSeconds * (cpuTimeOver(window, LIFE_SECONDS) ?? ALL).hadRatio
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
      'ordinary majors and their marking steps'
    ),
    externalMajorCpuRatio: shareSignal(
      'externalMajorPauseSeconds',
      'major GCs for external memory'
    ),
    recentGcCpuRatio: shareSignal('gcPauseSeconds', 'GCs of all kinds', NOW_SECONDS),
    recentMajorCpuRatio: shareSignal('ordinaryMajorPauseSeconds', 'ordinary majors', NOW_SECONDS)
  }
}
