'use strict'

// A JSON API reads order rows, waits for two "database" answers, joins them and sends the result.
// Nothing leaks. In a container of 512 MB V8 chooses a semi-space of 1 MB, and the rows of the
// requests in flight do not fit into it. Scavenges promote the rows to the old space, where they
// die soon after, and V8 runs many major GCs a second. With `--max-semi-space-size=16` scavenges
// free the rows.
const http = require('node:http')
const { setTimeout: wait } = require('node:timers/promises')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/**
 * @typedef {{ id: number, sku: string, quantity: number, shelf: number[], size: number[], weight: {
 *   net: number, gross: number } }} Order
 */
/** @typedef {{ sku: string, cents: number, currency: string }} Price */

const CUSTOMERS = 100
const ORDERS_EACH = 550
const DATABASE_MS = 18

const orderRows = Array.from({ length: CUSTOMERS }, (_, customer) =>
  JSON.stringify(orders(customer))
)
const priceRows = JSON.stringify(
  Array.from({ length: ORDERS_EACH }, (_, i) => ({
    sku: `sku-${i}`,
    cents: 100 + i * 7,
    currency: 'EUR'
  }))
)

/**
 * @param {number} customer
 * @returns {Order[]}
 */
function orders (customer) {
  return Array.from({ length: ORDERS_EACH }, (_, i) => ({
    id: customer * 1000 + i,
    sku: `sku-${i}`,
    quantity: 1 + i % 9,
    shelf: [i % 7, i % 40],
    size: [i % 9, i % 8, 10],
    weight: { net: i % 90, gross: i % 90 + 1 }
  }))
}

/**
 * Simulates a database driver: the answer arrives later, as text, and is parsed to objects.
 * @param {string} text
 */
async function query (text) {
  await wait(DATABASE_MS)
  return JSON.parse(text)
}

/** @param {number} customer */
async function invoice (customer) {
  const rows = /** @type {Order[]} */ (await query(orderRows[customer % CUSTOMERS]))
  const prices = /** @type {Price[]} */ (await query(priceRows))
  const [{ discount }] = /** @type {{ discount: number }[]} */ (await query('[{"discount":0.1}]'))
  const priceOf = new Map(prices.map((price) => [price.sku, price.cents]))
  const lines = rows.map(row => ({
    order: row.id,
    sku: row.sku,
    shelf: row.shelf,
    cents: row.quantity * (priceOf.get(row.sku) ?? 0) * (1 - discount)
  }))
  return {
    customer,
    cents: lines.reduce((sum, line) => sum + line.cents, 0),
    lines: lines.slice(0, 20)
  }
}

const run = appRun()
const server = http.createServer(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  const [, resource, customer] = url.pathname.split('/')
  if (request.method !== 'GET' || resource !== 'invoices') {
    return sendJson(response, { error: 'not found' }, 404)
  }
  sendJson(response, await invoice(Number(customer)))
})

withLoad(server, run, {
  phases: [{ perSecond: 600 }],
  requests: [{ method: 'GET', path: '/invoices/{key}' }],
  keys: CUSTOMERS,
  inFlight: 64
})
