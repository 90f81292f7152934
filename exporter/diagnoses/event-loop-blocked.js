'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatMilliseconds, formatRatio } = require('../text/format')
const { FELT_SECONDS } = require('../signals/felt-delay')

module.exports = defineDiagnosis({
  id: 'event-loop-blocked',
  title: 'Synchronous work blocks the event loop, and it is not GC',
  severity: 'warning',
  scope: 'isolate',
  requires: ['blockedFramesRatio', 'longestDelaySeconds', 'expectedWaitSeconds', 'eventLoopUtilizationRatio', 'loopWindowSeconds'],
  uses: ['gcPauseRatio', 'threadCpuRatio', 'cpuThrottledRatio', 'runQueueWaitRatio'],
  limits: {
    // Something waited longer than a tenth of a second in so many of the seconds.
    blockedFramesRatio: 0.3,
    longestDelaySeconds: 0.15,
    // What a request waits on average for the loop alone.
    expectedWaitSeconds: 0.01,
    suspectedExpectedWaitSeconds: 0.005,
    // Without GC, so much of the time the loop is at work.
    busyRatio: 0.15,
    // GC explains it when it takes this share of the busy time.
    gcShareRatio: 0.4,
    // Time the cgroup's quota took away: above it the wait is not the code's.
    throttledRatio: 0.1,
    // Time it was ready and another had its CPU: from here on that is taken off what it waits for …
    runQueueWaitRatio: 0.1,
    // … and above this share of its busy time nothing is sure.
    contendedRatio: 0.7,
    // Every app loads and compiles for a while.
    windowSeconds: 20,
    // Less CPU than this while the loop is busy: it waits inside a call.
    waitingCpuShareRatio: 0.5,
    // Without the one blocking call a tenth of the wait remains: what else the app computes.
    remainingWaitShareRatio: 0.1
  },
  explains: [],
  runbook: 'MemwatchEventLoopBlocked',

  judge (signals, limits) {
    const { blockedFramesRatio: blocked, longestDelaySeconds: longest, expectedWaitSeconds: mean, eventLoopUtilizationRatio: busy } = signals
    const gc = signals.gcPauseRatio ?? 0
    const ms = formatMilliseconds
    const delayed = blocked >= limits.blockedFramesRatio && longest >= limits.longestDelaySeconds && mean >= limits.suspectedExpectedWaitSeconds
    if (!delayed) {
      return { state: 'ok', summary: `the event loop answers: ${ms(mean)} late on average, ${ms(longest)} at most` }
    }
    if ((signals.cpuThrottledRatio ?? 0) >= limits.throttledRatio) {
      return { state: 'ok', summary: `the cgroup's CPU quota held the process back ${formatRatio(signals.cpuThrottledRatio ?? 0)} of the time: a higher CPU limit helps, not other code` }
    }
    if (gc >= limits.gcShareRatio * busy) {
      return { state: 'ok', summary: `the loop is late by ${ms(mean)} on average, but GC takes ${formatRatio(gc)} of the time: it is the one that blocks` }
    }
    if (busy - gc < limits.busyRatio) {
      return { state: 'ok', summary: `the loop is busy ${formatRatio(busy)} of the time only: single late timers` }
    }
    const contended = contendedShare(signals, limits)
    const own = 1 - contended
    // Without others a block of L seconds is one of own · L, and what waits for it waits half of its square.
    const ownMean = mean * own * own
    if (longest * own < limits.longestDelaySeconds || ownMean < limits.suspectedExpectedWaitSeconds) {
      return { state: 'ok', summary: `the event loop is late by ${ms(mean)} on average, but ${formatRatio(signals.runQueueWaitRatio ?? 0)} of the time the thread was ready and had no CPU: others on the machine, or a CPU limit, took it` }
    }
    const waits = waitsInside(signals, limits)
    const sure = ownMean >= limits.expectedWaitSeconds && signals.loopWindowSeconds >= limits.windowSeconds && contended < limits.contendedRatio
    return {
      state: sure ? 'confirmed' : 'suspected',
      summary: `Synchronous ${waits ? 'calls that wait' : 'computation'} block${waits ? '' : 's'} the event loop for up to ${ms(longest)}; GC is ${formatRatio(gc)} of the time.`,
      finding: { waits, expectedWaitSeconds: mean },
      evidence: [
        evidence('blockedFramesRatio', blocked, limits.blockedFramesRatio, (value, limit) => `In ${value} of the seconds something waited longer than ${ms(FELT_SECONDS)} (${limit} count).`),
        evidence('expectedWaitSeconds', mean, limits.expectedWaitSeconds, () => `Whatever falls due waits ${ms(mean)} on average, ${ms(limits.expectedWaitSeconds)} count; the longest wait was ${ms(longest)}.`),
        evidence('gcPauseRatio', gc, limits.gcShareRatio * busy, (value, limit) => `GC pauses take ${value} of the time, below ${limit} of a loop that is busy ${formatRatio(busy)}: it is not GC.`),
        evidence('cpuThrottledRatio', signals.cpuThrottledRatio ?? 0, limits.throttledRatio, value => signals.cpuThrottledRatio === null ? 'No CPU quota that could hold it back is known.' : `The CPU quota took ${value} away: it is not throttling.`),
        ...(contended === 0 ? [] : [evidence('runQueueWaitRatio', signals.runQueueWaitRatio ?? 0, limits.runQueueWaitRatio, value => `The thread was ready and had no CPU ${value} of the time: that is not the code's, and is taken off.`)]),
        ...(signals.threadCpuRatio === null
          ? []
          : [evidence('threadCpuRatio', signals.threadCpuRatio, limits.waitingCpuShareRatio * busy, value => waits ? `Only ${value} of a core is used meanwhile: the code waits inside a synchronous call.` : `It uses ${value} of a core: it computes.`)])
      ],
      impact: `Every request, timer and answer waits: ${ms(mean)} on average, up to ${ms(longest)}; health checks may time out.`
    }
  },

  fix ({ waits, expectedWaitSeconds }, _, limits) {
    return [{
      title: waits ? 'Replace the synchronous calls' : 'Find the function, and take it off the loop',
      change: {
        code: waits
          ? 'Look for the …Sync family in code that runs per request: execSync, spawnSync, readFileSync, writeFileSync on slow disks, Atomics.wait. Each has a variant with a promise. The suspects name the call where a CPU profile was taken: memwatch capture TARGET cpu_profile takes one.'
          : 'The suspects name the line and the call where a CPU profile was taken: memwatch capture TARGET cpu_profile takes one. Then: the asynchronous variant of crypto and zlib calls (pbkdf2, scrypt, gzip instead of …Sync), a worker thread for what computes, smaller pieces with setImmediate between them, streams instead of JSON.parse of whole large bodies, and no regular expression that backtracks on input.'
      },
      predicted: [prediction('expectedWaitSeconds', expectedWaitSeconds, limits.remainingWaitShareRatio * expectedWaitSeconds)],
      risk: 'More memory does not help, nor does a larger heap.'
    }]
  }
})

/** @typedef {{ threadCpuRatio: number | null, eventLoopUtilizationRatio: number, runQueueWaitRatio: number | null }} Busy */

/**
 * Of the time that the loop is busy, the share in which it only waits for a CPU.
 * @param {Busy} signals @param {{ runQueueWaitRatio: number }} limits
 */
function contendedShare ({ eventLoopUtilizationRatio: busy, runQueueWaitRatio: queued }, limits) {
  return queued === null || queued < limits.runQueueWaitRatio ? 0 : Math.min(1, queued / busy)
}

/** @param {Busy} signals @param {{ waitingCpuShareRatio: number, runQueueWaitRatio: number }} limits */
function waitsInside (signals, limits) {
  const { threadCpuRatio, eventLoopUtilizationRatio: busy } = signals
  return threadCpuRatio !== null && threadCpuRatio < limits.waitingCpuShareRatio * busy * (1 - contendedShare(signals, limits))
}
