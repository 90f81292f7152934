'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { severityByTime } = require('./severity')
const { formatBytes, formatNumber, formatRatio, formatSeconds, formatValue } = require('../text/format')

const MIB = 2 ** 20

module.exports = defineDiagnosis({
  id: 'js-heap-leak',
  title: 'Live JS heap keeps growing across major GCs',
  severity: 'critical',
  scope: 'isolate',
  requires: ['heapSizeLimitBytes', 'liveHeapReadings'],
  uses: [
    'liveHeapBytes', 'liveHeapGrowthBytesPerSecond', 'liveHeapRiseBytes', 'liveHeapRiseSeconds', 'liveHeapGrowthFit',
    'liveHeapGrowthScore', 'liveHeapLateGrowthRatio', 'liveHeapHalvesRatio', 'heapRunwayBytes', 'liveHeapShareRatio',
    'oldSpaceRiseBytes', 'largeObjectSpaceRiseBytes', 'codeSpaceRiseBytes', 'arrayBuffersRiseBytes', 'nativeContextsRise', 'socketsRise', 'timersRise',
    'listenerWarnings', 'promotedKeptRatio', 'keptRiseBytes', 'keptRiseSeconds', 'keptGrowthBytesPerSecond', 'keptGrowthFit',
    'keptLateGrowthRatio', 'liveHeapReadingsDueSeconds', 'containerProcesses'
  ],
  limits: {
    // Fewer readings after major GCs cannot reach the score below, however straight they rise.
    readings: 7,
    // Standard score of the growth. 3: one chance in a thousand that a flat floor looks like this.
    score: 3,
    // r² of the line: leaks measured 0.98–1.00, caches that fill up 0.67–0.84 once they slow down.
    fit: 0.9,
    // A leak goes on at its rate; what slows down to this share of it is filling up.
    lateGrowthRatio: 0.6,
    // Sure enough when so much of the way from where it began to the limit was seen as a straight line. There is no clock in
    // it: a fast leak gets there in a minute, a slow one in hours, a cache that settles lower never.
    runwayShareRatio: 0.4,
    // What has grown for less than this may still be the app filling its caches at start: then it must be most of the way.
    youngSeconds: 45,
    youngRunwayShareRatio: 0.6,
    // Less growth than this share of the way is not worth a suspicion.
    suspectedRunwayShareRatio: 0.05,
    // Growth of this size is worth a suspicion wherever the limit is, ...
    suspectedRiseBytes: 32 * MIB,
    // ... and of this size it is certain: caches that fill for minutes stay below it, measured 50 to 400 MiB.
    certainRiseBytes: 512 * MIB,
    // With few readings: nearly all that was promoted must have survived the next major GC. Leaks under
    // limits of 1 to 4 GiB measured 0.95-1.00; garbage that is promoted early 0.0-0.3.
    promotedKeptRatio: 0.8,
    // Above this share of the limit the floor cannot rise any more: a flat line there proves nothing.
    nearLimitRatio: 0.85,
    // The container's limit comes first where it leaves less than this share of the heap's own room.
    ownRunwayRatio: 0.99,
    // Within a working day somebody must act at once; what takes longer is a ticket, ...
    criticalSeconds: 8 * 3600,
    // ... and what the next deployment restarts anyway is worth knowing.
    infoSeconds: 30 * 86_400,
    // So many more contexts, sockets or timers grew with the heap.
    grownWith: 5
  },
  explains: ['heap-limit-thrash', 'container-limit-mismatch', 'oversized-heap', 'event-loop-blocked'],
  runbook: 'MemwatchJsHeapLeak',

  judge (signals, limits) {
    const { liveHeapReadings, liveHeapGrowthBytesPerSecond: growth, liveHeapRiseBytes: rise, heapRunwayBytes: runway } = signals
    if (signals.liveHeapBytes === null || runway === null) {
      return { state: 'unknown', summary: 'no major GC was seen yet; the live heap is not known before one' }
    }
    const nearLimit = (signals.liveHeapShareRatio ?? 0) >= limits.nearLimitRatio
    if (liveHeapReadings < limits.readings || growth === null || rise === null) {
      const few = fewReadings(signals, limits, runway)
      if (few) return few
      return {
        state: 'unknown',
        waitSeconds: signals.liveHeapReadingsDueSeconds,
        summary: `${formatNumber(liveHeapReadings)} of the ${limits.readings} readings of the live ` +
          'heap that are needed after the warm-up; each major GC gives one'
      }
    }
    const seconds = signals.liveHeapRiseSeconds ?? 0
    const score = signals.liveHeapGrowthScore ?? 0
    const late = signals.liveHeapLateGrowthRatio ?? 0
    const share = rise / (rise + runway)
    const isLarge = share >= limits.suspectedRunwayShareRatio || rise >= limits.suspectedRiseBytes
    const rises = score >= limits.score && isLarge
    if (!rises) {
      if (nearLimit) {
        const share = formatRatio(signals.liveHeapShareRatio ?? 0)
        return {
          state: 'unknown',
          openUntil: 'setting',
          summary: `the live heap fills ${share} of its limit, where growth cannot show: ` +
            'a larger heap limit would tell'
        }
      }
      return { state: 'ok', summary: `the live heap is flat: ${formatValue(growth, 'bytesPerSecond')} over ${formatSeconds(seconds)}` }
    }
    if (late < limits.lateGrowthRatio || (signals.liveHeapHalvesRatio ?? 1) < limits.lateGrowthRatio) {
      if (nearLimit) {
        return {
          state: 'unknown',
          openUntil: 'setting',
          summary: 'the live heap slows down just under its limit, where it must: ' +
            'a larger heap limit would tell'
        }
      }
      return { state: 'ok', summary: `the live heap grew by ${formatBytes(rise)} and is levelling off: the last third grew at ${formatRatio(Math.max(0, late))} of the rate` }
    }
    const needed = seconds < limits.youngSeconds ? limits.youngRunwayShareRatio : limits.runwayShareRatio
    const straight = (signals.liveHeapGrowthFit ?? 0) >= limits.fit
    const secondsLeft = runway / growth
    // The share is of the heap's own limit: where less is left than that says, the container's comes first.
    const heapRunway = signals.liveHeapBytes / (signals.liveHeapShareRatio ?? 1) - signals.liveHeapBytes
    const limitName = runway < limits.ownRunwayRatio * heapRunway ? 'the container limit' : 'the heap size limit'
    return {
      state: straight && (share >= needed || rise >= limits.certainRiseBytes) ? 'confirmed' : 'suspected',
      severity: severityByTime(secondsLeft, limits),
      summary: `The live heap grows by ${formatValue(growth, 'bytesPerSecond')} and reaches ${limitName} in about ${formatSeconds(secondsLeft)}.`,
      finding: { growthBytesPerSecond: growth, grows: whatGrows(signals) },
      evidence: [
        evidence('liveHeapGrowthBytesPerSecond', growth, 0, value => `After each major GC more is left: ${value}, over ${formatSeconds(seconds)} and ${formatNumber(liveHeapReadings)} readings.`),
        evidence('liveHeapGrowthFit', signals.liveHeapGrowthFit ?? 0, limits.fit, (value, limit) => `The growth is ${straight ? 'a straight line' : 'not yet a straight line'}: r² ${value}, from ${limit} on it counts as one.`),
        evidence('liveHeapLateGrowthRatio', late, limits.lateGrowthRatio, (value, limit) => `It does not level off: the last third grew at ${value} of the whole rate; a cache that fills falls below ${limit}.`),
        evidence('liveHeapRiseBytes', rise, needed * (rise + runway), (value, limit) => `It has risen by ${value}, ${formatRatio(share)} of the way to the limit; ${limit} make it certain enough.`),
        ...grownWith(signals, rise, limits.grownWith),
        ...sharers(signals, runway)
      ],
      impact: `${formatBytes(runway)} are left to ${limitName}: at this rate the process dies in about ${formatSeconds(secondsLeft)}.`
    }
  },

  fix ({ growthBytesPerSecond, grows }) {
    return [{
      title: 'Find what is kept, and let it go',
      change: {
        code: (grows ? PATTERNS[grows] : '') + 'Bound every Map, array and cache that grows with traffic (a size or a TTL), remove listeners that are added per request, and hold per-object notes in a WeakMap. To find it: memwatch capture TARGET heap_profile names the lines that allocate what stays.'
      },
      predicted: [prediction('liveHeapGrowthBytesPerSecond', growthBytesPerSecond, 0)],
      risk: 'A larger --max-old-space-size only moves the crash; a restart buys time.'
    }]
  }
})

/**
 * Growth before there are enough readings for a trend: V8 collects a heap under a limit of gigabytes so rarely
 * that they take many minutes to come.
 * @param {Record<'promotedKeptRatio' | 'keptRiseBytes' | 'keptRiseSeconds' | 'keptGrowthBytesPerSecond' | 'keptGrowthFit' |
 *   'keptLateGrowthRatio' | 'containerProcesses', number | null> & GrownWith} signals
 * @param {Record<'promotedKeptRatio' | 'suspectedRiseBytes' | 'certainRiseBytes' | 'lateGrowthRatio' | 'fit' |
 *   'criticalSeconds' | 'infoSeconds', number>} limits
 * @param {number} runway bytes
 */
function fewReadings (signals, limits, runway) {
  const { promotedKeptRatio: kept, keptRiseBytes: rise, keptGrowthBytesPerSecond: growth, keptGrowthFit: fit } = signals
  const late = signals.keptLateGrowthRatio
  if (kept === null || rise === null || growth === null || fit === null || late === null) return null
  if (kept < limits.promotedKeptRatio || rise < limits.suspectedRiseBytes || late < limits.lateGrowthRatio || fit < limits.fit) return null
  return {
    state: rise >= limits.certainRiseBytes ? /** @type {const} */ ('confirmed') : /** @type {const} */ ('suspected'),
    severity: severityByTime(runway / growth, limits),
    summary: `The live heap grows by ${formatValue(growth, 'bytesPerSecond')} and reaches its limit in about ${formatSeconds(runway / growth)}: a leak, or a cache that still fills.`,
    finding: { growthBytesPerSecond: growth, grows: whatGrows(signals) },
    evidence: [
      evidence('keptRiseBytes', rise, limits.certainRiseBytes, (value, limit) => `The live heap rose by ${value} in ${formatSeconds(signals.keptRiseSeconds ?? 0)}; caches that fill stay below ${limit}.`),
      evidence('promotedKeptRatio', kept, limits.promotedKeptRatio, (value, limit) => `Of what was promoted between major GCs ${value} survived the next one; from ${limit} on it is kept.`),
      evidence('keptGrowthFit', fit, limits.fit, (value, limit) => `The readings lie on a straight line: r² ${value}, from ${limit} on it counts as one.`),
      evidence('keptLateGrowthRatio', late, limits.lateGrowthRatio, (value, limit) => `It goes on at ${value} of its rate; a cache that fills falls below ${limit}.`),
      evidence('liveHeapGrowthBytesPerSecond', growth, 0, value =>
        `After each major GC more is left: ${value}.`),
      ...sharers(signals, runway)
    ],
    impact: `${formatBytes(runway)} are left: at this rate the process dies in about ${formatSeconds(runway / growth)}.`
  }
}

/** @param {{ containerProcesses: number | null }} signals @param {number} runway bytes */
function sharers ({ containerProcesses: processes }, runway) {
  if (processes === null || processes <= 1) return []
  return [evidence('containerProcesses', processes, 1, value =>
    `${value} processes share the container: of what is left in it, this one has ` +
    `${formatBytes(runway)} at most.`)]
}

/** @typedef {{ readonly [Name in 'oldSpaceRiseBytes' | 'largeObjectSpaceRiseBytes' | 'codeSpaceRiseBytes' | 'arrayBuffersRiseBytes' | 'nativeContextsRise' | 'socketsRise' | 'timersRise' | 'listenerWarnings']: number | null }} GrownWith */

/**
 * Which space of the heap it is, and what else grew.
 * @param {GrownWith} signals @param {number} rise of the live heap, bytes @param {number} least count that matters
 */
function grownWith (signals, rise, least) {
  const { oldSpaceRiseBytes: old, largeObjectSpaceRiseBytes: large, codeSpaceRiseBytes: code } = signals
  const counts = /** @type {const} */ ([['nativeContextsRise', 'contexts'], ['socketsRise', 'sockets'], ['timersRise', 'timers']])
  return [
    ...(old === null ? [] : [evidence('oldSpaceRiseBytes', old, rise, value => `The old space grew by ${value}, the large object space by ${formatBytes(large ?? 0)}, code by ${formatBytes(code ?? 0)}.`)]),
    ...counts.filter(([signal]) => (signals[signal] ?? 0) >= least).map(([signal, name]) => evidence(signal, signals[signal] ?? 0, 0, value => `With it grew ${name}, by ${value}.`)),
    ...(signals.listenerWarnings ? [evidence('listenerWarnings', signals.listenerWarnings, 0, value => `Node warned of ${value} emitter(s) with too many listeners.`)] : [])
  ]
}

/** Advice by what grows with the heap. */
const PATTERNS = Object.freeze({
  listeners: 'Listeners are added and not removed: look for .on() in code that runs per request, and use once(), removeListener or an AbortSignal. ',
  largeObjects: 'It is large objects that grow: one array or Map whose table is ever doubled, or long strings. ',
  buffers: 'The objects that are kept hold Buffers, which weigh more than they do. '
})

/** @param {GrownWith} signals @returns {keyof typeof PATTERNS | null} null: nothing that narrows it down */
function whatGrows ({ largeObjectSpaceRiseBytes: large, oldSpaceRiseBytes: old, listenerWarnings, arrayBuffersRiseBytes: buffers }) {
  if (listenerWarnings) return 'listeners'
  if ((large ?? 0) > (old ?? 0)) return 'largeObjects'
  return (buffers ?? 0) > (old ?? 0) ? 'buffers' : null
}
