'use strict'

const { fastify } = require('fastify')
const { Deaths } = require('../deaths/deaths')
const { deathRoutes } = require('./deaths')
const { knownBugRoutes } = require('./known-bugs')
const { NAMES_TARGETS } = require('./named-target')
const { planRoutes } = require('./plan')
const { seriesRoutes } = require('./series')
const { targetRoutes } = require('./targets')

/**
 * API for replayed targets: the routes of an exporter that need neither agents nor captures. It
 * does not listen on any port.
 * @param {import('@memwatch/engine/history/target').Target[]} targets
 * @returns {(url: URL | string) => Promise<Response>} function with the signature of fetch
 */
function replayedApi (targets) {
  const server = fastify(NAMES_TARGETS)
  const named = withUniqueNames(targets.filter(({ frame }) => frame))
  const watched = () => named
  targetRoutes(server, {
    targets: watched,
    deathWatch: /** @type {any} */ ({ silenceOf: () => undefined }),
    omit: (_, error) => { throw error }
  })
  seriesRoutes(server, watched)
  planRoutes(server, watched)
  knownBugRoutes(server, watched)
  deathRoutes(server, new Deaths())
  return async url => {
    const { pathname, search } = new URL(url)
    const { statusCode, headers, body } = await server.inject({ url: pathname + search })
    return new Response(body, {
      status: statusCode,
      headers: { 'content-type': String(headers['content-type']), link: String(headers.link ?? '') }
    })
  }
}

/**
 * A recording with restarts contains several processes with one name. They are numbered like
 * processes that run at the same time, the last one first.
 * @param {import('@memwatch/engine/history/target').Target[]} targets
 */
function withUniqueNames (targets) {
  /** @type {Map<string, number>} */
  const numbers = new Map()
  const newestFirst = targets
    .toSorted((a, b) => Number(b.frame?.atUnixMs) - Number(a.frame?.atUnixMs))
  for (const target of newestFirst) {
    const key = JSON.stringify([target.name, target.thread])
    const number = 1 + (numbers.get(key) ?? 0)
    numbers.set(key, number)
    if (number > 1) target.name = `${target.name}-${number}`
  }
  return newestFirst
}

module.exports = { replayedApi }
