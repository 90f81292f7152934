'use strict'

// The catalogue of a shop fills most of the heap limit, and each request allocates in the small
// rest, so V8 runs GCs most of the time. Nothing leaks; a larger heap limit is the fix.
const http = require('node:http')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { fillHeap } = require('../fill-heap')
const { sendJson } = require('../json')

/** Size that V8 chooses in a container of 512 MB: the catalogue has outgrown it. */
const CONTAINER_HEAP_BYTES = 259 * 2 ** 20
const run = appRun({ figures: () => ({ products: catalogue.length }) })
const catalogue = fillHeap(0.87, CONTAINER_HEAP_BYTES)
const server = http.createServer(async (request, response) => {
  const from = Math.floor(Math.random() * (catalogue.length - 1000))
  const page = catalogue.slice(from, from + 1000).map((product) => ({ ...product, shown: true }))
  await wait(60) // Wait for another service, which knows the discounts.
  sendJson(response, page.slice(0, 20))
})

withLoad(server, run, {
  phases: [{ perSecond: 330 }],
  requests: [{ method: 'GET', path: '/products/{key}' }],
  inFlight: 32
})
