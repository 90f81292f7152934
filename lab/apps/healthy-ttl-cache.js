'use strict'

// The entries of a cache expire after twelve seconds, and the load comes in waves. The live heap
// rises for a while, then falls, then rises again: it may rise throughout a short window.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const TTL_MS = 12_000

/**
 * @typedef {{ value: { name: string, history: { day: number, cents: number }[] }, expires: number
 *   }} Entry
 */

/** @type {Map<string, Entry>} in order of insertion, so the first is always the next to expire */
const cache = new Map()

/** @param {string} name */
function quote (name) {
  const cached = cache.get(name)
  if (cached) return cached.value
  const value = {
    name,
    history: Array.from({ length: 300 }, (_, day) => ({ day, cents: Math.random() * 10_000 }))
  }
  cache.set(name, { value, expires: performance.now() + TTL_MS })
  return value
}

setInterval(() => {
  const now = performance.now()
  for (const [name, { expires }] of cache) {
    if (expires > now) break
    cache.delete(name)
  }
}, 1000)

const run = appRun({ figures: () => ({ cached: cache.size }) })
const server = http.createServer((request, response) => {
  const [, resource, name] = (request.url ?? '/').split('/')
  if (resource !== 'quotes') return sendJson(response, { error: 'not found' }, 404)
  sendJson(response, { name, last: quote(name).history.slice(-5) })
})

withLoad(server, run, {
  phases: [{ seconds: 20, perSecond: 240 }, { seconds: 20, perSecond: 40 }],
  repeat: true,
  requests: [{ method: 'GET', path: '/quotes/{key}' }],
  keys: 1_000_000
})
