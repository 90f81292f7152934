'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { WAITER_LIMITS, findWaiters } = require('./waiters')
const { formatMilliseconds: ms, formatNumber, formatRatio } = require('../text/format')

module.exports = defineDiagnosis({
  id: 'cpu-throttling',
  title: 'The CPU limit stops the process for a part of each second',
  severity: 'warning',
  scope: 'process',
  requires: ['eventLoopUtilizationRatio', 'longestDelaySeconds'],
  uses: [
    'settledThrottledRatio',
    'settledThrottledSeconds',
    'cpuQuotaCores',
    'runQueueWaitRatio',
    'serversListening',
    'threadCpuRatio',
    'connectionsAccepted',
    'fewestTimers',
    'fewestConnections'
  ],
  limits: {
    // Share of throttled periods. The alert CPUThrottlingHigh of kubernetes-mixin has the same
    // threshold. An app with half a core and short waves of requests was throttled in 40 to 46 % of
    // its periods: the 95th percentile of its response time was between 0.04 and 0.67 s, and 0.01 s
    // with two cores.
    throttledRatio: 0.25,
    // Least share of wall time in which the thread was ready to run and had no CPU. Below it, the
    // quota is used up by other threads, or at the end of the work of a period.
    waitRatio: 0.05,
    // Both must fall to this share of their limits to withdraw a finding, because load varies.
    keptRatio: 0.5,
    // From this share of waits on, requests take noticeably longer.
    warningWaitRatio: 0.1,
    // Least length of the window, which leaves out the start of the process: there every app loads
    // and compiles code. A suspicion needs one interval of the agent's readings.
    windowSeconds: 20,
    leastSeconds: 10,
    ...WAITER_LIMITS,
    // One thread alone cannot use up a whole core. A larger quota is used up by several threads.
    leastCores: 1,
    // If the main thread uses less than this share of the quota, the pool's threads use the rest at
    // the same time. Eight jobs of zlib and scrypt in a burst were throttled in 76 % of the periods
    // with 0.4 cores, in 19 % with one, and in none with two.
    mainShareRatio: 0.5,
    leastCoresOfPool: 2,
    coresFactor: 2,
    // Share of throttled periods that remains at most: threads of the GC and of the pool run beside
    // the main thread.
    remainingRatio: 0.05
  },
  explains: [],
  runbook: 'MemwatchCpuThrottling',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits) {
    const { settledThrottledRatio: throttled, runQueueWaitRatio: waited, cpuQuotaCores } = signals
    if (throttled === null) {
      return cpuQuotaCores === null
        ? ok('no CPU limit is known')
        : unknown('not known yet: throttled periods of the CPU limit')
    }
    const quota = cpuQuotaCores === null ? '' : ` of ${formatCores(cpuQuotaCores)}`
    const did =
      `CPU limit${quota} throttled the process in ${formatRatio(throttled)} of its periods`
    const waits = waited === null
      ? ''
      : `; the main thread was ready but had no CPU for ${formatRatio(waited)} of the time`
    if (!isHigh(throttled, waited, limits, 1)) {
      const keeps = isHigh(throttled, waited, limits, limits.keptRatio)
      return ok(`the ${did}${waits}`, { keeps })
    }
    const seconds = signals.settledThrottledSeconds ?? 0
    if (seconds < limits.leastSeconds) return unknown(`the ${did}, which is normal at its start`)
    const waiters = findWaiters(signals, limits, false)
    if (waiters === 'nobody') {
      return ok(`the ${did}; it computes like a batch job, so no client waits`)
    }
    const isCertain = waiters !== 'perhaps' && seconds >= limits.windowSeconds
    const isFelt = waiters !== 'perhaps' && (waited ?? 0) >= limits.warningWaitRatio
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      severity: isFelt ? 'warning' : 'info',
      summary: `The ${did}${waits}.`,
      finding: {
        throttled,
        cores: cpuQuotaCores,
        usesPool: signals.threadCpuRatio !== null &&
          signals.threadCpuRatio < limits.mainShareRatio * (cpuQuotaCores ?? 0)
      },
      evidence: showEvidence(signals, throttled, limits),
      impact: 'The kernel stops all threads for the rest of a period of usually 100 ms: ' +
        (waiters === 'clients' ? 'requests and health checks' : 'timers and answers') + ' wait. ' +
        `The event loop was late by up to ${ms(signals.longestDelaySeconds)}.`
    }
  },

  /** @returns {import('./define-diagnosis').Fix[]} */
  fix ({ throttled, cores, usesPool }, target, limits) {
    const least = usesPool ? limits.leastCoresOfPool : limits.leastCores
    const most = Math.max(least, Math.ceil(limits.coresFactor * (cores ?? 0)))
    return [
      {
        title: 'Raise the CPU limit, or remove it and keep the request',
        change: { cpuLimitCores: most, note: `With Docker: --cpus ${most}.` },
        predicted: [
          prediction('settledThrottledRatio', throttled, Math.min(throttled, limits.remainingRatio))
        ],
        risk: 'The container may take CPU time from others on its node. If GC takes much of the ' +
          'CPU time, treat its cause first.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {{ throttled: number, cores: number | null, usesPool: boolean }} Finding throttled:
 *   share of the quota's periods; cores: the quota, null if unknown; usesPool: true if other
 *   threads use most of it
 */

/** @param {number} cores */
const formatCores = cores => cores === 1 ? '1 core' : `${formatNumber(cores)} cores`

/**
 * @param {number} throttled share of periods
 * @param {number | null} waited share of wall time
 * @param {Limits} limits
 * @param {number} share of the limits that counts
 */
const isHigh = (throttled, waited, { throttledRatio, waitRatio }, share) =>
  throttled >= share * throttledRatio && (waited === null || waited >= share * waitRatio)

/**
 * @param {Signals} signals
 * @param {number} throttled share of periods
 * @param {Limits} limits
 */
function showEvidence ({ cpuQuotaCores, runQueueWaitRatio }, throttled, limits) {
  return listEvidence(
    evidence('settledThrottledRatio', throttled, limits.throttledRatio, (value, limit) =>
      `The process used up its CPU limit in ${value} of the periods (threshold ${limit}).`),
    runQueueWaitRatio !== null &&
      evidence('runQueueWaitRatio', runQueueWaitRatio, limits.waitRatio, (value, limit) =>
        `The main thread was ready to run but had no CPU for ${value} of wall time (threshold ` +
        `${limit}).`),
    cpuQuotaCores !== null &&
      evidence('cpuQuotaCores', cpuQuotaCores, limits.leastCores, () =>
        `The CPU limit is ${formatCores(cpuQuotaCores)}. One thread can use a whole core.`)
  )
}
