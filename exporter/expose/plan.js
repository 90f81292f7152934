'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')
const { refuse } = require('./problems')
const { signalsOf } = require('@memwatch/engine/signals/index')
const { youngGenerationBytes } = require('@memwatch/engine/v8/heap-sizing')
const { plan } = require('@memwatch/engine/v8/plan')
const { planCase } = require('@memwatch/engine/v8/plan-case')
const { nodeVersion, has, SEES_CGROUP_V2 } = require('@memwatch/engine/v8/node-versions')
const { readPlanArguments, PlanArgumentError } = require('./plan-request')

/**
 * GET /api/v1/plan: what V8 will choose under another Node.js, limit or flag; with target= against
 * what that runs now.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 */
function planRoutes (server, targets) {
  server.get(
    '/api/v1/plan',
    {
      schema: {
        tags: ['plan'],
        summary: 'What V8 will choose under another Node.js, memory limit or flag',
        querystring: schemas.planQuery,
        response: { 200: schemas.plan, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target: wanted, ...given } =
        /** @type {import('./plan-request').PlanArguments & { target?: string }} */ (request.query)
      try {
        const asked = readPlanArguments(given, { ofTarget: wanted !== undefined })
        if (wanted === undefined) {
          return plan({
            ...asked,
            cgroup: asked.cgroup ?? 'v2',
            flags: { nodeOptions: asked.nodeOptions, execArgv: [] }
          })
        }
        const target = namedTarget(targets(), { params: { target: wanted }, query: {} })
        return target ? planFor(target, asked) : refuseUnknownTarget(reply, targets())
      } catch (error) {
        if (!(error instanceof PlanArgumentError)) throw error
        return refuse(reply, 'not_plannable', `${error.argument}: ${error.message}`)
      }
    }
  )
}

/**
 * Plan of a target. Settings that are not named stay; flags are added to its own.
 * @param {import('@memwatch/engine/history/target').Target} target with a frame
 * @param {ReturnType<typeof readPlanArguments>} asked
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
  // Heap limit that V8 got at its start, whatever the limit is now.
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

module.exports = { planRoutes }
