'use strict'

const http = require('node:http')
const { once } = require('node:events')
const v8 = require('node:v8')

/** @type {http.ServerResponse[]} */
const pendingResponses = []
const server = http.createServer((request, response) => {
  pendingResponses.push(response)
  if (pendingResponses.length % 150 === 0) server.emit('full')
})

server.listen(0, '127.0.0.1', async () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1000 })
  for (const file of process.argv.slice(2, 4)) {
    const full = once(server, 'full')
    for (let i = 0; i < 150; i++) {
      http.get({ port, host: '127.0.0.1', agent, path: `/${i}` }).on('error', () => {})
    }
    await full
    v8.writeHeapSnapshot(file)
  }
  process.exit(pendingResponses.length === 300 ? 0 : 1)
})
