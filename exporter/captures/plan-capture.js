'use strict'

const { kinds } = require('./kinds')
const { processOf } = require('@memwatch/engine/history/identity')
const { signalsOf } = require('@memwatch/engine/signals/index')

/**
 * A heap profile with this many samples of retained memory distinguishes a leak from other growth.
 */
const SAMPLES = 32
/** Least duration of a profile: shorter growth may belong to unfinished requests. */
const LEAST_SECONDS = 9
/**
 * Mean distance between two samples, and samples per second. `service` is the normal case;
 * `watched` is used if a user waits, or if the process will die soon. A waiting user accepts a few
 * percent of the CPU for some seconds. A sample takes about 35 µs.
 */
const INTERVAL_BYTES = { service: 524_288, watched: 131_072 }
const SAMPLES_PER_SECOND = { service: 200, watched: 1000 }
/**
 * Duration of a profile that begins before its diagnosis is suspected. A leak is usually suspected
 * 20 to 40 s after its growth shows.
 */
const EARLY_SECONDS = 60
/**
 * Samples per second of such a profile: in a service about 0.35 % of a core, as most growth is no
 * leak.
 */
const EARLY_SAMPLES_PER_SECOND = { service: 100, watched: 300 }
/**
 * Least distance between samples, of growth inside and outside the heap: an app that allocates
 * little may begin to allocate much at any time, and then each sample costs CPU time. Growth inside
 * the heap has enough samples at a larger distance.
 */
const LEAST_INTERVAL_BYTES = {
  inside: { service: 131_072, watched: 131_072 },
  outside: { service: 4096, watched: 1024 }
}
/**
 * Duration of the CPU profile of a leak. It is short, because the profiler makes the app's event
 * loop look busy: docs/captures.md.
 */
const CPU_SECONDS = 5
/**
 * Duration of a CPU profile that waits for the next rare block of the event loop, as a multiple of
 * the mean time between blocks, and the longest.
 */
const RARE_TIMES = 1.5
const MOST_RARE_SECONDS = 30
/**
 * Interval of the samples of a CPU profile that seeks calls of a few microseconds, and its
 * duration. The samples cost twice the CPU time of V8's usual ones, at four times their number.
 */
const FINE = Object.freeze({
  intervalMicroseconds: 250, seconds: Object.freeze({ service: 5, watched: 10 })
})
/**
 * Longest duration of a profile for a leak outside the heap, which yields few samples per second.
 * Samples that are closer together than this need less time, down to half of it.
 */
const OUTSIDE_SECONDS = { service: 120, watched: 15 }
const OUTSIDE_INTERVAL_BYTES = 16_384
/**
 * Duration of a second profile, as a multiple of the first. Few large Buffers have few objects: 15
 * typed arrays of 64 KiB a second gave a profile of 15 s one sample, in an app that allocated
 * 20 MB/s.
 */
const SECOND_TIMES = 2
const LEAST_OUTSIDE_SHARE = 0.5
/**
 * Least bytes on the heap that the owner of a handle retains: an idle socket retains some thousand.
 */
const OWNER_BYTES = 1024
/**
 * Number of samples of such owners that name a line. Four would be enough, and the first reading
 * has a third of them. With half as many, objects of the warm-up came first.
 */
const OWNER_SAMPLES = 24
/**
 * Largest share of the time to the limit that a profile may take, because the real time may be half
 * of the estimated time.
 */
const RUNWAY_SHARE = 0.5

/**
 * Diagnoses of growth outside the JS heap. The heap contains only a small object for each retained
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
 *   'intervalBytes' | 'intervalMicroseconds'> & { isLast?: boolean }} Plan isLast: it waits for all
 *   other captures
 */

/**
 * Mode of a run: `watched` if the operator allows full GCs on command, because a user waits for the
 * answer then.
 * @param {Target} target
 * @returns {Mode}
 */
const modeOf = ({ hello }) => hello.commands?.includes('force_gc') ? 'watched' : 'service'

/**
 * Distance of samples that the app can bear. The upper bound of its allocation rate, one semi-space
 * per scavenge, is the estimate of this rate.
 * @param {Mode} mode
 * @param {Target} target
 * @param {keyof typeof LEAST_INTERVAL_BYTES} where place of the growth
 * @param {number} [samplesPerSecond]
 * @returns {number} bytes
 */
function chooseInterval (mode, target, where, samplesPerSecond = SAMPLES_PER_SECOND[mode]) {
  const window = target.window()
  const { scavengesPerSecond = null, semiSpaceCapacityBytes = null } = window
    ? signalsOf(window)
    : {}
  const bytesPerSecond = scavengesPerSecond === null || semiSpaceCapacityBytes === null
    ? Infinity
    : scavengesPerSecond * semiSpaceCapacityBytes
  const least = LEAST_INTERVAL_BYTES[where][mode]
  const wanted = Math.max(least, bytesPerSecond / samplesPerSecond)
  return Math.round(Math.min(wanted, INTERVAL_BYTES[mode]))
}

/**
 * Plans the profile of a leak in the JS heap: its duration depends on the time that enough samples
 * take.
 * @param {Mode} mode
 * @param {Target} target
 * @param {Found} [found]
 */
function planInHeap (mode, target, found) {
  const intervalBytes = chooseInterval(mode, target, 'inside')
  const growth =
    found?.evidence.find(({ signal }) => signal === 'liveHeapGrowthBytesPerSecond')?.value ?? 0
  const seconds = Math.max(SAMPLES * intervalBytes / Math.max(growth, 1), LEAST_SECONDS)
  return { intervalBytes, seconds: Math.min(seconds, kinds.heap_profile.seconds) }
}

/**
 * Plans the profile of a leak outside the JS heap. Each retained Buffer, zlib stream, socket or
 * worker has objects of some hundred bytes on the heap. To find these objects, samples are as close
 * together as the allocation rate permits. The rate of new handles tells when there are enough
 * samples.
 * docs/decisions/0065-profiles-find-owners-outside-the-heap.md
 * @param {Mode} mode
 * @param {Target} target
 * @param {Found} found
 * @param {boolean} [isSecond] see rules.js
 */
function planOutsideHeap (mode, target, { diagnosis, evidence }, isSecond = false) {
  const intervalBytes = chooseInterval(mode, target, 'outside')
  const handlesPerSecond = diagnosis === 'resource-leak'
    ? evidence.find(({ signal }) => signal.endsWith('PerSecond'))?.value ?? 0
    : 0
  const enough = OWNER_SAMPLES * intervalBytes / Math.max(handlesPerSecond * OWNER_BYTES, 1)
  const share = Math.max(LEAST_OUTSIDE_SHARE, Math.min(1, intervalBytes / OUTSIDE_INTERVAL_BYTES))
  const most = share * OUTSIDE_SECONDS[mode] * (isSecond ? SECOND_TIMES : 1)
  return { intervalBytes, seconds: Math.max(Math.min(enough, most), OUTSIDE_SECONDS.watched) }
}

/**
 * True if native memory grows in a heap of another thread, which a profile does not show.
 * @param {Found} found
 */
const isElsewhere = ({ diagnosis, evidence }) => diagnosis === 'native-memory-leak' &&
  evidence.some(({ signal }) => signal === 'silentWorkerHeapGrowthBytesPerSecond')

/**
 * True if the event loop was blocked once: a profile would show what the app does afterwards.
 * @param {Found} found
 */
const isOver = ({ diagnosis, evidence }) => diagnosis === 'event-loop-blocked' &&
  evidence.some(({ signal }) => signal === 'longestBlockSeconds')

/**
 * @param {Found | undefined} found
 * @returns {number | undefined} duration of a CPU profile that probably shows a rare block;
 *   undefined if blocks are frequent
 */
function untilNextBlock (found) {
  const valueOf = (/** @type {string} */ name) =>
    found?.evidence.find(({ signal }) => signal === name)?.value ?? 0
  const times = valueOf('longBlocksSeen') - 1
  if (times < 1) return undefined
  const seconds = RARE_TIMES * valueOf('longBlocksSpanSeconds') / times
  return Math.ceil(Math.min(MOST_RARE_SECONDS, Math.max(kinds.cpu_profile.seconds, seconds)))
}

/**
 * True if WebAssembly memory grows.
 * @param {Found} found
 */
const isOfWebAssembly = ({ evidence }) =>
  evidence.some(({ signal }) => signal === 'webassemblyGrowthBytesPerSecond')

/**
 * True if open files pile up.
 * @param {Found} found
 */
const isOfFiles = ({ evidence }) =>
  evidence.some(({ signal }) => signal === 'fileDescriptorsOfFiles')

/** Evidence of external memory that grows in worker threads. */
const OF_WORKERS = 'workersExternalGrowthBytesPerSecond'

/** Share of the growth from which V8's own count of external memory explains it. */
const EXTERNAL_SHARE = 0.5

/**
 * True if most of the growing native memory is counted by V8: JavaScript objects own it, such as
 * Buffers, and calls of native code do not show them. V8 also counts WebAssembly memory, which
 * grows by calls of WebAssembly, without a new object.
 * @param {Found} found
 */
function isOwned (found) {
  const { diagnosis, evidence } = found
  if (diagnosis !== 'native-memory-leak' || isOfWebAssembly(found)) return false
  const valueOf = (/** @type {string} */ name) =>
    evidence.find(({ signal }) => signal === name)?.value ?? 0
  return evidence.some(({ signal }) => signal === OF_WORKERS) ||
    valueOf('externalRiseBytes') > EXTERNAL_SHARE * valueOf('outsideHeapRiseBytes')
}

/**
 * Finds the thread whose code a profile must show: the main thread judges the memory of the whole
 * process, and external memory may grow in a worker.
 * @param {Target} target
 * @param {Found | undefined} found verdict of this target
 * @param {() => readonly Target[]} targets all watched targets
 * @returns {Target}
 */
function findThread (target, found, targets) {
  if (!found?.evidence.some(({ signal }) => signal === OF_WORKERS)) return target
  const process = processOf(target.hello)
  return targets()
    .filter(({ hello, connected }) =>
      connected && hello.threadId > 0 && processOf(hello) === process)
    .reduce((most, other) => riseOf(other) > riseOf(most) ? other : most, target)
}

/**
 * @param {Target} target
 * @returns {number} growth of the external memory of a worker, in bytes; 0 for a main thread
 */
function riseOf (target) {
  const window = target.hello.threadId > 0 ? target.window() : undefined
  return window ? signalsOf(window).externalTrend?.rise ?? 0 : 0
}

/**
 * True if a heap profile may run, and can show the owners of growing native memory. JavaScript
 * objects own Buffers, streams and most handles of native code. A profile runs full GCs, which
 * would also free memory that waits for a GC. So unless the operator allows full GCs, enough major
 * GCs must have run before. Memory that V8 counts does not wait long: V8 runs major GCs because of
 * it.
 * @param {Target} target
 * @param {Found} found
 */
function mayProfile (target, found) {
  const { diagnosis, evidence } = found
  if (diagnosis !== 'native-memory-leak' || isOwned(found)) return true
  const majors = evidence.find(({ signal }) => signal === 'majorsSeen')
  return modeOf(target) === 'watched' || (majors !== undefined && majors.value >= majors.limit)
}

/**
 * Plans the capture of a rule: duration and sampling interval, within the cost that the app can
 * bear.
 * @param {import('./rules').CaptureRule} rule
 * @param {Target} target
 * @param {Found} [found] verdict that caused the capture
 * @returns {Plan | undefined} undefined if the capture must wait
 */
function planCapture (rule, target, found) {
  const { what: kind, seconds, when, isNeeded, isSecond, names } = rule
  if (found && (isElsewhere(found) || isOver(found))) return undefined
  const showsCalls = kind === 'cpu_profile' && names === undefined
  if (showsCalls && found && isOwned(found)) return undefined
  if (names === 'handlers' && found && !isOwned(found)) return undefined
  if (names === 'opens' && found && !isOfFiles(found)) return undefined
  if (names) {
    const { intervalMicroseconds, seconds: usual } = FINE
    return { kind, seconds: seconds ?? usual[modeOf(target)], intervalMicroseconds }
  }
  if (isNeeded && kind === 'cpu_profile') {
    const plan = { kind, seconds: seconds ?? CPU_SECONDS }
    if (modeOf(target) === 'service') return plan
    // The heap profile that already runs would end, and may name the owner of the memory soon.
    const isLast = !found || !isOfWebAssembly(found)
    return { ...plan, intervalMicroseconds: FINE.intervalMicroseconds, isLast }
  }
  if (kind === 'cpu_profile') return { kind, seconds: seconds ?? untilNextBlock(found) }
  if (kind !== 'heap_profile') return { kind, seconds }
  if (found && !mayProfile(target, found)) return undefined
  const mode = 'runwayBelowSeconds' in when ? 'watched' : modeOf(target)
  const plan = found && OUTSIDE_HEAP.has(found.diagnosis)
    ? planOutsideHeap(mode, target, found, isSecond)
    : planInHeap(mode, target, found)
  const left = found?.secondsLeft ?? Infinity
  const most = Math.min(seconds ?? Infinity, Math.max(LEAST_SECONDS, RUNWAY_SHARE * left))
  return { kind, ...plan, seconds: Math.ceil(Math.min(plan.seconds, most)) }
}

/**
 * Plans a heap profile that begins before a diagnosis is suspected.
 * @param {Target} target
 * @returns {Required<Pick<Plan, 'intervalBytes'>> & { seconds: number }}
 */
function planEarlyProfile (target) {
  const mode = modeOf(target)
  const samplesPerSecond = EARLY_SAMPLES_PER_SECOND[mode]
  return {
    seconds: EARLY_SECONDS,
    intervalBytes: chooseInterval(mode, target, 'outside', samplesPerSecond)
  }
}

module.exports = { findThread, OUTSIDE_HEAP, planCapture, planEarlyProfile }
