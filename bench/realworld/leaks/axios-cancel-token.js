'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { axios: '0.21.4' } },
  fixed: { packages: { axios: '0.22.0' } },
  expect: ['js-heap-leak'],
  culprit: /axios|fetchOrder/,
  load: '100 requests a second with one token',
  limitMib: 1024,
  app ({ port, perSecond }) {
    const http = require('node:http')
    const axios = require('axios')
    const { token: cancelToken } = axios.CancelToken.source()
    const httpAgent = new http.Agent({ keepAlive: true, maxSockets: 8 })
    const fetchOrder = () => axios.get(`http://127.0.0.1:${port}/`, { cancelToken, httpAgent })
    perSecond(100, () => fetchOrder().catch(() => {}))
  },
  traffic ({ port }) {
    const http = require('node:http')
    const rows = JSON.stringify(Array.from({ length: 200 }, (_, id) => ({ id, name: `row ${id}` })))
    http.createServer((request, response) => response.end(rows)).listen(port, '127.0.0.1')
  }
}
