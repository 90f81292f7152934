'use strict'

// A well-behaved app: an HTTP server that allocates a little. It prints its port, and ends on
// SIGTERM.
const http = require('node:http')

const server = http.createServer((request, response) => {
  const items = Array.from({ length: 200 }, (_, id) => ({
    id,
    name: `item ${id}`,
    price: id * 1.1
  }))
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ items }))
})
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  console.log(port)
})
process.on('SIGTERM', () => process.exit(0))
