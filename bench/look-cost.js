'use strict'

// Cost of a scan of the memory map and of malloc's statistics, in a process of a given size: a
// child of bench/anatomy.js.
const { performance } = require('node:perf_hooks')
const { MemoryMap } = require('../agent/collect/memory-map')
const { allocatorStatistics } = require('../agent/collect/allocator-statistics')
const { allocatorAccess } = require('../agent/allocator-access')
const { processStatus } = require('../agent/collect/process-status')

const [buffersMb, heapMb] = process.argv.slice(2).map(Number)
const buffers = Array.from({ length: buffersMb * 50 }, () =>
  Buffer.allocUnsafeSlow(20 * 1024 + Math.floor(1024 * Math.random())).fill(1)
)
// The app frees every second Buffer, so malloc has free chunks to count.
for (let i = 0; i < buffers.length; i += 10) buffers[i] = Buffer.alloc(0)
const rows = Array.from({ length: heapMb * 11_000 }, (_, i) => ({ i, text: `row ${i}` }))
const access = allocatorAccess()
const status = processStatus()
const map = new MemoryMap({ frameMs: 1000, metered: (_, work) => work })
const statistics = access && allocatorStatistics(access)

/** @type {Record<string, number[]>} */
const took = { look: [], books: [] }
let rss = 0
for (let i = 0; i < 21; i++) {
  /** @type {import('../agent/protocol/frame').Frame['values']} */
  const values = {}
  const tick = { count: 0, nowSeconds: 1000 * i, isOnDemand: true }
  status.read(values, tick)
  let from = performance.now()
  map.read(values, tick)
  took.look.push(performance.now() - from)
  from = performance.now()
  statistics?.read(values, tick)
  took.books.push(performance.now() - from)
  rss = values.rssBytes ?? 0
}
const median = (/** @type {number[]} */ list) => [...list].sort((a, b) => a - b)[list.length >> 1] / 1000
console.log(
  JSON.stringify({
    buffersMb,
    heapMb,
    rss,
    lookSeconds: median(took.look),
    longestLookSeconds: Math.max(...took.look) / 1000,
    booksSeconds: access ? median(took.books) : null,
    kept: buffers.length + rows.length
  })
)
