'use strict'

const { ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence } = require('./evidence')
const {
  MAY_FILL, extendLine, findCertainBytes, isStraightSince, sayEnded, sayReaches
} = require('./filling')
const { nameMemoryLimit, severityByTime } = require('./severity')
const { ruleOutKnownRise, sayStanding, timeLeft } = require('./lasting-growth')
const {
  churns, findMajors, findPlace, freedBytes, namePlace, ruleOutFreed, showPlace, subjectOf
} = require('./native-memory-leak-evidence')
const {
  formatBytes, formatNumber, formatRatio, formatSeconds, formatValue
} = require('../text/format')

/** @typedef {import('./native-memory-leak').Limits} Limits */
/** @typedef {import('./native-memory-leak').Signals} Signals */
/** @typedef {import('./native-memory-leak').Judgement} Judgement */
/** @typedef {import('./define-diagnosis').Dismissal} Dismissal */
/** @typedef {import('./native-memory-leak-evidence').Place} Place */

/**
 * Line along which the memory outside the heap grows.
 * @typedef {Record<'rise' | 'growth' | 'seconds' | 'steady' | 'runway', number>} Line
 *   rise and runway: bytes; growth: bytes a second; steady: ratio
 * @typedef {(signals: Signals, limits: Limits, line: Line) => Dismissal | null} Question
 */

/**
 * Judges growth within two hours, if it is faster than any growth that a day's load causes.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement}
 */
function judgeMinutes (signals, limits) {
  const judged = judgeTrend(signals, limits)
  return judged.state === 'ok' ? judgeWaiting(signals, limits) ?? judged : judged
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement}
 */
function judgeTrend (signals, limits) {
  const {
    outsideHeapReadings: readings,
    outsideHeapTrend: trend,
    memoryRunwayBytes: runway
  } = signals
  if (readings < limits.readings || trend === null) {
    return unknown(`${formatNumber(readings)} of the ${limits.readings} readings that are needed ` +
      'after the warm-up')
  }
  const { rise, slope: growth, seconds, steadinessRatio } = trend
  const steady = steadinessRatio ?? 0
  const line = { rise, growth, seconds, steady, runway }
  const { outsideHeapBytes: level, lifeCpuSeconds: lifeSeconds } = signals
  const isStraight = isStraightSince(limits, line, { level, lifeSeconds })
  if (rise < limits.riseBytes && !isStraight) return judgeSmall(signals, limits, line)
  if (steadinessRatio === null) return unknown(`${sayGrew(rise)}: ${TOO_FEW}`)
  return ruleOutEnded(signals, limits, line) ??
    ruleOutFlat(signals, limits, line) ??
    judgeSlow(signals, limits, line) ??
    ruleOutFilling(signals, limits, line) ??
    ruleOutFreed(signals, limits, rise) ??
    awaitMalloc(signals, limits, line) ??
    ruleOutPages(signals, limits, line) ??
    ruleOutUnused(signals, limits, line) ??
    ruleOutKnown(signals, limits, line) ??
    awaitMajor(signals, limits, line) ??
    judgeLine(signals, limits, line)
}

/**
 * Waits for malloc's next statistics if the growth may be freed memory. Bursts of Buffers in the
 * threads of sharp looked like a leak of 131 MiB a minute while the statistics were 30 s old.
 * @type {Question}
 */
function awaitMalloc (signals, limits, { rise, seconds }) {
  if (signals.allocatorAnswerDue !== 1 || !isFreedInDoubt(signals, limits, rise)) return null
  const churn = formatBytes(signals.bufferChurnBytes ?? 0)
  return unknown(`${sayGrew(rise)} in ${formatSeconds(seconds)} while Buffers of ${churn} were ` +
    "allocated and freed: malloc's next statistics tell whether it is freed memory")
}

/**
 * Waits for a major GC if garbage may hold the growth: V8 lets external memory grow by a certain
 * size before it runs one. Waits as well if a GC has just freed most of the growth, which the
 * readings across major GCs show later.
 * @type {Question}
 */
function awaitMajor (signals, limits, { rise, growth }) {
  const place = findPlace(signals, limits, rise, growth)
  if (place !== 'buffers' && place !== 'external') return null
  const buffers = signals.arrayBuffersTrend?.rise ?? 0
  const now = signals.arrayBuffersBytes ?? Infinity
  if (place === 'buffers' && now < limits.keptShareRatio * buffers) {
    return unknown(`${sayGrew(rise)}, but most of the Buffers have been freed since`)
  }
  const isSmall = (signals.externalTrend?.rise ?? 0) < limits.garbageBytes
  if (!isSmall || findMajors(place, signals, limits).isCollected) return null
  return unknown(`${sayGrew(rise)}, most of it Buffers or other external memory: until a major ` +
    'GC runs, they may be garbage')
}

/**
 * Rules out growth of native code that the memory map does not show: V8 keeps pages that GCs
 * emptied, and does not count them.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Dismissal | null}
 */
function ruleOutPages (signals, limits, { rise, growth }) {
  const { mappedNativeBytes: bytes } = signals
  if (bytes === null || findPlace(signals, limits, rise, growth) !== 'native') return null
  if (bytes >= limits.placeShareRatio * rise) return null
  return ok(`memory outside the heap grew by ${formatBytes(rise)}, but malloc has only ` +
    `${formatBytes(bytes)}: the rest are pages that V8 keeps for its heap`, { refutes: true })
}

/**
 * Rules out growth of native memory that malloc counts as free. Bursts of work fragment malloc for
 * minutes, and their growth looks like a line.
 * @type {Question}
 */
function ruleOutUnused (signals, limits, { rise, growth, seconds }) {
  const inUse = signals.nativeInUseTrend
  if (inUse === null || inUse.seconds < limits.inUseSpanRatio * seconds) return null
  if (findPlace(signals, limits, rise, growth) !== 'native') return null
  if (inUse.slope >= (1 - limits.churnShareRatio) * growth) return null
  return ok(`${sayGrew(rise)}, but the native memory in use hardly did: malloc counts the rest ` +
    'as free', { latest: 'the native memory in use hardly grows: malloc counts the rest as free' })
}

/**
 * Judges native memory that only the full GCs of memwatch keep from growing.
 * @param {Signals} signals
 * @param {Limits} limits
 * @returns {Judgement | null} null if there is little of it, or if the app runs enough major GCs
 */
function judgeWaiting (signals, limits) {
  const { forcedFreedBytes: freed, forcedFreedBytesPerSecond: perSecond } = signals
  const { ownMajorsPerForcedRatio: own } = signals
  if (freed === null || perSecond === null || own === null) return null
  if (freed < limits.forcedFreedBytes || own > limits.ownMajorsPerForcedRatio) return null
  const rate = formatValue(perSecond, 'bytesPerSecond')
  return {
    state: 'suspected',
    severity: 'warning',
    standing: `Full GCs of memwatch freed about ${formatBytes(freed)} of native memory each`,
    summary: `Native memory waits for a GC: full GCs of memwatch free about ${formatBytes(freed)} ` +
      `of it each, ${rate}. Without them it grows until V8 runs a major GC for another reason.`,
    finding: {
      place: /** @type {const} */ ('waiting'), hasAddons: true, growthBytesPerSecond: perSecond
    },
    evidence: listEvidence(
      evidence('forcedFreedBytes', freed, limits.forcedFreedBytes, (value, limit) =>
        `Each full GC of memwatch frees about ${value} outside the heap and Buffers (threshold ` +
        `${limit}).`),
      evidence('forcedFreedBytesPerSecond', perSecond, 0, value => `That is ${value}.`),
      evidence('ownMajorsPerForcedRatio', own, limits.ownMajorsPerForcedRatio, () =>
        `V8 ran ${formatNumber(own)} major GCs of its own for each of them.`)
    ),
    impact: 'Without these GCs, as in production, RSS is higher: MEMWATCH_FORCED_GC=off shows it.'
  }
}

const TOO_FEW = 'too few readings to know whether it continues'

/** @param {number} rise bytes */
const sayGrew = rise => `memory outside the heap grew by ${formatBytes(rise)}`

/**
 * Judges a small rise, which may be noise or the beginning of a line.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 */
function judgeSmall (signals, limits, { rise, growth, seconds, steady, runway }) {
  const grows = growth >= limits.slowestBytesPerSecond
  const isMuch = rise >= limits.lastingLeastBytes
  if (grows && isMuch && signals.outsideHeapTrend?.steadinessRatio === null) {
    return unknown(`${sayGrew(rise)}: ${TOO_FEW}`)
  }
  const mayLeak = grows && (isMuch || growth * limits.criticalSeconds >= runway)
  if (mayLeak && steady >= limits.steadinessRatio) {
    return unknown(`${sayGrew(rise)} in a straight line: too little to judge`)
  }
  const isSignificant = (signals.outsideHeapTrend?.score ?? 0) >= limits.doubtScore
  const grewLately = (signals.outsideHeapLatelyRatio ?? 0) >= limits.pausesRatio
  if (grows && isMuch && isSignificant && grewLately) {
    return unknown(
      `${sayGrew(rise)} in ${formatSeconds(seconds)}, and still grows: too little to judge`
    )
  }
  const now = formatBytes(signals.outsideHeapBytes)
  return ok(
    `${now} outside the heap, changed by ${formatBytes(rise)} since the warm-up`,
    { seconds, keeps: mayLeak && steady >= limits.levelsOffRatio }
  )
}

/** Does the memory outside the heap rise in a line? @type {Question} */
function ruleOutFlat (signals, limits, { rise, steady }) {
  if (steady > 0) return null
  const now = formatBytes(signals.outsideHeapBytes)
  return judgeNearLimit(signals, limits, rise) ??
    ok(`${now} outside the heap, ${formatBytes(rise)} more than after the warm-up, without ` +
      'growth in a straight line', { latest: 'it does not grow in a straight line' })
}

/** Is the growth fast enough to judge within minutes? @type {Question} */
function judgeSlow (_, limits, { rise, growth, seconds }) {
  if (growth >= limits.slowestBytesPerSecond) return null
  return unknown(`${sayGrew(rise)} in ${formatSeconds(seconds)}: too slowly for minutes; hours ` +
    'of history decide')
}

/** Has the growth ended far from its limit? @type {Question} */
function ruleOutEnded (signals, limits, { growth, rise }) {
  if (judgeNearLimit(signals, limits, rise)) return null
  const ended = sayEnded(limits, growth, {
    level: signals.outsideHeapBytes,
    stood: signals.outsideHeapStandsSeconds,
    rose: signals.outsideHeapRoseSeconds,
    load: signals.outsideHeapStandLoadRatio
  })
  const seconds = signals.outsideHeapStandsSeconds ?? 0
  return ended === null ? null : ok(`memory outside the heap ${ended}`, { seconds, refutes: true })
}

/** Does the growth slow down, as it does in a pool that fills? @type {Question} */
function ruleOutFilling (signals, limits, { rise, steady }) {
  if (steady >= limits.suspectedSteadinessRatio) return null
  return judgeNearLimit(signals, limits, rise) ??
    ok(`${sayGrew(rise)} and levels off`, {
      keeps: steady >= limits.levelsOffRatio, latest: 'it levels off'
    })
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 * @returns {Dismissal | null} null if there is room to grow
 */
function judgeNearLimit ({ outsideHeapBytes: bytes, memoryRunwayBytes: runway }, limits, rise) {
  if (bytes < limits.nearLimitRatio * (bytes + runway)) return null
  return unknown(
    `${sayGrew(rise)} and stopped just under its limit, as any growth does: only a larger limit ` +
      'would show a leak',
    { openUntil: 'setting' }
  )
}

/** Does the load explain the rise, or was the level as high before? @type {Question} */
const ruleOutKnown = (signals, limits, { rise, seconds }) =>
  ruleOutKnownRise(limits, rise, {
    grew: `${sayGrew(rise)} in ${formatSeconds(seconds)}`,
    load: 'the load',
    level: signals.outsideHeapBytes,
    earlierHigh: signals.outsideHeapEarlierHighBytes,
    loadShare: signals.outsideHeapLoadShareRatio
  })

/**
 * Judges certainty, urgency and kind of growth along a line.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @returns {Judgement}
 */
function judgeLine (signals, limits, line) {
  const { rise, growth, seconds, steady } = line
  const mayBeFreed = isFreedInDoubt(signals, limits, rise)
  const place = findPlace(signals, limits, rise, growth)
  const { runway, limitName, end } = roomOf(place, signals, line.runway)
  const whole = extendLine(line, signals.outsideHeapLineSeconds)
  const neededBytes = mayBeFreed
    ? limits.churningRunwayShareRatio * (rise + runway)
    : findCertainBytes(limits, { ...whole, isStraight: steady >= limits.straightLateRatio })
  const isEnough = steady >= limits.steadinessRatio && whole.rise >= neededBytes
  const pauses = (signals.outsideHeapLatelyRatio ?? 1) < limits.pausesRatio
  const { isCollected } = findMajors(place, signals, limits)
  const isCertain = isEnough && !pauses && isCollected
  const { secondsLeft, inTime } = timeLeft(pauses ? Infinity : runway / growth, seconds, limits)
  const goes = inTime
    ? sayReaches({ isCertain, limitName, inTime }, signals)
    : 'is not returned'
  const rate = formatValue(growth, 'bytesPerSecond')
  const subject = subjectOf(place)
  return {
    state: isCertain ? 'confirmed' : 'suspected',
    agrees: isEnough,
    severity: severityByTime(runway / growth, limits),
    secondsLeft,
    seconds,
    // An app with a quiet heap has no major GC for minutes. The absence of major GCs does not
    // refute earlier evidence.
    keeps: isEnough,
    standing: sayStanding(subject, rise, seconds),
    summary: (pauses
      ? `${subject} grew by ${rate}, but hardly in the last 20 s, and was not returned: `
      : `${subject} grows by ${rate} and ${goes}: `) +
      `${sayPlace(place, signals, rise)}${isCertain ? '' : `; ${MAY_FILL}`}.`,
    finding: { place, hasAddons: signals.addonsSeen !== 0, growthBytesPerSecond: growth },
    evidence: listEvidence(
      showLine(signals, limits, line, whole, { neededBytes, pauses, place }),
      ...showPlace(place, signals, limits, growth),
      showFreed(signals, limits, rise, mayBeFreed)
    ),
    impact: `There is room for ${formatBytes(runway)} below ${limitName}` +
      `${inTime && `: at this rate it is full ${inTime}, and ${end}`}.`
  }
}

/**
 * Room for the growth. Heaps of workers have limits of their own.
 * @param {Place} place
 * @param {Signals} signals
 * @param {number} runway bytes left of the memory limit
 * @returns {{ runway: number, limitName: string, end: string }} end: what happens without room
 */
function roomOf (place, signals, runway) {
  const heaps = signals.silentWorkerRunwayBytes ?? Infinity
  return place === 'silentWorkers' && heaps < runway
    ? {
        runway: heaps,
        limitName: "the workers' heap size limit",
        end: 'V8 ends a worker with ERR_WORKER_OUT_OF_MEMORY. Its resourceLimits may set another ' +
          'limit'
      }
    : {
        runway,
        limitName: nameMemoryLimit(signals),
        end: "the kernel kills the process without a message in the app's log"
      }
}

/**
 * Names the place of the growth. The text gives the part of Buffers, as the rate is that of all
 * memory outside the heap.
 * @param {Place} place
 * @param {Signals} signals
 * @param {number} rise bytes
 */
function sayPlace (place, signals, rise) {
  if (place !== 'buffers') return namePlace(place, signals)
  const buffers = Math.min(signals.arrayBuffersTrend?.rise ?? 0, rise)
  return `${formatBytes(buffers)} of ${formatBytes(rise)} are in Buffers`
}

/**
 * True if malloc may retain the memory of Buffers that come and go, unless the growth is memory
 * that V8 counts.
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 */
const isFreedInDoubt = (signals, limits, rise) =>
  churns(signals, limits, rise) &&
  (signals.externalTrend?.rise ?? 0) < limits.placeShareRatio * rise

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {Line} line
 * @param {Line & { overSeconds: number }} whole the line with earlier growth along it
 * @param {{ neededBytes: number, pauses: boolean, place: Place }} options pauses: it
 *   hardly grew lately
 */
function showLine (signals, limits, line, whole, { neededBytes, pauses, place }) {
  const { rise, growth, seconds, steady } = line
  const { outsideHeapReadings: readings } = signals
  const majors = findMajors(place, signals, limits)
  const external = Math.max(0, signals.externalTrend?.rise ?? 0)
  const buffers = Math.min(external, rise, signals.arrayBuffersTrend?.rise ?? 0)
  const inBuffers = buffers > 0 ? `, ${formatBytes(buffers)} of that in Buffers` : ''
  const isOfMain = place !== 'workers'
  return listEvidence(
    evidence('outsideHeapGrowthBytesPerSecond', growth, 0, value =>
      `Resident memory outside the heap ${pauses ? 'grew' : 'grows'}: ${value}, over ` +
      `${formatSeconds(seconds)} and ` +
      `${formatNumber(readings)} readings.`),
    evidence(majors.signal, majors.count, limits.majors, value =>
      majors.isCollected
        ? `${value} major GCs${majors.of} in the second half of this time did not free it.`
        : `No major GC${majors.of} ran in the second half of this time: the growth may be ` +
          'garbage.'),
    evidence('outsideHeapSteadinessRatio', steady, limits.steadinessRatio, (value, limit) =>
      `Steadiness of the growth: ${value} (threshold ${limit}; 1 is a straight, continuing line).`),
    evidence('outsideHeapRiseBytes', whole.rise, neededBytes, (value, limit) =>
      `Memory outside the heap has risen by ${value} in ${formatSeconds(whole.overSeconds)}, ` +
      `${formatRatio(whole.rise / (whole.rise + whole.runway))} of the way to ` +
      `${nameMemoryLimit(signals)} (threshold ${limit}).`),
    // V8 also counts Buffers whose pages the app has not written, which are not resident.
    isOfMain && evidence('externalRiseBytes', external, limits.placeShareRatio * rise, value =>
      `V8 counts ${external > rise ? 'all' : value} of the ${formatBytes(rise)} of the trend as ` +
      `external memory${inBuffers}.`)
  )
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 * @param {number} rise bytes
 * @param {boolean} mayBeFreed
 */
function showFreed (signals, limits, rise, mayBeFreed) {
  const freed = freedBytes(signals)
  const least = limits.churnShareRatio * rise
  if (freed !== null) {
    return evidence('allocatorSlackRiseBytes', Math.max(0, freed), least, (value, limit) =>
      `malloc itself counts ${value} of the growth as free (threshold ${limit}): the rest is in ` +
      'use.')
  }
  return evidence('bufferChurnBytes', signals.bufferChurnBytes ?? 0, least, (value, limit) =>
    mayBeFreed
      ? `Buffers of ${value} are allocated and freed: retained memory of malloc is not ruled out.`
      : `Buffers of only ${value} are allocated and freed (threshold ${limit}): malloc retains ` +
        'the growth only if native code frees memory as well.')
}

module.exports = { judgeMinutes }
