'use strict'

/** @type {Partial<import('../cases').Healthy>} */
module.exports = {
  title: 'an express API that reads and writes JSON',
  packages: { express: '5.1.0', compression: '1.8.1', helmet: '8.1.0' },
  load: '200 requests a second with 10 kB of JSON',
  app ({ port }) {
    const express = require('express')
    const app = express()
    app.use(require('helmet')(), require('compression')(), express.json())
    app.post('/', (request, response) =>
      response.json(request.body.map(row => ({ ...row, total: row.price * row.count }))))
    app.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    const rows = Array.from({ length: 200 }, (_, id) => ({ id, price: id % 7, count: 3, name: 'tea' }))
    const body = JSON.stringify(rows)
    const headers = { 'content-type': 'application/json', 'accept-encoding': 'gzip' }
    perSecond(200, () => request(port, { method: 'POST', body, headers }))
  }
}
