'use strict'

const { pasteLine } = require('@memwatch/engine/fixes/paste-line')
const { formatBytes } = require('@memwatch/engine/text/format')
const { isApplied } = require('@memwatch/engine/verdicts/applied')
const { readMemoryLimit } = require('@memwatch/exporter/process/memory-limit')
const {
  describeProcess, isStarter, preloadsAgent
} = require('@memwatch/exporter/process/process-view')
const { ok, problem, unknown } = require('./check')

/** @typedef {import('./check').Check} Check */
/** @typedef {import('./check').Subject} Subject */

/**
 * Reasons why an agent has no GC hooks, and observes GCs by PerformanceObserver. @satisfies
 * {Record<import('@memwatch/agent/protocol/frame').GcHooksMissing, string>}
 */
const HOOKS_MISSING = Object.freeze({
  off: 'MEMWATCH_GC_HOOKS is off',
  no_addon: 'the package @memwatch/allocator is not installed, or has no binary for this platform',
  addons_disabled: 'the permission model, or --no-addons',
  not_loaded: 'Node.js could not load the addon',
  no_symbols: "this Node.js does not export V8's functions",
  disagreed: 'the hooks and an observer counted different GCs'
})

/**
 * Checks the container's memory limit, and the heap limit that V8 chose for it.
 * @param {Subject} subject
 * @returns {Check}
 */
function checkLimits ({ view, target, verdicts }) {
  const limitBytes = target?.values.containerLimitBytes ?? readMemoryLimit(view?.cgroup ?? null)
  const limit = limitBytes === undefined
    ? 'The memory limit of the container is not visible'
    : limitBytes === null
      ? 'The container has no memory limit'
      : `The container’s memory limit is ${formatBytes(limitBytes)}`
  const heapBytes = target?.values.heapSizeLimitBytes
  if (heapBytes === undefined) {
    return unknown('limits', `${limit}. The heap limit of V8 is unknown until the agent reports.`)
  }
  const text = `${limit}; the heap limit of V8 is ${formatBytes(heapBytes)}.`
  const mismatch = verdicts.find(({ diagnosis }) => diagnosis === 'container-limit-mismatch')
  if (['confirmed', 'suspected'].includes(mismatch?.state)) {
    return problem(
      'limits', `${text} ${mismatch.summary}`, `memwatch plan ${target.target} compares limits.`
    )
  }
  return limitBytes === undefined ? unknown('limits', text) : ok('limits', text)
}

/**
 * @param {Subject} subject
 * @returns {Check}
 */
function checkGcCounter ({ target }) {
  if (!target?.gcCounter) {
    return unknown('gc-counter', 'The method of counting GCs is unknown until the agent reports.')
  }
  if (target.gcCounter === 'hooks') return ok('gc-counter', 'GCs are counted in V8’s own callbacks.')
  const reason = /** @type {keyof typeof HOOKS_MISSING | null} */ (target.gcHooksMissing)
  return ok(
    'gc-counter',
    'A PerformanceObserver counts GCs, at 40 to 100 µs of CPU ' +
      `each${reason ? `: ${HOOKS_MISSING[reason] ?? reason}` : ''}.`
  )
}

/**
 * Checks if the first fix of each finding is in force. Leaks come first, because no flag fixes
 * them.
 * @param {Subject} subject
 * @returns {Check[]}
 */
function checkFixes ({ settings, target, verdicts }) {
  if (!target) return [unknown('fix', 'Fixes are unknown until the agent reports.')]
  const found = verdicts.filter(({ state, opportunity }) =>
    !opportunity && (state === 'confirmed' || state === 'suspected'))
  if (found.length === 0) return [ok('fix', 'No change is advised so far.')]
  const leaks = found.filter(({ diagnosis }) => diagnosis.endsWith('-leak'))
  const others = found.filter(verdict => !leaks.includes(verdict))
  return [...leaks, ...others].map(({ diagnosis, state, summary, fix: [fix] }) => {
    if (leaks.some(leak => leak.diagnosis === diagnosis)) {
      return unknown(
        'fix',
        `${diagnosis} is ${state}: ${summary} A larger heap only delays the end of a leak.` +
          (fix ? ` First fix: ${fix.title}.` : '')
      )
    }
    if (!fix?.change.flag && !fix?.change.env) {
      return unknown(
        'fix',
        `The fix for ${diagnosis} is neither a flag nor a variable: ` +
          `${fix?.title ?? 'none is known'}.`
      )
    }
    const line = pasteLine(fix)
    const isInForce = settings && isApplied(fix.change, settings)
    if (isInForce === null) {
      return unknown('fix', 'It is unknown whether the process runs with ' +
      `${line}.`)
    }
    return isInForce
      ? ok('fix', `The process runs with the fix for ${diagnosis}: ${line}`)
      : problem(
        'fix',
        `The process runs without the fix for ${diagnosis}: ${line}`,
        (leaks.length > 0 ? `It does not fix ${leaks[0].diagnosis}, above. ` : '') +
          `memwatch fix ${target.target} --diagnosis ${diagnosis} --format node-options, dockerfile ` +
          'or kubernetes prints the fix. If it is already set, the checks above say why it has ' +
            'no effect.'
      )
  })
}

/**
 * Checks for processes that share the container's memory limit and have no agent.
 * @param {Subject} subject
 * @param {object} others
 * @param {Subject[]} others.all all visible Node.js processes
 * @returns {Check[]} checks; empty without a limit
 */
function checkNeighbours ({ pid, view, target }, { all }) {
  const limitBytes = target?.values.containerLimitBytes ?? readMemoryLimit(view?.cgroup ?? null)
  if (!view?.cgroup || typeof limitBytes !== 'number') return []
  const silent = all.filter(other => other.pid !== pid && other.view?.cgroup === view.cgroup &&
    !other.target && !isStarter(other.view) && !preloadsAgent(other.settings))
  const shared = `the limit of ${formatBytes(limitBytes)}`
  return silent.length === 0
    ? [ok('neighbours', `No Node.js process without the agent shares ${shared}.`)]
    : [problem(
        'neighbours',
        `Node.js processes without the agent share ${shared}: ` +
          `${silent.flatMap(({ view }) => view ? describeProcess(view) : []).join(', ')}.`,
        'Set NODE_OPTIONS="--require memwatch/agent" for the whole container.'
      )]
}

module.exports = { checkLimits, checkGcCounter, checkFixes, checkNeighbours }
