'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')
const { refuse } = require('./problems')

/**
 * GET /api/v1/plan: heap sizes that V8 would choose under another Node.js version, limit or flag;
 * with target= they are compared with the target's present sizes.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 */
function planRoutes (server, targets) {
  server.get(
    '/api/v1/plan',
    {
      schema: {
        tags: ['plan'],
        summary: 'Heap sizes under another Node.js, memory limit or flag',
        querystring: schemas.planQuery,
        response: { 200: schemas.plan, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const { target: wanted, ...given } =
        /** @type {import('./plan-request').PlanArguments & { target?: string }} */ (request.query)
      // These files are loaded on use: a sidecar that is only scraped never needs V8's sizing rules
      // for all versions of Node.js.
      const { planAnew, planFor } = require('./plan-answer')
      const { PlanArgumentError, readPlanArguments } = require('./plan-request')
      try {
        const asked = readPlanArguments(given, { ofTarget: wanted !== undefined })
        if (wanted === undefined) return planAnew(asked)
        const target = namedTarget(targets(), { params: { target: wanted }, query: {} })
        return target ? planFor(target, asked) : refuseUnknownTarget(reply, targets())
      } catch (error) {
        if (!(error instanceof PlanArgumentError)) throw error
        return refuse(reply, 'not_plannable', `${error.argument}: ${error.message}`)
      }
    }
  )
}

module.exports = { planRoutes }
