'use strict'

const { defineDiagnosis, ok, unknown } = require('./define-diagnosis')
const { evidence, listEvidence, prediction } = require('./evidence')
const { LASTING_LIMITS, timeLeft } = require('./lasting-growth')
const { URGENCY_LIMITS, severityByTime } = require('./severity')
const { formatBytes, formatNumber, formatValue } = require('../text/format')

module.exports = defineDiagnosis({
  id: 'context-leak',
  title: 'V8 contexts keep piling up',
  severity: 'critical',
  scope: 'isolate',
  requires: ['nativeContexts', 'majorsSeen'],
  uses: [
    'nativeContextsTrend',
    'detachedContexts',
    'codeSpaceTrend',
    'liveHeapTrend',
    'heapRunwayBytes'
  ],
  limits: {
    // An app has one context. A few more may belong to sandboxes that are kept on purpose.
    contexts: 20,
    // Least growth over the trend. Only referenced contexts last, because major GCs collect the
    // others.
    rise: 15,
    // Major GCs needed in the second half of the rise: without one the contexts may be uncollected
    // garbage.
    majors: 1,
    // Least steadiness of growth that is straight and does not slow down: leaks measure 0.7–1.
    steadinessRatio: 0.55,
    ...URGENCY_LIMITS,
    tellsAheadRatio: LASTING_LIMITS.tellsAheadRatio,
    soonSeconds: LASTING_LIMITS.soonSeconds,
    // Least growth of code in a straight line, without new contexts. Its cause is functions that
    // are compiled from text and retained.
    codeRiseBytes: 8 * 2 ** 20,
    // Growth of the rest of the live heap as a multiple of the growth of code. Each retained
    // function holds its source and bytecode: leaks measured 1.6 to 1.8. In an app that merely
    // warms up, V8 compiles existing functions to machine code for minutes: such apps measured 0.2
    // to 0.5.
    functionsRatio: 1
  },
  explains: ['js-heap-leak', 'heap-limit-thrash'],
  holds: 'objects',
  runbook: 'MemwatchContextLeak',

  /** @returns {import('./define-diagnosis').Judgement<Finding>} */
  judge (signals, limits) {
    const { nativeContexts, nativeContextsTrend: contexts, codeSpaceTrend: code } = signals
    const contextsGrow = nativeContexts >= limits.contexts && (contexts?.rise ?? 0) >= limits.rise
    const functionsRatio = weighFunctions(signals)
    const codeGrows =
      (code?.rise ?? 0) >= limits.codeRiseBytes &&
      (code?.steadinessRatio ?? 0) >= limits.steadinessRatio &&
      (functionsRatio ?? Infinity) >= limits.functionsRatio
    if (!contextsGrow && !codeGrows) return ruleOut(signals, limits)
    const isSteady = (codeGrows && functionsRatio !== null) ||
      (contexts?.steadinessRatio ?? 0) >= limits.steadinessRatio
    const perSecond = contexts?.slope ?? 0
    const codeRise = code?.rise ?? 0
    const { heapRunwayBytes: runway, liveHeapTrend, majorsSeen } = signals
    const heapGrowth = liveHeapTrend?.slope ?? 0
    const secondsLeft = runway !== null && heapGrowth > 0 ? runway / heapGrowth : null
    const left = timeLeft(secondsLeft ?? Infinity, liveHeapTrend?.seconds ?? 0, limits)
    const full = left.inTime && ` At this rate the heap or the container is full ${left.inTime}.`
    return {
      state: isSteady && majorsSeen >= limits.majors ? 'confirmed' : 'suspected',
      severity: severityByTime(secondsLeft, limits),
      secondsLeft: left.secondsLeft,
      standing: contextsGrow
        ? `The number of V8 contexts grew by ${formatNumber(contexts?.rise ?? 0)}`
        : `Compiled code grew by ${formatBytes(codeRise)}`,
      summary: contextsGrow
        ? `${formatNumber(nativeContexts)} V8 contexts are alive. Their number grows by ` +
          `${formatNumber(perSecond)} a second, and major GCs do not free them.${full}`
        : `Compiled code grows by ${formatBytes(codeRise)} and major GCs do not free it.${full}`,
      finding: contextsGrow
        ? { signal: 'nativeContextsPerSecond', growth: perSecond }
        : { signal: 'codeSpaceRiseBytes', growth: codeRise },
      evidence: showEvidence(signals, limits),
      impact: 'Each context holds its own globals: the live heap grows by ' +
        `${formatValue(heapGrowth, 'bytesPerSecond')} with them.`
    }
  },

  fix ({ signal, growth }) {
    return [
      {
        title: 'Reuse one context, or drop all references to each',
        change: {
          code: 'Look for vm.createContext, vm.runInNewContext, new ' +
            'vm.Script(…).runInNewContext, jsdom windows and template sandboxes in code that ' +
            'runs per request. Create the context once and keep it, run code in the current ' +
            'context (vm.runInThisContext, vm.compileFunction), or drop every reference to its ' +
            'objects: one object, function or error of a context keeps the whole context. So does ' +
            'a timer that runs: call window.close() for each jsdom window.'
        },
        predicted: [prediction(signal, growth, 0)],
        risk: 'Scripts in the same context see each other’s globals.'
      }
    ]
  }
})

/** @typedef {typeof module.exports.limits} Limits */
/** @typedef {Parameters<typeof module.exports.judge>[0]} Signals */
/**
 * @typedef {{ signal: 'nativeContextsPerSecond' | 'codeSpaceRiseBytes', growth: number }} Finding
 */

/**
 * Compares the growth of code with that of the rest of the live heap: retained functions make both
 * grow.
 * @param {Signals} signals
 * @returns {number | null} growth of the rest of the live heap as a multiple of the growth of code
 */
function weighFunctions ({ codeSpaceTrend: code, liveHeapTrend: live }) {
  if (!code?.lateRatio || live?.lateRatio == null) return null
  const codeGrowth = code.slope * code.lateRatio
  return codeGrowth > 0 ? (live.slope * live.lateRatio - codeGrowth) / codeGrowth : null
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
function ruleOut ({ nativeContexts, nativeContextsTrend }, limits) {
  const count = nativeContexts === 1 ? 'one context' : `${formatNumber(nativeContexts)} contexts`
  if (nativeContexts < limits.contexts) return ok(`${count}: no pile`)
  if (nativeContextsTrend !== null) return ok(`${count}, and they do not grow`)
  return unknown(`${count}, and too few major GCs to know whether major GCs free them`)
}

/**
 * @param {Signals} signals
 * @param {Limits} limits
 */
function showEvidence (signals, limits) {
  const { nativeContextsTrend: contexts, liveHeapTrend, codeSpaceTrend, majorsSeen } = signals
  const steady = contexts?.steadinessRatio ?? 0
  return listEvidence(
    evidence('nativeContextsRise', contexts?.rise ?? 0, limits.rise, (value, limit) =>
      `${value} more contexts than at the start of the trend (threshold ${limit}); ` +
      `${formatNumber(signals.detachedContexts ?? 0)} of all contexts are detached.`),
    evidence('majorsSeen', majorsSeen, limits.majors, value =>
      `${value} major GCs ran during the growth.`),
    evidence('nativeContextsSteadinessRatio', steady, limits.steadinessRatio, (value, limit) =>
      `Steadiness of the growth: ${value} (threshold ${limit}; 1 is a straight, continuing line).`),
    liveHeapTrend && evidence('liveHeapRiseBytes', liveHeapTrend.rise, 0, value =>
      `The live heap rose by ${value} at the same time.`),
    codeSpaceTrend &&
      evidence('codeSpaceRiseBytes', codeSpaceTrend.rise, limits.codeRiseBytes, value =>
        `The code space rose by ${value}.`),
    evidence('nativeContextsPerSecond', contexts?.slope ?? 0, 0, value =>
      `Contexts grow by ${value}.`)
  )
}
