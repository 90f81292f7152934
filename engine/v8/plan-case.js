'use strict'

const { sizesUnderFlags } = require('./sizes-under-flags')
const { plannedFlags } = require('./plan-flags')
const { has, SEES_CGROUP_V2 } = require('./node-versions')

const MIB = 2 ** 20
/** The kernel rounds a limit down to whole pages. */
const KERNEL_PAGE = 4096

/**
 * One planned case: a Node.js under a limit, and the sizes that V8 chooses.
 * @typedef {object} PlanCase
 * @property {import('./node-versions').NodeVersion} version
 * @property {number | null} memoryLimitBytes null: no limit
 * @property {'yes' | 'cgroup-v2' | 'parent'} seesLimit true if Node.js sees the limit, otherwise
 *   the reason why not
 * @property {number} toldBytes memory that V8 sees
 * @property {Host} host
 * @property {string} flags
 * @property {import('./plan-flags').PlannedFlags} meant
 * @property {import('./sizes-under-flags').SizeFlags} sizeFlags the size flags that take effect in
 *   V8
 * @property {{ heapSizeLimitBytes: number, oldBytes: number | null, semiSpaceBytes: number | null
 *   }} sizes sizes that V8 chooses; null if unknown
 * @property {import('./heap-sizing').HeapSizes} [seen] sizes that V8 would choose if it saw the
 *   limit; present if it does not see the limit
 * @property {import('./heap-sizing').HeapSizes} [oneMore] sizes with one MiB more, if the limit has
 *   an effect
 * @property {boolean} running true for the running process, whose sizes V8 reported
 *
 * @typedef {{ bytes: number, given: boolean }} Host memory of the machine; given: true if the user
 *   stated it
 * @typedef {{ nodeOptions: string[], execArgv: string[] }} GivenFlags
 */

/**
 * @param {import('./node-versions').NodeVersion} version
 * @param {number | null} memoryLimitBytes
 * @param {object} given
 * @param {GivenFlags} given.flags
 * @param {Host} given.host
 * @param {'v1' | 'v2'} given.cgroup
 * @param {boolean} [given.limitOnParent] true if the limit is on a parent cgroup, which Node.js
 *   does not read
 * @returns {PlanCase}
 */
function planCase (version, memoryLimitBytes, { flags, host, cgroup, limitOnParent = false }) {
  const seesLimit = limitOnParent
    ? 'parent'
    : cgroup === 'v1' || has(version, SEES_CGROUP_V2)
      ? 'yes'
      : 'cgroup-v2'
  const limited = memoryLimitBytes !== null && seesLimit === 'yes'
  const pagesBytes =
    memoryLimitBytes === null ? Infinity : Math.floor(memoryLimitBytes / KERNEL_PAGE) * KERNEL_PAGE
  // The memory of an unknown machine is not needed if the container's limit is the smaller one.
  const toldBytes = limited ? Math.min(pagesBytes, host.given ? host.bytes : Infinity) : host.bytes
  const meant = plannedFlags(version, flags)
  const sizeFlags = sizeFlagsOf(meant, toldBytes)
  const sizesFor = (/** @type {number} */ bytes) => sizesUnderFlags(version.v8Major, version.v8Minor, bytes, sizeFlagsOf(meant, bytes))
  return {
    version,
    memoryLimitBytes,
    seesLimit,
    toldBytes,
    host,
    flags: [...flags.nodeOptions, ...flags.execArgv].join(' '),
    meant,
    sizeFlags,
    sizes: sizesFor(toldBytes),
    seen: memoryLimitBytes !== null && !limited ? sizesFor(pagesBytes) : undefined,
    oneMore: limited ? sizesFor(toldBytes + MIB) : undefined,
    running: false
  }
}

/**
 * Node.js converts the percentage into whole MB, which override --max-old-space-size.
 * @param {import('./plan-flags').PlannedFlags} meant
 * @param {number} toldBytes
 * @returns {import('./sizes-under-flags').SizeFlags}
 */
const sizeFlagsOf = ({ sizes, percent }, toldBytes) =>
  percent === undefined
    ? sizes
    : { ...sizes, oldMb: Math.floor(((toldBytes / MIB) * percent) / 100) }

module.exports = { planCase }
