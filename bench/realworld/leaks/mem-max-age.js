'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { mem: '3.0.1' } },
  fixed: { packages: { mem: '4.0.0' } },
  expect: ['js-heap-leak'],
  culprit: /mem\b|readPrice/,
  load: '200 keys a second, a result is valid for a second',
  limitMib: 2048,
  app ({ perSecond, payload }) {
    const mem = require('mem')
    const readPrice = mem(n => payload(8000, n), { maxAge: 1000 })
    perSecond(200, n => readPrice(n))
  }
}
