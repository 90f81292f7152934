'use strict'

const { kinds } = require('./kinds')
const { signalsOf } = require('@memwatch/engine/signals/index')

/** Samples of retained memory after which a heap profile distinguishes a leak from other growth. */
const SAMPLES = 32
/** Least growth: less may belong to unfinished requests. */
const LEAST_SECONDS = 9
/**
 * Mean distance of two samples, and samples a second: in a service, and if a user waits or the
 * process dies soon. A waiting user accepts a few percent of the CPU for some seconds. A sample
 * takes about 35 µs.
 */
const INTERVAL_BYTES = { service: 524_288, watched: 131_072 }
const SAMPLES_PER_SECOND = { service: 100, watched: 200 }
/**
 * Least distance of samples: an app that allocates little may begin to allocate much at any time,
 * and then pays for each sample.
 */
const LEAST_INTERVAL_BYTES = { service: 32_768, watched: 4096 }
/** Seconds of a profile of a leak outside the heap, which finds few samples a second. */
const OUTSIDE_SECONDS = { service: 120, watched: 15 }
/** Share of the time to the limit that a profile takes: the estimate may be twice too long. */
const RUNWAY_SHARE = 0.5

/**
 * Diagnoses of growth outside the JS heap, which holds only a small object for each retained
 * resource.
 */
const OUTSIDE_HEAP = new Set(['native-memory-leak', 'resource-leak', 'buffer-pool-pinning'])

/**
 * @typedef {import('@memwatch/engine/history/target').Target} Target
 * @typedef {Partial<Pick<import('@memwatch/engine/verdicts/evaluate').Verdict, 'secondsLeft'>> &
 *   Pick<import('@memwatch/engine/verdicts/evaluate').Verdict, 'diagnosis' | 'state' |
 *   'evidence'>} Found
 * @typedef {keyof typeof INTERVAL_BYTES} Mode
 * @typedef {Pick<Parameters<import('./captures').Captures['request']>[1], 'kind' | 'seconds' |
 *   'intervalBytes'>} Plan
 */

/**
 * Kind of run. `watched` if the operator allows full GCs on command: a user waits for the answer.
 * @param {Target} target
 * @returns {Mode}
 */
const modeOf = ({ hello }) => hello.commands?.includes('force_gc') ? 'watched' : 'service'

/**
 * A leak of the JS heap: as long as its samples take.
 * @param {Mode} mode
 * @param {Found} [found]
 */
function planInHeap (mode, found) {
  const intervalBytes = INTERVAL_BYTES[mode]
  const growth =
    found?.evidence.find(({ signal }) => signal === 'liveHeapGrowthBytesPerSecond')?.value ?? 0
  const seconds = Math.max(SAMPLES * intervalBytes / Math.max(growth, 1), LEAST_SECONDS)
  return { intervalBytes, seconds: Math.min(seconds, kinds.heap_profile.seconds) }
}

/**
 * A leak outside the JS heap: each Buffer, zlib stream, socket or worker that is retained has
 * objects of some hundred bytes on the heap. To find those the profile samples as closely as the
 * allocation rate permits, which is at most a semi-space per scavenge.
 * docs/decisions/0065-profiles-find-owners-outside-the-heap.md
 * @param {Mode} mode
 * @param {Target} target
 */
function planOutsideHeap (mode, target) {
  const window = target.window()
  const { scavengesPerSecond = null, semiSpaceCapacityBytes = null } = window
    ? signalsOf(window)
    : {}
  const bytesPerSecond = scavengesPerSecond === null || semiSpaceCapacityBytes === null
    ? Infinity
    : scavengesPerSecond * semiSpaceCapacityBytes
  const wanted = Math.max(LEAST_INTERVAL_BYTES[mode], bytesPerSecond / SAMPLES_PER_SECOND[mode])
  return {
    intervalBytes: Math.round(Math.min(wanted, INTERVAL_BYTES[mode])),
    seconds: OUTSIDE_SECONDS[mode]
  }
}

/**
 * JavaScript objects own Buffers, streams and most handles of native code. A profile runs full GCs.
 * Unless the operator allows those, it must not free memory that still waits for a GC. It does not
 * show the heaps of other threads.
 * @param {Target} target
 * @param {Found} found
 */
function mayProfile (target, { diagnosis, evidence }) {
  if (diagnosis !== 'native-memory-leak') return true
  const majors = evidence.find(({ signal }) => signal === 'majorsSeen')
  const mayCollect = modeOf(target) === 'watched' ||
    (majors !== undefined && majors.value >= majors.limit)
  return mayCollect &&
    !evidence.some(({ signal }) => signal === 'silentWorkerHeapGrowthBytesPerSecond')
}

/**
 * Plans the capture of a rule: its length and sampling, within what it may cost the app.
 * @param {import('./rules').CaptureRule} rule
 * @param {Target} target
 * @param {Found} [found] the verdict that it is about
 * @returns {Plan | undefined} undefined: none yet
 */
function planCapture ({ what: kind, seconds, when }, target, found) {
  if (kind !== 'heap_profile') return { kind, seconds }
  if (found && !mayProfile(target, found)) return undefined
  const mode = 'runwayBelowSeconds' in when ? 'watched' : modeOf(target)
  const plan = OUTSIDE_HEAP.has(found?.diagnosis ?? '')
    ? planOutsideHeap(mode, target)
    : planInHeap(mode, found)
  const left = found?.secondsLeft ?? Infinity
  const most = Math.min(seconds ?? Infinity, Math.max(LEAST_SECONDS, RUNWAY_SHARE * left))
  return { kind, ...plan, seconds: Math.ceil(Math.min(plan.seconds, most)) }
}

module.exports = { OUTSIDE_HEAP, planCapture }
