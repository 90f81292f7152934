'use strict'

const { steadyUnixMs } = require('../clock')
const schemas = require('./schemas')
const { pageOf } = require('./pagination')
const { anatomyIn } = require('@memwatch/engine/signals/anatomy-in')
const { parts } = require('@memwatch/engine/memory/parts')
const { attachedVerdicts } = require('@memwatch/engine/verdicts/attached')
const { primaryOf } = require('@memwatch/engine/verdicts/urgency')
const { headlineOf } = require('@memwatch/engine/verdicts/headline')
const { withKubernetes } = require('@memwatch/engine/fixes/forms')

/** @typedef {import('@memwatch/engine/history/target').Target} Target */

/**
 *   GET /api/v1/targets     targets, with their newest values
 *   GET /api/v1/diagnoses   verdicts on the targets
 *
 * @param {import('fastify').FastifyInstance} server
 * @param {object} parts
 * @param {() => Target[]} parts.targets
 * @param {import('../deaths/death-watch').DeathWatch} parts.deathWatch
 * @param {(target: Target, error: Error) => void} parts.omit called for a target that is left out
 */
function targetRoutes (server, { targets, deathWatch, omit }) {
  /**
   * Targets that a query selects.
   * @param {import('fastify').FastifyRequest} request
   * @param {import('fastify').FastifyReply} reply
   */
  const asked = (request, reply) => {
    const { target: wanted, thread: wantedThread } = /** @type {{ target?: string, thread?: string }} */ (request.query)
    const found = targets().filter(
      ({ name, thread }) =>
        (wanted === undefined || name === wanted) &&
        (wantedThread === undefined || thread === wantedThread)
    )
    return pageOf(request, reply, found, ({ name, thread, hello }) => [
      name,
      thread,
      hello.pid,
      hello.startedAtUnixMs
    ])
  }
  /**
   * Present state of a target, whose values and verdicts are those of its last frame.
   * @param {Target} target
   */
  const presenceOf = target => ({
    up: target.isUp(steadyUnixMs()),
    silence: deathWatch.silenceOf(target) ?? null
  })
  /**
   * Sends a list whose items are serialized one by one: a target that cannot be serialized is left
   * out.
   * @param {import('fastify').FastifyRequest} request
   * @param {import('fastify').FastifyReply} reply
   * @param {(target: Target) => object} make creates the item of a target
   */
  const each = (request, reply, make) => {
    const found = asked(request, reply)
    if (!Array.isArray(found)) return found
    const items = withoutOmitted(found, target => JSON.stringify(make(target)), omit)
    return reply.type('application/json; charset=utf-8').send(`[${items.join(',')}]`)
  }

  server.get(
    '/api/v1/targets',
    {
      schema: {
        tags: ['targets'],
        summary: 'Targets, with their newest values, by name',
        querystring: schemas.targetsQuery,
        response: { 200: schemas.targets, ...schemas.refusals }
      }
    },
    async (request, reply) => each(request, reply, target =>
      ({ ...describeTarget(target), ...presenceOf(target) }))
  )
  server.get(
    '/api/v1/diagnoses',
    {
      schema: {
        tags: ['diagnoses'],
        summary: 'Verdicts on all targets, by name of the target',
        querystring: schemas.targetsQuery,
        response: { 200: schemas.diagnoses, ...schemas.refusals }
      }
    },
    async (request, reply) => each(request, reply, target =>
      ({ ...judgedTarget(target), ...presenceOf(target) }))
  )
}

/**
 * An item of /api/v1/targets.
 * @param {Target} target
 */
function describeTarget (target) {
  return {
    ...nameOf(target),
    pod: target.hello.pod ?? null,
    nodeOptions: target.hello.nodeOptions,
    v8: target.hello.v8,
    libc: target.hello.libc,
    allocator: target.hello.allocator,
    gcCounter: target.hello.gcCounter ?? null,
    gcHooksMissing: target.hello.gcHooksMissing ?? null,
    uptimeSeconds: target.frame?.uptimeSeconds,
    lastFrameUnixMs: target.frame?.atUnixMs,
    framesLost: target.framesLost,
    memory: memoryOf(target),
    values: target.values
  }
}

/**
 * @template T
 * @param {Target[]} targets
 * @param {(target: Target) => T} make
 * @param {(target: Target, error: Error) => void} omit
 * @returns {T[]} items of all targets for which `make` succeeds
 */
function withoutOmitted (targets, make, omit) {
  return targets.flatMap(target => {
    try {
      return [make(target)]
    } catch (error) {
      omit(target, /** @type {Error} */ (error))
      return []
    }
  })
}

/** @param {Target} target */
function nameOf (target) {
  return {
    target: target.name,
    thread: target.thread,
    pid: target.hello.pid,
    node: target.hello.node
  }
}

/**
 * RSS breakdown of a target's process, with descriptions of the parts.
 * @param {Target} target
 */
function memoryOf (target) {
  const window = target.window()
  const anatomy = window && anatomyIn(window)
  return anatomy && {
    rssBytes: anatomy.rssBytes,
    parts: Object.entries(parts).map(([part, words]) => ({ part, ...words, bytes: anatomy.parts[/** @type {import('@memwatch/engine/memory/parts').PartName} */ (part)] })),
    retainedLeastBytes: anatomy.retainedBytes[0],
    retainedMostBytes: anatomy.retainedBytes[1],
    unknown: anatomy.unknown
  }
}

/** @param {Target} target */
function verdictsOf (target) {
  return attachedVerdicts(target).map(verdict => ({
    ...verdict,
    fix: verdict.fix.map(fix => ({ ...fix, change: withKubernetes(fix.change) }))
  }))
}

/**
 * A target and its verdicts: an item of the report of `memwatch run`, and of /api/v1/diagnoses
 * together with the present state.
 * @param {Target} target
 */
function judgedTarget (target) {
  const verdicts = verdictsOf(target)
  return {
    ...nameOf(target),
    memory: memoryOf(target),
    headline: headlineOf(target, verdicts),
    primary: primaryOf(verdicts),
    verdicts
  }
}

module.exports = { targetRoutes, withoutOmitted, nameOf, judgedTarget }
