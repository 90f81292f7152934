'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { cpuTimeEvidence, evidence, listEvidence, prediction } = require('./evidence')
const { captureCommand } = require('../fixes/command')
const {
  formatMilliseconds: ms, formatNumber, formatRatio, formatSeconds
} = require('../text/format')
const { FELT_SECONDS } = require('../signals/felt-delay')

module.exports = defineDiagnosis({
  id: 'event-loop-blocked',
  title: 'Synchronous work blocks the event loop, and it is not GC',
  severity: 'warning',
  scope: 'isolate',
  requires: [
    'blockedFramesRatio',
    'longestDelaySeconds',
    'expectedWaitSeconds',
    'eventLoopUtilizationRatio',
    'loopWindowSeconds',
    'blockedFramesCpuRatio',
    'longestDelayCpuSeconds',
    'expectedWaitCpuSeconds'
  ],
  uses: [
    'gcPauseRatio',
    'expectedWaitOutsideMajorsSeconds',
    'threadCpuRatio',
    'cpuThrottledRatio',
    'cpuTimeRatio',
    'runQueueWaitRatio',
    'serversListening',
    'connectionsAccepted',
    'fewestTimers',
    'fewestConnections',
    'liveHeapShareRatio',
    'recentMajorsPerCpuSecond',
    'longBlocksSeen',
    'longBlocksSpanSeconds',
    'longBlocksWaitSeconds',
    'longestBlockSeconds'
  ],
  limits: {
    // Share of seconds in which something waited longer than a tenth of a second. This share, the
    // longest delay and the mean wait must exceed their limits even without the time in which the
    // thread waited for a CPU, because the app does not cause that time.
    blockedFramesRatio: 0.3,
    longestDelaySeconds: 0.15,
    // Mean wait that counts instead of the longest delay: shorter blocks follow each other closely.
    // A server that hashes a password for 105 ms, six times a second, measured 0.035 s.
    frequentWaitSeconds: 0.025,
    // From this share of busy time on it does not count: work piles up in an overloaded loop, and
    // its turns are long because each handles many events.
    frequentBusyRatio: 0.95,
    // Mean time that a request waits because of the loop alone.
    expectedWaitSeconds: 0.01,
    suspectedExpectedWaitSeconds: 0.005,
    // Least number of blocks of half a second and more: so many are no accident. A program that
    // loads or compiles has such blocks close together. Blocks that are spread over a minute recur.
    longBlocks: 3,
    longBlocksSpanSeconds: 60,
    // One block of this length is enough for a suspicion: the health check of a container, each ten
    // seconds, fails, and clients give up.
    hangSeconds: 10,
    // Least share of time in which the loop is busy with work other than GC.
    busyRatio: 0.15,
    // GC is the explanation if it takes this share of the busy time.
    gcShareRatio: 0.4,
    // Share of throttled quota periods. Only Linux reports how long the thread waited for a CPU.
    // Elsewhere, above this share, the quota may cause all of the delay.
    throttledRatio: 0.1,
    // The verdict is a guess if the thread's CPU time is unknown, and the thread waited for a CPU
    // during more than this share of its busy time.
    contendedRatio: 0.7,
    // From this share of the heap limit and rate of major GCs on, V8 marks the heap in many steps,
    // which neither Node.js nor V8's callbacks report: they took 24 to 36 % of wall time in an app
    // at 0.76 of its limit. The verdict is a guess then.
    markedShareRatio: 0.7,
    markedMajorsPerCpuSecond: 0.3,
    // Length of the start phase, in which every app loads and compiles code.
    windowSeconds: 20,
    // If the thread uses a CPU during less than this share of its busy time, it waits inside a
    // call.
    waitingCpuShareRatio: 0.5,
    // Without a listening server, a late timer matters only if the loop waits for it. A batch
    // program works without a pause: its loop is busy 0.99 of the time, and less while it reads
    // files. Queue workers with a blocked loop measured 0.24 to 0.37. A timer that computes for
    // most of its interval measured 0.8.
    batchBusyRatio: 0.9,
    // Share of the wait that remains once the blocking call is removed, caused by other computation
    // of the app.
    remainingWaitShareRatio: 0.1
  },
  explains: [],
  runbook: 'MemwatchEventLoopBlocked',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits, { threadId }) {
    const dismissed = ruleOut(signals, limits)
    const delays = dismissed ? findRare(signals, limits) : findFrequent(signals, limits)
    if (dismissed && !delays) return dismissed
    const { longest, mean, isLong, areRare, isHang } = /** @type {Delays} */ (delays)
    const waiters = findWaiters(signals, limits, threadId > 0)
    if (waiters === 'nobody') {
      return ok(`it computes for up to ${ms(longest)} at a time, like a batch job: no server ` +
        'listens, no timer is always pending and no connection stays open, so no client waits')
    }
    const isCertain = isLong && waiters !== 'perhaps' && !isGuess(signals, limits)
    const waits = !areRare && waitsInside(signals, limits)
    const waited = `${ms(mean)} on average, up to ${ms(longest)}`
    const often = areRare ? sayOften(signals) : ''
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      ...(waiters === 'perhaps' && { severity: 'info' }),
      summary: `Synchronous ${waits ? 'calls that wait block' : 'computation blocks'} the event ` +
        `loop for up to ${ms(longest)}${often}; GC is ${formatRatio(signals.gcPauseRatio ?? 0)} ` +
        'of the time.',
      finding: {
        waits,
        mayBeMarking: mayBeMarking(signals, limits),
        signal: areRare ? 'longBlocksWaitSeconds' : 'expectedWaitSeconds',
        seconds: mean
      },
      evidence: areRare
        ? showRare(signals, limits, { waiters, isHang })
        : showEvidence(signals, limits, { waiters, waits }),
      impact: waiters === 'clients'
        ? `Every request, timer and answer waits: ${waited}; health checks may time out.`
        : `Every timer and answer waits: ${waited}. No server listens: in a batch program, or in ` +
          'a worker for such work, this is harmless.'
    }
  },

  fix ({ waits, mayBeMarking, signal, seconds }, target, limits) {
    const capture = `${captureCommand(target, 'cpu_profile')} takes a profile.`
    return [
      {
        title: waits
          ? 'Replace the synchronous calls'
          : 'Find the function, and move it off the event loop',
        change: {
          code: waits
            ? 'Look for the …Sync family in code that runs per request: execSync, spawnSync, ' +
              'readFileSync, writeFileSync on slow disks, Atomics.wait. Each has an asynchronous ' +
              `variant. The suspects of a CPU profile name the call: ${capture}`
            : `The suspects of a CPU profile name the line and often the call: ${capture} Then ` +
              'use the asynchronous variant of crypto and zlib calls (pbkdf2, scrypt, gzip, ' +
              'brotliCompress instead of …Sync), a worker thread for computations, smaller ' +
              'pieces with setImmediate between them, and streams instead of JSON.parse of large ' +
              'bodies. ' +
              'Avoid regular expressions that backtrack on input.'
        },
        predicted: [prediction(signal, seconds, limits.remainingWaitShareRatio * seconds)],
        risk: mayBeMarking
          ? 'The live heap is near its limit: give it more room first, as V8 marks it in steps ' +
            'that block the loop as well.'
          : 'More memory does not help, nor does a larger heap.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {{ waits: boolean, mayBeMarking: boolean, seconds: number,
 *   signal: 'expectedWaitSeconds' | 'longBlocksWaitSeconds' }} Finding seconds: mean wait
 * @typedef {{ longest: number, mean: number, isLong: boolean, areRare: boolean, isHang: boolean }}
 *   Delays seconds; isLong: true if they are long enough, and were observed for long enough, to
 *   confirm the finding; isHang: true for few blocks, of which one is very long
 */
/** @typedef {ReturnType<typeof findWaiters>} Waiters */

/**
 * Did the loop respond in time in the last seconds? If not, is the cause GC or a lack of CPU?
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut (signals, limits) {
  const { longestDelaySeconds: longest, expectedWaitSeconds: mean } = signals
  const { eventLoopUtilizationRatio: busy, runQueueWaitRatio: queued } = signals
  const { cpuThrottledRatio: throttled } = signals
  const gc = signals.gcPauseRatio ?? 0
  if (!isLate(limits, busy, signals.blockedFramesRatio, longest, mean)) {
    return ok(`the event loop is late by ${ms(mean)} on average and by ${ms(longest)} at most`)
  }
  const isYoung = signals.loopWindowSeconds < limits.windowSeconds
  if (queued === null && isYoung && waitsInside(signals, limits)) {
    return unknown(`the event loop is late by ${ms(mean)} on average; whether its thread waited ` +
      'for a CPU is not known yet')
  }
  if (queued === null && (throttled ?? 0) >= limits.throttledRatio) {
    return ok(`${heldBack(signals)}: raise the CPU limit; the code is not the cause`)
  }
  if (gc >= limits.gcShareRatio * busy) {
    const what = (queued ?? 0) > gc
      ? `, and the thread waits for a CPU ${formatRatio(queued ?? 0)} of the time: both delay ` +
        'the loop'
      : ': GC blocks the loop'
    return ok(`the loop is late by ${ms(mean)} on average, but GC takes ${formatRatio(gc)} of ` +
      `the time${what}`)
  }
  const outside = outsideMajors(signals) * mean
  if (outside < limits.suspectedExpectedWaitSeconds) {
    return ok(`the loop is late by ${ms(mean)} on average, but only by ${ms(outside)} without ` +
      'the pauses of major GCs')
  }
  if (busy - gc < limits.busyRatio) {
    return ok(`the loop is busy only ${formatRatio(busy)} of the time: single late timers`)
  }
  const { blockedFramesCpuRatio, longestDelayCpuSeconds, expectedWaitCpuSeconds } = signals
  if (
    isLate(limits, busy, blockedFramesCpuRatio, longestDelayCpuSeconds, expectedWaitCpuSeconds)
  ) return null
  const why = throttled
    ? `${heldBack(signals)}, and a higher CPU limit helps`
    : 'other processes on the machine used it'
  return ok(`the event loop is late by ${ms(mean)} on average, but ` +
    `${formatRatio(queued ?? 0)} of the time the thread was ready and had no CPU: ${why}`)
}

/**
 * Delays of the last seconds.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Delays}
 */
const findFrequent = (signals, limits) => ({
  longest: signals.longestDelaySeconds,
  mean: signals.expectedWaitSeconds,
  isLong:
    signals.expectedWaitCpuSeconds * outsideMajors(signals) >= limits.expectedWaitSeconds &&
    signals.loopWindowSeconds >= limits.windowSeconds,
  areRare: false,
  isHang: false
})

/**
 * Long blocks that recur within minutes, or one very long block. They are few, but they delay many
 * requests.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Delays | null}
 */
function findRare (signals, limits) {
  const { longBlocksSeen: count, longBlocksSpanSeconds: seconds } = signals
  const { longBlocksWaitSeconds: mean, longestBlockSeconds: longest } = signals
  if (mean === null || seconds === null || longest === null) return null
  const areMany = (count ?? 0) >= limits.longBlocks && seconds >= limits.windowSeconds
  const isHang = !areMany && longest >= limits.hangSeconds
  if (!(areMany || isHang) || mean < limits.expectedWaitSeconds) return null
  const isLong = areMany && seconds >= limits.longBlocksSpanSeconds
  return { longest, mean, isLong, areRare: true, isHang }
}

/**
 * @param {Signals} signals
 * @returns {string} frequency of long blocks, to follow their length
 */
function sayOften ({ longBlocksSeen: count, longBlocksSpanSeconds: seconds }) {
  return count === 1
    ? ', once'
    : `, ${formatNumber(count ?? 0)} times in ${formatSeconds(seconds ?? 0)}`
}

/**
 * Share of the wait that major GCs do not cause: one long pause a second takes a small share of the
 * time, but causes most of the wait.
 * @param {Signals} signals
 */
const outsideMajors = ({ expectedWaitSeconds: all, expectedWaitOutsideMajorsSeconds: outside }) =>
  all > 0 ? (outside ?? all) / all : 1

/**
 * @param {Limits} limits
 * @param {number} busy share of time
 * @param {number} blocked ratio of frames
 * @param {number} longest seconds
 * @param {number} mean seconds
 */
function isLate (limits, busy, blocked, longest, mean) {
  const areFrequent = mean >= limits.frequentWaitSeconds && busy < limits.frequentBusyRatio
  return blocked >= limits.blockedFramesRatio &&
    (areFrequent || longest >= limits.longestDelaySeconds) &&
    mean >= limits.suspectedExpectedWaitSeconds
}

/**
 * True if the verdict is a guess: V8 may block the loop, or the CPU time of the thread is unknown,
 * and the thread waited for a CPU during most of its busy time.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const isGuess = (signals, limits) =>
  mayBeMarking(signals, limits) || (signals.threadCpuRatio === null &&
    (signals.runQueueWaitRatio ?? 0) >= limits.contendedRatio * signals.eventLoopUtilizationRatio)

/**
 * True if V8 probably marks a nearly full heap in steps that nothing reports.
 * @param {Signals} signals
 * @param {Limits} limits
 */
const mayBeMarking = ({ liveHeapShareRatio: share, recentMajorsPerCpuSecond: majors }, limits) =>
  (share ?? 0) >= limits.markedShareRatio && (majors ?? 0) >= limits.markedMajorsPerCpuSecond

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ waiters: Waiters, waits: boolean }} found
 */
function showEvidence (signals, limits, { waiters, waits }) {
  const { blockedFramesRatio: blocked, eventLoopUtilizationRatio: busy } = signals
  const { longestDelaySeconds: longest, expectedWaitSeconds: mean } = signals
  const { cpuThrottledRatio: throttled, threadCpuRatio } = signals
  return listEvidence(
    evidence('blockedFramesRatio', blocked, limits.blockedFramesRatio, (value, limit) =>
      `In ${value} of the seconds the event loop was late by more than ${ms(FELT_SECONDS)} ` +
      `(threshold ${limit}).`),
    evidence('expectedWaitSeconds', mean, limits.expectedWaitSeconds, () =>
      `Timers and requests wait ${ms(mean)} on average (threshold ` +
      `${ms(limits.expectedWaitSeconds)}); ` +
      `the longest wait was ${ms(longest)}.`),
    evidence('gcPauseRatio', signals.gcPauseRatio ?? 0, limits.gcShareRatio * busy, (value, limit) =>
      `GC pauses take ${value} of the time, less than ${limit}, while the loop is busy ` +
      `${formatRatio(busy)} of the time: GC is not the cause.`),
    evidence('cpuThrottledRatio', throttled ?? 0, limits.throttledRatio, () =>
      throttled === null
        ? 'No CPU quota is known that could throttle it.'
        : `${capital(heldBack(signals))}${throttled ? '; the waits without it count' : ''}.`),
    waitersEvidence(waiters, signals),
    cpuTimeEvidence(
      signals,
      `blocks of up to ${ms(signals.longestDelayCpuSeconds)}, and a wait of ` +
        `${ms(signals.expectedWaitCpuSeconds)} on average`
    ),
    threadCpuRatio !== null &&
      evidence('threadCpuRatio', threadCpuRatio, limits.waitingCpuShareRatio * busy, value =>
        waits
          ? `The thread uses only ${value} of a core: the code waits inside a synchronous call.`
          : `The thread uses ${value} of a core: the code computes.`)
  )
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ waiters: Waiters, isHang: boolean }} found
 */
function showRare (signals, limits, { waiters, isHang }) {
  const { longBlocksSeen: count, longBlocksWaitSeconds: mean } = signals
  const { longBlocksSpanSeconds: seconds, longestBlockSeconds: longest } = signals
  return listEvidence(
    isHang
      ? evidence('longestBlockSeconds', longest ?? 0, limits.hangSeconds, (value, limit) =>
        `In the last minutes it computed for ${value} in one piece (threshold ${limit}), not ` +
        'counting GC or waits for a CPU.')
      : evidence('longBlocksSeen', count ?? 0, limits.longBlocks, (value, limit) =>
        `In the last minutes it computed ${value} times for half a second or longer in one piece ` +
        `(threshold ${limit}), not counting GC or waits for a CPU.`),
    !isHang &&
      evidence('longBlocksSpanSeconds', seconds ?? 0, limits.longBlocksSpanSeconds, (value, limit) =>
        `These blocks are spread over ${value} (threshold ${limit}).`),
    evidence('longBlocksWaitSeconds', mean ?? 0, limits.expectedWaitSeconds, () =>
      `Because of ${count === 1 ? 'this block' : 'such blocks'} timers and requests wait ` +
      `${ms(mean ?? 0)} on average (threshold ` +
      `${ms(limits.expectedWaitSeconds)}); the longest took ${ms(longest ?? 0)}.`),
    waitersEvidence(waiters, signals)
  )
}

/** @param {{ cpuThrottledRatio: number | null }} signals */
const heldBack = ({ cpuThrottledRatio }) =>
  `the CPU quota throttled the process in ${formatRatio(cpuThrottledRatio ?? 0)} of its periods`

/** @param {string} sentence */
const capital = sentence => sentence.charAt(0).toUpperCase() + sentence.slice(1)

/**
 * True if the loop sleeps inside calls for most of its busy time. Time spent waiting for a CPU is
 * excluded.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function waitsInside ({ threadCpuRatio, eventLoopUtilizationRatio: busy, cpuTimeRatio }, limits) {
  const ownBusy = busy - (1 - (cpuTimeRatio ?? 1))
  return threadCpuRatio !== null && threadCpuRatio < limits.waitingCpuShareRatio * ownBusy
}

/**
 * Work that waits for a blocked loop. clients: a server listens or has accepted connections, or
 * this is unknown. timers: some timers are always pending, and the loop waits for them. perhaps:
 * timers are pending in a loop without pauses or in a worker, which often exists for such work, or
 * outgoing connections are open.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {boolean} isWorker
 * @returns {'clients' | 'timers' | 'perhaps' | 'nobody'}
 */
function findWaiters (signals, { batchBusyRatio }, isWorker) {
  const { serversListening, connectionsAccepted, fewestTimers, fewestConnections } = signals
  if (serversListening !== 0 || connectionsAccepted !== 0) return 'clients'
  // Compare the busy time with the time in which the thread did not wait for a CPU. Given more CPU,
  // a batch program stays as busy, while a loop that waits for timers pauses more.
  const waited = signals.runQueueWaitRatio ?? 0
  const ownBusy = (signals.eventLoopUtilizationRatio - waited) / (1 - waited)
  if (fewestTimers && !isWorker && ownBusy < batchBusyRatio) return 'timers'
  return fewestTimers || fewestConnections ? 'perhaps' : 'nobody'
}

/**
 * @param {Waiters} waiters
 * @param {Signals} signals
 */
function waitersEvidence (waiters, { serversListening, fewestTimers, fewestConnections }) {
  if (waiters === 'clients') return []
  const pending = fewestTimers
    ? evidence('fewestTimers', fewestTimers, 0, value => `${value} timers are always pending`)
    : evidence('fewestConnections', fewestConnections ?? 0, 0, value =>
      `${value} connections are always open`)
  const conclusion = waiters === 'timers'
    ? 'they fire late'
    : 'it is unknown whether a client waits'
  return [
    evidence('serversListening', serversListening ?? 0, 0, () => 'No server listens.'),
    { ...pending, text: `${pending.text}: ${conclusion}.` }
  ]
}
