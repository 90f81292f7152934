'use strict'

/**
 * App of bench/attach.js: a server that allocates for each request, and a worker. `/memory` makes
 * V8 free all it can in both threads, and answers with the remaining memory: the heap is the sum of
 * both. `/resources` lists what keeps the event loop alive.
 */

const http = require('node:http')
const { once } = require('node:events')
const { Session } = require('node:inspector')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')

const ROWS = 300
/** V8 discards code that was not used during the last six or seven major GCs. */
const GCS = 8

/**
 * Collects garbage as the inspector does: V8 then also empties its cache of compiled scripts, in
 * each version of Node.js. `gc()` keeps that cache.
 * @returns {Promise<void>}
 */
const collect = () => new Promise(resolve => {
  const session = new Session()
  session.connect()
  session.post('HeapProfiler.collectGarbage', () => {
    // Node.js hangs if a session ends within its own answer.
    setImmediate(() => {
      session.disconnect()
      resolve()
    })
  })
})

if (isMainThread) serve()
else parentPort?.on('message', answer)

async function answer () {
  await collect()
  parentPort?.postMessage(process.memoryUsage().heapUsed)
}

function serve () {
  const worker = new Worker(__filename)
  const server = http.createServer(async (request, response) => {
    if (request.url === '/memory') {
      let heapUsedInWorker = 0
      for (let i = 0; i < GCS; i++) {
        await collect()
        // The worker needs its own GC: the agent's modules there are garbage of the worker's heap.
        worker.postMessage('collect');
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
}
