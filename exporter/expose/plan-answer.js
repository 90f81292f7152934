'use strict'

const { plan } = require('@memwatch/engine/v8/plan')
const { planCase } = require('@memwatch/engine/v8/plan-case')
const { runningProcess } = require('@memwatch/engine/v8/running-process')
const { signalsOf } = require('@memwatch/engine/signals/index')
const { youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')
const { PlanArgumentError } = require('./plan-request')

/**
 * Plan for a process that does not run yet.
 * @param {ReturnType<typeof import('./plan-request').readPlanArguments>} asked
 */
const planAnew = asked => plan({
  ...asked,
  cgroup: asked.cgroup ?? 'v2',
  flags: { nodeOptions: asked.nodeOptions, execArgv: [] }
})

/**
 * Plan for a target. Settings that the request does not name stay unchanged; flags are added to the
 * target's own.
 * @param {import('@memwatch/engine/history/target').Target} target with a frame
 * @param {ReturnType<typeof import('./plan-request').readPlanArguments>} asked
 */
function planFor (target, { versions, memoryLimits, nodeOptions, host, cgroup }) {
  const running = runningTarget(target, host)
  const { flags: own, host: machine } = running.process
  const { version, memoryLimitBytes } = running.now
  return plan({
    versions: versions.length > 0 ? versions : [version],
    memoryLimits: memoryLimits.length > 0 ? memoryLimits : [memoryLimitBytes],
    flags: { nodeOptions: [...own.nodeOptions, ...nodeOptions], execArgv: own.execArgv },
    host: machine,
    cgroup: cgroup ?? running.process.cgroup,
    running
  })
}

/**
 * @param {import('@memwatch/engine/history/target').Target} target
 * @param {import('@memwatch/engine/v8/plan-case').Host} machine
 * @returns {import('@memwatch/engine/v8/plan').RunningTarget &
 *   { process: import('@memwatch/engine/v8/right-size').Process }}
 */
function runningTarget (target, machine) {
  const { hello, values } = target
  const window = /** @type {import('@memwatch/engine/history/window').Window} */ (target.window())
  const signals = signalsOf(window)
  const limitBytes = /** @type {number | undefined} */ (values.containerLimitBytes) ?? null
  const process = runningProcess(hello, limitBytes, machine)
  if (!process) {
    throw new PlanArgumentError(
      'target',
      `its V8 has the invalid version ${JSON.stringify(hello.v8)}`
    )
  }
  const { version, flags, host } = process
  // V8 chose the heap limit at the start of the process, so the present container limit does not
  // matter here.
  const foretold = planCase(version, hello.constrainedBytes ?? null, { flags, host, cgroup: 'v1' })
  const now = planCase(version, limitBytes, { flags, host, cgroup: 'v1' })
  const heapSizeLimitBytes = signals.heapSizeLimitBytes ?? foretold.sizes.heapSizeLimitBytes
  const semiSpaceBytes =
    heapSizeLimitBytes === foretold.sizes.heapSizeLimitBytes && !hello.pointerCompression
      ? foretold.sizes.semiSpaceBytes
      : signals.semiSpaceMaxBytes
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
    process,
    limitOnParent: process.limitOnParent,
    pointerCompression: hello.pointerCompression,
    liveHeapBytes: signals.liveHeapHighestBytes,
    besideHeapBytes: signals.besideHeapBytes,
    rssBytes: signals.rssBytes
  }
}

module.exports = { planAnew, planFor }
