'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'got adds listeners to a socket that an agent keeps',
  source: 'https://github.com/sindresorhus/got/pull/694',
  leaky: { packages: { got: '9.5.0' } },
  fixed: { packages: { got: '9.5.1' } },
  expect: ['js-heap-leak'],
  culprit: /got|fetchOrder|timed-out/,
  load: '200 requests a second on 4 sockets, with a socket timeout',
  app ({ port, perSecond }) {
    const http = require('node:http')
    const got = require('got')
    const agent = new http.Agent({ keepAlive: true, maxSockets: 4 })
    const timeout = { socket: 10_000 }
    const fetchOrder = () => got(`http://127.0.0.1:${port}/`, { agent, timeout })
    perSecond(200, () => fetchOrder().catch(() => {}))
  },
  traffic ({ port }) {
    const http = require('node:http')
    http.createServer((request, response) => response.end('ok')).listen(port, '127.0.0.1')
  }
}
