'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { LASTING_LIMITS, timeLeft } = require('./lasting-growth')
const { URGENCY_LIMITS, severityByTime } = require('./severity')
const {
  DESCRIPTOR_KINDS, KINDS, countKinds, findDescriptorKind
} = require('./resource-leak-kinds')
const { formatBytes, formatNumber, formatRatio, formatSeconds } = require('../text/format')

const SECONDS_PER_MINUTE = 60

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
    'memoryRunwayBytes',
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
    // A load that needs the handles grows with them. A load that grows by less than this share of
    // their growth may be their effect.
    effectShareRatio: 0.5,
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
  explains: ['js-heap-leak', 'heap-limit-thrash'],
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
      return ok(`${name} grew by ${formatNumber(rise)} and level off`)
    }
    const told = name === 'open file descriptors' ? findDescriptorKind(signals, limits) : undefined
    const load = weighLoad(signals, limits, cause, told?.name)
    const isSteady = steady >= limits.steadinessRatio
    const mayBeLoad = load.grows || load.isSaturated || load.isClients
    const isCertain =
      steady >= limits.certainSteadinessRatio && !mayBeLoad && load.mayEnd === null
    const bound = findBound(signals, limits, cause)
    const secondsLeft = bound && !bound.isFar ? bound.secondsLeft : null
    return {
      state: isCertain ? 'confirmed' : 'suspected',
      // The memory of workers and processes has no finding of its own.
      severity: severityOf(
        bound, mayBeLoad || (load.mayEnd !== null && load.mayEnd !== 'processes'), limits
      ),
      secondsLeft,
      keeps: isSteady && causesLoad(cause, load, limits) &&
        (!load.isClients || load.kept >= limits.keptWeakRatio),
      standing: `The number of ${told?.name ?? name} grew by ${formatNumber(rise)} in ` +
        formatSeconds(seconds),
      summary: `${formatNumber(told?.open ?? cause.now)} ${told?.name ?? name}, ` +
        `${formatPerMinute(perSecond)} more ${told ? 'descriptors ' : ''}each minute: they pile ` +
        `up${describeLoad(load)}.`,
      finding: {
        kind: name,
        descriptorKind: told?.name,
        perSecond
      },
      evidence: showEvidence(signals, limits, { cause, grown, told, load }),
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
 * @param {boolean} mayBeNeeded
 * @param {Limits} limits
 */
const severityOf = (bound, mayBeNeeded, limits) =>
  mayBeNeeded && bound?.of !== 'descriptors'
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
  const grown = kinds
    .filter(({ now, rise, steady }) =>
      rise >= limits.rise && rise >= limits.riseShareRatio * now && steady > 0)
  const most = Math.max(...grown.map(weight))
  const isMuch = (/** @type {Count} */ kind) => weight(kind) >= limits.alikeRatio * most
  return [
    ...grown.filter(isMuch),
    ...grown.filter(kind => !isMuch(kind)).sort((a, b) => weight(b) - weight(a))
  ]
}

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
  const grows = kinds.find(({ rise, steady }) =>
    rise >= limits.rise && steady >= limits.steadinessRatio)
  if (!grows) return ok(`no handles pile up (${listActive(kinds)})`)
  const { name, rise, now } = grows
  return ok(`${name} grew by ${formatNumber(rise)}, little beside the ${formatNumber(now)} that ` +
    'are open', { keeps: true })
}

/** @param {Count[]} kinds */
const listActive = kinds =>
  kinds
    .filter(({ isKnown, now }) => isKnown && now > 0)
    .map(({ name, now }) => `${formatNumber(now)} ${name}`)
    .join(', ') || 'none active'

/**
 * Decides if the additional handles follow from a higher load, from clients that connect and stay,
 * from growth that ends by itself, or from a process that cannot keep up with its load.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Count} cause
 * @param {string} [descriptorKind] kind of descriptors, if they are the cause
 */
function weighLoad (signals, limits, cause, descriptorKind) {
  const growthRatio = signals.loadGrowthRatio ?? 1
  const busy = signals.eventLoopUtilizationRatio ?? 0
  const throttled = signals.cpuThrottledRatio ?? 0
  const queued = signals.runQueueWaitRatio ?? 0
  const grows = growthRatio >= limits.loadGrowthRatio
  const isSaturated = busy >= limits.saturatedRatio || throttled >= limits.throttledRatio ||
    queued >= limits.queuedRatio
  const kept = signals.connectionsKeptRatio ?? 0
  const isClients = cause.seconds < limits.clientsSeconds &&
    (signals.socketsEarlierGrowthRatio ?? 0) < limits.earlierGrowthRatio &&
    kept >= limits.keptLeastRatio &&
    isOfConnections(signals, limits, { cause, kept, descriptorKind })
  const mayEnd = findEnd(limits, cause, descriptorKind)
  return { growthRatio, grows, busy, throttled, queued, isSaturated, kept, isClients, mayEnd }
}

/**
 * The reason why the growth may end by itself.
 * @param {Limits} limits
 * @param {Count} cause
 * @param {string} [descriptorKind]
 * @returns {'sockets' | 'processes' | 'timeouts' | null} null if nothing suggests it
 */
function findEnd (limits, { of, rise, risingSeconds }, descriptorKind) {
  if (of === 'timers') return risingSeconds < limits.waitingSeconds ? 'timeouts' : null
  if (risingSeconds >= limits.poolSeconds) return null
  switch (of) {
    case 'children':
    case 'threads': return rise < limits.pooledProcesses ? 'processes' : null
    case 'sockets': return rise < limits.pooledSockets ? 'sockets' : null
    default:
      return descriptorKind === 'inactive sockets' && rise < limits.pooledSockets ? 'sockets' : null
  }
}

/** Texts of reasons why growth may end by itself: in the summary, and as evidence. */
const ENDS = Object.freeze({
  sockets: {
    text: 'a pool of connections fills',
    /** @param {Limits} limits */
    why: ({ pooledSockets }) => 'A pool may fill: an http.Agent of Node.js keeps up to ' +
      `${pooledSockets} idle connections for each origin.`
  },
  processes: {
    text: 'a pool fills',
    /** @param {Limits} limits */
    why: ({ pooledProcesses }) => `A pool may fill: fewer than ${pooledProcesses} are new.`
  },
  timeouts: {
    text: 'timeouts that have not ended yet',
    why: () => 'They may be timeouts that wait: Node.js itself has timeouts of up to five ' +
      'minutes, and only an interval never ends by itself.'
  }
})

/**
 * Could the handles belong to the connections that servers accepted?
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ cause: Count, kept: number, descriptorKind: string | undefined }} found kept: new
 *   sockets for each accepted connection
 */
function isOfConnections (signals, limits, { cause, kept, descriptorKind }) {
  const sockets = signals.socketsTrend?.slope ?? 0
  // Sockets that nothing waits for show only as descriptors.
  const open = Math.max(sockets, signals.fileDescriptorsTrend?.slope ?? 0)
  if (kept * open > limits.keptMostRatio * sockets) return false
  switch (cause.of) {
    case 'sockets': return true
    case 'timers': return cause.perSecond <= limits.timersEach * sockets
    case 'fileDescriptors':
      return descriptorKind === undefined || descriptorKind === 'inactive sockets'
    default: return false
  }
}

/**
 * The highest threshold of steadiness that growth has reached.
 * @param {number} steady
 * @param {Limits} limits
 */
const reachedThreshold = (steady, { certainSteadinessRatio, steadinessRatio, levelsOffRatio }) =>
  [certainSteadinessRatio, steadinessRatio].find(step => steady >= step) ?? levelsOffRatio

/** @param {ReturnType<typeof weighLoad>} load */
function describeLoad ({ grows, isSaturated, isClients, mayEnd }) {
  if (isClients) return ', or clients connect and stay'
  if (grows || isSaturated) return ', or the load needs them'
  return mayEnd ? `, or ${ENDS[mayEnd].text}` : ''
}

/**
 * True if the handles grew much more than the load, so that they may cause it. Then a growing load
 * does not refute what was confirmed before.
 * @param {Count} cause
 * @param {ReturnType<typeof weighLoad>} load
 * @param {Limits} limits
 */
const causesLoad = ({ now, rise }, { growthRatio, isSaturated }, { effectShareRatio }) =>
  !isSaturated && growthRatio - 1 < effectShareRatio * rise / Math.max(1, now - rise)

/**
 * The limit that the growth reaches first. Handles cost memory, too: a worker takes some 10 MiB and
 * only a few descriptors, so workers exhaust memory long before descriptors. A timer has no
 * descriptor, and its function may hold much of the heap.
 * @typedef {{ of: 'descriptors' | 'memory' | 'heap', secondsLeft: number, isFar: boolean }} Bound
 *   isFar: too far away to predict the time
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Count} cause
 * @returns {Bound | null} null if no limit is known, or the growth reaches none
 */
function findBound (signals, limits, { of: kind, descriptorsEach, perSecond, seconds }) {
  const { maxFileDescriptors: most, fileDescriptorsOpen, memoryRunwayBytes, rssTrend } = signals
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
    if (runwayBytes === null || (trend?.steadinessRatio ?? 0) < limits.steadinessRatio) return
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
    liveHeapTrend === null && !isOutside && heapRoomBytes < (memoryRunwayBytes ?? 0)
  if (!mayBeHeap) push('memory', memoryRunwayBytes, rssTrend)
  push('heap', live === null || !share ? null : live / share - live, liveHeapTrend)
  return bounds.sort((a, b) => a.secondsLeft - b.secondsLeft)[0] ?? null
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {{ cause: Count, grown: Count[], told: ReturnType<typeof findDescriptorKind>,
 *   load: ReturnType<typeof weighLoad> }} found
 */
function showEvidence (signals, limits, { cause, grown, told, load }) {
  const { name, of, now, rise, perSecond, steady } = cause
  const { listenerWarnings } = signals
  const waits = load.throttled > 0
    ? `, and the CPU quota used up in ${formatRatio(load.throttled)} of its periods`
    : load.queued > 0 ? `, and it waits for a CPU ${formatRatio(load.queued)} of the time` : ''
  const ends = load.mayEnd && ENDS[load.mayEnd]
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
    evidence('loadGrowthRatio', load.growthRatio, limits.loadGrowthRatio, (value, limit) =>
      load.grows
        ? `The thread's work grows as well (CPU time or allocation, ${value} of its former ` +
          `amount, threshold ${limit}): a growing load may need them, or they cause the work.`
        : `The load does not grow: CPU time and allocation are at most ${value} of their former ` +
          'amounts.'),
    load.isClients && evidence('connectionsKeptRatio', load.kept, limits.keptLeastRatio, () =>
      `${formatNumber(load.kept)} new sockets for each connection that servers accepted ` +
      `meanwhile (clients explain up to ${formatNumber(limits.keptMostRatio)}): clients may ` +
      'connect and stay, such as browsers with a WebSocket, and the app may open connections for ' +
      'them.'),
    ends && evidence(`${of}Rise`, rise, limits.rise, () => ends.why(limits)),
    load.isSaturated &&
      evidence('eventLoopUtilizationRatio', load.busy, limits.saturatedRatio, value =>
        `The event loop is busy ${value} of the time${waits}: unanswered requests pile up ` +
        'as well.'),
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
    return `At this rate the limit of ${formatNumber(signals.maxFileDescriptors ?? 0)} open files ` +
      'is more than an hour away: at the limit every accept, connect and open fails (EMFILE).'
  }
  const inTime = `in about ${formatSeconds(bound.secondsLeft)}`
  if (bound.of === 'memory') {
    const limit = signals.containerLimitBytes === null ? "the machine's memory" : 'the container limit'
    return `RSS grows by ${formatBytes(signals.rssTrend?.slope ?? 0)}/s and reaches ${limit} ` +
      `${inTime}: then the kernel kills the process.`
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
