'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { URGENCY_LIMITS, severityByTime } = require('./severity')
const { formatNumber, formatRatio, formatSeconds } = require('../text/format')

const SECONDS_PER_MINUTE = 60

/**
 * What can pile up: the signals that tell, how many descriptors each takes at least, and where to
 * look for it. Causes first: workers and children bring sockets, pipes and descriptors with them.
 */
const KINDS = Object.freeze(
  /** @type {const} */ ([
    {
      name: 'child processes and workers',
      // A child has two or three pipes to its parent, which are sockets on Linux.
      descriptorsEach: 2,
      now: 'childrenAlive',
      of: 'children',
      site: 'Look for spawn, fork and new Worker without an end: terminate() or kill() each, ' +
        'close message ports, or keep a pool.'
    },
    {
      name: 'threads',
      // A worker has an event poll, an event descriptor and two ends of a pipe; io_uring makes it
      // five.
      descriptorsEach: 4,
      now: 'threadsRunning',
      of: 'threads',
      site: 'Look for a pool of workers that is made per request instead of once (new Piscina, ' +
        'new Tinypool, new Worker), and end each with destroy() or terminate(): ' +
          'process.getActiveResourcesInfo() does not name workers that wait, as they are ' +
            "unref'd. Where no Worker is made, an addon starts the threads: `ls /proc/PID/task` " +
              'lists them, `comm` in each says its name.'
    },
    {
      name: 'file watchers',
      descriptorsEach: 0,
      now: 'watchersActive',
      of: 'watchers',
      site: 'Look for fs.watch and fs.watchFile in code that runs more than once: close() each, ' +
        'or keep one watcher per file.'
    },
    {
      name: 'sockets and pipes',
      descriptorsEach: 1,
      now: 'socketsOpen',
      of: 'sockets',
      site: 'Look for connections that are opened per request and never ended: clients without ' +
        'keepAlive limits, responses whose body is never read or cancelled, servers without a ' +
          'timeout for idle clients. `ss -tnp` tells whom they are connected to.'
    },
    {
      name: 'active timers',
      descriptorsEach: 0,
      now: 'timersActive',
      of: 'timers',
      site: 'Look for setInterval without clearInterval in code that runs per request or per ' +
        'connection, and for timeouts that are not cleared when the work is done.'
    },
    {
      name: 'open file descriptors',
      descriptorsEach: 1,
      now: 'fileDescriptorsOpen',
      of: 'fileDescriptors',
      site: 'Which kind they are is not known: `ls -l /proc/PID/fd` tells. Sockets: look for ' +
        'clients and agents that are made per request. Files: for fs.open, fs.openSync and ' +
          'createReadStream whose close is skipped on some path.'
    }
  ])
)

/** Descriptors by kind: which of them grew, in words, and where to look for it. */
const DESCRIPTOR_KINDS = Object.freeze(
  /** @type {const} */ ([
    {
      name: 'idle sockets',
      open: 'socketDescriptorsOpen',
      trend: 'socketDescriptorsTrend',
      text: "sockets, which the event loop does not wait for: they are unref'd, as idle " +
        'connections of an http.Agent are',
      site: 'They are sockets that no request uses. Look for `new http.Agent`, `new ' +
        'https.Agent`, `new Agent` of undici or a client that is made per request: make one, ' +
          'share it, and destroy() those that are not needed any more. `ss -tnp` tells whom ' +
            'they are connected to.'
    },
    {
      name: 'pipes',
      open: 'pipeDescriptorsOpen',
      trend: 'pipeDescriptorsTrend',
      text: 'pipes',
      site: 'They are pipes. Look for child processes whose stdio is never closed, and for ' +
        'workers that are started and not terminated.'
    },
    {
      name: 'open files',
      open: 'fileDescriptorsOfFiles',
      trend: 'fileDescriptorsOfFilesTrend',
      text: 'files',
      site: 'They are files. Look for fs.open, fs.openSync and createReadStream whose close is ' +
        'skipped on some path: an early return, an error, a stream that is never read to its ' +
          'end. `ls -l /proc/PID/fd` names the files.'
    }
  ])
)

module.exports = defineDiagnosis({
  id: 'resource-leak',
  title: 'Handles pile up: sockets, timers, watchers, threads or descriptors',
  severity: 'critical',
  scope: 'isolate',
  requires: [],
  uses: [
    ...KINDS.flatMap(({ now, of }) => [now, /** @type {const} */ (`${of}Trend`)]),
    ...DESCRIPTOR_KINDS.flatMap(({ open, trend }) => [open, trend]),
    'loopDescriptorsOpen',
    'loopDescriptorsTrend',
    'maxFileDescriptors',
    'listenerWarnings',
    'loadGrowthRatio',
    'liveHeapTrend',
    'eventLoopUtilizationRatio',
    'cpuThrottledRatio'
  ],
  limits: {
    // Fewer are a pool, not a pile.
    rise: 40,
    // Of all there are, so many came since: what is kept on purpose was there before.
    riseShareRatio: 0.4,
    // Straight and not slowing down: leaks measure 0.8–1, pools that fill fall towards 0.
    steadinessRatio: 0.6,
    // Below this what grew levels off: a pool that has filled.
    levelsOffRatio: 0.3,
    ...URGENCY_LIMITS,
    // With a load that grows like this, more handles are what it takes.
    loadGrowthRatio: 1.25,
    // What accounts for more of the new descriptors than this is their cause, or their kind.
    causeShareRatio: 0.5,
    // A loop that is busy all the time, or a quota that is used up in nearly all of its periods: it
    // answers more slowly than it is asked, and the load cannot show in it. A healthy server with
    // 0.1 of a core held 257 sockets after a minute.
    saturatedRatio: 0.98,
    throttledRatio: 0.9
  },
  explains: ['js-heap-leak', 'heap-limit-thrash'],
  runbook: 'MemwatchResourceLeak',

  judge (signals, limits) {
    const kinds = KINDS.map(({ name, descriptorsEach, now, of }) => ({
      name: /** @type {string} */ (name),
      of,
      descriptorsEach,
      now: signals[now],
      rise: signals[`${of}Trend`]?.rise ?? null,
      perSecond: signals[`${of}Trend`]?.slope ?? null,
      steady: signals[`${of}Trend`]?.steadinessRatio ?? 0
    }))
    const known = kinds.filter(({ rise }) => rise !== null)
    if (known.length === 0) {
      return { state: 'unknown', summary: 'too few counts of handles yet to see a trend' }
    }
    const grown = known
      .filter(
        ({ now, rise, steady }) =>
          (rise ?? 0) >= limits.rise &&
          (rise ?? 0) >= limits.riseShareRatio * (now ?? 0) &&
          steady > 0
      )
      .sort((a, b) => b.steady * (b.rise ?? 0) - a.steady * (a.rise ?? 0))
    const highest = grown.find(({ steady }) => steady >= limits.steadinessRatio) ?? grown[0]
    if (!highest) {
      const counts = known
        .filter(({ now }) => (now ?? 0) > 0)
        .map(({ name, now }) => `${formatNumber(now ?? 0)} ${name}`)
      return { state: 'ok', summary: `no handles pile up (${counts.join(', ') || 'none active'})` }
    }
    // Descriptors grow with whatever takes them: named is what they come from.
    const worst =
      (highest.descriptorsEach > 0 &&
        kinds.find(
          kind =>
            kind.steady >= Math.min(limits.steadinessRatio, highest.steady) &&
            kind.descriptorsEach * (kind.rise ?? 0) >= limits.causeShareRatio * (highest.rise ?? 0)
        )) ||
      highest
    if (worst.steady < limits.levelsOffRatio) {
      return {
        state: 'ok',
        summary: `${worst.name} grew by ${formatNumber(worst.rise ?? 0)} and level off`
      }
    }
    const told = worst.name === 'open file descriptors' ? findKind(signals, limits) : undefined
    const name = told?.name ?? worst.name
    const loadGrows = (signals.loadGrowthRatio ?? 1) >= limits.loadGrowthRatio
    const busy = signals.eventLoopUtilizationRatio ?? 0
    const throttled = signals.cpuThrottledRatio ?? 0
    const isSaturated = busy >= limits.saturatedRatio || throttled >= limits.throttledRatio
    const { maxFileDescriptors } = signals
    const loopDescriptorsRise = signals.loopDescriptorsTrend?.rise ?? null
    const descriptorsPerSecond = signals.fileDescriptorsTrend?.slope ?? worst.perSecond ?? 0
    const secondsLeft =
      maxFileDescriptors !== null && worst.descriptorsEach > 0 && descriptorsPerSecond > 0
        ? (maxFileDescriptors - (signals.fileDescriptorsOpen ?? 0)) / descriptorsPerSecond
        : null
    return {
      state:
        worst.steady >= limits.steadinessRatio && !loadGrows && !isSaturated
          ? 'confirmed'
          : 'suspected',
      severity: severityByTime(secondsLeft, limits),
      summary: `${formatNumber(told?.open ?? worst.now ?? 0)} ${name}, ` +
        `${formatPerMinute(worst.perSecond ?? 0)} more ${told ? 'descriptors ' : ''}each ` +
          'minute, and none is given up.',
      finding: {
        kind: worst.name,
        descriptorKind: told?.name,
        perSecond: worst.perSecond ?? 0,
        loadGrowthRatio: signals.loadGrowthRatio
      },
      evidence: [
        evidence(
          `${worst.of}Rise`,
          worst.rise ?? 0,
          limits.rise,
          (value, limit) =>
            `${value} more ${worst.name} along the line (from ${limit} on they count), of ` +
              `${formatNumber(worst.now ?? 0)} in all.`
        ),
        ...(told
          ? [evidence(told.signal, told.open, 0, value => `${value} of them are ${told.text}.`)]
          : []),
        ...(worst.name === 'threads' && loopDescriptorsRise !== null
          ? [
              evidence(
                'loopDescriptorsRise',
                loopDescriptorsRise,
                limits.causeShareRatio * (worst.rise ?? 0),
                (value, limit) =>
                  loopDescriptorsRise >= limits.causeShareRatio * (worst.rise ?? 0)
                    ? `${value} more event loops: the threads are workers that Node.js started.`
                    : `Only ${value} more event loops (${limit} would be half of the threads): ` +
                      'most are no workers of Node.js, but an addon\'s.'
              )
            ]
          : []),
        evidence(
          `${worst.of}SteadinessRatio`,
          worst.steady,
          limits.steadinessRatio,
          (value, limit) =>
            `Straight and not slowing down: ${value}, from ${limit} on it goes on; a pool that ` +
              'fills falls below.'
        ),
        evidence(
          'loadGrowthRatio',
          signals.loadGrowthRatio ?? 1,
          limits.loadGrowthRatio,
          (value, limit) =>
            loadGrows
              ? `The load grows as well (${value} of what it was, ${limit} counts): they may be ` +
                'what it takes.'
              : `The load does not grow with them: ${value} of what it was.`
        ),
        ...(isSaturated
          ? [
              evidence(
                'eventLoopUtilizationRatio',
                busy,
                limits.saturatedRatio,
                value =>
                  `The event loop is busy ${value} of the ` +
                    `time${throttled > 0
                      ? ', and the CPU quota used up in ' +
                      `${formatRatio(throttled)} of its ` +
                        'periods'
                          : ''}: what is asked faster than it is answered piles up as well.`
              )
            ]
          : []),
        ...grown
          .filter(kind => kind !== worst)
          .map(kind =>
            evidence(
              `${kind.of}Rise`,
              kind.rise ?? 0,
              limits.rise,
              value => `${value} more ${kind.name}, too.`
            )
          ),
        ...(signals.listenerWarnings
          ? [
              evidence(
                'listenerWarnings',
                signals.listenerWarnings,
                0,
                value =>
                  `Node warned of ${value} emitter(s) with too many listeners: what is added ` +
                    'per request is not removed.'
              )
            ]
          : []),
        evidence(
          `${worst.of}PerSecond`,
          worst.perSecond ?? 0,
          0,
          () => `${formatPerMinute(worst.perSecond ?? 0)} more ${worst.name} each minute.`
        )
      ],
      impact:
        secondsLeft === null
          ? 'Each holds memory, in and outside the ' +
            `heap${signals.liveHeapTrend?.rise ? ', and the live heap grows with them' : ''}.`
          : `The limit of ${formatNumber(maxFileDescriptors ?? 0)} open files is reached in ` +
            `about ${formatSeconds(secondsLeft)}: then every accept, connect and open fails ` +
              '(EMFILE).'
    }
  },

  fix ({ kind, descriptorKind, perSecond, loadGrowthRatio }) {
    const found = KINDS.find(({ name }) => name === kind)
    if (!found) return []
    const told = DESCRIPTOR_KINDS.find(({ name }) => name === descriptorKind)
    return [
      {
        title: `Find who opens ${told?.name ?? found.name} and does not close them`,
        change: {
          code: `${told?.site ?? found.site} Grows by ${formatPerMinute(perSecond)} a minute: ` +
            'what else happens at that rate?'
        },
        predicted: [prediction(`${found.of}PerSecond`, perSecond, 0)],
        risk: 'A higher limit of open files only moves the ' +
          `failure${loadGrowthRatio === null
            ? ''
            : '; the load changed to ' +
            `${formatRatio(loadGrowthRatio)} of what it was meanwhile`}.`
      }
    ]
  }
})

/** @typedef {typeof DESCRIPTOR_KINDS[number]} DescriptorKind */

/**
 * The kind that most new descriptors are of; before kinds were seen to grow, the one that most are.
 * @param {Pick<import('../signals').Signals, DescriptorKind['open' | 'trend'] |
 *   'fileDescriptorsOpen'>} signals
 * @param {{ causeShareRatio: number }} limits
 * @returns
 *   {{ name: string, text: string, open: number, signal: DescriptorKind['open'] } | undefined}
 */
function findKind (signals, { causeShareRatio }) {
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

/** @param {number} perSecond */
const formatPerMinute = perSecond => formatNumber(perSecond * SECONDS_PER_MINUTE)
