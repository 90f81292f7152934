'use strict'

// A report API is nearly idle, except for three busy seconds in every fifteen. Heap, GCs and event
// loop utilisation rise with each burst and fall after it.
const http = require('node:http')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @typedef {{ product: string, day: number, cents: number[] }} Sale */

const REGIONS = 12
const DATABASE_MS = 30

const sales = Array.from({ length: REGIONS }, () =>
  JSON.stringify(
    Array.from({ length: 800 }, (_, i) => ({
      product: `product-${i % 60}`,
      day: i % 31,
      cents: [(i * 13) % 9900, i % 100]
    }))
  )
)

/** @param {number} region */
async function report (region) {
  await wait(DATABASE_MS)
  const rows = /** @type {Sale[]} */ (JSON.parse(sales[region]))
  await wait(DATABASE_MS) // Last year's figures, for comparison.
  /** @type {Record<string, { count: number, cents: number }>} */
  const products = {}
  for (const { product, cents: [net, tax] } of rows) {
    const sum = products[product] ??= { count: 0, cents: 0 }
    sum.count++
    sum.cents += net + tax
  }
  return Object.entries(products).map(([product, { count, cents }]) => ({
    product,
    count,
    mean: cents / count
  }))
}

const run = appRun()
const server = http.createServer(async (request, response) => {
  const [, resource, region] = (request.url ?? '/').split('/')
  if (resource !== 'reports') return sendJson(response, { error: 'not found' }, 404)
  sendJson(response, await report(Number(region)))
})

withLoad(server, run, {
  phases: [{ seconds: 12, perSecond: 5 }, { seconds: 3, perSecond: 200 }],
  repeat: true,
  requests: [{ method: 'GET', path: '/reports/{key}' }],
  keys: REGIONS
})
