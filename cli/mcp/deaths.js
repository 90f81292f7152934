'use strict'

const { text } = require('@memwatch/engine/text/json-schema')
const { pathSegment } = require('../text/path-segment')
const { accept, argumentsOf, queryOf } = require('./define-tool')

const MOST_DEATHS = 20
/** Times before the last frame for which values are returned, in seconds. */
const SECONDS = [600, 300, 120, 60, 30, 10, 5, 0]
const TRACKS = ['rssBytes', 'heapUsedBytes', 'externalBytes']

/** @type {import('./define-tool').Tool} */
const deaths = {
  name: 'deaths',
  title: 'Ended processes, with their causes',
  description:
    'Lists ended processes, newest first: cause of death with its certainty, the verdict that ' +
    'was confirmed, suspects, and holders in a snapshot that V8 wrote. With an id, one process ' +
    'with its memory in the last ten minutes.',
  input: argumentsOf({
    target: { ...text, description: 'only processes of this name' },
    id: { ...text, description: 'id of a death' }
  }),
  needs: 'exporter',
  most: { piles: 5 },
  async answer ({ target, id }, { call }) {
    if (id === undefined) {
      const query = queryOf({ limit: MOST_DEATHS, target })
      return { deaths: accept(await call(`deaths?${query}`), 'call targets').map(describeDeath) }
    }
    const { death, lastMinutes } =
      accept(await call(`deaths/${pathSegment(id)}`), 'call deaths without id to get the ids')
    const rows = SECONDS.flatMap(seconds => {
      const at = lastMinutes.secondsBefore
        .findLastIndex((/** @type {number} */ before) => before >= seconds)
      return at >= 0 ? [at] : []
    })
    return {
      death: describeDeath(death),
      before: [...new Set(rows)].map(at => ({
        secondsBeforeTheLastFrame: Math.round(lastMinutes.secondsBefore[at]),
        ...Object.fromEntries(TRACKS.map(track => [track, lastMinutes.tracks[track]?.[at] ?? null]))
      }))
    }
  }
}

/** @param {any} death death, in the form of the API */
function describeDeath (death) {
  const { id, target, thread, pid, node, reason, sure, text, advice, exitCode, signal } = death
  const { verdict, suspects, holders, startedAtUnixMs, diedAtUnixMs } = death
  return {
    id,
    target,
    thread,
    pid,
    node,
    reason,
    sure,
    text,
    ...advice && { advice },
    exitCode,
    signal,
    diedAt: new Date(diedAtUnixMs).toISOString(),
    livedSeconds: Math.round((diedAtUnixMs - startedAtUnixMs) / 1000),
    verdict,
    ...suspects && { suspects },
    ...holders && { piles: holders.piles.map((/** @type {any} */ { text }) => text) }
  }
}

module.exports = { deaths }
