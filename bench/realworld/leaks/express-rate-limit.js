'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  title: 'express-rate-limit: a limiter for each request, each with a timer',
  source: 'https://github.com/express-rate-limit/express-rate-limit/issues/221',
  leaky: { packages: { 'express-rate-limit': '6.6.0', express: '4.21.2' } },
  fixed: {
    packages: { 'express-rate-limit': '6.6.0', express: '4.21.2' },
    label: 'express-rate-limit 6.6.0, one limiter'
  },
  expect: ['resource-leak', 'js-heap-leak'],
  culprit: /express-rate-limit|limit/,
  load: '150 requests a second',
  app ({ fixed, port }) {
    const express = require('express')
    const { rateLimit } = require('express-rate-limit')
    const app = express()
    const make = () => rateLimit({ windowMs: 3_600_000, max: 1_000_000 })
    const shared = make()
    const limit = (request, response, next) => (fixed ? shared : make())(request, response, next)
    app.use(limit)
    app.get('/', (request, response) => response.end('ok'))
    app.listen(port, '127.0.0.1')
  },
  traffic ({ port, perSecond, request }) {
    perSecond(150, () => request(port))
  }
}
