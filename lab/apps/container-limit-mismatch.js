'use strict'

// A JSON API runs with --max-old-space-size=1024 in a container of 512 MB; the flag was set for its
// former machine. V8 has no reason to run a GC before the kernel kills the process. The app itself
// is healthy.
const http = require('node:http')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

/** @type {object[]} a ring of recent orders */
const recent = []
let count = 0
const server = http.createServer((request, response) => {
  const order = {
    id: count,
    lines: Array.from({ length: 30 }, (_, i) => ({
      sku: `sku-${i}`,
      cents: i * 100,
      note: `order ${count} line ${i}`
    }))
  }
  recent[count++ % 4000] = order
  sendJson(response, { id: order.id, lines: order.lines.slice(0, 5) })
})

withLoad(server, appRun({ figures: () => ({ recent: recent.length }) }), {
  phases: [{ perSecond: 250 }],
  requests: [{ method: 'GET', path: '/orders/{key}' }]
})
