'use strict'

const { plan } = require('@memwatch/engine/v8/plan')
const { planCase } = require('@memwatch/engine/v8/plan-case')
const { has, nodeVersion, SEES_CGROUP_V2 } = require('@memwatch/engine/v8/node-versions')
const { signalsOf } = require('@memwatch/engine/signals/index')
const { youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')
const { PlanArgumentError } = require('./plan-request')

/**
 * Plan of a process that does not run yet.
 * @param {ReturnType<typeof import('./plan-request').readPlanArguments>} asked
 */
const planAnew = asked => plan({
  ...asked,
  cgroup: asked.cgroup ?? 'v2',
  flags: { nodeOptions: asked.nodeOptions, execArgv: [] }
})

/**
 * Plan of a target. Unnamed settings stay as they are; flags are added to its own.
 * @param {import('@memwatch/engine/history/target').Target} target with a frame
 * @param {ReturnType<typeof import('./plan-request').readPlanArguments>} asked
 */
function planFor (target, { versions, memoryLimits, nodeOptions, host, cgroup }) {
  const { hello } = target
  const own = { nodeOptions: hello.nodeOptions, execArgv: hello.execArgv }
  const machine =
    host.given || hello.hostMemoryBytes === undefined
      ? host
      : { bytes: hello.hostMemoryBytes, given: true }
  const running = runningTarget(target, own, machine)
  const { version, memoryLimitBytes } = running.now
  return plan({
    versions: versions.length > 0 ? versions : [version],
    memoryLimits: memoryLimits.length > 0 ? memoryLimits : [memoryLimitBytes],
    flags: { nodeOptions: [...own.nodeOptions, ...nodeOptions], execArgv: own.execArgv },
    host: machine,
    cgroup: cgroup ?? running.cgroup,
    running
  })
}

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('@memwatch/engine/v8/plan-case').GivenFlags} flags
 * @param {import('@memwatch/engine/v8/plan-case').Host} host
 * @returns {import('@memwatch/engine/v8/plan').RunningTarget & { cgroup: 'v1' | 'v2' }}
 */
function runningTarget (target, flags, host) {
  const { hello, values } = target
  const window = /** @type {import('@memwatch/engine/history/window').Window} */ (target.window())
  const signals = signalsOf(window)
  const version = nodeVersion(hello.node, hello.v8)
  if (!version) {
    throw new PlanArgumentError(
      'target',
      `its V8 calls itself ${JSON.stringify(hello.v8)}, which is no version`
    )
  }
  const limitBytes = /** @type {number | undefined} */ (values.containerLimitBytes) ?? null
  // Heap limit that V8 chose at its start, whatever the limit is now.
  const foretold = planCase(version, hello.constrainedBytes ?? null, { flags, host, cgroup: 'v1' })
  const now = planCase(version, limitBytes, { flags, host, cgroup: 'v1' })
  const heapSizeLimitBytes = signals.heapSizeLimitBytes ?? foretold.sizes.heapSizeLimitBytes
  const semiSpaceBytes =
    heapSizeLimitBytes === foretold.sizes.heapSizeLimitBytes && !hello.pointerCompression
      ? foretold.sizes.semiSpaceBytes
      : signals.semiSpaceMaxBytes
  const seesV2 = has(version, SEES_CGROUP_V2)
  const seesLimit = hello.constrainedBytes !== undefined
  return {
    now: {
      ...now,
      meant: { ...now.meant, refusals: [], unknown: [] },
      sizes: {
        heapSizeLimitBytes,
        semiSpaceBytes,
        oldBytes:
          semiSpaceBytes === null ? null : heapSizeLimitBytes - youngGenerationBytes(semiSpaceBytes)
      },
      running: true
    },
    foretoldBytes: foretold.sizes.heapSizeLimitBytes,
    // Node 18 sees a limit of cgroup v1 only; one that later ones do not see is on a parent.
    cgroup: seesLimit && !seesV2 ? 'v1' : 'v2',
    limitOnParent: limitBytes !== null && !seesLimit && seesV2,
    pointerCompression: hello.pointerCompression,
    liveHeapBytes: signals.liveHeapHighestBytes,
    besideHeapBytes: signals.besideHeapBytes,
    rssBytes: signals.rssBytes
  }
}

module.exports = { planAnew, planFor }
