'use strict'

const { defineDiagnosis, ok } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const { fitHeaps } = require('./container-limit-mismatch-fix')
const { judgeMachine } = require('./container-limit-mismatch-machine')
const { findResize, judgeRaised } = require('./container-limit-mismatch-resized')
const { judgeTogether } = require('./container-limit-mismatch-together')
const { formatBytes, formatRatio, formatSeconds } = require('../text/format')

module.exports = defineDiagnosis({
  id: 'container-limit-mismatch',
  title: 'The heap limit of V8 does not fit the memory limit of the container',
  severity: 'warning',
  scope: 'process',
  requires: ['heapSizeLimitBytes', 'besideHeapBytes', 'rssBytes'],
  uses: [
    'containerLimitBytes',
    'containerLimitBeforeBytes',
    'containerHighBytes',
    'containerHighHitsPerSecond',
    'memoryPressureRatio',
    'rssShareRatio',
    'rssPeakShareRatio',
    'rssDayPeakShareRatio',
    'rssLatePeakShareRatio',
    'besideHeapPeakBytes',
    'rssTrend',
    'allocatorAsked',
    'allocatorRetainedBytes',
    'rssRunwayBytes',
    'heapResidentBytes',
    'containerLimitHitsPerSecond',
    'semiSpaceMaxBytes',
    'liveHeapHighestBytes',
    'liveHeapBytes',
    'liveHeapForcedReadings',
    'containerProcesses',
    'containerHeaps',
    'containerHeapLimitBytes',
    'containerShareBytes',
    'workerHeaps',
    'workerHeapBytes',
    'neighboursBytes',
    'neighboursHeapBytes',
    'neighboursLiveHeapBytes',
    'neighboursLargestLiveHeapBytes'
  ],
  limits: {
    // A heap limit above this share of the container's limit lets the heap alone exceed the
    // container, in any app.
    blindRatio: 1,
    // Several heaps rarely fill at the same time: the sum of their limits may exceed the container
    // by a quarter. With V8's defaults it does so for any two or three processes. So a sum of less
    // than twice the container counts only if the processes use this share of it.
    togetherBlindRatio: 1.25,
    togetherBlindUsedRatio: 0.4,
    togetherAlwaysBlindRatio: 2,
    // A process is no risk if its part of the container is smaller than this share of an equal
    // part. An example is the primary of a cluster. Its workers would inherit a limit made for its
    // small heap, and they need more.
    leastPartRatio: 1 / 3,
    // A heap is about to outgrow its container if RSS reaches this share of the container's limit.
    rssShareRatio: 0.85,
    suspectedRssShareRatio: 0.7,
    // A finding stands while all values are at least this share of their limits.
    keepsRatio: 0.95,
    // There is a risk, too, if RSS and the heap reached these shares of the limit, and RSS grows in
    // a line that ends at the limit soon.
    growingRssShareRatio: 0.5,
    growingHeapShareRatio: 0.25,
    steadinessRatio: 0.6,
    soonSeconds: 120,
    // The same, before the steadiness is known: a straight line over all readings of a young
    // process that ends at the limit at once. An app that loads 200 MiB in 14 s in a container of
    // 512 MiB would need 18 s.
    youngScore: 3,
    youngFit: 0.95,
    atOnceSeconds: 15,
    // The heap is the cause if its resident memory reaches this share of the same limit.
    heapShareRatio: 0.4,
    // The text tells freed memory of malloc from this share of the memory outside the heap on.
    freedShareRatio: 0.2,
    // Share of time spent waiting for memory above memory.high.
    pressureRatio: 0.1,
    // A young generation above this share of the container is too large: V8 derived its size from
    // another amount of memory.
    youngShareRatio: 0.25,
    // A live heap above this share of the old generation leaves no headroom.
    liveShareRatio: 0.8
  },
  explains: [],
  runbook: 'MemwatchContainerLimitMismatch',

  /** @returns {Judgement} */
  judge (signals, limits, target) {
    const throttled = judgeThrottled(signals, limits)
    if (throttled) return throttled
    const { heapSizeLimitBytes: heapLimit, containerLimitBytes: limit } = signals
    if (limit === null) {
      const describe = (/** @type {number} */ bytes) => describeRoom(signals, bytes)
      return judgeMachine(signals, limits, describe, target.hostMemoryBytes)
    }
    // A heap that may outgrow the container by itself is judged by itself.
    if ((signals.containerHeaps ?? 1) > 1 && heapLimit < limits.blindRatio * limit) {
      const finding = describeRoom(signals, limit, signals.containerShareBytes ?? limit)
      return judgeTogether(signals, limits, finding)
    }
    const resize = findResize(signals, target)
    const dismissed = ruleOut(signals, limits, limit)
    if (dismissed && !resize) return dismissed
    const finding = { ...describeRoom(signals, limit), resize }
    return judgeRaised(signals, limits, finding) ?? dismissed ??
      judgeAlone(signals, limits, finding, target)
  },

  /** @returns {import('./define-diagnosis').Fix[]} */
  fix: (finding, target, limits) => fitHeaps(finding, target, limits)
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {Record<'limitBytes' | 'shareBytes' | 'besideBytes' | 'heapLimitBytes' | 'rssBytes' |
 *   'liveBytes' | 'heaps' | 'ownHeaps' | 'processes' | 'othersLiveBytes' |
 *   'othersLargestLiveBytes' | 'othersBesideBytes', number> &
 *   { semiSpaceBytes: number | null, resize?: ReturnType<typeof findResize> }} Finding
 *   limitBytes: memory into which all heaps must fit; shareBytes: this process's part of it;
 *   resize: set if the limit changed while the process ran
 */
/** @typedef {import('./define-diagnosis').Judgement<Finding>} Judgement */

/**
 * Memory beside the heaps at the busiest moment of the last day, in bytes. Heaps of workers count
 * as heaps.
 * @param {Signals} signals
 */
const findBeside = ({ besideHeapBytes, besideHeapPeakBytes, workerHeapBytes }) =>
  Math.max(0, Math.max(besideHeapBytes, besideHeapPeakBytes ?? 0) - (workerHeapBytes ?? 0))

/**
 * RSS at the busiest moment, relative to the container's limit. RSS rises with garbage until a
 * major GC, and with the load until night: a finding that is true at that moment stands.
 * @param {Signals} signals
 */
const findBusiest = ({ rssLatePeakShareRatio, rssDayPeakShareRatio }) =>
  Math.max(rssLatePeakShareRatio ?? 0, rssDayPeakShareRatio ?? 0)

/**
 * @param {Signals} signals
 * @param {number} limitBytes memory into which all heaps must fit
 * @param {number} [shareBytes] this process's part of it
 * @returns {Finding}
 */
const describeRoom = (signals, limitBytes, shareBytes = limitBytes) => ({
  limitBytes,
  shareBytes,
  besideBytes: findBeside(signals),
  heapLimitBytes: signals.heapSizeLimitBytes,
  rssBytes: signals.rssBytes,
  semiSpaceBytes: signals.semiSpaceMaxBytes,
  liveBytes: signals.liveHeapHighestBytes ?? signals.liveHeapBytes ?? 0,
  heaps: signals.containerHeaps ?? 1,
  ownHeaps: 1 + (signals.workerHeaps ?? 0),
  processes: signals.containerProcesses ?? 1,
  othersLiveBytes: (signals.workerHeapBytes ?? 0) + (signals.neighboursLiveHeapBytes ?? 0),
  othersLargestLiveBytes: signals.neighboursLargestLiveHeapBytes ?? 0,
  othersBesideBytes: (signals.neighboursBytes ?? 0) - (signals.neighboursHeapBytes ?? 0)
})

/**
 * Does the kernel throttle the process at memory.high, long before it reaches the limit?
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null}
 */
function judgeThrottled (signals, limits) {
  const { containerHighBytes: high, heapSizeLimitBytes: heapLimit } = signals
  const beside = findBeside(signals)
  const pressure = signals.memoryPressureRatio ?? 0
  const hits = signals.containerHighHitsPerSecond ?? 0
  if (high === null || pressure < limits.pressureRatio || hits <= 0) return null
  return {
    state: 'confirmed',
    summary: `The cgroup's memory.high of ${formatBytes(high)} makes the process wait for ` +
      `memory ${formatRatio(pressure)} of the time.`,
    finding: describeRoom(signals, signals.containerLimitBytes ?? high),
    evidence: [
      evidence('memoryPressureRatio', pressure, limits.pressureRatio, (value, limit) =>
        `Tasks of the cgroup wait for memory ${value} of the time (threshold ${limit}).`),
      evidence('containerHighHitsPerSecond', hits, 0, value =>
        `memory.high is exceeded ${value}.`),
      evidence('heapSizeLimitBytes', heapLimit, Math.max(0, high - beside), (value, limit) =>
        `The heap may grow to ${value}; ${limit} would fit below memory.high.`)
    ],
    impact: 'The kernel throttles every allocation: the app stalls, although it has not reached ' +
      'the limit and the kernel kills no process.'
  }
}

/**
 * Does a full heap fit the container, or is RSS far below the limit?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} limit bytes, of the container
 */
function ruleOut (signals, limits, limit) {
  const { heapSizeLimitBytes: heapLimit } = signals
  const beside = findBeside(signals)
  const full = `a full heap (${formatBytes(heapLimit)})`
  const used = Math.max(signals.rssShareRatio ?? 0, signals.rssDayPeakShareRatio ?? 0)
  const isNear = used >= limits.suspectedRssShareRatio ||
    (signals.rssPeakShareRatio ?? 0) >= limits.rssShareRatio
  const keeps = {
    keeps: heapLimit + beside > limits.keepsRatio * limit &&
      findBusiest(signals) >= limits.keepsRatio * limits.suspectedRssShareRatio
  }
  if (heapLimit + beside <= limit) {
    return ok(`${full} and the memory outside it (${formatBytes(beside)}) fit the container's ` +
      formatBytes(limit), keeps)
  }
  if (heapLimit > limits.blindRatio * limit || isNear ||
    fillsWithin(signals, limits, limit) > 0) return null
  return ok(`${full} and the other memory would not fit the container's ${formatBytes(limit)}, ` +
    `but RSS reaches only ${formatRatio(used)} of it`, keeps)
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Finding} finding
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @returns {Judgement}
 */
function judgeAlone (signals, limits, finding, target) {
  const { limitBytes: limit, resize } = finding
  const { heapSizeLimitBytes: heapLimit, rssBytes } = signals
  const { containerLimitHitsPerSecond: hits } = signals
  const beside = findBeside(signals)
  const isBlind = heapLimit > limits.blindRatio * limit
  const used = signals.rssShareRatio ?? 0
  const neighbours = signals.neighboursBytes ?? 0
  const usedByAll = Math.max(used, Math.min(1, (rssBytes + neighbours) / limit))
  const heapShare = (signals.heapResidentBytes ?? 0) / limit
  const isPressed = used >= limits.rssShareRatio && heapShare >= limits.heapShareRatio
  const within = fillsWithin(signals, limits, limit)
  const peak = signals.rssPeakShareRatio ?? 0
  const reached = peak >= limits.rssShareRatio
  const freed = signals.allocatorAsked === 1 ? signals.allocatorRetainedBytes ?? 0 : 0
  const isPast = limits.keepsRatio * (signals.besideHeapPeakBytes ?? 0) > signals.besideHeapBytes
  const isFreed = !isPast && freed >= limits.freedShareRatio * beside
  const day = signals.rssDayPeakShareRatio ?? 0
  const wasNear = used < limits.suspectedRssShareRatio && day >= limits.suspectedRssShareRatio
  const over = `more than the container's ${formatBytes(limit)}`
  const mayUse = `V8 may use ${formatBytes(heapLimit)} of heap`
  return {
    state: isBlind || isPressed ? 'confirmed' : 'suspected',
    keeps: isBlind || findBusiest(signals) >= limits.keepsRatio * limits.rssShareRatio,
    // Far below the limit there is no risk yet.
    severity:
      usedByAll >= limits.suspectedRssShareRatio || reached || within > 0 ? 'warning' : 'info',
    summary: heapLimit > limit
      ? `${mayUse}, ${over}.`
      : `${mayUse}, and ${formatBytes(beside)} are ` +
        (isFreed
          ? `resident outside it, of which malloc counts ${formatBytes(freed)} as free`
          : isPast ? 'in use outside it at the busiest time of a day' : 'in use outside it') +
        `: together ${over}.`,
    standing: heapLimit > limit
      ? `The heap limit of V8 is ${over}`
      : `The heap limit of V8 and the memory outside the heap are together ${over}`,
    finding,
    evidence: listEvidence(
      evidence('heapSizeLimitBytes', heapLimit, Math.max(0, limit - beside), (value, limit) =>
        `The heap may grow to ${value}; ${limit} would fit beside the other resident memory.`),
      evidence('containerLimitBytes', limit, heapLimit + beside, (value, worst) =>
        `The container's limit is ${value}; heap and other memory together may reach ${worst}.`),
      isBlind && evidence('heapSizeLimitBytes', heapLimit, limits.blindRatio * limit, () =>
        resize ? whyKept(resize, limit) : whyBlind(target, limit)),
      showRss({ rssBytes, neighbours }, limit, isBlind ? null : heapShare, limits),
      wasNear && evidence('rssDayPeakShareRatio', day, limits.suspectedRssShareRatio,
        (value, limit) => `RSS reached ${value} of the limit at the busiest time of the last day ` +
          `(threshold ${limit}).`),
      reached && evidence('rssPeakShareRatio', peak, limits.rssShareRatio, (value, limit) =>
        `RSS reached ${value} of the limit in that time (a warning from ${limit} on).`),
      within > 0 && evidence('rssGrowthBytesPerSecond', signals.rssTrend?.slope ?? 0, 0, value =>
        `RSS grows by ${value}, and would reach the limit within ${formatSeconds(within)}: ` +
        `${formatBytes(signals.rssRunwayBytes ?? 0)} are left.`),
      hits && evidence('containerLimitHitsPerSecond', hits, 0, value =>
        `Memory use reached the limit ${value}; each time the kernel had to reclaim memory.`)
    ),
    impact: sayKill(signals)
  }
}

/** @param {Signals} signals */
const sayKill = ({ liveHeapForcedReadings: forced }) =>
  'V8 does not run more GCs when the container is nearly full. If the heap then grows, the ' +
  'kernel kills the process (exit 137, OOMKilled), and the log has no message about a heap.' +
  (forced
    ? ' Full GCs that memwatch ran keep the heap smaller here than in production: ' +
      'MEMWATCH_FORCED_GC=off shows the difference.'
    : '')

/**
 * @param {{ rssBytes: number, neighbours: number }} used neighbours: bytes of the other processes
 *   of the container
 * @param {number} limit bytes, of the container
 * @param {number | null} heapShare share of the container that the heap fills; null if a heap that
 *   may outgrow the container makes the finding certain
 * @param {Limits} limits
 */
function showRss ({ rssBytes, neighbours }, limit, heapShare, limits) {
  const share = heapShare === null ? limits.suspectedRssShareRatio : limits.rssShareRatio
  const all = neighbours > 0
    ? `, and ${formatBytes(rssBytes + neighbours)} with the other processes of the container. `
    : '. '
  return evidence('rssBytes', rssBytes, share * limit, (value, limit) =>
    `RSS is ${value} in the median of the last half minute${all}` +
    (heapShare === null
      ? `From ${limit} on, the finding is a warning.`
      : `The finding is confirmed if RSS reaches ${limit} and the heap fills ` +
        `${formatRatio(limits.heapShareRatio)} of the container. The heap fills ` +
        `${formatRatio(heapShare)} now.`))
}

/**
 * Does RSS grow in a line that ends at the container's limit soon, and is much of it heap?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} limit bytes, of the container
 * @returns {number} seconds within which it reaches the limit; 0 if it does not soon
 */
function fillsWithin (signals, limits, limit) {
  const { rssTrend, rssRunwayBytes: runway, heapResidentBytes } = signals
  if (rssTrend === null || runway === null) return 0
  const { slope, score, fit, steadinessRatio } = rssTrend
  const [isLine, seconds] = steadinessRatio === null
    ? [score >= limits.youngScore && fit >= limits.youngFit, limits.atOnceSeconds]
    : [steadinessRatio >= limits.steadinessRatio, limits.soonSeconds]
  // The median of RSS lags behind fast growth.
  const isSoon = isLine && runway <= seconds * slope &&
    runway <= (1 - limits.growingRssShareRatio) * limit &&
    (heapResidentBytes ?? 0) >= limits.growingHeapShareRatio * limit
  return isSoon ? seconds : 0
}

/**
 * @param {NonNullable<Finding['resize']>} resize
 * @param {number} limit
 */
const whyKept = ({ beforeBytes }, limit) =>
  `The limit was lowered from ${formatBytes(beforeBytes)} to ${formatBytes(limit)} while the ` +
  'process ran: V8 keeps the heap limit that it chose at the start.'

/**
 * Reason why V8 does not know the limit.
 * @param {import('@memwatch/agent/protocol/frame').Hello} target
 * @param {number} limit
 */
function whyBlind ({ constrainedBytes, node, nodeOptions, execArgv }, limit) {
  if (
    [...nodeOptions, ...execArgv].some(option =>
      /^--max[-_](old[-_]space|heap)[-_]size/.test(option)
    )
  ) { return 'A flag sets the heap that high.' }
  if (constrainedBytes === undefined) {
    return `Node ${node} saw no limit at start: the limit applies to a parent of the cgroup, was ` +
      'set later, or this Node does not read it (Node 18 on cgroup v2, or outside a container).'
  }
  if (constrainedBytes === limit) {
    return `Node ${node} saw the limit at start, and V8 chose this heap size for it.`
  }
  return `Node ${node} saw a limit of ${formatBytes(constrainedBytes)} at start, not of ` +
    `${formatBytes(limit)}.`
}
