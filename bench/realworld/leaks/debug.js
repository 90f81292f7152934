'use strict'

/** @type {Partial<import('../cases').Leak>} */
module.exports = {
  leaky: { packages: { debug: '4.2.0' } },
  fixed: { packages: { debug: '4.3.0' } },
  expect: ['js-heap-leak'],
  culprit: /createDebug|debug|handle/,
  load: '6,000 loggers a second',
  app ({ perSecond }) {
    const debug = require('debug')
    function handle (n) {
      const log = debug(`shop:order:${n % 50}`)
      log('begins %d', n)
    }
    perSecond(6000, handle)
  }
}
