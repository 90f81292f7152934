'use strict'

/**
 * App of bench/attach.js: a server that allocates for each request, and a worker. `/memory` runs
 * full GCs in both threads, and answers with the remaining memory: the heap is the sum of both.
 * `/resources` lists what keeps the event loop alive.
 */

const http = require('node:http')
const { once } = require('node:events')
const { Worker } = require('node:worker_threads')

const ROWS = 300
const GCS = 4
/**
 * This GC also empties V8's cache of compiled scripts, which would keep scripts of the inspector
 * for some GCs. Node.js 18 and 20 ignore the flavor and run a full GC.
 */
const EVERYTHING = { type: 'major', flavor: 'last-resort' }

const worker = new Worker(`
  const { parentPort } = require('node:worker_threads')
  parentPort.on('message', everything => {
    gc(everything)
    parentPort.postMessage(process.memoryUsage().heapUsed)
  })`, { eval: true })
const server = http.createServer(async (request, response) => {
  if (request.url === '/memory') {
    let heapUsedInWorker = 0
    for (let i = 0; i < GCS; i++) {
      /** @type {any} */ (globalThis).gc(EVERYTHING)
      // The worker needs its own GC: the agent's modules there are garbage of the worker's heap.
      worker.postMessage(EVERYTHING);
      [heapUsedInWorker] = await once(worker, 'message')
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    const { rss, heapUsed } = process.memoryUsage()
    response.end(JSON.stringify({ rss, heapUsed: heapUsed + heapUsedInWorker }))
  } else if (request.url === '/resources') {
    response.end(JSON.stringify(/** @type {any} */ (process).getActiveResourcesInfo().sort()))
  } else {
    const rows = Array.from({ length: ROWS }, (_, id) => ({ id, name: `row ${id}` }))
    response.end(JSON.stringify(rows))
  }
})
// With a timeout the server might close an idle connection while a request is on its way. That
// request would look lost.
server.keepAliveTimeout = 0
worker.once('online', () => server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.send?.({ port })
}))
