'use strict'

const { defineDiagnosis, STATE_RANK } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { severityByTime } = require('./severity')
const { judgeHours } = require('./judge-hours')
const { LASTING_LIMITS, formatPerHour, timeLeft } = require('./lasting-growth')
const {
  formatBytes,
  formatNumber,
  formatRatio,
  formatSeconds,
  formatValue
} = require('../text/format')

const MIB = 2 ** 20

module.exports = defineDiagnosis({
  id: 'js-heap-leak',
  title: 'Live JS heap keeps growing across major GCs',
  severity: 'critical',
  scope: 'isolate',
  requires: ['heapSizeLimitBytes', 'liveHeapReadings'],
  uses: [
    'liveHeapBytes',
    'liveHeapTrend',
    'heapRunwayBytes',
    'liveHeapShareRatio',
    'oldSpaceTrend',
    'largeObjectSpaceTrend',
    'codeSpaceTrend',
    'arrayBuffersTrend',
    'nativeContextsTrend',
    'socketsTrend',
    'timersTrend',
    'listenerWarnings',
    'promotedKeptRatio',
    'keptTrend',
    'liveHeapReadingsDueSeconds',
    'liveHeapBoundBytes',
    'liveHeapBoundOldBytes',
    'liveHeapBoundSeconds',
    'usedHeapRunwayBytes',
    'liveHeapForcedReadings',
    'containerProcesses',
    'liveHeapLastingTrend',
    'liveHeapLoadShareRatio',
    'liveHeapEarlierHighBytes',
    'liveHeapPeakRunwayBytes',
    'liveHeapLimitInSeconds'
  ],
  limits: {
    ...LASTING_LIMITS,
    // Fewer readings after major GCs cannot reach the score below, however straight they rise.
    readings: 7,
    // Standard score of the growth. 3: one chance in a thousand that a flat floor looks like this.
    score: 3,
    // r² from which on a rise is worth a suspicion: five times what the readings differ from the
    // line.
    suspectedFit: 0.85,
    // r² of the line: leaks measured 0.98–1.00, caches that fill up 0.67–0.84 once they slow down.
    fit: 0.9,
    // A leak goes on at its rate; what slows down to this share of it is filling up.
    lateGrowthRatio: 0.6,
    // A suspicion is withdrawn below this share.
    levelsOffRatio: 0.4,
    // Sure enough when so much of the way from where it began to the limit was seen as a straight
    // line. There is no clock in it: a fast leak gets there in a minute, a slow one in hours, a
    // cache that settles lower never.
    runwayShareRatio: 0.4,
    // What has grown for less than this may still be the app filling its caches at start: then it
    // must be most of the way.
    youngSeconds: 45,
    youngRunwayShareRatio: 0.6,
    // Less growth than this share of the way is not worth a suspicion.
    suspectedRunwayShareRatio: 0.05,
    // Growth of this size is worth a suspicion wherever the limit is: leaks of 0.7 MiB/s reach it
    // within a minute, ...
    suspectedRiseBytes: 16 * MIB,
    // ... and of this size it is certain: caches that fill for minutes stay below it, measured 50
    // to 400 MiB.
    certainRiseBytes: 512 * MIB,
    // With few readings: nearly all that was promoted must have survived the next major GC. Leaks
    // under limits of 1 to 4 GiB measured 0.95-1.00; garbage that is promoted early 0.0-0.3.
    promotedKeptRatio: 0.8,
    // Above this share of the limit the floor cannot rise any more: a flat line there proves
    // nothing.
    nearLimitRatio: 0.85,
    // The container's limit comes first where it leaves less than this share of the heap's own
    // room.
    ownRunwayRatio: 0.99,
    // Within a working day somebody must act at once; what takes longer is a ticket, ...
    criticalSeconds: 8 * 3600,
    // ... and what the next deployment restarts anyway is worth knowing.
    infoSeconds: 30 * 86_400,
    // So many more contexts, sockets or timers grew with the heap.
    grownWith: 5
  },
  explains: [
    'heap-limit-thrash',
    'container-limit-mismatch',
    'oversized-heap',
    'event-loop-blocked'
  ],
  runbook: 'MemwatchJsHeapLeak',

  judge (signals, limits) {
    const { heapRunwayBytes: runway } = signals
    if (signals.liveHeapBytes === null || runway === null) {
      const bounded = boundedGrowth(signals, limits)
      if (bounded) return bounded
      return {
        state: 'unknown',
        summary: 'no major GC was seen yet; the live heap is not known before one'
      }
    }
    const lasting = judgeLongGrowth(signals, limits)
    const quick = judgeMinutes(signals, limits, runway)
    if (!lasting) return quick
    // Of minutes and hours the one that found more.
    return STATE_RANK[quick.state] > STATE_RANK[lasting.state] ? quick : lasting
  },

  /** @param {Finding} finding */
  fix ({ growthBytesPerSecond, grows }) {
    return [
      {
        title: 'Find what is kept, and let it go',
        change: {
          code:
            (grows ? PATTERNS[grows] : '') +
            'Bound every Map, array and cache that grows with traffic (a size or a TTL), remove ' +
              'listeners that are added per request, and hold per-object notes in a WeakMap. To ' +
                'find it: memwatch capture TARGET heap_profile names the lines that allocate ' +
                  'what stays.'
        },
        predicted: [prediction('liveHeapGrowthBytesPerSecond', growthBytesPerSecond, 0)],
        risk: 'A larger --max-old-space-size only moves the crash; a restart buys time.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {{ growthBytesPerSecond: number, grows: keyof typeof PATTERNS | null }} Finding */
/** @typedef {import('./define-diagnosis').Judgement<Finding>} Judgement */

/**
 * Growth within two hours, faster than a day's load.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway bytes
 * @returns {Judgement}
 */
function judgeMinutes (signals, limits, runway) {
  const { liveHeapReadings, liveHeapTrend } = signals
  const nearLimit = (signals.liveHeapShareRatio ?? 0) >= limits.nearLimitRatio
  if (liveHeapReadings < limits.readings || liveHeapTrend === null) {
    const few = fewReadings(signals, limits, runway)
    if (few) return few
    const bounded = boundedGrowth(signals, limits)
    if (bounded) return bounded
    return {
      state: 'unknown',
      waitSeconds: signals.liveHeapReadingsDueSeconds,
      summary: `${formatNumber(liveHeapReadings)} of the ${limits.readings} readings of the live ` +
        'heap that are needed after the warm-up; each major GC gives one'
    }
  }
  const { rise, slope: growth, seconds, fit } = liveHeapTrend
  const late = Math.min(liveHeapTrend.lateRatio ?? 0, liveHeapTrend.halvesRatio ?? 1)
  const share = rise / (rise + runway)
  const isLarge = isWorthSuspicion(rise, share, limits)
  const rises =
    liveHeapTrend.score >= limits.score &&
    growth >= limits.slowestBytesPerSecond &&
    fit >= limits.suspectedFit
  if (rises && !isLarge && rise >= limits.lastingLeastBytes && late >= limits.lateGrowthRatio) {
    return {
      state: 'unknown',
      summary: `the live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}, ` +
        `${formatRatio(share)} of the way to its limit: too little to judge`
    }
  }
  if (!rises || !isLarge) {
    if (nearLimit) {
      const filled = formatRatio(signals.liveHeapShareRatio ?? 0)
      return {
        state: 'unknown',
        openUntil: 'setting',
        summary: `the live heap fills ${filled} of its limit, where growth cannot show: ` +
          'a larger heap limit would tell'
      }
    }
    // What began lately is no line over all readings yet.
    const late = fewReadings(signals, limits, runway)
    if (late) return late
    return {
      state: 'ok',
      summary: `the live heap is flat: ${formatValue(growth, 'bytesPerSecond')} over ` +
        `${formatSeconds(seconds)}${forcedText(signals)}`
    }
  }
  if (late < limits.lateGrowthRatio) {
    if (nearLimit) {
      return {
        state: 'unknown',
        openUntil: 'setting',
        summary: 'the live heap slows down just under its limit, where it must: ' +
          'a larger heap limit would tell'
      }
    }
    return {
      state: 'ok',
      keeps: late >= limits.levelsOffRatio,
      summary: `the live heap grew by ${formatBytes(rise)} and is levelling off: it goes on at ` +
        `${formatRatio(Math.max(0, late))} of the rate`
    }
  }
  const wasThere = notNewSince(signals, limits, rise, seconds)
  if (wasThere) return wasThere
  const needed =
    seconds < limits.youngSeconds ? limits.youngRunwayShareRatio : limits.runwayShareRatio
  const straight = fit >= limits.fit
  const left = timeLeft(runway / growth, seconds, limits)
  const limitName = nameLimit(signals, limits, runway)
  return {
    state:
      straight && (share >= needed || rise >= limits.certainRiseBytes) ? 'confirmed' : 'suspected',
    severity: severityByTime(runway / growth, limits),
    seconds,
    summary: 'The live heap grows by ' +
      `${formatValue(growth, 'bytesPerSecond')}${left === null
        ? ''
        : ' and reaches ' +
        `${limitName} ${left}`}.`,
    standing: `The live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}; it has ` +
      'not gone on, and not been given back for as long.',
    finding: { growthBytesPerSecond: growth, grows: whatGrows(signals) },
    evidence: [
      evidence(
        'liveHeapGrowthBytesPerSecond',
        growth,
        0,
        value =>
          `After each major GC more is left: ${value}, over ${formatSeconds(seconds)} and ` +
            `${formatNumber(liveHeapReadings)} readings${forcedText(signals)}.`
      ),
      evidence(
        'liveHeapGrowthFit',
        fit,
        limits.fit,
        (value, limit) =>
          `The growth is ${straight ? 'a straight line' : 'not yet a straight line'}: r² ` +
            `${value}, from ${limit} on it counts as one.`
      ),
      evidence(
        'liveHeapLateGrowthRatio',
        late,
        limits.lateGrowthRatio,
        (value, limit) =>
          `It does not level off: at the end it grew at ${value} of the whole rate; a cache ` +
            `that fills falls below ${limit}.`
      ),
      evidence(
        'liveHeapRiseBytes',
        rise,
        Math.min(needed * (rise + runway), limits.certainRiseBytes),
        (value, limit) =>
          `It has risen by ${value}, ${formatRatio(share)} of the way to the limit; ${limit} ` +
            'make it certain enough.'
      ),
      ...grownWith(signals, rise, limits.grownWith),
      ...sharers(signals, runway)
    ],
    impact: `${formatBytes(runway)} are left to ` +
      `${limitName}${left === null ? '' : `: at this rate the process dies ${left}`}.`
  }
}

/**
 * @param {number} rise bytes
 * @param {number} share of the way to the limit
 * @param {Limits} limits
 */
const isWorthSuspicion = (rise, share, limits) =>
  share >= limits.suspectedRunwayShareRatio || rise >= limits.suspectedRiseBytes

/**
 * A quiet app has no major GC for hours. What it promoted bounds its growth: where that is slower
 * than what is judged within minutes, leads to no limit within a working day, and is less than what
 * hours judge, no leak of that kind is there.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null where more may be kept
 */
function boundedGrowth (signals, limits) {
  const {
    liveHeapBoundBytes: most,
    liveHeapBoundOldBytes: promoted,
    liveHeapBoundSeconds: seconds,
    usedHeapRunwayBytes: runway
  } = signals
  if (most === null || promoted === null || !seconds || runway === null) return null
  const growth = most / seconds
  if (
    growth >= limits.slowestBytesPerSecond ||
    growth * limits.criticalSeconds >= runway ||
    promoted >= limits.lastingRiseBytes
  ) { return null }
  return {
    state: 'ok',
    keeps: true,
    summary: `the live heap grew by ${formatBytes(most)} at most in ${formatSeconds(seconds)}, ` +
      'by what was promoted and what is young: no more than ' +
      `${formatPerHour(growth)}, with ${formatBytes(runway)} left; slower growth shows over hours`
  }
}

/**
 * A rise that the load explains, or to where the live heap was before, is no leak.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 * @param {number} seconds
 * @returns {Judgement | null}
 */
function notNewSince (signals, limits, rise, seconds) {
  const {
    liveHeapBytes: live,
    liveHeapEarlierHighBytes: high,
    liveHeapLoadShareRatio: loadShare
  } = signals
  const grew = `the live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}`
  if (high !== null && live !== null && live - high < limits.newShareRatio * rise) {
    return { state: 'ok', summary: `${grew}, and was at ${formatBytes(high)} before` }
  }
  if (loadShare !== null && loadShare >= limits.loadShareRatio) {
    return {
      state: 'ok',
      summary: `${grew} with its load, which explains ${formatRatio(loadShare)} of it`
    }
  }
  return null
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway bytes
 */
function nameLimit (signals, limits, runway) {
  // The share is of the heap's own limit: where less is left than that says, the container's comes
  // first.
  const live = signals.liveHeapBytes ?? 0
  const heapRunway = live / (signals.liveHeapShareRatio ?? 1) - live
  return runway < limits.ownRunwayRatio * heapRunway ? 'the container limit' : 'the heap size limit'
}

/**
 * Growth over hours and days.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null while too little was seen
 */
function judgeLongGrowth (signals, limits) {
  const { liveHeapLastingTrend: trend, liveHeapPeakRunwayBytes: runway } = signals
  if (trend === null || runway === null) return null
  const limit = { peakRunway: runway, limitIn: signals.liveHeapLimitInSeconds }
  const what = 'the live heap'
  return judgeHours(trend, limit, 'liveHeap', limits, what, (rise, growthBytesPerSecond) => ({
    name: 'The live heap',
    limitName: nameLimit(signals, limits, signals.heapRunwayBytes ?? runway),
    fills: 'a cache that fills',
    threat: 'the process dies',
    finding: { growthBytesPerSecond, grows: whatGrows(signals) },
    evidence: [...grownWith(signals, rise, limits.grownWith), ...sharers(signals, runway)]
  }))
}

/**
 * Growth before there are enough readings for a trend: V8 collects a heap under a limit of
 * gigabytes so rarely that they take many minutes to come.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} runway bytes
 * @returns {Judgement | null}
 */
function fewReadings (signals, limits, runway) {
  const { promotedKeptRatio: kept, keptTrend } = signals
  if (kept === null || keptTrend === null) return null
  const { rise, slope: growth, seconds, fit, lateRatio: late } = keptTrend
  if (
    kept < limits.promotedKeptRatio ||
    !isWorthSuspicion(rise, rise / (rise + runway), limits) ||
    late < limits.lateGrowthRatio ||
    fit < limits.fit
  ) { return null }
  if (growth < limits.slowestBytesPerSecond) return null
  const wasThere = notNewSince(signals, limits, rise, seconds)
  if (wasThere) return wasThere
  const left = timeLeft(runway / growth, seconds, limits)
  return {
    seconds,
    standing: `The live heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}; it has ` +
      'not gone on, and not been given back for as long.',
    state: rise >= limits.certainRiseBytes ? 'confirmed' : 'suspected',
    severity: severityByTime(runway / growth, limits),
    summary: 'The live heap grows by ' +
      `${formatValue(growth, 'bytesPerSecond')}${left === null
        ? ''
        : ' and reaches its limit ' +
        `${left}`}: a leak, or a cache that still fills.`,
    finding: { growthBytesPerSecond: growth, grows: whatGrows(signals) },
    evidence: [
      evidence(
        'keptRiseBytes',
        rise,
        limits.certainRiseBytes,
        (value, limit) =>
          `The live heap rose by ${value} in ${formatSeconds(seconds)}; caches that fill stay ` +
            `below ${limit}.`
      ),
      evidence(
        'promotedKeptRatio',
        kept,
        limits.promotedKeptRatio,
        (value, limit) =>
          `Of what was promoted between major GCs ${value} survived the next one; from ${limit} ` +
            'on it is kept.'
      ),
      evidence(
        'keptGrowthFit',
        fit,
        limits.fit,
        (value, limit) =>
          `The readings lie on a straight line: r² ${value}, from ${limit} on it counts as one.`
      ),
      evidence(
        'keptLateGrowthRatio',
        late,
        limits.lateGrowthRatio,
        (value, limit) =>
          `It goes on at ${value} of its rate; a cache that fills falls below ${limit}.`
      ),
      evidence(
        'liveHeapGrowthBytesPerSecond',
        growth,
        0,
        value => `After each major GC more is left: ${value}${forcedText(signals)}.`
      ),
      ...sharers(signals, runway)
    ],
    impact: `${formatBytes(runway)} are ` +
      `left${left === null ? '' : `: at this rate the process dies ${left}`}.`
  }
}

/** @param {{ liveHeapForcedReadings: number | null }} signals */
const forcedText = ({ liveHeapForcedReadings: count }) =>
  count ? `; ${formatNumber(count)} of the last readings follow full GCs that memwatch ran` : ''

/**
 * @param {{ containerProcesses: number | null }} signals
 * @param {number} runway bytes
 */
function sharers ({ containerProcesses: processes }, runway) {
  if (processes === null || processes <= 1) return []
  return [evidence('containerProcesses', processes, 1, value =>
    `${value} processes share the container: of what is left in it, this one has ` +
    `${formatBytes(runway)} at most.`)]
}

/**
 * @typedef {Pick<import('../signals').Signals, 'oldSpaceTrend' | 'largeObjectSpaceTrend' |
 *   'codeSpaceTrend' | 'arrayBuffersTrend' | 'nativeContextsTrend' | 'socketsTrend' |
 *   'timersTrend' | 'listenerWarnings'>} GrownWith
 */

/**
 * Which space of the heap it is, and what else grew.
 * @param {GrownWith} signals
 * @param {number} rise of the live heap, bytes
 * @param {number} least count that matters
 */
function grownWith (signals, rise, least) {
  const { oldSpaceTrend: old, largeObjectSpaceTrend: large, codeSpaceTrend: code } = signals
  const counts = /** @type {const} */ ([
    ['nativeContexts', 'contexts'],
    ['sockets', 'sockets'],
    ['timers', 'timers']
  ])
  return [
    ...(old === null
      ? []
      : [
          evidence(
            'oldSpaceRiseBytes',
            old.rise,
            rise,
            value =>
              `The old space grew by ${value}, the large object space by ` +
                `${formatBytes(large?.rise ?? 0)}, code by ${formatBytes(code?.rise ?? 0)}.`
          )
        ]),
    ...counts
      .map(([of, name]) => ({ of, name, count: signals[`${of}Trend`]?.rise ?? 0 }))
      .filter(({ count }) => count >= least)
      .map(({ of, name, count }) =>
        evidence(`${of}Rise`, count, 0, value => `With it grew ${name}, by ${value}.`)
      ),
    ...(signals.listenerWarnings
      ? [
          evidence(
            'listenerWarnings',
            signals.listenerWarnings,
            0,
            value => `Node warned of ${value} emitter(s) with too many listeners.`
          )
        ]
      : [])
  ]
}

/** Advice by what grows with the heap. */
const PATTERNS = Object.freeze({
  listeners:
    'Listeners are added and not removed: look for .on() in code that runs per request, and use ' +
      'once(), removeListener or an AbortSignal. ',
  largeObjects:
    'It is large objects that grow: one array or Map whose table is ever doubled, or long ' +
      'strings. ',
  buffers: 'The objects that are kept hold Buffers, which weigh more than they do. '
})

/**
 * @param {GrownWith} signals
 * @returns {keyof typeof PATTERNS | null} null: nothing that narrows it down
 */
function whatGrows ({ largeObjectSpaceTrend, oldSpaceTrend, listenerWarnings, arrayBuffersTrend }) {
  const old = oldSpaceTrend?.rise ?? 0
  if (listenerWarnings) return 'listeners'
  if ((largeObjectSpaceTrend?.rise ?? 0) > old) return 'largeObjects'
  return (arrayBuffersTrend?.rise ?? 0) > old ? 'buffers' : null
}
