'use strict'

// A small JSON API runs under steady load. The used heap rises with every request, falls with every
// GC, and returns to the same level after each major GC.
const http = require('node:http')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { readJson, sendJson } = require('../json')

/** @typedef {{ id: number, name: string, count: number, sizes: number[] }} Part */

const SHELVES = 50
const DATABASE_MS = 25

const shelves = Array.from({ length: SHELVES }, (_, shelf) =>
  JSON.stringify(
    Array.from({ length: 300 }, (_, i) => ({
      id: shelf * 1000 + i,
      name: `part ${i} on shelf ${shelf}`,
      count: i % 50,
      sizes: [i % 7, i % 11]
    }))
  )
)

/** @param {number} shelf */
async function partsOn (shelf) {
  await wait(DATABASE_MS)
  return /** @type {Part[]} */ (JSON.parse(shelves[shelf]))
}

const run = appRun()
const server = http.createServer(async (request, response) => {
  const [, resource, shelf] = (request.url ?? '/').split('/')
  if (resource !== 'shelves') return sendJson(response, { error: 'not found' }, 404)
  const { least } = request.method === 'POST' ? await readJson(request) : { least: 0 }
  const parts = await partsOn(Number(shelf))
  await wait(DATABASE_MS) // Wait for the prices of these parts.
  const inStock = parts.filter(({ count }) => count > least)
  sendJson(response, { shelf, count: inStock.length, first: inStock.slice(0, 20) })
})

withLoad(server, run, {
  phases: [{ perSecond: 250 }],
  requests: [
    { method: 'GET', path: '/shelves/{key}' },
    { method: 'POST', path: '/shelves/{key}', body: '{"least":{key}}' }
  ],
  keys: SHELVES
})
