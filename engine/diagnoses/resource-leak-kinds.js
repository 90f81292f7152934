'use strict'

/**
 * Kinds of resources that can pile up: their signals, the least number of descriptors of each, and
 * advice on where to search. Causes come first: workers and child processes open sockets, pipes and
 * descriptors.
 */
const KINDS = Object.freeze(
  /** @type {const} */ ([
    {
      name: 'child processes and workers',
      // A child has two or three pipes to its parent, which are sockets on Linux.
      descriptorsEach: 2,
      now: 'childrenAlive',
      of: 'children',
      trend: 'childrenTrend',
      site: 'Search for spawn, fork and new Worker that never end: call terminate() or kill(), ' +
        'or use a pool.'
    },
    {
      name: 'threads',
      // A worker has an event poll, an event descriptor and two ends of a pipe. io_uring adds one
      // descriptor, and the agent in the worker two.
      descriptorsEach: 5,
      now: 'threadsRunning',
      of: 'threads',
      trend: 'threadsTrend',
      site: 'Search for a pool of workers that is created per request instead of once (new ' +
        'Piscina, new Tinypool, new Worker), and end it with destroy() or terminate(). ' +
        'process.getActiveResourcesInfo() does not list waiting workers. If the app creates no ' +
        'Worker, an addon starts the threads: `ls /proc/PID/task` lists them, `comm` in each ' +
        'folder has the name.'
    },
    {
      // A worker with a listener has a port as well, and is a thread.
      name: 'message ports',
      descriptorsEach: 0,
      now: 'messagePortsActive',
      of: 'messagePorts',
      trend: 'messagePortsTrend',
      site: 'Search for new MessageChannel and new BroadcastChannel in code that runs more than ' +
        'once: close() one port of each channel after its last message. If threads pile up as ' +
        'well, the ports are those of workers.'
    },
    {
      name: 'file watchers',
      descriptorsEach: 0,
      now: 'watchersActive',
      of: 'watchers',
      trend: 'watchersTrend',
      site: 'Search for fs.watch and fs.watchFile in code that runs more than once: close() each ' +
        'watcher, or keep one for each file.'
    },
    {
      name: 'sockets and pipes',
      descriptorsEach: 1,
      now: 'socketsOpen',
      of: 'sockets',
      trend: 'socketsTrend',
      site: 'Search for connections that are opened per request and never closed: clients ' +
        'without keepAlive limits, responses whose body is never read or cancelled, servers ' +
        'without a timeout for idle clients, UDP sockets that are not closed on one path, such ' +
        'as after a timeout. `ss -tunp` lists their peers.'
    },
    {
      name: 'active timers',
      descriptorsEach: 0,
      now: 'timersActive',
      of: 'timers',
      trend: 'timersTrend',
      site: 'Search for setInterval without clearInterval in code that runs per request or per ' +
        'connection, and for timeouts that are not cleared when the work is done.'
    },
    {
      name: 'open file descriptors',
      descriptorsEach: 1,
      now: 'fileDescriptorsOpen',
      of: 'fileDescriptors',
      trend: 'fileDescriptorsTrend',
      site: 'Their kind is unknown: `ls -l /proc/PID/fd` lists them. If they are sockets, search ' +
        'for clients and agents that are created per request. If they are files, search for ' +
        'fs.open, fs.openSync and createReadStream that some path does not close.'
    }
  ])
)

/**
 * Kinds of descriptors: their names in sentences about open ones, and about the code that opens
 * them; advice on where to search.
 */
const DESCRIPTOR_KINDS = Object.freeze(
  /** @type {const} */ ([
    {
      name: 'open sockets',
      opened: 'sockets',
      open: 'socketDescriptorsOpen',
      trend: 'socketDescriptorsTrend',
      text: 'sockets. Node.js does not list idle connections of an http.Agent as active',
      site: 'They are sockets that nothing waits for. Search for `new http.Agent`, `new ' +
        'https.Agent`, `new Agent` of undici, `dgram.createSocket` or a client that is created ' +
        'per request, such as one of gRPC, HTTP/2, a database or StatsD. Create one and share ' +
        'it, and destroy() or close() unused ones. `ss -tunp` lists their peers.'
    },
    {
      name: 'pipes',
      opened: 'pipes',
      open: 'pipeDescriptorsOpen',
      trend: 'pipeDescriptorsTrend',
      text: 'pipes',
      site: 'They are pipes. Search for child processes whose stdio is never closed, and for ' +
        'workers that are never terminated.'
    },
    {
      name: 'open files',
      opened: 'files',
      open: 'fileDescriptorsOfFiles',
      trend: 'fileDescriptorsOfFilesTrend',
      text: 'files',
      site: 'They are files. Search for fs.open, fs.openSync and createReadStream that some path ' +
        'does not close: an early return, an error, a stream that is never read to its end. `ls ' +
        '-l /proc/PID/fd` names the files.'
    }
  ])
)

/** @typedef {import('./resource-leak').Limits} Limits */
/** @typedef {import('./resource-leak').Signals} Signals */

/**
 * Present count of one kind.
 * @typedef {{ name: string, of: typeof KINDS[number]['of'], descriptorsEach: number,
 *   isKnown: boolean, isYoung: boolean, now: number, rise: number, perSecond: number,
 *   seconds: number, risingSeconds: number, steady: number, loadGrowth: number }} Count
 *   isYoung: true if the trend is too short to judge; seconds: length of the trend; risingSeconds:
 *   time in which the count rose, at most that length; loadGrowth: of the load in that length, 1 if
 *   it is steady
 */

/**
 * @param {Signals} signals
 * @returns {Count[]} zeros if unknown
 */
const countKinds = signals =>
  KINDS.map(({ name, descriptorsEach, now, of, trend: trendName }) => {
    const trend = signals[trendName]
    return {
      name,
      of,
      descriptorsEach,
      isKnown: trend !== null,
      isYoung: trend?.steadinessRatio === null,
      now: signals[now] ?? 0,
      rise: trend?.rise ?? 0,
      perSecond: trend?.slope ?? 0,
      seconds: trend?.seconds ?? 0,
      risingSeconds: trend?.risingSeconds ?? 0,
      steady: trend?.steadinessRatio ?? 0,
      loadGrowth: trend?.loadGrowth ?? 1
    }
  })

/**
 * Kind that has most of the new descriptors. Before any kind grew, it is the kind that has most of
 * all open descriptors.
 * @param {Signals} signals
 * @param {Limits} limits
 */
function findDescriptorKind (signals, { causeShareRatio }) {
  const counted = DESCRIPTOR_KINDS.map(kind => ({
    name: kind.name,
    text: kind.text,
    signal: kind.open,
    open: signals[kind.open] ?? 0,
    rise: Math.max(0, signals[kind.trend]?.rise ?? 0)
  }))
  const rise = counted.reduce((sum, kind) => sum + kind.rise, 0)
  return rise > 0
    ? counted.find(kind => kind.rise > causeShareRatio * rise)
    : counted.find(kind => kind.open > causeShareRatio * (signals.fileDescriptorsOpen ?? Infinity))
}

module.exports = { DESCRIPTOR_KINDS, KINDS, countKinds, findDescriptorKind }
