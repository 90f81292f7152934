'use strict'

const { has, nodeVersion, SEES_CGROUP_V2 } = require('./node-versions')

/**
 * A running process in the terms of a plan: its version, flags, machine, and its view of the limit.
 * @param {import('@memwatch/agent/protocol/frame').Hello} hello
 * @param {number | null} limitBytes of its container now
 * @param {import('./plan-case').Host} host used where the hello lacks the machine's memory, or if
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
    // Node 18 sees a limit of cgroup v1 only; one that later ones do not see is on a parent.
    cgroup: seesLimit && !seesV2 ? 'v1' : 'v2',
    limitOnParent: limitBytes !== null && !seesLimit && seesV2
  }
}

module.exports = { runningProcess }
