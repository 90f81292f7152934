'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { 'express-session': '1.18.1', express: '5.1.0' } },
  fixed: {
    packages: { 'express-session': '1.18.1', express: '5.1.0', memorystore: '1.6.7' },
    label: 'memorystore 1.6.7, at most 1,000'
  },
  expect: ['js-heap-leak'],
  culprit: /express-session|MemoryStore|memory\.js/,
  load: '200 new visitors a second',
  limitMib: 1024,
  app ({ fixed, port }) {
    const express = require('express')
    const session = require('express-session')
    const store = fixed ? new (require('memorystore')(session))({ max: 1000 }) : undefined
    const app = express()
    app.use(session({ secret: 'shop', resave: false, saveUninitialized: true, store }))
    app.get('/', (request, response) => {
      request.session.cart = Array.from({ length: 400 }, (_, i) => ({ i, name: `item ${i}` }))
      response.end('ok')
    })
    app.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    perSecond(200, () => request(port))
  }
}
