'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { LASTING_LIMITS, timeLeft } = require('./lasting-growth')
const { describeDoubts, showDoubts, standsUnderLoad, weighDoubts } = require('./resource-leak-doubts')
const { URGENCY_LIMITS, nameMemoryLimit, severityByTime } = require('./severity')
const {
  DESCRIPTOR_KINDS, KINDS, countKinds, findDescriptorKind
} = require('./resource-leak-kinds')
const { secondsUntilSteady } = require('../signals/growth')
const { formatBytes, formatNumber, formatRatio, formatSeconds } = require('../text/format')

const SECONDS_PER_MINUTE = 60
/**
 * Most memory that a handle holds, inside or outside the heap. Sockets with their requests and
 * buffers held 27 and 28 KB of heap, HTTP/2 sessions of gRPC 22 KB of heap and 48 KB outside it.
 */
const MOST_HANDLE_BYTES = 128 * 1024

module.exports = defineDiagnosis({
  id: 'resource-leak',
  title: 'Handles pile up: sockets, timers, watchers, threads or descriptors',
  severity: 'critical',
  scope: 'isolate',
  requires: [],
  uses: [
    ...KINDS.flatMap(({ now, trend }) => [now, trend]),
    ...DESCRIPTOR_KINDS.flatMap(({ open, trend }) => [open, trend]),
    'loopDescriptorsOpen',
    'loopDescriptorsTrend',
    'maxFileDescriptors',
    'listenerWarnings',
    'loadGrowthRatio',
    'connectionsKeptRatio',
    'socketsEarlierGrowthRatio',
    'liveHeapBytes',
    'liveHeapShareRatio',
    'liveHeapTrend',
    'heapSizeLimitBytes',
    'outsideHeapTrend',
    'rssTrend',
    'rssRunwayBytes',
    'containerLimitBytes',
    'eventLoopUtilizationRatio',
    'cpuThrottledRatio',
    'runQueueWaitRatio'
  ],
  limits: {
    // Least growth that counts as a leak; fewer new resources may be a pool.
    rise: 40,
    // New resources as a share of all: resources that are kept on purpose existed before.
    riseShareRatio: 0.4,
    // Least steadiness of growth that is straight and does not slow down. Leaks measure 0.8–1, and
    // pools that fill fall towards 0.
    steadinessRatio: 0.6,
    // Least steadiness of a confirmed finding. A pool of connections that grew in steps to its
    // maximum of 60, while other processes kept its server waiting, measured up to 0.75.
    certainSteadinessRatio: 0.8,
    // Below this steadiness the growth levels off, as in a pool that fills.
    levelsOffRatio: 0.3,
    ...URGENCY_LIMITS,
    // Bounds of the predicted time, shared with growth of memory.
    tellsAheadRatio: LASTING_LIMITS.tellsAheadRatio,
    soonSeconds: LASTING_LIMITS.soonSeconds,
    // A load that grows by this factor explains a larger number of handles.
    loadGrowthRatio: 1.25,
    // Over a trend longer than this, the load is compared over the trend as well.
    slowSeconds: 600,
    // A load that needs the handles grows with them. A load that grows by less than this share of
    // their growth may be their effect.
    effectShareRatio: 0.5,
    // Files may belong to requests if at least this number of sockets opens for each.
    socketsEachFile: 0.2,
    // If memory outside the heap grows at this share of the rate of RSS, the growth is there.
    outsideShareRatio: 0.5,
    // Kinds that grow by at least this share of the growth of the largest are alike.
    alikeRatio: 0.7,
    // A kind that accounts for more than this share of the new descriptors is their cause.
    causeShareRatio: 0.5,
    // The same for a cause in place of the descriptors: exactly half of them may be the other ends
    // of the same connections.
    sourceShareRatio: 0.55,
    // Bounds of the sockets that stay open, for each connection that a server accepted: their
    // clients may connect and stay. Clients may also come back: a gateway whose 900 devices
    // connected anew every 40 s had 0.28. For its clients, an app may open others: gateways whose
    // load and pool grew in their first minutes, as straight as a leak, had 1.9 and 3.
    keptLeastRatio: 0.05,
    keptMostRatio: 8,
    // From this ratio on, clients are a weak explanation: they do not withdraw a confirmed finding.
    keptWeakRatio: 4,
    // Fewer new sockets may be a pool that fills: an http.Agent of Node.js keeps so many idle
    // connections for each origin by default (maxFreeSockets), and a pool of a client library
    // seldom has more.
    pooledSockets: 256,
    // Fewer new processes or workers may be a pool as well. Pools seldom have more than a few for
    // each core.
    pooledProcesses: 64,
    // A pool does not fill for longer, because it fills by simultaneous requests. A leak rises for
    // nearly the whole ten minutes of the trend.
    poolSeconds: 540,
    // Timers that grow for a shorter time may be timeouts that have not ended yet. Node.js itself
    // has timeouts of up to five minutes (requestTimeout of http.Server).
    waitingSeconds: 330,
    // Timers of one connection, such as those of its heartbeat.
    timersEach: 2,
    // Clients explain no growth that takes longer, or that was half as fast before the last ten
    // minutes: a load that grows for so long also takes more CPU time.
    clientsSeconds: 600,
    earlierGrowthRatio: 0.5,
    // Limits of a saturated process: its loop is busy nearly all the time, its CPU quota is used up
    // in many periods, or it mostly waits for a CPU. It responds more slowly than clients send, so
    // its work does not show the load. A healthy server with 0.1 of a core used up its quota in a
    // quarter of the periods, and held 260 sockets after 40 s.
    saturatedRatio: 0.98,
    throttledRatio: 0.25,
    queuedRatio: 0.7
  },
  explains: ['js-heap-leak', 'native-memory-leak'],
  explainsBytesEach: MOST_HANDLE_BYTES,
  holds: 'handles',
  runbook: 'MemwatchResourceLeak',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits) {
    const kinds = countKinds(signals)
    if (!kinds.some(({ isKnown }) => isKnown)) {
      return unknown('too few counts of handles yet to see a trend')
    }
    const grown = findGrown(kinds, limits)
    const cause = findCause(kinds, grown, limits)
    if (!cause) return ruleOut(kinds, limits)
    const { name, rise, perSecond, seconds, steady } = cause
    if (steady < limits.levelsOffRatio) {
      return ok(`${name} grew by ${formatNumber(rise)} and level off`, { latest: 'they level off' })
    }
    const told = name === 'open file descriptors' ? findDescriptorKind(signals, limits) : undefined
    const doubts = weighDoubts(signals, limits, cause, told?.name)
    const counted = `${formatNumber(told?.open ?? cause.now)} ${told?.name ?? name}, ` +
      `${formatPerMinute(perSecond)} more ${told ? 'descriptors ' : ''}each minute`
    const isSteady = steady >= limits.steadinessRatio
    const isCertain = steady >= limits.certainSteadinessRatio && doubts.isCertain
    const bound = findBound(signals, limits, cause, doubts.isOfLoad)
    const isSoon = bound?.of === 'descriptors' && bound.secondsLeft < (doubts.waitsSeconds ?? 0)
    if (doubts.waitsSeconds !== null && !isSoon) {
      return unknown(`${counted}: they may belong to requests that wait, because the event loop ` +
        `is busy ${formatRatio(doubts.busy)} of the time`, { waitSeconds: doubts.waitsSeconds })
    }
    const secondsLeft = bound && !bound.isFar ? bound.secondsLeft : null
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      severity: severityOf(bound, doubts.isPressing, limits),
      secondsLeft,
      keeps: isSteady && standsUnderLoad(cause, doubts, limits) &&
        (!doubts.isClients || doubts.kept >= limits.keptWeakRatio),
      standing: `The number of ${told?.name ?? name} grew by ${formatNumber(rise)} in ` +
        `${formatSeconds(seconds)}, ${formatPerMinute(perSecond)} each minute`,
      summary: `${counted}: they pile up${describeDoubts(doubts)}.`,
      finding: {
        kind: name,
        descriptorKind: told?.name,
        perSecond
      },
      evidence: showEvidence(signals, limits, { cause, grown, told, doubts }),
      impact: describeImpact(signals, bound)
    }
  },

  fix ({ kind, descriptorKind, perSecond }, { pid }) {
    const found = KINDS.find(({ name }) => name === kind)
    if (!found) return []
    const told = DESCRIPTOR_KINDS.find(({ name }) => name === descriptorKind)
    const site = (told?.site ?? found.site).replaceAll('PID', String(pid))
    return [
      {
        title: `Find the code that opens ${told?.opened ?? found.name} and does not close them`,
        change: {
          code: `${site} Grows by ${formatPerMinute(perSecond)} a minute: search for work that ` +
            'runs at this rate.'
        },
        predicted: [prediction(`${found.of}PerSecond`, perSecond, 0)],
        risk: 'A higher limit only delays the failure.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {import('./resource-leak-kinds').Count} Count */
/** @typedef {{ kind: string, descriptorKind?: string, perSecond: number }} Finding */

/**
 * Severity by the time to the limit. Handles that the app may need are urgent only if they
 * themselves reach a limit: growing memory has causes and findings of its own.
 * @param {Bound | null} bound
 * @param {boolean} isPressing
 * @param {Limits} limits
 */
const severityOf = (bound, isPressing, limits) =>
  !isPressing && bound?.of !== 'descriptors'
    ? 'warning'
    : severityByTime(bound?.secondsLeft ?? null, limits)

/**
 * Kinds that pile up: first those that grow much and steadily, in the order of KINDS, because the
 * largest of several alike would change at each evaluation.
 * @param {Count[]} kinds
 * @param {Limits} limits
 */
function findGrown (kinds, limits) {
  const weight = (/** @type {Count} */ { steady, rise }) => steady * rise
  const grown = kinds.filter(kind => kind.steady > 0 && isMuch(kind, limits))
  const most = Math.max(...grown.map(weight))
  const isAlike = (/** @type {Count} */ kind) => weight(kind) >= limits.alikeRatio * most
  return [
    ...grown.filter(isAlike),
    ...grown.filter(kind => !isAlike(kind)).sort((a, b) => weight(b) - weight(a))
  ]
}

/**
 * @param {Count} kind
 * @param {Limits} limits
 */
const isMuch = ({ now, rise }, { rise: least, riseShareRatio }) =>
  rise >= least && rise >= riseShareRatio * now

/**
 * Cause of growing descriptors: the kind of resource that opens them. The result is at least as
 * steady as the growth of the descriptors, because the count of the cause may be unsteady: some
 * workers, for example, stay while others come and go. Otherwise the reported cause would
 * alternate.
 * @param {Count[]} kinds
 * @param {Count[]} grown candidates
 * @param {Limits} limits
 * @returns {Count | undefined} undefined if nothing grows
 */
function findCause (kinds, grown, { steadinessRatio, levelsOffRatio, sourceShareRatio }) {
  const worst = grown.find(({ steady }) => steady >= steadinessRatio) ?? grown[0]
  if (!worst?.descriptorsEach) return worst
  // Kinds are compared by rate, not by rise, because they are counted at different intervals and a
  // rise ends at the last count.
  const source = kinds.find(({ steady, descriptorsEach, perSecond }) =>
    steady >= Math.min(levelsOffRatio, worst.steady) &&
    descriptorsEach * perSecond >= sourceShareRatio * worst.perSecond)
  return source ? { ...source, steady: Math.max(source.steady, worst.steady) } : worst
}

/**
 * Rules out a leak if no kind grows by a large share. A leak that continues adds an ever smaller
 * share, so steady growth keeps an earlier finding.
 * @param {Count[]} kinds
 * @param {Limits} limits
 */
function ruleOut (kinds, limits) {
  const young = kinds.find(kind => kind.isYoung && isMuch(kind, limits))
  if (young) {
    const { name, rise, seconds } = young
    return unknown(`${name} grew by ${formatNumber(rise)} in ${formatSeconds(seconds)}: too ` +
      'short to judge', { waitSeconds: secondsUntilSteady(seconds) })
  }
  const grows = kinds.find(({ rise, steady }) =>
    rise >= limits.rise && steady >= limits.steadinessRatio)
  if (!grows) {
    return ok(`no handles that Node.js counts pile up (${listActive(kinds)}); it does not count ` +
      "unref'd timers and watchers")
  }
  const { name, rise, now } = grows
  return ok(`${name} grew by ${formatNumber(rise)}, little beside the ${formatNumber(now)} that ` +
    'are open', { keeps: true })
}

/** @param {Count[]} kinds */
const listActive = kinds =>
  kinds
    .filter(({ isKnown, now }) => isKnown && now > 0)
    .map(({ name, now }) => `${name}: ${formatNumber(now)}`)
    .join(', ') || 'none active'

/**
 * The highest threshold of steadiness that growth has reached.
 * @param {number} steady
 * @param {Limits} limits
 */
const reachedThreshold = (steady, { certainSteadinessRatio, steadinessRatio, levelsOffRatio }) =>
  [certainSteadinessRatio, steadinessRatio].find(step => steady >= step) ?? levelsOffRatio

/**
 * The limit that the growth reaches first. Handles cost memory, too: a worker takes some 10 MiB and
 * only a few descriptors, so workers exhaust memory long before descriptors. A timer has no
 * descriptor, and its function may hold much of the heap.
 * @typedef {{ of: 'descriptors' | 'memory' | 'heap', secondsLeft: number, isFar: boolean }} Bound
 *   isFar: too far away to predict the time
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Count} cause
 * @param {boolean} isOfLoad true: a growing load explains the handles, and fills no memory once it
 *   stops growing
 * @returns {Bound | null} null if no limit is known, or the growth reaches none
 */
function findBound (signals, limits, cause, isOfLoad) {
  const { of: kind, descriptorsEach, perSecond, seconds } = cause
  const { maxFileDescriptors: most, fileDescriptorsOpen, rssRunwayBytes, rssTrend } = signals
  const { liveHeapBytes: live, liveHeapShareRatio: share, liveHeapTrend } = signals
  /** @type {Bound[]} */
  const bounds = []
  const descriptorsPerSecond = signals.fileDescriptorsTrend?.slope ?? perSecond
  if (most !== null && descriptorsEach > 0 && descriptorsPerSecond > 0) {
    const secondsLeft = Math.max(0, most - (fileDescriptorsOpen ?? 0)) / descriptorsPerSecond
    const isFar = timeLeft(secondsLeft, seconds, limits).secondsLeft === null
    bounds.push({ of: 'descriptors', secondsLeft, isFar })
  }
  /**
   * @param {Bound['of']} of
   * @param {number | null} runwayBytes
   * @param {typeof rssTrend} trend of the memory
   */
  const push = (of, runwayBytes, trend) => {
    if (isOfLoad || runwayBytes === null) return
    if ((trend?.steadinessRatio ?? 0) < limits.steadinessRatio) return
    const { slope, seconds } = /** @type {NonNullable<typeof trend>} */ (trend)
    const { secondsLeft } = timeLeft(runwayBytes / slope, seconds, limits)
    if (secondsLeft !== null) bounds.push({ of, secondsLeft, isFar: false })
  }
  // Until the live heap has a trend, all of the growth may be in the heap. Workers and processes
  // have heaps of their own.
  const heapRoomBytes = (signals.heapSizeLimitBytes ?? Infinity) - (live ?? 0)
  const isOutside = (signals.outsideHeapTrend?.slope ?? 0) >=
    limits.outsideShareRatio * (rssTrend?.slope ?? 0)
  const mayBeHeap = kind !== 'children' && kind !== 'threads' &&
    liveHeapTrend === null && !isOutside && heapRoomBytes < (rssRunwayBytes ?? 0)
  if (!mayBeHeap) push('memory', rssRunwayBytes, rssTrend)
  push('heap', live === null || !share ? null : live / share - live, liveHeapTrend)
  return bounds.sort((a, b) => a.secondsLeft - b.secondsLeft)[0] ?? null
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ cause: Count, grown: Count[], told: ReturnType<typeof findDescriptorKind>,
 *   doubts: ReturnType<typeof weighDoubts> }} found
 */
function showEvidence (signals, limits, { cause, grown, told, doubts }) {
  const { name, of, now, rise, perSecond, steady } = cause
  const { listenerWarnings } = signals
  // The cause of other growth needs no rise of its own.
  const least = rise >= limits.rise ? ` (threshold ${formatNumber(limits.rise)})` : ''
  return listEvidence(
    evidence(`${of}Rise`, rise, limits.rise, value =>
      `${value} more ${name} during the trend${least}, ${formatNumber(now)} in total.`),
    told && evidence(told.signal, told.open, 0, value =>
      `At the last count by kind, ${value} of them were ${told.text}.`),
    name === 'threads' && showLoops(signals, limits, rise),
    evidence(`${of}SteadinessRatio`, steady, reachedThreshold(steady, limits), (value, limit) =>
      `Steadiness of the growth: ${value} (threshold ${limit}; 1 is a straight, continuing line; ` +
      'a pool that fills falls towards 0).'),
    ...showDoubts(doubts, limits, cause),
    grown
      .filter(kind => kind.name !== name)
      .map(kind => evidence(`${kind.of}Rise`, kind.rise, limits.rise, value =>
        `${value} more ${kind.name}, too.`)),
    listenerWarnings && evidence('listenerWarnings', listenerWarnings, 0, value =>
      `Node warned of ${value} emitter(s) with too many listeners: code adds listeners per ` +
      'request and does not remove them.'),
    evidence(`${of}PerSecond`, perSecond, 0, () =>
      `${formatPerMinute(perSecond)} more ${name} each minute.`)
  )
}

/**
 * Are the new threads workers?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} threads number of new threads
 */
function showLoops ({ loopDescriptorsTrend }, limits, threads) {
  if (loopDescriptorsTrend === null) return null
  const { rise } = loopDescriptorsTrend
  const least = limits.causeShareRatio * threads
  return evidence('loopDescriptorsRise', rise, least, (value, limit) =>
    rise >= least
      ? `${value} more event loops: the threads are workers of Node.js.`
      : `Only ${value} more event loops (${limit} would be half of the threads): most threads ` +
        'belong to an addon, not to workers of Node.js.')
}

/**
 * @param {Signals} signals
 * @param {Bound | null} bound
 */
function describeImpact (signals, bound) {
  if (bound === null) {
    return 'Each holds memory, in and outside the heap' +
      `${signals.liveHeapTrend?.rise ? ', and the live heap grows with them' : ''}.`
  }
  if (bound.isFar) {
    const most = formatNumber(signals.maxFileDescriptors ?? 0)
    return `At this rate the limit of ${most} open files is more than an hour away: at ` +
      'the limit every accept, connect and open fails (EMFILE).'
  }
  const inTime = `in about ${formatSeconds(bound.secondsLeft)}`
  if (bound.of === 'memory') {
    return `RSS grows by ${formatBytes(signals.rssTrend?.slope ?? 0)}/s and reaches ` +
      `${nameMemoryLimit(signals)} ${inTime}: then the kernel kills the process.`
  }
  if (bound.of === 'heap') {
    return `The live heap grows by ${formatBytes(signals.liveHeapTrend?.slope ?? 0)}/s and reaches ` +
      `the heap size limit ${inTime}: then V8 ends the process.`
  }
  return `The limit of ${formatNumber(signals.maxFileDescriptors ?? 0)} open files is reached ` +
    `${inTime}: then every accept, connect and open fails (EMFILE).`
}

/** @param {number} perSecond */
const formatPerMinute = perSecond => formatNumber(perSecond * SECONDS_PER_MINUTE)
