'use strict'

const { refuse } = require('./problems')

/**
 * Options of a server whose paths name targets. A name has up to 128 characters, and each may take
 * nine characters in a path; fastify's default limit is 100 characters.
 */
const NAMES_TARGETS = Object.freeze({ routerOptions: { maxParamLength: 2048 } })

/**
 * Finds the target that a request names, by its path and the thread in its query.
 * @param {import('@memwatch/engine/history/target').Target[]} targets
 * @param {Pick<import('fastify').FastifyRequest, 'params' | 'query'>} request
 * @returns {import('@memwatch/engine/history/target').Target | undefined}
 */
function namedTarget (targets, { params, query }) {
  const { target: wanted } = /** @type {{ target: string }} */ (params)
  const { thread: wantedThread = 'main' } = /** @type {{ thread?: string }} */ (query)
  return targets.find(({ name, thread }) => name === wanted && thread === wantedThread)
}

/**
 * @param {import('fastify').FastifyReply} reply
 * @param {import('@memwatch/engine/history/target').Target[]} targets known targets
 */
const refuseUnknownTarget = (reply, targets) =>
  refuse(
    reply,
    'unknown_target',
    'unknown target; known targets: ' +
      `${targets.map(({ name, thread }) => (thread === 'main' ? name : `${name} ${thread}`)).join(', ') || 'none'}`
  )

module.exports = { NAMES_TARGETS, namedTarget, refuseUnknownTarget }
