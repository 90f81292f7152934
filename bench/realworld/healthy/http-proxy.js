'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'http-proxy whose clients stay connected',
  packages: { 'http-proxy': '1.18.1' },
  load: '150 requests a second of 20 kB',
  app ({ port }) {
    const http = require('node:http')
    const agent = new http.Agent({ keepAlive: true, maxSockets: 16 })
    const target = `http://127.0.0.1:${port + 1}`
    const proxy = require('http-proxy').createProxyServer({ target, agent })
    proxy.on('error', () => {})
    http.createServer((request, response) => proxy.web(request, response)).listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    const http = require('node:http')
    const body = 'z'.repeat(20_000)
    http.createServer((request, response) => response.end(body)).listen(port + 1, '127.0.0.1')
    perSecond(150, () => request(port))
  }
}
