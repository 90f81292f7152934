'use strict'

// An API has an index of about 180 MB in memory, which it loads once and never changes. The heap is
// near its size limit, which is no problem.
const http = require('node:http')
const { setImmediate: breathe, setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const PLACES = 510_000
const RANKING_MS = 30

/**
 * @typedef {{ id: number, city: string, street: string, position: number[], tags: string[] }} Place
 */

/** @type {Place[]} */
const index = []

async function load () {
  for (let id = 0; id < PLACES; id++) {
    index.push({
      id,
      city: `city ${id % 900}`,
      street: `street ${id}, back yard`,
      position: [id / 7, id / 11],
      tags: [`a${id % 10}`, `b${id % 7}`]
    })
    if (id % 2000 === 0) await breathe()
  }
}

/** @param {number} id */
async function near (id) {
  const places = index
    .slice(id, id + 300)
    .map(({ street, city, position: [x, y] }) => ({
      name: `${street}, ${city}`,
      distance: Math.hypot(x, y)
    }))
  await wait(RANKING_MS) // Another service ranks them.
  return places.sort((a, b) => a.distance - b.distance).slice(0, 10)
}

const run = appRun({ figures: () => ({ places: index.length }) })
const server = http.createServer(async (request, response) => {
  const [, resource, id] = (request.url ?? '/').split('/')
  if (resource !== 'places' || !index[Number(id)]) {
    return sendJson(response, { error: 'not found' }, 404)
  }
  sendJson(response, await near(Number(id)))
})

load().then(() =>
  withLoad(server, run, {
    phases: [{ perSecond: 120 }],
    requests: [{ method: 'GET', path: '/places/{key}' }],
    keys: PLACES
  })
)
