'use strict'

const schemas = require('./schemas')
const { refuseUnknownTarget } = require('./named-target')

/** Upper bound of processes whose histories one answer reads: each takes some 20 ms. */
const MOST_PROCESSES = 16

/**
 * GET /api/v1/right-size: recommended memory request, limit and heap of a workload, from its
 * history of up to a week.
 * @param {import('fastify').FastifyInstance} server
 * @param {object} parts
 * @param {() => import('@memwatch/engine/history/target').Target[]} parts.targets
 * @param {import('../deaths/deaths').Deaths} parts.deaths
 */
function rightSizeRoutes (server, { targets, deaths }) {
  server.get(
    '/api/v1/right-size',
    {
      schema: {
        tags: ['plan'],
        summary: 'Memory request, limit and heap size of a workload, from its history',
        querystring: schemas.rightSizeQuery,
        response: { 200: schemas.rightSize, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target: wanted, guaranteed } =
        /** @type {{ target: string, guaranteed: boolean }} */ (request.query)
      const known = targets().filter(({ thread }) => thread === 'main')
      const asked = known.find(({ name }) => name === wanted)
      if (!asked) return refuseUnknownTarget(reply, known)
      // Replicas report the same name of the app; the registry numbers them.
      const replicas = known.filter(({ hello }) => hello.name === asked.hello.name)
      // This file is loaded on use: a sidecar that is only scraped never needs V8's sizing rules.
      const { WorkloadSizes } = require('@memwatch/engine/verdicts/workload-sizes')
      const sizes = new WorkloadSizes()
      for (const replica of replicas.slice(0, MOST_PROCESSES)) {
        sizes.history(replica)
        sizes.state(replica)
        // Other requests and frames are handled in between.
        await new Promise(resolve => setImmediate(resolve))
      }
      const names = new Set(replicas.map(({ name }) => name))
      for (const { target, reason } of deaths.all) {
        if (!names.has(target)) continue
        if (reason === 'oom_kill' || reason === 'heap_oom') sizes.death(reason)
      }
      return { target: asked.name, ...sizes.answer({ guaranteed }) }
    }
  )
}

module.exports = { rightSizeRoutes }
