'use strict'

const http = require('node:http')
const { once } = require('node:events')

/**
 * Serves generated metrics to Prometheus on a free port: /eN/metrics has the text of exporter N.
 * @param {(exporter: number, scrapes: number) => string} text scrapes: number of requests so far,
 *   by which counters may grow
 * @returns {Promise<{ port: number, close: () => void }>}
 */
async function serveMetrics (text) {
  let scrapes = 0
  const server = http.createServer((request, response) => {
    scrapes++
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end(text(Number(request.url?.slice(2).split('/')[0]), scrapes))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    port,
    close () {
      server.closeAllConnections()
      server.close()
    }
  }
}

module.exports = { serveMetrics }
