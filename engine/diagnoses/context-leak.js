'use strict'

const { defineDiagnosis } = require('./define-diagnosis')
const { evidence, prediction } = require('./evidence')
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
    // An app has one context; a few more belong to sandboxes that are kept on purpose.
    contexts: 20,
    // So many more than at the beginning, across major GCs: what nobody holds would be gone.
    rise: 15,
    // Without a major GC since half of the rise they may be garbage that waits.
    majors: 1,
    // Straight and not slowing down: leaks measure 0.7–1.
    steadinessRatio: 0.55,
    ...URGENCY_LIMITS,
    // Code that grows in a line without contexts: functions compiled from text, and kept.
    codeRiseBytes: 8 * 2 ** 20
  },
  explains: ['js-heap-leak', 'heap-limit-thrash'],
  runbook: 'MemwatchContextLeak',

  judge (signals, limits) {
    const { nativeContexts, nativeContextsTrend, codeSpaceTrend } = signals
    const rise = nativeContextsTrend?.rise ?? null
    const steady = nativeContextsTrend?.steadinessRatio ?? 0
    const codeRise = codeSpaceTrend?.rise ?? null
    const codeGrows =
      (codeRise ?? 0) >= limits.codeRiseBytes &&
      (codeSpaceTrend?.steadinessRatio ?? 0) >= limits.steadinessRatio
    const contextsGrow = nativeContexts >= limits.contexts && rise !== null && rise >= limits.rise
    if (!contextsGrow && !codeGrows) {
      if (nativeContexts >= limits.contexts && rise === null) {
        return {
          state: 'unknown',
          summary: `${formatNumber(nativeContexts)} contexts, and too few major GCs to know ` +
            'whether they stay'
        }
      }
      return {
        state: 'ok',
        summary:
          nativeContexts < limits.contexts
            ? `${nativeContexts === 1
            ? 'one context'
            : `${formatNumber(nativeContexts)} ` +
              'contexts'}: no pile`
            : `${formatNumber(nativeContexts)} contexts, and they do not grow`
      }
    }
    const perSecond = nativeContextsTrend?.slope ?? 0
    const { heapRunwayBytes: runway, liveHeapTrend } = signals
    const heapGrowth = liveHeapTrend?.slope ?? 0
    const secondsLeft = runway !== null && heapGrowth > 0 ? runway / heapGrowth : null
    const holds =
      signals.majorsSeen >= limits.majors && (codeGrows || steady >= limits.steadinessRatio)
    return {
      state: holds ? 'confirmed' : 'suspected',
      severity: severityByTime(secondsLeft, limits),
      summary: contextsGrow
        ? `${formatNumber(nativeContexts)} V8 contexts are alive, ${formatNumber(perSecond)} ` +
          'more each second, and major GCs do not free them.'
        : `Compiled code grows by ${formatBytes(codeRise ?? 0)} and major GCs do not free it.`,
      finding: contextsGrow
        ? { signal: /** @type {const} */ ('nativeContextsPerSecond'), growth: perSecond }
        : { signal: /** @type {const} */ ('codeSpaceRiseBytes'), growth: codeRise ?? 0 },
      evidence: [
        evidence(
          'nativeContextsRise',
          rise ?? 0,
          limits.rise,
          (value, limit) =>
            `${value} contexts more than at the beginning of the line (${limit} count); ` +
              `${formatNumber(signals.detachedContexts ?? 0)} of all are detached.`
        ),
        evidence(
          'majorsSeen',
          signals.majorsSeen,
          limits.majors,
          value => `${value} major GCs ran meanwhile.`
        ),
        evidence(
          'nativeContextsSteadinessRatio',
          steady,
          limits.steadinessRatio,
          (value, limit) => `Straight and not slowing down: ${value}, from ${limit} on it goes on.`
        ),
        ...(liveHeapTrend === null
          ? []
          : [
              evidence(
                'liveHeapRiseBytes',
                liveHeapTrend.rise,
                0,
                value => `The live heap rose by ${value} with them.`
              )
            ]),
        ...(codeRise === null
          ? []
          : [
              evidence(
                'codeSpaceRiseBytes',
                codeRise,
                limits.codeRiseBytes,
                value => `The code space rose by ${value}.`
              )
            ]),
        evidence('nativeContextsPerSecond', perSecond, 0, value => `Contexts grow by ${value}.`)
      ],
      impact: 'Each context holds its own globals: the live heap grows by ' +
        `${formatValue(heapGrowth, 'bytesPerSecond')} with them.`
    }
  },

  fix ({ signal, growth }) {
    return [
      {
        title: 'Make one context and use it again, or let go of each',
        change: {
          code: 'Look for vm.createContext, vm.runInNewContext, new ' +
            'vm.Script(…).runInNewContext, jsdom windows and template sandboxes in code that ' +
              'runs per request. Create the context once and keep it, run in the current one ' +
                '(vm.runInThisContext, vm.compileFunction), or drop every reference to what ' +
                  'came out of it: an object, a function or an error of a context keeps the ' +
                    'whole context.'
        },
        predicted: [prediction(signal, growth, 0)],
        risk: 'Scripts that share a context see each other’s globals.'
      }
    ]
  }
})
