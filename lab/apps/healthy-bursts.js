'use strict'

// A report API that is nearly idle, then for three seconds every fifteen everybody wants a report. Heap, collections
// and event loop utilisation jump with each burst and fall back after it.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const sales = Array.from({ length: 4000 }, (_, i) => ({ region: `region-${i % 12}`, product: `product-${i % 60}`, cents: i * 13 % 9900 }))

/** @param {string} region */
function report (region) {
  /** @type {Record<string, { count: number, cents: number }>} */
  const products = {}
  for (const sale of sales) {
    if (sale.region !== region) continue
    const { count, cents } = products[sale.product] ?? { count: 0, cents: 0 }
    products[sale.product] = { count: count + 1, cents: cents + sale.cents }
  }
  return Object.entries(products).map(([product, sum]) => ({ product, ...sum, mean: sum.cents / sum.count }))
}

const run = appRun()
const server = http.createServer((request, response) => {
  const [, resource, number] = (request.url ?? '/').split('/')
  if (resource !== 'reports') return sendJson(response, { error: 'not found' }, 404)
  sendJson(response, report(`region-${number}`))
})

withLoad(server, run, {
  phases: [{ seconds: 12, perSecond: 5 }, { seconds: 3, perSecond: 600 }],
  repeat: true,
  requests: [{ method: 'GET', path: '/reports/{key}' }],
  keys: 12
})
