'use strict'

const { has, nodeVersion, SEES_CGROUP_V2 } = require('./node-versions')

/**
 * Describes a running process in the terms of a plan: version, flags, machine, and whether it sees
 * the limit.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @param {number | null} limitBytes present limit of its container
 * @param {import('./plan-case').Host} host memory of the machine; used if the hello lacks it, or if
 *   the user stated it
 * @returns {import('./right-size').Process | undefined} undefined if V8's version cannot be parsed
 */
function runningProcess (
  { node, v8, nodeOptions, execArgv, hostMemoryBytes, constrainedBytes }, limitBytes, host
) {
  const version = nodeVersion(node, v8)
  if (!version) return undefined
  const seesV2 = has(version, SEES_CGROUP_V2)
  const seesLimit = constrainedBytes !== undefined
  return {
    version,
    flags: { nodeOptions, execArgv },
    host: host.given || hostMemoryBytes === undefined
      ? host
      : { bytes: hostMemoryBytes, given: true },
    // Node 18 sees only limits of cgroup v1. A limit that later versions do not see is on a parent
    // cgroup.
    cgroup: seesLimit && !seesV2 ? 'v1' : 'v2',
    limitOnParent: limitBytes !== null && !seesLimit && seesV2
  }
}

module.exports = { runningProcess }
