'use strict'

// A download service gzips its answers. If the client disconnects half-way, the service does not
// close the stream, and a table of "transfers" refers to the stream. Heap and Buffers stay small;
// the memory of zlib grows. `--fixed` closes the stream.
const http = require('node:http')
const zlib = require('node:zlib')
const { appRun } = require('../app-run')
const { withLoad } = require('../with-load')
const { sendJson } = require('../json')

const page = Buffer.from(
  Array.from({ length: 3000 }, (_, i) => `line ${i} ${(i * 7919) % 1000}`).join('\n')
)
/** @type {Map<number, zlib.Gzip>} */
const transfers = new Map()
let next = 0
const run = appRun({ figures: () => ({ transfers: transfers.size }) })

const server = http.createServer((request, response) => {
  const id = next++
  const rows = Array.from({ length: 600 }, (_, i) => ({ id, i, text: `row ${i} of ${id}` }))
  if (id % 8 !== 0) return sendJson(response, rows.slice(0, 20))
  const gzip = zlib.createGzip({ memLevel: 9 })
  gzip.on('data', () => {})
  gzip.write(page)
  transfers.set(id, gzip) // The client has disconnected, and the stream never ends.
  if (run.fixed) {
    gzip.close()
    transfers.delete(id)
  }
  sendJson(response, { id, left: true })
})

withLoad(server, run, {
  phases: [{ perSecond: 120 }],
  requests: [{ method: 'GET', path: '/files/{key}' }]
})
