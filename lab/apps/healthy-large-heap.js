'use strict'

// An API over an index held in memory: loaded once, about 180 MB, never changed in size. Near the heap size limit,
// and fine there.
const http = require('node:http')
const { setImmediate: breathe } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const ENTRIES = 400_000

/** @typedef {{ id: number, city: string, street: string, position: number[], tags: string[] }} Place */

/** @type {Place[]} */
const index = []

async function load () {
  for (let id = 0; id < ENTRIES; id++) {
    index.push({ id, city: `city ${id % 900}`, street: `street ${id}, back yard`, position: [id / 7, id / 11], tags: [`a${id % 10}`, `b${id % 7}`] })
    if (id % 2000 === 0) await breathe()
  }
}

const run = appRun({ figures: () => ({ places: index.length }) })
const server = http.createServer((request, response) => {
  const [, resource, id] = (request.url ?? '/').split('/')
  const place = index[Number(id)]
  if (resource !== 'places' || !place) return sendJson(response, { error: 'not found' }, 404)
  sendJson(response, { place, near: index.slice(place.id, place.id + 20).map(({ street, city }) => `${street}, ${city}`) })
})

load().then(() => withLoad(server, run, { phases: [{ perSecond: 100 }], requests: [{ method: 'GET', path: '/places/{key}' }], keys: ENTRIES }))
