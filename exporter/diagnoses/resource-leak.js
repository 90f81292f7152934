'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { formatNumber, formatRatio, formatSeconds } = require('../text/format')

const SECONDS_PER_MINUTE = 60

/** What can pile up: the signals that tell, whether each takes a descriptor, and where to look for it. */
const KINDS = Object.freeze(/** @type {const} */ ([
  {
    name: 'sockets and pipes',
    countsDescriptors: true,
    signals: ['socketsOpen', 'socketsRise', 'socketsPerSecond', 'socketsSteadinessRatio'],
    site: 'Look for connections that are opened per request and never ended: clients without keepAlive limits, responses whose body is never read or cancelled, servers without a timeout for idle clients. `ss -tnp` tells whom they are connected to.'
  },
  {
    name: 'active timers',
    countsDescriptors: false,
    signals: ['timersActive', 'timersRise', 'timersPerSecond', 'timersSteadinessRatio'],
    site: 'Look for setInterval without clearInterval in code that runs per request or per connection, and for timeouts that are not cleared when the work is done.'
  },
  {
    name: 'file watchers',
    countsDescriptors: false,
    signals: ['watchersActive', 'watchersRise', 'watchersPerSecond', 'watchersSteadinessRatio'],
    site: 'Look for fs.watch and fs.watchFile in code that runs more than once: close() each, or keep one watcher per file.'
  },
  {
    name: 'child processes and workers',
    countsDescriptors: false,
    signals: ['childrenAlive', 'childrenRise', 'childrenPerSecond', 'childrenSteadinessRatio'],
    site: 'Look for spawn, fork and new Worker without an end: terminate() or kill() each, close message ports, or keep a pool.'
  },
  {
    name: 'open file descriptors',
    countsDescriptors: true,
    signals: ['fileDescriptorsOpen', 'fileDescriptorsRise', 'fileDescriptorsPerSecond', 'fileDescriptorsSteadinessRatio'],
    site: 'Look for fs.open, fs.openSync and createReadStream whose close is skipped on some path: an early return, an error, a stream that is never read to its end. `ls -l /proc/PID/fd` names the files.'
  }
]))

module.exports = defineDiagnosis({
  id: 'resource-leak',
  title: 'Handles pile up: sockets, timers, watchers or descriptors',
  severity: 'warning',
  scope: 'isolate',
  requires: [],
  uses: [...KINDS.flatMap(({ signals }) => signals), 'maxFileDescriptors', 'listenerWarnings', 'loadGrowthRatio', 'liveHeapRiseBytes', 'eventLoopUtilizationRatio', 'cpuThrottledRatio'],
  limits: {
    // Fewer are a pool, not a pile.
    rise: 40,
    // Of all there are, so many came since: what is kept on purpose was there before.
    riseShareRatio: 0.4,
    // Straight and not slowing down: leaks measure 0.8–1, pools that fill fall towards 0.
    steadinessRatio: 0.6,
    // Below this what grew levels off: a pool that has filled.
    levelsOffRatio: 0.3,
    // With a load that grows like this, more handles are what it takes.
    loadGrowthRatio: 1.25,
    // A loop that is busy all the time, or a quota that is used up in nearly all of its periods: it answers more slowly
    // than it is asked, and the load cannot show in it. A healthy server with 0.1 of a core held 257 sockets after a minute.
    saturatedRatio: 0.98,
    throttledRatio: 0.9
  },
  explains: ['js-heap-leak', 'heap-limit-thrash'],
  runbook: 'MemwatchResourceLeak',

  judge (signals, limits) {
    const kinds = KINDS.map(({ name, countsDescriptors, signals: [now, rise, perSecond, steady] }) => ({
      name,
      countsDescriptors,
      now: signals[now],
      rise: signals[rise],
      perSecond: signals[perSecond],
      steady: signals[steady] ?? 0,
      riseSignal: rise,
      perSecondSignal: perSecond,
      steadySignal: steady
    }))
    const known = kinds.filter(({ rise }) => rise !== null)
    if (known.length === 0) return { state: 'unknown', summary: 'too few counts of handles yet to see a trend' }
    const grown = known.filter(({ now, rise, steady }) => (rise ?? 0) >= limits.rise && (rise ?? 0) >= limits.riseShareRatio * (now ?? 0) && steady > 0)
      .sort((a, b) => b.steady * (b.rise ?? 0) - a.steady * (a.rise ?? 0))
    const worst = grown.find(({ steady }) => steady >= limits.steadinessRatio) ?? grown[0]
    if (!worst) {
      const counts = known.filter(({ now }) => (now ?? 0) > 0).map(({ name, now }) => `${formatNumber(now ?? 0)} ${name}`)
      return { state: 'ok', summary: `no handles pile up (${counts.join(', ') || 'none active'})` }
    }
    if (worst.steady < limits.levelsOffRatio) {
      return { state: 'ok', summary: `${worst.name} grew by ${formatNumber(worst.rise ?? 0)} and level off` }
    }
    const loadGrows = (signals.loadGrowthRatio ?? 1) >= limits.loadGrowthRatio
    const busy = signals.eventLoopUtilizationRatio ?? 0
    const throttled = signals.cpuThrottledRatio ?? 0
    const isSaturated = busy >= limits.saturatedRatio || throttled >= limits.throttledRatio
    const { maxFileDescriptors } = signals
    const secondsLeft = maxFileDescriptors !== null && worst.countsDescriptors ? (maxFileDescriptors - (signals.fileDescriptorsOpen ?? 0)) / (worst.perSecond ?? 1) : null
    return {
      state: worst.steady >= limits.steadinessRatio && !loadGrows && !isSaturated ? 'confirmed' : 'suspected',
      summary: `${formatNumber(worst.now ?? 0)} ${worst.name}, ${formatPerMinute(worst.perSecond ?? 0)} more each minute, and none is given up.`,
      finding: { kind: worst.name, perSecond: worst.perSecond ?? 0, loadGrowthRatio: signals.loadGrowthRatio },
      evidence: [
        evidence(worst.riseSignal, worst.rise ?? 0, limits.rise, (value, limit) => `${value} more ${worst.name} along the line (from ${limit} on they count), of ${formatNumber(worst.now ?? 0)} in all.`),
        evidence(worst.steadySignal, worst.steady, limits.steadinessRatio, (value, limit) => `Straight and not slowing down: ${value}, from ${limit} on it goes on; a pool that fills falls below.`),
        evidence('loadGrowthRatio', signals.loadGrowthRatio ?? 1, limits.loadGrowthRatio, (value, limit) => loadGrows ? `The load grows as well (${value} of what it was, ${limit} counts): they may be what it takes.` : `The load does not grow with them: ${value} of what it was.`),
        ...(isSaturated ? [evidence('eventLoopUtilizationRatio', busy, limits.saturatedRatio, value => `The event loop is busy ${value} of the time${throttled > 0 ? `, and the CPU quota used up in ${formatRatio(throttled)} of its periods` : ''}: what is asked faster than it is answered piles up as well.`)] : []),
        ...grown.filter(kind => kind !== worst).map(kind => evidence(kind.riseSignal, kind.rise ?? 0, limits.rise, value => `${value} more ${kind.name}, too.`)),
        ...(signals.listenerWarnings ? [evidence('listenerWarnings', signals.listenerWarnings, 0, value => `Node warned of ${value} emitter(s) with too many listeners: what is added per request is not removed.`)] : []),
        evidence(worst.perSecondSignal, worst.perSecond ?? 0, 0, () => `${formatPerMinute(worst.perSecond ?? 0)} more ${worst.name} each minute.`)
      ],
      impact: secondsLeft === null
        ? `Each holds memory, in and outside the heap${signals.liveHeapRiseBytes ? ', and the live heap grows with them' : ''}.`
        : `The limit of ${formatNumber(maxFileDescriptors ?? 0)} open files is reached in about ${formatSeconds(secondsLeft)}: then every accept, connect and open fails (EMFILE).`
    }
  },

  fix ({ kind, perSecond, loadGrowthRatio }) {
    const found = KINDS.find(({ name }) => name === kind)
    if (!found) return []
    const [, , perSecondSignal] = found.signals
    return [{
      title: `Find who opens ${found.name} and does not close them`,
      change: { code: `${found.site} Grows by ${formatPerMinute(perSecond)} a minute: what else happens at that rate?` },
      predicted: [prediction(perSecondSignal, perSecond, 0)],
      risk: `A higher limit of open files only moves the failure${loadGrowthRatio === null ? '' : `; the load changed to ${formatRatio(loadGrowthRatio)} of what it was meanwhile`}.`
    }]
  }
})

/** @param {number} perSecond */
const formatPerMinute = perSecond => formatNumber(perSecond * SECONDS_PER_MINUTE)
