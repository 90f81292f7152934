'use strict'

// The app whose cost is measured: `node -r VARIANT app.js api | allocating | idle`. It notifies its
// parent once it listens, and sends its measurements on request.
const { performance } = require('node:perf_hooks')
const kind = process.argv[2]

const rows = Array.from({ length: 200 }, (_, i) => ({
  id: i,
  name: `product ${i}`,
  prices: [i, i % 7],
  stock: { shop: i % 9 }
}))
const handlers = {
  /** A JSON API, which allocates little beside the request itself. */
  api: async request => ({
    id: request.params.id,
    row: rows[Number(request.params.id) % rows.length]
  }),
  /** Each request makes a few thousand objects, some of which outlive a scavenge. */
  allocating: async request => {
    const made = Array.from({ length: 3000 }, (_, i) => ({
      i,
      of: rows[i % rows.length],
      text: `row ${i}`
    }))
    recent[recentAt++ % recent.length] = made
    return { id: request.params.id, sum: made.reduce((sum, { i }) => sum + i, 0) }
  }
}
/** @type {object[][]} */
const recent = Array(50).fill([])
let recentAt = 0

async function main () {
  let port = 0
  if (kind === 'idle') {
    require('node:net').createServer().listen(0, '127.0.0.1')
  } else {
    const server = require('fastify')()
    server.get('/rows/:id', handlers[kind])
    await server.listen({ port: 0, host: '127.0.0.1' })
    port = /** @type {import('node:net').AddressInfo} */ (server.server.address()).port
  }
  process.send?.({ port, startedMs: performance.now() })
}

process.on('message', message => {
  if (message === 'end') process.exit()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, heapTotal } = process.memoryUsage()
  process.send?.({
    cpuSeconds: (user + system) / 1e6,
    rss,
    heapUsed,
    heapTotal,
    loops: performance.nodeTiming.uvMetricsInfo?.loopCount ?? null,
    scrapePort: globalThis.scrapePort
  })
})
main()
