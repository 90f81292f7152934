'use strict'

const { evidence } = require('./evidence')
const { formatNumber, formatRatio, formatSeconds } = require('../text/format')

/** @typedef {import('./resource-leak').Limits} Limits */
/** @typedef {import('./resource-leak').Signals} Signals */
/** @typedef {import('./resource-leak-kinds').Count} Count */

/**
 * The load is compared by the means of the first and the last third of a time. On a straight line,
 * the mean of a third lies in its middle, so these means differ by two thirds of the rise.
 */
const THIRD_MIDDLE_RATIO = 1 / 6
const THIRDS_APART_RATIO = 2 / 3

/** Kinds that requests need while they wait for their answers. @type {readonly string[]} */
const OF_REQUESTS = Object.freeze(['sockets', 'timers', 'fileDescriptors'])

/**
 * Decides if the additional handles follow from a higher load, from clients that connect and stay,
 * from growth that ends by itself, or from a process that cannot keep up with its load.
 * `isCertain`: nothing of that is likely. `isPressing`: the time to any limit is urgent.
 * `waitsSeconds`: the time for which requests that wait may still explain the handles, because the
 * loop is busy all the time; null if they do not.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Count} cause
 * @param {string} [descriptorKind] kind of descriptors, if they are the cause
 */
function weighDoubts (signals, limits, cause, descriptorKind) {
  const growthRatio = signals.loadGrowthRatio ?? 1
  const busy = signals.eventLoopUtilizationRatio ?? 0
  const throttled = signals.cpuThrottledRatio ?? 0
  const queued = signals.runQueueWaitRatio ?? 0
  const isSaturated = busy >= limits.saturatedRatio || throttled >= limits.throttledRatio ||
    queued >= limits.queuedRatio
  const growsNow = growthRatio >= limits.loadGrowthRatio
  // A load that rises for an hour hardly moves within the last ten minutes.
  const thirds = {
    now: cause.now - THIRD_MIDDLE_RATIO * cause.rise, rise: THIRDS_APART_RATIO * cause.rise
  }
  const mayExplain = cause.seconds > limits.slowSeconds &&
    cause.loadGrowth >= limits.loadGrowthRatio && !causesLoad(thirds, cause.loadGrowth, limits)
  // Files that are open for a request follow the requests. Clients that stay, or download slowly,
  // need more handles without more load.
  const sockets = signals.socketsTrend?.slope ?? 0
  const outgrows = descriptorKind === 'open files' && !isSaturated && !mayExplain &&
    sockets < limits.socketsEachFile * cause.perSecond && causesLoad(cause, growthRatio, limits)
  const grows = (growsNow || mayExplain) && !outgrows
  const explains = mayExplain || (growsNow && !causesLoad(cause, growthRatio, limits))
  const kept = signals.connectionsKeptRatio ?? 0
  const isClients = cause.seconds < limits.clientsSeconds &&
    (signals.socketsEarlierGrowthRatio ?? 0) < limits.earlierGrowthRatio &&
    kept >= limits.keptLeastRatio &&
    isOfConnections(signals, limits, { cause, kept, descriptorKind })
  const mayEnd = findEnd(limits, cause, descriptorKind)
  const mayWait = busy >= limits.saturatedRatio && OF_REQUESTS.includes(cause.of) &&
    descriptorKind !== 'open files' && cause.risingSeconds < limits.waitingSeconds
  const mayBeLoad = grows || isSaturated || isClients
  return {
    growthRatio,
    growsNow,
    grows,
    // The memory of workers and processes is no memory of their requests.
    isOfLoad: grows && explains && cause.of !== 'children' && cause.of !== 'threads',
    busy,
    throttled,
    queued,
    isSaturated,
    kept,
    isClients,
    mayEnd,
    // Requests wait until they time out. Longer growth has another cause.
    waitsSeconds: mayWait ? limits.waitingSeconds - cause.risingSeconds : null,
    isCertain: !mayBeLoad && mayEnd === null,
    // The memory of workers and processes has no finding of its own.
    isPressing: !mayBeLoad && (mayEnd === null || mayEnd === 'processes')
  }
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
      return descriptorKind === 'open sockets' && rise < limits.pooledSockets ? 'sockets' : null
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
    text: 'are timeouts that have not ended yet',
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
      return descriptorKind === undefined
    default: return false
  }
}

/** @param {ReturnType<typeof weighDoubts>} doubts */
function describeDoubts ({ grows, isSaturated, isClients, mayEnd }) {
  if (isClients) return ', or clients connect and stay'
  if (grows || isSaturated) return ', or the load needs them'
  return mayEnd ? `, or ${ENDS[mayEnd].text}` : ''
}

/**
 * Evidence for each doubt, and for a load that does not grow.
 * @param {ReturnType<typeof weighDoubts>} doubts
 * @param {Limits} limits
 * @param {Count} cause
 */
function showDoubts (doubts, limits, cause) {
  const { of, rise } = cause
  const waits = doubts.throttled > 0
    ? `, and the CPU limit used up in ${formatRatio(doubts.throttled)} of its periods`
    : doubts.queued > 0 ? `, and it waits for a CPU ${formatRatio(doubts.queued)} of the time` : ''
  const ends = doubts.mayEnd && ENDS[doubts.mayEnd]
  return [
    showLoad(doubts, limits, cause),
    doubts.isClients && evidence('connectionsKeptRatio', doubts.kept, limits.keptLeastRatio, () =>
      `${formatNumber(doubts.kept)} new sockets for each connection that servers accepted ` +
      `meanwhile (clients explain up to ${formatNumber(limits.keptMostRatio)}): clients may ` +
      'connect and stay, such as browsers with a WebSocket, and the app may open connections for ' +
      'them.'),
    ends && evidence(`${of}Rise`, rise, limits.rise, () => ends.why(limits)),
    doubts.isSaturated &&
      evidence('eventLoopUtilizationRatio', doubts.busy, limits.saturatedRatio, value =>
        `The event loop is busy ${value} of the time${waits}: unanswered requests pile up ` +
        'as well.')
  ]
}

/**
 * @param {ReturnType<typeof weighDoubts>} doubts
 * @param {Limits} limits
 * @param {Count} cause
 */
function showLoad ({ grows, growsNow, growthRatio }, limits, { seconds, loadGrowth }) {
  // The load of the whole growth is shown where it decided.
  const decided = grows && !growsNow ? loadGrowth : growthRatio
  return evidence('loadGrowthRatio', decided, limits.loadGrowthRatio, (value, limit) => {
    if (grows && growsNow) {
      return `The thread's work grows as well (CPU time or allocation, ${value} of its former ` +
        `amount, threshold ${limit}): a growing load may need them, or they cause the work.`
    }
    if (grows) {
      return `In the ${formatSeconds(seconds)} of the growth, CPU time or allocation rose to ` +
        `${value} of its former amount (threshold ${limit}): a growing load may need them.`
    }
    return growsNow
      ? 'The load grows much less than the open files: CPU time and allocation are at most ' +
        `${value} of their former amounts.`
      : `The load does not grow: CPU time and allocation are at most ${value} of their former ` +
        'amounts.'
  })
}

/**
 * True if the handles grew much more than the load, so that they may cause it.
 * @param {Pick<Count, 'now' | 'rise'>} cause
 * @param {number} growthRatio of the load
 * @param {Limits} limits
 */
const causesLoad = ({ now, rise }, growthRatio, { effectShareRatio }) =>
  growthRatio - 1 < effectShareRatio * rise / Math.max(1, now - rise)

/**
 * True if a growing load does not refute what was confirmed before.
 * @param {Count} cause
 * @param {ReturnType<typeof weighDoubts>} doubts
 * @param {Limits} limits
 */
const standsUnderLoad = (cause, { growthRatio, isSaturated }, limits) =>
  !isSaturated && causesLoad(cause, growthRatio, limits)

module.exports = { describeDoubts, showDoubts, standsUnderLoad, weighDoubts }
