'use strict'

const { planCase } = require('./plan-case')
const { warningsOf } = require('./plan-warnings')

/**
 * Input of a plan.
 * @typedef {object} PlanRequest
 * @property {import('./node-versions').NodeVersion[]} versions the current version first, then
 *   candidates
 * @property {(number | null)[]} memoryLimits bytes; null: no limit
 * @property {import('./plan-case').GivenFlags} flags
 * @property {import('./plan-case').Host} host
 * @property {'v1' | 'v2'} cgroup
 * @property {RunningTarget} [running] the running process, if the plan starts from one
 *
 * @typedef {object} RunningTarget
 * @property {import('./plan-case').PlanCase} now the process's Node.js, limit, flags and sizes
 * @property {number} foretoldBytes heap size limit of the process as computed by this folder
 * @property {boolean} limitOnParent
 * @property {boolean} pointerCompression
 * @property {number | null} liveHeapBytes null before the first major GC
 * @property {number | null} besideHeapBytes
 * @property {number | null} rssBytes
 *
 * One row of a plan, as the API and --json return it.
 * @typedef {object} PlanRow
 * @property {string} node
 * @property {number | null} memoryLimitBytes
 * @property {number} heapSizeLimitBytes
 * @property {number | null} oldGenerationBytes null if it cannot be derived
 * @property {number | null} semiSpaceBytes
 * @property {number | null} newSpaceBytes maximum of both semi-spaces
 * @property {string} flags
 * @property {boolean} running true for the current sizes of the target, as it reports them
 * @property {string[]} warnings
 */

/**
 * Computes the sizes that V8 chooses on each version of Node.js under each limit, with warnings.
 * @param {PlanRequest} request
 * @returns {PlanRow[]} cases by limit, then by version; the running process comes first
 */
function plan ({ versions, memoryLimits, running, ...given }) {
  const cases = memoryLimits.map(limit =>
    versions.map(version =>
      planCase(version, limit, { ...given, limitOnParent: running?.limitOnParent })
    )
  )
  const rows = cases.flatMap((ofLimit, l) => ofLimit.map((planned, v) => ({
    planned,
    // The case to compare with is the running process. Without one it is the first version under
    // the same limit, and for the first version itself the first limit.
    from: running?.now ?? (v > 0 ? ofLimit[0] : l > 0 ? cases[0][0] : undefined)
  })))
  const asked = running
    ? [
        { planned: running.now, from: undefined },
        ...rows.filter(({ planned }) => differ(planned, running.now))
      ]
    : rows
  return asked.map(({ planned, from }) => rowOf(planned, warningsOf(planned, { from, running })))
}

/**
 * @param {import('./plan-case').PlanCase} a
 * @param {import('./plan-case').PlanCase} b
 */
const differ = (a, b) =>
  a.version.v8Major !== b.version.v8Major ||
  a.version.v8Minor !== b.version.v8Minor ||
  a.memoryLimitBytes !== b.memoryLimitBytes ||
  a.flags !== b.flags

/**
 * @param {import('./plan-case').PlanCase} planned
 * @param {string[]} warnings
 * @returns {PlanRow}
 */
function rowOf (
  {
    version,
    memoryLimitBytes,
    sizes: { heapSizeLimitBytes, oldBytes, semiSpaceBytes },
    flags,
    running
  },
  warnings
) {
  return {
    node: version.text,
    memoryLimitBytes,
    heapSizeLimitBytes,
    oldGenerationBytes: oldBytes,
    semiSpaceBytes,
    newSpaceBytes: semiSpaceBytes === null ? null : 2 * semiSpaceBytes,
    flags,
    running,
    warnings
  }
}

module.exports = { plan }
