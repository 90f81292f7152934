'use strict'

const { LATE_INTERVALS, SILENT_INTERVALS, countIntervals } = require('@memwatch/engine/history/silence')
const { formatBytes, formatRatio, formatSeconds } = require('@memwatch/engine/text/format')

/**
 * From this share of a limit on, memory may have jumped to the limit within the last second, unseen
 * between two frames.
 */
const NEAR_CONTAINER_RATIO = 0.9
const NEAR_HEAP_RATIO = 0.85
/** Share of time in GCs that indicates a full heap. */
const THRASH_RATIO = 0.3
/**
 * Share of the limit by which the last frame must exceed the earlier maximum to count as a rise
 * that has just begun. The final rate of such a rise is unknown.
 */
const RECORD_RATIO = 0.1
/**
 * Time within which a growing live heap would have filled the heap. V8 may end the process before
 * the heap reaches its limit, when major GCs free little and promotion needs room.
 */
const FULL_SOON_SECONDS = 10
/**
 * Lower thresholds for an aborted process, because few other causes than a full heap abort Node.js.
 */
const ABORTED_RECORD_RATIO = 0.03
const ABORTED_NEAR_HEAP_RATIO = 0.7
/**
 * Silence after which a liveness probe restarts a process: by default three periods of ten seconds,
 * often less.
 */
const HUNG_SECONDS = 10
/** Exit codes of a process that was asked to end: 0, and 128 + SIGINT or SIGTERM. */
const CLEAN_CODES = [0, 130, 143]
/** Signals that only the process itself or a debugger causes. */
const CRASH_SIGNALS = [
  'SIGSEGV',
  'SIGABRT',
  'SIGBUS',
  'SIGILL',
  'SIGFPE',
  'SIGTRAP',
  'SIGSYS',
  'SIGSTKFLT',
  'SIGXCPU',
  'SIGXFSZ'
]
/** Node's own exit codes. https://nodejs.org/api/process.html#exit-codes */
const NODE_EXIT_CODES = /** @type {Record<number, string>} */ ({
  1: 'an uncaught exception, process.exit(1) or process.exitCode = 1',
  5: 'a fatal error in V8',
  7: 'an uncaughtException handler that threw',
  13: 'a top-level await that never settled'
})

/**
 * Facts about the end of a process.
 * @typedef {object} Evidence
 * @property {import('./last-moments').LastMoments} moments
 * @property {number} [byeCode] exit code in its goodbye
 * @property {import('../process/witness').Exit} [exit] exit status, as known to its parent or the
 *   kernel
 * @property {boolean} [isGone] true if the kernel shows that the process is gone
 * @property {number} [oomKills] OOM kills in its cgroup since its last frames, counted by the
 *   kernel; undefined if not visible
 * @property {number} [saidOomKills] OOM kills reported by other processes of its cgroup
 * @property {number} [silentGrowthBytes] growth of RSS observed after its last frame
 * @property {'restarted' | 'unknown'} [unwatched] set if the process ended while the exporter was
 *   away
 * @property {boolean} [unreachable] true if its connection timed out
 *
 * @typedef {object} Explanation
 * @property {import('./reasons').ReasonName} reason
 * @property {'certain' | 'likely' | 'possible'} sure
 * @property {string} text one sentence
 */

/**
 * Explains the end of a process. Facts from the kernel come first, and only these are certain. The
 * goodbye of the process comes second, and conclusions from its last frames come last.
 * @param {Evidence} evidence
 * @returns {Explanation}
 */
function explainDeath (evidence) {
  const { exit, isGone, oomKills, saidOomKills, unwatched } = evidence
  const code = exit ? exit.code ?? undefined : evidence.byeCode
  if (code !== undefined) return byExitCode(code, exit || isGone ? 'certain' : 'likely')
  const signal = exit?.signal ?? undefined
  if ((oomKills || saidOomKills) && (signal === undefined || signal === 'SIGKILL')) {
    return say(
      'oom_kill',
      oomKills ? 'certain' : 'likely',
      `The kernel killed it for memory: ${memoryText(evidence.moments)}.`
    )
  }
  if (signal !== undefined && signal !== 'SIGKILL') return bySignal(signal, evidence)
  if (unwatched === 'restarted') {
    return say(
      'restarted',
      isGone ? 'certain' : 'likely',
      'When the exporter was back, another process had the same name.'
    )
  }
  if (unwatched) {
    return say('unknown', isGone ? 'certain' : 'likely', 'When the exporter was back, the ' +
      'process had ended.')
  }
  return byLastMoments(signal, evidence)
}

/**
 * @param {number} code
 * @param {Explanation['sure']} sure
 * @returns {Explanation}
 */
function byExitCode (code, sure) {
  const meaning = NODE_EXIT_CODES[code]
  return say(
    CLEAN_CODES.includes(code) ? 'clean' : 'error',
    sure,
    `It exited with code ${code}${meaning ? `: ${meaning}` : ''}.`
  )
}

/**
 * @param {string} signal
 * @param {Evidence} evidence
 * @returns {Explanation}
 */
function bySignal (signal, { moments, silentGrowthBytes }) {
  const memory = memoryText(moments)
  if (!CRASH_SIGNALS.includes(signal)) {
    return say('killed', 'certain', `${signal} ended it; ${memory}.`)
  }
  const heap =
    signal === 'SIGABRT' &&
    nearHeapLimit(moments, {
      silentGrowthBytes,
      nearRatio: ABORTED_NEAR_HEAP_RATIO,
      recordRatio: ABORTED_RECORD_RATIO,
      silentIntervals: LATE_INTERVALS
    })
  return heap
    ? say('heap_oom', heap, `V8 ran out of heap and aborted: ${memory}.`)
    : say('crash', 'certain', `It crashed with ${signal}; ${memory}.`)
}

/**
 * Reason for SIGKILL, or for an unknown signal, from the last moments.
 * @param {'SIGKILL' | undefined} signal
 * @param {Evidence} evidence
 * @returns {Explanation}
 */
function byLastMoments (signal, { moments, oomKills, silentGrowthBytes, unreachable }) {
  const memory = memoryText(moments)
  const heap =
    signal === undefined
      ? nearHeapLimit(moments, {
        silentGrowthBytes,
        nearRatio: NEAR_HEAP_RATIO,
        recordRatio: RECORD_RATIO,
        silentIntervals: SILENT_INTERVALS
      })
      : undefined
  // If the kernel's kill counter did not change, the kernel did not kill the process.
  const container = oomKills === undefined ? nearContainerLimit(moments) : undefined
  const limit = nearerLimit(heap, container, moments)
  if (limit === 'heap') {
    return say(
      'heap_oom',
      heap === 'possible' ? heap : 'likely',
      `V8 probably ran out of heap: ${memory}.`
    )
  }
  if (limit === 'container') {
    return say(
      'oom_kill',
      container ?? 'possible',
      `The kernel probably killed it for memory: ${memory}.`
    )
  }
  if (unreachable) {
    return say('lost', 'likely', 'Its connection timed out, and the agent did not reconnect; ' +
      `${memory}.`)
  }
  if (moments.silentSeconds >= HUNG_SECONDS) {
    return say(
      'hung',
      'likely',
      `It had been silent for ${formatSeconds(moments.silentSeconds)} when it was killed; ` +
        `${memory}.`
    )
  }
  if (signal) {
    return say(
      'killed',
      'certain',
      `SIGKILL ended it, probably not for memory; ${memory}.`
    )
  }
  return say(
    'signal',
    oomKills === undefined ? 'possible' : 'likely',
    `An unknown signal ended it: a stop by SIGTERM, a kill or a crash; ${memory}.`
  )
}

/**
 * @param {Explanation['reason']} reason
 * @param {Explanation['sure']} sure
 * @param {string} text
 * @returns {Explanation}
 */
const say = (reason, sure, text) => ({ reason, sure, text })

/**
 * Estimates from the last moments whether the heap reached its limit.
 * @param {import('./last-moments').LastMoments} moments
 * @param {{ silentGrowthBytes: number | undefined, nearRatio: number, recordRatio: number,
 *   silentIntervals: number }} options
 * @returns {Explanation['sure'] | undefined} certainty that the heap reached its limit; undefined
 *   if it did not
 */
function nearHeapLimit (
  {
    oldBytes,
    oldLimitBytes,
    heapGrowthBytesPerSecond,
    heapRecordBytes,
    heapRise,
    gcPauseRatio,
    silentSeconds,
    intervalSeconds
  },
  { silentGrowthBytes, nearRatio, recordRatio, silentIntervals }
) {
  if (oldBytes === undefined || oldLimitBytes === undefined) return undefined
  const left = oldLimitBytes - oldBytes
  if (oldBytes >= nearRatio * oldLimitBytes) {
    return gcPauseRatio >= THRASH_RATIO ? 'certain' : 'likely'
  }
  if (heapGrowthBytesPerSecond * (silentSeconds + intervalSeconds) >= left) return 'likely'
  // A loop that fills the heap without a pause sends no frame, but its growth is visible in RSS.
  if (silentGrowthBytes !== undefined && silentGrowthBytes >= left / 2) return 'likely'
  const growth = heapRise?.liveBytesPerSecond ?? 0
  const isRecent = silentSeconds < HUNG_SECONDS
  if (isRecent && growth * (intervalSeconds + FULL_SOON_SECONDS) >= left) return 'possible'
  if (heapRecordBytes >= recordRatio * oldLimitBytes) return 'possible'
  const intervals = countIntervals(silentSeconds, { intervalSeconds })
  const silent = intervals >= silentIntervals && silentSeconds < HUNG_SECONDS
  const stoodStill =
    silentGrowthBytes !== undefined && silentGrowthBytes < recordRatio * oldLimitBytes
  return silent && !stoodStill ? 'possible' : undefined
}

/**
 * Estimates from the last moments whether the container reached its limit.
 * @param {import('./last-moments').LastMoments} moments
 * @returns {'likely' | 'possible' | undefined}
 */
function nearContainerLimit ({
  containerBytes,
  containerLimitBytes,
  rssGrowthBytesPerSecond,
  rssRecordBytes,
  silentSeconds,
  intervalSeconds,
  limitHitsRose
}) {
  if (containerBytes === undefined || containerLimitBytes === undefined) return undefined
  if (
    containerBytes + rssGrowthBytesPerSecond * (silentSeconds + intervalSeconds) >=
    NEAR_CONTAINER_RATIO * containerLimitBytes
  ) { return 'likely' }
  if (limitHitsRose && containerBytes >= 0.5 * containerLimitBytes) return 'likely'
  return rssRecordBytes >= RECORD_RATIO * containerLimitBytes ? 'possible' : undefined
}

/**
 * Chooses the limit that a process reached, if both are possible.
 * @param {Explanation['sure'] | undefined} heap
 * @param {'likely' | 'possible' | undefined} container
 * @param {import('./last-moments').LastMoments} moments
 * @returns {'heap' | 'container' | undefined}
 */
function nearerLimit (
  heap,
  container,
  {
    gcPauseRatio,
    containerBytes = 0,
    containerLimitBytes = Infinity,
    oldBytes = 0,
    oldLimitBytes = Infinity
  }
) {
  if (!heap || !container) return heap ? 'heap' : container && 'container'
  if (gcPauseRatio >= THRASH_RATIO) return 'heap'
  if ((heap === 'possible') !== (container === 'possible')) {
    return heap === 'possible' ? 'container' : 'heap'
  }
  return oldLimitBytes - oldBytes < containerLimitBytes - containerBytes ? 'heap' : 'container'
}

/** @param {import('./last-moments').LastMoments} moments */
function memoryText ({
  rssBytes,
  containerLimitBytes,
  heapUsedBytes,
  heapSizeLimitBytes,
  gcPauseRatio,
  silentSeconds
}) {
  const parts = []
  if (rssBytes !== undefined) {
    const limit = containerLimitBytes
      ? ` of the container limit of ${formatBytes(containerLimitBytes)}`
      : ''
    parts.push(`RSS was ${formatBytes(rssBytes)}${limit}`)
  }
  if (heapUsedBytes !== undefined && heapSizeLimitBytes !== undefined) {
    parts.push(`the heap ${formatBytes(heapUsedBytes)} of ${formatBytes(heapSizeLimitBytes)}`)
  }
  if (gcPauseRatio >= 0.05) parts.push(`GCs took ${formatRatio(gcPauseRatio)} of the time`)
  return `${parts.join(', ') || 'nothing is known of its memory'}, ` +
    `${formatSeconds(silentSeconds)} before`
}

module.exports = { explainDeath }
