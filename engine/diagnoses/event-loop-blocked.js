'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { prediction } = require('./evidence')
const {
  areEventsShort,
  findFrequent,
  findLack,
  findRare,
  isGuess,
  mayBeMarking,
  ruleOut,
  throttledText,
  waitsInside
} = require('./event-loop-blocked-delays')
const { capital, showEvidence, showRare } = require('./event-loop-blocked-evidence')
const { WAITER_LIMITS, findWaiters } = require('./waiters')
const { captureCommand } = require('../fixes/command')
const {
  formatMilliseconds: ms, formatNumber, formatRatio, formatSeconds
} = require('../text/format')

module.exports = defineDiagnosis({
  id: 'event-loop-blocked',
  title: 'Synchronous work blocks the event loop',
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
    'cpuPerEventSeconds',
    'cpuQuotaCores',
    'cpuThrottledRatio',
    'cpuTimeRatio',
    'runQueueWaitRatio',
    'serversListening',
    'connectionsAccepted',
    'fewestTimers',
    'fewestConnections',
    'liveHeapShareRatio',
    'recentMajorsPerCpuSecond',
    'ordinaryMarkingRatio',
    'externalMarkingRatio',
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
    // A server that hashes a password for 105 ms, six times a second, measured 0.035 s; one that
    // does so for 150 ms, twice a second, 0.021 s.
    frequentWaitSeconds: 0.015,
    // From this share of busy time on it does not count: work piles up in an overloaded loop, and
    // its turns are long because each handles many events.
    frequentBusyRatio: 0.95,
    // Mean time that a request waits because of the loop alone.
    expectedWaitSeconds: 0.01,
    suspectedExpectedWaitSeconds: 0.005,
    // The verdict is a guess if the loop is never idle and the mean event takes less CPU time: an
    // event of L seconds makes the others wait L/2 on average, which would be no suspicion. An app
    // with a quarter of a core had events of 0.006 s and delays of 1.9 s. A service that hashes
    // passwords for 0.25 s in one of ten requests, with a tenth of a core, had events of 0.015 s.
    longEventSeconds: 0.01,
    // Least number of blocks of 0.2 s and more: so many are no accident. A program that
    // loads or compiles has such blocks close together. Blocks that are spread over a minute recur.
    longBlocks: 3,
    longBlocksSpanSeconds: 60,
    // Share of time in such blocks that is suspected even if the mean wait is shorter than its
    // limit: one of twenty requests then meets a block.
    longBlocksTimeRatio: 0.05,
    // One block of this length is enough for a suspicion: the health check of a container, each ten
    // seconds, fails, and clients give up.
    hangSeconds: 10,
    // Least share of time in which the loop is busy with work other than GC.
    busyRatio: 0.15,
    // GC is the explanation if it takes this share of the busy time.
    gcShareRatio: 0.4,
    // The verdict is a guess if the loop is never idle and GC takes this share of the time. A
    // server with small semi-spaces had delays of 0.94 s at 33 %, and of 0.05 s with larger ones.
    overloadGcRatio: 0.25,
    // From this share of time on, shorter GC pauses shorten the waits noticeably.
    noticeableGcRatio: 0.1,
    // Share of throttled quota periods. Only Linux reports how long the thread waited for a CPU.
    // Elsewhere, above this share, the quota may cause all of the delay.
    throttledRatio: 0.1,
    // A loop that is never idle while its CPU quota throttles the process in this share of periods
    // has more work than the quota allows. Its turns are then long without a slow call: an app with
    // a quarter of a core had delays of 1.2 s, and of 0.02 s without the quota.
    outOfCpuRatio: 0.5,
    // With a smaller quota, in cores, a thread can run out of CPU time. The agent reads the
    // counters of the quota every ten frames, so a young process is not judged.
    threadCores: 1,
    // The verdict is a guess if the thread's CPU time is unknown, and the thread waited for a CPU
    // during more than this share of its busy time.
    contendedRatio: 0.7,
    // From this share of the heap limit and rate of major GCs on, V8 marks the heap in many steps,
    // which neither Node.js nor V8's callbacks report: they took 24 to 36 % of wall time in an app
    // at 0.76 of its limit. The verdict is a guess then.
    markedShareRatio: 0.7,
    markedMajorsPerCpuSecond: 0.3,
    // The same from this share of the process's CPU time in major GCs on. An app with 0.44 to 0.49
    // had delays of 2.1 s, and none without these GCs.
    markingRatio: 0.4,
    // Least length of the window of delays. It leaves out the first seconds of the process, when
    // every app loads and compiles code.
    windowSeconds: 20,
    // If the thread uses a CPU during less than this share of its busy time, it waits inside a
    // call.
    waitingCpuShareRatio: 0.5,
    ...WAITER_LIMITS,
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
    const lack = waits ? null : findLack(signals, limits)
    if (lack === 'cpu' && areEventsShort(signals, limits)) {
      return ok(`${throttledText(signals)} and the event loop is never idle, but an event takes ` +
        `only ${ms(signals.cpuPerEventSeconds ?? 0)} of CPU time on average`)
    }
    if (lack === 'cpu' && signals.cpuPerEventSeconds === null) {
      // Node.js 18 counts no events. The CPU limit, which cpu-throttling judges, explains the
      // delays.
      return unknown(`${throttledText(signals)}, and the event loop is never idle: it is late by ` +
        `up to ${ms(longest)}. A higher CPU limit would show whether synchronous calls are long ` +
        'as well', { openUntil: 'setting' })
    }
    const waited = `${ms(mean)} on average, up to ${ms(longest)}`
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      ...(waiters === 'perhaps' && { severity: 'info' }),
      summary: sayBlocks(signals, { longest, waits, areRare, lack }) +
        (waits ? '' : sayMarking(signals, limits)),
      finding: {
        does: waits ? 'waits' : 'computes',
        gcPauseRatio: signals.gcPauseRatio ?? 0,
        lack,
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

  /** @returns {Fix[]} */
  fix (finding, target, limits) {
    const { does, lack, mayBeMarking, gcPauseRatio, signal, seconds } = finding
    const waits = does === 'waits'
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
              'brotliCompress instead of …Sync), a worker thread for computations and for ' +
              'synchronous databases (node:sqlite, better-sqlite3), smaller pieces with ' +
              'setImmediate between them, and streams instead of JSON.parse of large bodies. ' +
              'Avoid regular expressions that backtrack on input.'
        },
        predicted: [prediction(signal, seconds, limits.remainingWaitShareRatio * seconds)],
        risk: mayBeMarking
          ? 'V8 marks the heap in steps that block the loop as well, and that no pause shows. ' +
            'First give a heap near its limit more room, and end frequent major GCs.'
          : sayMemory(gcPauseRatio, limits.noticeableGcRatio)
      },
      ...(lack === 'threads' ? [SPREAD_LOAD] : [])
    ]
  }
})

/** @typedef {import('./event-loop-blocked-delays').Delays} Delays */
/** @typedef {import('./define-diagnosis').Fix} Fix */
/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {{ does: 'waits' | 'computes', lack: ReturnType<typeof findLack>,
 *   mayBeMarking: boolean, gcPauseRatio: number, seconds: number,
 *   signal: 'expectedWaitSeconds' | 'longBlocksWaitSeconds' }} Finding does: what the synchronous
 *   code does; seconds: mean wait
 */
/** @typedef {ReturnType<typeof findWaiters>} Waiters */

/**
 * @param {number} gcPauseRatio
 * @param {number} noticeableRatio
 * @returns {string} what more memory would change
 */
const sayMemory = (gcPauseRatio, noticeableRatio) => gcPauseRatio < noticeableRatio
  ? 'More memory does not help, nor does a larger heap.'
  : `More memory can only shorten the GC pauses, which take ${formatRatio(gcPauseRatio)} of the ` +
    'time.'

/**
 * @param {Signals} signals
 * @param {{ longest: number, waits: boolean, areRare: boolean, lack: Finding['lack'] }} found
 *   longest: seconds
 */
function sayBlocks (signals, { longest, waits, areRare, lack }) {
  const { cpuPerEventSeconds: perEvent } = signals
  const gc = `GC is ${formatRatio(signals.gcPauseRatio ?? 0)} of the time.`
  const events = perEvent === null ? '' : `An event takes ${ms(perEvent)} of CPU time on average. `
  if (lack === 'cpu') {
    return `${capital(throttledText(signals))}, and the event loop is never idle: it is late by ` +
      `up to ${ms(longest)}. The CPU limit is too low, synchronous calls are long, or both. ` +
      events + gc
  }
  if (lack === 'threads') {
    return `The event loop is never idle, and late by up to ${ms(longest)}: there is more work ` +
      `than one thread can do, or synchronous calls are long. ${events}${gc}`
  }
  return `Synchronous ${waits ? 'calls that wait block' : 'computation blocks'} the event loop ` +
    `for up to ${ms(longest)}${areRare ? sayOften(signals) : ''}; ${gc}`
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {string} what else may block the loop, to follow the summary
 */
const sayMarking = (signals, limits) => mayBeMarking(signals, limits)
  ? ' V8, which marks the heap in steps that count as computation, may block it instead.'
  : ''

/** @type {Fix} */
const SPREAD_LOAD = {
  title: 'Spread the load over more processes',
  change: {
    code: 'If the suspects contain no long call, one thread is too little for this load: run ' +
      'more replicas of the container, or several processes with the cluster module.'
  },
  predicted: [],
  risk: 'Each process needs memory of its own.'
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
