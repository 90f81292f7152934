'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'http-proxy': '1.18.1' } },
  fixed: { packages: { 'http-proxy-node16': '1.0.6' } },
  expect: ['resource-leak'],
  culprit: /http-proxy|web-incoming/,
  load: '5 clients a second that leave an event stream',
  app ({ fixed, port }) {
    const http = require('node:http')
    const library = require(fixed ? 'http-proxy-node16' : 'http-proxy')
    const proxy = library.createProxyServer({ target: `http://127.0.0.1:${port + 1}` })
    proxy.on('error', () => {})
    http.createServer((request, response) => proxy.web(request, response)).listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond }) {
    const http = require('node:http')
    const net = require('node:net')
    http.createServer((request, response) => {
      const events = setInterval(() => response.write('data: tick\n\n'), 1000)
      response.on('close', () => clearInterval(events))
      response.write('data: hello\n\n')
    }).listen(port + 1, '127.0.0.1')
    perSecond(5, () => {
      const client = net.connect(port, '127.0.0.1', () => {
        client.write('GET / HTTP/1.1\r\nHost: shop\r\n\r\n')
        setTimeout(() => client.destroy(), 300)
      })
      client.on('error', () => {})
    })
  }
}
