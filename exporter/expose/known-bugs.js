'use strict'

const schemas = require('./schemas')
const { namedTarget, refuseUnknownTarget } = require('./named-target')

/**
 * GET /api/v1/targets/:target/known-bugs: known memory bugs of a target's Node.js version and
 * packages.
 * @param {import('fastify').FastifyInstance} server
 * @param {() => import('@memwatch/engine/history/target').Target[]} targets
 */
function knownBugRoutes (server, targets) {
  server.get(
    '/api/v1/targets/:target/known-bugs',
    {
      schema: {
        tags: ['targets'],
        summary: 'Known memory bugs of the versions of a target',
        response: { 200: schemas.knownBugs, ...schemas.refusals }
      }
    },
    async (request, reply) => {
      const target = namedTarget(targets(), request)
      if (!target) return refuseUnknownTarget(reply, targets())
      // The table and the reader of files are loaded on use: a sidecar that is only scraped needs
      // neither.
      const { audit } = require('@memwatch/engine/known-bugs/audit')
      const { readInstalledPackages, readLoadedAddons } =
        require('../captures/installed-packages')
      const { node } = target.hello
      const packages = readInstalledPackages(target.hello)
      return {
        target: target.name,
        node,
        packages: packages && [...packages].flatMap(([name, versions]) =>
          versions.map(version => ({ name, version }))),
        addons: readLoadedAddons(target.hello),
        bugs: audit({ node, packages: packages ?? new Map() })
      }
    }
  )
}

module.exports = { knownBugRoutes }
