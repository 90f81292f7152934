'use strict'

const { defineDiagnosis, STATE_RANK } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
const { URGENCY_LIMITS, severityByTime } = require('./severity')
const { judgeHours } = require('./judge-hours')
const { LASTING_LIMITS, timeLeft } = require('./lasting-growth')
const {
  formatBytes,
  formatNumber,
  formatRatio,
  formatSeconds,
  formatValue
} = require('../text/format')

/** Where the memory can sit, and what to do about it there. */
const PLACES = Object.freeze({
  buffers: {
    name: 'it sits in Buffers that JavaScript still refers to',
    title: 'Let go of the Buffers that are kept',
    code: 'arrayBuffers grows with it: Buffers or ArrayBuffers are held by a Map, an array, a ' +
      'cache without a bound, or a queue that is filled faster than it is emptied. Bound it, or ' +
        'copy out the part that is needed (Buffer.allocUnsafeSlow(n) and copy): a slice keeps ' +
          'the whole Buffer. A sampling heap profile shows who holds the Buffer objects.'
  },
  webassembly: {
    name: 'it is WebAssembly memory',
    title: 'Let go of the WebAssembly memories that are kept',
    code: 'The memory map shows WebAssembly memories that grow. Look for new WebAssembly.Memory, ' +
      'WebAssembly.instantiate and for packages that are compiled to WebAssembly (image, PDF, ' +
        'SQLite and cryptography libraries) in code that runs per request: make one instance and ' +
          'reuse it. Inside one instance, look for what is allocated there and never freed: each ' +
            'malloc() or constructor of such a package needs its free(), delete() or close().'
  },
  external: {
    name: 'V8 counts it as external memory that is no Buffer: WebAssembly memories, or objects ' +
      'of an addon',
    title: 'Let go of what owns external memory',
    code: 'external grows with it, arrayBuffers does not: WebAssembly.Memory objects or ' +
      'instances that are kept (one is enough: make it once and reuse it), or handles of an ' +
        'addon that are never closed. Look for new WebAssembly.Memory, WebAssembly.instantiate ' +
          'and addon objects made per request.'
  },
  native: {
    name: 'V8 does not know of it: memory of native code, as zlib, TLS or an addon take',
    title: 'Close what holds native memory',
    code: 'Neither heap nor Buffers grow: the memory was taken by native code. Look for zlib, ' +
      'crypto and http2 streams that are made per request and never ended or closed ' +
        '(stream.close() on every path, also when the client goes away; pipeline() does it), ' +
          'and for native addons: take those out one by one. What ' +
            'to capture: process.report (libuv handles), the counts of active resources, and ' +
              '`jemalloc` heap profiling (MALLOC_CONF=prof:true) on a replica.'
  }
})

module.exports = defineDiagnosis({
  id: 'native-memory-leak',
  title: 'Memory outside the JS heap keeps growing and is not given back',
  severity: 'critical',
  scope: 'process',
  requires: ['outsideHeapBytes', 'outsideHeapReadings', 'majorsSeen', 'memoryRunwayBytes'],
  uses: [
    'outsideHeapTrend',
    'externalTrend',
    'arrayBuffersTrend',
    'webassemblyGrowthBytesPerSecond',
    'bufferChurnBytes',
    'containerLimitBytes',
    'allocatorAsked',
    'allocatorSlackTrend',
    'outsideHeapLastingTrend',
    'outsideHeapLoadShareRatio',
    'outsideHeapEarlierHighBytes',
    'memoryPeakRunwayBytes',
    'memoryLimitInSeconds'
  ],
  limits: {
    ...LASTING_LIMITS,
    readings: 7,
    // Without a major GC after half of the rise nothing is proven: what garbage holds outside the
    // heap waits for one.
    majors: 1,
    riseBytes: 24 * 2 ** 20,
    // Straight and not slowing down: leaks measure 0.7–1.
    steadinessRatio: 0.6,
    // Below this the growth levels off.
    levelsOffRatio: 0.3,
    // Memory outside the heap that fills this share of its room must stop, whatever causes it: the
    // kernel takes pages back and throttles.
    nearLimitRatio: 0.85,
    // What grows is counted where this share of the rise is: as external memory, or in Buffers.
    placeShareRatio: 0.5,
    // Sure enough when so much of the way to the limit was seen as a straight line; more while it
    // is young.
    runwayShareRatio: 0.25,
    youngSeconds: 45,
    youngRunwayShareRatio: 0.35,
    suspectedRunwayShareRatio: 0.05,
    // Growth of this size is worth a suspicion wherever the limit is: leaks of 0.7 MiB/s reach it
    // within a minute.
    suspectedRiseBytes: 32 * 2 ** 20,
    // Straight growth of this size is certain, however far the limit is: caches that fill for
    // minutes stay below it, as those of the JS heap. Without a container limit a quarter of the
    // way was 6 GiB of a machine's 24 GiB.
    certainRiseBytes: 512 * 2 ** 20,
    ...URGENCY_LIMITS,
    // With Buffers that come and go by this share of the rise, a malloc that keeps what was freed
    // looks the same at first.
    churnShareRatio: 0.6,
    churningRunwayShareRatio: 0.6
  },
  explains: ['allocator-fragmentation', 'container-limit-mismatch'],
  runbook: 'MemwatchNativeMemoryLeak',

  judge (signals, limits) {
    const lasting = judgeLongGrowth(signals, limits)
    const quick = judgeMinutes(signals, limits)
    if (!lasting) return quick
    // Of minutes and hours the one that found more.
    return STATE_RANK[quick.state] > STATE_RANK[lasting.state] ? quick : lasting
  },

  /** @param {Finding} finding */
  fix ({ place, growthBytesPerSecond }) {
    const { title, code } = PLACES[place]
    return [
      {
        title,
        change: { code },
        predicted: [prediction('outsideHeapGrowthBytesPerSecond', growthBytesPerSecond, 0)],
        risk: 'Another allocator does not help: this memory is in use. A restart buys as much ' +
          'time as it took to get here.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/** @typedef {{ place: keyof typeof PLACES, growthBytesPerSecond: number }} Finding */
/** @typedef {import('./define-diagnosis').Judgement<Finding>} Judgement */

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 * @returns {Judgement | null} null where there is room to grow on
 */
function stoppedAtLimit ({ outsideHeapBytes: bytes, memoryRunwayBytes: runway }, limits, rise) {
  if (bytes < limits.nearLimitRatio * (bytes + runway)) return null
  return {
    state: 'unknown',
    openUntil: 'setting',
    summary: `memory outside the heap grew by ${formatBytes(rise)} and stopped just under its ` +
      'limit, where it must: a larger limit would tell'
  }
}

/**
 * Growth within two hours, faster than a day's load.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement}
 */
function judgeMinutes (signals, limits) {
  const {
    outsideHeapReadings: readings,
    outsideHeapTrend: trend,
    memoryRunwayBytes: runway
  } = signals
  if (readings < limits.readings || trend === null) {
    return {
      state: 'unknown',
      summary: `${formatNumber(readings)} of the ${limits.readings} readings that are needed ` +
        'after the warm-up'
    }
  }
  const { rise, slope: growth, seconds, steadinessRatio: steady } = trend
  const share = rise / (rise + runway)
  if (rise < limits.riseBytes) {
    const isLine =
      rise >= limits.lastingLeastBytes &&
      growth >= limits.slowestBytesPerSecond &&
      (steady ?? 0) >= limits.steadinessRatio
    if (isLine) {
      return {
        state: 'unknown',
        summary: `memory outside the heap grew by ${formatBytes(rise)} in a line: too little to ` +
          'judge'
      }
    }
    return {
      state: 'ok',
      seconds,
      summary: `${formatBytes(signals.outsideHeapBytes)} outside the heap, changed by ` +
        `${formatBytes(rise)} since the warm-up`
    }
  }
  if (steady === null) {
    const grew = `memory outside the heap grew by ${formatBytes(rise)}`
    return { state: 'unknown', summary: `${grew}: too few readings to say how it goes on` }
  }
  if (steady <= 0) {
    return stoppedAtLimit(signals, limits, rise) ?? {
      state: 'ok',
      summary: `${formatBytes(signals.outsideHeapBytes)} outside the heap, ${formatBytes(rise)} ` +
        'more than after the warm-up, and they do not grow in a line'
    }
  }
  if (share < limits.suspectedRunwayShareRatio && rise < limits.suspectedRiseBytes) {
    return {
      state: 'unknown',
      summary: `memory outside the heap grew by ${formatBytes(rise)}, ${formatRatio(share)} of ` +
        'the way to its limit: too little to judge'
    }
  }
  if (growth < limits.slowestBytesPerSecond) {
    return {
      state: 'unknown',
      summary: `memory outside the heap grew by ${formatBytes(rise)} in ` +
        `${formatSeconds(seconds)}: so slowly that hours must tell`
    }
  }
  if (steady < limits.levelsOffRatio) {
    return stoppedAtLimit(signals, limits, rise) ?? {
      state: 'ok',
      summary: `memory outside the heap grew by ${formatBytes(rise)} and levels off`
    }
  }
  // Only malloc itself can tell what is freed and kept from what is in use; else it shows by what
  // comes and goes.
  const freed = freedBytes(signals)
  if (freed !== null && freed >= limits.churnShareRatio * rise) {
    return { state: 'ok', summary: sayFreed(rise, freed) }
  }
  const grew = `memory outside the heap grew by ${formatBytes(rise)} in ${formatSeconds(seconds)}`
  const { outsideHeapEarlierHighBytes: high, outsideHeapLoadShareRatio: loadShare } = signals
  if (high !== null && signals.outsideHeapBytes - high < limits.newShareRatio * rise) {
    return { state: 'ok', summary: `${grew}, and was at ${formatBytes(high)} before` }
  }
  if (loadShare !== null && loadShare >= limits.loadShareRatio) {
    return {
      state: 'ok',
      summary: `${grew} with the load, which explains ${formatRatio(loadShare)} of it`
    }
  }
  const external = signals.externalTrend?.rise ?? 0
  const arrayBuffers = signals.arrayBuffersTrend?.rise ?? 0
  const churns =
    freed === null &&
    (signals.bufferChurnBytes ?? 0) >= limits.churnShareRatio * rise &&
    external < limits.placeShareRatio * rise
  const needed = churns
    ? limits.churningRunwayShareRatio
    : seconds < limits.youngSeconds
      ? limits.youngRunwayShareRatio
      : limits.runwayShareRatio
  const neededBytes = Math.min(
    needed * (rise + runway),
    churns ? Infinity : limits.certainRiseBytes
  )
  const collected = signals.majorsSeen >= limits.majors
  const where = place(signals, limits, rise, growth)
  const left = timeLeft(runway / growth, seconds, limits)
  const limitName = nameLimit(signals)
  return {
    state:
      steady >= limits.steadinessRatio && rise >= neededBytes && collected
        ? 'confirmed'
        : 'suspected',
    severity: severityByTime(runway / growth, limits),
    seconds,
    standing: `Memory outside the JS heap grew by ${formatBytes(rise)} in ` +
      `${formatSeconds(seconds)}; it has not gone on, and not been given back for as long.`,
    summary: `Memory outside the JS heap grows by ${formatValue(growth, 'bytesPerSecond')} and ` +
      `is not given back: ${PLACES[where].name}.`,
    finding: { place: where, growthBytesPerSecond: growth },
    evidence: [
      evidence(
        'outsideHeapGrowthBytesPerSecond',
        growth,
        0,
        value =>
          `More and more is resident outside the heap: ${value}, over ${formatSeconds(seconds)} ` +
            `and ${formatNumber(readings)} readings.`
      ),
      evidence('majorsSeen', signals.majorsSeen, limits.majors, value =>
        collected
          ? `${value} major GCs after half of it did not free it.`
          : 'No major GC ran since half of it: it may be garbage that waits for one.'
      ),
      evidence(
        'outsideHeapSteadinessRatio',
        steady,
        limits.steadinessRatio,
        (value, limit) => `Straight and not slowing down: ${value}, from ${limit} on it goes on.`
      ),
      evidence(
        'outsideHeapRiseBytes',
        rise,
        neededBytes,
        (value, limit) =>
          `It has risen by ${value}, ${formatRatio(share)} of the way to ${limitName}; ${limit} ` +
            'make it certain enough.'
      ),
      evidence(
        'externalRiseBytes',
        external,
        limits.placeShareRatio * rise,
        value =>
          `V8 counts ${value} of it as external ` +
            `memory${arrayBuffers > 0 ? `, ${formatBytes(arrayBuffers)} of that in Buffers` : ''}.`
      ),
      ...webassemblyEvidence(where, signals, limits.placeShareRatio * growth),
      freed !== null
        ? evidence(
          'allocatorSlackRiseBytes',
          freed,
          limits.churnShareRatio * rise,
          (value, limit) =>
              `malloc itself counts ${value} of it as free (${limit} would count): what grows ` +
                'is in use.'
        )
        : evidence(
          'bufferChurnBytes',
          signals.bufferChurnBytes ?? 0,
          limits.churnShareRatio * rise,
          (value, limit) =>
            churns
              ? `Buffers come and go by ${value}: a malloc that keeps freed memory is not ruled ` +
                'out.'
              : `Buffers come and go by ${value} only (${limit} would count): what grows is in ` +
                'use, and no other allocator would give it back.'
        )
    ],
    impact: `${formatBytes(runway)} are left to ` +
      `${limitName}${left === '' ? '' : `: at this rate they are gone ${left}`}, and the ` +
        'kernel kills without a word in the app\'s log.'
  }
}

/**
 * Growth over hours and days.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null while too little was seen
 */
function judgeLongGrowth (signals, limits) {
  const { outsideHeapLastingTrend: trend, memoryPeakRunwayBytes: runway } = signals
  if (trend === null || runway === null) return null
  const limit = { peakRunway: runway, limitIn: signals.memoryLimitInSeconds }
  const what = 'memory outside the heap'
  return judgeHours(trend, limit, 'outsideHeap', limits, what, (rise, growthBytesPerSecond) => {
    const freed = freedBytes(signals)
    if (freed !== null && freed >= limits.churnShareRatio * rise) {
      return { ruledOut: sayFreed(rise, freed) }
    }
    const churns = churnsForDays(signals, limits, rise)
    const collected = signals.majorsSeen >= limits.majors
    const where = place(signals, limits, rise, growthBytesPerSecond)
    return {
      name: 'Memory outside the JS heap',
      limitName: nameLimit(signals),
      fills: 'what fills',
      threat: 'at this rate they are gone',
      aftermath: ", and the kernel kills without a word in the app's log",
      finding: { place: where, growthBytesPerSecond },
      cause: PLACES[where].name,
      isOpen: churns || !collected,
      evidence: [
        evidence('majorsSeen', signals.majorsSeen, limits.majors, value =>
          collected
            ? `${value} major GCs in the last minutes did not free it.`
            : 'No major GC ran lately: it may be garbage that waits for one.'
        ),
        ...webassemblyEvidence(where, signals, limits.placeShareRatio * growthBytesPerSecond),
        ...(churns
          ? [
              evidence(
                'bufferChurnBytes',
                signals.bufferChurnBytes ?? 0,
                limits.churnShareRatio * rise,
                value =>
                  `Buffers come and go by ${value}: a malloc that keeps freed memory is not ` +
                    'ruled out before two days.'
              )
            ]
          : [])
      ]
    }
  })
}

/**
 * A malloc that keeps what was freed fills within days: what goes on after them is in use.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 */
function churnsForDays (signals, limits, rise) {
  return freedBytes(signals) === null &&
    (signals.bufferChurnBytes ?? 0) >= limits.churnShareRatio * rise &&
    (signals.outsideHeapLastingTrend?.steadyDays ?? 0) < limits.certainDays
}

/** Freed memory that malloc retains; null where it was not asked. @param {Signals} signals */
const freedBytes = ({ allocatorAsked, allocatorSlackTrend }) =>
  allocatorAsked === 1 ? (allocatorSlackTrend?.rise ?? null) : null

/**
 * @param {number} rise bytes
 * @param {number} freed bytes
 */
const sayFreed = (rise, freed) =>
  `memory outside the heap grew by ${formatBytes(rise)}, of which malloc counts ` +
    `${formatBytes(freed)} as free`

/** @param {{ containerLimitBytes: number | null }} signals */
const nameLimit = ({ containerLimitBytes }) =>
  containerLimitBytes === null ? "the machine's memory" : 'the container limit'

/**
 * The place of the memory, from the counters that moved with it. Node 26 counts no WebAssembly
 * memory as external, older ones do: the memory map tells it apart.
 * @param {Pick<import('../signals').Signals, 'externalTrend' | 'arrayBuffersTrend' |
 *   'webassemblyGrowthBytesPerSecond'>} signals
 * @param {{ placeShareRatio: number }} limits
 * @param {number} rise bytes, of all
 * @param {number} growth bytes per second, of all
 * @returns {keyof typeof PLACES}
 */
function place (signals, { placeShareRatio }, rise, growth) {
  if ((signals.arrayBuffersTrend?.rise ?? 0) > placeShareRatio * rise) return 'buffers'
  if ((signals.webassemblyGrowthBytesPerSecond ?? 0) > placeShareRatio * growth) {
    return 'webassembly'
  }
  return (signals.externalTrend?.rise ?? 0) > placeShareRatio * rise ? 'external' : 'native'
}

/**
 * @param {keyof typeof PLACES} where
 * @param {{ webassemblyGrowthBytesPerSecond: number | null }} signals
 * @param {number} leastBytesPerSecond
 * @returns {import('./define-diagnosis').Evidence[]}
 */
function webassemblyEvidence (where, signals, leastBytesPerSecond) {
  if (where !== 'webassembly') return []
  return [
    evidence(
      'webassemblyGrowthBytesPerSecond',
      signals.webassemblyGrowthBytesPerSecond ?? 0,
      leastBytesPerSecond,
      value => `WebAssembly memories grow by ${value}, as the memory map shows.`
    )
  ]
}
